package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// errUnread reports that a client does not read its answer.
var errUnread = errors.New("the client does not read")

// eventStream is an answer of server-sent events (WHATWG HTML, section 9.2). A client that reads nothing is disconnected, with
// errUnread.
type eventStream struct {
	response   *echo.Response
	controller *http.ResponseController
	unread     time.Duration
}

func newEventStream(c echo.Context, limits Limits) *eventStream {
	return &eventStream{response: c.Response(), controller: http.NewResponseController(c.Response()), unread: limits.Unread}
}

// close lets the connection go on for other requests; tests' recorders know no deadline.
func (s *eventStream) close() { _ = s.controller.SetWriteDeadline(time.Time{}) }

// send sends an event; the id may be "".
func (s *eventStream) send(name, id string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return s.write("event: " + name + "\n" + id + "data: " + string(text) + "\n\n")
}

// comeBack is the reconnection time for followers of a stream, in milliseconds.
const comeBack = "1000"

// leave ends the stream of a stopping server: the follower should reconnect soon, to another server or to the next one here. It returns nil when ctx ended
// for another reason, for example because the client has gone.
func (s *eventStream) leave(ctx context.Context) error {
	if !errors.Is(context.Cause(ctx), errLeaving) {
		return nil
	}
	if !s.response.Committed {
		s.response.Header().Set(echo.HeaderRetryAfter, "1")
		return errLeaving
	}
	_ = s.write("retry: " + comeBack + "\n\n") // the client may have gone, too
	return nil
}

// idle sends a comment, so that no proxy closes the connection as dead.
func (s *eventStream) idle() error { return s.write(":\n\n") }

func (s *eventStream) write(text string) error {
	if !s.response.Committed {
		s.response.Header().Set(echo.HeaderContentType, "text/event-stream")
		s.response.Header().Set(echo.HeaderCacheControl, "no-store")
		s.response.WriteHeader(http.StatusOK)
	}
	if err := s.controller.SetWriteDeadline(time.Now().Add(s.unread)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return errUnread
	}
	if _, err := s.response.Write([]byte(text)); err != nil {
		return errUnread
	}
	if err := s.controller.Flush(); err != nil {
		return errUnread
	}
	return nil
}
