package main

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/distribution/distribution/v3/registry/auth"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
)

// access is htpasswd, and lets some users read only.
type access struct {
	users   auth.AccessController
	pullers []string
	realm   string
}

func newAccess(options map[string]any) (*access, error) {
	users, err := auth.GetAccessController("htpasswd", options)
	if err != nil {
		return nil, err
	}
	a := &access{users: users}
	a.realm, _ = options["realm"].(string)
	list, _ := options["pullers"].([]any)
	for _, one := range list {
		a.pullers = append(a.pullers, fmt.Sprint(one))
	}
	return a, nil
}

func (a *access) Authorized(request *http.Request, wanted ...auth.Access) (*auth.Grant, error) {
	grant, err := a.users.Authorized(request, wanted...)
	if err != nil || !slices.Contains(a.pullers, grant.User.Name) {
		return grant, err
	}
	for _, one := range wanted {
		if one.Action != "pull" {
			return nil, denied{a.realm, fmt.Sprintf("%s may pull images only", grant.User.Name)}
		}
	}
	return grant, nil
}

// denied is the answer to a user who may not do that.
type denied struct{ realm, reason string }

func (d denied) Error() string { return d.reason }

// SetHeaders has clients ask for another user.
func (d denied) SetHeaders(_ *http.Request, w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", fmt.Sprintf("Basic realm=%q", d.realm))
}
