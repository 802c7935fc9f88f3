// Package gate limits a server's load: connections, places of requests, and the time that clients take to send and to read. No
// owner's requests take the room of others.
package gate

import (
	"fmt"
	"sync"
	"time"
)

// Places are so many requests of a kind at the same time, each of which belongs to an owner: a project, or an address of strangers. An owner gets a
// further place only while more places are free than it has. So some are always left for others, even if every owner takes all it can get.
type Places struct {
	most, share int // share is the most places of an owner; 0: the rule above

	mutex sync.Mutex
	taken int
	held  map[string]int // by owner, without owners of none
	full  time.Time      // since when nothing is free; zero: something is
}

// NewPlaces makes Places; share is the most places of one owner, and 0 allows as many as are free in addition to its own.
func NewPlaces(most, share int) *Places {
	return &Places{most: most, share: share, held: map[string]int{}}
}

// NoPlace is the reason why there is no place.
type NoPlace struct {
	Held   int  // places that the owner has
	Others bool // all places are taken, by any owners; else the owner has its share
}

func (n *NoPlace) Error() string {
	if n.Others {
		return "all places are taken"
	}
	return fmt.Sprintf("the owner has its share of %d places", n.Held)
}

// Take gives the owner a place, which it has until it calls leave; calling that again does nothing. The error is a *NoPlace.
func (p *Places) Take(owner string) (leave func(), err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	held, free := p.held[owner], p.most-p.taken
	switch {
	case free <= 0:
		return nil, &NoPlace{Held: held, Others: true}
	case p.share > 0 && held >= p.share, p.share == 0 && held >= free:
		return nil, &NoPlace{Held: held}
	}
	p.held[owner]++
	if p.taken++; p.taken == p.most {
		p.full = time.Now()
	}
	return sync.OnceFunc(func() { p.leave(owner) }), nil
}

func (p *Places) leave(owner string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.taken--
	p.full = time.Time{}
	if p.held[owner]--; p.held[owner] == 0 {
		delete(p.held, owner)
	}
}

// Full returns for how long no place has been free; 0 when one is.
func (p *Places) Full() time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.full.IsZero() {
		return 0
	}
	return time.Since(p.full)
}
