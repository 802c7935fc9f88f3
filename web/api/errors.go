package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/web/auth"
)

// statusOf is the one place where kinds of faults become HTTP statuses.
func statusOf(kind fault.Kind) int {
	switch kind {
	case fault.Invalid:
		return http.StatusBadRequest
	case fault.Unauthorized:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.TooLarge:
		return http.StatusRequestEntityTooLarge
	case fault.TooMany:
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// statusGone is for logs and metrics: the client has gone before the answer (nginx's status).
const statusGone = 499

// refusal is an answer in the shape that WebOb, Murano's HTTP library, gives to errors.
type refusal struct {
	status      int
	explanation string
	detail      string
	whole       bool // the text ends with the detail (WebOb's own templates of 406 and 415)
}

func (r *refusal) Error() string { return strings.TrimSpace(r.explanation + " " + r.detail) }

// failing is an answer in the shape that Murano's own wrapper gives to errors that its code does not expect.
type failing struct {
	status int
	kind   string // the name of Murano's exception
	err    error
}

func (f *failing) Error() string { return f.err.Error() }

func (f *failing) Unwrap() error { return f.err }

func (f *failing) write(c echo.Context) error {
	answer := wrapped{Code: f.status, Title: http.StatusText(f.status), Explanation: explanations[f.status]}
	answer.Error.Message, answer.Error.Type = f.Error(), f.kind
	text, err := json.Marshal(answer) // it writes < and > as \u003c and \u003e: no text of a caller is read as HTML
	if err != nil {
		return err
	}
	// Murano calls this JSON text/html, and python-muranoclient fails over JSON whose members are not all objects.
	c.Response().Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	return c.Blob(f.status, "text/html; charset=UTF-8", text)
}

// wrapped is the body of Murano's own wrapper.
type wrapped struct {
	Error struct {
		Message   string  `json:"message"`
		Type      string  `json:"type"`
		Traceback *string `json:"traceback"`
	} `json:"error"`
	Code        int    `json:"code"`
	Title       string `json:"title"`
	Explanation string `json:"explanation"`
}

// explanations are WebOb's own words for statuses.
var explanations = map[int]string{
	http.StatusBadRequest:         "The server could not comply with the request since it is either malformed or otherwise incorrect.",
	http.StatusForbidden:          "Access was denied to this resource.",
	http.StatusNotFound:           "The resource could not be found.",
	http.StatusConflict:           "There was a conflict when trying to complete your request.",
	http.StatusTooManyRequests:    "There are too many requests at once.",
	http.StatusServiceUnavailable: "The server is currently unavailable. Please try again at a later time.",
}

// detailed makes the answer of a fault in which WebOb's own words come first, and the cause after them. Other errors stay.
func detailed(err error) error {
	if fault.KindOf(err) == 0 {
		return err
	}
	status := statusOf(fault.KindOf(err))
	return &refusal{status: status, explanation: explanations[status], detail: err.Error()}
}

// notFound is the answer to a path or a method without a route.
var notFound = refusal{status: http.StatusNotFound, explanation: explanations[http.StatusNotFound]}

func errorHandler(config Config) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if c.Response().Committed {
			return // accessLog has written it, or the answer had begun
		}
		if err := writeError(config, c, err); err != nil {
			config.Logger.DebugContext(c.Request().Context(), "an error could not be answered", "error", err)
		}
	}
}

