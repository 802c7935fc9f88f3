package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/requestid"
	"github.com/burano/burano/web/auth"
)

var asDemo = map[string]string{"X-Auth-Token": "{token:demo}"}

func TestARequestIDLeadsThroughAnswerAndLog(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, func(c *Config) {
		c.Logger = slog.New(requestid.LogHandler(slog.NewJSONHandler(&log, nil))).With("server", "one")
	})
	const given = "req-0F0e0d0c-0b0a-4908-8706-050403020100"
	headers := map[string]string{"X-Auth-Token": "{token:demo}", requestIDHeader: given}
	require.Equal(t, given, s.send("GET", "/v1/environments", headers, nil).Header().Get(requestIDHeader))
	require.Contains(t, log.String(), `"request_id":"`+given+`"`)
	log.Reset()

	seen := map[string]bool{}
	for _, bad := range []string{"", "req-1", given + "0", "x" + given, "req-0F0e0d0c-0b0a-4908-8706-05040302010g", given + "\" level=ERROR"} {
		headers[requestIDHeader] = bad
		id := s.send("GET", "/v1/environments", headers, nil).Header().Get(requestIDHeader)
		require.True(t, requestid.Valid(id))
		require.NotEqual(t, bad, id)
		require.False(t, seen[id])
		seen[id] = true
		require.Contains(t, log.String(), `"request_id":"`+id+`"`)
	}

	// A failure's line has it too.
	s.echo.GET("/v1/broken", func(echo.Context) error { return errors.New("the disk is gone") })
	log.Reset()
	id := s.send("GET", "/v1/broken", asDemo, nil).Header().Get(requestIDHeader)
	for line := range strings.Lines(log.String()) {
		require.Contains(t, line, `"request_id":"`+id+`"`)
	}
	require.Contains(t, log.String(), "the disk is gone")
}

func TestReadinessNamesWhatFailsAndAsksSeldom(t *testing.T) {
	var asked atomic.Int64
	var broken atomic.Bool
	broken.Store(true)
	var log bytes.Buffer
	s := newServer(t, func(c *Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c.Checks = []Check{
			{"database", func(context.Context) error { asked.Add(1); return nil }},
			{"keystone", func(context.Context) error {
				if broken.Load() {
					return errors.New("dial tcp 10.0.0.7: connection refused")
				}
				return nil
			}},
		}
	})
	for range 20 {
		recorder := s.send("GET", "/readyz", nil, nil)
		require.Equal(t, 503, recorder.Code)
		require.JSONEq(t, `{"ready":false,"checks":{"database":"ok","keystone":"failed","memory":"ok","requests":"ok"}}`, recorder.Body.String())
	}
	require.Less(t, asked.Load(), int64(20), "many questions are one to the database")
	require.Contains(t, log.String(), "10.0.0.7: connection refused")
	require.Equal(t, "ok\n", s.send("GET", "/healthz", nil, nil).Body.String(), "it lives all the same")
	broken.Store(false)
	require.Eventually(t, func() bool { return s.send("GET", "/readyz", nil, nil).Code == 200 }, 20*time.Second, 20*time.Millisecond)
}

func TestMetricsCountByRoute(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newServer(t, func(c *Config) { c.Metrics = registry })
	s.echo.GET("/v1/panic", func(echo.Context) error { panic("oh") })
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	s.call("demo", "", "GET", "/v1/environments/"+id, nil, 200)
	s.call("demo", "", "GET", "/v1/environments/"+strings.Repeat("f", 32), nil, 404)
	s.call("demo", "", "GET", "/v1/panic", nil, 500)
	s.send("GET", "/v1/what/"+id, asDemo, nil)
	s.send("FROB", "/v2", nil, nil)
	s.send("GET", "/v1/environments", nil, nil)
	recorder := s.send("GET", "/metrics", nil, nil)
	require.Equal(t, 200, recorder.Code)
	for _, line := range []string{
		`burano_http_requests_total{method="GET",route="/v1/environments/:environment",status="200"} 1`,
		`burano_http_requests_total{method="GET",route="/v1/environments/:environment",status="404"} 1`,
		`burano_http_requests_total{method="GET",route="/v1/panic",status="500"} 1`,
		`burano_http_requests_total{method="GET",route="none",status="404"} 1`,
		`burano_http_requests_total{method="other",route="versions",status="300"} 1`,
		`burano_http_requests_total{method="GET",route="/v1/environments",status="401"} 1`,
		`burano_http_request_seconds_count{method="POST",route="/v1/environments"} 1`,
		`burano_http_requests_in_flight 1`,
		`burano_http_panics_total 1`,
	} {
		require.Contains(t, recorder.Body.String(), line+"\n")
	}
	require.NotContains(t, recorder.Body.String(), id, "ids make no series")

	hidden := newServer(t, func(c *Config) { c.Metrics, c.MetricsElsewhere = prometheus.NewRegistry(), true })
	require.Equal(t, 404, hidden.send("GET", "/metrics", nil, nil).Code)
}

