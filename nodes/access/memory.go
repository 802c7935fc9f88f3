package access

import (
	"context"
	"maps"
	"sync"
)

// Memory is a Vault that is gone with its process. The zero value is empty and ready.
type Memory struct {
	mutex  sync.Mutex
	values map[string][]byte
	stores int
}

// Load is for Vault.
func (m *Memory) Load(_ context.Context, name string) ([]byte, bool, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	value, found := m.values[name]
	return value, found, nil
}

// Store is for Vault.
func (m *Memory) Store(_ context.Context, name string, value []byte) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[name] = value
	m.stores++
	return nil
}

// Values are a copy of everything in it, by name.
func (m *Memory) Values() map[string][]byte {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return maps.Clone(m.values)
}

// Stores is how often something was stored.
func (m *Memory) Stores() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.stores
}
