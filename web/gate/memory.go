package gate

import (
	"fmt"
	"runtime/metrics"
	"sync"
	"time"
)

// Memory accounts for the bytes that requests hold, by owner, within a budget of which an owner gets more only while more is free than it has. While
// the process has less memory left than it needs, new work is refused to the owner that holds most, and to nobody else.
type Memory struct {
	budget int64
	tight  func() bool

	mutex  sync.Mutex
	taken  int64
	held   map[string]int64 // by owner
	looked time.Time
	short  bool      // what tight said when it was looked
	since  time.Time // when it began to be short
}

// NewMemory bounds the bytes in flight; tight reports whether the process is short of memory, and nil stands for never.
func NewMemory(budget int64, tight func() bool) *Memory {
	return &Memory{budget: budget, tight: tight, held: map[string]int64{}}
}

// NoMemory is why there is no memory for a request.
type NoMemory struct {
	Held    int64 // bytes that the owner's other requests hold
	Wanted  int64
	Process bool // the process is short of memory, and the owner holds most; else the owner has its share
}

func (n *NoMemory) Error() string {
	if n.Process {
		return fmt.Sprintf("the server is short of memory, and the owner's requests hold most of it, %d bytes", n.Held)
	}
	return fmt.Sprintf("the owner's requests hold %d bytes, and %d more are not free", n.Held, n.Wanted)
}

// lookEvery is how often at most it is looked whether memory is short, and leastBlamed how many bytes an owner holds at least who is refused for that.
const (
	lookEvery   = 100 * time.Millisecond
	leastBlamed = 1 << 20
)

// Account is what one request holds. A nil Account, as that of a server without a budget, takes everything.
type Account struct {
	of    *Memory
	owner string
	bytes int64 // of Memory.mutex
}

// Open begins the account of a request, unless memory is short and its owner holds most. The error is a *NoMemory.
func (m *Memory) Open(owner string) (*Account, error) {
	if m == nil {
		return nil, nil
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if held := m.held[owner]; m.isShort() && held >= leastBlamed && held == m.largest() {
		return nil, &NoMemory{Held: held, Process: true}
	}
	return &Account{of: m, owner: owner}, nil
}

// isShort looks whether memory is short. The caller holds the mutex.
func (m *Memory) isShort() bool {
	if now := time.Now(); m.tight != nil && now.Sub(m.looked) >= lookEvery {
		was := m.short
		if m.looked, m.short = now, m.tight(); m.short && !was {
			m.since = now
		}
	}
	return m.short
}

func (m *Memory) largest() (bytes int64) {
	for _, held := range m.held {
		bytes = max(bytes, held)
	}
	return bytes
}

// Short returns for how long memory has been short; 0 when it is not.
func (m *Memory) Short() time.Duration {
	if m == nil {
		return 0
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if !m.isShort() {
		return 0
	}
	return max(time.Since(m.since), 1)
}

// Take adds bytes to what the request holds. The error is a *NoMemory. An owner that holds nothing gets what is free.
func (a *Account) Take(bytes int64) error {
	if a == nil {
		return nil
	}
	m := a.of
	m.mutex.Lock()
	defer m.mutex.Unlock()
	held, free := m.held[a.owner], m.budget-m.taken
	if bytes > free || held > 0 && held+bytes > free {
		return &NoMemory{Held: held, Wanted: bytes}
	}
	a.bytes += bytes
	m.taken += bytes
	m.held[a.owner] = held + bytes
	return nil
}

// Close gives back all that the request held.
func (a *Account) Close() {
	if a == nil {
		return
	}
	m := a.of
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.taken -= a.bytes
	if m.held[a.owner] -= a.bytes; m.held[a.owner] <= 0 {
		delete(m.held, a.owner)
	}
	a.bytes = 0
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
