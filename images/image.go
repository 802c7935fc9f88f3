package images

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Manifest describes an image. It is written beside it as JSON.
type Manifest struct {
	// SHA256 is of the image file, in hexadecimal digits; Size is in bytes.
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	// Format is the format of a disk, and DiskSize its size for a machine, in bytes; a tar has neither.
	Format   Format `json:"format,omitempty"`
	DiskSize int64  `json:"diskSize,omitempty"`
	// Key is the hash of the image's inputs.
	Key          string `json:"key"`
	Debian       string `json:"debian"`
	Architecture string `json:"architecture"`
	Go           string `json:"go"`
	// Modules has the versions of the programs' sources, by name: kubernetes, etcd, …
	Modules map[string]string `json:"modules"`
	// Prebuilt lists the programs that were fetched from their projects.
	Prebuilt []string `json:"prebuilt,omitempty"`
	// Packages has the versions of all Debian packages.
	Packages map[string]string `json:"packages"`
	// Containers are the references of the container images inside.
	Containers []string `json:"containers"`
}

const (
	imageFile    = "node-image.tar"
	manifestFile = "manifest.json"
)

// image lays programs, container images and elements over the Debian system.
func (b *builder) image(ctx context.Context, system piece, programs []piece, containers piece) (piece, error) {
	key := newKey()
	key.add("image", system.key, containers.key)
	for _, program := range programs {
		key.add(program.key)
	}
	if err := b.addElements(key, "elements"); err != nil {
		return piece{}, err
	}
	id := key.String()
	doing := fmt.Sprintf("applying %d elements and packing the image", len(b.elements))
	return b.cache.piece(b.progress, "image", id, doing, func(out string, output io.Writer) error {
		root := filepath.Join(out, "root")
		if err := b.fill(ctx, root, b.elements, system, programs, containers, output); err != nil {
			return errors.Join(err, os.RemoveAll(root))
		}
		if err := pack(ctx, root, filepath.Join(out, imageFile), output); err != nil {
			return errors.Join(err, os.RemoveAll(root))
		}
		manifest, err := b.describe(ctx, id, system, filepath.Join(out, imageFile))
		if err != nil {
			return errors.Join(err, os.RemoveAll(root))
		}
		return errors.Join(writeJSON(filepath.Join(out, manifestFile), manifest), os.RemoveAll(root))
	})
}

// addElements adds the elements of these folders to a key, and the optional ones that the image has.
func (b *builder) addElements(key key, folders ...string) error {
	for _, element := range b.elements {
		if filepath.Base(filepath.Dir(element.folder)) == optionalFolder {
			folders = append(folders, filepath.Join(optionalFolder, element.name))
		}
	}
	for _, folder := range folders {
		if err := key.addTree(filepath.Join(b.source, folder), nil); err != nil {
			return fmt.Errorf("read the elements: %w", err)
		}
	}
	return nil
}

// fill makes the root file system: the Debian system and over it the elements, in their order.
func (b *builder) fill(ctx context.Context, root string, elements []element, system piece, programs []piece, containers piece, output io.Writer) error {
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	unpack := exec.CommandContext(ctx, "tar", "--extract", "--numeric-owner", "--xattrs", "--xattrs-include=*", "--directory", root,
		"--file", filepath.Join(system.folder, systemFile))
	if err := runCommand(unpack, output); err != nil {
		return err
	}
	// The scripts see one folder with all programs.
	bin := root + "-programs"
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(bin)
	for _, piece := range programs {
		built, err := os.ReadDir(piece.folder)
		if err != nil {
			return err
		}
		for _, program := range built {
			if err := os.Symlink(filepath.Join(piece.folder, program.Name()), filepath.Join(bin, program.Name())); err != nil {
				return err
			}
		}
	}
	for _, element := range elements {
		if err := element.apply(ctx, root, bin, containers.folder, output); err != nil {
			return fmt.Errorf("element %s: %w", element.name, err)
		}
	}
	return nil
}

// apply lays the files over the root file system and runs the script.
func (e element) apply(ctx context.Context, root, programs, containers string, output io.Writer) error {
	if e.files != "" {
		lay := exec.CommandContext(ctx, "cp", "--recursive", "--no-dereference", "--preserve=mode", "--no-target-directory", e.files, root)
		if err := runCommand(lay, output); err != nil {
			return err
		}
	}
	if e.install == "" {
		return nil
	}
	install := exec.CommandContext(ctx, e.install)
	install.Dir = e.folder
	install.Env = append(os.Environ(), "ROOT="+root, "PROGRAMS="+programs, "IMAGES="+containers)
	return runCommand(install, output)
}

