package openstack

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/requestid"
)

// service answers requests one after another by its steps, the last one again and again, and records their times.
type service struct {
	steps []func() (*http.Response, error)
	asked []time.Duration
	began time.Time
	sent  []*http.Request
}

func newService(steps ...func() (*http.Response, error)) *service {
	return &service{steps: steps, began: time.Now()}
}

func (s *service) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		_, _ = io.Copy(io.Discard, request.Body)
	}
	s.asked, s.sent = append(s.asked, time.Since(s.began)), append(s.sent, request)
	return s.steps[min(len(s.asked), len(s.steps))-1]()
}

func answers(status int, headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		answer := &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}
		for i := 0; i < len(headers); i += 2 {
			answer.Header.Set(headers[i], headers[i+1])
		}
		return answer, nil
	}
}

func refuses() (*http.Response, error) { return nil, syscall.ECONNREFUSED }

func breaksOff() (*http.Response, error) {
	body := io.MultiReader(strings.NewReader("{"), failing{io.ErrUnexpectedEOF})
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// send makes a request through the layers of a real one.
func (s *service) send(ctx context.Context, method, path string) (*http.Response, error) {
	unknown := func(*url.URL) string { return "identity" }
	client := http.Client{Transport: retryTransport{next: guardedTransport{observedTransport{next: s, named: unknown}}, named: unknown}}
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader("{}")
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://cloud"+path, body)
	if err != nil {
		return nil, err
	}
	return client.Do(request)
}

func inTask(ctx context.Context) context.Context {
	return WithOutages(ctx, Outages{Patience: DefaultOutagePatience})
}

func TestACallThatFailsOnceIsMadeAgain(t *testing.T) {
	for name, fault := range map[string]func() (*http.Response, error){
		"500": answers(500), "502": answers(502), "503": answers(503), "429": answers(429), "a conflict": answers(409),
		"a connection that is refused": refuses, "an answer that breaks off": breaksOff,
	} {
		for _, request := range [][2]string{{"GET", "/v1/stacks"}, {"HEAD", "/"}, {"PUT", "/x"}, {"DELETE", "/v1/stacks/s/1"}, {"POST", "/v3/auth/tokens"}} {
			t.Run(name+" to "+request[0], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newService(fault, answers(200))
					answer, err := s.send(t.Context(), request[0], request[1])
					require.NoError(t, err)
					require.Equal(t, 200, answer.StatusCode)
					require.Len(t, s.asked, 2)
					require.LessOrEqual(t, s.asked[1], pauses.First)
				})
			})
		}
	}
}

func TestACallThatCreatesSomethingIsNotMadeTwice(t *testing.T) {
	for _, request := range [][2]string{{"POST", "/v1/p/stacks"}, {"POST", "/v3/OS-TRUST/trusts"}, {"PATCH", "/v1/p/stacks/s/1"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(answers(503), answers(200))
			answer, err := s.send(inTask(t.Context()), request[0], request[1])
			require.NoError(t, err)
			require.Equal(t, 503, answer.StatusCode)
			require.Len(t, s.asked, 1)
		})
	}
}

func TestAnAnswerThatIsNoOutageIsGivenAtOnce(t *testing.T) {
	for _, status := range []int{200, 204, 300, 400, 401, 403, 404, 413, 501} {
		synctest.Test(t, func(t *testing.T) {
			s := newService(answers(status))
			answer, err := s.send(inTask(t.Context()), "GET", "/")
			require.NoError(t, err)
			require.Equal(t, status, answer.StatusCode)
			require.Len(t, s.asked, 1)
		})
	}
}

func TestAConflictThatStaysIsGivenAfterSomeTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(answers(409))
		answer, err := s.send(inTask(t.Context()), "GET", "/")
		require.NoError(t, err)
		require.Equal(t, 409, answer.StatusCode)
		require.Len(t, s.asked, conflicts+1)
	})
}

func TestAServiceIsNotAskedBeforeTheTimeItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(answers(503, "Retry-After", "40"), answers(429, "Retry-After", time.Now().Add(100*time.Second).UTC().Format(http.TimeFormat)),
			answers(503, "Retry-After", "86400"), answers(200))
		_, err := s.send(inTask(t.Context()), "GET", "/")
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 40 * time.Second, 100 * time.Second, 100*time.Second + maxRetryAfter}, s.asked)
	})
}

