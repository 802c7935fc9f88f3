package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/direct"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/engine/enginetest"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/test/localcloud/fault"
)

// tasks is a Burano whose deployments make a stack of random strings, one for each application.
type tasks struct {
	*testing.T
	service *orchestrator.Service
	roles   *orchestrator.ProjectRoles
	rows    *store.Store
	reached chan struct{} // signals that a deployment is about to ask for its stack
	passes  chan struct{} // lets one deployment go on; nil: none waits
}

func newTasks(t *testing.T, cloud *driver.Service, outage time.Duration) *tasks {
	h := &tasks{T: t, reached: make(chan struct{}, 1)}
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	rows, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
	require.NoError(t, err)
	h.rows = rows
	packages, err := enginetest.Packages()
	require.NoError(t, err)
	worker, err := engine.New(t.Context(), engine.Config{Store: rows, Sealer: sealer, Cloud: cloud, Source: enginetest.Source(packages), Natives: h.natives,
		Logger: slog.New(slog.DiscardHandler), Poll: time.Second, Sole: true, OutagePatience: outage})
	require.NoError(t, err)
	h.service = orchestrator.New(orchestrator.Config{Store: rows, Sealer: sealer, Trusts: cloud, Engine: worker, Logger: slog.New(slog.DiscardHandler)})
	h.roles = orchestrator.NewProjectRoles(rows, sealer, cloud, nil, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- worker.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return h
}

func (h *tasks) natives(r *engine.Runtime) muranopl.Natives {
	deploy := func(ctx context.Context, call muranopl.Call) (any, error) {
		project, err := r.Project(ctx)
		if err != nil {
			return nil, err
		}
		if h.passes != nil {
			h.reached <- struct{}{}
			<-h.passes
		}
		resources := map[string]any{}
		for _, application := range call.Object.Objects("applications") {
			resources["string-"+application.Text("name")] = map[string]any{"type": "OS::Heat::RandomString"}
		}
		_, err = project.ApplyStack(ctx, stackOf(r.EnvironmentID()), driver.Content{Template: map[string]any{"heat_template_version": "2018-08-31", "resources": resources}})
		return nil, err
	}
	destroy := func(ctx context.Context, _ muranopl.Call) (any, error) {
		project, err := r.Project(ctx)
		if err != nil {
			return nil, err
		}
		return nil, project.DeleteStack(ctx, stackOf(r.EnvironmentID()))
	}
	nothing := func(context.Context, muranopl.Call) (any, error) { return nil, nil }
	return muranopl.Natives{
		"io.murano":        {"io.murano.Environment": {"deploy": deploy, ".destroy": destroy}},
		"org.golden.Hello": {"org.golden.Hello": {"deploy": nothing, ".destroy": nothing, "boom": nothing, "shout": nothing}},
	}
}

func stackOf(environment string) string { return "burano-test-task-" + environment }

// deploy submits a deployment of one application of this name.
func (h *tasks) deploy(caller identity.Caller, environment, name string) {
	h.Helper()
	session, err := h.service.Sessions().Open(h.Context(), caller, environment)
	require.NoError(h, err)
	application := map[string]any{"?": map[string]any{"id": "of-" + name, "type": "org.golden.Hello"}, "name": name}
	require.NoError(h, h.service.Models().PutServices(h.Context(), caller, environment, session.ID, nil, []any{application}, false))
	require.NoError(h, h.service.Sessions().Deploy(h.Context(), caller, environment, session.ID))
}

// ended waits for the end of the newest deployment, and returns its state and its reports.
func (h *tasks) ended(caller identity.Caller, environment string) (state, reports string) {
	h.Helper()
	var last orchestrator.Deployment
	eventually(h.T, "the deployment ends", func() bool {
		list, err := h.service.Deployments().List(h.Context(), caller, environment)
		require.NoError(h, err)
		last = list[0]
		return last.Finished != nil
	})
	lines, err := h.service.Deployments().Reports(h.Context(), caller, environment, last.ID, nil)
	require.NoError(h, err)
	for _, line := range lines {
		reports += line.Text + "\n"
	}
	return last.State, reports
}

// member makes a user who is a member of demo's project, until the test ends.
func (c *cloud) member(t *testing.T, name string) (member user, id string, remove func()) {
	admin := c.as(t, "admin").keystone(t)
	project := c.as(t, "demo").caller(t, c.service(t)).ProjectID
	made, err := users.Create(t.Context(), admin, users.CreateOpts{Name: name, Password: "secret", DomainID: "default"}).Extract()
	require.NoError(t, err)
	gone := false
	remove = func() {
		if !gone {
			gone = true
			require.NoError(t, users.Delete(context.Background(), admin, made.ID).ExtractErr())
		}
	}
	t.Cleanup(remove)
	pages, err := roles.List(admin, roles.ListOpts{Name: "member"}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := roles.ExtractRoles(pages)
	require.NoError(t, err)
	require.NoError(t, roles.Assign(t.Context(), admin, found[0].ID, roles.AssignOpts{UserID: made.ID, ProjectID: project}).ExtractErr())
	options, endpoint := c.options(t, "demo")
	options.Username, options.Password = name, "secret"
	return signIn(t, options, endpoint), made.ID, remove
}

// aUserWhoIsDeletedIsNoOutage: Heat refuses every change of a stack whose user and trust are gone with 500, as in an outage.
func aUserWhoIsDeletedIsNoOutage(t *testing.T, c *cloud) {
	service := c.service(t)
	h := newTasks(t, service, 30*time.Minute)
	demo := c.as(t, "demo").caller(t, service)
	leaver, _, leave := c.member(t, "burano-test-leaver")
	environment, err := h.service.Environments().Create(t.Context(), demo, map[string]any{"name": "left"})
	require.NoError(t, err)
	h.deploy(leaver.caller(t, service), environment.ID, "first")
	state, reports := h.ended(demo, environment.ID)
	require.Equal(t, "success", state, reports)
	leave()

	h.deploy(demo, environment.ID, "second")
	state, reports = h.ended(demo, environment.ID)
	require.NotEqual(t, "success", state)
	require.Contains(t, reports, "Heat can change stack "+stackOf(environment.ID)+" no more")
	require.Contains(t, reports, "burano-test-leaver")
	require.Contains(t, reports, "Delete the environment")

	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, environment.ID, false))
	eventually(t, "the environment is gone", func() bool {
		_, err := h.service.Environments().Get(t.Context(), demo, environment.ID, "")
		return err != nil
	})
	require.Empty(t, c.as(t, "demo").stacksNamed(t, stackOf(environment.ID)))
}

