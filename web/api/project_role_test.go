package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProjectLetsBuranoWorkWithARoleOfItsOwn(t *testing.T) {
	s := newServer(t)
	path := "/burano/v1/projects/" + goldenDemo + "/role"
	shown := s.call("reader", "", "GET", path, nil, 200)
	require.Equal(t, false, field(shown, "enabled"))
	require.Equal(t, "u-burano", field(shown, "user", "id"))
	require.Equal(t, []any{"member"}, field(shown, "roles"))

	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	deploy := func(code int) string {
		session := field(s.call("robot", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
		s.call("robot", session, "POST", "/v1/environments/"+id+"/services", hello("a1", "alpha"), 200)
		answer := s.send("POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", map[string]string{"X-Auth-Token": "{token:robot}"}, nil)
		require.Equal(t, code, answer.Code)
		if code == 200 {
			s.awaitIdle(id)
		}
		return answer.Body.String()
	}
	deploy(403) // by trust, which an application credential makes none of

	for _, who := range []string{"reader", "demo", "robot", "other"} {
		s.call(who, "", "PUT", path, nil, 403)
		s.call(who, "", "DELETE", path, nil, 403)
	}
	s.call("other", "", "GET", path, nil, 403)
	s.call("manager", "", "PUT", "/burano/v1/projects/"+goldenOther+"/role", nil, 403) // a manager enables their own project only
	s.call("manager", "", "DELETE", path, nil, 404)

	enabled := s.call("manager", "", "PUT", path, nil, 200)
	require.Equal(t, true, field(enabled, "enabled"))
	require.Equal(t, "manager", field(enabled, "enabled_by"))
	require.Empty(t, field(enabled, "problem"))
	deploy(200)
	var kinds []string
	require.NoError(t, s.db.Raw("SELECT kind FROM delegations").Scan(&kinds).Error)
	require.NotContains(t, kinds, "trust")

	require.Equal(t, false, field(s.call("admin", "", "DELETE", path, nil, 200), "enabled"))
	require.Contains(t, deploy(403), "burano project enable")
}
