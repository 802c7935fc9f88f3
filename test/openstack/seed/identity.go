package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/domains"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/gophercloud/gophercloud/v2/pagination"
)

// account is a user with roles in one project.
type account struct {
	user, project string
	roles         []string
}

// accounts are the users of the tests, Burano's and the services' own. Heat delegates the role heat_stack_owner, where a user has it,
// and every role otherwise (its option trusts_delegated_roles).
func accounts() []account {
	list := []account{
		{"admin", "admin", []string{"admin", "member"}},
		{"demo", "demo", []string{"member"}},
		{"other", "other", []string{"member"}},
	}
	for _, service := range []string{"burano", "cinder", "glance", "heat", "manila", "murano", "neutron", "nova", "placement", "swift"} {
		list = append(list, account{service, "service", []string{"admin", "service"}})
	}
	return list
}

// endpointsOfServices are the addresses in the catalog, by type and name; Heat's and the storage services' only if they are selected
// (PARTS).
func endpointsOfServices() map[[2]string]string {
	all := map[[2]string]string{
		{"image", "glance"}:        "http://127.0.0.1:9292",
		{"placement", "placement"}: "http://127.0.0.1:8778",
		{"compute", "nova"}:        "http://127.0.0.1:8774/v2.1",
		{"network", "neutron"}:     "http://127.0.0.1:9696",
		{"object-store", "swift"}:  "http://127.0.0.1:8080/v1/AUTH_%(tenant_id)s",
	}
	if wanted("heat") {
		all[[2]string{"orchestration", "heat"}] = "http://127.0.0.1:8004/v1/%(tenant_id)s"
	}
	if wanted("cinder") {
		all[[2]string{"volumev3", "cinderv3"}] = "http://127.0.0.1:8776/v3/%(project_id)s"
	}
	if wanted("manila") {
		all[[2]string{"sharev2", "manilav2"}] = "http://127.0.0.1:8786/v2"
	}
	return all
}

// wanted reports whether this OpenStack has a service (openstack.sh).
func wanted(part string) bool { return slices.Contains(strings.Fields(os.Getenv("PARTS")), part) }

func seedIdentity(ctx context.Context, provider *gophercloud.ProviderClient) error {
	client, err := openstack.NewIdentityV3(provider, gophercloud.EndpointOpts{Region: region})
	if err != nil {
		return fmt.Errorf("find Keystone: %w", err)
	}
	s := seeder{ctx: ctx, client: client}
	for _, step := range []func() error{s.look, s.accounts, s.roleOfHeat, s.domainOfHeat, s.catalog, writeClouds} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// seeder knows the ids of existing objects, by name.
type seeder struct {
	ctx                              context.Context
	client                           *gophercloud.ServiceClient
	roles, projects, users, services map[string]string
}

func (s *seeder) look() (err error) {
	if s.roles, err = named(s.ctx, roles.List(s.client, roles.ListOpts{}), roles.ExtractRoles, func(r roles.Role) (string, string) { return r.Name, r.ID }); err != nil {
		return err
	}
	if s.projects, err = named(s.ctx, projects.List(s.client, projects.ListOpts{DomainID: "default"}), projects.ExtractProjects, func(p projects.Project) (string, string) { return p.Name, p.ID }); err != nil {
		return err
	}
	if s.users, err = named(s.ctx, users.List(s.client, users.ListOpts{}), users.ExtractUsers, func(u users.User) (string, string) { return u.Name, u.ID }); err != nil {
		return err
	}
	s.services, err = named(s.ctx, services.List(s.client, services.ListOpts{}), services.ExtractServices, func(s services.Service) (string, string) { return s.Type, s.ID })
	return err
}

// named lists ids by name.
func named[T any](ctx context.Context, pager pagination.Pager, extract func(pagination.Page) ([]T, error), pair func(T) (name, id string)) (map[string]string, error) {
	pages, err := pager.AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list what is there: %w", err)
	}
	list, err := extract(pages)
	if err != nil {
		return nil, fmt.Errorf("list what is there: %w", err)
	}
	ids := map[string]string{}
	for _, one := range list {
		name, id := pair(one)
		ids[name] = id
	}
	return ids, nil
}

func (s *seeder) accounts() error {
	for _, a := range accounts() {
		project, err := findOrMake("project", a.project, s.projects, func() (string, error) {
			made, err := projects.Create(s.ctx, s.client, projects.CreateOpts{Name: a.project, DomainID: "default"}).Extract()
			if err != nil {
				return "", err
			}
			return made.ID, nil
		})
		if err != nil {
			return err
		}
		user, err := s.user(a.user, "default", project)
		if err != nil {
			return err
		}
		for _, name := range a.roles {
			role, err := findOrMake("role", name, s.roles, func() (string, error) {
				made, err := roles.Create(s.ctx, s.client, roles.CreateOpts{Name: name}).Extract()
				if err != nil {
					return "", err
				}
				return made.ID, nil
			})
			if err != nil {
				return err
			}
			if err := roles.Assign(s.ctx, s.client, role, roles.AssignOpts{UserID: user, ProjectID: project}).ExtractErr(); err != nil {
				return fmt.Errorf("give user %s the role %s: %w", a.user, name, err)
			}
		}
	}
	return nil
}

