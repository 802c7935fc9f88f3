// Package lists remembers what was read from a database until something of it is written.
package lists

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache remembers values by their keys; the one that was not used for longest is forgotten first. What it returns must not be changed. It
// is safe for concurrent use; a nil Cache remembers nothing.
type Cache[V any] struct {
	mutex   sync.Mutex
	began   int64 // how many writes
	writing int   // how many of them have not ended
	known   *simplelru.LRU[string, V]
}

// New makes a Cache of so many values.
func New[V any](size int) *Cache[V] {
	known, err := simplelru.NewLRU[string, V](size, nil)
	if err != nil {
		panic(err) // the size is not positive
	}
	return &Cache[V]{known: known}
}

// Read returns the remembered value, or else the one that read returns, which is remembered when keep (nil: always) says so.
func (c *Cache[V]) Read(key string, read func() (V, error), keep func(V) bool) (V, error) {
	if c == nil {
		return read()
	}
	c.mutex.Lock()
	value, ok := c.known.Get(key)
	before, writing := c.began, c.writing
	c.mutex.Unlock()
	if ok {
		return value, nil
	}
	value, err := read()
	if err != nil || writing > 0 || keep != nil && !keep(value) {
		return value, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.began == before { // else what was read may be older than what was written meanwhile
		c.known.Add(key, value)
	}
	return value, nil
}

// Writing forgets everything, and nothing is remembered until done is called: before something is written, and when that is there for all to
// see or has failed.
func (c *Cache[V]) Writing() (done func()) {
	if c == nil {
		return func() {}
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.began++
	c.writing++
	c.known.Purge()
	return func() {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.writing--
	}
}
