package store

import (
	"context"
	"crypto/sha256"
	"maps"

	"github.com/burano/burano/internal/lists"
)

const (
	// maxModels and maxModelBytes bound the cache of opened models: their number, and their bytes together.
	maxModels     = 4096
	maxModelBytes = 32 << 20
	// The approximate sizes in memory of a value, an entry of a map and an empty map.
	valueBytes, entryBytes, mapBytes = 16, 48, 64
)

// models are the last opened models, by their sealed texts: another server's change has another text, so that none of them is ever old.
type models struct{ cache *lists.Cache[Model] }

func newModels() *models { return &models{lists.New(maxModels, maxModelBytes, Model.bytes)} }

// open returns the model of a column; it is shared.
func (m *models) open(owner, stored string, open func() (Model, error)) (Model, error) {
	key := sha256.Sum256([]byte(owner + "\x00" + stored))
	return m.cache.Read(string(key[:]), open)
}

// modelsKey is the key of the models in the context of a statement whose models are shared.
type modelsKey struct{}

func (s *handle) peeking(ctx context.Context) context.Context {
	return context.WithValue(ctx, modelsKey{}, s.models)
}

// bytes is the model's approximate size in memory.
func (m Model) bytes() int64 { return valueSize(m.Objects) + valueSize(m.ObjectsCopy) + mapBytes }

func valueSize(value any) int64 {
	size := int64(valueBytes)
	switch v := value.(type) {
	case string:
		size += int64(len(v))
	case []any:
		for _, element := range v {
			size += valueSize(element)
		}
	case map[string]any:
		size += mapBytes
		for key, element := range v {
			size += entryBytes + int64(len(key)) + valueSize(element)
		}
	}
	return size
}

// Copy returns objects that may be changed without changing the given ones.
func Copy(objects map[string]any) map[string]any {
	copied, _ := copyOf(objects).(map[string]any)
	return copied
}

func copyOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		answer := maps.Clone(v)
		for key, element := range answer {
			answer[key] = copyOf(element)
		}
		return answer
	case []any:
		if v == nil {
			return v
		}
		answer := make([]any, len(v))
		for i, element := range v {
			answer[i] = copyOf(element)
		}
		return answer
	}
	return value
}
