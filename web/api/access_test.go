package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKubeconfigsAreForGroupsThatTheirCallersMayHave(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	base := "/burano/v1/environments/" + mine["environment"] + "/clusters/" + mine["cluster"]
	ask := func(token, query string) (int, string) {
		recorder := s.send("GET", base+"/kubeconfig"+query, map[string]string{"X-Auth-Token": "{token:" + token + "}"}, nil)
		_, text, _ := strings.Cut(recorder.Body.String(), "\n")
		if recorder.Code != 200 {
			text = recorder.Body.String()
		}
		return recorder.Code, strings.TrimSpace(text)
	}
	for _, one := range []struct{ token, query, holds string }{
		{"demo", "", "burano:admin [burano:admins]  0s []"},
		{"demo", "?group=burano:readers&namespace=shop&lifetime=8h", "[burano:readers] shop 8h0m0s []"},
		{"demo", "?group=team-a&group=burano:editors&lifetime=600", "[team-a burano:editors]  10m0s []"},
		{"demo", "?sign_in=keystone&namespace=shop", "keystone [] shop 0s [burano cluster token " + mine["environment"] + " " + mine["cluster"] + "]"},
		{"reader", "", "[burano:readers]  0s []"},
		{"reader", "?sign_in=keystone", "keystone [] "},
	} {
		code, text := ask(one.token, one.query)
		require.Equal(t, 200, code, "%s: %s", one.query, text)
		require.Contains(t, text, one.holds, one.query)
	}
	for _, one := range []struct {
		token, query string
		code         int
		says         string
	}{
		{"reader", "?group=burano:admins", 403, "get_kubeconfig"},
		{"reader", "?group=burano:editors", 403, "get_editor_kubeconfig"},
		{"reader", "?group=team-a", 403, "you may have one of burano:readers"},
		{"demo", "?group=system:masters", 400, "Kubernetes' own"},
		{"demo", "?group=a%0Ab", 400, "is no name of a group"},
		{"demo", "?namespace=Shop", 400, "is no name of a namespace"},
		{"demo", "?lifetime=25h", 400, "from 10m to 24h"},
		{"demo", "?lifetime=soon", 400, "from 10m to 24h"},
		{"demo", "?sign_in=magic", 400, "it is certificate or keystone"},
		{"demo", "?sign_in=keystone&group=a", 400, "neither group nor lifetime"},
	} {
		code, text := ask(one.token, one.query)
		require.Equal(t, one.code, code, "%s: %s", one.query, text)
		require.Contains(t, text, one.says, one.query)
	}
}

func TestACredentialHasTheRightsOfTheCallersRoles(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	path := "/burano/v1/environments/" + mine["environment"] + "/clusters/" + mine["cluster"] + "/credential"
	groups := func(token string) []any { return field(s.call(token, "", "GET", path, nil, 200), "groups").([]any) }
	require.Equal(t, "burano:admins", groups("demo")[0])
	require.Contains(t, groups("demo"), "keystone:role:member")
	require.Equal(t, "burano:readers", groups("reader")[0])
	require.Contains(t, groups("reader"), "keystone:role:reader")
	require.True(t, strings.HasPrefix(field(s.call("reader", "", "GET", path, nil, 200), "user").(string), "keystone:"))
}

func TestMachinesHaveTheKeyThatIsGivenForThem(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	base := "/burano/v1/environments/" + mine["environment"] + "/clusters/" + mine["cluster"]
	require.Contains(t, field(s.call("reader", "", "GET", base+"/ssh-key", nil, 200), "public_key"), "ssh-ed25519")
	require.Equal(t, "public half of mine", field(s.call("demo", "", "PUT", base+"/ssh-keys/lab-1", map[string]any{"private_key": "mine"}, 200), "public_key"))
	s.call("demo", "", "PUT", base+"/ssh-keys/lab-1", map[string]any{"private_key": "nonsense"}, 400)
	s.call("demo", "", "PUT", base+"/ssh-keys/lab-1", map[string]any{}, 400)
	require.Contains(t, field(s.call("demo", "", "DELETE", base+"/ssh-keys/lab-1", nil, 200), "public_key"), "ssh-ed25519")
	s.call("reader", "", "DELETE", base+"/ssh-keys/lab-1", nil, 403)
}
