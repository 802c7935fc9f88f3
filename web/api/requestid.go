package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"regexp"

	"github.com/labstack/echo/v4"
)

// requestIDHeader is on every answer (OpenStack API guideline).
const requestIDHeader = "X-Openstack-Request-Id"

// requestIDForm is what OpenStack's middleware takes from a caller (oslo.middleware, request_id).
var requestIDForm = regexp.MustCompile(`^req-[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$`)

type requestIDKey struct{}

// requestID gives the request the caller's id, so that one id leads through the logs of several services, or a new one when the
// caller sent none of the right form.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		id := request.Header.Get(requestIDHeader)
		if !requestIDForm.MatchString(id) {
			id = newRequestID()
		}
		c.Response().Header().Set(requestIDHeader, id)
		c.SetRequest(request.WithContext(context.WithValue(request.Context(), requestIDKey{}, id)))
		return next(c)
	}
}

func newRequestID() string {
	var raw [16]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("req-%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

// LogHandler adds to every line that is written on behalf of a request its id, as "request_id".
func LogHandler(handler slog.Handler) slog.Handler { return logHandler{handler} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	if id, ok := ctx.Value(requestIDKey{}).(string); ok {
		record = record.Clone()
		record.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
