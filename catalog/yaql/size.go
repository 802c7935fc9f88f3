package yaql

// maxWritten is the maximum size in bytes of a value that is written out or compared: a part in several places counts in each of them. A list of 10,000
// references to one text is small in memory, and forty lists, each with the next one twice, would be written without end.
const maxWritten = 16 << 20

// Size is about how many bytes a value has when it is written out; more than the limit for a larger one.
func Size(value any, limit int) int {
	bytes := 16
	for _, one := range parts(value) {
		if bytes > limit {
			break
		}
		bytes += Size(one, limit-bytes)
	}
	switch v := value.(type) {
	case string:
		bytes += len(v)
	case *Dict:
		for _, e := range v.all() {
			if bytes > limit {
				break
			}
			bytes += Size(e.Key, limit-bytes)
			bytes += Size(e.Value, limit-bytes)
		}
	case map[string]any:
		for key, one := range v {
			if bytes += len(key); bytes > limit {
				break
			}
			bytes += Size(one, limit-bytes)
		}
	}
	return bytes
}

// parts are the items of a list or a set.
func parts(value any) []any {
	switch v := value.(type) {
	case []any:
		return v
	case *Set:
		return v.members
	}
	return nil
}

func large(value any) bool { return Size(value, maxWritten) > maxWritten }

// text is Text of a value, whose bytes count before it is written.
func (r *run) text(value any) (string, error) {
	if s, ok := value.(string); ok {
		return s, nil
	}
	size := Size(value, r.limits.Memory)
	if err := r.spend(size); err != nil {
		return "", err
	}
	return Text(value), nil
}
