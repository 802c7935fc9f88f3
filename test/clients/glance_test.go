package clients

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/keystone"
)

// withGlance puts the local cloud's Glance beside its Keystone. Nothing boots its images.
func withGlance(t *testing.T, identity *keystone.Service, endpoint string) http.Handler {
	service, err := glance.New(glance.Config{StateDir: t.TempDir(), Endpoint: endpoint, Images: noHypervisor{}, Formats: []string{"raw", "qcow2"}})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/identity/", http.StripPrefix("/identity", identity.Handler()))
	mux.Handle("/image/", http.StripPrefix("/image", identity.Require(service.Handler())))
	return mux
}

// noHypervisor takes the data of images and makes no servers from it.
type noHypervisor struct{}

func (noHypervisor) HasImage(string) bool { return true }

func (noHypervisor) ImportImage(_ context.Context, _ string, data io.Reader) error {
	_, err := io.Copy(io.Discard, data)
	return err
}

func (noHypervisor) DeleteImage(context.Context, string) error { return nil }

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// image makes an image of demo's project; info is its property for forms.
func (s *server) image(name, info string) {
	s.t.Helper()
	provider, err := openstack.AuthenticatedClient(s.t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.keystone + "/identity/v3",
		Username: "demo", Password: "demo", TenantName: "demo", DomainName: "Default"})
	require.NoError(s.t, err)
	client, err := openstack.NewImageV2(provider, gophercloud.EndpointOpts{Region: keystone.Region})
	require.NoError(s.t, err)
	options := images.CreateOpts{Name: name, DiskFormat: "raw", ContainerFormat: "bare"}
	if info != "" {
		options.Properties = map[string]string{"murano_image_info": info}
	}
	require.NoError(s.t, images.Create(s.t.Context(), client, options).Err)
}

func TestTheNodeImageIsUploadedOnceAndFormerOnesAreKeptForTheirServers(t *testing.T) {
	s := startKeystone(t)
	s.build()
	demo := s.as("demo", "demo")
	burano := func(wanted bool, args ...string) string {
		t.Helper()
		out, ok := s.run(demo, s.program, append([]string{"image"}, args...)...)
		require.Equal(t, wanted, ok, out)
		return out
	}
	qcow2 := func(content string) string { return "QFI\xfb" + content + strings.Repeat("\x00", 600) }
	s.write(map[string]string{
		"one.qcow2": qcow2("one"), "two.qcow2": qcow2("two"), "disk.raw": strings.Repeat("\x00", 512) + "EFI PART" + strings.Repeat("\x00", 512),
		"note.txt": "no image",
		"node.tar": strings.Repeat("\x00", 257) + "ustar" + strings.Repeat("\x00", 512),
	})
	manifest := func(content, kubernetes string) string {
		return fmt.Sprintf(`{"sha256": "%x", "modules": {"kubernetes": %q}}`, sha256.Sum256([]byte(content)), kubernetes)
	}
	s.write(map[string]string{"one.qcow2.json": manifest(qcow2("one"), "v1.35.8"), "two.qcow2.json": manifest(qcow2("two"), "v1.36.3"),
		"disk.raw.json": manifest("another file", "v1.36.3")})
	require.Contains(t, burano(false, "check"), "Glance has no image burano-node that this project sees")
	require.Contains(t, burano(false, "upload", "note.txt"), "note.txt is no node image")

	first := uuids.FindString(burano(true, "upload", "one.qcow2"))
	require.Equal(t, "image burano-node ("+first+") is there already\n", burano(true, "upload", "one.qcow2"))
	require.Equal(t, "image burano-node ("+first+") can be a node, with Kubernetes v1.35.8\n", burano(true, "check"), "what is uploaded lacks nothing")

	said := burano(true, "upload", "two.qcow2")
	second := uuids.FindString(said)
	require.Contains(t, said, "the former image "+first+" is hidden now")
	former := burano(true, "check", first)
	require.Contains(t, former, "note: it is hidden, so forms do not offer it; openstack image set --unhidden "+first)
	require.Regexp(t, `image burano-node of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(`+first+`\) can be a node`, former, "its servers can still be rebuilt")
	require.Equal(t, "image burano-node ("+second+") can be a node, with Kubernetes v1.36.3\n", burano(true, "check", "burano-node"))

	unsaid := burano(true, "upload", "disk.raw", "--name", "raw")
	require.Contains(t, unsaid, "is uploaded")
	require.Contains(t, unsaid, "it does not say which Kubernetes it holds, because the manifest that was built with it does not lie beside disk.raw")
	require.Contains(t, burano(true, "check", "raw"), "note: it does not say which Kubernetes it holds, so clusters cannot be upgraded to it; upload it again with the manifest")
	s.write(map[string]string{"disk.raw.json": manifest(strings.Repeat("\x00", 512)+"EFI PART"+strings.Repeat("\x00", 512), "v1.36.3")})
	require.Contains(t, burano(true, "upload", "disk.raw", "--name", "raw"), "is there already")
	require.Contains(t, burano(true, "check", "raw"), "can be a node, with Kubernetes v1.36.3")
	require.Contains(t, burano(true, "upload", "node.tar", "--name", "local"), "is uploaded")
	require.Contains(t, burano(true, "check", "local"), "note: it is a tar, which only the local cloud boots; for another cloud build the disk: make image-disk")

	// An image that was not made by Burano.
	s.image("bare", "")
	bare := burano(false, "check", "bare")
	require.Contains(t, bare, "problem: its status is queued: it has no data; upload it again")
	require.Contains(t, bare, "note: it has no property murano_image_info, so forms do not offer it; openstack image set --property murano_image_info='{")
	require.Contains(t, bare, "note: it may be put on a disk of 0 GB, and a node needs 5; openstack image set --min-disk 5 ")
	require.Contains(t, bare, "cannot be a node as it is")
	require.Contains(t, burano(false, "upload", "one.qcow2", "--name", "bare"), "was not uploaded by Burano")
	s.image("bare", "")
	require.Contains(t, burano(false, "check", "bare"), "2 images are called bare, and a deployment takes none of them by this name")
}

