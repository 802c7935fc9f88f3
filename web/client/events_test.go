package client

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// following is a client of a server whose stream of events is the handler; its token is "old" until it signs in again.
func following(t *testing.T, handler http.HandlerFunc) *Client {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	provider := &gophercloud.ProviderClient{}
	provider.UseTokenLock()
	provider.SetToken("old")
	provider.ReauthFunc = func(context.Context) error {
		provider.SetToken("new")
		return nil
	}
	return New(server.URL, provider, server.Client().Transport)
}

func event(number int, text string) string {
	return fmt.Sprintf("event: report\nid: %d\ndata: {\"level\": \"info\", \"text\": %q, \"created\": \"now\"}\n\n", number, text)
}

func TestAStreamThatBreaksOffGoesOnWhereItWas(t *testing.T) {
	var asked atomic.Int64
	c := following(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/burano/v1/deployments/d1/events", r.URL.Path)
		switch asked.Add(1) {
		case 1:
			assert.Empty(t, r.Header.Get("Last-Event-ID"))
			fmt.Fprint(w, "event: state\ndata: {\"state\": \"running\"}\n\n: a comment\n\n"+event(1, "one")+event(2, "two")+"event: report\nid: 3\nda")
		case 2:
			http.Error(w, "starting", http.StatusServiceUnavailable)
		case 3:
			assert.Equal(t, "2", r.Header.Get("Last-Event-ID"), "what did not come whole is asked for again")
			w.WriteHeader(http.StatusUnauthorized) // the token's time is over
		default:
			assert.Equal(t, "new", r.Header.Get("X-Auth-Token"))
			assert.Equal(t, "2", r.Header.Get("Last-Event-ID"))
			fmt.Fprint(w, event(3, "three")+"event: end\ndata: {\"state\": \"completed_w_warnings\"}\n\n")
		}
	})
	var texts []string
	state, err := c.Deployments().Follow(t.Context(), "d1", func(event Event) error {
		if event.Report == nil {
			texts = append(texts, "state "+event.State)
		} else {
			texts = append(texts, event.Report.Text)
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "completed_w_warnings", state)
	require.True(t, Succeeded(state))
	require.Equal(t, []string{"state running", "one", "two", "three"}, texts)
}

// unread follows a deployment without reading its events.
func unread(ctx context.Context, c *Client, deployment string) error {
	_, err := c.Deployments().Follow(ctx, deployment, func(Event) error { return nil })
	return err
}

func TestWhoMayNotFollowIsToldAtOnce(t *testing.T) {
	var asked atomic.Int64
	c := following(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.WriteHeader(map[string]int{"/burano/v1/deployments/gone/events": 404, "/burano/v1/deployments/closed/events": 401}[r.URL.Path])
	})
	require.True(t, IsStatus(unread(t.Context(), c, "gone"), http.StatusNotFound))
	require.EqualValues(t, 1, asked.Load())
	require.True(t, IsStatus(unread(t.Context(), c, "closed"), http.StatusUnauthorized), "also with a new token")
	require.EqualValues(t, 3, asked.Load())
}

func TestFollowingCanBeInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	c := following(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, event(1, "one"))
		_ = http.NewResponseController(w).Flush()
		interrupt()
		<-r.Context().Done()
	})
	require.ErrorContains(t, unread(ctx, c, "d1"), "the deployment goes on")
}
