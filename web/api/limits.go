package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
)

// Limits bound what one server takes on. Zero values stand for the defaults.
type Limits struct {
	Body     int64         // bytes of a request's body, 64 MiB; more is answered with 413
	Values   int           // in a JSON body, names of members among them, 200,000; more are answered with 413
	Time     time.Duration // from the first byte of a request to the last of its answer, one minute: 408 or 503
	Requests int           // at the same time, 256; the next one is answered with 503
	Streams  int           // answers that go on, such as a deployment's events, at the same time, 256; they have no limit of time
	// ProjectRequests and ProjectStreams are how many of them one project may have at the same time, half of all; its next one is answered
	// with 429.
	ProjectRequests, ProjectStreams int
	// Recheck is how often it is asked whether who follows a stream may still do so, 30 seconds.
	Recheck time.Duration
	Idle    time.Duration // after which a stream on which nothing happens gets a comment, 15 seconds
	Unread  time.Duration // after which a stream ends of which the client has read nothing, 30 seconds
}

func (l Limits) withDefaults() Limits {
	l = Limits{
		Body: cmp.Or(l.Body, DefaultLimits.Body), Values: cmp.Or(l.Values, DefaultLimits.Values), Time: cmp.Or(l.Time, DefaultLimits.Time),
		Requests: cmp.Or(l.Requests, DefaultLimits.Requests), Streams: cmp.Or(l.Streams, DefaultLimits.Streams),
		ProjectRequests: l.ProjectRequests, ProjectStreams: l.ProjectStreams,
		Recheck: cmp.Or(l.Recheck, DefaultLimits.Recheck), Idle: cmp.Or(l.Idle, DefaultLimits.Idle), Unread: cmp.Or(l.Unread, DefaultLimits.Unread),
	}
	l.ProjectRequests = cmp.Or(l.ProjectRequests, (l.Requests+1)/2)
	l.ProjectStreams = cmp.Or(l.ProjectStreams, (l.Streams+1)/2)
	return l
}

// DefaultLimits are for a server of a few cores. A package may have 5 MiB, an object model 8 MiB.
var DefaultLimits = Limits{Body: 64 << 20, Values: orchestrator.DefaultValues, Time: time.Minute, Requests: 256, Streams: 256, Recheck: 30 * time.Second,
	Idle: 15 * time.Second, Unread: 30 * time.Second}

var (
	errTooSlow = errors.New("the request took longer than the server allows")
	errLeaving = &refusal{status: http.StatusServiceUnavailable, explanation: "The server stops; try again shortly."}
	errBusy    = &refusal{status: http.StatusServiceUnavailable, explanation: "The server is busy with as many requests as it takes at a time; try again shortly."}
)

// isStream tells a path whose answer goes on until its subject, or the client, ends: those that end in /events.
func isStream(path string) bool { return strings.HasSuffix(path, "/events") }

// limited keeps requests within the limits. What is open to everybody (health, metrics) is answered also when the server is busy.
func limited(limits Limits, stopping context.Context) echo.MiddlewareFunc {
	requests, streams := make(chan struct{}, limits.Requests), make(chan struct{}, limits.Streams)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			request := c.Request()
			places, limit := requests, limits.Time
			if isStream(request.URL.Path) {
				places, limit = streams, 0
			}
			if !open[request.URL.Path] {
				select {
				case places <- struct{}{}:
					defer func() { <-places }()
				default:
					c.Response().Header().Set(echo.HeaderRetryAfter, "1")
					return errBusy
				}
			}
			if request.ContentLength > limits.Body {
				return &http.MaxBytesError{Limit: limits.Body}
			}
			request.Body = http.MaxBytesReader(c.Response(), request.Body, limits.Body)
			if limit == 0 {
				ctx, cancel := context.WithCancelCause(request.Context())
				defer cancel(nil)
				defer context.AfterFunc(stopping, func() { cancel(errLeaving) })()
				c.SetRequest(request.WithContext(ctx))
				return answeredWithin(c, next)
			}
			ctx, cancel := context.WithTimeoutCause(request.Context(), limit, errTooSlow)
			defer cancel()
			c.SetRequest(request.WithContext(ctx))
			// A body that is sent too slowly ends by this; tests' recorders know no deadline.
			if err := http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(limit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return fmt.Errorf("limit the time of a request: %w", err)
			}
			return answeredWithin(c, next)
		}
	}
}

// shared keeps each project within its share of the requests, so that one that asks for much does not keep the others out. It comes after
// who is calling is known.
func shared(limits Limits) echo.MiddlewareFunc {
	requests, streams := newShares(limits.ProjectRequests), newShares(limits.ProjectStreams)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			of, what := requests, "requests"
			if isStream(c.Request().URL.Path) {
				of, what = streams, "streams"
			}
			_, caller := calling(c)
			if caller.ProjectID == "" { // nobody, or somebody who chooses a project yet
				return next(c)
			}
			if !of.take(caller.ProjectID) {
				c.Response().Header().Set(echo.HeaderRetryAfter, "1")
				return &refusal{status: http.StatusTooManyRequests,
					explanation: fmt.Sprintf("Project %s has %d %s at the same time, which is its share; try again shortly.", caller.ProjectID, of.most, what)}
			}
			defer of.give(caller.ProjectID)
			return next(c)
		}
	}
}

// shares count what each project has of something, of which it may have so much.
type shares struct {
	most  int
	mutex sync.Mutex
	held  map[string]int // by project; those that have none are not in it
}

func newShares(most int) *shares { return &shares{most: most, held: map[string]int{}} }

// take tells whether the project may have one more, which it then has until it gives it back.
func (s *shares) take(project string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.held[project] >= s.most {
		return false
	}
	s.held[project]++
	return true
}

func (s *shares) give(project string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.held[project]--; s.held[project] == 0 {
		delete(s.held, project)
	}
}

// answeredWithin answers errors too, while the request's context still says why.
func answeredWithin(c echo.Context, next echo.HandlerFunc) error {
	if err := next(c); err != nil {
		c.Error(err)
	}
	return nil
}
