package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/burano/burano/internal/wait"
)

const (
	// reconnects is how often in a row a stream is asked for again that was cut off, and reconnectPause how long after: a server that
	// is started anew answers again before.
	reconnects     = 30
	reconnectPause = time.Second
	// maxEvent is the largest event that is read: a report with a long stack trace.
	maxEvent = 8 << 20
)

// Event is something that happened to a deployment: a report was made, or its state changed.
type Event struct {
	Report *Report // nil for a change of state
	State  string  // "" for a report
}

// Follow calls event for each report of a deployment (or action), also for earlier ones, and for each change of its state, until it has ended; it returns
// the final state. An interrupted stream is resumed. An error of event ends following, and so does ctx; the deployment continues.
func (c Deployments) Follow(ctx context.Context, deployment string, event func(Event) error) (state string, err error) {
	stream := &eventStream{client: c.client, path: "/burano/v1/deployments/" + deployment + "/events"}
	err = stream.read(ctx, func(name string, data []byte) (bool, error) {
		var changed struct {
			State string `json:"state"`
		}
		switch name {
		case "report":
			var report Report
			if err := json.Unmarshal(data, &report); err != nil {
				return false, fmt.Errorf("read a report of deployment %s: %w", deployment, err)
			}
			return false, event(Event{Report: &report})
		case "state", "end":
			if err := json.Unmarshal(data, &changed); err != nil {
				return false, fmt.Errorf("read the state of deployment %s: %w", deployment, err)
			}
			state = changed.State
			if name == "state" {
				return false, event(Event{State: state})
			}
			return true, nil
		}
		return false, nil
	})
	return state, err
}

// Succeeded reports whether a deployment that ended in this state succeeded, with or without warnings.
func Succeeded(state string) bool { return state == "success" || state == "completed_w_warnings" }

// eventStream reads server-sent events (WHATWG HTML, section 9.2).
type eventStream struct {
	client *Client
	path   string
	last   string // id of the last event
	heard  bool   // since it was last asked for
}

// read calls event for each event until that is done or returns an error. Streams that break off are asked for again; a refusal is an
// error at once, but for one of a token that has ended.
func (s *eventStream) read(ctx context.Context, event func(name string, data []byte) (done bool, err error)) error {
	renewed := false
	for failed := 0; ; {
		s.heard = false
		done, err := s.once(ctx, event)
		switch {
		case done:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("stopped following; the deployment goes on: %w", context.Cause(ctx))
		case IsStatus(err, http.StatusUnauthorized) && !renewed:
			if err := s.client.tokens.Reauthenticate(ctx, s.client.tokens.Token()); err != nil {
				return fmt.Errorf("sign in to Keystone again: %w", err)
			}
			renewed = true
			continue
		}
		var refused *Refusal
		if errors.As(err, &refused) && refused.Status < http.StatusInternalServerError {
			return err
		}
		if s.heard {
			failed, renewed = 0, false
		}
		if failed++; failed > reconnects {
			return fmt.Errorf("the stream of events broke off %d times in a row: %w", failed, err)
		}
		_ = wait.Pause(ctx, reconnectPause) // at the context's end the next try reports it
	}
}

// once reads a stream to its end. Without done, err is the reason of the interruption.
func (s *eventStream) once(ctx context.Context, event func(name string, data []byte) (bool, error)) (done bool, err error) {
	headers := []string{"Accept", "text/event-stream, application/json;q=0.5"}
	if s.last != "" {
		headers = append(headers, "Last-Event-ID", s.last)
	}
	body, err := s.client.open(ctx, untimed(s.client), http.MethodGet, s.path, nil, headers...)
	if err != nil {
		return false, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	var name, id string
	var data []string
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "id":
			id = value
		case "data":
			data = append(data, value)
		}
		if lines.Text() != "" {
			continue
		}
		s.heard = true
		if len(data) > 0 {
			if done, err := event(name, []byte(strings.Join(data, "\n"))); done || err != nil {
				return true, err
			}
		}
		if id != "" {
			s.last = id
		}
		name, id, data = "", "", nil
	}
	if err := lines.Err(); err != nil {
		return false, err
	}
	return false, io.ErrUnexpectedEOF
}
