package keeper

import (
	"errors"
	"io"
	"sync"
)

// shared is what the duties of one check use together, by keys.
type shared struct {
	mutex sync.Mutex
	made  map[string]*sharing
	ended bool
}

type sharing struct {
	once  sync.Once
	value io.Closer
	err   error
}

// Share returns what produce makes for a key. It is made once for all duties of a check, also when that fails, and closed when the check has ended.
func (e *Environment) Share(key string, produce func() (io.Closer, error)) (io.Closer, error) {
	e.shared.mutex.Lock()
	if e.shared.ended {
		e.shared.mutex.Unlock()
		return nil, errors.New("the check of the environment has ended")
	}
	one := e.shared.made[key]
	if one == nil {
		one = &sharing{}
		if e.shared.made == nil {
			e.shared.made = map[string]*sharing{}
		}
		e.shared.made[key] = one
	}
	e.shared.mutex.Unlock()
	one.once.Do(func() { one.value, one.err = produce() })
	return one.value, one.err
}

// Close ends what the duties of the check shared. Their errors are of no use: nothing is written when they close.
func (e *Environment) Close() {
	e.shared.mutex.Lock()
	made := e.shared.made
	e.shared.made, e.shared.ended = nil, true
	e.shared.mutex.Unlock()
	for _, one := range made {
		one.once.Do(func() { one.err = errors.New("the check of the environment has ended") })
		if one.err == nil {
			_ = one.value.Close()
		}
	}
}
