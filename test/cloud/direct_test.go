package cloud

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/direct"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// The driver without Heat passes the same cases as the one with Heat, except for cases about Heat itself.
func TestStacksAreMadeTheSameWithoutHeat(t *testing.T) {
	c := open(t)
	c.rows = openRows(t)
	for _, try := range []struct {
		name string
		run  func(*testing.T, *cloud)
	}{
		{"a port is open when its group says so, and a server reaches the metadata address", aPortIsOpenWhenItsGroupSaysSo},
		{"a stack grows and shrinks in single updates and leaves nothing", aStackGrowsAndShrinks},
		{"a stack has parameters, files and an environment, and changes when these do", aStackHasParametersAndFiles},
		{"two who create the same stack make one", twoCreateOneStack},
		{"a stack that is being deleted is made anew", aStackThatIsBeingDeletedIsMadeAnew},
		{"a refused template says why", aRefusedTemplateSaysWhy},
		{"a server for which there is no room says why, and a stack is healed by applying it again", noRoomIsSaidAndHealed},
		{"what is missing is said before anything is made", whatIsMissingIsSaidBefore},
		{"a quota that is used up is named", aQuotaIsNamed},
		{"servers are members of their server group", serversAreMembersOfTheirGroup},
		{"a server that is off is started, one that is gone is made anew, and a rebuild is seen", missingServersAreMended},
		{"a server that is there is not rebuilt, resized or replaced by an update", serversThatAreThereAreKept},
		{"a server that was made with the value of a hidden parameter keeps it", whatHeatHidesIsComparedByHeat},
		{"a new release with other user data and another template changes no server", aNewReleaseChangesNoServer},
		{"a server's further networks come and go while it runs", heatChangesServersAsTheTableSays},
	} {
		t.Run(try.name, func(t *testing.T) {
			began := time.Now()
			try.run(t, c)
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

// countedRows count the updates of stacks.
type countedRows struct {
	store.Stacks
	mutex sync.Mutex
	begun map[string]int
}

func (r *countedRows) ChangeStack(ctx context.Context, holder string, stack store.Stack) error {
	if stack.Action == "UPDATE" && stack.Status == "IN_PROGRESS" {
		r.mutex.Lock()
		r.begun[stack.ID]++
		r.mutex.Unlock()
	}
	return r.Stacks.ChangeStack(ctx, holder, stack)
}

func (r *countedRows) updates(id string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.begun[id]
}

func openRows(t *testing.T) *countedRows {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	rows, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
	require.NoError(t, err)
	return &countedRows{Stacks: rows.Stacks(), begun: map[string]int{}}
}

// direct is the driver without Heat in the user's project, as another server of Burano has it.
func (u user) direct(t *testing.T) driver.Stacks {
	project, err := u.provider.GetAuthResult().(tokens.CreateResult).ExtractProject()
	require.NoError(t, err)
	volume := func() (*gophercloud.ServiceClient, error) { return openstack.NewBlockStorageV3(u.provider, u.endpoint) }
	return direct.New(u.rows).In(driver.Clients{Network: u.neutron(t), Compute: u.nova(t), Image: u.client(t, openstack.NewImageV2), Volume: volume,
		ProjectID: project.ID, Region: u.endpoint.Region})
}

// A server of Burano dies at any instant: before it records a resource, and after it has ordered one. Its successor makes nothing twice, and deletes
// all.
func TestAStackThatIsMadeWithoutHeatIsTakenOverAtEveryInstant(t *testing.T) {
	c := &cloud{path: startLocalCloud(t), brief: "service", rows: openRows(t)}
	c.upload(t)
	demo := c.as(t, "demo")
	const name = "burano-test-killed"
	empty := demo.has(t)
	wanted := func(project *driver.Project) driver.Content {
		template := plan(t, project, "one")
		template.Resources["servers"] = stackResource{Type: "OS::Nova::ServerGroup", Properties: map[string]any{"name": "burano-test", "policies": []any{"affinity"}}}
		template.Resources["key"] = stackResource{Type: "OS::Nova::KeyPair", Properties: map[string]any{"name": "burano-test"}}
		template.Resources["rule"] = stackResource{Type: "OS::Neutron::SecurityGroupRule", Properties: map[string]any{
			"security_group": get("resource", "group"), "protocol": "udp", "port_range_min": 53, "port_range_max": 53}}
		template.Resources["word"] = stackResource{Type: "OS::Heat::RandomString"}
		return template.content(t)
	}
	var whole map[string]int
	for n := 1; ; n++ {
		dying := &dyingRows{countedRows: c.rows, left: n}
		project := demo.projectBy(t, c, dying)
		ctx, die := context.WithCancel(t.Context())
		dying.die = die
		_, err := project.ApplyStack(ctx, name, wanted(project))
		die()
		if died := ctx.Err() != nil && dying.dead(); died {
			require.Error(t, err)
		} else {
			require.NoError(t, err)
		}
		next := demo.projectBy(t, c, c.rows)
		_, err = next.ApplyStack(t.Context(), name, wanted(next))
		require.NoError(t, err, "taken over after %d writes", n)
		has := demo.has(t)
		if whole == nil {
			whole = has
		}
		require.Equal(t, whole, has, "after %d writes", n)

		// The deletion dies, too.
		dying = &dyingRows{countedRows: c.rows, left: n}
		project = demo.projectBy(t, c, dying)
		ctx, die = context.WithCancel(t.Context())
		dying.die = die
		_ = project.DeleteStack(ctx, name)
		die()
		require.NoError(t, demo.projectBy(t, c, c.rows).DeleteStack(t.Context(), name), "deleted after %d writes", n)
		require.Equal(t, empty, demo.has(t), "after %d writes", n)
		if !dying.dead() {
			require.Greater(t, n, 10)
			t.Logf("%d instants", n)
			return
		}
	}
}

// dyingRows simulate the death of their server at a write, which is not made.
type dyingRows struct {
	*countedRows
	mutex sync.Mutex
	left  int
	die   func()
}

func (r *dyingRows) dead() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.left <= 0
}

func (r *dyingRows) write() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.left--; r.left <= 0 {
		r.die()
		return errors.New("the server is dead")
	}
	return nil
}

func (r *dyingRows) AddStackOf(ctx context.Context, stack *store.Stack, resources []store.StackResource) error {
	if err := r.write(); err != nil {
		return err
	}
	return r.countedRows.AddStackOf(ctx, stack, resources)
}

func (r *dyingRows) PutStackResource(ctx context.Context, holder string, resource store.StackResource) error {
	if err := r.write(); err != nil {
		return err
	}
	return r.countedRows.PutStackResource(ctx, holder, resource)
}

func (r *dyingRows) RemoveStackResource(ctx context.Context, holder, stackID, id string) error {
	if err := r.write(); err != nil {
		return err
	}
	return r.countedRows.RemoveStackResource(ctx, holder, stackID, id)
}

// projectBy is the user's project with stacks in these rows, as a server sees it that has just started.
func (u user) projectBy(t *testing.T, c *cloud, rows direct.Rows) *driver.Project {
	options, endpoint := c.options(t, "service")
	service, err := driver.NewService(t.Context(), options, endpoint, nil)
	require.NoError(t, err)
	service.Orchestrate(driver.Direct, direct.New(rows).In)
	project, err := service.ProjectOf(t.Context(), u.caller(t, service))
	require.NoError(t, err)
	return project
}

// has counts the user's resources in the cloud.
func (u user) has(t *testing.T) map[string]int {
	counts := map[string]int{}
	for _, list := range []struct {
		client *gophercloud.ServiceClient
		path   string
		key    string
	}{{u.nova(t), "servers", "servers"}, {u.nova(t), "os-keypairs", "keypairs"}, {u.nova(t), "os-server-groups", "server_groups"}, {u.neutron(t), "networks", "networks"},
		{u.neutron(t), "subnets", "subnets"}, {u.neutron(t), "ports", "ports"}, {u.neutron(t), "routers", "routers"}, {u.neutron(t), "security-groups", "security_groups"},
		{u.neutron(t), "security-group-rules", "security_group_rules"}, {u.neutron(t), "floatingips", "floatingips"}} {
		var answer map[string]any
		_, err := list.client.Get(t.Context(), list.client.ServiceURL(list.path), &answer, nil)
		require.NoError(t, err)
		all, ok := answer[list.key].([]any)
		require.True(t, ok, "%s: %v", list.path, answer)
		counts[list.key] = len(all)
	}
	return counts
}

// The service catalog, or the setting, chooses between Heat and Burano for new stacks. An existing stack stays with its
// maker.
func TestAStackStaysWithWhoMadeIt(t *testing.T) {
	c := &cloud{path: startLocalCloud(t), brief: "service"}
	rows := openRows(t)
	demo := c.as(t, "demo")
	keystone := c.as(t, "admin").keystone(t)
	pages, err := services.List(keystone, services.ListOpts{ServiceType: "orchestration"}).AllPages(t.Context())
	require.NoError(t, err)
	list, err := services.ExtractServices(pages)
	require.NoError(t, err)
	require.Len(t, list, 1)
	offer := func(heat bool) {
		_, err := services.Update(t.Context(), keystone, list[0].ID, services.UpdateOpts{Enabled: &heat}).Extract()
		require.NoError(t, err)
	}
	project := func(wanted driver.Orchestration) (*driver.Project, error) {
		options, endpoint := c.options(t, "service")
		service, err := driver.NewService(t.Context(), options, endpoint, nil)
		require.NoError(t, err)
		service.Orchestrate(wanted, direct.New(rows).In)
		return service.ProjectOf(t.Context(), demo.caller(t, service))
	}
	apply := func(wanted driver.Orchestration, name string) driver.Orchestration {
		t.Helper()
		project, err := project(wanted)
		require.NoError(t, err)
		by, err := project.StackMaker(t.Context(), name, "")
		require.NoError(t, err)
		_, err = project.ApplyStack(t.Context(), name, driver.Content{Template: map[string]any{"heat_template_version": "2018-08-31",
			"resources": map[string]any{"word": map[string]any{"type": "OS::Heat::RandomString"}}}})
		require.NoError(t, err)
		made, err := rows.StacksNamed(t.Context(), demo.caller(t, c.service(t)).ProjectID, endpointRegion(t, c), name)
		require.NoError(t, err)
		require.Equal(t, by == driver.Direct, len(made) == 1)
		return by
	}
	require.Equal(t, driver.Heat, apply(driver.Auto, "burano-test-first"))
	require.Equal(t, driver.Heat, apply(driver.Direct, "burano-test-first"), "Heat has made it")
	require.Equal(t, driver.Direct, apply(driver.Direct, "burano-test-second"))
	require.Equal(t, driver.Direct, apply(driver.Auto, "burano-test-second"), "Burano has made it itself")
	require.Equal(t, driver.Direct, apply(driver.Heat, "burano-test-second"))

	offer(false)
	_, err = project(driver.Heat)
	require.ErrorContains(t, err, "find Heat in the service catalog")
	require.Equal(t, driver.Direct, apply(driver.Auto, "burano-test-third"))
	without, err := project(driver.Auto)
	require.NoError(t, err)
	_, err = without.StackMaker(t.Context(), "burano-test-first", driver.Heat)
	require.Equal(t, fault.Conflict, fault.KindOf(err), err)
	require.ErrorContains(t, err, "was made by Heat, and the service catalog has no Heat any more")
}

func endpointRegion(t *testing.T, c *cloud) string {
	_, endpoint := c.options(t, "service")
	return endpoint.Region
}

// A template that only Heat can handle is refused before anything is made, with the reason.
func TestWhatOnlyHeatCanDoIsRefused(t *testing.T) {
	c := &cloud{path: startLocalCloud(t), brief: "service", rows: openRows(t)}
	demo := c.as(t, "demo")
	project := demo.projectBy(t, c, c.rows)
	word := func(changes map[string]any) map[string]any {
		made := map[string]any{"type": "OS::Heat::RandomString"}
		maps.Copy(made, changes)
		return map[string]any{"resources": map[string]any{"word": made}}
	}
	for said, template := range map[string]map[string]any{
		"the type OS::Heat::ResourceGroup works only with Heat": word(map[string]any{"type": "OS::Heat::ResourceGroup"}),
		`the function "resource_facade" works only with Heat`:   word(map[string]any{"properties": map[string]any{"salt": map[string]any{"resource_facade": "metadata"}}}),
		"the property colour is not known":                      word(map[string]any{"properties": map[string]any{"colour": "red"}}),
		"names a resource other, which the template has not":    word(map[string]any{"properties": map[string]any{"salt": get("resource", "other")}}),
		"the deletion policy Snapshot works only with Heat":     word(map[string]any{"deletion_policy": "Snapshot"}),
		"need each other in a circle":                           word(map[string]any{"depends_on": "word"}),
		`length: "many" is no whole number`:                     word(map[string]any{"properties": map[string]any{"length": "many"}}),
	} {
		template["heat_template_version"] = "2018-08-31"
		_, err := project.ApplyStack(t.Context(), "burano-test-refused", driver.Content{Template: template})
		require.Equal(t, fault.Invalid, fault.KindOf(err), err)
		require.ErrorContains(t, err, said)
		require.Empty(t, demo.stacksNamed(t, "burano-test-refused"))
	}
}
