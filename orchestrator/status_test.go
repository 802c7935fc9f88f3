package orchestrator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/store"
)

func TestTheStatusOfAnEnvironmentFollowsItsSessions(t *testing.T) {
	session := func(state store.State, version, updated int64) store.Session {
		return store.Session{ID: string(state), State: state, Version: version, Updated: store.Time(updated)}
	}
	for name, c := range map[string]struct {
		sessions []store.Session
		want     string
	}{
		"without sessions it is ready":                       {nil, "ready"},
		"an open session makes it pending":                   {[]store.Session{session(store.Opened, 0, 1)}, "pending"},
		"an open session after a deployment too":             {[]store.Session{session(store.Deployed, 0, 1), session(store.Opened, 1, 2)}, "pending"},
		"a stale open session does not":                      {[]store.Session{session(store.Opened, 0, 1), session(store.Deployed, 0, 2)}, "ready"},
		"a failure shows through an open session":            {[]store.Session{session(store.DeployFailure, 0, 1), session(store.Opened, 1, 2)}, "deploy failure"},
		"a later success hides a failure":                    {[]store.Session{session(store.DeployFailure, 0, 1), session(store.Deployed, 1, 2)}, "ready"},
		"what runs decides":                                  {[]store.Session{session(store.Deployed, 0, 1), session(store.Deploying, 1, 3), session(store.Opened, 1, 2)}, "deploying"},
		"a deletion that failed can be seen":                 {[]store.Session{session(store.Deployed, 0, 1), session(store.DeleteFailure, 1, 2)}, "delete failure"},
		"of two sessions of a version the later one decides": {[]store.Session{session(store.Deleting, 1, 5), session(store.Deployed, 1, 2)}, "deleting"},
	} {
		got, acquired := status(c.sessions)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.want == "deploying", acquired != "", name)
	}
}
