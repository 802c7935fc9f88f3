package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/store"
)

// Cloud is Keystone for signing in (openstack.Service, which documents the results).
type Cloud interface {
	Validator
	SignIn(ctx context.Context, given identity.Proof) (token string, err error)
	Scope(ctx context.Context, token, projectID string) (scoped string, err error)
	Projects(ctx context.Context, token string) ([]identity.Project, error)
	Revoke(ctx context.Context, token string) error
}

// Rows keeps who is signed in (store.SignIns). All servers over one database share it.
type Rows interface {
	AddSignIn(ctx context.Context, row store.SignIn, unusedSince store.Time, keep int) error
	SignIn(ctx context.Context, id string) (store.SignIn, error)
	UseSignIn(ctx context.Context, id string, used store.Time) error
	RemoveSignIn(ctx context.Context, id string) error
}

// Sealer makes the tokens of signed-in users unreadable in the database (secret.Sealer).
type Sealer interface {
	Seal(owner string, value []byte) string
	Open(owner, sealed string) ([]byte, error)
}

// Config has the dependencies of an Authenticator; all of them are required, except Proxies and Providers.
type Config struct {
	Cloud  Cloud
	Rows   Rows
	Sealer Sealer
	Now    func() time.Time
	Idle   time.Duration // without a request, after which a browser is signed out
	Life   time.Duration // after which it is in any case, and no later than its token ends
	// Proxies are trusted about the caller's address (X-Forwarded-For) and about TLS (X-Forwarded-Proto).
	Proxies []netip.Prefix
	// Providers are offered for signing in by Keystone's federation; Keystone is its address for browsers, which ends in /v3.
	Providers []Provider
	Keystone  string
	Logger    *slog.Logger
}

const (
	// RequestedWith is the header that requests which change something must have when a cookie identifies the caller.
	RequestedWith = "X-Requested-With"
	// perUser is the number of browsers in which one user can be signed in; one more ends the one that was not used for longest.
	perUser = 20
	// useEvery is how often at most it is written that a sign-in is used; a tenth of Idle when that is shorter.
	useEvery = time.Minute
	// keySignIn is where the request's context has the sign-in by which it came.
	keySignIn = "sign-in"
)

// ErrEnded reports that a cookie is no longer valid.
var ErrEnded = errors.New("you are not signed in any more: sign in again")

// Authenticator admits requests with a token in X-Auth-Token, or a cookie from SignIn. A request with both is its token's.
//
// A browser sends its cookie with every request that any page makes, so three measures prevent other sites from acting through it. The cookie is
// SameSite=Strict: requests from other sites have none. A request with one must not name another site as its origin, by Sec-Fetch-Site or, in browsers
// before 2023, by Origin (http.CrossOriginProtection); this includes reads, because a stream of events holds one of the server's places. A request that
// changes something must have the header X-Requested-With, which a page can send to another origin only after that has allowed it by CORS, which Burano
// never does: that holds also for a browser without the former two. A secret per session in the place of the header would prove nothing more, and would
// have to be stored. Tokens need none of this: no browser adds X-Auth-Token by itself.
type Authenticator struct {
	Config
	tokens   *keystone
	attempts *Attempts
	origin   http.CrossOriginProtection
	address  echo.IPExtractor
}

// NewAuthenticator makes an Authenticator.
func NewAuthenticator(config Config) *Authenticator {
	return &Authenticator{Config: config, tokens: newKeystone(config.Cloud, config.Now), attempts: NewAttempts(config.Now), address: AddressOf(config.Proxies)}
}

// Enter is the middleware that puts the identity.Caller into the request's context. Who has signed in and has not chosen a project yet
// has no ProjectID.
func (a *Authenticator) Enter(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		request := c.Request()
		value := a.cookie(request)
		if request.Header.Get("X-Auth-Token") != "" || value == "" {
			return a.tokens.enter(c, next)
		}
		if err := a.sameOrigin(request); err != nil {
			return err
		}
		found, err := a.find(request.Context(), value)
		if err != nil {
			if errors.Is(err, ErrEnded) {
				a.setCookie(c, "", time.Time{})
			}
			return err
		}
		c.Set(keySignIn, found)
		c.SetRequest(request.WithContext(identity.With(request.Context(), found.caller)))
		return next(c)
	}
}

