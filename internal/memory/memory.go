// Package memory accounts for the bytes that the work of projects holds in memory: requests and their answers, tasks and their models, and the answers of
// machines. Budgets bound their sums, and while the process is short of memory new work is refused to the owner that holds most.
package memory

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync"
	"time"
)

// Guard knows the bytes that each owner holds, of all kinds. While the process has less memory left than it needs, new work is refused to the owner that
// holds most, and to nobody else.
type Guard struct {
	tight func() bool

	mutex  sync.Mutex
	held   map[string]int64 // by owner
	looked time.Time
	short  bool      // the result of tight when it was looked
	since  time.Time // when it began to be short
}

// NewGuard returns a guard; tight reports whether the process is short of memory, and nil stands for never.
func NewGuard(tight func() bool) *Guard {
	return &Guard{tight: tight, held: map[string]int64{}}
}

// Budget bounds the bytes of one kind of work. An owner gets more of it only while more is free than it has of it. A nil Budget bounds nothing.
type Budget struct {
	of    *Guard
	most  int64
	taken int64            // of Guard.mutex, as held is
	held  map[string]int64 // by owner
}

// Budget returns a budget of so many bytes.
func (g *Guard) Budget(most int64) *Budget {
	return &Budget{of: g, most: most, held: map[string]int64{}}
}

// None is why there is no memory for a piece of work.
type None struct {
	Held    int64 // bytes that the owner's other work holds
	Wanted  int64
	Process bool // the process is short of memory, and the owner holds most; else the owner has its share
}

func (n *None) Error() string {
	if n.Process {
		return fmt.Sprintf("the server is short of memory, and the project holds most of it, %d bytes", n.Held)
	}
	return fmt.Sprintf("the project holds %d bytes of the server's memory, and %d more are not free", n.Held, n.Wanted)
}

// lookEvery is how often at most it is looked whether memory is short, and leastBlamed how many bytes an owner holds at least who is refused for that.
const (
	lookEvery   = 100 * time.Millisecond
	leastBlamed = 1 << 20
)

// Account is the memory of one piece of work. It is safe for concurrent use. A nil Account, as that of a nil Budget, takes everything.
type Account struct {
	of    *Budget
	owner string
	bytes int64 // of the budget; of Guard.mutex, as those below
	noted int64 // besides the budget
	last  int64 // bytes of the answer that ended last
}

// Open begins the account of new work, unless memory is short and its owner holds most. The error is a *None.
func (b *Budget) Open(owner string) (*Account, error) {
	if b == nil {
		return nil, nil
	}
	g := b.of
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if held := g.held[owner]; g.isShort() && held >= leastBlamed && held == g.largest() {
		return nil, &None{Held: held, Process: true}
	}
	return &Account{of: b, owner: owner}, nil
}

// Account begins the account of work that was admitted before.
func (b *Budget) Account(owner string) *Account {
	if b == nil {
		return nil
	}
	return &Account{of: b, owner: owner}
}

// isShort looks whether memory is short. The caller holds the mutex.
func (g *Guard) isShort() bool {
	if now := time.Now(); g.tight != nil && now.Sub(g.looked) >= lookEvery {
		was := g.short
		if g.looked, g.short = now, g.tight(); g.short && !was {
			g.since = now
		}
	}
	return g.short
}

func (g *Guard) largest() (bytes int64) {
	for _, held := range g.held {
		bytes = max(bytes, held)
	}
	return bytes
}

