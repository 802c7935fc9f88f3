package openstack

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/wait"
)

const (
	// answerPatience is how long a service may take to begin its answer: Heat and Nova give up on each other after a minute.
	answerPatience = 2 * time.Minute
	// noticeAfter is for how long a service is away before it is reported.
	noticeAfter = 5 * time.Second
	// maxRetryAfter is the longest pause that a service may ask for.
	maxRetryAfter = 2 * time.Minute
	// conflicts is how often a call is repeated after a conflict with the service's present work.
	conflicts = 3
)

// pauses are the pauses between the tries of a call.
var pauses = wait.Policy{First: 200 * time.Millisecond, Most: 10 * time.Second, Jitter: 0.5}

// retryTransport repeats calls that fail for an outage, if a second call does no harm. Calls that create something are repeated by their
// callers, which look for an earlier result first: see adopting.
type retryTransport struct {
	next  http.RoundTripper
	named func(*url.URL) string // which service this is
}

// RoundTrip implements http.RoundTripper.
func (t retryTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Context().Value(onceKey{}) != nil || !repeatable(request) {
		return t.try(request)
	}
	var answer *http.Response
	tries := 0
	err := Patiently(request.Context(), t.named(request.URL), func(context.Context) (err error) {
		if tries++; tries > 1 {
			if request, err = again(request); err != nil {
				return err
			}
		}
		if answer, err = t.try(request); err != nil {
			return err
		}
		if answer.StatusCode == http.StatusConflict && tries <= conflicts {
			return &outage{status: answer.StatusCode, text: answer.Status}
		}
		return outageIn(answer)
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// onceKey is the key in the context of calls whose caller tries them again.
type onceKey struct{}

// Once returns a context whose calls are made once.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, onceKey{}, true) }

// try makes a call once, and reads the answer to its end, because that may break off too. One that is streamed is for the caller to read.
func (t retryTransport) try(request *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(request)
	var unsound *unsoundAddress
	if errors.As(err, &unsound) {
		return nil, unsound
	}
	if err != nil {
		return nil, &unreachable{err}
	}
	if request.Context().Value(streamedKey{}) != nil && request.Method == http.MethodGet && answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer answer.Body.Close()
	source := t.bounded(request, answer)
	body, err := io.ReadAll(source)
	if of, is := request.Context().Value(listKey{}).(*list); is && err == nil {
		err = of.add(t.named(request.URL), int64(len(body)), door.Cost(source))
	}
	if door.IsExceeded(err) {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if err != nil {
		return nil, &unreachable{fmt.Errorf("read the answer: %w", err)}
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

// How large an answer may be that is read whole. Tenants fill parts of them: outputs of stacks, metadata, consoles, objects.
const (
	mostAnswer  = 64 << 20  // bytes of JSON
	mostDecoded = 512 << 20 // bytes in memory, roughly
	mostOther   = 16 << 20  // bytes of other content than JSON: a piece of a snapshot has 4 MiB
	mostRefusal = 256 << 10 // bytes of a refusal, which becomes the text of an error
)

func (t retryTransport) bounded(request *http.Request, answer *http.Response) io.Reader {
	what := "the answer of the service " + t.named(request.URL)
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case answer.StatusCode >= http.StatusMultipleChoices:
		return door.Reader(answer.Body, mostRefusal, what)
	case kind == "application/json":
		return door.JSON(answer.Body, mostAnswer, mostDecoded, what)
	}
	return door.Reader(answer.Body, mostOther, what)
}

// streamedKey is the key in the context of calls whose answers may be of any size.
type streamedKey struct{}

// streamed returns a context for a call whose answer the caller reads as it comes, with a bound of its own. An interrupted answer is not requested
// again.
func streamed(ctx context.Context) context.Context {
	return context.WithValue(ctx, streamedKey{}, true)
}

// again makes a request that can be sent once more.
func again(request *http.Request) (*http.Request, error) {
	repeated := request.Clone(request.Context())
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		repeated.Body = body
	}
	return repeated, nil
}

// repeatable reports whether a request may be sent twice. A second token is harmless: one of the two is not used.
func repeatable(request *http.Request) bool {
	if request.Body != nil && request.Body != http.NoBody && request.GetBody == nil {
		return false
	}
	switch request.Method {
	case http.MethodPost:
		return strings.HasSuffix(request.URL.Path, "/auth/tokens")
	case http.MethodPatch:
		return false // of stacks, where a conflict may be the first try's own update
	}
	return true
}

// Patiently calls try again while it fails for an outage of the service, for as long as the context's outages are borne. A try that creates
// something looks first, from the second call on, whether an earlier one has made it.
func Patiently(ctx context.Context, service string, try func(context.Context) error) error {
	outages := outagesOf(ctx)
	began := time.Now()
	release, held, noticed := func() {}, false, false
	defer func() { release() }()
	err := pauses.For(outages.Patience).Until(ctx, func(context.Context) error {
		// The patience is for beginning a try: one that has begun may end.
		err := try(ctx)
		pause, passing := passes(ctx, err)
		if !passing {
			return err
		}
		if !held {
			held, release = true, hold(ctx)
		}
		if outages.Notice != nil && !noticed && time.Since(began) >= noticeAfter {
			noticed = true
			outages.Notice(ctx, service, err)
		}
		return wait.After(pause, err)
	})
	if err == nil && noticed {
		outages.Notice(ctx, service, nil)
	}
	var expired *wait.Expired
	if errors.As(err, &expired) && expired.Cause == nil {
		return &Away{Service: service, err: err}
	}
	return err
}

// Contested has a call repeated (Patiently) that a service refuses with a conflict with its present work, for its first
// tries.
func Contested(err error, tries int) error {
	if gophercloud.ResponseCodeIs(err, http.StatusConflict) && tries <= conflicts {
		return &outage{status: http.StatusConflict, text: err.Error()}
	}
	return err
}

// Away is the error of a call whose service of the cloud could not be used for longer than is borne.
type Away struct {
	Service string // its type in the service catalog
	err     error
}

func (a *Away) Error() string {
	return fmt.Sprintf("the service %s of the cloud cannot be used: %v", a.Service, a.err)
}

func (a *Away) Unwrap() error { return a.err }

// AwayOf returns the outage for which something failed, nil when it failed for something else.
func AwayOf(err error) *Away {
	var away *Away
	var renewal *gophercloud.ErrUnableToReauthenticate // it unwraps to nothing
	if !errors.As(err, &away) && errors.As(err, &renewal) {
		return AwayOf(renewal.ErrReauth)
	}
	return away
}

// Reason describes how the service is away, without addresses of the cloud and texts for its operators.
func (a *Away) Reason() string {
	if status, _ := a.answer(); status != 0 {
		return fmt.Sprintf("it answers %d %s", status, http.StatusText(status))
	}
	return "it cannot be reached"
}

// RetryAfter is the pause that the service asks for; 0 if it does not.
func (a *Away) RetryAfter() time.Duration {
	_, after := a.answer()
	return after
}

// answer is the last one of the service; the status is 0 when it gave none.
func (a *Away) answer() (status int, after time.Duration) {
	var said *outage
	var unexpected gophercloud.ErrUnexpectedResponseCode
	switch {
	case errors.As(a.err, &said):
		return said.status, said.after
	case errors.As(a.err, &unexpected):
		return unexpected.Actual, retryAfter(unexpected.ResponseHeader.Get("Retry-After"), time.Now())
	}
	return 0, 0
}

// outage is an answer of a service that cannot work now.
type outage struct {
	status int
	text   string
	after  time.Duration // the pause that the service asks for
}

func (o *outage) Error() string { return "it answers " + o.text }

// outageIn returns an outage when an answer is one.
func outageIn(answer *http.Response) error {
	if answer.StatusCode < http.StatusInternalServerError && answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusRequestTimeout ||
		answer.StatusCode == http.StatusNotImplemented {
		return nil
	}
	text := answer.Status
	if body, err := io.ReadAll(answer.Body); err == nil {
		answer.Body = io.NopCloser(bytes.NewReader(body))
		if said := strings.TrimSpace(string(body)); said != "" && !strings.HasPrefix(said, "<") {
			text += ": " + said[:min(len(said), 500)]
		}
	}
	return &outage{status: answer.StatusCode, text: text, after: retryAfter(answer.Header.Get("Retry-After"), time.Now())}
}

// retryAfter reads the header, which has seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(text string, now time.Time) time.Duration {
	pause := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		pause = time.Duration(seconds) * time.Second
	} else if date, err := http.ParseTime(text); err == nil {
		pause = date.Sub(now)
	}
	return min(max(pause, 0), maxRetryAfter)
}

// passes reports whether an error of a call is an outage, which goes away by itself, and the pause that the service asks for.
func passes(ctx context.Context, err error) (after time.Duration, passing bool) {
	if err == nil || ctx.Err() != nil {
		return 0, false
	}
	var said *outage
	if errors.As(err, &said) {
		return said.after, true
	}
	var expired *wait.Expired
	var forbidden *notAlive
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &expired) || errors.As(err, &forbidden) || errors.As(err, &certificate) {
		return 0, false
	}
	var unexpected gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &unexpected) {
		code := unexpected.Actual
		passing = code >= http.StatusInternalServerError && code != http.StatusNotImplemented || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout
		return retryAfter(unexpected.ResponseHeader.Get("Retry-After"), time.Now()), passing
	}
	var unreachable *unreachable
	return 0, errors.As(err, &unreachable)
}

// unreachable is why a service gave no answer, or not all of one.
type unreachable struct{ error }

func (u *unreachable) Unwrap() error { return u.error }