// Known reports whether Enter would let a request in without asking Keystone or the database.
func (a *Authenticator) Known(request *http.Request) bool {
	token := request.Header.Get("X-Auth-Token")
	return token != "" && a.tokens.remembers(token)
}

// Caller is the user with a token, of which Keystone is asked at most once in half a minute. An unknown token is a fault of kind Unauthorized.
func (a *Authenticator) Caller(ctx context.Context, token string) (identity.Caller, error) {
	return a.tokens.caller(ctx, token)
}

// held are the tokens of a sign-in.
type held struct {
	Base    string `json:"base,omitempty"`    // of no project, with which another project can be chosen; "" by an application credential
	Project string `json:"project,omitempty"` // of the project that was chosen
}

func (h held) current() string {
	if h.Project != "" {
		return h.Project
	}
	return h.Base
}

// signIn is a sign-in that holds.
type signIn struct {
	id     string
	held   held
	caller identity.Caller
}

// idOf is the id of a cookie's value in the database.
func idOf(value string) string {
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])
}

func ended() error { return fault.New(fault.Unauthorized, "%w", ErrEnded) }

// find returns the sign-in of a cookie. One that has ended, or whose token Keystone knows no more, is removed.
func (a *Authenticator) find(ctx context.Context, value string) (signIn, error) {
	id := idOf(value)
	row, err := a.Rows.SignIn(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return signIn{}, ended()
	}
	if err != nil {
		return signIn{}, err
	}
	found := signIn{id: id}
	opened, err := a.Sealer.Open(store.SignInOwner(id), row.Tokens)
	if err == nil {
		err = json.Unmarshal(opened, &found.held)
	}
	if err != nil {
		a.Logger.WarnContext(ctx, "a sign-in cannot be read, and ends", "user", row.UserID, "error", err)
		return found, a.remove(ctx, found)
	}
	now := a.Now()
	if !now.Before(row.Expires.Time()) || !now.Before(row.Used.Time().Add(a.Idle)) {
		return found, a.remove(ctx, found)
	}
	found.caller, err = a.tokens.caller(ctx, found.held.current())
	if fault.KindOf(err) == fault.Unauthorized {
		return found, a.remove(ctx, found)
	}
	if err != nil {
		return found, err
	}
	if now.Sub(row.Used.Time()) >= min(useEvery, a.Idle/10) {
		if err := a.Rows.UseSignIn(ctx, id, rowTime(now)); err != nil {
			return found, err
		}
	}
	return found, nil
}

// remove ends a sign-in that cannot continue; its error reports this.
func (a *Authenticator) remove(ctx context.Context, gone signIn) error {
	if err := a.end(ctx, gone); err != nil {
		return err
	}
	return ended()
}

// end ends a sign-in and gives its tokens back, which is tried once: they end by themselves too.
func (a *Authenticator) end(ctx context.Context, gone signIn) error {
	if err := a.Rows.RemoveSignIn(ctx, gone.id); err != nil {
		return err
	}
	a.giveBack(ctx, gone.held)
	return nil
}

func (a *Authenticator) giveBack(ctx context.Context, tokens held) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for _, token := range []string{tokens.Project, tokens.Base} {
		if token == "" {
			continue
		}
		a.tokens.forget(token)
		if err := a.Cloud.Revoke(ctx, token); err != nil {
			a.Logger.WarnContext(ctx, "a token of a sign-in could not be given back; it ends by itself", "error", err)
		}
	}
}

