package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// Answer answers the questions of a master's program on a connection to it, until the connection or ctx ends. person returns the user with a token; its error is
// Refused for a token that signs no user in.
func Answer(ctx context.Context, line net.Conn, person func(ctx context.Context, token string) (Person, error)) {
	one := &single{conns: make(chan net.Conn, 1), over: make(chan struct{}), address: line.LocalAddr()}
	conn := &lineConn{Conn: line, end: sync.OnceFunc(func() { close(one.over) })}
	one.conns <- conn
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	server := &http.Server{Handler: answering{person, make(chan struct{}, mostAtOnce), rate.NewLimiter(mostPerSecond, mostBurst)}, Protocols: plain(), HTTP2: watched(), MaxHeaderBytes: mostReview,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	defer server.Close()
	_ = server.Serve(one) // until the connection ends
}

// single is a listener that has one connection, and ends with it.
type single struct {
	conns   chan net.Conn
	over    chan struct{}
	address net.Addr
}

func (s *single) Accept() (net.Conn, error) {
	select {
	case conn := <-s.conns:
		return conn, nil
	case <-s.over:
		return nil, net.ErrClosed
	}
}

func (s *single) Close() error { return nil }

func (s *single) Addr() net.Addr { return s.address }

// answering answers one master. The machine is the tenant's, so that it is trusted with no more than its tokens.
type answering struct {
	person func(ctx context.Context, token string) (Person, error)
	places chan struct{}
	pace   *rate.Limiter
}

func (a answering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostReview)).Decode(&asked); r.Method != http.MethodPost || err != nil {
		http.Error(w, "this is no question for the user with a token", http.StatusBadRequest)
		return
	}
	if why := unlikely(asked.Token); why != "" {
		http.Error(w, why, http.StatusUnauthorized)
		return
	}
	select {
	case a.places <- struct{}{}:
		defer func() { <-a.places }()
	default:
		http.Error(w, "too many tokens are tried at once", http.StatusTooManyRequests)
		return
	}
	if !a.pace.Allow() {
		http.Error(w, "too many tokens are tried", http.StatusTooManyRequests)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	found, err := a.person(ctx, asked.Token)
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		http.Error(w, refused.Reason, http.StatusUnauthorized)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		found.Groups = found.Groups[:min(len(found.Groups), mostGroups)]
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(found)
	}
}
