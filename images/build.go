package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options say what to build, and where.
type Options struct {
	// Source is the folder with "modules" and "elements": the folder of this package.
	Source string
	// CacheDir keeps the pieces; by default the folder "burano/image" in the user's cache folder. Removing it is the way to
	// newer Debian packages.
	CacheDir string
	// Out is the file to write; the manifest goes beside it, with the extension ".json" in the place of ".tar".
	Out string
	// Progress is written one line as each step begins, ends, and now and then in between; nil is silence.
	Progress io.Writer
}

// Result is what Build has made.
type Result struct {
	Image    string
	Manifest Manifest
	// Made counts the steps that had something to do, Kept those whose result was there.
	Made, Kept int
	Duration   time.Duration
}

// Build makes the node image, or makes sure that it is as Options.Source says. It needs root, Go, and Debian's mmdebstrap.
// An error names the step and carries the end of its output.
func Build(ctx context.Context, options Options) (Result, error) {
	began := time.Now()
	builder, err := newBuilder(ctx, options)
	if err != nil {
		return Result{}, fmt.Errorf("build the node image: %w", err)
	}
	defer builder.cache.close()
	manifest, err := builder.build(ctx)
	if err != nil && ctx.Err() != nil {
		// What the programs said when they were stopped explains nothing.
		return Result{}, fmt.Errorf("build the node image: interrupted, the finished pieces are kept: %w", context.Cause(ctx))
	}
	if err != nil {
		return Result{}, fmt.Errorf("build the node image: %w", err)
	}
	made, kept := builder.progress.counts()
	return Result{Image: options.Out, Manifest: manifest, Made: made, Kept: kept, Duration: time.Since(began)}, nil
}

// builder holds what the steps of one build share.
type builder struct {
	source    string
	out       string
	cache     *cache
	progress  *progress
	toolchain toolchain
	elements  []element
}

func newBuilder(ctx context.Context, options Options) (*builder, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can make a root file system: run it as root")
	}
	source, err := filepath.Abs(options.Source)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"modules", "elements"} {
		if _, err := os.Stat(filepath.Join(source, folder)); err != nil {
			return nil, fmt.Errorf("%s is not the source of the image (Burano's folder \"images\"): %w", options.Source, err)
		}
	}
	if options.Out == "" {
		return nil, errors.New("no file is named to write the image to")
	}
	elements, err := readElements(filepath.Join(source, "elements"))
	if err != nil {
		return nil, err
	}
	toolchain, err := findToolchain(ctx)
	if err != nil {
		return nil, err
	}
	if options.CacheDir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for the cache: %w", err)
		}
		options.CacheDir = filepath.Join(base, "burano", "image")
	}
	// One step for each module, one each for container images, packages and the image itself.
	progress := newProgress(options.Progress, len(modules())+3)
	cache, err := openCache(ctx, options.CacheDir, progress)
	if err != nil {
		return nil, err
	}
	return &builder{source: source, out: options.Out, cache: cache, progress: progress, toolchain: toolchain, elements: elements}, nil
}

// build makes the Debian system beside the programs: the one waits for the network, the others for the processor. The
// programs are built one after the other, since linking one of them takes gigabytes.
func (b *builder) build(ctx context.Context) (Manifest, error) {
	group, groupCtx := errgroup.WithContext(ctx)
	var system piece
	group.Go(func() (err error) {
		system, err = b.debian(groupCtx)
		return err
	})
	var programs []piece
	var containers piece
	group.Go(func() error {
		for _, module := range modules() {
			built, err := b.module(groupCtx, module)
			if err != nil {
				return err
			}
			programs = append(programs, built)
		}
		var err error
		containers, err = b.containers(groupCtx, programs)
		return err
	})
	if err := group.Wait(); err != nil {
		return Manifest{}, err
	}
	image, err := b.image(ctx, system, programs, containers)
	if err != nil {
		return Manifest{}, err
	}
	manifest, err := b.deliver(image)
	if err != nil {
		return Manifest{}, err
	}
	b.cache.sweep()
	return manifest, nil
}