func TestKeystoneMayBeAwayForTenMinutesInTheMiddleOfATask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService()
		s.steps = []func() (*http.Response, error){func() (*http.Response, error) {
			if time.Since(s.began) < 10*time.Minute {
				return refuses()
			}
			return answers(200)()
		}}
		var noticed []string
		ctx := WithOutages(t.Context(), Outages{Patience: DefaultOutagePatience, Notice: func(_ context.Context, service string, err error) {
			if err != nil {
				noticed = append(noticed, service+": "+err.Error())
			} else {
				noticed = append(noticed, service+" is back")
			}
		}})
		_, err := s.send(ctx, "POST", "/v3/auth/tokens")
		require.NoError(t, err)
		require.Less(t, time.Since(s.began), 10*time.Minute+pauses.Most+time.Second)
		require.Less(t, len(s.asked), 200, "pauses grow")
		require.Equal(t, []string{"identity: connection refused", "identity is back"}, noticed)
	})
}

func TestAnOutageThatLastsEndsATaskWithItsReasonAndACallerSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(answers(503))
		_, err := s.send(inTask(t.Context()), "GET", "/")
		require.ErrorContains(t, err, "the service identity of the cloud cannot be used: it answers Service Unavailable: {} (gave up after 30m0s)")
		require.InDelta(t, 30*time.Minute, time.Since(s.began), float64(pauses.Most))
		away := AwayOf(&gophercloud.ErrUnableToReauthenticate{ErrReauth: err})
		require.Equal(t, "identity", away.Service, "also when a token was to be renewed")
		require.Equal(t, "it answers 503 Service Unavailable", away.Reason())

		s = newService(refuses)
		_, err = s.send(t.Context(), "GET", "/")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.Equal(t, "it cannot be reached", AwayOf(err).Reason())
		require.LessOrEqual(t, time.Since(s.began), callerPatience)
	})
}

func TestACancelledTaskDoesNotWaitForTheEndOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled := errors.New("it was cancelled")
		ctx, cancel := context.WithCancelCause(inTask(t.Context()))
		time.AfterFunc(100*time.Second, func() { cancel(cancelled) })
		s := newService(refuses)
		_, err := s.send(ctx, "GET", "/")
		require.ErrorIs(t, err, cancelled)
		require.Equal(t, 100*time.Second, time.Since(s.began))
	})
}

func TestAServerThatHasLostItsLeaseTriesNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("the lease is lost")
		var alive error
		ctx := Guarded(inTask(t.Context()), func() error { return alive })
		time.AfterFunc(time.Second, func() { alive = lost })
		s := newService(refuses)
		_, err := s.send(ctx, "GET", "/")
		require.ErrorIs(t, err, lost)
		require.Less(t, time.Since(s.began), 10*time.Second)
	})
}

func TestTheTimeOfAnOutageIsNotTakenFromAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := errors.New("it was not ready within a minute")
		outer, end := Limit(inTask(t.Context()), 2*time.Minute, errors.New("the outer one"))
		defer end()
		ctx, cancel := Limit(outer, time.Minute, slow)
		defer cancel()
		s := newService()
		s.steps = []func() (*http.Response, error){func() (*http.Response, error) {
			if time.Since(s.began) < 10*time.Minute {
				return refuses()
			}
			return answers(200)()
		}}
		time.Sleep(20 * time.Second)
		_, err := s.send(ctx, "GET", "/")
		require.NoError(t, err)
		deadline, limited := ctx.Deadline()
		require.True(t, limited)
		require.Equal(t, 40*time.Second, time.Until(deadline))
		began := time.Now()
		<-ctx.Done()
		require.Equal(t, 40*time.Second, time.Since(began))
		require.ErrorIs(t, context.Cause(ctx), slow)
		require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded)
		require.NoError(t, outer.Err())
	})
}

func TestEachTryIsCountedAndCarriesTheRequestsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := &addresses{services: map[string]string{}}
		known.add("http://cloud/identity/v3", "identity")
		known.add("http://cloud/orchestration/v1/project", "orchestration")
		known.add("http://other:8774/v2.1", "compute")
		s := newService(refuses, answers(503), answers(200))
		var calls []Call
		observed := observedTransport{next: s, named: known.of, done: func(call Call) { calls = append(calls, call) }}
		client := http.Client{Transport: retryTransport{next: observed, named: known.of}}
		id := requestid.New()
		request, err := http.NewRequestWithContext(requestid.With(t.Context(), id), http.MethodGet, "http://cloud/orchestration/v1/project/stacks", nil)
		require.NoError(t, err)
		_, err = client.Do(request)
		require.NoError(t, err)
		require.Equal(t, []Call{{"orchestration", "GET", 0, 0}, {"orchestration", "GET", 503, 0}, {"orchestration", "GET", 200, 0}}, calls)
		for _, one := range s.sent {
			require.Equal(t, id, one.Header.Get(requestid.Header))
		}
		for address, service := range map[string]string{"http://cloud/identity/v3/auth/tokens": "identity", "http://other:8774/": "compute",
			"http://other:8774/v2.1/servers/1": "compute", "http://else/": "unknown"} {
			parsed, err := url.Parse(address)
			require.NoError(t, err)
			require.Equal(t, service, known.of(parsed), address)
		}
	})
}
