package openstack

import (
	"context"
	"net/http"
)

// guardKey is where a context keeps its guard.
type guardKey struct{}

// Guarded returns a context under which every request to the cloud first asks whether this process may still act, and is not sent when
// alive returns an error.
func Guarded(ctx context.Context, alive func() error) context.Context {
	return context.WithValue(ctx, guardKey{}, alive)
}

// guardedTransport asks the guard of a request's context.
type guardedTransport struct{ next http.RoundTripper }

func (t guardedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if alive, ok := request.Context().Value(guardKey{}).(func() error); ok {
		if err := alive(); err != nil {
			return nil, &notAlive{err}
		}
	}
	return t.next.RoundTrip(request)
}

// notAlive is why a request was not sent.
type notAlive struct{ error }

func (n *notAlive) Unwrap() error { return n.error }