// Short returns for how long memory has been short; 0 when it is not.
func (g *Guard) Short() time.Duration {
	if g == nil {
		return 0
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if !g.isShort() {
		return 0
	}
	return max(time.Since(g.since), 1)
}

// Short is that of the budget's guard.
func (b *Budget) Short() time.Duration {
	if b == nil {
		return 0
	}
	return b.of.Short()
}

// Take adds bytes to those that the work holds. The error is a *None. An owner that holds nothing of the budget gets what is free.
func (a *Account) Take(bytes int64) error {
	if a == nil {
		return nil
	}
	a.of.of.mutex.Lock()
	defer a.of.of.mutex.Unlock()
	held, free := a.of.held[a.owner], a.of.most-a.of.taken
	if bytes > free || held > 0 && held+bytes > free {
		return &None{Held: held, Wanted: bytes}
	}
	a.change(bytes)
	return nil
}

// Note counts bytes that the work holds anyhow, without the budget: they are a reason to refuse its owner more while memory is short.
func (a *Account) Note(bytes int64) {
	if a == nil {
		return
	}
	a.of.of.mutex.Lock()
	defer a.of.of.mutex.Unlock()
	a.noted += bytes
	a.of.of.add(a.owner, bytes)
}

// Close gives back everything that the work held.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.of.of.mutex.Lock()
	defer a.of.of.mutex.Unlock()
	a.change(-a.bytes)
	a.of.of.add(a.owner, -a.noted)
	a.noted, a.last = 0, 0
}

// change adds bytes of the budget. The caller holds the mutex.
func (a *Account) change(bytes int64) {
	a.bytes += bytes
	a.of.taken += bytes
	if a.of.held[a.owner] += bytes; a.of.held[a.owner] <= 0 {
		delete(a.of.held, a.owner)
	}
	a.of.of.add(a.owner, bytes)
}

// add counts bytes of an owner. The caller holds the mutex.
func (g *Guard) add(owner string, bytes int64) {
	if g.held[owner] += bytes; g.held[owner] <= 0 {
		delete(g.held, owner)
	}
}

// Answer is the memory of one answer that the work reads. It is for one goroutine.
type Answer struct {
	of    *Account
	bytes int64
}

// Answer begins an answer.
func (a *Account) Answer() *Answer { return &Answer{of: a} }

// grain is how many bytes of an answer are taken at a time.
const grain = 256 << 10

// Grow takes memory until the answer has at least so many bytes. The error is a *None.
func (r *Answer) Grow(bytes int64) error {
	if bytes <= r.bytes {
		return nil
	}
	more := max(bytes-r.bytes, grain)
	if err := r.of.Take(more); err != nil {
		return err
	}
	r.bytes += more
	return nil
}

// End ends the reading of an answer. Its memory counts until the work's next answer ends: so long it may be worked with.
func (r *Answer) End() {
	if r.of == nil {
		return
	}
	g := r.of.of.of
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if r.of.bytes >= r.of.last+r.bytes { // else the account was closed
		r.of.change(-r.of.last)
		r.of.last = r.bytes
	}
	r.bytes = 0
}

type key struct{}

// With returns a context of work whose memory an account holds.
func With(ctx context.Context, account *Account) context.Context {
	return context.WithValue(ctx, key{}, account)
}

// Of returns the account of the context's work; nil where it has none.
func Of(ctx context.Context) *Account {
	account, _ := ctx.Value(key{}).(*Account)
	return account
}

// Names of the runtime's metrics (https://pkg.go.dev/runtime/metrics).
const (
	metricTotal    = "/memory/classes/total:bytes"
	metricReleased = "/memory/classes/heap/released:bytes"
	metricLive     = "/gc/heap/live:bytes"
)

// Tight returns a function that reports whether the process is short of memory: what the last collection found in use is more than five eighths of the
// limit, or the collector does not keep within the limit (https://pkg.go.dev/runtime/debug#SetMemoryLimit). unused are bytes that count as in use and take
// no memory; the limit has them, too.
func Tight(limit, unused int64) func() bool {
	return func() bool {
		samples := []metrics.Sample{{Name: metricTotal}, {Name: metricReleased}, {Name: metricLive}}
		metrics.Read(samples)
		total := int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
		live := int64(samples[2].Value.Uint64()) - unused
		return live > (limit-unused)/8*5 || total > limit+limit/50
	}
}
