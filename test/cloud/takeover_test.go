package cloud

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/direct"
	driver "github.com/burano/burano/orchestrator/openstack"
)

// leaving is a stack in Heat whose user has gone, as another member of the project reaches it.
func (c *cloud) leaving(t *testing.T, who, name string, rows direct.Rows, wanted func(*driver.Project) driver.Content) (reach func(direct.Rows) *driver.Project) {
	leaver, _, leave := c.member(t, who)
	service := c.serviceAs(t, "service")
	service.Orchestrate(driver.Auto, direct.New(rows).In)
	project, err := service.Project(t.Context(), leaver.trustOnly(t, service))
	require.NoError(t, err)
	_, err = project.ApplyStack(t.Context(), name, wanted(project))
	require.NoError(t, err)
	leave()
	return func(rows direct.Rows) *driver.Project {
		service := c.serviceAs(t, "service")
		service.Orchestrate(driver.Auto, direct.New(rows).In)
		project, err := service.Project(t.Context(), c.as(t, "demo").trust(t, service))
		require.NoError(t, err)
		return project.Doubting(func(context.Context, string) error { return errors.New("its user has gone") },
			func(context.Context, string, error) error { return nil })
	}
}

// trustOnly is a trust that ends with its user.
func (u user) trustOnly(t *testing.T, service *driver.Service) string {
	trust, _, err := service.CreateTrust(t.Context(), u.caller(t, service), []string{"member"}, time.Time{})
	require.NoError(t, err)
	return trust
}

// serverIDs are the existing servers of the user's project, by their names, with the times of their last changes.
func (u user) serverIDs(t *testing.T) map[string]string {
	pages, err := servers.List(u.nova(t), servers.ListOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	list, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	ids := map[string]string{}
	for _, one := range list {
		ids[one.Name] = one.ID
	}
	return ids
}

// aStackWhoseUserHasGoneIsTakenOver: Heat refuses to change it for good; its servers, ports and addresses stay as they are.
func aStackWhoseUserHasGoneIsTakenOver(t *testing.T, c *cloud) {
	const name = "burano-test-gone"
	demo, rows := c.as(t, "demo"), openRows(t)
	empty := demo.has(t)
	wanted := func(ports int, names ...string) func(*driver.Project) driver.Content {
		return func(project *driver.Project) driver.Content {
			template := plan(t, project, names...)
			template.Resources["rule"] = stackResource{Type: "OS::Neutron::SecurityGroupRule", Properties: map[string]any{
				"security_group": get("resource", "group"), "protocol": "udp", "port_range_min": 53, "port_range_max": ports}}
			template.Resources["word"] = stackResource{Type: "OS::Heat::RandomString"}
			template.Outputs["word"] = stackOutput{Value: get("attr", "word", "value")}
			return template.content(t)
		}
	}
	var word any
	reach := c.leaving(t, "burano-test-goes", name, rows, wanted(53, "one"))
	before := demo.serverIDs(t)
	require.Len(t, before, 1)
	had := demo.has(t)

	project := reach(rows)
	first := project
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience())
		defer cancel()
		require.NoError(t, first.DeleteStack(ctx, name))
	})
	found, _, err := project.FindStack(t.Context(), name)
	require.NoError(t, err)
	word = found.Outputs["word"]
	require.NotEmpty(t, word)
	grown, err := project.ApplyStack(t.Context(), name, wanted(53, "one", "two")(project))
	require.NoError(t, err)
	after := demo.serverIDs(t)
	require.Len(t, after, 2)
	for server, id := range before {
		require.Equal(t, id, after[server], "server %s is the same one", server)
	}
	require.Equal(t, word, grown.Outputs["word"])
	require.Equal(t, had["networks"], demo.has(t)["networks"])
	require.Len(t, demo.stacksNamed(t, name), 1, "Heat's own stack stays: its deletion would take all with it")

	project = reach(rows) // another task
	shrunk, err := project.ApplyStack(t.Context(), name, wanted(54, "one")(project))
	require.NoError(t, err)
	require.Equal(t, before, demo.serverIDs(t))
	require.Equal(t, word, shrunk.Outputs["word"])
	require.Equal(t, had, demo.has(t), "what is not wanted any more is gone, and nothing else")

	require.NoError(t, project.DeleteStack(t.Context(), name))
	require.Empty(t, demo.stacksNamed(t, name), "Heat's goes with it")
	require.Equal(t, empty, demo.has(t))
}

