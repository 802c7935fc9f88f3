package fault_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/fault"
)

func TestACallMeetsTheFaultThatWasOrdered(t *testing.T) {
	faults, done := &fault.Faults{}, 0
	mux := http.NewServeMux()
	mux.Handle("/faults", faults)
	mux.Handle("/", faults.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { done++ })))
	server := httptest.NewServer(mux)
	defer server.Close()
	send := func(method, path, id, body string) (int, http.Header) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("X-Openstack-Request-Id", id)
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			return 0, nil
		}
		require.NoError(t, response.Body.Close())
		return response.StatusCode, response.Header
	}
	status := func(method, path, id string) int {
		status, _ := send(method, path, id, "")
		return status
	}
	ordered, _ := send("POST", "/faults", "", `[{"method": "PUT", "path": "/heat/[^/]+", "request": "one", "nth": 2, "kind": "503"}, {"path": "/nova", "kind": "lost"},
		{"path": "/nova", "nth": 2, "kind": "reset"}, {"path": "/glance", "kind": "delay"}]`)
	require.Equal(t, 204, ordered)
	for _, other := range [][3]string{{"PUT", "/heat/a", "one"}, {"GET", "/heat/a", "one"}, {"PUT", "/heat/a", "two"}, {"PUT", "/heat/a/b", "one"}} {
		require.Equal(t, 200, status(other[0], other[1], other[2]))
	}
	busy, header := send("PUT", "/heat/b", "one", "")
	require.Equal(t, 503, busy)
	require.Equal(t, "1", header.Get("Retry-After"))
	require.Equal(t, 200, status("PUT", "/heat/b", "one"))
	require.Equal(t, 5, done)

	require.Equal(t, 0, status("POST", "/nova", ""), "its answer is lost")
	require.Equal(t, 6, done)
	require.Equal(t, 0, status("POST", "/nova", ""), "it is not done")
	require.Equal(t, 6, done)
	require.Len(t, faults.Pending(), 1)
	require.Equal(t, 200, status("GET", "/glance", ""))
	require.Empty(t, faults.Pending())
	require.Equal(t, fault.Call{Method: "PUT", Path: "/heat/b", Request: "one", Fault: fault.Unavailable}, faults.Calls()[4])

	ordered, _ = send("POST", "/faults", "", `[{"request": "*", "kind": "500"}]`)
	require.Equal(t, 204, ordered)
	require.Equal(t, 200, status("GET", "/nova", ""))
	require.Equal(t, 500, status("GET", "/nova", "any"))

	wrong, _ := send("POST", "/faults", "", `[{"kind": "flood"}]`)
	require.Equal(t, 400, wrong)
	forgotten, _ := send("DELETE", "/faults", "", "")
	require.Equal(t, 204, forgotten)
	require.Empty(t, faults.Calls())
}
