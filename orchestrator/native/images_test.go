package native

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes"
)

func TestAnArchiveIsDownloadedOnceForAllNodes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "images")
	images, err := NewImageFolder(folder, func(archive string) (string, error) {
		manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
		if err != nil {
			return "", err
		}
		return manifest[0].RepoTags[0], nil
	})
	require.NoError(t, err)
	old := filepath.Join(folder, "old.tar")
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*keepImages)))
	wanted := nodes.ContainerImage{Name: "glance.local/web:1", Digest: "aa", ID: "1"}
	var downloads atomic.Int32
	download := func(_ context.Context, file *os.File) error {
		downloads.Add(1)
		tag, err := name.NewTag(wanted.Name)
		if err != nil {
			return err
		}
		return tarball.Write(tag, empty.Image, file)
	}
	lost := errors.New("the connection is lost")
	_, err = images.get(t.Context(), wanted, func(context.Context, *os.File) error { return lost })
	require.ErrorIs(t, err, lost)
	require.NoFileExists(t, old, "nobody has needed it for long")

	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			path, err := images.get(t.Context(), wanted, download)
			if err != nil || path != filepath.Join(folder, "aa.tar") {
				t.Errorf("got %s, %v", path, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, downloads.Load())
	_, err = images.get(t.Context(), nodes.ContainerImage{Name: "glance.local/other:1", Digest: "bb", ID: "2"}, download)
	require.ErrorContains(t, err, "image 2 of Glance is called glance.local/other:1, and holds no container image of that name")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestImagesOfGlanceAreToldByTheirNames(t *testing.T) {
	containers := []container{
		{image: "glance.local/web:1", options: containerOptions{before: []container{{image: "glance.local/migrate:1"}, {image: "docker.io/busybox"}}}},
		{image: "registry.local/demo:1"}, {image: "glance.local.example.org/web:1"}, {image: "glance.local/web:1"},
	}
	require.Equal(t, []string{"glance.local/migrate:1", "glance.local/web:1"}, imagesOf(containers))
	require.ErrorContains(t, noImage("glance.local/nginx:2", []string{"httpd", "nginx"}), "build it (burano image build-from nginx) and push it")
	require.ErrorContains(t, noImage("glance.local/web:1", []string{"nginx"}), "build it (burano image build-from DIR --name glance.local/web:1) and push it")
}

func TestImagesOfTheFormBeforeStayForARollback(t *testing.T) {
	one, two, three := nodes.ContainerImage{Name: "one"}, nodes.ContainerImage{Name: "two"}, nodes.ContainerImage{Name: "three"}
	former := func(image nodes.ContainerImage) nodes.ContainerImage {
		image.Former = true
		return image
	}
	anew := nodes.ContainerImage{Name: "one", Digest: "another"}
	for name, c := range map[string]struct{ wanted, known, all []nodes.ContainerImage }{
		"the first":                   {[]nodes.ContainerImage{one}, nil, []nodes.ContainerImage{one}},
		"another":                     {[]nodes.ContainerImage{two}, []nodes.ContainerImage{one}, []nodes.ContainerImage{two, former(one)}},
		"the same again":              {[]nodes.ContainerImage{two}, []nodes.ContainerImage{two, former(one)}, []nodes.ContainerImage{two, former(one)}},
		"a third":                     {[]nodes.ContainerImage{three}, []nodes.ContainerImage{two, former(one)}, []nodes.ContainerImage{three, former(two)}},
		"back":                        {[]nodes.ContainerImage{one}, []nodes.ContainerImage{two, former(one)}, []nodes.ContainerImage{one, former(two)}},
		"the name with other content": {[]nodes.ContainerImage{anew}, []nodes.ContainerImage{one}, []nodes.ContainerImage{anew}},
		"one of a registry":           {nil, []nodes.ContainerImage{one}, []nodes.ContainerImage{former(one)}},
	} {
		require.Equal(t, c.all, withFormer(c.wanted, c.known), name)
	}
}