func writeError(config Config, c echo.Context, err error) error {
	if c.Request().ContentLength != 0 && c.Get(keyRead) == nil {
		c.Response().Header().Set("Connection", "close") // the client need not send the rest of a body that is not read
	}
	var unknown notAuthenticated
	var refused *refusal
	var unexpected *failing
	var routing *echo.HTTPError
	var large *http.MaxBytesError
	var model *orchestrator.InvalidModel
	var often *auth.TooMany
	var unreachable *auth.Unreachable
	var none *memory.None
	kind, away := fault.KindOf(err), openstack.AwayOf(err)
	switch {
	case errors.As(err, &unknown):
		return writeUnauthenticated(config, c, unknown.error)
	case errors.As(err, &unreachable):
		return writeUnauthenticated(config, c, err)
	case away != nil:
		return writeAway(config, c, away, err)
	case errors.As(err, &often):
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(often.Seconds()))
		return (&refusal{status: http.StatusTooManyRequests, explanation: often.Error()}).write(c)
	case errors.As(err, &none):
		return writeNoMemory(c, none)
	case errors.As(err, &refused):
		return refused.write(c)
	case errors.As(err, &unexpected):
		return unexpected.write(c)
	case errors.As(err, &model):
		return c.JSON(http.StatusBadRequest, wrongModelJSON{http.StatusBadRequest, err.Error(), problems(model.Problems), http.StatusText(http.StatusBadRequest)})
	case errors.As(err, &large):
		return (&refusal{status: http.StatusRequestEntityTooLarge, explanation: fmt.Sprintf("The request body is larger than %d bytes", large.Limit)}).write(c)
	case kind == fault.Unauthorized: // the caller is known, but lacks the right
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge(config))
		return (&refusal{status: statusOf(kind), explanation: err.Error()}).write(c)
	case kind != 0:
		return (&refusal{status: statusOf(kind), explanation: err.Error()}).write(c)
	case errors.As(err, &routing) && (routing.Code == http.StatusNotFound || routing.Code == http.StatusMethodNotAllowed):
		// Murano's router knows no 405: a method without a route is an unknown route.
		return notFound.write(c)
	case errors.As(err, &routing) && routing.Code < http.StatusInternalServerError:
		return (&refusal{status: routing.Code, explanation: fmt.Sprint(routing.Message)}).write(c)
	}
	ctx := c.Request().Context()
	switch {
	case context.Cause(ctx) == errTooSlow:
		config.Logger.WarnContext(ctx, "a request took too long", "method", c.Request().Method, "path", door.Cut(c.Request().URL.Path, maxPath), "error", err)
		c.Response().Header().Set(echo.HeaderRetryAfter, "5")
		return (&refusal{status: http.StatusServiceUnavailable,
			explanation: fmt.Sprintf("The request could not be answered within %s; try again later.", config.Limits.Time)}).write(c)
	case ctx.Err() != nil:
		return c.NoContent(statusGone)
	}
	id := c.Response().Header().Get(requestIDHeader)
	config.Logger.ErrorContext(ctx, "a request failed", "method", c.Request().Method, "path", door.Cut(c.Request().URL.Path, maxPath), "error", err)
	return c.JSON(http.StatusInternalServerError, internalErrorJSON{
		Code: http.StatusInternalServerError, Error: tracedJSON{Message: "The server's log says why, under " + id, Type: "InternalError"},
		Explanation: "The server has either erred or is incapable of performing the requested operation.",
		Title:       http.StatusText(http.StatusInternalServerError),
	})
}

// comeAgain is the default number of seconds after which a client may ask again.
const comeAgain = 5

// cloudServices are people's names for the services of a cloud.
var cloudServices = map[string]string{"identity": "Keystone", "orchestration": "Heat", "compute": "Nova", "network": "Neutron", "image": "Glance"}

// writeAway answers a request for which the cloud was needed while one of its services is away. Such requests ask the cloud before they write
// anything.
func writeAway(config Config, c echo.Context, away *openstack.Away, err error) error {
	config.Logger.WarnContext(c.Request().Context(), "a request failed because a service of the cloud is away", "method", c.Request().Method,
		"path", door.Cut(c.Request().URL.Path, maxPath), "service", away.Service, "error", err)
	text := fmt.Sprintf("%s, the cloud's service of type %s, cannot be used now: %s.", cmp.Or(cloudServices[away.Service], "A service"), away.Service, away.Reason())
	if method := c.Request().Method; method != http.MethodGet && method != http.MethodHead {
		text += " Nothing was queued and nothing was changed."
	}
	after := max(comeAgain, int(math.Ceil(away.RetryAfter().Seconds())))
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(after))
	return (&refusal{status: http.StatusServiceUnavailable, explanation: text, detail: fmt.Sprintf("Try again in %d seconds.", after)}).write(c)
}

// refusalJSON is an error below /burano/v1, and within that of a call without a token.
type refusalJSON struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Title   string `json:"title"`
}

// muranoRefusalJSON is an error of Murano's routes.
type muranoRefusalJSON struct {
	Code    string `json:"code"` // such as "404 Not Found"
	Message string `json:"message"`
	Title   string `json:"title"`
}

// unauthenticatedJSON is an error as keystonemiddleware writes it.
type unauthenticatedJSON struct {
	Error refusalJSON `json:"error"`
}

// wrongModelJSON is the error of a model that breaks rules of its classes.
type wrongModelJSON struct {
	Code        int           `json:"code"`
	Explanation string        `json:"explanation"`
	Problems    []problemJSON `json:"problems"`
	Title       string        `json:"title"`
}