// SignIn gets tokens from Keystone and sets the cookie. project is the id or name of one that the user may choose; "" is the only one, and leaves the
// choice open when there are several. A former sign-in of this browser ends, and the cookie is a new one: a former cookie never continues. TooMany reports
// too many tries.
func (a *Authenticator) SignIn(c echo.Context, given identity.Proof, project string) (identity.Caller, error) {
	request := c.Request()
	ctx := request.Context()
	if err := a.sameOrigin(request); err != nil {
		return identity.Caller{}, err
	}
	address, account := a.address(request), fmt.Sprintf("user %q of domain %q", given.User, given.Domain)
	switch {
	case given.CredentialID != "":
		account = fmt.Sprintf("application credential %q", given.CredentialID)
	case given.CredentialName != "":
		account = fmt.Sprintf("application credential %q of %s", given.CredentialName, account)
	}
	if wait := a.attempts.Take(address, account); wait > 0 {
		a.Logger.WarnContext(ctx, "a sign-in was refused: too many attempts", "account", account, "address", address)
		return identity.Caller{}, &TooMany{Wait: wait}
	}
	token, err := a.Cloud.SignIn(ctx, given)
	if err != nil {
		if fault.KindOf(err) == fault.Unauthorized {
			a.Logger.WarnContext(ctx, "a sign-in was refused by Keystone", "account", account, "address", address)
		}
		return identity.Caller{}, unreachable(err)
	}
	a.attempts.Succeeded(address, account)
	tokens := held{Base: token}
	if given.Password == "" {
		tokens = held{Project: token}
	}
	return a.enterWith(c, tokens, project)
}

// enterWith begins a sign-in with tokens; the browser's former one ends.
func (a *Authenticator) enterWith(c echo.Context, tokens held, project string) (identity.Caller, error) {
	request := c.Request()
	ctx := request.Context()
	tokens, caller, err := a.scope(ctx, tokens, project)
	if err == nil {
		err = a.begin(c, tokens, caller)
	}
	if err != nil {
		a.giveBack(ctx, tokens)
		return identity.Caller{}, err
	}
	if _, err := a.endByCookie(ctx, a.cookie(request)); err != nil {
		return identity.Caller{}, err
	}
	a.Logger.InfoContext(ctx, "a user has signed in", "user", caller.UserID, "project", caller.ProjectID, "address", a.address(request))
	return caller, nil
}

// Choose has a browser that is signed in work in another project, by its id or name. It gets a new cookie.
func (a *Authenticator) Choose(c echo.Context, project string) (identity.Caller, error) {
	ctx := c.Request().Context()
	former, ok := c.Get(keySignIn).(signIn)
	switch {
	case !ok:
		return identity.Caller{}, fault.New(fault.Invalid, "The token of this request belongs to one project: get one of another project from Keystone")
	case former.held.Base == "":
		return identity.Caller{}, fault.New(fault.Invalid, "An application credential belongs to one project: sign in with a password to work in another")
	case project == "":
		return identity.Caller{}, fault.New(fault.Invalid, "Which project? Send {\"project\": its id or name}")
	}
	tokens, caller, err := a.scope(ctx, held{Base: former.held.Base}, project)
	if err == nil {
		err = a.begin(c, tokens, caller)
	}
	if err != nil {
		a.giveBack(ctx, held{Project: tokens.Project})
		return identity.Caller{}, err
	}
	return caller, a.end(ctx, signIn{id: former.id, held: held{Project: former.held.Project}})
}

// SignOut ends the sign-in of a browser, if it has one, and its cookie. It does not ask Keystone first, which may be away.
func (a *Authenticator) SignOut(c echo.Context) error {
	request := c.Request()
	if request.Header.Get("X-Auth-Token") != "" {
		return fault.New(fault.Invalid, "A token is not signed out here: give it back to Keystone, or let it end")
	}
	if err := a.sameOrigin(request); err != nil {
		return err
	}
	user, err := a.endByCookie(request.Context(), a.cookie(request))
	if err != nil {
		return err
	}
	c.SetRequest(request.WithContext(identity.With(request.Context(), identity.Caller{UserID: user}))) // for the logs
	a.setCookie(c, "", time.Time{})
	return nil
}

