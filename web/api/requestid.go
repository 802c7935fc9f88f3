package api

import (
	"context"
	"log/slog"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/requestid"
)

// requestIDHeader is on every answer.
const requestIDHeader = requestid.Header

// requestID gives the request the caller's id, so that one id leads through the logs of several services, or a new one when the
// caller sent none of the right form.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		id := request.Header.Get(requestIDHeader)
		if !requestid.Valid(id) {
			id = requestid.New()
		}
		c.Response().Header().Set(requestIDHeader, id)
		c.SetRequest(request.WithContext(requestid.With(request.Context(), id)))
		return next(c)
	}
}

// LogHandler adds to every line that is written on behalf of a request its id, as "request_id".
func LogHandler(handler slog.Handler) slog.Handler { return logHandler{handler} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	if id := requestid.From(ctx); id != "" {
		record = record.Clone()
		record.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
