package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/time/rate"

	"github.com/burano/burano/nodes/line"
)

// Answer answers the questions of a master's program on a connection to it, until the connection or ctx ends. person returns the user with a token; its error is
// Refused for a token that signs no user in.
func Answer(ctx context.Context, conn net.Conn, person func(ctx context.Context, token string) (Person, error)) {
	server := &http.Server{Handler: answering{person, make(chan struct{}, mostAtOnce), rate.NewLimiter(mostPerSecond, mostBurst)}, Protocols: plain(), HTTP2: watched(), MaxHeaderBytes: mostReview,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)}
	defer conn.Close()
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	_ = server.Serve(line.New(conn)) // until the connection ends
}

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
