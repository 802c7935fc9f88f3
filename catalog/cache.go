package catalog

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// packageCache keeps the packages read last. An uploaded package never changes its files, so nothing in it becomes stale.
type packageCache struct {
	mutex    sync.Mutex
	packages *simplelru.LRU[string, *Package]
	bytes    int
}

const (
	// maxCached is how much the cached packages may hold together, in bytes.
	maxCached = 64 << 20
	// maxCachedPackages is how many are cached at most.
	maxCachedPackages = 10000
)

func newPackageCache() *packageCache {
	c := &packageCache{}
	packages, err := simplelru.NewLRU(maxCachedPackages, func(_ string, p *Package) { c.bytes -= p.held })
	if err != nil {
		panic(err) // the number is not positive
	}
	c.packages = packages
	return c
}

func (c *packageCache) get(id string) (*Package, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.packages.Get(id)
}

func (c *packageCache) put(id string, p *Package) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.packages.Contains(id) || p.held > maxCached {
		return
	}
	c.packages.Add(id, p)
	c.bytes += p.held
	for c.bytes > maxCached {
		c.packages.RemoveOldest()
	}
}

func (c *packageCache) drop(id string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.packages.Remove(id)
}
