package native

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
)

// reports writes lines of the deployment's log. A line that cannot be written must not end the work that it is about.
type reports struct {
	runtime interface {
		Report(ctx context.Context, object *muranopl.Object, level engine.Level, text, details string) error
	}
	logger *slog.Logger
}

// inform writes a line of level info.
func (r reports) inform(ctx context.Context, object *muranopl.Object, format string, args ...any) {
	r.write(ctx, object, engine.LevelInfo, fmt.Sprintf(format, args...), "")
}

// warn writes a line of level warning, which also marks the deployment's state.
func (r reports) warn(ctx context.Context, object *muranopl.Object, text, details string) {
	r.write(ctx, object, engine.LevelWarning, text, details)
}

func (r reports) write(ctx context.Context, object *muranopl.Object, level engine.Level, text, details string) {
	if err := r.runtime.Report(ctx, object, level, text, details); err != nil {
		r.logger.WarnContext(ctx, "a report was lost", "object", object.ID(), "error", err)
	}
}
