// Package registration registers Burano in a cloud's Keystone: the service user with its roles, the service and its endpoints. It looks first and makes
// only missing parts, so that it may be run again, also after an interruption.
package registration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/domains"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/endpoints"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/services"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/burano/burano/internal/fault"
)

// ServiceType is how clients find Burano in the service catalog, as they found Murano.
const ServiceType = "application-catalog"

// Roles are the service user's roles in its project.
func Roles() []string { return []string{"admin", "service"} }

// Wanted is the wanted registration.
type Wanted struct {
	DomainID      string // of user and project
	Project, User string
	Password      string // "" leaves that of a user who is there
	ResetPassword bool   // give a user who is there this password when they have another

	URL, Region  string // of the endpoints; no URL: no service and no endpoints
	ReplaceURL   bool   // change endpoints that are there and lead elsewhere, such as Murano's
	OnlyLook     bool   // only report the changes
	TakesSignIns func(ctx context.Context, userID, password string) (bool, error)
}

// Done is the change of one part.
type Done string

// The changes. The first is none.
const (
	IsThere Done = "is there"
	Made    Done = "made"
	Changed Done = "changed"
)

// Step is a part and its change; with OnlyLook, the change that would be made.
type Step struct {
	What string `json:"what" yaml:"what"`
	Done Done   `json:"done" yaml:"done"`
}

// work is one run.
type work struct {
	Wanted
	keystone *gophercloud.ServiceClient
	steps    []Step
}

// Register makes the missing parts, with an administrator's client of Keystone. The finished steps are returned with an error, too.
func Register(ctx context.Context, keystone *gophercloud.ServiceClient, wanted Wanted) ([]Step, error) {
	w := &work{Wanted: wanted, keystone: keystone}
	err := w.register(ctx)
	if gophercloud.ResponseCodeIs(err, http.StatusForbidden) {
		err = fmt.Errorf("%w: these credentials must be an administrator's of the whole cloud", err)
	}
	return w.steps, err
}

func (w *work) register(ctx context.Context) error {
	project, err := ensure(ctx, w, "project "+w.Project, projects.List(w.keystone, projects.ListOpts{DomainID: w.DomainID, Name: w.Project}), projects.ExtractProjects,
		func(p projects.Project) string { return p.ID },
		func() (string, error) {
			made, err := projects.Create(ctx, w.keystone, projects.CreateOpts{DomainID: w.DomainID, Name: w.Project, Description: "Services of the cloud"}).Extract()
			return idOf(made, err, func(p *projects.Project) string { return p.ID })
		})
	if err != nil {
		return err
	}
	user, err := w.user(ctx, project)
	if err != nil {
		return err
	}
	for _, name := range Roles() {
		if err := w.role(ctx, name, user, project); err != nil {
			return err
		}
	}
	if w.URL == "" {
		return nil
	}
	return w.service(ctx)
}

// idOf is the id of a new object.
func idOf[T any](made *T, err error, id func(*T) string) (string, error) {
	if err != nil {
		return "", err
	}
	return id(made), nil
}

// ensure finds something, or makes it. Its id is "" when it would only be made.
func ensure[T any](ctx context.Context, w *work, what string, list pagination.Pager, extract func(pagination.Page) ([]T, error), id func(T) string,
	create func() (string, error)) (string, error) {
	found, err := all(ctx, list, extract)
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", what, err)
	}
	if len(found) > 0 {
		w.note(what, IsThere)
		return id(found[0]), nil
	}
	if w.OnlyLook {
		w.note(what, Made)
		return "", nil
	}
	made, err := create()
	if err != nil {
		return "", fmt.Errorf("make %s: %w", what, err)
	}
	w.note(what, Made)
	return made, nil
}

func all[T any](ctx context.Context, list pagination.Pager, extract func(pagination.Page) ([]T, error)) ([]T, error) {
	pages, err := list.AllPages(ctx)
	if err != nil {
		return nil, err
	}
	return extract(pages)
}

func (w *work) note(what string, done Done) { w.steps = append(w.steps, Step{what, done}) }

func (w *work) user(ctx context.Context, project string) (string, error) {
	what := "user " + w.User
	id, err := ensure(ctx, w, what, users.List(w.keystone, users.ListOpts{DomainID: w.DomainID, Name: w.User}), users.ExtractUsers,
		func(u users.User) string { return u.ID },
		func() (string, error) {
			if w.Password == "" {
				return "", errors.New("it needs a password")
			}
			made, err := users.Create(ctx, w.keystone, users.CreateOpts{DomainID: w.DomainID, Name: w.User, Password: w.Password, DefaultProjectID: project,
				Description: "Burano's service user"}).Extract()
			return idOf(made, err, func(u *users.User) string { return u.ID })
		})
	if err != nil || id == "" || w.Password == "" || w.steps[len(w.steps)-1].Done != IsThere {
		return id, err
	}
	takes, err := w.TakesSignIns(ctx, id, w.Password)
	if err != nil || takes {
		return id, err
	}
	if !w.ResetPassword {
		return "", fault.New(fault.Conflict, "user %s has another password than the one that was given: give that one, or set this one by --reset-password, after which servers "+
			"that run with the other sign in no more", w.User)
	}
	if !w.OnlyLook {
		if err := users.Update(ctx, w.keystone, id, users.UpdateOpts{Password: w.Password}).Err; err != nil {
			return "", fmt.Errorf("set the password of user %s: %w", w.User, err)
		}
	}
	w.note("password of user "+w.User, Changed)
	return id, nil
}

