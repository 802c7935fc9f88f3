package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/web/client"
)

func TestADeploymentThatEndsBadlyIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		state := map[string]string{"/burano/v1/deployments/good/events": "success", "/burano/v1/deployments/bad/events": "completed_w_errors"}[r.URL.Path]
		fmt.Fprintf(w, "event: report\nid: 1\ndata: {\"level\": \"info\", \"text\": \"one\", \"created\": \"now\"}\n\nevent: end\ndata: {\"state\": %q}\n\n", state)
	}))
	t.Cleanup(server.Close)
	api := client.New(server.URL, &gophercloud.ProviderClient{}, nil)
	var out bytes.Buffer
	require.NoError(t, Follow(t.Context(), api, "good", &out))
	require.Equal(t, "now  info     one\ndeployment good: success\n", out.String())
	var failed *failedDeployment
	require.ErrorAs(t, Follow(t.Context(), api, "bad", &out), &failed)
	require.Contains(t, out.String(), "deployment bad: completed_w_errors\n")
}
