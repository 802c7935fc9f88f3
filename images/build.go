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

// Options select the build's source, form and target.
type Options struct {
	// Source is the folder with "modules", "elements", "optional" and "machine": the folder of this package.
	Source string
	// Format is the form to make; the zero value is Tar.
	Format Format
	// CacheDir caches the pieces; by default the folder "burano/image" in the user's cache folder. Remove it to get newer Debian packages.
	CacheDir string
	// Out is the file to write; a tar's manifest goes beside it, with the extension ".json" in the place of ".tar". Beside a disk go manifest, bill
	// of materials, the list of its files, and checksums, with ".json", ".spdx.json", ".files" and ".sha256" after its name.
	Out string
	// Kubernetes is the minor version of Kubernetes that the image is to have, such as 1.35; "" is the newest.
	Kubernetes string
	// With are the names of elements that an image has only when it is asked for them (Optional).
	With []string
	// Prebuilt fetches programs that are otherwise compiled; nil compiles all.
	Prebuilt *Prebuilt
	// Progress is written one line as each step begins, ends, and now and then in between; nil is silence.
	Progress io.Writer
}

// Format is a form of the image: one content, with the additions for machines in the forms that are disks.
type Format string

const (
	// Tar is a root file system, which the local cloud boots as a system container.
	Tar Format = "tar"
	// QCOW2 and Raw are disks that machines boot, the one compressed.
	QCOW2 Format = "qcow2"
	Raw   Format = "raw"
)

// Result is the result of Build.
type Result struct {
	Image    string
	Manifest Manifest
	// Made is the number of steps with work, Kept of steps with a cached result.
	Made, Kept int
	Duration   time.Duration
}

// Build makes the node image, or makes sure that it matches Options.Source. It needs root, Go, and Debian's mmdebstrap. An error names the step and
// contains the end of its output.
func Build(ctx context.Context, options Options) (Result, error) {
	began := time.Now()
	builder, err := newBuilder(ctx, options)
	if err != nil {
		return Result{}, fmt.Errorf("build the node image: %w", err)
	}
	defer builder.cache.close()
	manifest, err := builder.build(ctx)
	if err != nil && ctx.Err() != nil {
		// The programs' output at an interruption explains nothing.
		return Result{}, fmt.Errorf("build the node image: interrupted, the finished pieces are kept: %w", context.Cause(ctx))
	}
	if err != nil {
		return Result{}, fmt.Errorf("build the node image: %w", err)
	}
	made, kept := builder.progress.counts()
	return Result{Image: options.Out, Manifest: manifest, Made: made, Kept: kept, Duration: time.Since(began)}, nil
}

// builder holds the shared state of the steps of one build.
type builder struct {
	source    string
	out       string
	format    Format
	cache     *cache
	progress  *progress
	toolchain toolchain
	prebuilt  *prebuilt // nil when all is compiled
	modules   []module
	// elements belong to every form, machine to disks only.
	elements, machine []element
}

func newBuilder(ctx context.Context, options Options) (*builder, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root can make a root file system: run it as root")
	}
	source, err := filepath.Abs(options.Source)
	if err != nil {
		return nil, err
	}
	switch options.Format {
	case "":
		options.Format = Tar
	case Tar, QCOW2, Raw:
	default:
		return nil, fmt.Errorf("%q is no format of the image: use %s, %s or %s", options.Format, Tar, QCOW2, Raw)
	}
	for _, folder := range []string{"modules", "elements", "machine"} {
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
	asked, more, err := optional(source, options.With)
	if err != nil {
		return nil, err
	}
	elements = append(elements, asked...)
	machine, err := readElements(filepath.Join(source, "machine"))
	if err != nil {
		return nil, err
	}
	toolchain, err := findToolchain(ctx)
	if err != nil {
		return nil, err
	}
	var published *prebuilt
	if options.Prebuilt != nil {
		if published, err = openPrebuilt(source, *options.Prebuilt); err != nil {
			return nil, err
		}
	}
	if options.CacheDir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find a folder for the cache: %w", err)
		}
		options.CacheDir = filepath.Join(base, "burano", "image")
	}
	modules, err := modulesWith(source, options.Kubernetes)
	if err != nil {
		return nil, err
	}
	modules = append(modules, more...)
	// One step for each module, one each for container images, packages and the image itself, and for a disk the packages of a machine.
	steps := len(modules) + 3
	if options.Format != Tar {
		steps++
	}
	progress := newProgress(options.Progress, steps)
	cache, err := openCache(ctx, options.CacheDir, progress)
	if err != nil {
		return nil, err
	}
	return &builder{
		source: source, out: options.Out, format: options.Format, cache: cache, progress: progress, toolchain: toolchain, prebuilt: published, modules: modules,
		elements: elements, machine: machine,
	}, nil
}

// build makes the Debian system beside the programs: the one waits for the network, the others for the processor. The
// programs are built one after the other, since linking one of them takes gigabytes.
func (b *builder) build(ctx context.Context) (Manifest, error) {
	group, groupCtx := errgroup.WithContext(ctx)
	var system piece
	group.Go(func() (err error) {
		if system, err = b.debian(groupCtx); err == nil && b.format != Tar {
			system, err = b.machinePackages(groupCtx, system)
		}
		return err
	})
	var programs []piece
	var containers piece
	group.Go(func() error {
		for _, module := range b.modules {
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
	manifest, err := b.finish(ctx, system, programs, containers)
	if err != nil {
		return Manifest{}, err
	}
	b.cache.sweep()
	return manifest, nil
}

// finish puts the pieces together in the wanted form.
func (b *builder) finish(ctx context.Context, system piece, programs []piece, containers piece) (Manifest, error) {
	if b.format != Tar {
		disk, err := b.disk(ctx, system, programs, containers)
		if err != nil {
			return Manifest{}, err
		}
		return b.deliverDisk(ctx, disk)
	}
	image, err := b.image(ctx, system, programs, containers)
	if err != nil {
		return Manifest{}, err
	}
	return b.deliver(image)
}
