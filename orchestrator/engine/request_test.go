package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/requestid"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/engine/enginetest"
)

func TestTheRequestThatSubmittedATaskIsNamedByAllThatComesOfIt(t *testing.T) {
	h := newHouse(t)
	h.stop()
	var mutex sync.Mutex
	var log bytes.Buffer
	var seen []string // by native methods, whose calls of the cloud have this context
	h.logger = slog.New(requestid.LogHandler(slog.NewJSONHandler(lockedWriter{&mutex, &log}, nil)))
	world := h.world
	h.packages, _ = enginetest.Packages()
	h.natives = func(r *engine.Runtime) muranopl.Natives {
		natives := world.Natives(r)
		for _, classes := range natives {
			for _, methods := range classes {
				for name, method := range methods {
					methods[name] = func(ctx context.Context, call muranopl.Call) (any, error) {
						mutex.Lock()
						seen = append(seen, requestid.From(ctx))
						mutex.Unlock()
						r.Logger().InfoContext(ctx, "a native method")
						return method(ctx, call)
					}
				}
			}
		}
		return natives
	}
	h.start()
	id := h.create("one")
	session, err := h.service.Sessions().Open(t.Context(), demo, id)
	require.NoError(t, err)
	broken := application("a1", "alpha", map[string]any{"fail": true})
	require.NoError(t, h.service.Models().PutServices(t.Context(), demo, id, session.ID, nil, []any{broken}, false))
	request := requestid.New()
	require.NoError(t, h.service.Sessions().Deploy(requestid.With(t.Context(), request), demo, id, session.ID))
	deployment := h.ended(id)
	h.stop()

	row, err := h.store.Tasks().Get(t.Context(), deployment.ID)
	require.NoError(t, err)
	require.Equal(t, request, row.RequestID)
	require.NotEmpty(t, seen)
	for _, one := range seen {
		require.Equal(t, request, one)
	}
	lines := 0
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, deployment.ID) || strings.Contains(line, "a native method") {
			lines++
			require.Equal(t, 1, strings.Count(line, `"request_id":"`+request+`"`), line)
		}
	}
	require.GreaterOrEqual(t, lines, 3)
	reports := h.reports(id, deployment)
	for _, report := range reports {
		if report.Level == "error" {
			require.NotNil(t, report.Details)
			require.Contains(t, *report.Details, "Request: "+request)
		}
	}
}

type lockedWriter struct {
	mutex *sync.Mutex
	to    *bytes.Buffer
}

func (w lockedWriter) Write(text []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.to.Write(text)
}
