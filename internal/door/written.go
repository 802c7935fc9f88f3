package door

import "reflect"

// Written reports an *Exceeded error when a value of maps, lists, texts and numbers has more than limit bytes as JSON, roughly: what stands in several
// places counts in each of them. It stops at the limit, so that it takes no longer than the limit allows. Depth is bounded by the same number as
// Bounds.Depth; a deeper value is an error, too.
func Written(value any, limit int64, what string) error {
	left := limit
	if !spend(value, &left, 0) {
		return &Exceeded{What: what, Bound: Bytes(limit)}
	}
	return nil
}

// maxWrittenDepth keeps a value that contains itself from being followed without end.
const maxWrittenDepth = 10_000

// spend takes a value's bytes from those that are left, and reports whether they were enough.
func spend(value any, left *int64, depth int) bool {
	if depth > maxWrittenDepth {
		return false
	}
	switch v := value.(type) {
	case nil, bool:
		*left -= 5
	case string:
		*left -= int64(len(v)) + 3
	case []byte:
		*left -= int64(len(v))*4/3 + 3
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

// spendOther is spend for values of other types.
func spendOther(value reflect.Value, left *int64, depth int) bool {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			*left -= 5
			return *left >= 0
		}
		if !value.Elem().CanInterface() {
			return true
		}
		return spend(value.Elem().Interface(), left, depth+1)
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			if *left -= 2; *left < 0 || !spend(value.Index(i).Interface(), left, depth+1) {
				return false
			}
		}
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			if *left -= 2; *left < 0 || !spend(entries.Key().Interface(), left, depth+1) || !spend(entries.Value().Interface(), left, depth+1) {
				return false
			}
		}
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if *left -= int64(len(field.Name)) + 4; *left < 0 || field.IsExported() && !spend(value.Field(i).Interface(), left, depth+1) {
				return false
			}
		}
	case reflect.String:
		*left -= int64(value.Len()) + 3
	default:
		*left -= 8
	}
	return *left >= 0
}
