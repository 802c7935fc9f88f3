package orchestrator

import "github.com/burano/burano/internal/fault"

const (
	// MaxDepth is how deep lists and objects may be nested in a model. JSON that is nested much deeper can be written but not read.
	MaxDepth = 100
	// DefaultValues is how many values a model may have, names of members among them, without a setting.
	DefaultValues = 200_000
)

// maxBytes is how many bytes of texts and names a model may have: several times a request's body.
const maxBytes = 32 << 20

// size is the size of a value: the depth of its lists and objects, the number of its values, names of members among them, and the bytes of texts and
// names.
type size struct{ depth, values, bytes int }

func sizeOf(value any) size {
	whole := size{values: 1}
	add := func(element any) {
		inner := sizeOf(element)
		whole.depth = max(whole.depth, inner.depth)
		whole.values += inner.values
		whole.bytes += inner.bytes
	}
	switch v := value.(type) {
	case string:
		whole.bytes = len(v)
		return whole
	case map[string]any:
		whole.values += len(v)
		for name, element := range v {
			whole.bytes += len(name)
			add(element)
		}
	case []any:
		for _, element := range v {
			add(element)
		}
	default:
		return whole
	}
	whole.depth++
	return whole
}

// bounded refuses a change that makes a model larger than it may be. A model that is too large from former times can be
// made smaller.
func (s *core) bounded(before size, model any) error {
	switch after := sizeOf(model); {
	case after.depth > MaxDepth && after.depth > before.depth:
		return fault.New(fault.Invalid, "The model would be nested %d levels deep; %d are allowed", after.depth, MaxDepth)
	case after.values > s.values && after.values > before.values:
		return fault.New(fault.TooLarge, "The model would have %d values, names of members among them; %d are allowed", after.values, s.values)
	case after.bytes > maxBytes && after.bytes > before.bytes:
		return fault.New(fault.TooLarge, "The model would have %d bytes of texts; %d are allowed", after.bytes, maxBytes)
	}
	return nil
}
