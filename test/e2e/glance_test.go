package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestGlanceOfTheCatalogKeepsImages deploys OpenStack's image service beside Keystone, uses it as its clients do, changes it while it is used, removes it, and deploys it with
// a claim.
func TestGlanceOfTheCatalogKeepsImages(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages of OpenStack")
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.pushApplications(t, "mariadb", "keystone", "glance")

	without, deploy := l.besideKeystone(t, "glance")
	log := deploy(without + imagesOfNode)
	l.deleteIfFailed(t, "glance")
	s, a, k := l.openStack(t, demo, "glance")
	token, _, err := k.token()
	require.NoError(t, err)
	g := imageService{address: "http://" + s.published(t, a, "glance"), token: token}
	content := make([]byte, 3<<20)
	_, err = rand.Read(content)
	require.NoError(t, err)

	t.Run("passwords stand in no description, and nothing is root", func(t *testing.T) {
		s.conceals(t, log, k.password, "mysql+pymysql", s.inPod(t, "images", "echo $OS_KEYSTONE_AUTHTOKEN__PASSWORD"))
		s.isConfined(t, "images", "/etc/glance/x")
	})

	t.Run("its package has the options of its image", func(t *testing.T) {
		s.hasOptions(t, "Glance", "images")
	})

	id := g.upload(t, content)
	t.Run("the catalog of services has its address at the gateway, which returns the image as it was", func(t *testing.T) {
		require.Contains(t, k.services(t, token), `"`+g.address+`"`)
		require.NoError(t, g.returns(id, content))
		_, err := askedService(t.Context(), http.MethodGet, g.address+"/v2/images", "none", nil)
		require.ErrorContains(t, err, "401")
	})

	t.Run("another option and another password of its user are rolling updates, without a failed request", func(t *testing.T) {
		users := func() string { return k.get(t, token, "/users?name__startswith=glance") }
		require.Contains(t, users(), `"glance_1"`)
		underRequests(t, "image_tag_quota", func() {
			task, log := s.changed(t, a, "glance", func(glance map[string]any) {
				glance["options"] = map[string]any{"DEFAULT": map[string]any{"image_tag_quota": 7}}
			})
			require.Equal(t, "success", task["state"], log)
		}, func() error { return g.returns(id, content) })
		require.Contains(t, s.inPod(t, "images", "cat /etc/glance/glance-api.conf"), "image_tag_quota = 7\n")
		underRequests(t, "the password of Glance's user", func() { s.act(t, "glance", "rotateServicePassword", map[string]any{}) },
			func() error { return g.returns(id, content) }, func() error { _, _, err := k.token(); return err })
		require.NotContains(t, users(), `"glance_1"`)
		require.Contains(t, users(), `"glance_2"`)
	})

	t.Run("its removal takes its endpoints and its user along, and others stay", func(t *testing.T) {
		deploy(without)
		require.NotContains(t, k.services(t, token), `"image"`)
		require.Contains(t, k.services(t, token), k.address+"/v3")
		require.NotContains(t, k.get(t, token, "/users"), `"glance_`)
	})

	t.Run("with a claim, an image is there when its pod was killed", func(t *testing.T) {
		deploy(without + imagesOfClaim)
		require.Contains(t, k.services(t, token), `"`+g.address+`"`)
		kept := g.upload(t, content)
		s.killed(t, "images")
		l.eventually(t, time.Minute, "the image is there", func() error { return g.returns(kept, content) })
	})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "glance")
}

const (
	// imagesOfNode is Glance with two replicas, which share a folder of the one minion.
	imagesOfNode = `
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: images}
    name: images
    kubernetesCluster: cluster
    replicas: 2
    maxUnavailable: "0"

  - "?": {type: io.burano.Glance, id: glance}
    name: glance
    host: images
    database: database
    identity: keystone
    globals: {"?": {type: io.burano.openstack.Globals}}
    volume: {"?": {type: com.mirantis.docker.DockerHostVolume}, path: /var/tmp}
`
	imagesOfClaim = `
  - "?": {type: com.mirantis.docker.kubernetes.KubernetesPod, id: images}
    name: images
    kubernetesCluster: cluster
    replicas: 1
    securityContext: {fsGroup: 64000}

  - "?": {type: io.burano.Glance, id: glance}
    name: glance
    host: images
    database: database
    identity: keystone
    globals: {"?": {type: io.burano.openstack.Globals}}
    size: 1Gi
`
)

// imageService is a Glance as its clients see it.
type imageService struct{ address, token string }

// upload makes an image of a content that it sends in chunks, and returns its id.
func (g imageService) upload(t *testing.T, content []byte) string {
	t.Helper()
	text, err := askedService(t.Context(), http.MethodPost, g.address+"/v2/images", g.token, strings.NewReader(`{"name": "noise", "disk_format": "raw", "container_format": "bare"}`))
	require.NoError(t, err)
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal(text, &made))
	_, err = askedService(t.Context(), http.MethodPut, g.address+"/v2/images/"+made.ID+"/file", g.token, io.MultiReader(bytes.NewReader(content)))
	require.NoError(t, err)
	return made.ID
}

// returns is an error if an image cannot be downloaded, or has another content.
func (g imageService) returns(id string, content []byte) error {
	got, err := askedService(context.Background(), http.MethodGet, g.address+"/v2/images/"+id+"/file", g.token, nil)
	if err == nil && !bytes.Equal(got, content) {
		err = errors.New("the image has another content")
	}
	return err
}
