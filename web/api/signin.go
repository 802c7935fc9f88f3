package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/auth"
	"github.com/burano/burano/web/dashboard"
	"github.com/burano/burano/web/policy"
)

// maxProof is the largest body of an unknown caller.
const maxProof = 16 << 10

// signInHandlers answer browsers that sign in, through auth.Authenticator.
type signInHandlers struct {
	authenticator *auth.Authenticator
	policy        *policy.Policy
}

func (h signInHandlers) register(v1 *echo.Group) {
	v1.POST("/session", h.signIn, h.open)
	v1.DELETE("/session", h.signOut, h.open)
	v1.GET("/session", h.show)
	v1.GET("/session/projects", h.projects, h.open)
	v1.PUT("/session/project", h.choose, h.open)
	v1.GET("/session/providers", h.providers)
	v1.POST("/session/websso", h.receive, h.open)
	v1.POST("/session/websso/:provider", h.begin, h.open)
}

// open answers when sign-in is off.
func (h signInHandlers) open(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if h.authenticator == nil {
			return fault.New(fault.NotFound, "This Burano signs nobody in: send a Keystone token as X-Auth-Token")
		}
		return next(c)
	}
}

// sessionJSON describes the caller.
type sessionJSON struct {
	User struct {
		ID     string     `json:"id"`
		Name   string     `json:"name"`
		Domain domainJSON `json:"domain"`
	} `json:"user"`
	Project *projectJSON `json:"project"` // null until one is chosen
	Roles   []string     `json:"roles"`
	Admin   bool         `json:"admin"`
	// Rules are the policy's rules that the caller passes, if they depend on the caller only.
	Rules []string `json:"rules"`
	// Credential is null for a user who has signed in with a password. A restricted one may not deploy.
	Credential *credentialJSON `json:"application_credential"`
	Expires    *time.Time      `json:"expires_at"` // of the token; the sign-in may end before
}

type domainJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type projectJSON struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	DomainID string `json:"domain_id"`
}

type credentialJSON struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Restricted bool   `json:"restricted"`
}

func (h signInHandlers) answer(c echo.Context, caller identity.Caller) error {
	caller = h.policy.Apply(caller)
	answer := sessionJSON{Roles: append([]string{}, caller.Roles...), Admin: caller.Admin, Rules: h.policy.Passed(caller), Credential: (*credentialJSON)(caller.Credential)}
	answer.User.ID, answer.User.Name = caller.UserID, caller.UserName
	answer.User.Domain = domainJSON{ID: caller.UserDomainID, Name: caller.UserDomainName}
	if caller.ProjectID != "" {
		answer.Project = &projectJSON{ID: caller.ProjectID, Name: caller.ProjectName, DomainID: caller.ProjectDomainID}
	}
	if !caller.Expires.IsZero() {
		expires := caller.Expires.UTC()
		answer.Expires = &expires
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, answer)
}

// proofJSON is the input of a sign-in: a ticket; user, domain (Default) and password, or application_credential and secret. An application credential is
// named by its id, or by its name together with its user and domain.
type proofJSON struct {
	User       string `json:"user"`
	Domain     string `json:"domain"`
	Password   string `json:"password"`
	Credential string `json:"application_credential"`
	Secret     string `json:"secret"`
	Ticket     string `json:"ticket"`  // of a sign-in by federation
	Project    string `json:"project"` // id or name
}

// maxName is the size of a name in Keystone, in bytes: 255 characters.
const maxName = 1020

func (p proofJSON) proof() (identity.Proof, error) {
	if p.Domain == "" {
		p.Domain = "Default"
	}
	for _, word := range []string{p.User, p.Domain, p.Credential} {
		if len(word) > maxName {
			return identity.Proof{}, fault.New(fault.Invalid, "A name or id has more than %d bytes: Keystone knows none so long", maxName)
		}
	}
	byPassword, byCredential := p.Password != "", p.Credential != "" || p.Secret != ""
	switch {
	case byPassword && byCredential:
		return identity.Proof{}, fault.New(fault.Invalid, "Sign in with a password or with an application credential, not with both")
	case byPassword && p.User != "":
		return identity.Proof{User: p.User, Domain: p.Domain, Password: p.Password}, nil
	case byCredential && p.Credential != "" && p.Secret != "" && p.User == "":
		return identity.Proof{CredentialID: p.Credential, Secret: p.Secret}, nil
	case byCredential && p.Credential != "" && p.Secret != "":
		return identity.Proof{CredentialName: p.Credential, Secret: p.Secret, User: p.User, Domain: p.Domain}, nil
	}
	return identity.Proof{}, fault.New(fault.Invalid, `Send {"user", "password"} with "domain" where it is not Default, or {"application_credential", "secret"} `+
		`with the credential's id, or with its name and "user" and "domain"`)
}

