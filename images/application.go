package images

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// ApplicationOptions select the container image to build from Debian's packages, and its target.
type ApplicationOptions struct {
	// Source is a folder with container.yaml and the files of an element: "packages", "files", "install". A word without a slash that is no folder is one
	// of Applications.
	Source string
	// Name is the image's, with its tag; by default the one of container.yaml.
	Name string
	// CacheDir caches the Debian systems; by default the folder "burano/applications" in the user's cache folder. Remove it to get newer packages.
	CacheDir string
	// Out is the file to write, an archive as `docker save` makes it; by default the name's last part with ".tar".
	Out string
	// Progress is written one line as each step begins and ends; nil is silence.
	Progress io.Writer
}

// ApplicationResult is the result of BuildApplication.
type ApplicationResult struct {
	Image, Name string
	Size        int64 // of the file, in bytes
	Duration    time.Duration
}

// applications has the recipes of the catalog's images, and in bases those of layers below several of them.
//
//go:embed all:applications all:bases
var applications embed.FS

// Applications are the names of the images that come with Burano's sources, for packages of its catalog.
func Applications() []string { return folders("applications") }

// BuildApplication makes a container image of Debian's packages. It needs root and Debian's mmdebstrap. An error names the step and carries the
// end of its output.
func BuildApplication(ctx context.Context, options ApplicationOptions) (ApplicationResult, error) {
	began := time.Now()
	result, err := buildApplication(ctx, options)
	if err != nil {
		return ApplicationResult{}, fmt.Errorf("build the container image of %s: %w", options.Source, err)
	}
	result.Duration = time.Since(began)
	return result, nil
}

func buildApplication(ctx context.Context, options ApplicationOptions) (ApplicationResult, error) {
	if os.Geteuid() != 0 {
		return ApplicationResult{}, errors.New("only root can make a root file system: run it as root")
	}
	recipes, remove, err := readRecipes(options.Source)
	if err != nil {
		return ApplicationResult{}, err
	}
	defer remove()
	wanted, err := inherit(recipes, options.Name)
	if err != nil {
		return ApplicationResult{}, err
	}
	if options.Out == "" {
		base, _, _ := strings.Cut(wanted.Name[strings.LastIndex(wanted.Name, "/")+1:], ":")
		options.Out = base + ".tar"
	}
	if options.CacheDir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return ApplicationResult{}, fmt.Errorf("find a folder for the cache: %w", err)
		}
		options.CacheDir = filepath.Join(base, "burano", "applications")
	}
	b := &builder{progress: newProgress(options.Progress, 2*len(recipes)+1), toolchain: toolchain{architecture: runtime.GOARCH}}
	if b.cache, err = openCache(ctx, options.CacheDir, b.progress); err != nil {
		return ApplicationResult{}, err
	}
	defer b.cache.close()
	layers, err := b.layers(ctx, recipes, wanted.Release)
	if err != nil {
		return ApplicationResult{}, err
	}
	made, err := b.application(recipes[len(recipes)-1].element.name, wanted, layers)
	if err != nil {
		return ApplicationResult{}, err
	}
	if err := copyFile(filepath.Join(made.folder, applicationFile), options.Out); err != nil {
		return ApplicationResult{}, fmt.Errorf("write the image to %s: %w", options.Out, err)
	}
	b.cache.sweep()
	info, err := os.Stat(options.Out)
	if err != nil {
		return ApplicationResult{}, err
	}
	return ApplicationResult{Image: options.Out, Name: wanted.Name, Size: info.Size()}, nil
}

const applicationFile = "image.tar"

// application packs layers as an image, the lowest first.
func (b *builder) application(called string, wanted recipe, layers []piece) (piece, error) {
	settings := v1.Config{Entrypoint: wanted.EntryPoint, Cmd: wanted.Commands, User: wanted.User, StopSignal: wanted.StopSignal, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}}
	for _, variable := range slices.Sorted(maps.Keys(wanted.Env)) {
		settings.Env = append(settings.Env, variable+"="+wanted.Env[variable])
	}
	written, err := json.Marshal(settings)
	if err != nil {
		return piece{}, err
	}
	key := newKey()
	key.add("application", b.toolchain.architecture, wanted.Name, string(written))
	for _, layer := range layers {
		key.add(layer.key)
	}
	return b.cache.piece(b.progress, "application-"+called, key.String(), "packing "+wanted.Name, func(out string, _ io.Writer) error {
		var contents []v1.Layer
		for _, layer := range layers {
			content, err := tarball.LayerFromFile(filepath.Join(layer.folder, layerFile))
			if err != nil {
				return err
			}
			contents = append(contents, content)
		}
		return writeImage(filepath.Join(out, applicationFile), wanted.Name, b.toolchain.architecture, settings, contents...)
	})
}

// NameOf reads the name of the one image of an archive as `docker save` makes it.
func NameOf(archive string) (string, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return "", fmt.Errorf("%s is no archive of a container image, as `burano image build-from` or `docker save` makes it: %w", archive, err)
	}
	if len(manifest) != 1 || len(manifest[0].RepoTags) != 1 {
		return "", fmt.Errorf("%s holds %d images: it has to hold one, with one name", archive, len(manifest))
	}
	return manifest[0].RepoTags[0], nil
}