// whoHasGoneTakesNothingAway: all stacks of a deleted user can be changed, and also the stacks that were made with Burano's own role
// after that role is taken.
func whoHasGoneTakesNothingAway(t *testing.T, c *cloud) {
	service := c.service(t)
	h := newTasks(t, service, 30*time.Minute)
	service.Orchestrate(driver.Auto, direct.New(h.rows.Stacks()).In)
	as := func(entry string) identity.Caller { return c.as(t, entry).caller(t, service) } // tokens end soon
	project := as("demo").ProjectID
	leaver, _, leave := c.member(t, "burano-test-gone-for-good")
	made := func(name string) string {
		environment, err := h.service.Environments().Create(t.Context(), as("demo"), map[string]any{"name": name})
		require.NoError(t, err)
		return environment.ID
	}
	said := ""
	deploy := func(caller identity.Caller, environment, name string) {
		t.Helper()
		h.deploy(caller, environment, name)
		state, reports := h.ended(as("demo"), environment)
		require.Equal(t, "success", state, reports)
		said = reports
	}
	byTrust, byRole, ofRole := made("by-trust"), made("by-role"), made("of-role")
	deploy(leaver.caller(t, service), byTrust, "first")
	deploy(leaver.caller(t, service), byRole, "first")
	leave()
	deploy(as("demo"), byTrust, "second")
	require.Contains(t, said, "is made without Heat from now on, with the same servers")
	deploy(as("demo"), byTrust, "third")

	_, err := h.roles.Enable(t.Context(), as("admin"), project)
	require.NoError(t, err)
	deploy(as("demo"), byRole, "second")
	deploy(as("demo"), ofRole, "first")
	require.NoError(t, h.roles.Disable(t.Context(), as("admin"), project))
	deploy(as("demo"), ofRole, "second")
	deploy(as("demo"), byRole, "third")

	for _, environment := range []string{byTrust, byRole, ofRole} {
		require.NoError(t, h.service.Environments().Delete(t.Context(), as("demo"), environment, false))
		eventually(t, "the environment is gone", func() bool {
			_, err := h.service.Environments().Get(t.Context(), as("demo"), environment, "")
			return err != nil
		})
		require.Empty(t, c.as(t, "demo").stacksNamed(t, stackOf(environment)))
	}
}

