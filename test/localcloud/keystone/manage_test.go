package keystone_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/domains"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/regions"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/stretchr/testify/require"
)

// tenant is a user with one project, made by an admin.
type tenant struct {
	user    *users.User
	project *projects.Project
	role    *roles.Role
}

// tenant makes a user "ann" of the project "one" in a domain, with a role of its own.
func (c *cloud) tenant(admin *gophercloud.ServiceClient, domainID string) tenant {
	ctx := c.t.Context()
	project, err := projects.Create(ctx, admin, projects.CreateOpts{Name: "one", DomainID: domainID, Description: "first"}).Extract()
	require.NoError(c.t, err)
	user, err := users.Create(ctx, admin, users.CreateOpts{Name: "ann", DomainID: domainID, Password: "ann", DefaultProjectID: project.ID}).Extract()
	require.NoError(c.t, err)
	role, err := roles.Create(ctx, admin, roles.CreateOpts{Name: "clerk"}).Extract()
	require.NoError(c.t, err)
	require.NoError(c.t, roles.Assign(ctx, admin, role.ID, roles.AssignOpts{UserID: user.ID, ProjectID: project.ID}).ExtractErr())
	return tenant{user, project, role}
}

func (c *cloud) optionsOf(of tenant) gophercloud.AuthOptions {
	return gophercloud.AuthOptions{
		IdentityEndpoint: c.url + "/identity/v3", UserID: of.user.ID, Password: "ann", Scope: &gophercloud.AuthScope{ProjectID: of.project.ID},
	}
}

func TestWhatAdminsMakeIsThereAfterARestart(t *testing.T) {
	c := start(t)
	made := c.tenant(c.login("admin"), "default")
	c.restart()
	ann := c.client(c.optionsOf(made))
	require.Equal(t, "ann", c.user(ann).Name)
	require.Equal(t, "one", c.project(ann).Name)
	held, err := tokens.Get(t.Context(), ann, ann.Token()).ExtractRoles()
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.Equal(t, "clerk", held[0].Name)
}

func TestTokensEndWithWhatTheyAreFor(t *testing.T) {
	off := false
	enable := func(admin *gophercloud.ServiceClient, of tenant, on bool) error {
		return users.Update(t.Context(), admin, of.user.ID, users.UpdateOpts{Enabled: &on}).Err
	}
	for name, test := range map[string]struct {
		end  func(*gophercloud.ServiceClient, tenant) error
		undo func(*gophercloud.ServiceClient, tenant) error // nil when it cannot be undone
	}{
		"a disabled user": {
			func(admin *gophercloud.ServiceClient, of tenant) error { return enable(admin, of, false) },
			func(admin *gophercloud.ServiceClient, of tenant) error { return enable(admin, of, true) },
		},
		"another password": {
			func(admin *gophercloud.ServiceClient, of tenant) error {
				return users.Update(t.Context(), admin, of.user.ID, users.UpdateOpts{Password: "new"}).Err
			},
			func(admin *gophercloud.ServiceClient, of tenant) error {
				return users.Update(t.Context(), admin, of.user.ID, users.UpdateOpts{Password: "ann"}).Err
			},
		},
		"a disabled project": {
			func(admin *gophercloud.ServiceClient, of tenant) error {
				return projects.Update(t.Context(), admin, of.project.ID, projects.UpdateOpts{Enabled: &off}).Err
			},
			func(admin *gophercloud.ServiceClient, of tenant) error {
				on := true
				return projects.Update(t.Context(), admin, of.project.ID, projects.UpdateOpts{Enabled: &on}).Err
			},
		},
		"a disabled domain": {
			func(admin *gophercloud.ServiceClient, of tenant) error {
				return domains.Update(t.Context(), admin, of.user.DomainID, domains.UpdateOpts{Enabled: &off}).Err
			},
			func(admin *gophercloud.ServiceClient, of tenant) error {
				on := true
				return domains.Update(t.Context(), admin, of.user.DomainID, domains.UpdateOpts{Enabled: &on}).Err
			},
		},
		"a deleted user": {func(admin *gophercloud.ServiceClient, of tenant) error {
			return users.Delete(t.Context(), admin, of.user.ID).ExtractErr()
		}, nil},
		"a deleted project": {func(admin *gophercloud.ServiceClient, of tenant) error {
			return projects.Delete(t.Context(), admin, of.project.ID).ExtractErr()
		}, nil},
		"the last role taken": {func(admin *gophercloud.ServiceClient, of tenant) error {
			return roles.Unassign(t.Context(), admin, of.role.ID, roles.UnassignOpts{UserID: of.user.ID, ProjectID: of.project.ID}).ExtractErr()
		}, nil},
		"a deleted role": {func(admin *gophercloud.ServiceClient, of tenant) error {
			return roles.Delete(t.Context(), admin, of.role.ID).ExtractErr()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			admin := c.login("admin")
			domain, err := domains.Create(t.Context(), admin, domains.CreateOpts{Name: "elsewhere"}).Extract()
			require.NoError(t, err)
			of := c.tenant(admin, domain.ID)
			ann := c.client(c.optionsOf(of))
			robot, err := applicationcredentials.Create(t.Context(), ann, of.user.ID, applicationcredentials.CreateOpts{Name: "robot"}).Extract()
			require.NoError(t, err)
			robots := gophercloud.AuthOptions{
				IdentityEndpoint: c.url + "/identity/v3", ApplicationCredentialID: robot.ID, ApplicationCredentialSecret: robot.Secret,
			}
			_, err = openstack.AuthenticatedClient(t.Context(), robots)
			require.NoError(t, err)

			require.NoError(t, test.end(admin, of))
			requireStatus(t, tokens.Get(t.Context(), admin, ann.Token()).Err, http.StatusNotFound)
			_, err = openstack.AuthenticatedClient(t.Context(), c.optionsOf(of))
			requireStatus(t, err, http.StatusUnauthorized)
			if name != "another password" {
				_, err = openstack.AuthenticatedClient(t.Context(), robots)
				requireStatus(t, err, http.StatusUnauthorized)
			}
			if test.undo == nil {
				return
			}
			require.NoError(t, test.undo(admin, of))
			requireStatus(t, tokens.Get(t.Context(), admin, ann.Token()).Err, http.StatusNotFound)
			require.NoError(t, tokens.Get(t.Context(), admin, c.client(c.optionsOf(of)).Token()).Err)
		})
	}
}

