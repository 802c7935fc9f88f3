package images

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ServerImage is the container image of the server: the program, the authorities of certificates, and a folder for its data.
type ServerImage struct {
	Program      string // path
	Certificates string // path of the authorities, in PEM
	Version      string
	Architecture string
}

// stateFolder is the folder of the server's data in the image.
const stateFolder = "/var/lib/burano"

// serverUser is a user that nothing else has: the server needs no right.
const serverUser = 65532

// Write writes an OCI image layout into a folder: the same bytes for the same program and authorities.
func (s ServerImage) Write(folder string) error {
	certificates, err := os.ReadFile(s.Certificates)
	if err != nil {
		return err
	}
	program, err := os.ReadFile(s.Program)
	if err != nil {
		return err
	}
	system, err := ociLayer(
		file{name: "etc/", mode: 0o755}, file{name: "etc/burano/", mode: 0o755},
		file{name: "etc/passwd", mode: 0o644, content: []byte("burano:x:65532:65532:Burano:" + stateFolder + ":/sbin/nologin\n")},
		file{name: "etc/ssl/", mode: 0o755}, file{name: "etc/ssl/certs/", mode: 0o755}, file{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates},
		file{name: "tmp/", mode: 0o1777}, file{name: "var/", mode: 0o755}, file{name: "var/lib/", mode: 0o755}, file{name: "var/lib/burano/", mode: 0o700, owner: serverUser},
	)
	if err != nil {
		return err
	}
	server, err := ociLayer(file{name: "usr/", mode: 0o755}, file{name: "usr/bin/", mode: 0o755}, file{name: "usr/bin/burano", mode: 0o755, content: program})
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), system, server)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", s.Architecture, v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{
		// So doctor, setup and the other commands can be run in its place.
		Entrypoint: []string{"/usr/bin/burano"}, Cmd: []string{"serve"}, User: "65532:65532", WorkingDir: stateFolder,
		Env:          []string{"PATH=/usr/bin", "HOME=" + stateFolder, "OS_CLIENT_CONFIG_FILE=/etc/burano/clouds.yaml", "BURANO_STATE=" + stateFolder, "BURANO_LISTEN=0.0.0.0:8082"},
		ExposedPorts: map[string]struct{}{"8082/tcp": {}}, Volumes: map[string]struct{}{stateFolder: {}},
		Labels: map[string]string{"org.opencontainers.image.title": "burano", "org.opencontainers.image.version": s.Version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "localhost/burano:" + s.Version}),
		layout.WithPlatform(v1.Platform{OS: "linux", Architecture: s.Architecture}))
}

// file is a file of a layer; a folder when its name ends in /.
type file struct {
	name    string
	mode    int64
	owner   int
	content []byte
}

// ociLayer is a compressed layer of files.
func ociLayer(files ...file) (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, one := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: one.name, Mode: one.mode, Uid: one.owner, Gid: one.owner, ModTime: time.Unix(0, 0), Size: int64(len(one.content))}
		if one.name[len(one.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(one.content); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
}
