package glance_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/glance"
)

// shelf is an image store that reads tars as the hypervisor does, to their end mark and no further.
type shelf map[string][]string

func (s shelf) HasImage(id string) bool { _, ok := s[id]; return ok }

func (s shelf) DeleteImage(_ context.Context, id string) error { delete(s, id); return nil }

func (s shelf) ImportImage(_ context.Context, id string, r io.Reader) error {
	var names []string
	for t := tar.NewReader(r); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			s[id] = names
			return nil
		}
		if err != nil {
			return err
		}
		names = append(names, header.Name)
	}
}

type cloud struct {
	t     *testing.T
	dir   string
	shelf shelf
	url   string
	*glance.Service
}

func start(t *testing.T) *cloud {
	c := &cloud{t: t, dir: t.TempDir(), shelf: shelf{}}
	server := httptest.NewServer(http.StripPrefix("/image", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The token's text names the caller.
		project := r.Header.Get("X-Auth-Token")
		caller := identity.Caller{ProjectID: project, Admin: project == "admin"}
		c.Handler().ServeHTTP(w, r.WithContext(identity.With(r.Context(), caller)))
	})))
	t.Cleanup(server.Close)
	c.url = server.URL
	c.restart()
	return c
}

func (c *cloud) restart() {
	service, err := glance.New(glance.Config{StateDir: c.dir, Endpoint: c.url, Images: c.shelf})
	require.NoError(c.t, err)
	c.Service = service
}

func (c *cloud) as(project string) *gophercloud.ServiceClient {
	return &gophercloud.ServiceClient{
		ProviderClient: &gophercloud.ProviderClient{TokenID: project}, Endpoint: c.url + "/image/", ResourceBase: c.url + "/image/v2/",
		Type: "image",
	}
}

func (c *cloud) list(project string, options images.ListOpts) []string {
	pages, err := images.List(c.as(project), options).AllPages(c.t.Context())
	require.NoError(c.t, err)
	found, err := images.ExtractImages(pages)
	require.NoError(c.t, err)
	names := []string{}
	for _, i := range found {
		names = append(names, i.Name)
	}
	return names
}

func (c *cloud) create(project string, options images.CreateOpts) *images.Image {
	options.DiskFormat, options.ContainerFormat = "raw", "bare"
	made, err := images.Create(c.t.Context(), c.as(project), options).Extract()
	require.NoError(c.t, err)
	return made
}

func rootfs(t *testing.T, names ...string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range names {
		require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(name))}))
		_, err := io.WriteString(w, name)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	b.Write(make([]byte, 8192)) // padding behind the end mark, as tar programs write it
	return b.Bytes()
}

func requireStatus(t *testing.T, err error, status int) {
	t.Helper()
	require.Error(t, err)
	require.True(t, gophercloud.ResponseCodeIs(err, status), "want status %d, got: %v", status, err)
}

func TestAnUploadMakesAnImageActive(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	made := c.create("demo", images.CreateOpts{
		Name: "node", Tags: []string{"kubernetes"}, Properties: map[string]string{"murano_image_info": `{"title":"n","type":"linux.kubernetes"}`},
	})
	require.Equal(t, images.ImageStatusQueued, made.Status)
	require.Zero(t, made.SizeBytes)

	data := rootfs(t, "etc/hostname", "usr/bin/sh")
	require.NoError(t, imagedata.Upload(t.Context(), demo, made.ID, bytes.NewReader(data)).ExtractErr())
	got, err := images.Get(t.Context(), demo, made.ID).Extract()
	require.NoError(t, err)
	require.Equal(t, images.ImageStatusActive, got.Status)
	require.EqualValues(t, len(data), got.SizeBytes)
	short, long := md5.Sum(data), sha512.Sum512(data)
	require.Equal(t, hex.EncodeToString(short[:]), got.Checksum)
	require.Equal(t, "sha512", got.Properties["os_hash_algo"])
	require.Equal(t, hex.EncodeToString(long[:]), got.Properties["os_hash_value"])
	require.Equal(t, `{"title":"n","type":"linux.kubernetes"}`, got.Properties["murano_image_info"])
	require.Equal(t, []string{"etc/hostname", "usr/bin/sh"}, c.shelf[made.ID])

	body, err := imagedata.Download(t.Context(), demo, made.ID).Extract()
	require.NoError(t, err)
	defer body.Close()
	again, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Equal(t, data, again)

	requireStatus(t, imagedata.Upload(t.Context(), demo, made.ID, bytes.NewReader(data)).Err, http.StatusConflict)

	c.restart()
	found, err := c.Find(t.Context(), "demo", "node")
	require.NoError(t, err)
	require.Equal(t, made.ID, found.ID)
	_, err = c.Find(t.Context(), "other", "node")
	require.Equal(t, fault.NotFound, fault.KindOf(err))

	require.NoError(t, images.Delete(t.Context(), demo, made.ID).ExtractErr())
	requireStatus(t, images.Get(t.Context(), demo, made.ID).Err, http.StatusNotFound)
	require.Empty(t, c.shelf)
	require.NoFileExists(t, filepath.Join(c.dir, "data", made.ID))
}