func TestATrustEndsWithItsUsersAndProject(t *testing.T) {
	for name, end := range map[string]func(*gophercloud.ServiceClient, tenant) error{
		"its trustor": func(admin *gophercloud.ServiceClient, of tenant) error {
			return users.Delete(t.Context(), admin, of.user.ID).ExtractErr()
		},
		"its project": func(admin *gophercloud.ServiceClient, of tenant) error {
			return projects.Delete(t.Context(), admin, of.project.ID).ExtractErr()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			admin, service := c.login("admin"), c.login("burano")
			of := c.tenant(admin, "default")
			made, err := trusts.Create(t.Context(), c.client(c.optionsOf(of)), trusts.CreateOpts{
				Impersonation: true, TrustorUserID: of.user.ID, TrusteeUserID: c.user(service).ID, ProjectID: of.project.ID,
				Roles: []trusts.Role{{Name: "clerk"}},
			}).Extract()
			require.NoError(t, err)
			acting, err := c.trustToken(made.ID)
			require.NoError(t, err)
			require.NoError(t, end(admin, of))
			requireStatus(t, tokens.Get(t.Context(), admin, acting.Token()).Err, http.StatusNotFound)
			requireStatus(t, trusts.Get(t.Context(), admin, made.ID).Err, http.StatusNotFound)
		})
	}
}

