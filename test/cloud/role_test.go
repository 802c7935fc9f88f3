package cloud

import (
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	driver "github.com/burano/burano/orchestrator/openstack"
)

// robot signs in with an application credential of a user.
func (c *cloud) robot(t *testing.T, owner user, userID string) user {
	made, err := applicationcredentials.Create(t.Context(), owner.keystone(t), userID, applicationcredentials.CreateOpts{Name: "burano-test-robot"}).Extract()
	require.NoError(t, err)
	options, endpoint := c.options(t, "demo")
	return signIn(t, gophercloud.AuthOptions{IdentityEndpoint: options.IdentityEndpoint, ApplicationCredentialID: made.ID, ApplicationCredentialSecret: made.Secret}, endpoint)
}

// takeRole takes the role member in a project from the service user, behind Burano's back.
func (c *cloud) takeRole(t *testing.T, service *driver.Service, projectID string) {
	admin := c.as(t, "admin").keystone(t)
	pages, err := roles.List(admin, roles.ListOpts{Name: "member"}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := roles.ExtractRoles(pages)
	require.NoError(t, err)
	require.NoError(t, roles.Unassign(t.Context(), admin, found[0].ID, roles.UnassignOpts{UserID: service.ServiceUser().ID, ProjectID: projectID}).ExtractErr())
}

// aProjectLetsBuranoWorkWithARole: its users make no trusts, may sign in as robots, and leave in the middle of a deployment.
func aProjectLetsBuranoWorkWithARole(t *testing.T, c *cloud) {
	service := c.service(t)
	h := newTasks(t, service, 30*time.Minute)
	as := func(entry string) identity.Caller { return c.as(t, entry).caller(t, service) } // tokens end soon
	project := as("demo").ProjectID
	_, err := h.roles.Enable(t.Context(), as("demo"), project)
	require.Equal(t, fault.Forbidden, fault.KindOf(err), err)
	require.ErrorContains(t, err, "openstack role add --project "+project+" --user "+service.ServiceUser().ID+" member")
	_, err = h.roles.Enable(t.Context(), as("other"), project)
	require.Equal(t, fault.Forbidden, fault.KindOf(err), err)
	shown, err := h.roles.Show(t.Context(), as("demo"), project)
	require.NoError(t, err)
	require.False(t, shown.Enabled)

	enabled, err := h.roles.Enable(t.Context(), as("admin"), project)
	require.NoError(t, err)
	require.True(t, enabled.Enabled)
	require.Empty(t, enabled.Problem)
	defer func() { require.NoError(t, h.roles.Disable(t.Context(), as("admin"), project)) }()
	again, err := h.roles.Enable(t.Context(), as("demo"), project)
	require.NoError(t, err, "the role is there: whoever may by Burano's policy makes use of it")
	require.True(t, again.Enabled)

	h.passes = make(chan struct{})
	leaver, id, leave := c.member(t, "burano-test-robots-owner")
	robot := c.robot(t, leaver, id).caller(t, service)
	require.NotNil(t, robot.Credential)
	environment, err := h.service.Environments().Create(t.Context(), as("demo"), map[string]any{"name": "role"})
	require.NoError(t, err)
	h.deploy(robot, environment.ID, "first")
	<-h.reached
	require.Empty(t, c.trustsOf(t, id), "no trust of the user is made")
	leave()
	h.passes <- struct{}{}
	state, reports := h.ended(as("demo"), environment.ID)
	require.Equal(t, "success", state, reports)
	require.Len(t, c.as(t, "demo").stacksNamed(t, stackOf(environment.ID)), 1)

	deploy := func(name string) (string, string) {
		h.deploy(as("demo"), environment.ID, name)
		select { // it asks for its stack, or has failed earlier
		case <-h.reached:
			h.passes <- struct{}{}
		case <-ended(h, as("demo"), environment.ID):
		}
		return h.ended(as("demo"), environment.ID)
	}
	state, reports = deploy("second")
	require.Equal(t, "success", state, reports)

	c.takeRole(t, service, project)
	shown, err = h.roles.Show(t.Context(), as("demo"), project)
	require.NoError(t, err)
	require.Contains(t, shown.Problem, "burano project enable --project "+project)
	state, reports = deploy("third")
	require.NotEqual(t, "success", state)
	require.Contains(t, reports, "burano project enable --project "+project)
	_, err = h.roles.Enable(t.Context(), as("admin"), project)
	require.NoError(t, err)
	state, reports = deploy("fourth")
	require.Equal(t, "success", state, "the stack, which is the service user's, can be changed again: %s", reports)

	h.passes = nil
	require.NoError(t, h.service.Environments().Delete(t.Context(), as("demo"), environment.ID, false))
	eventually(t, "the environment is gone", func() bool {
		_, err := h.service.Environments().Get(t.Context(), as("demo"), environment.ID, "")
		return err != nil
	})
	require.Empty(t, c.as(t, "demo").stacksNamed(t, stackOf(environment.ID)))
}

// ended is closed when the newest deployment of an environment has ended.
func ended(h *tasks, caller identity.Caller, environment string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		eventually(h.T, "the deployment ends", func() bool {
			list, err := h.service.Deployments().List(h.Context(), caller, environment)
			return err != nil || list[0].Finished != nil
		})
	}()
	return done
}

