package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/gate"
)

// maxJSON is the largest JSON body; object models are far smaller.
const maxJSON = 8 << 20

// Keys of the middleware in the request's context.
const (
	keyBody          = "body"
	keyAuthenticated = "authenticated"
	keyStranger      = "stranger" // returns the place of a stranger
)

// Strangers' texts are cut before they are logged, and only some of their requests are: their number is in the metrics.
const (
	maxWord = 64  // bytes of a method
	maxPath = 512 // bytes of a path
)

// strangersLines limits the log lines for requests of unknown callers.
var strangersLines = gate.SampleOf{Each: 60, All: 600, Span: time.Minute}

// accessLog writes a line for each request, and counts it.
func accessLog(log *slog.Logger, counted *metrics, address echo.IPExtractor) echo.MiddlewareFunc {
	strangers := gate.NewSample(strangersLines, time.Now)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			start := time.Now()
			current := counted.current
			if isStream(c.Request().URL.Path) {
				current = counted.streams
			}
			current.Inc()
			defer current.Dec()
			err := next(c)
			if err != nil {
				c.Error(err) // writes the answer, so that its status is known here
			}
			took := time.Since(start)
			counted.answered(c, took)
			request := c.Request()
			level := slog.LevelInfo
			if open[request.URL.Path] {
				level = slog.LevelDebug
			}
			caller := identity.From(request.Context())
			if caller.UserID == "" && level == slog.LevelInfo && !strangers.Let(address(request)) {
				level = slog.LevelDebug
			}
			log.LogAttrs(request.Context(), level, "request", slog.String("method", door.Cut(request.Method, maxWord)), slog.String("path", door.Cut(request.URL.Path, maxPath)),
				slog.Int("status", c.Response().Status), slog.Float64("seconds", took.Seconds()), slog.Int64("bytes", c.Response().Size),
				slog.String("project", caller.ProjectID), slog.String("user", caller.UserID))
			return nil
		}
	}
}

func recovery(log *slog.Logger, counted *metrics) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) (err error) {
			defer func() {
				if r := recover(); r != nil {
					if r == http.ErrAbortHandler {
						panic(r)
					}
					counted.panics.Inc()
					log.ErrorContext(c.Request().Context(), "panic in a handler", "panic", r, "path", door.Cut(c.Request().URL.Path, maxPath), "stack", string(debug.Stack()))
					err = fmt.Errorf("panic: %v", r)
				}
			}()
			return next(c)
		}
	}
}

// notAuthenticated marks errors of the authentication, whose answers have Keystone's shape.
type notAuthenticated struct{ error }

func (e notAuthenticated) Unwrap() error { return e.error }

// authenticated demands a caller for everything that is not open, routes that do not exist included. The caller of a stream is checked
// again and again: the stream ends soon after the caller has signed out, or the token has ended.
func authenticated(enter echo.MiddlewareFunc, crowd *crowd, recheck time.Duration) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		unknown := crowd.strangers(next)
		checked := enter(func(c echo.Context) error {
			c.Set(keyAuthenticated, true)
			if leave, ok := c.Get(keyStranger).(func()); ok {
				leave()
			}
			if isStream(c.Request().URL.Path) {
				return whileLetIn(c, enter, recheck, next)
			}
			return next(c)
		})
		return func(c echo.Context) error {
			if anonymous(c.Request().Method, c.Request().URL.Path) {
				return unknown(c)
			}
			if crowd.known == nil || !crowd.known(c.Request()) {
				leave, err := crowd.stranger(c)
				if err != nil {
					return err
				}
				defer leave()
				c.Set(keyStranger, leave)
			}
			err := checked(c)
			if fault.KindOf(err) == fault.Unauthorized && c.Get(keyAuthenticated) == nil {
				return notAuthenticated{err}
			}
			return err
		}
	}
}

// whileLetIn ends the request's context once its caller would not be let in any more. While Keystone is away, nothing
// ends.
func whileLetIn(c echo.Context, enter echo.MiddlewareFunc, every time.Duration, next echo.HandlerFunc) error {
	request := c.Request()
	ctx, cancel := context.WithCancel(request.Context())
	defer cancel()
	again := request.Clone(ctx)
	check := enter(func(echo.Context) error { return nil })
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// The answer's header was sent long ago: the check cannot remove a cookie any more.
			if err := check(c.Echo().NewContext(again, unheard{http.Header{}})); fault.KindOf(err) == fault.Unauthorized {
				cancel()
				return
			}
		}
	}()
	c.SetRequest(request.WithContext(ctx))
	return next(c)
}

// unheard discards an answer.
type unheard struct{ header http.Header }

func (u unheard) Header() http.Header          { return u.header }
func (unheard) Write(text []byte) (int, error) { return len(text), nil }
func (unheard) WriteHeader(int)                {}

// jsonTypes are the media types of the JSON bodies that v1 reads; application/xml, which Murano's own clients never sent, is not read.
var jsonTypes = []string{"application/json", "application/murano-packages-json-patch", mimeModelPatch}

// mimeModelPatch is the media type of changes of an environment's model.
const mimeModelPatch = "application/env-model-json-patch"

// readBody decodes a JSON body of at most so many values, before any other part of the request is checked.
func readBody(values int) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := decodeBody(c, values); err != nil {
				return err
			}
			return next(c)
		}
	}
}

