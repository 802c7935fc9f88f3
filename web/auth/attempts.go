package auth

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

// The allowed rate of sign-ins, at each server: so many at once, and another one after each time.
const (
	accountBurst, accountEvery = 10, 6 * time.Second // one account from one address; forgotten when it goes well
	addressBurst, addressEvery = 60, time.Second     // one address, many of which an attacker would need
	// remembered limits the number of counted addresses and accounts; those not tried for longest are dropped first.
	remembered = 10_000
)

// TooMany refuses an action after too many tries.
type TooMany struct {
	Wait time.Duration // until the next try
	What string        // the action; "" is "to sign in"
}

func (t *TooMany) Error() string {
	return fmt.Sprintf("Too many attempts %s; try again in %d seconds", cmp.Or(t.What, "to sign in"), t.Seconds())
}

// Seconds to wait, at least one.
func (t *TooMany) Seconds() int { return int(t.Wait/time.Second) + 1 }

// Attempts limits the speed of guessing passwords. An account is counted for each address by itself, so that it cannot be locked out by others.
type Attempts struct {
	now                  func() time.Time
	mutex                sync.Mutex
	byAccount, byAddress *lru.Cache[digest, *rate.Limiter]
}

// NewAttempts counts from nothing on; now is the time.
func NewAttempts(now func() time.Time) *Attempts {
	cache := func() *lru.Cache[digest, *rate.Limiter] {
		made, err := lru.New[digest, *rate.Limiter](remembered)
		if err != nil {
			panic(err) // the number is not positive
		}
		return made
	}
	return &Attempts{now: now, byAccount: cache(), byAddress: cache()}
}

// Take counts an attempt and returns 0, or returns how long to wait, and counts nothing.
func (a *Attempts) Take(address, account string) time.Duration {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := a.now()
	place := limiter(a.byAddress, key(address), addressEvery, addressBurst).ReserveN(now, 1)
	try := limiter(a.byAccount, key(address, account), accountEvery, accountBurst).ReserveN(now, 1)
	wait := max(place.DelayFrom(now), try.DelayFrom(now))
	if wait > 0 {
		place.CancelAt(now)
		try.CancelAt(now)
	}
	return wait
}

// Succeeded clears an account's tries from an address.
func (a *Attempts) Succeeded(address, account string) { a.byAccount.Remove(key(address, account)) }

func limiter(cache *lru.Cache[digest, *rate.Limiter], key digest, every time.Duration, burst int) *rate.Limiter {
	found, ok := cache.Get(key)
	if !ok {
		found = rate.NewLimiter(rate.Every(every), burst)
		cache.Add(key, found)
	}
	return found
}

// key makes short and long names equally large. Of an IPv6 address the first 64 bits count: its holder has all of its network.
func key(address string, account ...string) digest {
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.Unmap().Is6() {
		address = netip.PrefixFrom(parsed, 64).Masked().String()
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %q", address, account))
}
