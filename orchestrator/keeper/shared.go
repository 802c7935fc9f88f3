package keeper

import (
	"errors"
	"io"
	"sync"

	"github.com/burano/burano/internal/panics"
)

// shared is what the duties of one check use together.
type shared struct {
	mutex sync.Mutex
	made  map[string]func() (io.Closer, error) // by keys, once each
	ended bool
}

// Share returns what produce makes for a key. It is made once for all duties of a check, also when that fails, and closed when the check has ended.
func (e *Environment) Share(key string, produce func() (io.Closer, error)) (io.Closer, error) {
	e.shared.mutex.Lock()
	if e.shared.ended {
		e.shared.mutex.Unlock()
		return nil, errors.New("the check of the environment has ended")
	}
	if e.shared.made == nil {
		e.shared.made = map[string]func() (io.Closer, error){}
	}
	one := e.shared.made[key]
	if one == nil {
		one = sync.OnceValues(func() (value io.Closer, err error) {
			err = panics.Run(func() (err error) {
				value, err = produce()
				return err
			})
			return value, err
		})
		e.shared.made[key] = one
	}
	e.shared.mutex.Unlock()
	return one()
}

// Close ends what the duties of the check shared. Their errors are of no use: nothing is written when they close.
func (e *Environment) Close() {
	e.shared.mutex.Lock()
	made := e.shared.made
	e.shared.made, e.shared.ended = nil, true
	e.shared.mutex.Unlock()
	for _, one := range made {
		if value, err := one(); err == nil {
			_ = value.Close()
		}
	}
}
