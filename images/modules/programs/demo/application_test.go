package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// start serves an application and returns its address, the function that stops it, and the channel of its end.
func start(t *testing.T, quiet, grace time.Duration) (url string, leave func(), ended <-chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	end := make(chan error, 1)
	application := application{name: "demo-1", log: slog.New(slog.DiscardHandler), quiet: quiet, grace: grace}
	go func() { end <- application.serve(ctx, listener) }()
	return "http://" + listener.Addr().String(), cancel, end
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	response, err := client.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(body)
}

func newClient(t *testing.T) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 10 * time.Second}
}

func TestAnApplicationSaysWhoAnswers(t *testing.T) {
	url, _, _ := start(t, time.Second, time.Second)
	response, body := get(t, newClient(t), url+"/")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, body, "Hello from demo-1\n")

	_, body = get(t, newClient(t), url+"/healthz")
	require.Equal(t, "ok\n", body)
	response, _ = get(t, newClient(t), url+"/other")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
	response, body = get(t, newClient(t), url+"/slow?for=1h")
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	require.Contains(t, body, "/slow?for=2s")
}

func TestALeavingApplicationServesOnAndClosesItsConnections(t *testing.T) {
	url, leave, ended := start(t, 2*time.Second, 10*time.Second) // a busy machine comes to ask again before it leaves
	client := newClient(t)
	response, _ := get(t, client, url+"/")
	require.False(t, response.Close, "a connection is kept while nobody leaves")

	leave()
	require.Eventually(t, func() bool {
		response, body := get(t, client, url+"/")
		require.Contains(t, body, "Hello from demo-1")
		return response.Close
	}, 5*time.Second, 10*time.Millisecond)
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(5 * time.Second):
		require.Fail(t, "the application did not leave when it was quiet")
	}
}

func TestALeavingApplicationFinishesARunningRequest(t *testing.T) {
	url, leave, ended := start(t, 50*time.Millisecond, 10*time.Second)
	answered, sent := make(chan string, 1), make(chan struct{})
	client := newClient(t)
	traced := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
	request, err := http.NewRequestWithContext(traced, http.MethodGet, url+"/slow?for=700ms", nil)
	require.NoError(t, err)
	go func() {
		response, err := client.Do(request)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		answered <- string(body)
	}()
	// The request is surely being answered when a later one has been.
	<-sent
	get(t, newClient(t), url+"/slow?for=100ms")
	leave()
	require.Equal(t, "Hello from demo-1, after 700ms\n", <-answered)
	require.NoError(t, <-ended)
}

func TestALeavingApplicationDoesNotOutstayItsGrace(t *testing.T) {
	url, leave, ended := start(t, 50*time.Millisecond, 300*time.Millisecond)
	client := newClient(t)
	go func() {
		if response, err := client.Get(url + "/slow?for=15s"); err == nil {
			response.Body.Close()
		}
	}()
	get(t, newClient(t), url+"/slow?for=100ms")
	leave()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the application outstayed its grace")
	}
}
