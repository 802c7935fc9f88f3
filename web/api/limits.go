package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
)

// Limits limit the load of one server. Zero values are the defaults.
type Limits struct {
	Body     int64         // bytes of a request's body, 64 MiB; more is answered with 413
	Values   int           // in a JSON body, names of members among them, 200,000; more are answered with 413
	Time     time.Duration // from the first byte of a request to the last of its answer, one minute: 408 or 503
	Requests int           // of known callers, that are worked on at the same time, 256; the next one is answered with 503
	Streams  int           // answers that go on, such as a deployment's events, and files of backups, at the same time, 256; they have no limit of time
	// Strangers are requests of callers who are not known, or not yet, at the same time, 64; the next one is answered with 503.
	Strangers int
	// ProjectRequests and ProjectStreams are the maximum for one project at the same time; its next one is answered with 429. 0: as many as are free
	// beside its own, so that half of them are left for others, and half of that half for the following ones.
	ProjectRequests, ProjectStreams int
	// Recheck is the interval of the check that a stream's follower still has the right to it, 30 seconds.
	Recheck time.Duration
	Idle    time.Duration // after which a stream on which nothing happens gets a comment, 15 seconds
	Unread  time.Duration // after which a stream ends of which the client has read nothing, 30 seconds
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Body: cmp.Or(l.Body, DefaultLimits.Body), Values: cmp.Or(l.Values, DefaultLimits.Values), Time: cmp.Or(l.Time, DefaultLimits.Time),
		Requests: cmp.Or(l.Requests, DefaultLimits.Requests), Streams: cmp.Or(l.Streams, DefaultLimits.Streams),
		Strangers: cmp.Or(l.Strangers, DefaultLimits.Strangers), ProjectRequests: l.ProjectRequests, ProjectStreams: l.ProjectStreams,
		Recheck: cmp.Or(l.Recheck, DefaultLimits.Recheck), Idle: cmp.Or(l.Idle, DefaultLimits.Idle), Unread: cmp.Or(l.Unread, DefaultLimits.Unread),
	}
}

// DefaultLimits are for a server of a few cores. A package may have 5 MiB, an object model 8 MiB.
var DefaultLimits = Limits{Body: 64 << 20, Values: orchestrator.DefaultValues, Time: time.Minute, Requests: 256, Streams: 256, Strangers: 64, Recheck: 30 * time.Second,
	Idle: 15 * time.Second, Unread: 30 * time.Second}

var (
	errTooSlow = errors.New("the request took longer than the server allows")
	errLeaving = &refusal{status: http.StatusServiceUnavailable, explanation: "The server stops; try again shortly."}
	errBusy    = &refusal{status: http.StatusServiceUnavailable, explanation: "The server is busy with as many requests as it takes at a time; try again shortly."}
)

// isStream reports whether the path's answer goes on until its subject, or the client, ends: paths that end in /events, and files of backups.
func isStream(path string) bool {
	return strings.HasSuffix(path, "/events") || strings.HasPrefix(path, "/burano/v1/backups/") && strings.HasSuffix(path, "/file")
}

// uploadPath takes the file of a backup, which may be larger than any other body.
const uploadPath = "/burano/v1/backups/file"

// isUpload reports whether the body of a request is a file, which is not read before it is worked on.
func isUpload(request *http.Request) bool {
	return request.Method == http.MethodPost && request.URL.Path == uploadPath
}

// limited keeps the bodies and the time of requests within the limits.
func limited(limits Limits, stopping context.Context) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			request := c.Request()
			hasBody := request.ContentLength != 0 // it is -1 where the length is not known
			if hasBody && !isUpload(request) {
				if request.ContentLength > limits.Body {
					return &http.MaxBytesError{Limit: limits.Body}
				}
				request.Body = http.MaxBytesReader(c.Response(), request.Body, limits.Body)
			}
			if isStream(request.URL.Path) {
				ctx, cancel := context.WithCancelCause(request.Context())
				defer cancel(nil)
				defer context.AfterFunc(stopping, func() { cancel(errLeaving) })()
				c.SetRequest(request.WithContext(ctx))
				return answeredWithin(c, next)
			}
			limit := limits.Time
			ctx, cancel := context.WithTimeoutCause(request.Context(), limit, errTooSlow)
			defer cancel()
			c.SetRequest(request.WithContext(ctx))
			if anonymous(request.Method, request.URL.Path) {
				limit = min(limit, strangersTime)
			}
			if !hasBody {
				return answeredWithin(c, next)
			}
			// A body that is sent too slowly ends by this; tests' recorders know no deadline.
			if err := http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(limit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return fmt.Errorf("limit the time of a request: %w", err)
			}
			return answeredWithin(c, next)
		}
	}
}

// answeredWithin answers errors too, while the request's context still has the reason.
func answeredWithin(c echo.Context, next echo.HandlerFunc) error {
	if err := next(c); err != nil {
		c.Error(err)
	}
	return nil
}
