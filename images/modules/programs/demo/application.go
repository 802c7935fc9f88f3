package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// application answers requests until its context ends, and then leaves without losing one. It goes on accepting, since routers learn of its end only
// later. It asks every client to open a new connection next time, and ends when no request has come for the time quiet, at the latest after the time
// grace. Health checks are no requests: they go on for as long as it lives.
type application struct {
	name  string
	log   *slog.Logger
	quiet time.Duration
	grace time.Duration
}

const healthPath = "/healthz"

// longest is the longest delay that a request to /slow may ask for.
const longest = 20 * time.Second

func (a application) serve(ctx context.Context, listener net.Listener) error {
	traffic := newTraffic()
	server := &http.Server{
		Handler:           traffic.watch(ctx, a.handler()),
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	a.log.Info("leaving: serving on until it is quiet", "quiet", a.quiet, "grace", a.grace)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.grace)
	defer cancel()
	traffic.waitQuiet(end, a.quiet)
	if err := server.Shutdown(end); err != nil {
		a.log.Warn("leaving with requests unfinished", "error", err)
		return errors.Join(server.Close())
	}
	a.log.Info("left")
	return nil
}

func (a application) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
		wait, err := time.ParseDuration(r.URL.Query().Get("for"))
		if err != nil || wait < 0 || wait > longest {
			http.Error(w, fmt.Sprintf("say for how long, up to %s, as in /slow?for=2s", longest), http.StatusBadRequest)
			return
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			fmt.Fprintf(w, "Hello from %s, after %s\n", a.name, wait)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "Hello from %s\nThis application was deployed by Burano. Your request came from %s.\n", a.name, r.RemoteAddr)
	})
	return mux
}

// traffic knows how many requests are being answered and when the last one began or ended.
type traffic struct {
	mutex   sync.Mutex
	running int
	last    time.Time
}

func newTraffic() *traffic { return &traffic{last: time.Now()} }

func (t *traffic) touch() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.last = time.Now()
}

// watch counts requests, and once leaving has ended it closes each connection after its answer.
func (t *traffic) watch(leaving context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != healthPath {
			t.add(1)
			defer t.add(-1)
		}
		if leaving.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func (t *traffic) add(requests int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.running += requests
	t.last = time.Now()
}

// waitQuiet returns when no request runs and none has ended for the given time, or when ctx ends.
func (t *traffic) waitQuiet(ctx context.Context, quiet time.Duration) {
	t.touch()
	for {
		left := t.untilQuiet(quiet)
		if left <= 0 {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

func (t *traffic) untilQuiet(quiet time.Duration) time.Duration {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.running > 0 {
		return quiet
	}
	return quiet - time.Since(t.last)
}