// Projects lists the projects that the caller may choose.
func (a *Authenticator) Projects(c echo.Context) ([]identity.Project, error) {
	ctx := c.Request().Context()
	token := identity.From(ctx).Token
	if current, ok := c.Get(keySignIn).(signIn); ok {
		token = cmp.Or(current.held.Base, current.held.Project)
	}
	list, err := a.Cloud.Projects(ctx, token)
	return list, unreachable(err)
}

// scope adds the token of the wanted project, and returns the user of the tokens.
func (a *Authenticator) scope(ctx context.Context, tokens held, project string) (held, identity.Caller, error) {
	if tokens.Base != "" {
		id, err := a.choice(ctx, tokens.Base, project)
		if err != nil {
			return tokens, identity.Caller{}, err
		}
		if id != "" {
			if tokens.Project, err = a.Cloud.Scope(ctx, tokens.Base, id); err != nil {
				return tokens, identity.Caller{}, unreachable(err)
			}
		}
	}
	caller, err := a.tokens.caller(ctx, tokens.current())
	if err == nil && project != "" && project != caller.ProjectID && project != caller.ProjectName {
		err = fault.New(fault.Invalid, "The application credential belongs to project %q (%s) and can be used in no other", caller.ProjectName, caller.ProjectID)
	}
	return tokens, caller, err
}

// choice is the id of the project that is wanted by id or name, or of the only one when none is; "" when there are several.
func (a *Authenticator) choice(ctx context.Context, token, wanted string) (string, error) {
	list, err := a.Cloud.Projects(ctx, token)
	if err != nil {
		return "", unreachable(err)
	}
	if wanted == "" {
		if len(list) == 1 {
			return list[0].ID, nil
		}
		return "", nil
	}
	var named []string
	for _, one := range list {
		if one.ID == wanted {
			return one.ID, nil
		}
		if one.Name == wanted {
			named = append(named, one.ID)
		}
	}
	switch len(named) {
	case 0:
		return "", fault.New(fault.Forbidden, "You may work in no project %q; sign in without one, and GET /burano/v1/session/projects lists yours", wanted)
	case 1:
		return named[0], nil
	}
	return "", fault.New(fault.Invalid, "Several of your projects, of different domains, are called %q: give the id instead, one of %s", wanted, strings.Join(named, ", "))
}

// begin writes a sign-in under a new id and sets the cookie.
func (a *Authenticator) begin(c echo.Context, tokens held, caller identity.Caller) error {
	value := rand.Text() + rand.Text() // 260 bits
	id, now := idOf(value), a.Now()
	expires := now.Add(a.Life)
	if !caller.Expires.IsZero() && caller.Expires.Before(expires) {
		expires = caller.Expires
	}
	text, err := json.Marshal(tokens)
	if err != nil {
		return err
	}
	row := store.SignIn{ID: id, UserID: caller.UserID, Tokens: a.Sealer.Seal(store.SignInOwner(id), text), Created: rowTime(now), Used: rowTime(now), Expires: rowTime(expires)}
	if err := a.Rows.AddSignIn(c.Request().Context(), row, rowTime(now.Add(-a.Idle)), perUser); err != nil {
		return err
	}
	a.setCookie(c, value, expires)
	return nil
}

// endByCookie ends the sign-in of a cookie and returns its user; "", and an unknown cookie, are no errors.
func (a *Authenticator) endByCookie(ctx context.Context, value string) (userID string, err error) {
	if value == "" {
		return "", nil
	}
	gone := signIn{id: idOf(value)}
	row, err := a.Rows.SignIn(ctx, gone.id)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if opened, err := a.Sealer.Open(store.SignInOwner(gone.id), row.Tokens); err == nil {
		_ = json.Unmarshal(opened, &gone.held) // unreadable tokens cannot be revoked
	}
	if err := a.end(ctx, gone); err != nil {
		return row.UserID, err
	}
	a.Logger.InfoContext(ctx, "a user has signed out", "user", row.UserID)
	return row.UserID, nil
}

func rowTime(t time.Time) store.Time { return store.Time(t.UTC().UnixMicro()) }