// internalErrorJSON is the error of a request that failed for a defect of the server or of its services.
type internalErrorJSON struct {
	Code        int        `json:"code"`
	Error       tracedJSON `json:"error"`
	Explanation string     `json:"explanation"`
	Title       string     `json:"title"`
}

// tracedJSON is Murano's form of an exception.
type tracedJSON struct {
	Message   string  `json:"message"`
	Traceback *string `json:"traceback"`
	Type      string  `json:"type"`
}

// challenge names the place to get a token; keystonemiddleware adds it to every 401.
func challenge(config Config) string { return fmt.Sprintf("Keystone uri=%q", config.Keystone) }

// writeUnauthenticated answers as keystonemiddleware does.
func writeUnauthenticated(config Config, c echo.Context, err error) error {
	if errors.Is(c.Request().Context().Err(), context.Canceled) {
		return c.NoContent(statusGone)
	}
	status, message := http.StatusUnauthorized, "The request you have made requires authentication."
	if fault.KindOf(err) != fault.Unauthorized {
		status, message = http.StatusServiceUnavailable, "Keystone could not be asked who is calling; try again later."
		c.Response().Header().Set(echo.HeaderRetryAfter, "5")
		config.Logger.ErrorContext(c.Request().Context(), "a token could not be validated", "error", err)
	} else {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, challenge(config))
	}
	if errors.Is(err, auth.ErrEnded) {
		message = auth.ErrEnded.Error()
	}
	return c.JSON(status, unauthenticatedJSON{refusalJSON{status, message, http.StatusText(status)}})
}

var (
	breaks = regexp.MustCompile(`<br ?/?>`)
	tags   = regexp.MustCompile(`<[^>]*>`)
)

// escape escapes as Python's html.escape does, whose escapes of quotes are in the recorded answers.
func escape(text string) string {
	return strings.NewReplacer("&#39;", "&#x27;", "&#34;", "&quot;").Replace(html.EscapeString(text))
}

// maxRefusal is how many bytes of an error are answered: it may quote the request.
const maxRefusal = 64 << 10

// ownPrefix begins the paths of Burano's additions to Murano's API.
const ownPrefix = "/burano/"

// write answers below /burano/v1 with JSON and plain words; elsewhere with HTML, JSON or text, whichever the caller asks for, and by default with text.
func (r *refusal) write(c echo.Context) error {
	end := "\n\n\n"
	if r.whole {
		end = ""
	}
	text := func(explanation, detail string) string {
		middle := "<br /><br />\n"
		return explanation + middle + detail + strings.TrimPrefix(end, "\n")
	}
	title := http.StatusText(r.status)
	status := fmt.Sprintf("%d %s", r.status, title)
	if c.Request().Method == http.MethodHead {
		return c.NoContent(r.status)
	}
	if len(r.explanation)+len(r.detail) > maxRefusal {
		r = &refusal{status: r.status, explanation: door.Cut(r.explanation, maxRefusal), detail: door.Cut(r.detail, maxRefusal), whole: r.whole}
	}
	if strings.HasPrefix(c.Request().URL.Path, ownPrefix) {
		return c.JSON(r.status, refusalJSON{r.status, r.Error(), title})
	}
	accept := c.Request().Header.Get(echo.HeaderAccept)
	htmlQuality, jsonQuality := 0.0, 0.0
	if accept != "" {
		htmlQuality, jsonQuality = quality(accept, echo.MIMETextHTML), quality(accept, "application/json")
	}
	switch {
	case htmlQuality > 0 && htmlQuality >= jsonQuality:
		return c.HTML(r.status, "<html>\n <head>\n  <title>"+status+"</title>\n </head>\n <body>\n  <h1>"+status+"</h1>\n  "+
			text(escape(r.explanation), escape(r.detail))+"\n </body>\n</html>")
	case jsonQuality > 0:
		return c.JSON(r.status, muranoRefusalJSON{status, text(r.explanation, r.detail), title})
	}
	// Text in angle brackets is removed as a tag, as WebOb does: also Murano's ids of sessions.
	plain := strings.ReplaceAll(text(r.explanation, r.detail), "\n", " ")
	plain = html.UnescapeString(tags.ReplaceAllString(breaks.ReplaceAllString(plain, "\n"), ""))
	return c.String(r.status, status+"\n\n"+plain)
}
