package clients

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/murano/muranotest"
	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/keystone"
)

// Ids of the real Murano's resources in its database.
const (
	muranosRouter   = "ddd7d980-7e0d-4f97-8e1f-d5177d99099f"
	muranosExternal = "23654126-2324-4461-b54f-2c5bad3c7ce4"
	muranosNetwork  = "97e552c4-0aa7-4e4e-b7c3-321c6499551e"
	muranosFirst    = "168a0fbc-efb4-40c9-8419-5100e819d7cf"
	muranosSecond   = "cfc3df87-957c-4f1c-8e58-448072a03fb1"
	muranosWeb2     = "1c5aa22b09d84026aa53e2792ccd02bc" // its application
	muranosTemplate = "ejktsmwsm7g464_e779a18283664e788bfe50ebabd1b743"
)

// TestAMuranoIsTakenOverInPlace imports the database of a real Murano beside stacks like its own, and an environment with such stacks in
// two regions. Deployments go on with these stacks, and every resource in them stays unchanged.
func TestAMuranoIsTakenOverInPlace(t *testing.T) {
	slot := os.Getenv("BURANO_SLOT")
	s := startCloudWith(t, localcloud.Config{ExternalCIDR: netip.MustParsePrefix("10.86.12" + slot + ".0/24"),
		SecondCIDR: netip.MustParsePrefix("10.86.13" + slot + ".0/24"), Prefix: "bl4" + slot + "-"})
	s.equip(t, s.cloudIn("admin", keystone.SecondRegion))
	near, far := s.cloudAs("demo"), s.cloudIn("demo", keystone.SecondRegion)
	nearBefore, farBefore := near.holds(t), far.holds(t)
	state := t.TempDir()
	first := s.serve(http.DefaultClient, "http", "--state", state) // which makes its key
	require.NoError(t, first.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-first.ended)

	web := near.leftByMurano(t, muranotest.Stack, func(text string) string { return text })
	farWeb := far.leftByMurano(t, muranotest.Stack, otherwise)
	hot := near.leave(t, muranosTemplate, `{"heat_template_version": "2013-05-23", "parameters": {"name": {"type": "string", "default": "from-hot"}},
		"resources": {"net": {"type": "OS::Neutron::Net", "properties": {"name": {"get_param": "name"}}}}, "outputs": {"net": {"value": {"get_resource": "net"}}}}`)

	_, project := s.token("demo", "demo")
	dsn, run := muranotest.Database(t)
	run("UPDATE package SET owner_id = '" + project + "' WHERE owner_id = (SELECT tenant_id FROM environment WHERE name = 'deployed')")
	run("UPDATE environment SET tenant_id = '" + project + "' WHERE name IN ('deployed', 'from a template of Heat')")
	run("DELETE FROM session WHERE environment_id = (SELECT id FROM environment WHERE name = 'deployed')")
	model := muranotest.Model(t, "deployed")
	run("UPDATE environment SET description = '" + strings.ReplaceAll(inTwoRegions(t, web.in(model), farWeb.in(otherwise(model))), `\`, `\\`) + "' WHERE name = 'deployed'")
	out, ok := s.run(s.as("burano", "service"), s.program, "db", "import-murano", "--state", state, dsn)
	require.True(t, ok, out)
	require.Regexp(t, `environment +deployed .* import +with its 2 stacks in Heat`, out)
	s.serve(http.DefaultClient, "http", "--state", state)

	for environment, left := range map[string][]*leftStack{"deployed": {web, farWeb}, "from a template of Heat": {hot}} {
		var session struct {
			ID string `json:"id"`
		}
		require.NoError(t, json.Unmarshal([]byte(s.burano(t, "session", "create", environment, "--output", "json")), &session))
		out := s.burano(t, "session", "deploy", environment, session.ID, "--follow")
		require.Contains(t, out, "Deployment finished", out)
		for _, one := range left {
			require.Equal(t, one.resources, one.now(t), "%s: everything is what it was, under its name:\n%s", one.name, out)
			stack, err := stacks.Get(t.Context(), one.user.heat, one.name, one.id).Extract()
			require.NoError(t, err)
			require.Equal(t, "UPDATE_COMPLETE", stack.Status, "%s was updated", one.name)
		}
	}
	require.Len(t, near.holds(t)["stacks"], 2)
	require.Len(t, far.holds(t)["stacks"], 1)

	s.burano(t, "environment", "delete", "--yes", "deployed", "from a template of Heat")
	web.forget(t)
	farWeb.forget(t)
	require.Equal(t, nearBefore, near.holds(t), "nothing is left")
	require.Equal(t, farBefore, far.holds(t))
}

// otherwise gives the objects of a model, or of its template, other ids, and another region.
func otherwise(text string) string {
	text = regexp.MustCompile(`[0-9a-f]{32}`).ReplaceAllStringFunc(text, func(id string) string { return id[1:] + id[:1] })
	return strings.ReplaceAll(text, `"local"`, `"`+keystone.SecondRegion+`"`)
}

// inTwoRegions is a model with its objects repeated in another region. Of the two applications in each, the second is deployed again, since its
// class does not record that it was deployed.
func inTwoRegions(t *testing.T, near, far string) string {
	t.Helper()
	var model, other map[string]any
	require.NoError(t, json.Unmarshal([]byte(near), &model), near)
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(far, `"regionName": null`, `"regionName": "`+keystone.SecondRegion+`"`)), &other), far)
	for _, part := range []string{"Objects", "ObjectsCopy"} {
		objects, others := model[part].(map[string]any), other[part].(map[string]any)
		regions, farther := objects["regions"].(map[string]any), others["regions"].(map[string]any)
		regions[keystone.SecondRegion] = farther[keystone.SecondRegion]
		for _, list := range []string{"services", "applications"} {
			if here, has := objects[list].([]any); has {
				objects[list] = append(here, others[list].([]any)...)
			}
		}
	}
	model["Attributes"] = slices.DeleteFunc(append(model["Attributes"].([]any), other["Attributes"].([]any)...), func(attribute any) bool {
		return attribute.([]any)[2] == "deployed" && slices.Contains([]any{muranosWeb2, otherwise(muranosWeb2)}, attribute.([]any)[0])
	})
	made, err := json.Marshal(model)
	require.NoError(t, err)
	return string(made)
}

// leftStack is a stack that Murano has made.
type leftStack struct {
	user      cloudUser
	name, id  string
	resources map[string]string // the ids of its resources, by their names
	router    string
}

// leave makes a stack like one that Murano has left.
func (u cloudUser) leave(t *testing.T, name, template string) *leftStack {
	t.Helper()
	keep := true
	made, err := stacks.Create(t.Context(), u.heat, stacks.CreateOpts{Name: name, TemplateOpts: &stacks.Template{TE: stacks.TE{Bin: []byte(template)}},
		DisableRollback: &keep, Tags: []string{"murano"}}).Extract()
	require.NoError(t, err)
	left := &leftStack{user: u, name: name, id: made.ID}
	require.Eventually(t, func() bool {
		stack, err := stacks.Get(t.Context(), u.heat, name, made.ID).Extract()
		require.NoError(t, err)
		require.NotEqual(t, "CREATE_FAILED", stack.Status, stack.StatusReason)
		return stack.Status == "CREATE_COMPLETE"
	}, time.Minute, 50*time.Millisecond)
	left.resources = left.now(t)
	return left
}

// leftByMurano makes the stack of the environment "deployed", and the router to which it was connected.
func (u cloudUser) leftByMurano(t *testing.T, text string, spelled func(string) string) *leftStack {
	t.Helper()
	outside := true
	pages, err := networks.List(u.neutron, external.ListOptsExt{ListOptsBuilder: networks.ListOpts{}, External: &outside}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := networks.ExtractNetworks(pages)
	require.NoError(t, err)
	router, err := routers.Create(t.Context(), u.neutron, routers.CreateOpts{Name: "murano-default-router", GatewayInfo: &routers.GatewayInfo{NetworkID: found[0].ID}}).Extract()
	require.NoError(t, err)
	var stack struct {
		Name     string
		Template json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(strings.NewReplacer(muranosRouter, router.ID, muranosExternal, found[0].ID).Replace(spelled(text))), &stack))
	left := u.leave(t, stack.Name, string(stack.Template))
	left.router = router.ID
	return left
}

// in returns the model with the ids of this cloud.
func (l *leftStack) in(model string) string {
	network := ""
	for name, id := range l.resources {
		if strings.HasPrefix(name, "network-") {
			network = id
		}
	}
	return strings.NewReplacer(muranosRouter, l.router, muranosNetwork, network, muranosFirst, l.resources["web1"], muranosSecond, l.resources["web2"]).Replace(model)
}

// now are the ids of the stack's resources, by their names.
func (l *leftStack) now(t *testing.T) map[string]string {
	t.Helper()
	pages, err := stackresources.List(l.user.heat, l.name, l.id, nil).AllPages(t.Context())
	require.NoError(t, err)
	list, err := stackresources.ExtractResources(pages)
	require.NoError(t, err)
	found := map[string]string{}
	for _, one := range list {
		found[one.Name] = one.PhysicalID
	}
	return found
}

// forget deletes the router, which was never the environment's.
func (l *leftStack) forget(t *testing.T) {
	require.NoError(t, routers.Delete(context.WithoutCancel(t.Context()), l.user.neutron, l.router).ExtractErr())
}
