package main

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
)

const (
	// reconnects is how often in a row a stream is asked for again that was cut off, and reconnectPause how long after: a server that
	// is started anew answers again before.
	reconnects     = 30
	reconnectPause = time.Second
	// maxEvent is the largest event that is read: a report with a long stack trace.
	maxEvent = 8 << 20
)

// failedDeployment is a deployment that did not end well.
type failedDeployment struct{ state string }

func (f *failedDeployment) Error() string { return "the deployment ended in state " + f.state }

// follow prints the reports of the environment's newest deployment as they come, until it ends; a deployment that did not end
// well is an error.
func (c *client) follow(ctx context.Context, environment string, output io.Writer) error {
	current, err := c.newestDeployment(ctx, environment)
	if err != nil {
		return err
	}
	return c.followDeployment(ctx, current.ID, output)
}

// followDeployment is follow for one certain deployment, which may be an action's. A stream that breaks off goes on where it was.
func (c *client) followDeployment(ctx context.Context, id string, output io.Writer) error {
	stream := &eventStream{client: c, path: "/burano/v1/deployments/" + id + "/events"}
	state := ""
	err := stream.read(ctx, func(name string, data []byte) (bool, error) {
		switch name {
		case "report":
			var line report
			if err := json.Unmarshal(data, &line); err != nil {
				return false, fmt.Errorf("read a report of deployment %s: %w", id, err)
			}
			fmt.Fprintf(output, "%s  %-7s  %s\n", line.Created, line.Level, line.Text)
		case "end":
			var end deployment
			if err := json.Unmarshal(data, &end); err != nil {
				return false, fmt.Errorf("read the end of deployment %s: %w", id, err)
			}
			state = end.State
			return true, nil
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(output, "deployment %s: %s\n", id, state)
	if state != "success" && state != "completed_w_warnings" {
		return &failedDeployment{state}
	}
	return nil
}

// eventStream reads server-sent events (WHATWG HTML, section 9.2).
type eventStream struct {
	client *client
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
		case isStatus(err, http.StatusUnauthorized) && !renewed:
			if err := s.client.provider.Reauthenticate(ctx, s.client.provider.Token()); err != nil {
				return fmt.Errorf("sign in to Keystone again: %w", err)
			}
			renewed = true
			continue
		}
		var refused *refusal
		if errors.As(err, &refused) && refused.status < http.StatusInternalServerError {
			return err
		}
		if s.heard {
			failed, renewed = 0, false
		}
		if failed++; failed > reconnects {
			return fmt.Errorf("the stream of events broke off %d times in a row: %w", failed, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectPause):
		}
	}
}

// once reads a stream to its end. Without done, err says why it broke off.
func (s *eventStream) once(ctx context.Context, event func(name string, data []byte) (bool, error)) (done bool, err error) {
	headers := []string{"Accept", "text/event-stream, application/json;q=0.5"}
	if s.last != "" {
		headers = append(headers, "Last-Event-ID", s.last)
	}
	body, err := s.client.open(ctx, &http.Client{Transport: s.client.http.Transport}, http.MethodGet, s.path, nil, headers...) // it has no limit of time
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