func TestOnlyAdminsManageAndNamesAreTakenOnce(t *testing.T) {
	c := start(t)
	admin := c.login("admin")
	of := c.tenant(admin, "default")
	ann := c.client(c.optionsOf(of))
	member, err := roles.Create(t.Context(), admin, roles.CreateOpts{Name: "another"}).Extract()
	require.NoError(t, err)
	grant := "/projects/" + of.project.ID + "/users/" + of.user.ID + "/roles/"
	for _, test := range []struct {
		method, path, body string
		admins, anns       int
	}{
		{"POST", "/users", `{"user": {"name": "ann"}}`, 409, 403},
		{"POST", "/users", `{"user": {"name": ""}}`, 400, 403},
		{"POST", "/users", `{"user": {"name": 7}}`, 400, 403},
		{"POST", "/users", `{"project": {"name": "ann"}}`, 400, 403},
		{"POST", "/users", `{"user": {"name": "ann", "domain_id": "nowhere"}}`, 404, 403},
		{"PATCH", "/users/" + of.user.ID, `{"user": {"name": "demo"}}`, 409, 403},
		{"PATCH", "/users/" + of.user.ID, `{"user": {"domain_id": "nowhere"}}`, 400, 403},
		{"PATCH", "/users/" + of.user.ID, `{"user": {"description": "her"}}`, 200, 403},
		{"PATCH", "/users/nobody", `{"user": {"description": "her"}}`, 404, 403},
		{"DELETE", "/users/nobody", ``, 404, 403},
		{"POST", "/users/" + of.user.ID + "/password", `{"user": {"password": "new", "original_password": "wrong"}}`, 401, 401},
		{"POST", "/projects", `{"project": {"name": "one"}}`, 409, 403},
		{"POST", "/projects", `{"project": {"name": "two", "parent_id": "nothing"}}`, 404, 403},
		{"POST", "/projects", `{"project": {"name": "two", "parent_id": "` + of.project.ID + `"}}`, 201, 403},
		{"PATCH", "/projects/" + of.project.ID, `{"project": {"parent_id": "` + of.project.ID + `"}}`, 403, 403},
		{"DELETE", "/projects/" + of.project.ID, ``, 403, 403}, // two is in it
		{"POST", "/domains", `{"domain": {"name": "Default"}}`, 409, 403},
		{"DELETE", "/domains/default", ``, 403, 403}, // it is enabled
		{"POST", "/roles", `{"role": {"name": "clerk"}}`, 409, 403},
		{"HEAD", grant + of.role.ID, ``, 204, 403},
		{"GET", grant + member.ID, ``, 404, 403},
		{"DELETE", grant + member.ID, ``, 404, 403},
		{"PUT", grant + member.ID, ``, 204, 403},
		{"GET", grant + member.ID, ``, 204, 403},
		{"PUT", grant + "nothing", ``, 404, 403},
		{"PUT", "/projects/nothing/users/" + of.user.ID + "/roles/" + member.ID, ``, 404, 403},
		{"PUT", "/domains/default/users/nobody/roles/" + member.ID, ``, 404, 403},
		{"PUT", "/domains/default/users/" + of.user.ID + "/roles/" + member.ID, ``, 204, 403},
		{"GET", "/role_assignments", ``, 200, 403},
		{"POST", "/services", `{"service": {"name": "no type"}}`, 400, 403},
		{"POST", "/endpoints", `{"endpoint": {"interface": "public", "url": "http://here", "service_id": "nothing"}}`, 404, 403},
		{"POST", "/endpoints", `{"endpoint": {"interface": "private", "url": "http://here"}}`, 400, 403},
		{"POST", "/regions", `{"region": {"id": "local"}}`, 409, 403},
		{"DELETE", "/regions/local", ``, 403, 403}, // endpoints are in it
		{"GET", "/regions", ``, 200, 200},
		{"GET", "/services", ``, 200, 403},
	} {
		for who, want := range map[*gophercloud.ServiceClient]int{ann: test.anns, admin: test.admins} {
			request, err := http.NewRequestWithContext(t.Context(), test.method, c.url+"/identity/v3"+test.path, strings.NewReader(test.body))
			require.NoError(t, err)
			request.Header.Set("X-Auth-Token", who.Token())
			response, err := http.DefaultClient.Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, want, response.StatusCode, "%s %s %s as ann: %t", test.method, test.path, test.body, who == ann)
		}
	}
}

func TestAnAddedServiceIsInTheCatalog(t *testing.T) {
	c := start(t)
	admin := c.login("admin")
	region, err := regions.Create(t.Context(), admin, regions.CreateOpts{ID: "south"}).Extract()
	require.NoError(t, err)
	made, err := services.Create(t.Context(), admin, services.CreateOpts{Type: "application-catalog", Extra: map[string]any{"name": "burano"}}).Extract()
	require.NoError(t, err)
	_, err = endpoints.Create(t.Context(), admin, endpoints.CreateOpts{
		Availability: gophercloud.AvailabilityPublic, Name: "burano", Region: region.ID, ServiceID: made.ID, URL: "http://there/%(tenant_id)s",
	}).Extract()
	require.NoError(t, err)
	address := func() string {
		demo := c.login("demo")
		catalog, err := tokens.Get(t.Context(), demo, demo.Token()).ExtractServiceCatalog()
		require.NoError(t, err)
		for _, entry := range catalog.Entries {
			if entry.Type == "application-catalog" {
				return strings.ReplaceAll(entry.Endpoints[0].URL, c.project(demo).ID, "<demo>")
			}
		}
		return ""
	}
	require.Equal(t, "http://there/<demo>", address())
	c.restart()
	require.Equal(t, "http://there/<demo>", address())
	require.NoError(t, services.Delete(t.Context(), admin, made.ID).ExtractErr())
	require.Empty(t, address())
	require.NoError(t, regions.Delete(t.Context(), admin, region.ID).ExtractErr())
}
