// Package lists caches data of a database until something of it is written.
package lists

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache holds values by their keys; those that were not used for longest are dropped first. Its results must not be changed. It is safe for concurrent
// use; a nil Cache holds nothing.
type Cache[V any] struct {
	limit int64
	weigh func(V) int64

	mutex   sync.Mutex
	began   int64 // how many writes
	writing int   // how many of them have not ended
	held    int64 // the total weight
	known   *simplelru.LRU[string, weighed[V]]
}

type weighed[V any] struct {
	value  V
	weight int64
}

// New makes a Cache of at most so many values, which together weigh no more than the limit. A value that weighs more than a quarter of it is
// not remembered.
func New[V any](count int, limit int64, weigh func(V) int64) *Cache[V] {
	c := &Cache[V]{limit: limit, weigh: weigh}
	known, err := simplelru.NewLRU(count, func(_ string, one weighed[V]) { c.held -= one.weight })
	if err != nil {
		panic(err) // the count is not positive
	}
	c.known = known
	return c
}

// Read returns the cached value, or else the result of read.
func (c *Cache[V]) Read(key string, read func() (V, error)) (V, error) {
	if c == nil {
		return read()
	}
	c.mutex.Lock()
	known, ok := c.known.Get(key)
	before, writing := c.began, c.writing
	c.mutex.Unlock()
	if ok {
		return known.value, nil
	}
	value, err := read()
	if err != nil || writing > 0 {
		return value, err
	}
	weight := c.weigh(value)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.began == before && weight <= c.limit/4 && !c.known.Contains(key) { // the value may be older than a write meanwhile
		c.known.Add(key, weighed[V]{value, weight})
		for c.held += weight; c.held > c.limit; {
			c.known.RemoveOldest()
		}
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