// blocked is a server with a route that is answered when the test permits.
func blocked(t *testing.T, limits Limits) (s *server, begun chan struct{}, end func()) {
	s = newServer(t, func(c *Config) { c.Limits = limits })
	begun, released := make(chan struct{}, 10), make(chan struct{})
	wait := func(c echo.Context) error {
		begun <- struct{}{}
		select {
		case <-released:
		case <-c.Request().Context().Done():
			return c.Request().Context().Err()
		}
		return c.NoContent(200)
	}
	s.echo.GET("/v1/wait", wait)
	s.echo.GET("/v1/wait/events", wait)
	return s, begun, func() { close(released) }
}

func TestOneMoreThanTheLimitIsToldToComeBack(t *testing.T) {
	s, begun, end := blocked(t, Limits{Requests: 2, ProjectRequests: 2, Streams: 1})
	done := make(chan int, 3)
	for _, path := range []string{"/v1/wait", "/v1/wait", "/v1/wait/events"} {
		go func() { done <- s.send("GET", path, asDemo, nil).Code }()
		<-begun
	}
	for _, path := range []string{"/v1/environments", "/v1/wait/events"} {
		recorder := s.send("GET", path, asDemo, nil)
		require.Equal(t, 503, recorder.Code)
		require.Equal(t, "1", recorder.Header().Get("Retry-After"))
		require.Contains(t, recorder.Body.String(), "busy")
	}
	require.Equal(t, 200, s.send("GET", "/healthz", nil, nil).Code, "a busy server lives")
	end()
	for range 3 {
		require.Equal(t, 200, <-done)
	}
	require.Equal(t, 200, s.send("GET", "/v1/environments", asDemo, nil).Code)
}

func TestAProjectHasItsShareOfRequestsAndOthersHaveTheirs(t *testing.T) {
	s, begun, end := blocked(t, Limits{Requests: 4, Streams: 4})
	done := make(chan int, 4)
	for _, path := range []string{"/v1/wait", "/v1/wait", "/v1/wait/events", "/v1/wait/events"} {
		go func() { done <- s.send("GET", path, asDemo, nil).Code }()
		<-begun
	}
	for _, path := range []string{"/v1/environments", "/v1/wait/events"} {
		recorder := s.send("GET", path, asDemo, nil)
		require.Equal(t, 429, recorder.Code, "half of them is what one project may have")
		require.Equal(t, "1", recorder.Header().Get("Retry-After"))
		require.Contains(t, recorder.Body.String(), "which is its share")
	}
	require.Equal(t, 200, s.send("GET", "/v1/environments", map[string]string{"X-Auth-Token": "{token:other}"}, nil).Code, "another project")
	end()
	for range 4 {
		require.Equal(t, 200, <-done)
	}
	require.Equal(t, 200, s.send("GET", "/v1/environments", asDemo, nil).Code)
}

func TestARequestThatTakesTooLongIsEnded(t *testing.T) {
	s, _, end := blocked(t, Limits{Time: 50 * time.Millisecond})
	defer end()
	recorder := s.send("GET", "/v1/wait", asDemo, nil)
	require.Equal(t, 503, recorder.Code)
	require.Contains(t, recorder.Body.String(), "within 50ms")
	require.NotEmpty(t, recorder.Header().Get("Retry-After"))
	require.Contains(t, s.log.String(), "a request took too long")
}

func TestAStreamHasNoLimitOfTime(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Limits = Limits{Time: time.Nanosecond} })
	s.echo.GET("/v1/some/events", func(c echo.Context) error {
		if deadline, limited := c.Request().Context().Deadline(); limited {
			return fmt.Errorf("ends at %s", deadline)
		}
		return c.NoContent(200)
	})
	require.Equal(t, 200, s.send("GET", "/v1/some/events", asDemo, nil).Code)
	require.Equal(t, 503, s.send("GET", "/v1/environments", asDemo, nil).Code)
}