func TestABrokenUploadLeavesNoActiveImage(t *testing.T) {
	c := start(t)
	data := rootfs(t, "etc/hostname")
	for name, body := range map[string]io.Reader{
		"no tar":                 strings.NewReader(strings.Repeat("no tar at all ", 100)),
		"ends in the middle":     io.MultiReader(bytes.NewReader(data[:600]), broken{}),
		"ends after the archive": io.MultiReader(bytes.NewReader(data), broken{}),
	} {
		t.Run(name, func(t *testing.T) {
			made := c.create("demo", images.CreateOpts{Name: "node"})
			require.Error(t, imagedata.Upload(t.Context(), c.as("demo"), made.ID, body).ExtractErr())
			require.Eventually(t, func() bool {
				got, err := images.Get(t.Context(), c.as("demo"), made.ID).Extract()
				_, there := os.Stat(filepath.Join(c.dir, "data", made.ID))
				return err == nil && got.Status == images.ImageStatusQueued && got.SizeBytes == 0 && got.Checksum == "" && os.IsNotExist(there)
			}, waitFor, tick)
			require.Empty(t, c.shelf)
			// Glance may have been about to begin a request that the client has cancelled.
			require.Eventually(t, func() bool {
				return imagedata.Upload(t.Context(), c.as("demo"), made.ID, bytes.NewReader(data)).ExtractErr() == nil
			}, waitFor, tick)
			clear(c.shelf)
		})
	}
}

func TestAnUploadThatTheProcessDidNotSurviveIsUndone(t *testing.T) {
	c := start(t)
	made := c.create("demo", images.CreateOpts{Name: "node"})
	table := filepath.Join(c.dir, "images.jsonl")
	rows, err := os.ReadFile(table)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(table, bytes.Replace(rows, []byte(`"queued"`), []byte(`"saving"`), 1), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(c.dir, "data", made.ID), []byte("half"), 0o600))
	c.restart()
	got, err := c.Get(t.Context(), made.ID)
	require.NoError(t, err)
	require.Equal(t, glance.StatusQueued, got.Status)
	require.NoFileExists(t, filepath.Join(c.dir, "data", made.ID))
}

func TestTheHypervisorGetsAnImageAgainThatItLost(t *testing.T) {
	c := start(t)
	made := c.create("demo", images.CreateOpts{Name: "node"})
	require.NoError(t, imagedata.Upload(t.Context(), c.as("demo"), made.ID, bytes.NewReader(rootfs(t, "etc/hostname"))).ExtractErr())
	delete(c.shelf, made.ID)
	require.NoError(t, c.Restore(t.Context()))
	require.Equal(t, []string{"etc/hostname"}, c.shelf[made.ID])
}

func TestOnlyTheOwnerChangesAnImageAndOnlyAdminsPublish(t *testing.T) {
	c := start(t)
	public, private := images.ImageVisibilityPublic, images.ImageVisibilityPrivate
	requireStatus(t, images.Create(t.Context(), c.as("demo"), images.CreateOpts{Name: "x", Visibility: &public}).Err, http.StatusForbidden)
	shared := c.create("admin", images.CreateOpts{Name: "everyone's", Visibility: &public})
	own := c.create("demo", images.CreateOpts{Name: "demo's", Visibility: &private})
	require.Equal(t, []string{"everyone's"}, c.list("other", images.ListOpts{}))
	require.ElementsMatch(t, []string{"everyone's", "demo's"}, c.list("demo", images.ListOpts{}))
	requireStatus(t, images.Get(t.Context(), c.as("other"), own.ID).Err, http.StatusNotFound)
	requireStatus(t, images.Delete(t.Context(), c.as("other"), own.ID).Err, http.StatusNotFound)
	requireStatus(t, images.Delete(t.Context(), c.as("demo"), shared.ID).Err, http.StatusForbidden)
	requireStatus(t, imagedata.Upload(t.Context(), c.as("demo"), shared.ID, strings.NewReader("x")).Err, http.StatusForbidden)
	requireStatus(t, images.Update(t.Context(), c.as("demo"), own.ID,
		images.UpdateOpts{images.UpdateVisibility{Visibility: public}}).Err, http.StatusForbidden)
}

