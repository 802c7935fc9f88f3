package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"
)

// Check is a check of something that the server needs for its work.
type Check struct {
	Name  string
	Check func(context.Context) error
}

const (
	// checkPatience is how long a check may take.
	checkPatience = 5 * time.Second
	// checkAge is how long its result is valid: the endpoint is public, and no more requests than this reach database and Keystone.
	checkAge = time.Second
)

// readiness answers /readyz: 200 when the server can work, else 503, in both cases with the result of each check. The reason of a failure is in the log
// only, because the endpoint is public.
type readiness struct {
	checks []Check
	log    *slog.Logger

	mutex   sync.Mutex
	asked   time.Time
	results map[string]string
	ready   bool
}

func (r *readiness) handle(c echo.Context) error {
	results, ready := r.state(c.Request().Context())
	status := http.StatusOK
	if !ready {
		status = http.StatusServiceUnavailable
	}
	return c.JSON(status, struct {
		Checks map[string]string `json:"checks"`
		Ready  bool              `json:"ready"`
	}{results, ready})
}

func (r *readiness) state(ctx context.Context) (map[string]string, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.results != nil && time.Since(r.asked) < checkAge {
		return r.results, r.ready
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkPatience)
	defer cancel()
	failures := make([]error, len(r.checks))
	var group errgroup.Group
	for i, check := range r.checks {
		group.Go(func() error {
			failures[i] = check.Check(ctx)
			return nil
		})
	}
	_ = group.Wait() // each check keeps its own
	r.results, r.ready = map[string]string{}, true
	for i, check := range r.checks {
		r.results[check.Name] = "ok"
		if failures[i] != nil {
			r.log.WarnContext(ctx, "the server is not ready", "check", check.Name, "error", failures[i])
			r.results[check.Name], r.ready = "failed", false
		}
	}
	r.asked = time.Now()
	return r.results, r.ready
}