func TestStreamsEndWhenTheServerStops(t *testing.T) {
	stopping, stop := context.WithCancel(t.Context())
	s := newServer(t, func(c *Config) { c.Stopping = stopping })
	begun := make(chan struct{})
	s.echo.GET("/v1/some/events", func(c echo.Context) error {
		close(begun)
		<-c.Request().Context().Done()
		return c.NoContent(200)
	})
	done := make(chan int)
	go func() { done <- s.send("GET", "/v1/some/events", asDemo, nil).Code }()
	<-begun
	stop()
	require.Equal(t, 200, <-done)
}

func TestWhoFollowsIsToldToComeBackWhenTheServerStops(t *testing.T) {
	for _, begun := range []bool{true, false} {
		stopping, stop := context.WithCancel(t.Context())
		s := newServer(t, func(c *Config) { c.Stopping = stopping })
		s.echo.GET("/v1/some/events", func(c echo.Context) error {
			stream := newEventStream(c, DefaultLimits)
			defer stream.close()
			if begun {
				require.NoError(t, stream.idle())
			}
			stop()
			<-c.Request().Context().Done()
			return stream.leave(c.Request().Context())
		})
		answer := s.send("GET", "/v1/some/events", asDemo, nil)
		if begun {
			require.Equal(t, ":\n\nretry: 1000\n\n", answer.Body.String())
			continue
		}
		require.Equal(t, 503, answer.Code, "nothing was said yet")
		require.Equal(t, "1", answer.Header().Get("Retry-After"))
	}
}

func TestAClientThatGoesIsNoFailure(t *testing.T) {
	s, begun, end := blocked(t, Limits{})
	defer end()
	ctx, leave := context.WithCancel(t.Context())
	request := httptest.NewRequestWithContext(ctx, "GET", "/v1/wait", nil)
	request.Header.Set("X-Auth-Token", "{token:demo}")
	done := make(chan int)
	go func() {
		recorder := httptest.NewRecorder()
		s.echo.ServeHTTP(recorder, request)
		done <- recorder.Code
	}()
	<-begun
	leave()
	require.Equal(t, statusGone, <-done)
	require.NotContains(t, s.log.String(), "level=ERROR")
}

func TestKeystoneThatCannotBeAskedIsNotTheCallersFault(t *testing.T) {
	s := newServer(t, func(c *Config) {
		c.Auth = func(echo.HandlerFunc) echo.HandlerFunc {
			return func(echo.Context) error {
				return &auth.Unreachable{Err: errors.New("ask Keystone about a token: connection refused")}
			}
		}
	})
	recorder := s.send("GET", "/v1/environments", asDemo, nil)
	require.Equal(t, 503, recorder.Code)
	require.NotEmpty(t, recorder.Header().Get("Retry-After"))
	require.JSONEq(t, `{"error":{"code":503,"title":"Service Unavailable","message":"Keystone could not be asked who is calling; try again later."}}`, recorder.Body.String())
	require.Empty(t, recorder.Header().Get("WWW-Authenticate"))
	require.Contains(t, s.log.String(), "connection refused")
}

func TestBodiesAreBounded(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Limits = Limits{Body: 1000, Time: 300 * time.Millisecond} })
	server := httptest.NewServer(s.echo)
	defer server.Close()
	send := func(body io.Reader, length int64, contentType string) *http.Response {
		request, err := http.NewRequest("POST", server.URL+"/v1/environments", body)
		require.NoError(t, err)
		request.ContentLength = length
		request.Header.Set("X-Auth-Token", "{token:demo}")
		request.Header.Set("Content-Type", contentType)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		t.Cleanup(func() { _ = response.Body.Close() })
		return response
	}
	large := `{"name":"` + strings.Repeat("x", 1000) + `"}`
	require.Equal(t, 413, send(strings.NewReader(large), int64(len(large)), "application/json").StatusCode, "announced")
	require.Equal(t, 413, send(strings.NewReader(large), -1, "application/json").StatusCode, "not announced")

	// A body that does not come ends the request.
	connection, err := net.Dial("tcp", strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	defer connection.Close()
	_, err = io.WriteString(connection, "POST /v1/environments HTTP/1.1\r\nHost: x\r\nX-Auth-Token: {token:demo}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, 408, response.StatusCode)
}

func TestFaultsOfEveryKindHaveAStatusOfTheirOwn(t *testing.T) {
	for kind, status := range map[fault.Kind]int{fault.Invalid: 400, fault.Unauthorized: 401, fault.Forbidden: 403, fault.NotFound: 404,
		fault.Conflict: 409, fault.TooLarge: 413, fault.TooMany: 429, 0: 500} {
		require.Equal(t, status, statusOf(kind))
	}
}
