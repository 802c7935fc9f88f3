// Package conformance makes the container images of Kubernetes' conformance tests, under the names that the tests ask for, from upstream's
// modules and Debian's packages as build.sh has built them.
package conformance

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Registry is the registry from which the tests pull their images.
const Registry = "registry.k8s.io"

// Image is a container image and its name there, such as pause:3.10.2.
type Image struct {
	Name    string
	Content v1.Image
}

// recipe lists the content of an image.
type recipe struct {
	names      []string // one for each tag
	root       string   // the file system below, as build.sh names it
	files      []file
	user       string
	entrypoint []string
	command    []string
}

// file is of an image.
type file struct {
	path string      // in the image, without the first slash; a folder ends with one
	from string      // in build.sh's folder
	link string      // where it is a symbolic link
	text string      // where it is neither
	mode os.FileMode // default 0644
}

const (
	debian  = "debian.tar"
	busybox = "busybox.tar"
)

// nginxSettings are the settings of upstream's image, in short.
const nginxSettings = `worker_processes 1;
error_log /dev/stderr notice;
pid /run/nginx.pid;
events {}
http {
  include mime.types;
  access_log /dev/stdout;
  server {
    listen 80;
    root /usr/share/nginx/html;
  }
}
`

func recipes() []recipe {
	agnhost := []file{
		{path: "agnhost", from: "agnhost", mode: 0o755},
		{path: "agnhost-2", link: "agnhost"},
		{path: "localhost.crt", from: "files/agnhost/localhost.crt"},
		{path: "localhost.key", from: "files/agnhost/localhost.key"},
		{path: "uploads/", mode: 0o755},
		// A test of volumes made of images looks for this name in the file.
		{path: "etc/os-release", text: "NAME=\"Debian GNU/Linux\"\nVARIANT=\"in the place of Alpine Linux\"\n"},
	}
	pet := func(name string) recipe {
		return recipe{names: []string{"e2e-test-images/" + name + ":1.8"}, root: debian, entrypoint: []string{"/agnhost"}, command: []string{"test-webserver"},
			files: append(slices.Clone(agnhost), file{path: name + ".jpg", from: "files/" + name + "/" + name + ".jpg"}, file{path: "data.json", from: "files/" + name + "/data.json"})}
	}
	return []recipe{
		{names: []string{"e2e-test-images/agnhost:2.63.0", "e2e-test-images/agnhost:2.55"}, root: debian, files: agnhost, entrypoint: []string{"/agnhost"}, command: []string{"pause"}},
		pet("kitten"),
		pet("nautilus"),
		{names: []string{"e2e-test-images/busybox:1.37.0-1"}, root: busybox, command: []string{"sh"}},
		{names: []string{"e2e-test-images/glibc-dns-testing:2.0.0"}, root: debian, command: []string{"bash"}},
		{names: []string{"e2e-test-images/nginx:1.15-4", "e2e-test-images/nginx:1.27-0"}, root: debian, command: []string{"nginx", "-g", "daemon off;"},
			files: []file{{path: "etc/nginx/nginx.conf", text: nginxSettings}, {path: "usr/share/nginx/html/index.html", text: "<h1>Welcome to nginx!</h1>\n"}}},
		{names: []string{"e2e-test-images/nonewprivs:1.4"}, root: busybox, command: []string{"nnp"},
			files: []file{{path: "usr/local/bin/nnp", from: "nnp", mode: 0o755 | os.ModeSetuid}}},
		{names: []string{"e2e-test-images/nonroot:1.5"}, root: debian, user: "1234", command: []string{"sh"}},
		{names: []string{"e2e-test-images/sample-apiserver:1.29.2"}, root: busybox, entrypoint: []string{"/sample-apiserver"},
			files: []file{{path: "sample-apiserver", from: "sample-apiserver", mode: 0o755}}},
		{names: []string{"etcd:3.6.8-0"}, root: busybox, command: []string{"etcd"}, files: []file{{path: "usr/local/bin/etcd", from: "etcd", mode: 0o755}}},
		{names: []string{"pause:3.10.2"}, user: "65535:65535", entrypoint: []string{"/pause"}, files: []file{{path: "pause", from: "pause", mode: 0o755}}},
	}
}

// Images makes all images of the files that build.sh has left in a folder.
func Images(folder string) ([]Image, error) {
	roots := map[string]v1.Layer{}
	for _, name := range []string{debian, busybox} {
		layer, err := tarball.LayerFromFile(filepath.Join(folder, name), tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
		if err != nil {
			return nil, fmt.Errorf("read the root %s: %w", name, err)
		}
		roots[name] = layer
	}
	var images []Image
	for _, r := range recipes() {
		var layers []v1.Layer
		if r.root != "" {
			layers = append(layers, roots[r.root])
		}
		if len(r.files) > 0 {
			layer, err := layerOf(folder, r.files)
			if err != nil {
				return nil, fmt.Errorf("make the image %s: %w", r.names[0], err)
			}
			layers = append(layers, layer)
		}
		for _, name := range r.names {
			image, err := r.image(name, layers)
			if err != nil {
				return nil, fmt.Errorf("make the image %s: %w", name, err)
			}
			images = append(images, Image{Name: name, Content: image})
		}
	}
	return images, nil
}

// image is one tag. Its label makes it differ from other images of the same content, which nodes would take for the
// same image.
func (r recipe) image(name string, layers []v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", runtime.GOARCH, v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{User: r.user, Entrypoint: r.entrypoint, Cmd: r.command, Labels: map[string]string{"name": name},
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}}
	return mutate.ConfigFile(image, config)
}

// layerOf is a layer of files, the same bytes for the same files. The layer omits the folders above them: unpacking
// makes them.
func layerOf(folder string, files []file) (v1.Layer, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for _, f := range files {
		data := []byte(f.text)
		if f.from != "" {
			var err error
			if data, err = os.ReadFile(filepath.Join(folder, f.from)); err != nil {
				return nil, err
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Size: int64(len(data)), ModTime: time.Unix(0, 0)}
		header.Mode = int64(cmp.Or(f.mode.Perm(), 0o644))
		if f.mode&os.ModeSetuid != 0 {
			header.Mode |= 0o4000
		}
		switch {
		case f.link != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
		case strings.HasSuffix(f.path, "/"):
			header.Typeflag = tar.TypeDir
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(data); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
}