func (s *seeder) user(name, domain, project string) (string, error) {
	return findOrMake("user", name, s.users, func() (string, error) {
		made, err := users.Create(s.ctx, s.client, users.CreateOpts{
			Name: name, Password: password, DomainID: domain, DefaultProjectID: project,
		}).Extract()
		if err != nil {
			return "", err
		}
		return made.ID, nil
	})
}

// roleOfHeat makes the role of the users that Heat makes for scaling policies and the like (its option heat_stack_user_role).
func (s *seeder) roleOfHeat() error {
	_, err := findOrMake("role", "heat_stack_user", s.roles, func() (string, error) {
		made, err := roles.Create(s.ctx, s.client, roles.CreateOpts{Name: "heat_stack_user"}).Extract()
		if err != nil {
			return "", err
		}
		return made.ID, nil
	})
	return err
}

// domainOfHeat makes the domain in which Heat keeps users of its own for stacks, with their admin.
func (s *seeder) domainOfHeat() error {
	known, err := named(s.ctx, domains.List(s.client, domains.ListOpts{}), domains.ExtractDomains, func(d domains.Domain) (string, string) { return d.Name, d.ID })
	if err != nil {
		return err
	}
	domain, err := findOrMake("domain", "heat", known, func() (string, error) {
		made, err := domains.Create(s.ctx, s.client, domains.CreateOpts{Name: "heat"}).Extract()
		if err != nil {
			return "", err
		}
		return made.ID, nil
	})
	if err != nil {
		return err
	}
	user, err := s.user("heat_domain_admin", domain, "")
	if err != nil {
		return err
	}
	if err := roles.Assign(s.ctx, s.client, s.roles["admin"], roles.AssignOpts{UserID: user, DomainID: domain}).ExtractErr(); err != nil {
		return fmt.Errorf("make heat_domain_admin the admin of Heat's domain: %w", err)
	}
	return nil
}

func (s *seeder) catalog() error {
	pages, err := endpoints.List(s.client, endpoints.ListOpts{}).AllPages(s.ctx)
	if err != nil {
		return fmt.Errorf("list endpoints: %w", err)
	}
	list, err := endpoints.ExtractEndpoints(pages)
	if err != nil {
		return fmt.Errorf("list endpoints: %w", err)
	}
	known := map[string]bool{}
	for _, one := range list {
		known[one.ServiceID+string(one.Availability)] = true
	}
	for service, address := range endpointsOfServices() {
		kind, name := service[0], service[1]
		id, err := findOrMake("service", kind, s.services, func() (string, error) {
			made, err := services.Create(s.ctx, s.client, services.CreateOpts{Type: kind, Extra: map[string]any{"name": name}}).Extract()
			if err != nil {
				return "", err
			}
			return made.ID, nil
		})
		if err != nil {
			return err
		}
		for _, view := range []gophercloud.Availability{gophercloud.AvailabilityPublic, gophercloud.AvailabilityInternal, gophercloud.AvailabilityAdmin} {
			if known[id+string(view)] {
				continue
			}
			if err := endpoints.Create(s.ctx, s.client, endpoints.CreateOpts{Availability: view, Name: name, Region: region, ServiceID: id, URL: address}).Err; err != nil {
				return fmt.Errorf("enter %s into the catalog: %w", name, err)
			}
		}
	}
	return nil
}

// writeClouds writes the clouds.yaml of the tests: an entry for each project, with its name in the local cloud, and burano-brief for
// Burano's user at the Keystone whose tokens end soon.
func writeClouds() error {
	var text strings.Builder
	text.WriteString("# The OpenStack of `make test-openstack`.\nclouds:\n")
	for _, entry := range []struct{ name, keystone, project, user string }{
		{"admin", keystone, "admin", "admin"}, {"demo", keystone, "demo", "demo"}, {"other", keystone, "other", "other"},
		{"service", keystone, "service", "burano"}, {"brief", briefKeystone, "service", "burano"},
	} {
		fmt.Fprintf(&text, `  burano-%s:
    region_name: %s
    identity_api_version: 3
    auth_type: password
    auth: {auth_url: %q, username: %s, password: %s, project_name: %s, user_domain_name: Default, project_domain_name: Default}
`, entry.name, region, entry.keystone, entry.user, password, entry.project)
	}
	return os.WriteFile(state+"/clouds.yaml", []byte(text.String()), 0o600)
}
