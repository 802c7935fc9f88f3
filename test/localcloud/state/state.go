// Package state stores the local cloud's records in files, so that they survive a restart or a kill.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// spare is how many changes a table's file may hold beside the objects that are there, before it is written anew. Twice the number
// of objects is allowed in any case, so that a change costs the same however many objects there are.
const spare = 1000

// Table is a durable set of objects of one kind, each under its id, in the order in which they were first put. It is safe for
// concurrent use. Values are copied in and out as JSON, so that a caller never shares memory with the table.
//
// Its file is the list of changes, a line of JSON each; the last line of one id counts.
type Table[T any] struct {
	path    string
	mutex   sync.RWMutex
	ids     []string // oldest first
	values  map[string]*kept[T]
	changes int // lines in the file
}

// kept is an object in memory: its encoded form, decoded at the first Where; the decoded form is never changed.
type kept[T any] struct {
	data    json.RawMessage
	once    sync.Once
	decoded T
}

func (k *kept[T]) look() T {
	k.once.Do(func() { k.decoded = decode[T](k.data) })
	return k.decoded
}

// change is a line of the file. An object that is deleted has no value.
type change struct {
	ID    string
	Value json.RawMessage `json:",omitempty"`
}

// text is the line. The parts of a value were checked when it was marshalled.
func (c change) text() ([]byte, error) {
	id, err := json.Marshal(c.ID)
	if err != nil {
		return nil, err
	}
	line := append([]byte(`{"ID":`), id...)
	if c.Value != nil {
		line = append(append(line, `,"Value":`...), c.Value...)
	}
	return append(line, "}\n"...), nil
}

// Open reads the table of the given kind from dir, which is made when it is not there.
func Open[T any](dir, kind string) (*Table[T], error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open table %s: %w", kind, err)
	}
	t := &Table[T]{path: filepath.Join(dir, kind+".jsonl"), values: map[string]*kept[T]{}}
	if err := t.read(); err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.path, err)
	}
	return t, nil
}

// read reads the file. A last line that was not written to its end, when the process was killed, was never acknowledged: it goes.
func (t *Table[T]) read() error {
	data, err := os.ReadFile(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return t.takeOver(strings.TrimSuffix(t.path, "l"))
	}
	if err != nil {
		return err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	lines := json.NewDecoder(bytes.NewReader(whole))
	for {
		var line change
		err := lines.Decode(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		t.apply(line)
	}
	if len(whole) < len(data) {
		return os.Truncate(t.path, int64(len(whole)))
	}
	return nil
}

// takeOver reads the file of a former version, one array of all objects, if there is one, and replaces it.
func (t *Table[T]) takeOver(former string) error {
	data, err := os.ReadFile(former)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var rows []change
	if err := json.Unmarshal(data, &rows); err != nil {
		return fmt.Errorf("%s: %w", former, err)
	}
	for _, row := range rows {
		t.apply(row)
	}
	if err := t.compact(); err != nil {
		return err
	}
	return os.Remove(former)
}

// Get returns the object with this id.
func (t *Table[T]) Get(id string) (value T, ok bool) {
	t.mutex.RLock()
	found, ok := t.values[id]
	t.mutex.RUnlock()
	if !ok {
		return value, false
	}
	return decode[T](found.data), true
}

// All returns every object, oldest first.
func (t *Table[T]) All() []T {
	return t.Where(func(T) bool { return true })
}

// Where returns the objects that are wanted, oldest first. The function is called for every object and changes none.
func (t *Table[T]) Where(wanted func(T) bool) []T {
	t.mutex.RLock()
	var found []json.RawMessage
	for _, id := range t.ids {
		if one := t.values[id]; wanted(one.look()) {
			found = append(found, one.data)
		}
	}
	t.mutex.RUnlock()
	values := make([]T, len(found))
	for i, data := range found {
		values[i] = decode[T](data)
	}
	return values
}

// Put stores value under id and replaces the former one; it is in the file when Put returns.
func (t *Table[T]) Put(id string, value T) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.put(id, value)
}

// Update changes the object with this id by change, as one step; it returns false when there is none.
func (t *Table[T]) Update(id string, change func(*T)) (bool, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	found, ok := t.values[id]
	if !ok {
		return false, nil
	}
	value := decode[T](found.data)
	change(&value)
	return true, t.put(id, value)
}

// Delete takes the object with this id out; it returns false when there is none.
func (t *Table[T]) Delete(id string) (bool, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if _, ok := t.values[id]; !ok {
		return false, nil
	}
	return true, t.write(change{ID: id})
}

func (t *Table[T]) put(id string, value T) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("store %s in %s: %w", id, t.path, err)
	}
	return t.write(change{ID: id, Value: data})
}

// write carries a change out in the file, then in memory.
func (t *Table[T]) write(line change) error {
	data, err := line.text()
	if err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	if err := appendTo(t.path, data); err != nil {
		return fmt.Errorf("write %s: %w", t.path, err)
	}
	t.apply(line)
	if t.changes > 2*len(t.ids)+spare {
		if err := t.compact(); err != nil {
			return fmt.Errorf("write %s anew: %w", t.path, err)
		}
	}
	return nil
}

func (t *Table[T]) apply(line change) {
	t.changes++
	_, there := t.values[line.ID]
	switch {
	case line.Value == nil:
		delete(t.values, line.ID)
		t.ids = slices.DeleteFunc(t.ids, func(id string) bool { return id == line.ID })
	case !there:
		t.ids = append(t.ids, line.ID)
		fallthrough
	default:
		t.values[line.ID] = &kept[T]{data: line.Value}
	}
}

// compact replaces the file by one with the present rows only.
func (t *Table[T]) compact() error {
	var all bytes.Buffer
	for _, id := range t.ids {
		line, err := change{ID: id, Value: t.values[id].data}.text()
		if err != nil {
			return err
		}
		all.Write(line)
	}
	next := t.path + ".new"
	if err := os.WriteFile(next, all.Bytes(), 0o600); err != nil {
		return err
	}
	if err := os.Rename(next, t.path); err != nil {
		return err
	}
	t.changes = len(t.ids)
	return nil
}

// appendTo adds a line to a file, wholly or not at all: a part that a full disk has admitted is removed.
func appendTo(path string, line []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		if _, err = file.Write(line); err != nil {
			err = errors.Join(err, file.Truncate(info.Size()))
		}
	}
	return errors.Join(err, file.Close())
}

func decode[T any](data json.RawMessage) (value T) {
	// The table's data were either marshalled from a T or read from a file that this type wrote.
	if err := json.Unmarshal(data, &value); err != nil {
		panic(fmt.Sprintf("table holds what is no %T: %v", value, err))
	}
	return value
}
