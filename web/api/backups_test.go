package api

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
)

func TestBackupsAreTheirProjectsAndStayWhenTheEnvironmentGoes(t *testing.T) {
	s := newServer(t)
	mine, others := s.populate("demo", "demos"), s.populate("other", "others")
	path := "/burano/v1/backups/" + mine["backup"]
	shown := s.call("demo", "", "GET", path, nil, 200)
	require.Equal(t, "demos-environment", field(shown, "environment_name"))
	require.Equal(t, []any{shown}, field(s.call("reader", "", "GET", "/burano/v1/backups", nil, 200), "backups"))
	require.Empty(t, field(s.call("demo", "", "GET", "/burano/v1/backups?environment=another", nil, 200), "backups"))
	s.call("other", "", "GET", path, nil, 404)
	s.call("other", "", "POST", path+"/restore", map[string]any{"name": "theirs"}, 404)
	s.call("other", "", "DELETE", path, nil, 404)
	s.call("demo", "", "POST", path+"/restore", map[string]any{"name": "demos-environment"}, 409)
	refused := s.call("demo", "", "POST", "/burano/v1/environments/"+mine["environment"]+"/backups", map[string]any{"reason": "before"}, 400)
	require.Contains(t, field(refused, "message"), "has no cluster that was deployed")

	s.call("demo", "", "DELETE", "/v1/environments/"+mine["environment"]+"?abandon=true", nil, 200)
	restored := field(s.call("demo", "", "POST", path+"/restore", map[string]any{"name": "demos-restored"}, 200), "id").(string)
	s.awaitIdle(restored)
	require.Equal(t, "demos-restored", field(s.call("demo", "", "GET", "/v1/environments/"+restored, nil, 200), "name"))
	s.call("demo", "", "DELETE", path, nil, 200)
	s.call("demo", "", "GET", path, nil, 404)
	s.call("other", "", "GET", "/burano/v1/backups/"+others["backup"], nil, 200)
}

func TestADrillRestoresABackupBesideAndRemovesWhatItHasMade(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.config.Backups.RunDrills(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	names := func() (names []any) {
		for _, one := range field(s.call("demo", "", "GET", "/v1/environments", nil, 200), "environments").([]any) {
			names = append(names, field(one, "name"))
		}
		return names
	}
	before := names()
	begun := s.call("demo", "", "POST", "/burano/v1/backups/"+mine["backup"]+"/drill", nil, 200)
	require.Contains(t, names(), field(begun, "environment"))
	var last any
	err := wait.Every(50*time.Millisecond).For(time.Minute).Until(t.Context(), func(context.Context) error {
		last = field(s.call("demo", "", "GET", "/burano/v1/environments/"+mine["environment"]+"/backups/drills", nil, 200), "drills").([]any)[0]
		if field(last, "ended") == nil {
			return wait.Again(fmt.Errorf("it is %v", last))
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "answered", field(last, "state"), last)
	require.Equal(t, before, names(), "what the drill has made is gone")
}
