package api

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/policy"
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

func TestATokenIsOfAUserOfTheClustersProject(t *testing.T) {
	caller := func(project string, roles ...string) identity.Caller {
		return policy.New().Apply(identity.Caller{UserID: "1234", UserName: "anna", UserDomainName: "Default", ProjectID: project, Roles: roles})
	}
	for _, one := range []struct {
		role, group string
	}{{"reader", "burano:readers"}, {"member", "burano:admins"}} {
		person, err := PersonOf(caller("p", one.role), "p")
		require.NoError(t, err)
		require.Equal(t, "keystone:anna@Default", person.User)
		require.Equal(t, []string{one.group, "keystone:project:p", "keystone:role:" + one.role}, person.Groups)
	}
	_, err := PersonOf(caller("q", "admin"), "p")
	require.ErrorContains(t, err, "another project")
	require.Equal(t, fault.Unauthorized, fault.KindOf(err))
	_, err = PersonOf(caller("", "member"), "p")
	require.ErrorContains(t, err, "belongs to no project")
	_, err = PersonOf(identity.Caller{UserName: "anna", ProjectID: "p"}.Under(func(string) bool { return false }), "p")
	require.ErrorContains(t, err, "get_reader_kubeconfig")
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