func decodeBody(c echo.Context, values int) error {
	request := c.Request()
	if request.ContentLength == 0 || request.Body == http.NoBody {
		return nil
	}
	given := request.Header.Get(echo.HeaderContentType)
	mediaType, _, err := mime.ParseMediaType(given)
	if given == "" {
		mediaType, err = "text/plain", nil // the default type of a body
	}
	switch {
	case err == nil && mediaType == echo.MIMEMultipartForm:
		return nil
	case err == nil && slices.Contains(jsonTypes, mediaType):
	default:
		return unsupported(mediaType)
	}
	raw, err := door.ReadAll(request.Body, maxJSON, "the request body")
	if door.IsExceeded(err) {
		return fault.New(fault.TooLarge, "The request body is larger than %d bytes", maxJSON)
	}
	if err != nil {
		return unreadable(err)
	}
	request.Body = io.NopCloser(bytes.NewReader(raw)) // for handlers that decode it themselves
	if len(raw) == 0 {
		return nil
	}
	if err := identify(c, raw); err != nil {
		return err
	}
	count, err := checkJSON(raw, values)
	if err == nil {
		err = holds(c, int64(count)*valueBytes)
	}
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.Decode(new(any)) != io.EOF {
		return fault.New(fault.Invalid, "Malformed request body")
	}
	c.Set(keyBody, decoded{yaql.FromJSON(value)})
	return nil
}

func unsupported(mediaType string) error {
	return &refusal{status: http.StatusUnsupportedMediaType, whole: true,
		explanation: fmt.Sprintf("The request media type %s is not supported by this server. ", mediaType), detail: "Unsupported Content-Type"}
}

// unreadable returns the reason why a body could not be read: it is too large, came too slowly, or was interrupted.
func unreadable(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{status: http.StatusRequestTimeout, explanation: "The request body did not come in time."}
	}
	return fault.New(fault.Invalid, "The request body could not be read: %w", err)
}

// valueBytes is how many bytes of memory a decoded value takes at most.
const valueBytes = 150

type decoded struct{ value any }

// body returns the decoded JSON body; false when there was none.
func body(c echo.Context) (any, bool) {
	d, ok := c.Get(keyBody).(decoded)
	return d.value, ok
}

// offers are the media types of the routes that do not answer JSON.
var offers = map[string]string{
	"/v1/catalog/packages/:id/ui":            "text/plain",
	"/v1/catalog/packages/:id/logo":          echo.MIMEOctetStream,
	"/v1/catalog/packages/:id/supplier_logo": echo.MIMEOctetStream,
	"/v1/catalog/packages/:id/download":      echo.MIMEOctetStream,
}

// negotiate refuses a request that would not take the media type that its route answers with: one other than JSON, or JSON and XML, of
// which a path's end can name one too.
func negotiate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if !routed(c) {
			return next(c)
		}
		accept := c.Request().Header.Get(echo.HeaderAccept)
		offer := offers[c.Path()]
		if offer == "" {
			offer = echo.MIMEApplicationJSON
			asks := quality(accept, echo.MIMEApplicationXML) > quality(accept, offer)
			switch path.Ext(c.Request().URL.Path) {
			case ".json":
				accept = offer
			case ".xml":
				accept, asks = echo.MIMEApplicationXML, true
			}
			if asks {
				return asXML(next)(c)
			}
		}
		if accept != "" && quality(accept, offer) == 0 {
			return &refusal{status: http.StatusNotAcceptable, whole: true,
				explanation: fmt.Sprintf("The resource could not be generated that was acceptable to your browser\n(content of type %s. ", accept),
				detail:      "Acceptable response can not be provided"}
		}
		return next(c)
	}
}

// routed reports whether the request's path has a handler. A group with middleware answers unknown paths by a route of its own whose path ends in a
// wildcard, or that has none.
func routed(c echo.Context) bool {
	route := c.Path()
	return route != "" && route != "/v1" && route != "/v1/*"
}

// quality is how much an Accept header likes a media type: 0 (not at all) to 1 (RFC 9110, section 12.5.1; the most specific
// range decides).
func quality(accept, offer string) float64 {
	major, _, _ := strings.Cut(offer, "/")
	best, specific := 0.0, -1
	for part := range strings.SplitSeq(accept, ",") {
		name, parameters, _ := strings.Cut(part, ";")
		rank := slices.Index([]string{"*/*", major + "/*", offer}, strings.ToLower(strings.TrimSpace(name)))
		if rank <= specific {
			continue
		}
		q := 1.0
		for parameter := range strings.SplitSeq(parameters, ";") {
			if value, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
				if parsed, err := strconv.ParseFloat(value, 64); err == nil {
					q = parsed
				}
			}
		}
		best, specific = q, rank
	}
	return best
}

// pathBelow returns the decoded segments of the request's path after the route's own; empty segments are left out.
func pathBelow(c echo.Context) ([]string, error) {
	own := strings.Count(strings.TrimSuffix(c.Path(), "*"), "/")
	if !strings.HasSuffix(c.Path(), "*") {
		return nil, nil
	}
	var path []string
	for i, segment := range strings.Split(c.Request().URL.EscapedPath(), "/") {
		if i < own || segment == "" {
			continue
		}
		name, err := url.PathUnescape(segment)
		if err != nil {
			return nil, fault.New(fault.Invalid, "The path segment %q is not escaped well", segment)
		}
		path = append(path, name)
	}
	return path, nil
}