// A server of Burano dies while it takes a stack over: its successor makes nothing twice.
func TestAStackOfHeatsIsTakenOverAtEveryInstant(t *testing.T) {
	c := &cloud{path: startLocalCloud(t), brief: "service"}
	c.upload(t)
	demo := c.as(t, "demo")
	for n := 1; ; n++ {
		name, rows := fmt.Sprintf("burano-test-dying-%d", n), openRows(t)
		one := func(project *driver.Project) driver.Content { return plan(t, project, "one").content(t) }
		reach := c.leaving(t, fmt.Sprintf("burano-test-dying-%d", n), name, rows, one)
		before := demo.serverIDs(t)
		dying := &dyingRows{countedRows: rows, left: n}
		project := reach(dying)
		ctx, die := context.WithCancel(t.Context())
		dying.die = die
		_, _ = project.ApplyStack(ctx, name, plan(t, project, "one", "two").content(t))
		die()
		next := reach(rows)
		_, err := next.ApplyStack(t.Context(), name, plan(t, next, "one", "two").content(t))
		require.NoError(t, err, "after %d writes", n)
		after := demo.serverIDs(t)
		require.Len(t, after, len(before)+1)
		for server, id := range before {
			require.Equal(t, id, after[server])
		}
		require.NoError(t, next.DeleteStack(t.Context(), name))
		require.Empty(t, demo.serverIDs(t))
		require.Empty(t, demo.stacksNamed(t, name))
		if n == 8 || !dying.dead() {
			return
		}
	}
}

// A user is deleted in the middle of a deployment: Heat gives up on the resources in work, and may have lost track of healthy
// servers.
func TestAStackThatHeatGaveUpOnIsTakenOverWithWhatIsThere(t *testing.T) {
	c := &cloud{path: startLocalCloud(t), brief: "service"}
	c.upload(t)
	demo, rows := c.as(t, "demo"), openRows(t)
	const name = "burano-test-given-up"
	project := demo.project(t, c.service(t))
	stack, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	before := demo.serverIDs(t)
	former := driver.Former{Name: name, Failed: true, Content: plan(t, project, "one", "two").content(t)}
	for _, one := range demo.resources(t, stack, name) {
		made := driver.FormerResource{Name: one.Name, Type: one.Type, PhysicalID: one.PhysicalID, Status: one.Status}
		if one.Type == "OS::Nova::Server" {
			made.Status = "CREATE_FAILED" // its token was refused while Heat asked for its state
		}
		former.Resources = append(former.Resources, made)
	}
	former.Resources = append(former.Resources, driver.FormerResource{Name: driver.ServerResource("two"), Type: "OS::Nova::Server", Status: "INIT_COMPLETE"})

	own := user{provider: demo.provider, endpoint: demo.endpoint, rows: rows}
	require.NoError(t, own.direct(t).(driver.Taker).TakeOver(t.Context(), former))
	require.NoError(t, own.direct(t).(driver.Taker).TakeOver(t.Context(), former), "another task may come to it at the same time")
	require.Len(t, own.stacksNamed(t, name), 1)
	next := demo.projectBy(t, c, rows)
	_, err = next.ApplyStack(t.Context(), name, plan(t, next, "one", "two").content(t))
	require.NoError(t, err)
	after := demo.serverIDs(t)
	require.Len(t, after, 2)
	for server, id := range before {
		require.Equal(t, id, after[server], "server %s was well", server)
	}
	require.NoError(t, next.DeleteStack(t.Context(), name))
	require.Empty(t, demo.serverIDs(t))
}