// pack writes the archive with names in order and one time for all files, so that the same content gives the same bytes.
func pack(ctx context.Context, root, to string, output io.Writer) error {
	return packFiles(ctx, root, to, output, ".")
}

// packFiles packs some files of a root file system, but none of /dev, /run and /tmp, which an image has empty.
func packFiles(ctx context.Context, root, to string, output io.Writer, files ...string) error {
	return runCommand(exec.CommandContext(ctx, "tar", append([]string{"--create", "--format=posix", "--sort=name", "--mtime=@0", "--numeric-owner",
		"--xattrs", "--xattrs-include=*", "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime",
		"--exclude=./dev/*", "--exclude=./run/*", "--exclude=./tmp/*", "--directory", root, "--file", to}, files...)...), output)
}

func (b *builder) describe(ctx context.Context, key string, system piece, image string) (Manifest, error) {
	manifest := Manifest{
		Key: key, Debian: release, Architecture: b.toolchain.architecture, Go: b.toolchain.version,
		Modules: map[string]string{}, Packages: map[string]string{},
	}
	for _, module := range b.modules {
		version, err := moduleVersion(ctx, module.in(b.source), module.main)
		if err != nil {
			return Manifest{}, err
		}
		if version != "" {
			manifest.Modules[module.name] = version
		}
		for name, part := range module.parts {
			if manifest.Modules[name], err = moduleVersion(ctx, module.in(b.source), part); err != nil {
				return Manifest{}, err
			}
		}
		if b.prebuilt == nil {
			continue
		}
		if release, there := b.prebuilt.of(module.name, version, b.toolchain.architecture); there {
			manifest.Modules[module.name] = cmp.Or(release.Release, version)
			manifest.Prebuilt = append(manifest.Prebuilt, module.name)
		}
	}
	for _, container := range containers() {
		manifest.Containers = append(manifest.Containers, container.Reference)
	}
	packages, err := os.ReadFile(filepath.Join(system.folder, packagesFile))
	if err != nil {
		return Manifest{}, err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(packages)), "\n") {
		name, version, _ := strings.Cut(line, " ")
		manifest.Packages[name] = version
	}
	manifest.SHA256, manifest.Size, err = checksum(image)
	return manifest, err
}

func checksum(path string) (string, int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	hash := sha256.New()
	size, err := io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// ManifestOf reads the manifest beside an image file.
func ManifestOf(image string) (manifest Manifest, err error) {
	beside := image + ".json"
	if tar, isTar := strings.CutSuffix(image, ".tar"); isTar {
		beside = tar + ".json"
	}
	content, err := os.ReadFile(beside)
	if err != nil {
		return manifest, err
	}
	return manifest, json.Unmarshal(content, &manifest)
}

// deliver copies the image to the target, unless it is there.
func (b *builder) deliver(image piece) (Manifest, error) {
	content, err := os.ReadFile(filepath.Join(image.folder, manifestFile))
	if err != nil {
		return Manifest{}, fmt.Errorf("read the manifest: %w", err)
	}
	var manifest Manifest
	if err := json.Unmarshal(content, &manifest); err != nil {
		return Manifest{}, fmt.Errorf("read the manifest %s/%s (delete the folder to have it made again): %w", image.folder, manifestFile, err)
	}
	beside := strings.TrimSuffix(b.out, ".tar") + ".json"
	if there, err := os.ReadFile(beside); err == nil && bytes.Equal(there, content) {
		// The manifest is removed before an image is replaced and written after it, so the two belong together.
		if info, err := os.Stat(b.out); err == nil && info.Size() == manifest.Size {
			return manifest, nil
		}
	}
	for _, step := range []func() error{
		func() error { return os.MkdirAll(filepath.Dir(b.out), 0o755) },
		func() error { return removeFile(beside) },
		func() error { return copyFile(filepath.Join(image.folder, imageFile), b.out) },
		func() error { return os.WriteFile(beside, content, 0o644) },
	} {
		if err := step(); err != nil {
			return Manifest{}, fmt.Errorf("write the image to %s: %w", b.out, err)
		}
	}
	return manifest, nil
}

func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// copyFile replaces a file when the new one is complete. The kernel shares the blocks where the file system can.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(target.Name())
	_, err = io.Copy(target, source)
	if err := errors.Join(err, target.Chmod(0o644), target.Close()); err != nil {
		return err
	}
	return os.Rename(target.Name(), to)
}

func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}
