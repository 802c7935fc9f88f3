package provider_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/web/client"
)

// brokenLine stands between the provider and Burano. It loses orders to deploy while requests is set, and their answers while answers is.
type brokenLine struct{ requests, answers atomic.Bool }

func breakLine(t *testing.T) *brokenLine {
	t.Helper()
	line := &brokenLine{}
	target, err := url.Parse(os.Getenv("BURANO_URL"))
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deploys := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/deploy")
		if deploys && line.requests.Load() {
			panic(http.ErrAbortHandler)
		}
		if deploys && line.answers.Load() {
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("BURANO_URL", server.URL)
	return line
}

// badDays checks that the state stays right, and that nothing is made twice, whatever goes wrong. The package of files is in the catalog.
func badDays(t *testing.T, api *client.Client) {
	line := breakLine(t)
	tf := newTerraform(t)
	kind := resource{kind: "burano_environment"}

	t.Run("the order to deploy is lost", func(t *testing.T) {
		config := map[string]any{"name": "unordered", "applications": applications("alpha", false)}
		line.requests.Store(true)
		made, said := tf.apply(t, kind, config)
		line.requests.Store(false)
		require.Contains(t, said, "cannot be deployed")
		require.Nil(t, made.state)
		_, err := api.Environments().Get(t.Context(), "unordered")
		require.True(t, client.IsStatus(err, http.StatusNotFound), "nothing is left that the next apply would trip over: %v", err)
	})
	t.Run("the answer is lost", func(t *testing.T) {
		config := map[string]any{"name": "unanswered", "applications": applications("alpha", false)}
		line.answers.Store(true)
		made, said := tf.apply(t, kind, config)
		line.answers.Store(false)
		require.Contains(t, said, "cannot be deployed")
		require.NotNil(t, made.state, "it is there, and is being deployed")
		newest, err := api.Deployments().Newest(t.Context(), tf.get(t, made, "id"))
		require.NoError(t, err)
		_, err = api.Deployments().Follow(t.Context(), newest.ID, func(client.Event) error { return nil })
		require.NoError(t, err)
		_, changes, said := tf.plan(t, tf.read(t, made), config)
		require.Empty(t, said)
		require.False(t, changes, "the deployment that nobody heard of was the one that was wanted")
	})
	t.Run("applications that only an apply will know", func(t *testing.T) {
		config := map[string]any{"name": "unknown", "applications": applications("alpha", false)}
		made, said := tf.apply(t, kind, config)
		require.Empty(t, said)
		config["applications"] = tftypes.UnknownValue
		_, changes, said := tf.plan(t, tf.read(t, made), config)
		require.Empty(t, said)
		require.True(t, changes)
	})
	t.Run("an import is no reason to make an environment anew", func(t *testing.T) {
		config := map[string]any{"name": "placed", "applications": applications("alpha", false), "region": "RegionOne",
			"default_networks": `{"environment": null, "flat": null}`}
		made, said := tf.apply(t, kind, config)
		require.Empty(t, said)
		imported, said := tf.importState(t, "burano_environment", "placed")
		require.Empty(t, said)
		planned, _, said := tf.plan(t, imported, config)
		require.Empty(t, said)
		require.Empty(t, planned.RequiresReplace)
		config["default_networks"] = `{"flat":null,"environment":null}`
		planned, _, said = tf.plan(t, made, config)
		require.Empty(t, said)
		require.Empty(t, planned.RequiresReplace, "the same written otherwise")
		config["region"] = "RegionTwo"
		planned, _, said = tf.plan(t, made, config)
		require.Empty(t, said)
		require.Len(t, planned.RequiresReplace, 1)
	})
	t.Run("it goes between plan and apply", func(t *testing.T) {
		config := map[string]any{"name": "behind", "applications": applications("alpha", false)}
		made, said := tf.apply(t, kind, config)
		require.Empty(t, said)
		id := tf.get(t, made, "id")
		config["applications"] = applications("beta", false)
		planned, _, said := tf.plan(t, made, config)
		require.Empty(t, said)
		require.NoError(t, api.Environments().Delete(t.Context(), id, false))
		require.NoError(t, api.Environments().WaitDeleted(t.Context(), id))
		_, said = tf.applyNow(t, made, config, planned)
		require.Contains(t, said, "not found")
		_, err := api.Environments().Get(t.Context(), "behind")
		require.True(t, client.IsStatus(err, http.StatusNotFound), "none is made that the state does not know: %v", err)
		require.Nil(t, tf.read(t, made).state)
	})
}
