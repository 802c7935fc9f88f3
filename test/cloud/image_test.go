package cloud

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	driver "github.com/burano/burano/orchestrator/openstack"
)

// containerImagesAreFound finds images of containers, which Glance stores unchanged, by their name.
func containerImagesAreFound(t *testing.T, c *cloud) {
	const called = driver.ContainerHost + "/burano-test:1"
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	find := func() (driver.ContainerImage, bool) {
		t.Helper()
		image, found, err := project.ContainerImage(t.Context(), called)
		require.NoError(t, err)
		return image, found
	}
	push := func(who user, format string, visibility images.ImageVisibility, content string) string {
		t.Helper()
		client := who.client(t, openstack.NewImageV2)
		made, err := images.Create(t.Context(), client, images.CreateOpts{Name: called, DiskFormat: "raw", ContainerFormat: format, Visibility: &visibility}).Extract()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, images.Delete(context.Background(), client, made.ID).ExtractErr()) })
		if content != "" {
			require.NoError(t, imagedata.Upload(t.Context(), client, made.ID, bytes.NewReader([]byte(content))).ExtractErr())
		}
		return made.ID
	}
	_, found := find()
	require.False(t, found)
	push(demo, driver.ContainerFormat, images.ImageVisibilityPrivate, "")
	push(demo, "bare", images.ImageVisibilityPrivate, "")
	push(c.as(t, "other"), driver.ContainerFormat, images.ImageVisibilityPrivate, "of others")
	_, found = find()
	require.False(t, found, "one has no data, one is no container image, and one is others'")

	public := push(c.as(t, "admin"), driver.ContainerFormat, images.ImageVisibilityPublic, "everybody's")
	image, found := find()
	require.True(t, found)
	require.Equal(t, public, image.ID)
	first := push(demo, driver.ContainerFormat, images.ImageVisibilityPrivate, "our own")
	own, _ := find()
	require.Equal(t, first, own.ID, "its own comes before others'")
	require.NotEqual(t, image.Digest, own.Digest)

	download := func(most int64) (string, error) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "image")
		file, err := os.Create(path)
		require.NoError(t, err)
		defer file.Close()
		failed := project.DownloadImage(t.Context(), own.ID, file, most, func(context.Context, int64) error { return nil })
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(content), failed
	}
	content, err := download(100)
	require.NoError(t, err)
	require.Equal(t, "our own", content)
	_, err = download(3)
	require.Equal(t, fault.Invalid, fault.KindOf(err), "%v", err)

	hidden := images.UpdateOpts{images.ReplaceImageHidden{NewHidden: true}}
	require.NoError(t, images.Update(t.Context(), demo.client(t, openstack.NewImageV2), first, hidden).Err)
	image, _ = find()
	require.Equal(t, public, image.ID, "a hidden one is not found")
	content, err = download(100)
	require.NoError(t, err)
	require.Equal(t, "our own", content, "and still there for who knows it")
}
