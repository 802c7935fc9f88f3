package api

import (
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

// keyNoted is the key of a request's *running in its context.
const keyNoted = "noted"

// running is a request whose note the server's next start finds.
type running struct {
	box  *blackbox.Box
	note *blackbox.Note
}

// noted records each request while it is answered, except streams, which wait, and public ones.
func noted(box *blackbox.Box) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if box == nil {
			return next
		}
		return func(c echo.Context) error {
			request := c.Request()
			if open[request.URL.Path] || isStream(request.URL.Path) {
				return next(c)
			}
			note := box.Begin(blackbox.Work{Kind: blackbox.Request, What: door.Cut(request.Method+" "+request.URL.Path, maxPath)})
			defer note.End()
			c.Set(keyNoted, &running{box, note})
			return next(c)
		}
	}
}

// identified records the identity of a request for its note. Requests without a body are identified by their address;
// identify is for the others.
func identified(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		noted, _ := c.Get(keyNoted).(*running)
		if noted == nil {
			return next(c)
		}
		request := c.Request()
		if request.ContentLength == 0 || request.Body == http.NoBody {
			if err := identify(c, nil); err != nil {
				return err
			}
			return next(c)
		}
		_, caller := calling(c)
		noted.note.Change(func(work *blackbox.Work) { work.Project = caller.ProjectID })
		return next(c)
	}
}

// identify records a request's content, before it is parsed, and refuses it when the same one ended servers.
func identify(c echo.Context, content []byte) error {
	noted, _ := c.Get(keyNoted).(*running)
	if noted == nil {
		return nil
	}
	_, caller := calling(c)
	request := c.Request()
	key := blackbox.Key([]byte(caller.ProjectID), []byte(request.Method), []byte(request.URL.RequestURI()), content)
	if !noted.box.Refused(key) {
		noted.note.Change(func(work *blackbox.Work) { work.Project, work.Key = caller.ProjectID, key })
		return nil
	}
	what := "request"
	if kind, _, _ := mime.ParseMediaType(request.Header.Get(echo.HeaderContentType)); kind == echo.MIMEMultipartForm && strings.HasPrefix(c.Path(), "/v1/catalog") {
		what = "package"
	}
	return fault.New(fault.Forbidden, "This %s ended the server twice while the server did nothing else, or four times: it is refused for a day after the last time, "+
		"or until another version of Burano runs. Change it, and give it to the operator, whose log names it (\"the former process died\")", what)
}
