package clients

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// The tokens of the callers are known to the server, as they are for half a minute.
func TestWhatNeedsKeystoneWhileItIsAwayIsAnsweredWith503(t *testing.T) {
	s := startKeystone(t)
	var away atomic.Bool
	keystone := s.cloud.Config.Handler
	s.cloud.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			w.Header().Set("Retry-After", "7")
			http.Error(w, "the database of Keystone at 10.0.0.7 is gone", http.StatusServiceUnavailable)
			return
		}
		keystone.ServeHTTP(w, r)
	})
	s.build()
	s.serve(http.DefaultClient, "http")
	token, _ := s.token("demo", "demo")
	b := s.browser()
	id := b.do(200, "POST", "/v1/environments", map[string]any{"name": "outage"}, "X-Auth-Token", token)["id"].(string)
	environment := "/v1/environments/" + id
	configure := func() string {
		return b.do(200, "POST", environment+"/configure", nil, "X-Auth-Token", token)["id"].(string)
	}
	deployed := func() bool { return b.do(200, "GET", environment, nil, "X-Auth-Token", token)["status"] == "ready" }
	b.do(200, "POST", environment+"/sessions/"+configure()+"/deploy", nil, "X-Auth-Token", token)
	require.Eventually(t, deployed, 20*time.Second, 20*time.Millisecond)
	draft := configure()

	away.Store(true)
	type call struct{ method, path, body string }
	var group errgroup.Group
	calls := []call{
		{"POST", environment + "/sessions/" + draft + "/deploy", ""},
		{"DELETE", environment, ""},
		{"PUT", "/burano" + environment + "/delegation", `{"roles": ["member"]}`},
		{"PUT", "/burano" + environment + "/delegation", `{"application_credential": "c", "secret": "s"}`},
		{"GET", "/burano/v1/cloud/flavors", ""},
		{"POST", "/burano/v1/session", `{"user": "demo", "password": "demo"}`},
	}
	results := make([]string, len(calls))
	responses := make([]*http.Response, len(calls))
	for i, one := range calls {
		group.Go(func() error {
			request, err := http.NewRequestWithContext(t.Context(), one.method, s.url+one.path, strings.NewReader(one.body))
			if err != nil {
				return err
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Accept", "application/json")
			request.Header.Set("Sec-Fetch-Site", "same-origin")
			request.Header.Set("X-Requested-With", "a test")
			if !strings.HasSuffix(one.path, "/session") {
				request.Header.Set("X-Auth-Token", token)
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			responses[i], results[i] = response, string(text)
			return err
		})
	}
	require.NoError(t, group.Wait())
	for i, one := range calls {
		require.Equal(t, http.StatusServiceUnavailable, responses[i].StatusCode, "%s %s: %s", one.method, one.path, results[i])
		require.NotEmpty(t, responses[i].Header.Get("Retry-After"), "%s %s", one.method, one.path)
		require.True(t, json.Valid([]byte(results[i])), results[i])
		require.Contains(t, results[i], "Keystone", "%s %s", one.method, one.path)
		require.NotContains(t, results[i], "10.0.0.7")
		if strings.HasSuffix(one.path, "/session") {
			continue
		}
		require.Equal(t, "7", responses[i].Header.Get("Retry-After"))
		require.Contains(t, results[i], "it answers 503 Service Unavailable")
		require.Equal(t, one.method != "GET", strings.Contains(results[i], "Nothing was queued"), results[i])
	}
	away.Store(false)
	require.Len(t, b.do(200, "GET", environment+"/deployments", nil, "X-Auth-Token", token)["deployments"], 1, "nothing was queued")
	require.Equal(t, "pending", b.do(200, "GET", environment, nil, "X-Auth-Token", token)["status"], "with the draft, which is kept")
	b.do(200, "POST", environment+"/sessions/"+draft+"/deploy", nil, "X-Auth-Token", token)
}
