package door

import (
	"encoding/json"
	"reflect"
	"time"
)

// Written reports an *Exceeded error when a value of maps, lists, texts and numbers has more than limit bytes as JSON, roughly: a part in several places
// counts in each of them. Its time is bounded by the limit. Depth is bounded by the same number as Bounds.Depth; a deeper value is an error, too.
func Written(value any, limit int64, what string) error {
	_, err := Size(value, limit, what)
	return err
}

// Size is Written that also returns the bytes, roughly, which a value within the limit has as JSON.
func Size(value any, limit int64, what string) (int64, error) {
	left := limit
	if !spend(value, &left, 0) {
		return limit, &Exceeded{What: what, Bound: Bytes(limit)}
	}
	return limit - left, nil
}

// maxWrittenDepth keeps a value that contains itself from being followed without end.
const maxWrittenDepth = 10_000

// spend subtracts a value's bytes from the rest, and reports whether they were enough.
func spend(value any, left *int64, depth int) bool {
	if depth > maxWrittenDepth {
		return false
	}
	switch v := value.(type) {
	case nil, bool:
		*left -= 5
	case int64, int, float64, json.Number:
		*left -= 8
	case string:
		*left -= int64(len(v)) + 3
	case []byte:
		*left -= int64(len(v))*4/3 + 3
	case json.RawMessage:
		*left -= int64(len(v))
	case []any:
		*left -= 2
		for _, one := range v {
			if *left < 0 || !spend(one, left, depth+1) {
				return false
			}
		}
	case map[string]any:
		*left -= 2
		for key, one := range v {
			*left -= int64(len(key)) + 4
			if *left < 0 || !spend(one, left, depth+1) {
				return false
			}
		}
	default:
		return spendOther(reflect.ValueOf(value), left, depth)
	}
	return *left >= 0
}

// spendOther is spend for values of other types. It converts no value to an interface, which would cost more than writing it.
func spendOther(value reflect.Value, left *int64, depth int) bool {
	if depth > maxWrittenDepth || *left < 0 {
		return false
	}
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			return spendOther(value.Elem(), left, depth+1)
		}
		*left -= 5
	case reflect.Interface:
		if value.IsNil() || !value.CanInterface() {
			*left -= 5
			break
		}
		return spend(value.Interface(), left, depth+1)
	case reflect.Slice, reflect.Array:
		return spendList(value, left, depth)
	case reflect.Map:
		*left -= 2
		for entries := value.MapRange(); entries.Next(); {
			if *left -= 2; !spendOther(entries.Key(), left, depth+1) || !spendOther(entries.Value(), left, depth+1) {
				return false
			}
		}
	case reflect.Struct:
		if value.Type() == timeType {
			*left -= int64(len(time.RFC3339Nano)) + 3
			break
		}
		return fieldsOf(value.Type()).spend(value, left, depth)
	case reflect.String:
		*left -= int64(value.Len()) + 3
	default:
		*left -= 8
	}
	return *left >= 0
}

var timeType = reflect.TypeFor[time.Time]()

// fields are those of a struct that are written.
type fields struct {
	names int64 // bytes of all names
	at    []int
}

func fieldsOf(of reflect.Type) (found fields) {
	for i := range of.NumField() {
		field := of.Field(i)
		found.names += int64(len(field.Name)) + 4
		if field.IsExported() {
			found.at = append(found.at, i)
		}
	}
	return found
}

func (f fields) spend(value reflect.Value, left *int64, depth int) bool {
	*left -= f.names
	for _, i := range f.at {
		if !spendOther(value.Field(i), left, depth+1) {
			return false
		}
	}
	return *left >= 0
}

func spendList(value reflect.Value, left *int64, depth int) bool {
	*left -= 2
	of := value.Type().Elem()
	switch {
	case of.Kind() == reflect.Uint8:
		*left -= int64(value.Len()) * 4 / 3
		return *left >= 0
	case of.Kind() == reflect.Struct && of != timeType && depth <= maxWrittenDepth:
		written := fieldsOf(of) // once for all of them, since reflection takes longer than writing
		for i := range value.Len() {
			if *left -= 2; !written.spend(value.Index(i), left, depth+1) {
				return false
			}
		}
		return *left >= 0
	}
	for i := range value.Len() {
		if *left -= 2; !spendOther(value.Index(i), left, depth+1) {
			return false
		}
	}
	return *left >= 0
}
