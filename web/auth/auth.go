// Package auth lets in who Keystone knows, and tells the handlers behind it who is calling.
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
	// capacity bounds how many tokens are remembered; the one that was not used for longest is forgotten first.
	capacity = 10_000
	// patience is how long Keystone may take to tell about a token.
	patience = 15 * time.Second
)

// Validator asks who a token belongs to; a token that nobody has is a fault of kind Unauthorized.
type Validator interface {
	Validate(ctx context.Context, token string) (identity.Caller, error)
}

// Keystone returns the middleware that demands a token in X-Auth-Token and puts its identity.Caller into the request's context. It
// asks the validator once per token and half minute, also when many requests come with the same token at once; a refusal is not
// remembered. Errors that are not of kind Unauthorized say that the validator could not be asked.
func Keystone(validator Validator, now func() time.Time) echo.MiddlewareFunc {
	known, err := lru.New[digest, entry](capacity)
	if err != nil {
		panic(err) // the capacity is not positive
	}
	k := &keystone{validator: validator, now: now, known: known}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			token := c.Request().Header.Get("X-Auth-Token")
			if token == "" {
				return fault.New(fault.Unauthorized, "the request has no X-Auth-Token: send a Keystone token that is scoped to a project")
			}
			caller, err := k.caller(c.Request().Context(), token)
			if err != nil {
				return err
			}
			c.SetRequest(c.Request().WithContext(identity.With(c.Request().Context(), caller)))
			return next(c)
		}
	}
}

// digest stands for a token, so that none stays in memory for long.
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

func (k *keystone) ask(ctx context.Context, key digest, token string) (entry, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := k.now() // the answer may be as old as the question
	caller, err := k.validator.Validate(ctx, token)
	if err != nil {
		k.known.Remove(key)
		return entry{}, err
	}
	found := entry{caller: caller, until: asked.Add(remember)}
	if !caller.Expires.IsZero() && caller.Expires.Before(found.until) {
		found.until = caller.Expires
	}
	found.caller.Token = ""
	k.known.Add(key, found)
	return found, nil
}
