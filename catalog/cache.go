package catalog

import "sync"

// packageCache keeps the packages read last. An uploaded package never changes its files, so nothing in it becomes stale.
type packageCache struct {
	mutex    sync.Mutex
	packages map[string]*Package
	order    []string // ids, the one used last at the end
	bytes    int
}

// maxCached is how much the cached packages may hold together, in bytes.
const maxCached = 64 << 20

func newPackageCache() *packageCache { return &packageCache{packages: map[string]*Package{}} }

func (c *packageCache) get(id string) (*Package, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	p, ok := c.packages[id]
	if ok {
		c.forget(id)
		c.order = append(c.order, id)
	}
	return p, ok
}

func (c *packageCache) put(id string, p *Package) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, there := c.packages[id]; there || p.size() > maxCached {
		return
	}
	c.packages[id] = p
	c.order = append(c.order, id)
	c.bytes += p.size()
	for c.bytes > maxCached {
		c.remove(c.order[0])
	}
}

func (c *packageCache) drop(id string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.remove(id)
}

func (c *packageCache) remove(id string) {
	if p, ok := c.packages[id]; ok {
		c.bytes -= p.size()
		delete(c.packages, id)
		c.forget(id)
	}
}

func (c *packageCache) forget(id string) {
	for i, other := range c.order {
		if other == id {
			c.order = append(c.order[:i], c.order[i+1:]...)
			return
		}
	}
}

func (p *Package) size() int {
	size := 0
	for name, content := range p.files {
		size += len(name) + len(content)
	}
	return size
}