func (c *cloud) trustsOf(t *testing.T, userID string) []trusts.Trust {
	pages, err := trusts.List(c.as(t, "admin").keystone(t), trusts.ListOpts{TrustorUserID: userID}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := trusts.ExtractTrusts(pages)
	require.NoError(t, err)
	return found
}

// aRoleIsNoMore: the token with which tasks work carries the role in that project, and no other right of the service user.
func aRoleIsNoMore(t *testing.T, c *cloud) {
	service := c.service(t)
	as := func(entry string) identity.Caller { return c.as(t, entry).caller(t, service) }
	demo := as("demo")
	trust, err := service.LetIn(t.Context(), as("admin"), demo.ProjectID, []string{"member"}, "")
	require.NoError(t, err)
	defer func() {
		require.NoError(t, service.LetOut(t.Context(), as("admin"), demo.ProjectID, []string{"member"}))
	}()
	same, err := service.LetIn(t.Context(), as("admin"), demo.ProjectID, []string{"member"}, trust)
	require.NoError(t, err)
	require.Equal(t, trust, same, "Heat's trusts were made through it")

	options, endpoint := c.options(t, "service")
	options.TenantName, options.TenantID = "", ""
	options.Scope = &gophercloud.AuthScope{TrustID: trust}
	worker := signIn(t, options, endpoint)
	seen := worker.caller(t, service)
	require.Equal(t, demo.ProjectID, seen.ProjectID)
	require.Equal(t, service.ServiceUser().ID, seen.UserID)
	require.Contains(t, seen.Roles, "member")
	require.NotContains(t, seen.Roles, "admin")
	err = tokens.Create(t.Context(), worker.keystone(t), &tokens.AuthOptions{TokenID: worker.provider.Token(), Scope: tokens.Scope{ProjectID: service.ProjectID()}}).Err
	require.Truef(t, gophercloud.ResponseCodeIs(err, 403), "a token of it becomes no token of the service user's own project: %v", err)

	require.Equal(t, fault.Forbidden, fault.KindOf(service.LetOut(t.Context(), as("demo"), demo.ProjectID, []string{"member"})))
	require.NoError(t, service.LetOut(t.Context(), as("admin"), demo.ProjectID, []string{"member"}))
	works, err := service.WorksIn(t.Context(), trust)
	require.NoError(t, err)
	require.False(t, works)
	require.NoError(t, service.LetOut(t.Context(), as("demo"), demo.ProjectID, []string{"member"}), "it is gone")
}