// aTrustThatIsRefusedInTheMiddleEndsATask reports the refusal, and another member goes on.
func aTrustThatIsRefusedInTheMiddleEndsATask(t *testing.T, c *cloud) {
	service := c.service(t)
	h := newTasks(t, service, 30*time.Minute)
	h.passes = make(chan struct{})
	demo := c.as(t, "demo").caller(t, service)
	leaver, id, _ := c.member(t, "burano-test-revoker")
	environment, err := h.service.Environments().Create(t.Context(), demo, map[string]any{"name": "revoked"})
	require.NoError(t, err)
	h.deploy(leaver.caller(t, service), environment.ID, "first")
	<-h.reached
	own := leaver.keystone(t)
	pages, err := trusts.List(own, trusts.ListOpts{TrustorUserID: id}).AllPages(t.Context())
	require.NoError(t, err)
	mine, err := trusts.ExtractTrusts(pages)
	require.NoError(t, err)
	require.Len(t, mine, 1)
	require.NoError(t, trusts.Delete(t.Context(), own, mine[0].ID).ExtractErr())
	h.passes <- struct{}{}
	state, reports := h.ended(demo, environment.ID)
	require.NotEqual(t, "success", state)
	require.Contains(t, reports, "Burano can act for the user who started this no more")

	h.deploy(demo, environment.ID, "second")
	<-h.reached
	h.passes <- struct{}{}
	state, reports = h.ended(demo, environment.ID)
	require.Equal(t, "success", state, reports)
	h.passes = nil
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, environment.ID, false))
	eventually(t, "the environment is gone", func() bool {
		_, err := h.service.Environments().Get(t.Context(), demo, environment.ID, "")
		return err != nil
	})
}

// TestATaskOutlivesAnOutageInItsMiddle: Keystone and Heat answer nothing of use for a while. Only the local cloud can simulate
// that.
func TestATaskOutlivesAnOutageInItsMiddle(t *testing.T) {
	if os.Getenv(cloudsVariable) != "" {
		t.Skip("a real cloud has no outages to order")
	}
	c := open(t)
	service := c.service(t)
	h := newTasks(t, service, 2*time.Minute)
	h.passes = make(chan struct{})
	demo := c.as(t, "demo").caller(t, service)
	environment, err := h.service.Environments().Create(t.Context(), demo, map[string]any{"name": "outage"})
	require.NoError(t, err)
	h.deploy(demo, environment.ID, "first")
	<-h.reached
	var faults []fault.Fault
	for nth := range 6 {
		for _, path := range []string{"/identity/v3/auth/tokens", "/orchestration/.*"} {
			faults = append(faults, fault.Fault{Path: path, Nth: nth, Kind: fault.Kinds[nth%3]}) // 500, 502, 503
		}
	}
	body, err := json.Marshal(faults)
	require.NoError(t, err)
	options, _ := c.options(t, "demo")
	address, _, _ := strings.Cut(options.IdentityEndpoint, "/identity")
	answer, err := http.Post(address+"/faults", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Less(t, answer.StatusCode, 300)
	h.passes <- struct{}{}
	state, reports := h.ended(demo, environment.ID)
	require.Equal(t, "success", state, reports)
	require.Len(t, c.as(t, "demo").stacksNamed(t, stackOf(environment.ID)), 1)
}