func TestAListIsFilteredSortedAndPaged(t *testing.T) {
	c := start(t)
	for _, name := range []string{"a", "b", "c"} {
		c.create("demo", images.CreateOpts{Name: name, Tags: []string{"all", name}, Properties: map[string]string{"kind": name}})
	}
	require.Equal(t, []string{"b"}, c.list("demo", images.ListOpts{Name: "b"}))
	require.ElementsMatch(t, []string{"a", "c"}, c.list("demo", images.ListOpts{Name: "in:a,c"}))
	require.Equal(t, []string{"c"}, c.list("demo", images.ListOpts{Tags: []string{"all", "c"}}))
	require.Empty(t, c.list("demo", images.ListOpts{Status: images.ImageStatusActive}))
	require.Empty(t, c.list("demo", images.ListOpts{Visibility: images.ImageVisibilityPublic}))
	require.Equal(t, []string{"a", "b", "c"}, c.list("demo", images.ListOpts{Sort: "name:asc", Limit: 1}))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/image/v2/images?kind=a", nil)
	require.NoError(t, err)
	request.Header.Set("X-Auth-Token", "demo")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), `"name"`))
	require.Contains(t, string(text), `"kind":"a"`)
}

func TestAPatchIsDoneWholeOrNotAtAll(t *testing.T) {
	c := start(t)
	made := c.create("demo", images.CreateOpts{Name: "old", Properties: map[string]string{"keep": "1", "drop": "2"}})
	update := func(steps ...images.Patch) (*images.Image, error) {
		return images.Update(t.Context(), c.as("demo"), made.ID, images.UpdateOpts(steps)).Extract()
	}
	got, err := update(
		images.ReplaceImageName{NewName: "new"},
		images.ReplaceImageTags{NewTags: []string{"t"}},
		images.UpdateImageProperty{Op: images.AddOp, Name: "murano_image_info", Value: `{"title":"x"}`},
		images.UpdateImageProperty{Op: images.RemoveOp, Name: "drop"},
	)
	require.NoError(t, err)
	require.Equal(t, "new", got.Name)
	require.Equal(t, []string{"t"}, got.Tags)
	require.Equal(t, "1", got.Properties["keep"])
	require.Equal(t, `{"title":"x"}`, got.Properties["murano_image_info"])
	require.NotContains(t, got.Properties, "drop")

	_, err = update(images.ReplaceImageName{NewName: "lost"}, images.UpdateImageProperty{Op: images.ReplaceOp, Name: "absent", Value: "1"})
	requireStatus(t, err, http.StatusConflict)
	_, err = update(images.ReplaceImageName{NewName: "lost"}, images.UpdateImageProperty{Op: images.ReplaceOp, Name: "status", Value: "active"})
	requireStatus(t, err, http.StatusForbidden)
	require.ErrorContains(t, err, "Attribute &#39;status&#39; is read-only.")
	kept, err := images.Get(t.Context(), c.as("demo"), made.ID).Extract()
	require.NoError(t, err)
	require.Equal(t, "new", kept.Name)

	_, err = update(images.ReplaceImageProtected{NewProtected: true})
	require.NoError(t, err)
	requireStatus(t, images.Delete(t.Context(), c.as("demo"), made.ID).Err, http.StatusForbidden)
}

const (
	waitFor = 10 * time.Second
	tick    = 10 * time.Millisecond
)

// broken is a body whose sender goes away.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the sender went away") }

func TestAnImageOfContainersIsKeptAndNotBooted(t *testing.T) {
	c := start(t)
	data := []byte("an archive of layers")
	made, err := images.Create(t.Context(), c.as("demo"), images.CreateOpts{Name: "glance.local/web:1", DiskFormat: "raw", ContainerFormat: "docker"}).Extract()
	require.NoError(t, err)
	require.NoError(t, imagedata.Upload(t.Context(), c.as("demo"), made.ID, bytes.NewReader(data)).ExtractErr())
	require.Empty(t, c.shelf, "no server is made of it")
	require.NoError(t, c.Restore(t.Context()))
	require.Empty(t, c.shelf)
	back, err := imagedata.Download(t.Context(), c.as("demo"), made.ID).Extract()
	require.NoError(t, err)
	defer back.Close()
	came, err := io.ReadAll(back)
	require.NoError(t, err)
	require.Equal(t, data, came)
	require.Equal(t, []string{"glance.local/web:1"}, c.list("demo", images.ListOpts{Name: "glance.local/web:1", ContainerFormat: "docker"}))
	require.Empty(t, c.list("demo", images.ListOpts{Name: "glance.local/web:1", ContainerFormat: "bare"}))
}
