package workloads

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

	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/nodes"
)

func TestAnArchiveIsDownloadedOnceForAllNodes(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "images")
	require.NoError(t, os.Mkdir(folder, 0o700))
	former := filepath.Join(folder, "former.tar")
	require.NoError(t, os.WriteFile(former, nil, 0o600))
	budget := scratch.New(t.TempDir(), 1<<30)
	images, err := NewImageFolder(folder, budget, func(archive string) (string, error) {
		manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
		if err != nil {
			return "", err
		}
		return manifest[0].RepoTags[0], nil
	})
	require.NoError(t, err)
	require.NoFileExists(t, former, "it would have no room")
	wanted := nodes.ContainerImage{Name: "glance.local/web:1", Digest: "aa", ID: "1"}
	var downloads atomic.Int32
	const size = 100 << 20
	download := func(ctx context.Context, file *os.File, admit func(context.Context, int64) error) error {
		downloads.Add(1)
		if err := admit(ctx, size); err != nil {
			return err
		}
		tag, err := name.NewTag(wanted.Name)
		if err != nil {
			return err
		}
		return tarball.Write(tag, empty.Image, file)
	}
	lost := errors.New("the connection is lost")
	_, err = images.get(t.Context(), "p", wanted, func(ctx context.Context, _ *os.File, admit func(context.Context, int64) error) error {
		return errors.Join(admit(ctx, size), lost)
	})
	require.ErrorIs(t, err, lost)
	require.True(t, budget.Fits("p", budget.Share()), "it has given its room back")

	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			path, err := images.get(t.Context(), "p", wanted, download)
			if err != nil || path != filepath.Join(folder, "aa.tar") {
				t.Errorf("got %s, %v", path, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, downloads.Load())
	_, err = images.get(t.Context(), "p", nodes.ContainerImage{Name: "glance.local/other:1", Digest: "bb", ID: "2"}, download)
	require.ErrorContains(t, err, "image 2 of Glance is called glance.local/other:1, and holds no container image of that name")
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.True(t, budget.Fits("p", budget.Share()-size))
	require.False(t, budget.Fits("p", budget.Share()))

	path := filepath.Join(folder, "aa.tar")
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(-2*spared)))
	_, err = images.get(t.Context(), "p", nodes.ContainerImage{Name: wanted.Name, Digest: "cc", ID: "3"}, func(ctx context.Context, file *os.File, admit func(context.Context, int64) error) error {
		return errors.Join(admit(ctx, budget.Share()), lost)
	})
	require.ErrorIs(t, err, lost)
	require.NoFileExists(t, path, "what is not needed makes room")
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
