package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/identity"
)

func TestWhoHoldsADraftIsSeenByAllOfTheProject(t *testing.T) {
	s := newServer(t)
	colleague := identity.Caller{UserID: "u-colleague", UserName: "Carla", ProjectID: goldenDemo, Roles: []string{"member"}, Token: "{token:colleague}"}
	s.keystone.issued[colleague.Token] = colleague
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id + "/sessions"
	require.Equal(t, []any{}, field(s.call("demo", "", "GET", path, nil, 200), "sessions"))
	mine := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	theirs := field(s.call("colleague", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)

	drafts := field(s.call("demo", "", "GET", path, nil, 200), "sessions").([]any)
	require.Len(t, drafts, 2)
	require.Equal(t, []any{mine, true, false}, []any{field(drafts[0], "id"), field(drafts[0], "own"), field(drafts[0], "outdated")})
	require.Equal(t, []any{nil, "Carla", "u-colleague", false, false},
		[]any{field(drafts[1], "id"), field(drafts[1], "user_name"), field(drafts[1], "user_id"), field(drafts[1], "own"), field(drafts[1], "outdated")})

	s.call("colleague", "", "POST", "/v1/environments/"+id+"/sessions/"+theirs+"/deploy", nil, 200)
	s.awaitIdle(id)
	drafts = field(s.call("demo", "", "GET", path, nil, 200), "sessions").([]any)
	require.Len(t, drafts, 1, "what was deployed is no draft any more")
	require.Equal(t, []any{mine, true}, []any{field(drafts[0], "id"), field(drafts[0], "outdated")})

	s.call("other", "", "GET", path, nil, 403)
	s.call("demo", "", "GET", "/burano/v1/environments/nothing/sessions", nil, 404)
}
