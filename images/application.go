package images

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"go.yaml.in/yaml/v3"
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

// recipe is container.yaml: the image's name and program.
type recipe struct {
	Name       string            `yaml:"name"`
	EntryPoint []string          `yaml:"entryPoint"`
	Commands   []string          `yaml:"commands"`
	Env        map[string]string `yaml:"env"`
	User       string            `yaml:"user"`       // "" is root
	StopSignal string            `yaml:"stopSignal"` // "" is SIGTERM
}

const recipeFile = "container.yaml"

//go:embed all:applications
var applications embed.FS

// Applications are the names of the images that come with Burano's sources, for packages of its catalog.
func Applications() []string {
	entries, err := applications.ReadDir("applications")
	if err != nil {
		panic(err) // it is part of the program
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

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
	folder, remove, err := applicationSource(options.Source)
	if err != nil {
		return ApplicationResult{}, err
	}
	defer remove()
	wanted, err := readRecipe(folder, options.Name)
	if err != nil {
		return ApplicationResult{}, err
	}
	element, err := readElement(folder)
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
	b := &builder{progress: newProgress(options.Progress, 2), toolchain: toolchain{architecture: runtime.GOARCH}}
	if b.cache, err = openCache(ctx, options.CacheDir, b.progress); err != nil {
		return ApplicationResult{}, err
	}
	defer b.cache.close()
	system, err := b.install(ctx, "debian-"+element.name, "essential", element.packages, piece{})
	if err != nil {
		return ApplicationResult{}, err
	}
	made, err := b.application(ctx, element, wanted, system)
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

// application lays an element over a Debian system, and packs that as the one layer of an image. It is compressed: it goes to every node.
func (b *builder) application(ctx context.Context, e element, wanted recipe, system piece) (piece, error) {
	key := newKey()
	key.add("application", system.key)
	if err := key.addTree(e.folder, nil); err != nil {
		return piece{}, err
	}
	key.add(wanted.Name)
	return b.cache.piece(b.progress, "application-"+e.name, key.String(), "packing "+wanted.Name, func(out string, output io.Writer) error {
		root, layer := filepath.Join(out, "root"), filepath.Join(out, "layer.tar")
		if err := os.Mkdir(root, 0o755); err != nil {
			return err
		}
		defer os.RemoveAll(root)
		unpack := exec.CommandContext(ctx, "tar", "--extract", "--numeric-owner", "--xattrs", "--xattrs-include=*", "--directory", root,
			"--file", filepath.Join(system.folder, systemFile))
		if err := runCommand(unpack, output); err != nil {
			return err
		}
		if err := e.apply(ctx, root, "", "", output); err != nil {
			return err
		}
		if err := pack(ctx, root, layer, output); err != nil {
			return err
		}
		defer os.Remove(layer)
		content, err := tarball.LayerFromFile(layer)
		if err != nil {
			return err
		}
		settings := v1.Config{Entrypoint: wanted.EntryPoint, Cmd: wanted.Commands, User: wanted.User, StopSignal: wanted.StopSignal, WorkingDir: "/",
			Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}}
		for _, name := range slices.Sorted(maps.Keys(wanted.Env)) {
			settings.Env = append(settings.Env, name+"="+wanted.Env[name])
		}
		return writeImage(filepath.Join(out, applicationFile), wanted.Name, b.toolchain.architecture, content, settings)
	})
}

// readRecipe reads a folder's container.yaml, with another name where one is given.
func readRecipe(folder, called string) (r recipe, err error) {
	path := filepath.Join(folder, recipeFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("%w: it says how the image is called (name) and what runs in it (entryPoint)", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	if called != "" {
		r.Name = called
	}
	if _, err := name.NewTag(r.Name, name.StrictValidation); err != nil {
		return r, fmt.Errorf("the image is called %q: write a host, a name and a tag, such as glance.local/web:1 (%w)", r.Name, err)
	}
	if len(r.EntryPoint) == 0 {
		return r, fmt.Errorf("%s has no entryPoint: say which program runs in the image", path)
	}
	return r, nil
}

// applicationSource is the folder of a source, which remove clears away if it was made for that.
func applicationSource(source string) (folder string, remove func(), err error) {
	if info, err := os.Stat(source); err == nil && info.IsDir() {
		folder, err = filepath.Abs(source)
		return folder, func() {}, err
	}
	if strings.Contains(source, "/") || !slices.Contains(Applications(), source) {
		return "", nil, fmt.Errorf("it is neither a folder nor one of %s", strings.Join(Applications(), ", "))
	}
	parent, err := os.MkdirTemp("", "burano-application-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(parent) }
	if err := unfold(filepath.Join(parent, source), "applications/"+source); err != nil {
		remove()
		return "", nil, err
	}
	return filepath.Join(parent, source), remove, nil
}

// unfold writes an embedded folder to a disk. Files that begin as scripts become executable: embedded files have no modes.
func unfold(to, from string) error {
	return fs.WalkDir(applications, from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := applications.ReadFile(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(content, []byte("#!")) {
			mode = 0o755
		}
		return os.WriteFile(target, content, mode)
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
