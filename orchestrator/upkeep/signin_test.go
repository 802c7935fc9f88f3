package upkeep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/signin/webhook"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
)

// signing is the duty for a cluster with three masters, two of them locked.
func signing(t *testing.T, enabled bool, lines func(has func(string) bool) (map[string]net.Conn, error)) (*signInDuty, *keeper.Environment) {
	t.Helper()
	list := []nodes.Node{{Name: "kube-1", Role: nodes.Master, Server: "server-1"}, {Name: "kube-2", Role: nodes.Minion, Server: "server-2"}, {Name: "kube-1-m2", Role: nodes.Master, Server: "server-3"},
		{Name: "kube-1-m3", Role: nodes.Master, Server: "server-4"}}
	list[2].Settings.Locked, list[3].Settings.Locked = true, true
	facts, err := json.Marshal(known.Facts{Name: "kube", Nodes: list})
	require.NoError(t, err)
	duty := newSignInDuty(Config{Reach: known.Reach{Logger: slog.New(slog.DiscardHandler)}, Secrets: secretsOf{known.SecretName("c", known.FactsName): string(facts)}, Interval: time.Minute,
		Person: func(_ context.Context, projectID, token string) (webhook.Person, error) {
			return webhook.Person{User: "keystone:" + token, Groups: []string{"keystone:project:" + projectID}}, nil
		}})
	duty.lines = func(_ context.Context, _ *nodes.Cluster, has func(string) bool) (map[string]net.Conn, error) {
		return lines(has)
	}
	return duty, &keeper.Environment{ID: "e", Name: "demo", ProjectID: "p", Clusters: []*desired.Cluster{stored(t, "c", map[string]any{"name": "kube", "keystoneSignIn": enabled})}}
}

func TestAClusterWithoutSignInByKeystoneIsNotAsked(t *testing.T) {
	duty, environment := signing(t, false, func(func(string) bool) (map[string]net.Conn, error) { panic("it is asked") })
	result, err := duty.Look(t.Context(), environment)
	require.NoError(t, err)
	require.Equal(t, keeper.Result{}, result)
}

func TestEachMasterHasAServerThatAnswersWhoseTokensAre(t *testing.T) {
	var theirs net.Conn
	var failure error
	came := 0
	duty, environment := signing(t, true, func(has func(string) bool) (map[string]net.Conn, error) {
		came++
		if failure != nil {
			return nil, failure
		}
		require.False(t, has("kube-1"))
		var ours net.Conn
		ours, theirs = net.Pipe()
		return map[string]net.Conn{"kube-1": ours}, nil
	})
	look := func() keeper.Result {
		t.Helper()
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		return result
	}
	result := look()
	require.Empty(t, result.Findings)
	require.LessOrEqual(t, result.Next, 10*time.Second, "another server's place is taken soon")
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return theirs, nil }}
	master, err := transport.NewClientConn(t.Context(), "http", "burano:80")
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://burano/person", bytes.NewReader([]byte(`{"token": "anna"}`)))
	require.NoError(t, err)
	answer, err := master.RoundTrip(request)
	require.NoError(t, err)
	var person webhook.Person
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&person))
	require.NoError(t, answer.Body.Close())
	require.Equal(t, webhook.Person{User: "keystone:anna", Groups: []string{"keystone:project:p"}}, person, "it is asked with the environment's project")

	look()
	require.Equal(t, 1, came, "it stays connected")
	failure = errors.New("kube-1: connection refused")
	require.NoError(t, theirs.Close())
	require.NoError(t, wait.Every(10*time.Millisecond).For(20*time.Second).Until(t.Context(), func(context.Context) error {
		if result = look(); len(result.Findings) == 0 {
			return wait.Again(errors.New("it seems connected"))
		}
		return nil
	}))
	require.Equal(t, "sign-in-unanswered", result.Findings[0].Kind)
	require.Contains(t, result.Findings[0].Text, "connection refused")
	failure = nil
	require.Empty(t, look().Findings)
}
