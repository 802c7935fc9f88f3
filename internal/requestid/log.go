package requestid

import (
	"context"
	"log/slog"
)

// LogHandler adds to every line that is written on behalf of a request its id, as "request_id".
func LogHandler(handler slog.Handler) slog.Handler { return logHandler{handler} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	if id := From(ctx); id != "" {
		record = record.Clone()
		record.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// Logger returns a logger whose lines are on behalf of the request of this id, where their context names no other.
func Logger(logger *slog.Logger, id string) *slog.Logger {
	if id == "" {
		return logger
	}
	return slog.New(onBehalf{logger.Handler(), id})
}

type onBehalf struct {
	slog.Handler
	id string
}

func (h onBehalf) Handle(ctx context.Context, record slog.Record) error {
	if From(ctx) == "" {
		ctx = With(ctx, h.id)
	}
	return h.Handler.Handle(ctx, record)
}

func (h onBehalf) WithAttrs(attrs []slog.Attr) slog.Handler {
	return onBehalf{h.Handler.WithAttrs(attrs), h.id}
}

func (h onBehalf) WithGroup(name string) slog.Handler {
	return onBehalf{h.Handler.WithGroup(name), h.id}
}