func TestAContainerImageIsPushedOnceAndFormerOnesAreKeptForWhatRuns(t *testing.T) {
	s := startKeystone(t)
	s.build()
	push := func(user string, wanted bool, args ...string) string {
		t.Helper()
		out, ok := s.run(s.as(user, user), s.program, append([]string{"image", "push"}, args...)...)
		require.Equal(t, wanted, ok, out)
		return out
	}
	archive := func(file, called string, when time.Time) {
		image, err := mutate.CreatedAt(empty.Image, v1.Time{Time: when})
		require.NoError(t, err)
		tag, err := name.NewTag(called)
		require.NoError(t, err)
		require.NoError(t, tarball.WriteToFile(filepath.Join(s.home, file), tag, image))
	}
	archive("web.tar", "glance.local/web:1", time.Unix(1, 0))
	archive("later.tar", "glance.local/web:1", time.Unix(2, 0))
	archive("other.tar", "registry.example.org/web:1", time.Unix(1, 0))
	s.write(map[string]string{"note.txt": "no archive"})
	require.Contains(t, push("demo", false, "note.txt"), "is no archive of a container image")
	require.Contains(t, push("demo", false, "other.tar"), "only names such as glance.local/web:1 are looked for in Glance")

	said := push("demo", true, "web.tar")
	first := uuids.FindString(said)
	require.Equal(t, "container image glance.local/web:1 ("+first+") is pushed\n", said)
	require.Equal(t, "container image glance.local/web:1 ("+first+") is there already\n", push("demo", true, "web.tar"))
	said = push("demo", true, "later.tar")
	require.Contains(t, said, "is pushed")
	require.Contains(t, said, "the former image "+first+" is hidden now")
	s.image("glance.local/web:1", "")
	require.Contains(t, push("demo", false, "web.tar"), "was not pushed by Burano")
}
