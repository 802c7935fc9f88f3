package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStandingDelegationIsShownAndNeverTellsItsSecret(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	path := "/burano/v1/environments/" + id + "/delegation"
	require.Nil(t, s.call("demo", "", "GET", path, nil, 200))
	s.call("demo", "", "DELETE", path, nil, 404)
	s.call("other", "", "GET", path, nil, 403)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	for _, wrong := range []map[string]any{{"roles": []string{"admin"}}, {"secret": "shh"}, {"application_credential": "mine"}, {"expires": "yesterday"},
		{"expires": "2020-01-01T00:00:00Z"}, {"application_credential": "mine", "secret": "shh", "roles": []string{"member"}},
		{"application_credential": "mine", "secret": "wrong"}, {"application_credential": "mine", "secret": "shh"}} { // the last one is of another project
		refused := s.call("demo", "", "PUT", path, wrong, 400)
		require.NotContains(t, fmt.Sprint(refused), "shh")
	}
	made := s.call("demo", "", "PUT", path, map[string]any{"roles": []string{"member"}, "expires": until}, 200)
	require.Equal(t, until.Format(time.RFC3339), field(made, "expires"))
	require.Equal(t, made, s.call("reader", "", "GET", path, nil, 200))
	require.Equal(t, []any{"member"}, field(made, "roles"))
	require.Equal(t, "trust", field(made, "kind"))
	require.Equal(t, "u-demo", field(made, "user_id"))
	s.call("reader", "", "DELETE", path, nil, 403)
	s.call("admin", "", "DELETE", path, nil, 200)
	require.Nil(t, s.call("demo", "", "GET", path, nil, 200))
}