// decode reads a small JSON object.
func decode(c echo.Context, into any) error {
	request := c.Request()
	if mediaType, _, _ := mime.ParseMediaType(request.Header.Get(echo.HeaderContentType)); mediaType != echo.MIMEApplicationJSON {
		return unsupported(cmp.Or(mediaType, "text/plain"))
	}
	decoder := json.NewDecoder(http.MaxBytesReader(c.Response(), request.Body, maxProof))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err == nil && decoder.Decode(new(any)) == io.EOF {
		return nil
	}
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return err
	}
	// The input contains a password: the error does not quote it.
	return fault.New(fault.Invalid, "The body must be one JSON object, with nothing but what /openapi.json names")
}

func (h signInHandlers) signIn(c echo.Context) error {
	var given proofJSON
	if err := decode(c, &given); err != nil {
		return err
	}
	caller, err := h.enter(c, given)
	if err != nil {
		return err
	}
	c.SetRequest(c.Request().WithContext(identity.With(c.Request().Context(), caller))) // for the log
	return h.answer(c, caller)
}

func (h signInHandlers) enter(c echo.Context, given proofJSON) (identity.Caller, error) {
	if given.Ticket != "" {
		return h.authenticator.Redeem(c, given.Ticket, given.Project)
	}
	proof, err := given.proof()
	if err != nil {
		return identity.Caller{}, err
	}
	c.Set(keySubject, cmp.Or(given.User, given.Credential))
	return h.authenticator.SignIn(c, proof, given.Project)
}

// providerJSON is a sign-in by Keystone's federation.
type providerJSON struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func (h signInHandlers) providers(c echo.Context) error {
	answer := []providerJSON{}
	if h.authenticator != nil {
		for _, one := range h.authenticator.Providers {
			answer = append(answer, providerJSON{one.ID, one.Name})
		}
	}
	return c.JSON(http.StatusOK, struct {
		Providers []providerJSON `json:"providers"`
	}{answer})
}

// begin answers with the address to which the browser must go.
func (h signInHandlers) begin(c echo.Context) error {
	location, err := h.authenticator.BeginWebSSO(c, c.Param("provider"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		Location string `json:"location"`
	}{location})
}

// receive takes the token that Keystone posts by a form, and leads the browser to the dashboard, which redeems the ticket. The ticket is in the fragment,
// which no server and no log gets.
func (h signInHandlers) receive(c echo.Context) error {
	request := c.Request()
	request.Body = http.MaxBytesReader(c.Response(), request.Body, maxProof)
	if err := request.ParseForm(); err != nil {
		return fault.New(fault.Invalid, "What was posted is no form of at most %d bytes: begin to sign in on the dashboard", maxProof)
	}
	ticket, err := h.authenticator.ReceiveToken(c, request.PostForm.Get("token"))
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	c.Response().Header().Set("Referrer-Policy", "no-referrer")
	return c.Redirect(http.StatusSeeOther, dashboard.Path+"#ticket="+url.QueryEscape(ticket))
}

func (h signInHandlers) signOut(c echo.Context) error {
	if err := h.authenticator.SignOut(c); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (h signInHandlers) show(c echo.Context) error {
	return h.answer(c, identity.From(c.Request().Context()))
}

func (h signInHandlers) projects(c echo.Context) error {
	list, err := h.authenticator.Projects(c)
	if err != nil {
		return err
	}
	answer := make([]projectJSON, len(list))
	for i, one := range list {
		answer[i] = projectJSON(one)
	}
	return c.JSON(http.StatusOK, struct {
		Projects []projectJSON `json:"projects"`
	}{answer})
}

func (h signInHandlers) choose(c echo.Context) error {
	var wanted struct {
		Project string `json:"project"`
	}
	if err := decode(c, &wanted); err != nil {
		return err
	}
	caller, err := h.authenticator.Choose(c, wanted.Project)
	if err != nil {
		return err
	}
	return h.answer(c, caller)
}
