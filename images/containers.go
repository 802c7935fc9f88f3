package images

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Container is a container image that holds one program and nothing else.
type Container struct {
	Program   string // the name of its file
	Reference string
	User      string // uid:gid
}

// nobody is the user of images that need no privilege.
const nobody = "65535:65535"

// containers lists the images. CoreDNS listens on port 53 and is therefore root, which a pod can cut down to the capability
// NET_BIND_SERVICE. The registry is root because its volume is root's, and needs no capability.
func containers() []Container {
	return []Container{
		{Program: "pause", Reference: "registry.local/pause:1", User: nobody},
		{Program: "coredns", Reference: "registry.local/coredns:1.15.0", User: "0:0"},
		{Program: "demo", Reference: "registry.local/demo:1", User: nobody},
		{Program: "registry", Reference: "registry.local/registry:3", User: "0:0"},
	}
}

// containers makes the archives <program>.tar.
func (b *builder) containers(ctx context.Context, programs []piece) (piece, error) {
	key := newKey()
	key.add("containers", b.toolchain.architecture)
	for _, container := range containers() {
		key.add(container.Program, container.Reference, container.User)
	}
	for _, program := range programs {
		key.add(program.key)
	}
	return b.cache.piece(b.progress, "containers", key.String(), "packing container images", func(out string, _ io.Writer) error {
		for _, container := range containers() {
			if err := ctx.Err(); err != nil {
				return err
			}
			path, err := findProgram(programs, container.Program)
			if err != nil {
				return err
			}
			if err := container.Write(filepath.Join(out, container.Program+".tar"), path, b.toolchain.architecture); err != nil {
				return fmt.Errorf("pack %s: %w", container.Reference, err)
			}
		}
		return nil
	})
}

func findProgram(programs []piece, name string) (string, error) {
	for _, piece := range programs {
		path := filepath.Join(piece.folder, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no module has built the program %s", name)
}

// Write writes a docker archive of the image, the same bytes for the same program, whose file is binary. The architecture is as Go names it. The
// layer is not compressed: nodes would only spend time on unpacking it.
func (c Container) Write(path, binary, architecture string) error {
	layer, err := programLayer(c.Program, binary)
	if err != nil {
		return err
	}
	return writeImage(path, c.Reference, architecture, v1.Config{Entrypoint: []string{"/" + c.Program}, User: c.User, WorkingDir: "/"},
		static.NewLayer(layer, types.DockerUncompressedLayer))
}

// writeImage writes a docker archive of an image with layers, the lowest first.
func writeImage(path, reference, architecture string, settings v1.Config, layers ...v1.Layer) error {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = settings
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(path, tag, image)
}

// programLayer holds the program and a place for temporary files.
func programLayer(name, binary string) ([]byte, error) {
	content, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	writer := tar.NewWriter(&layer)
	epoch := time.Unix(0, 0)
	headers := []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777, ModTime: epoch},
		{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, ModTime: epoch, Size: int64(len(content))},
	}
	for _, header := range headers {
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return layer.Bytes(), nil
}