// role gives the user a role in the project.
func (w *work) role(ctx context.Context, name, user, project string) error {
	role, err := ensure(ctx, w, "role "+name, roles.List(w.keystone, roles.ListOpts{Name: name}), roles.ExtractRoles,
		func(r roles.Role) string { return r.ID },
		func() (string, error) {
			made, err := roles.Create(ctx, w.keystone, roles.CreateOpts{Name: name}).Extract()
			return idOf(made, err, func(r *roles.Role) string { return r.ID })
		})
	if err != nil {
		return err
	}
	what := fmt.Sprintf("role %s of %s in project %s", name, w.User, w.Project)
	if role != "" && user != "" && project != "" {
		held, err := all(ctx, roles.ListAssignmentsOnResource(w.keystone, roles.ListAssignmentsOnResourceOpts{UserID: user, ProjectID: project}), roles.ExtractRoles)
		if err != nil {
			return fmt.Errorf("look for %s: %w", what, err)
		}
		if slices.ContainsFunc(held, func(r roles.Role) bool { return r.ID == role }) {
			w.note(what, IsThere)
			return nil
		}
	}
	if !w.OnlyLook {
		if err := roles.Assign(ctx, w.keystone, role, roles.AssignOpts{UserID: user, ProjectID: project}).ExtractErr(); err != nil {
			return fmt.Errorf("give %s: %w", what, err)
		}
	}
	w.note(what, Made)
	return nil
}

func (w *work) service(ctx context.Context) error {
	service, err := ensure(ctx, w, "service "+ServiceType, services.List(w.keystone, services.ListOpts{ServiceType: ServiceType}), services.ExtractServices,
		func(s services.Service) string { return s.ID },
		func() (string, error) {
			made, err := services.Create(ctx, w.keystone, services.CreateOpts{Type: ServiceType,
				Extra: map[string]any{"name": "burano", "description": "Application catalog"}}).Extract()
			return idOf(made, err, func(s *services.Service) string { return s.ID })
		})
	if err != nil {
		return err
	}
	var known []endpoints.Endpoint
	if service != "" {
		if known, err = all(ctx, endpoints.List(w.keystone, endpoints.ListOpts{ServiceID: service, RegionID: w.Region}), endpoints.ExtractEndpoints); err != nil {
			return fmt.Errorf("look for endpoints: %w", err)
		}
	}
	for _, kind := range []gophercloud.Availability{gophercloud.AvailabilityPublic, gophercloud.AvailabilityInternal, gophercloud.AvailabilityAdmin} {
		if err := w.endpoint(ctx, service, kind, known); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) endpoint(ctx context.Context, service string, kind gophercloud.Availability, known []endpoints.Endpoint) error {
	what := fmt.Sprintf("%s endpoint %s", kind, w.URL)
	if w.Region != "" {
		what += " in region " + w.Region
	}
	i := slices.IndexFunc(known, func(e endpoints.Endpoint) bool { return e.Availability == kind })
	switch {
	case i >= 0 && known[i].URL == w.URL:
		w.note(what, IsThere)
		return nil
	case i >= 0 && !w.ReplaceURL:
		return fault.New(fault.Conflict, "the %s endpoint of %s leads to %s: --replace has it lead to %s, and all clients with it", kind, ServiceType, known[i].URL, w.URL)
	case i >= 0:
		if !w.OnlyLook {
			if err := endpoints.Update(ctx, w.keystone, known[i].ID, endpoints.UpdateOpts{URL: w.URL}).Err; err != nil {
				return fmt.Errorf("change the %s endpoint: %w", kind, err)
			}
		}
		w.note(what+", before "+known[i].URL, Changed)
		return nil
	}
	if !w.OnlyLook {
		if _, err := endpoints.Create(ctx, w.keystone, endpoints.CreateOpts{Name: "burano", ServiceID: service, URL: w.URL, Availability: kind, Region: w.Region}).Extract(); err != nil {
			return fmt.Errorf("make the %s endpoint: %w", kind, err)
		}
	}
	w.note(what, Made)
	return nil
}

// SignsIn is true if Keystone accepts a user's password, by a token without a scope.
func SignsIn(ctx context.Context, provider *gophercloud.ProviderClient, userID, password string) (bool, error) {
	asked, err := openstack.NewClient(provider.IdentityEndpoint)
	if err != nil {
		return false, err
	}
	asked.HTTPClient = provider.HTTPClient
	err = openstack.Authenticate(ctx, asked, gophercloud.AuthOptions{IdentityEndpoint: provider.IdentityEndpoint, UserID: userID, Password: password})
	if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("try the password of the service user: %w", err)
	}
	return true, nil
}

// DomainID finds a domain by its name or id.
func DomainID(ctx context.Context, keystone *gophercloud.ServiceClient, domain string) (string, error) {
	if found, err := domains.Get(ctx, keystone, domain).Extract(); err == nil {
		return found.ID, nil
	}
	found, err := all(ctx, domains.List(keystone, domains.ListOpts{Name: domain}), domains.ExtractDomains)
	if err != nil {
		return "", fmt.Errorf("look for domain %s: %w", domain, err)
	}
	if len(found) == 0 {
		return "", fault.New(fault.Invalid, "Keystone has no domain %s: name one that is there", domain)
	}
	return found[0].ID, nil
}
