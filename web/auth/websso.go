package auth

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// Provider is a way to sign in by Keystone's federation that people are offered.
type Provider struct {
	ID   string // in addresses
	Name string // for people
	// Path is below Keystone's /v3/auth/OS-FEDERATION.
	Path string
}

var providerForm = regexp.MustCompile(`^([^=]*\S)=(?:(\w[\w.-]*)/)?(\w[\w.-]*)$`)

// ParseProviders reads NAME=PROTOCOL, where Keystone asks who signs in for their identity provider, and NAME=IDENTITY_PROVIDER/PROTOCOL.
func ParseProviders(texts []string) ([]Provider, error) {
	var list []Provider
	seen := map[string]bool{}
	for _, text := range texts {
		parts := providerForm.FindStringSubmatch(text)
		if parts == nil {
			return nil, fmt.Errorf("%q is neither NAME=PROTOCOL, such as Company=openid, nor NAME=IDENTITY_PROVIDER/PROTOCOL", text)
		}
		one := Provider{ID: parts[3], Name: strings.TrimSpace(parts[1]), Path: "/websso/" + parts[3]}
		if parts[2] != "" {
			one.ID, one.Path = parts[2]+"-"+parts[3], "/identity_providers/"+parts[2]+"/protocols/"+parts[3]+"/websso"
		}
		if seen[one.ID] {
			return nil, fmt.Errorf("%q names what another one names: each way to sign in is offered once", text)
		}
		seen[one.ID] = true
		list = append(list, one)
	}
	return list, nil
}

// How long somebody may take at their identity provider, and how long a page may take to come back with its ticket.
const (
	webSSOTime = 10 * time.Minute
	ticketTime = 2 * time.Minute
)

// The owners of what is sealed for a sign-in by federation: it is kept by the browser, so that any server over the same keys goes on with it.
const (
	webSSOOwner = "websso begun"
	ticketOwner = "websso ticket"
)

// WebSSOPath is where Keystone posts tokens to; its address is to be among Keystone's trusted dashboards.
const WebSSOPath = "/burano/v1/session/websso"

// begun is what a browser keeps that has begun to sign in.
type begun struct {
	Until time.Time `json:"until"`
}

// ticket is what a page comes back with.
type ticket struct {
	Token string    `json:"token"`
	Until time.Time `json:"until"`
}

// BeginWebSSO returns the address at which Keystone signs somebody in by a provider, and has the browser remember that it has begun.
//
// Keystone sends the browser back with a form that posts the token, which no cookie comes with, since it is another site's; and there is no
// place in it for a value of ours. So anybody's page could post anybody's token, to have somebody work as another user without noticing. That
// is why the token is not signed in with where it arrives: it is sealed, and given to the dashboard's page, which redeems it by a request of its
// own, and only in a browser that has the cookie of having begun. That is SameSite=Strict, and set only for the dashboard's own page
// (X-Requested-With), so that no other page can begin for it.
func (a *Authenticator) BeginWebSSO(c echo.Context, providerID string) (string, error) {
	request := c.Request()
	if err := a.sameOrigin(request); err != nil {
		return "", err
	}
	for _, provider := range a.Providers {
		if provider.ID != providerID {
			continue
		}
		text, err := json.Marshal(begun{Until: a.Now().Add(webSSOTime)})
		if err != nil {
			return "", err
		}
		a.setNamedCookie(c, a.webSSOCookie(request), a.Sealer.Seal(webSSOOwner, text), a.Now().Add(webSSOTime))
		scheme := "http"
		if a.byTLS(request) {
			scheme = "https"
		}
		origin := scheme + "://" + request.Host + WebSSOPath
		return strings.TrimSuffix(a.Keystone, "/") + "/auth/OS-FEDERATION" + provider.Path + "?" + url.Values{"origin": {origin}}.Encode(), nil
	}
	return "", fault.New(fault.NotFound, "Nobody can sign in by %q here; GET /burano/v1/session/providers lists the ways", providerID)
}

// ReceiveToken makes the ticket of a token that Keystone has posted. The token is not looked at.
func (a *Authenticator) ReceiveToken(token string) (string, error) {
	if len(a.Providers) == 0 {
		return "", fault.New(fault.NotFound, "Nobody can sign in by federation here")
	}
	if token == "" {
		return "", fault.New(fault.Invalid, "There is no token in what was posted: begin to sign in on the dashboard")
	}
	text, err := json.Marshal(ticket{Token: token, Until: a.Now().Add(ticketTime)})
	if err != nil {
		return "", err
	}
	return a.Sealer.Seal(ticketOwner, text), nil
}

// Redeem signs in with a ticket, in a browser that has begun to; project is as in SignIn.
func (a *Authenticator) Redeem(c echo.Context, sealed, project string) (identity.Caller, error) {
	request := c.Request()
	ctx := request.Context()
	if err := a.sameOrigin(request); err != nil {
		return identity.Caller{}, err
	}
	address := a.address(request)
	if wait := a.attempts.Take(address, "federation"); wait > 0 {
		a.Logger.WarnContext(ctx, "a sign-in was refused: too many attempts", "account", "federation", "address", address)
		return identity.Caller{}, &TooMany{Wait: wait}
	}
	again := fault.New(fault.Forbidden, "This browser has not begun to sign in, or began more than %d minutes ago: sign in again, from the dashboard's own page", webSSOTime/time.Minute)
	var first begun
	cookie, err := request.Cookie(a.webSSOCookie(request))
	if err != nil || !a.unseal(webSSOOwner, cookie.Value, &first) || !a.Now().Before(first.Until) {
		a.Logger.WarnContext(ctx, "a sign-in by federation was refused: the browser has not begun one", "address", address)
		return identity.Caller{}, again
	}
	var given ticket
	if !a.unseal(ticketOwner, sealed, &given) || !a.Now().Before(given.Until) {
		return identity.Caller{}, fault.New(fault.Forbidden, "This sign-in took too long: sign in again")
	}
	a.setNamedCookie(c, a.webSSOCookie(request), "", time.Time{})
	caller, err := a.tokens.caller(ctx, given.Token)
	if err != nil {
		return identity.Caller{}, err
	}
	if caller.ProjectID != "" {
		return identity.Caller{}, fault.New(fault.Invalid, "Keystone's federation gives tokens of no project, and this one belongs to project %s", caller.ProjectID)
	}
	a.attempts.Succeeded(address, "federation")
	return a.enterWith(c, held{Base: given.Token}, project)
}

func (a *Authenticator) unseal(owner, sealed string, into any) bool {
	text, err := a.Sealer.Open(owner, sealed)
	return err == nil && json.Unmarshal(text, into) == nil
}

// webSSOCookie is the name of the cookie of having begun.
func (a *Authenticator) webSSOCookie(request *http.Request) string {
	return a.cookieName(request) + "-websso"
}
