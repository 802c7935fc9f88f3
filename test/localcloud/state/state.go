// Package state keeps what the local cloud knows in files, so that it is still known after the process was restarted or
// killed.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Table is a durable set of objects of one kind, each under its id, in the order in which they were first put. It is safe for
// concurrent use. Values are copied in and out as JSON, so that a caller never shares memory with the table.
type Table[T any] struct {
	path  string
	mutex sync.RWMutex
	rows  []row
}

type row struct {
	ID    string
	Value json.RawMessage
}

// Open reads the table of the given kind from dir, which is made when it is not there.
func Open[T any](dir, kind string) (*Table[T], error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open table %s: %w", kind, err)
	}
	t := &Table[T]{path: filepath.Join(dir, kind+".json")}
	data, err := os.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open table %s: %w", kind, err)
	}
	if err := json.Unmarshal(data, &t.rows); err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.path, err)
	}
	return t, nil
}

// Get returns the object with this id.
func (t *Table[T]) Get(id string) (value T, ok bool) {
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	i := t.index(id)
	if i < 0 {
		return value, false
	}
	return decode[T](t.rows[i].Value), true
}

// All returns every object, oldest first.
func (t *Table[T]) All() []T {
	t.mutex.RLock()
	defer t.mutex.RUnlock()
	values := make([]T, len(t.rows))
	for i, r := range t.rows {
		values[i] = decode[T](r.Value)
	}
	return values
}

// Put stores value under id, in place of what was there; it is on disk when Put returns.
func (t *Table[T]) Put(id string, value T) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.put(id, value)
}

// Update changes the object with this id by change, as one step; it returns false when there is none.
func (t *Table[T]) Update(id string, change func(*T)) (bool, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	i := t.index(id)
	if i < 0 {
		return false, nil
	}
	value := decode[T](t.rows[i].Value)
	change(&value)
	return true, t.put(id, value)
}

// Delete takes the object with this id out; it returns false when there is none.
func (t *Table[T]) Delete(id string) (bool, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	i := t.index(id)
	if i < 0 {
		return false, nil
	}
	return true, t.write(slices.Delete(slices.Clone(t.rows), i, i+1))
}

func (t *Table[T]) put(id string, value T) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("store %s in %s: %w", id, t.path, err)
	}
	rows := slices.Clone(t.rows)
	if i := t.index(id); i >= 0 {
		rows[i].Value = data
	} else {
		rows = append(rows, row{ID: id, Value: data})
	}
	return t.write(rows)
}

func (t *Table[T]) write(rows []row) error {
	data, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	next := t.path + ".new"
	if err := os.WriteFile(next, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	if err := os.Rename(next, t.path); err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	t.rows = rows
	return nil
}

func (t *Table[T]) index(id string) int {
	return slices.IndexFunc(t.rows, func(r row) bool { return r.ID == id })
}

func decode[T any](data json.RawMessage) (value T) {
	// What is in the table was either marshalled from a T or read from a file that this type wrote.
	if err := json.Unmarshal(data, &value); err != nil {
		panic(fmt.Sprintf("table holds what is no %T: %v", value, err))
	}
	return value
}
