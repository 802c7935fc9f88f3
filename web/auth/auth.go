// Package auth admits users of Keystone, and passes the caller on to the handlers behind it.
package auth

import (
	"context"
	"crypto/sha256"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

const (
	// remember is how long Keystone's word about a token is taken without asking again, and so how long a revoked token
	// may still be accepted.
	remember = 30 * time.Second
	// capacity limits the number of cached tokens; the one that was not used for longest is dropped first.
	capacity = 10_000
	// patience is Keystone's time limit for the validation of a token.
	patience = 15 * time.Second
)

// Validator returns the user of a token; an unknown token is a fault of kind Unauthorized.
type Validator interface {
	Validate(ctx context.Context, token string) (identity.Caller, error)
}

// Unreachable is an error that is no verdict about the caller: Keystone could not be asked.
type Unreachable struct{ Err error }

func (u *Unreachable) Error() string { return u.Err.Error() }

func (u *Unreachable) Unwrap() error { return u.Err }

// unreachable marks errors of Keystone that are no fault of the caller.
func unreachable(err error) error {
	if err == nil || fault.KindOf(err) != 0 {
		return err
	}
	return &Unreachable{err}
}

// Keystone returns the middleware that demands a token in X-Auth-Token and puts its identity.Caller into the request's context. It
// asks the validator once per token and half minute, also when many requests come with the same token at once; a refusal is not
// remembered.
func Keystone(validator Validator, now func() time.Time) echo.MiddlewareFunc {
	k := newKeystone(validator, now)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error { return k.enter(c, next) }
	}
}

func newKeystone(validator Validator, now func() time.Time) *keystone {
	known, err := lru.New[digest, entry](capacity)
	if err != nil {
		panic(err) // the capacity is not positive
	}
	return &keystone{validator: validator, now: now, known: known}
}

func (k *keystone) enter(c echo.Context, next echo.HandlerFunc) error {
	token := c.Request().Header.Get("X-Auth-Token")
	if token == "" {
		return fault.New(fault.Unauthorized, "the request has no X-Auth-Token: send a Keystone token that is scoped to a project")
	}
	caller, err := k.caller(c.Request().Context(), token)
	if err != nil {
		return err
	}
	if caller.ProjectID == "" {
		return fault.New(fault.Unauthorized, "this token belongs to no project: ask Keystone for one that is scoped to a project")
	}
	c.SetRequest(c.Request().WithContext(identity.With(c.Request().Context(), caller)))
	return next(c)
}

// digest represents a token, so that none stays in memory for long.
type digest [sha256.Size]byte

type entry struct {
	caller identity.Caller // without its token
	until  time.Time
}

type keystone struct {
	validator Validator
	now       func() time.Time
	known     *lru.Cache[digest, entry]
	asking    singleflight.Group
}

func (k *keystone) caller(ctx context.Context, token string) (identity.Caller, error) {
	key := digest(sha256.Sum256([]byte(token)))
	found, ok := k.known.Get(key)
	if !ok || !k.now().Before(found.until) {
		// The question outlives the request that asked first, because others wait for its answer too.
		answered := k.asking.DoChan(string(key[:]), func() (any, error) { return k.ask(context.WithoutCancel(ctx), key, token) })
		select {
		case <-ctx.Done():
			return identity.Caller{}, context.Cause(ctx)
		case answer := <-answered:
			if answer.Err != nil {
				return identity.Caller{}, answer.Err
			}
			found = answer.Val.(entry)
		}
	}
	found.caller.Token = token
	return found.caller, nil
}

// remembers reports whether the validator need not be asked about a token.
func (k *keystone) remembers(token string) bool {
	found, ok := k.known.Peek(digest(sha256.Sum256([]byte(token))))
	return ok && k.now().Before(found.until)
}

// forget has the validator asked about a token when it comes again.
func (k *keystone) forget(token string) { k.known.Remove(digest(sha256.Sum256([]byte(token)))) }

func (k *keystone) ask(ctx context.Context, key digest, token string) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := k.now() // the answer may be as old as the question
	caller, err := k.validator.Validate(ctx, token)
	if err != nil {
		k.known.Remove(key)
		return entry{}, unreachable(err)
	}
	found := entry{caller: caller, until: asked.Add(remember)}
	if !caller.Expires.IsZero() && caller.Expires.Before(found.until) {
		found.until = caller.Expires
	}
	found.caller.Token = ""
	k.known.Add(key, found)
	return found, nil
}
