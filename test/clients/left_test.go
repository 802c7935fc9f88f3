package clients

import (
	"net/http"
	"net/netip"
	"os"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud"
)

// Heat answers every update of such a stack with 500, as in an outage. Burano goes on with the stack itself.
func TestAStackWhoseUserHasLeftTheProjectIsTakenOver(t *testing.T) {
	s := startCloudWith(t, localcloud.Config{ExternalCIDR: netip.MustParsePrefix("10.86.9" + os.Getenv("BURANO_SLOT") + ".0/24"), Prefix: "bll" + os.Getenv("BURANO_SLOT") + "-"})
	s.serve(http.DefaultClient, "http")
	admin, demo, other := s.identityOf("admin", "admin"), s.identityOf("demo", "demo"), s.identityOf("other", "other")
	project, err := tokens.Get(t.Context(), demo, demo.Token()).ExtractProject()
	require.NoError(t, err)
	leaver, err := tokens.Get(t.Context(), other, other.Token()).ExtractUser()
	require.NoError(t, err)
	pages, err := roles.List(admin, roles.ListOpts{Name: "member"}).AllPages(t.Context())
	require.NoError(t, err)
	member, err := roles.ExtractRoles(pages)
	require.NoError(t, err)
	membership := roles.AssignOpts{UserID: leaver.ID, ProjectID: project.ID}
	require.NoError(t, roles.Assign(t.Context(), admin, member[0].ID, membership).ExtractErr())
	s.write(map[string]string{
		"word/manifest.yaml": "Format: Heat.HOT/1.0\nType: Application\nFullName: org.test.Word\nName: Word\n",
		"word/template.yaml": `heat_template_version: 2016-10-14
parameters:
  length: {type: number}
resources:
  word: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
`,
		"word/Resources/HotEnvironments/short.yaml": "parameters: {length: 3}\n",
		"word/Resources/HotEnvironments/long.yaml":  "parameters: {length: 8}\n",
	})
	s.burano(t, "package", "import", "word")
	deploy := func(user, environment string) (string, bool) {
		s.write(map[string]string{"word.yaml": "name: word\napplications:\n  - {'?': {type: org.test.Word}, name: word, hotEnvironment: " + environment + "}\n"})
		return s.run(s.as(user, "demo"), s.program, "deploy", "word.yaml", "--follow")
	}
	out, ok := deploy("other", "short.yaml")
	require.True(t, ok, out)

	require.NoError(t, roles.Unassign(t.Context(), admin, member[0].ID, roles.UnassignOpts(membership)).ExtractErr())
	out, ok = deploy("demo", "long.yaml")
	require.True(t, ok, "the stack is taken over: %s", out)
	out, ok = deploy("demo", "short.yaml")
	require.True(t, ok, "and goes on: %s", out)
	s.burano(t, "environment", "delete", "--yes", "word")
}
