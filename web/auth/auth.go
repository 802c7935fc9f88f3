// Package auth lets in who Keystone knows, and tells the handlers behind it who is calling.
package auth

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

const (
	// remember is how long Keystone's word about a token is taken without asking again, and so how long a revoked token
	// may still be accepted.
	remember = 30 * time.Second
	// capacity bounds how many tokens are remembered.
	capacity = 10_000
)

// Validator asks who a token belongs to; a token that nobody has is a fault of kind Unauthorized.
type Validator interface {
	Validate(ctx context.Context, token string) (identity.Caller, error)
}

// Keystone returns the middleware that demands a token in X-Auth-Token and puts its identity.Caller into the request's context.
func Keystone(validator Validator, now func() time.Time) echo.MiddlewareFunc {
	known := &cache{now: now, entries: map[[sha256.Size]byte]entry{}}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			token := c.Request().Header.Get("X-Auth-Token")
			if token == "" {
				return fault.New(fault.Unauthorized, "the request has no X-Auth-Token: send a Keystone token that is scoped to a project")
			}
			caller, ok := known.get(token)
			if !ok {
				var err error
				if caller, err = validator.Validate(c.Request().Context(), token); err != nil {
					return err
				}
				known.put(token, caller)
			}
			c.SetRequest(c.Request().WithContext(identity.With(c.Request().Context(), caller)))
			return next(c)
		}
	}
}

// cache remembers callers by the digest of their token, so that no token stays in memory by itself for long.
type cache struct {
	now     func() time.Time
	mutex   sync.Mutex
	entries map[[sha256.Size]byte]entry
}

type entry struct {
	caller identity.Caller // without its token
	until  time.Time
}

func (c *cache) get(token string) (identity.Caller, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found, ok := c.entries[sha256.Sum256([]byte(token))]
	if !ok || !c.now().Before(found.until) {
		return identity.Caller{}, false
	}
	found.caller.Token = token
	return found.caller, true
}

func (c *cache) put(token string, caller identity.Caller) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	if len(c.entries) >= capacity {
		for digest, old := range c.entries {
			if !now.Before(old.until) {
				delete(c.entries, digest)
			}
		}
	}
	if len(c.entries) >= capacity {
		clear(c.entries)
	}
	caller.Token = ""
	c.entries[sha256.Sum256([]byte(token))] = entry{caller: caller, until: now.Add(remember)}
}
