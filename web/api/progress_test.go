package api

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEventsTellStateAndReportsAsTheyCome follows a deployment that waits, and one that warns.
func TestEventsTellStateAndReportsAsTheyCome(t *testing.T) {
	s := newServer(t)
	server := httptest.NewServer(s.echo)
	defer server.Close()
	open := s.world.Hold("deploy alpha")
	defer open()
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", hello("a1", "alpha"), 200)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	task := field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200), "deployments", 0, "id").(string)
	follow := func(last string) (next func() string) {
		request, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/burano/v1/deployments/"+task+"/events", nil)
		require.NoError(t, err)
		request.Header.Set("X-Auth-Token", "{token:demo}")
		request.Header.Set("Last-Event-ID", last)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		lines := bufio.NewScanner(response.Body)
		return func() (event string) {
			for lines.Scan() && lines.Text() != "" {
				if !strings.HasPrefix(lines.Text(), "data: {\"created\"") {
					event += lines.Text() + "\n"
				}
			}
			return event
		}
	}
	first := follow("")
	require.Equal(t, "event: report\nid: 1\n", first())
	state := "event: state\ndata: {\"state\":\"running\"}\n"
	second := first()
	if second == state { // the report may come before or after it
		second = first()
	} else {
		require.Equal(t, state, first())
	}
	require.Equal(t, "event: report\nid: 2\n", second)
	again := follow("2")
	require.Equal(t, state, again(), "who comes back is told the state at once, and no report twice")
	open()
	for _, next := range []func() string{first, again} {
		require.Equal(t, "event: report\nid: 3\n", next())
		require.Equal(t, "event: end\ndata: {\"state\":\"success\"}\n", next())
		require.Empty(t, next())
	}
}
