package store

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/burano/burano/internal/door"
)

// maxAttributeBytes is how many bytes of an environment's attributes a hold remembers at most.
const maxAttributeBytes = 4 << 20

// attributes are an environment's attributes as the holder of one of its tasks knows them: while it holds the task, no other process writes them.
// They are read from the database once, with the first question.
type attributes struct {
	writes atomic.Int64 // numbers writes in the order in which the database has them

	mutex   sync.Mutex
	read    bool
	unsure  bool // of the database's content, after a write that failed; or there is too much to remember: each question goes to the database
	known   map[attributeName]knownAttribute
	removed map[string]int64 // by the ids of objects, the writes that removed all of an object's attributes
	bytes   int
}

type attributeName struct{ object, class, name string }

type knownAttribute struct {
	value string // JSON; "" when there is none
	write int64  // 0 if it was read
}

// Attribute is Attributes.Get of the task's environment, without a query where the hold knows it.
func (h *Hold) Attribute(ctx context.Context, objectID, class, name string) (any, bool, error) {
	value, known, err := h.attributes.value(attributeName{objectID, class, name}, func() (rows []Attribute, err error) {
		err = h.store.reading(ctx).Where("environment_id = ?", h.task.EnvironmentID).Find(&rows).Error
		return rows, wrap(err, "read attributes")
	})
	switch {
	case err != nil:
		return nil, false, err
	case !known:
		return Attributes{h.store}.Get(ctx, h.task.EnvironmentID, objectID, class, name)
	case value == "":
		return nil, false, nil
	}
	return attributeOf(Attribute{ObjectID: objectID, Name: name, Value: value})
}

// value returns the known value of an attribute; known is false when the database has to be asked.
func (a *attributes) value(name attributeName, read func() ([]Attribute, error)) (value string, known bool, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if !a.read && !a.unsure {
		rows, err := read()
		if err != nil {
			return "", false, err
		}
		a.read = true
		for _, row := range rows {
			a.learn(attributeName{row.ObjectID, row.Class, row.Name}, knownAttribute{value: row.Value})
		}
	}
	return a.known[name].value, !a.unsure, nil
}

// learn records a read or written value, unless a later write is known already. The caller holds the mutex.
func (a *attributes) learn(name attributeName, is knownAttribute) {
	was, there := a.known[name]
	if a.unsure || there && was.write >= is.write || a.removed[name.object] > is.write {
		return
	}
	if a.known == nil {
		a.known = map[attributeName]knownAttribute{}
	}
	a.known[name] = is
	if a.bytes += len(is.value) - len(was.value); a.bytes > maxAttributeBytes {
		a.doubt()
	}
}

// doubt has each question go to the database from now on. The caller holds the mutex.
func (a *attributes) doubt() { a.unsure, a.known, a.removed = true, nil, nil }

// wrote records the result of a write.
func (a *attributes) wrote(name attributeName, is knownAttribute, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err != nil {
		a.doubt()
		return
	}
	a.learn(name, is)
}

// SetAttribute stores a JSON value with an object of the environment; it is durable on return. nil removes the attribute.
func (h *Hold) SetAttribute(ctx context.Context, objectID, class, name string, value any) error {
	row := Attribute{EnvironmentID: h.task.EnvironmentID, ObjectID: objectID, Class: class, Name: name}
	what := "remove an attribute"
	if value != nil {
		if err := door.Written(value, maxColumn, "the attribute "+name); err != nil {
			return err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("write the attribute %s of %s: %w", name, objectID, err)
		}
		row.Value, what = string(text), "write an attribute"
	}
	var number int64
	err := h.noting(ctx, what, func(tx *gorm.DB) error {
		number = h.attributes.writes.Add(1)
		if value == nil {
			return tx.Where("environment_id = ? AND object_id = ? AND class = ? AND name = ?", row.EnvironmentID, objectID, class, name).Delete(&Attribute{}).Error
		}
		return tx.Clauses(clause.OnConflict{UpdateAll: true,
			Columns: []clause.Column{{Name: "environment_id"}, {Name: "object_id"}, {Name: "class"}, {Name: "name"}}}).Create(&row).Error
	})
	h.attributes.wrote(attributeName{objectID, class, name}, knownAttribute{row.Value, number}, err)
	return err
}

// AttributeSecrets begins the names of the secrets in which attributes of an object are stored. It is of one byte for each
// character.
func AttributeSecrets(objectID string) string {
	return attributeSecrets + url.PathEscape(objectID) + "/"
}

const attributeSecrets = "attribute/"

// RemoveAttributes removes the attributes of a destroyed object, with their secrets. While an environment is deleted that can be restored, the attributes
// whose names begin with stays remain, with their secrets; "" is none.
func (h *Hold) RemoveAttributes(ctx context.Context, objectID, stays string) error {
	var number int64
	err := h.holding(ctx, "remove attributes", func(tx *gorm.DB) error {
		number = h.attributes.writes.Add(1)
		if h.task.Objects == nil && h.store.undelete > 0 && stays != "" {
			return tx.Where("environment_id = ? AND object_id = ? AND substr(name, 1, ?) <> ?", h.task.EnvironmentID, objectID, len(stays), stays).Delete(&Attribute{}).Error
		}
		prefix := AttributeSecrets(objectID)
		if err := tx.Where("environment_id = ? AND substr(name, 1, ?) = ?", h.task.EnvironmentID, len(prefix), prefix).Delete(&secretRow{}).Error; err != nil {
			return err
		}
		return tx.Where("environment_id = ? AND object_id = ?", h.task.EnvironmentID, objectID).Delete(&Attribute{}).Error
	})
	h.attributes.removedAll(objectID, number, err)
	return err
}

// removedAll records the result of a write that was to remove all of an object's attributes.
func (a *attributes) removedAll(objectID string, number int64, err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err != nil {
		a.doubt()
	}
	if a.unsure {
		return
	}
	if a.removed == nil {
		a.removed = map[string]int64{}
	}
	a.removed[objectID] = number
	for name, is := range a.known {
		if name.object == objectID && is.write < number {
			a.bytes -= len(is.value)
			delete(a.known, name)
		}
	}
}
