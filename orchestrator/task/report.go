package task

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
)

// Reports writes lines of the deployment's log. A line that cannot be written must not end the work that it is about.
type Reports struct {
	Runtime interface {
		Report(ctx context.Context, object *muranopl.Object, level engine.Level, text, details string) error
	}
	Logger *slog.Logger
}

// Inform writes a line of level info.
func (r Reports) Inform(ctx context.Context, object *muranopl.Object, format string, args ...any) {
	r.Write(ctx, object, engine.LevelInfo, fmt.Sprintf(format, args...), "")
}

// Warn writes a line of level warning, which also marks the deployment's state.
func (r Reports) Warn(ctx context.Context, object *muranopl.Object, text, details string) {
	r.Write(ctx, object, engine.LevelWarning, text, details)
}

// Write writes a line of any level, with details.
func (r Reports) Write(ctx context.Context, object *muranopl.Object, level engine.Level, text, details string) {
	if err := r.Runtime.Report(ctx, object, level, text, details); err != nil {
		r.Logger.WarnContext(ctx, "a report was lost", "object", object.ID(), "error", err)
	}
}
