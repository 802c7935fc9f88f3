package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/store"
)

// TestEventsTellStateAndReportsAsTheyCome follows a deployment that waits, and one that warns.
func TestEventsTellStateAndReportsAsTheyCome(t *testing.T) {
	s := newServer(t)
	server := httptest.NewServer(s.echo)
	defer server.Close()
	task, open := s.waiting()
	defer open()
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

// TestAStreamOnWhichNothingHappensGetsComments waits for two of them.
func TestAStreamOnWhichNothingHappensGetsComments(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Limits.Idle = 10 * time.Millisecond })
	server := httptest.NewServer(s.echo)
	defer server.Close()
	task, open := s.waiting()
	defer open()
	request, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/burano/v1/deployments/"+task+"/events", nil)
	require.NoError(t, err)
	request.Header.Set("X-Auth-Token", "{token:demo}")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	comments := 0
	for lines := bufio.NewScanner(response.Body); comments < 2; {
		require.True(t, lines.Scan(), "the stream ended: %v", lines.Err())
		if strings.HasPrefix(lines.Text(), ":") {
			comments++
		}
	}
}

// TestAStreamThatNobodyReadsEnds has a client that asks for more than the network holds, and reads none of it. The only stream that the
// server allows is free again then.
func TestAStreamThatNobodyReadsEnds(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Limits.Unread, c.Limits.Streams = 100*time.Millisecond, 1 })
	server := httptest.NewServer(s.echo)
	defer server.Close()
	task, open := s.waiting()
	defer open()
	text := strings.Repeat("much ", 1<<20)
	rows := make([]store.Report, 4)
	for i := range rows {
		rows[i] = store.Report{ID: fmt.Sprint("large ", i), TaskID: task, Number: int64(1000 + i), Level: "info", Text: text}
	}
	require.NoError(t, s.db.Create(&rows).Error)
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer connection.Close()
	path := "/burano/v1/deployments/" + task + "/events"
	_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: burano\r\nX-Auth-Token: {token:demo}\r\n\r\n", path)
	require.NoError(t, err)
	first := make([]byte, len("HTTP/1.1 200"))
	_, err = io.ReadFull(connection, first)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 200", string(first), "it has begun")
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel() // one answer is enough
		request, err := http.NewRequestWithContext(ctx, "GET", server.URL+path, nil)
		require.NoError(t, err)
		request.Header.Set("X-Auth-Token", "{token:demo}")
		request.Header.Set("Last-Event-ID", "2000")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, 30*time.Second, 10*time.Millisecond, "the stream that nobody reads goes on")
}

// waiting deploys an environment whose deployment waits until open is called.
func (s *server) waiting() (task string, open func()) {
	open = s.world.Hold("deploy alpha")
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", plainHello("a1", "alpha"), 200)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	return field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200), "deployments", 0, "id").(string), open
}
