package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/web/gate"
)

// crowd limits simultaneous requests, by phases, so that they do not block each other. A request is in one phase at a time. They are: strangers,
// while the caller is not known; sending of the body; work, or a stream; and, from the first byte of its answer on, reading of the answer. So a slow
// sender or reader takes no place from requests in work, and in each phase a project, or a stranger's address, leaves places to others.
type crowd struct {
	unknown, reading, requests, streams, sending *gate.Places

	memory  *memory.Budget
	address echo.IPExtractor
	known   func(*http.Request) bool
	time    time.Duration // of a request
}

// aside is how many requests may send their body, and how many may read their answer, for each request in work.
const aside = 2

func newCrowd(config Config) *crowd {
	limits := config.Limits
	return &crowd{unknown: gate.NewPlaces(limits.Strangers, 0), reading: gate.NewPlaces(aside*limits.Requests, 0), requests: gate.NewPlaces(limits.Requests, limits.ProjectRequests),
		streams: gate.NewPlaces(limits.Streams, limits.ProjectStreams), sending: gate.NewPlaces(aside*limits.Requests, 0),
		memory: config.Memory, address: config.Address, known: config.Known, time: limits.Time}
}

const (
	// strangersTime is how long the body of an unknown caller may take.
	strangersTime = 10 * time.Second
	// fullTime is for how long all places are taken, or memory is short, before the server reports that it is not
	// ready.
	fullTime = 5 * time.Second
)

// keyRead is the key in a request's context that marks its body as read.
const keyRead = "read"

// checks fail when the server has no room.
func (w *crowd) checks() []Check {
	return []Check{
		{Name: "requests", Check: func(context.Context) error {
			if full := max(w.requests.Full(), w.unknown.Full()); full > fullTime {
				return fmt.Errorf("no place for a request has been free for %s", full.Round(time.Second))
			}
			return nil
		}},
		{Name: "memory", Check: func(context.Context) error {
			if short := w.memory.Short(); short > fullTime {
				return fmt.Errorf("memory has been short for %s", short.Round(time.Second))
			}
			return nil
		}},
	}
}

// stranger takes a place for a request of an unknown caller.
func (w *crowd) stranger(c echo.Context) (leave func(), err error) {
	leave, err = w.unknown.Take(network(w.address(c.Request())))
	if err != nil {
		c.Response().Header().Set(echo.HeaderRetryAfter, "1")
		return nil, errBusy
	}
	return leave, nil
}

// network is the key by which strangers are counted: an address of IPv4, or a whole network of IPv6, since a host there
// owns one.
func network(address string) string {
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.Unmap().Is6() {
		return netip.PrefixFrom(parsed.WithZone(""), 64).Masked().String()
	}
	return address
}

// alwaysAnswered are the paths that take no place: they cost nothing, and monitors get an answer when the server is busy.
var alwaysAnswered = map[string]bool{"/healthz": true, "/readyz": true}

// strangers answers requests that need no caller: their small body is read first, and then they have a place.
func (w *crowd) strangers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if alwaysAnswered[c.Request().URL.Path] {
			return next(c)
		}
		if err := fetch(c, maxProof+1, nil); err != nil {
			return err
		}
		// The work may take longer than the body; tests' recorders know no deadline.
		_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(w.time))
		leave, err := w.stranger(c)
		if err != nil {
			return err
		}
		defer leave()
		c.Response().Before(leave)
		return next(c)
	}
}

// holds accounts for bytes that the request holds until it has been answered. Few bytes are not counted.
func holds(c echo.Context, bytes int64) error {
	if bytes > uncounted {
		return memory.Of(c.Request().Context()).Take(bytes)
	}
	return nil
}

const uncounted = 64 << 10

// shared gives a request of a known caller its places.
func (w *crowd) shared(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, caller := calling(c)
		if c.Get(keyAuthenticated) == nil {
			return next(c)
		}
		owner := ownerOf(caller)
		account, err := w.memory.Open(owner)
		if err != nil {
			return err
		}
		defer account.Close()
		c.SetRequest(c.Request().WithContext(memory.With(ctx, account)))
		kept := false
		keep := func() (rest func()) { kept = true; return gate.Use(ctx) }
		if c.Request().ContentLength != 0 && !isUpload(c.Request()) {
			leave, err := w.reading.Take(owner)
			if err != nil {
				return refused(c, err, owner, "requests whose body is not sent yet")
			}
			defer leave()
			defer keep()()
			err = fetch(c, maxJSON+1, account)
			if leave(); err != nil {
				return err
			}
		}
		places, what := w.requests, "requests"
		if isStream(c.Request().URL.Path) {
			places, what = w.streams, "streams"
		}
		leave, err := places.Take(owner)
		if err != nil {
			return refused(c, err, owner, what)
		}
		defer leave()
		if !kept {
			defer keep()()
		}
		if places == w.requests {
			sent := func() {}
			defer func() { sent() }()
			c.Response().Before(func() {
				if reads, err := w.sending.Take(owner); err == nil { // else it keeps its place
					sent = reads
					leave()
				}
			})
		}
		return next(c)
	}
}

// ownerOf is the owner of a known caller's places: the project, or the user who has chosen none yet.
func ownerOf(caller identity.Caller) string {
	if caller.ProjectID == "" {
		return "user " + caller.UserID
	}
	return caller.ProjectID
}

// refused is the answer to a request that gets no place.
func refused(c echo.Context, err error, owner, what string) error {
	c.Response().Header().Set(echo.HeaderRetryAfter, "1")
	var full *gate.NoPlace
	if !errors.As(err, &full) || full.Others {
		return errBusy
	}
	return &refusal{status: http.StatusTooManyRequests,
		explanation: fmt.Sprintf("Project %s has %d %s at the same time, which is its share; try again shortly.", owner, full.Held, what)}
}

// writeNoMemory answers a request for which there is no memory.
func writeNoMemory(c echo.Context, no *memory.None) error {
	c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(comeAgain))
	text := fmt.Sprintf("The project's requests and answers have %d bytes in memory, and %d more are not free for it; try again when they have ended, or ask for less at a time.", no.Held, no.Wanted)
	if no.Process {
		text = fmt.Sprintf("The server is short of memory, and this project's requests, deployments and actions have most of it, %d bytes; try again when they have ended.", no.Held)
	}
	return (&refusal{status: http.StatusTooManyRequests, explanation: text}).write(c)
}

// fetch reads the beginning of a request's body, which is all of it unless it is longer than any route accepts. Handlers find it in memory, and
// the error that broke it off, where they read it.
func fetch(c echo.Context, most int, account *memory.Account) error {
	request := c.Request()
	if request.ContentLength == 0 || request.Body == http.NoBody {
		c.Set(keyRead, true)
		return nil
	}
	var text []byte
	ended := error(nil)
	for ended == nil && len(text) < most {
		if len(text) == cap(text) {
			grown := min(max(2*cap(text), min(int(max(request.ContentLength, 0))+1, uncounted), 512), most)
			if grown > uncounted {
				if err := account.Take(int64(grown - cap(text))); err != nil {
					return err
				}
			}
			text = append(make([]byte, 0, grown), text...)
		}
		var n int
		n, ended = request.Body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
	}
	rest := io.Reader(request.Body)
	switch {
	case ended == io.EOF:
		rest = bytes.NewReader(nil)
		c.Set(keyRead, true)
	case ended != nil:
		rest = broken{ended}
	}
	request.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), rest), request.Body}
	return nil
}

// broken is the rest of an interrupted body.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
