package auth

import (
	"crypto/rand"
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

// Provider is a sign-in by Keystone's federation.
type Provider struct {
	ID   string // in addresses
	Name string // for people
	// Path is below Keystone's /v3/auth/OS-FEDERATION.
	Path string
}

var providerForm = regexp.MustCompile(`^([^=]*\S)=(?:(\w[\w.-]*)/)?(\w[\w.-]*)$`)

// ParseProviders reads NAME=PROTOCOL, where Keystone asks users for their identity provider, and NAME=IDENTITY_PROVIDER/PROTOCOL.
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

// Time limits for users at their identity provider, and for a page to return with its ticket.
const (
	webSSOTime = 10 * time.Minute
	ticketTime = 2 * time.Minute
)

// The owners of sealed data of a sign-in by federation: the browser stores them, so that any server over the same keys can continue it.
const (
	webSSOOwner = "websso begun"
	ticketOwner = "websso ticket"
)

// WebSSOPath is where Keystone posts tokens to; its address is to be among Keystone's trusted dashboards.
const WebSSOPath = "/burano/v1/session/websso"

// begun is the data of a browser that has begun to sign in.
type begun struct {
	Until time.Time `json:"until"`
	Nonce string    `json:"nonce"`
}

// ticket is the data with which a page returns.
type ticket struct {
	Token string    `json:"token"`
	Until time.Time `json:"until"`
	Nonce string    `json:"nonce,omitempty"` // of the browser that Keystone has posted the token with; "" where it sent no cookie
}

// BeginWebSSO returns the address at which Keystone signs a user in by a provider, and lets the browser record that it has begun.
//
// Keystone sends the browser back with a form that posts the token from its own site, and has no place in it for a value of ours. So any page could post
// any token, to let a user work as another one without noticing. Three measures prevent that:
//   - The form must come from Keystone's host (Origin).
//   - The posted token does not sign in where it arrives. It is sealed into a ticket, which the dashboard's page redeems by a request of its own,
//     and only in a browser that has the cookie of having begun. That cookie is SameSite=Strict, and set only for the dashboard's own page
//     (X-Requested-With), so that no other page can begin for it.
//   - The ticket is bound to the browser that has begun: a second cookie with the same nonce, SameSite=None, comes with Keystone's form. Browsers
//     store such a cookie only by TLS or on the loopback; without TLS a ticket may be bound to no browser.
func (a *Authenticator) BeginWebSSO(c echo.Context, providerID string) (string, error) {
	request := c.Request()
	if err := a.sameOrigin(request); err != nil {
		return "", err
	}
	for _, provider := range a.Providers {
		if provider.ID != providerID {
			continue
		}
		until := a.Now().Add(webSSOTime)
		text, err := json.Marshal(begun{Until: until, Nonce: rand.Text()})
		if err != nil {
			return "", err
		}
		sealed := a.Sealer.Seal(webSSOOwner, text)
		a.setNamedCookie(c, a.webSSOCookie(request), sealed, until)
		a.setReturnCookie(c, sealed, until)
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
func (a *Authenticator) ReceiveToken(c echo.Context, token string) (string, error) {
	if len(a.Providers) == 0 {
		return "", fault.New(fault.NotFound, "Nobody can sign in by federation here")
	}
	request := c.Request()
	if err := a.fromKeystone(request.Header.Get(echo.HeaderOrigin)); err != nil {
		return "", err
	}
	if token == "" {
		return "", fault.New(fault.Invalid, "There is no token in what was posted: begin to sign in on the dashboard")
	}
	var first begun
	cookie, err := request.Cookie(a.returnCookie(request))
	if err == nil {
		a.setReturnCookie(c, "", time.Time{})
	}
	if err != nil || !a.unseal(webSSOOwner, cookie.Value, &first) || !a.Now().Before(first.Until) {
		if a.byTLS(request) {
			return "", errNotBegun
		}
		first.Nonce = ""
	}
	text, err := json.Marshal(ticket{Token: token, Until: a.Now().Add(ticketTime), Nonce: first.Nonce})
	if err != nil {
		return "", err
	}
	return a.Sealer.Seal(ticketOwner, text), nil
}

var errNotBegun = fault.New(fault.Forbidden, "This browser has not begun to sign in, or began more than %d minutes ago: sign in again, from the dashboard's own page", webSSOTime/time.Minute)

// fromKeystone refuses a form of another host's page. Browsers name the page's origin with each form that is posted; "null" is a page that hides it.
func (a *Authenticator) fromKeystone(origin string) error {
	if origin == "" || origin == "null" {
		return nil
	}
	from, err := url.Parse(origin)
	keystone, other := url.Parse(a.Keystone)
	if err != nil || other != nil || !strings.EqualFold(from.Hostname(), keystone.Hostname()) {
		return fault.New(fault.Forbidden, "This token was posted by a page of %q, and not by Keystone at %s: begin to sign in on the dashboard. "+
			"Where browsers reach Keystone at another address, the operator sets websso-keystone to it", origin, a.Keystone)
	}
	return nil
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
	var first begun
	cookie, err := request.Cookie(a.webSSOCookie(request))
	if err != nil || !a.unseal(webSSOOwner, cookie.Value, &first) || !a.Now().Before(first.Until) {
		a.Logger.WarnContext(ctx, "a sign-in by federation was refused: the browser has not begun one", "address", address)
		return identity.Caller{}, errNotBegun
	}
	var given ticket
	if !a.unseal(ticketOwner, sealed, &given) || !a.Now().Before(given.Until) {
		return identity.Caller{}, fault.New(fault.Forbidden, "This sign-in took too long: sign in again")
	}
	if given.Nonce != first.Nonce && (given.Nonce != "" || a.byTLS(request)) {
		a.Logger.WarnContext(ctx, "a sign-in by federation was refused: another browser has begun it", "address", address)
		return identity.Caller{}, fault.New(fault.Forbidden, "Another browser has begun this sign-in, or this one has begun another since: sign in again, from the dashboard's own page")
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

// returnCookie is the name of the cookie that comes with Keystone's form.
func (a *Authenticator) returnCookie(request *http.Request) string {
	return a.webSSOCookie(request) + "-return"
}

func (a *Authenticator) setReturnCookie(c echo.Context, value string, expires time.Time) {
	cookie := &http.Cookie{Name: a.returnCookie(c.Request()), Value: value, Path: "/", Expires: expires, HttpOnly: true, Secure: true, SameSite: http.SameSiteNoneMode}
	if value == "" {
		cookie.MaxAge = -1
	}
	c.SetCookie(cookie)
}
