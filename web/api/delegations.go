package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
)

// delegationHandlers answer about the standing delegations of environments.
type delegationHandlers struct {
	orchestrator *orchestrator.Service
}

func (h delegationHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/delegation", h.show)
	v1.PUT("/environments/:environment/delegation", h.set)
	v1.DELETE("/environments/:environment/delegation", h.revoke)
}

// delegationJSON is a standing delegation, without its secret.
type delegationJSON struct {
	Kind     string     `json:"kind"`
	UserID   string     `json:"user_id"`
	UserName string     `json:"user_name"`
	Roles    []string   `json:"roles"`
	Created  time.Time  `json:"created"`
	Expires  *time.Time `json:"expires"` // null for never
}

func delegationFields(d orchestrator.Delegation) delegationJSON {
	return delegationJSON{Kind: d.Kind, UserID: d.UserID, UserName: d.UserName, Roles: append([]string{}, d.Roles...), Created: d.Created, Expires: d.Expires}
}

func (h delegationHandlers) show(c echo.Context) error {
	ctx, caller := calling(c)
	delegation, found, err := h.orchestrator.Delegations().Get(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	if !found {
		return c.JSON(http.StatusOK, nil) // a missing one is no error
	}
	return c.JSON(http.StatusOK, delegationFields(delegation))
}

// set makes a trust of the caller's token, or stores an application credential.
func (h delegationHandlers) set(c echo.Context) error {
	var given struct {
		Roles      []string  `json:"roles"`
		Expires    time.Time `json:"expires"`
		Credential string    `json:"application_credential"`
		Secret     string    `json:"secret"`
	}
	ctx, caller := calling(c)
	if err := h.orchestrator.Environments().MaySee(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	if err := decode(c, &given); err != nil {
		return err
	}
	trust := len(given.Roles) > 0 || !given.Expires.IsZero()
	switch {
	case (given.Credential == "") != (given.Secret == ""), given.Credential != "" && trust:
		return fault.New(fault.Invalid, `Send {"application_credential": ID, "secret": SECRET}, or for a trust {} with "roles" and "expires" if you like`)
	case !given.Expires.IsZero() && !given.Expires.After(time.Now()):
		return fault.New(fault.Invalid, "The delegation would have ended before now, at %s", given.Expires.Format(time.RFC3339))
	}
	delegation, err := h.orchestrator.Delegations().Set(ctx, caller, c.Param("environment"), orchestrator.Delegate{Roles: given.Roles, Expires: given.Expires,
		CredentialID: given.Credential, CredentialSecret: given.Secret})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, delegationFields(delegation))
}

func (h delegationHandlers) revoke(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.Delegations().Revoke(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	return empty(c)
}
