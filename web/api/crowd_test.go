package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/memory"
)

// listening is a server at a real address, and a function that opens a connection to it and sends a text.
func listening(t *testing.T, s *server) (address string, dial func(text string) net.Conn) {
	server := httptest.NewServer(s.echo)
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	address = server.Listener.Addr().String()
	return address, func(text string) net.Conn {
		connection, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		_, err = io.WriteString(connection, text)
		require.NoError(t, err)
		return connection
	}
}

func statusFrom(t *testing.T, connection net.Conn) int {
	t.Helper()
	require.NoError(t, connection.SetReadDeadline(time.Now().Add(20*time.Second)))
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

func TestHalfSentBodiesTakeNoPlace(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Limits = Limits{Requests: 4, Strangers: 4} })
	_, dial := listening(t, s)
	for range 50 {
		dial("POST /burano/v1/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		dial("POST /v1/environments HTTP/1.1\r\nHost: x\r\nX-Auth-Token: nobody's\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		dial("POST /v1/environments HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:demo}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	}
	// Each of them has a place until the server has looked at its token.
	require.Eventually(t, func() bool {
		return statusFrom(t, dial("POST /v1/environments HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")) == 401
	}, 20*time.Second, 10*time.Millisecond, "a stranger is refused before the body is there")
	for range 10 {
		require.Equal(t, 200, statusFrom(t, dial("GET /v1/environments HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:other}\r\n\r\n")))
		require.Equal(t, 200, statusFrom(t, dial("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")))
	}
}

func TestWhoReadsSlowlyTakesNoPlace(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Limits = Limits{Requests: 4} })
	large := strings.Repeat("x", 16<<20)
	begun := make(chan struct{}, 100)
	s.echo.GET("/v1/large", func(c echo.Context) error {
		c.Response().WriteHeader(http.StatusOK)
		begun <- struct{}{} // it has left its place
		_, err := io.WriteString(c.Response(), large)
		return err
	})
	_, dial := listening(t, s)
	for range 2 * aside { // half of the places for readers
		dial("GET /v1/large HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:demo}\r\n\r\n")
		<-begun
	}
	for range 10 {
		require.Equal(t, 200, statusFrom(t, dial("GET /v1/environments HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:demo}\r\n\r\n")))
		require.Equal(t, 200, statusFrom(t, dial("GET /v1/environments HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:other}\r\n\r\n")))
	}
	// The project's own share ends, and that of others does not.
	for range 2 {
		dial("GET /v1/large HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:demo}\r\n\r\n")
		<-begun
	}
	require.Equal(t, 429, statusFrom(t, dial("GET /v1/environments HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:demo}\r\n\r\n")))
	require.Equal(t, 200, statusFrom(t, dial("GET /v1/environments HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:other}\r\n\r\n")))
}

func TestAnswersThatMultiplyAreRefusedBeforeTheyAreWritten(t *testing.T) {
	s := newServer(t)
	text := strings.Repeat("x", 1500<<10)
	many := make([]any, 10_000)
	for i := range many {
		many[i] = text
	}
	s.echo.GET("/v1/many", func(c echo.Context) error { return c.JSON(200, many) })
	s.echo.GET("/v1/within", func(c echo.Context) error { return c.JSON(200, struct{ Result any }{many}) })
	for _, path := range []string{"/v1/many", "/v1/within"} {
		recorder := s.send("GET", path, asDemo, nil)
		require.Equal(t, 413, recorder.Code)
		require.Contains(t, recorder.Body.String(), "the answer has more than 64 MiB: ask for a part of it")
	}
	// As XML each item of a list has the list's name.
	s.echo.GET("/v1/xml", asXML(func(c echo.Context) error {
		return c.JSON(200, map[string]any{"root": map[string]any{strings.Repeat("s", 1<<20): make([]int, 1000)}})
	}))
	recorder := s.send("GET", "/v1/xml", asDemo, nil)
	require.Equal(t, 413, recorder.Code)
	require.Contains(t, recorder.Body.String(), "as XML has more than 64 MiB")
}

func TestAProjectHasItsShareOfTheMemoryOfRequests(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Memory = memory.NewGuard(nil).Budget(20 << 20) })
	begun, end := make(chan struct{}), make(chan struct{})
	s.echo.POST("/v1/hold", func(c echo.Context) error {
		begun <- struct{}{}
		<-end
		return c.NoContent(200)
	})
	send := func(path, token string, size int) int {
		return s.send("POST", path, map[string]string{"X-Auth-Token": token, "Content-Type": "application/json"}, fmt.Appendf(nil, `{"name":%q}`, strings.Repeat("x", size))).Code
	}
	done := make(chan int)
	go func() { done <- send("/v1/hold", "{token:demo}", 7<<20) }()
	<-begun
	require.Equal(t, 429, send("/v1/environments", "{token:demo}", 7<<20))
	require.NotEqual(t, 429, send("/v1/environments", "{token:other}", 7<<20))
	require.NotEqual(t, 429, send("/v1/environments", "{token:demo}", 100), "what is small is not counted")
	close(end)
	require.Equal(t, 200, <-done)
	require.NotEqual(t, 429, send("/v1/environments", "{token:demo}", 7<<20))
}
