package muranopl

import (
	"fmt"
	"strconv"
	"unicode"

	"github.com/burano/burano/catalog/yaql"
)

func (i items) apply(a *application, value any) (any, bool) {
	var given []any
	switch v := value.(type) {
	case nil:
	case []any:
		given = v
	case *yaql.Set:
		given = v.Members()
	default:
		given = []any{v}
	}
	switch {
	case len(given) < i.min:
		a.broken(fmt.Sprintf("wants at least %s, found %d", count(i.min), len(given)), fmt.Sprintf("List length %d is less than %d", len(given), i.min))
	case i.max >= 0 && len(given) > i.max:
		a.broken(fmt.Sprintf("wants at most %s, found %d", count(i.max), len(given)), fmt.Sprintf("List length %d is greater than %d", len(given), i.max))
	}
	made := make([]any, len(given))
	for n, item := range given {
		if len(i.rules) == 0 {
			made[n] = item
			continue
		}
		made[n], _ = a.at(fmt.Sprintf("%s[%d]", a.path, n), i.rules[min(n, len(i.rules)-1)], item)
	}
	return made, a.failed == 0
}

func count(n int) string {
	if n == 1 {
		return "1 item"
	}
	return strconv.Itoa(n) + " items"
}

func (e entries) apply(a *application, value any) (any, bool) {
	given, ok := asDict(value)
	if !ok && value != nil {
		return a.wants(e, value)
	}
	if len(e.fixed) == 0 && e.key == nil {
		if value == nil {
			return map[string]any{}, true
		}
		return value, true
	}
	var made []yaql.Entry
	known := map[any]bool{}
	for _, f := range e.fixed {
		known[f.key] = true
		item, _ := dictItem(given, f.key)
		item, _ = a.at(join(a.path, f.key), f.value, item)
		made = append(made, yaql.Entry{Key: f.key, Value: item})
	}
	if e.key == nil && given != nil && a.in != nil && a.in.Package.Embedded() && a.loader != nil {
		keys, names := map[string]any{}, []string{}
		for _, entry := range given.Entries() {
			keys[yaql.Text(entry.Key)] = entry.Value
		}
		for _, f := range e.fixed {
			names = append(names, f.key)
		}
		a.loader.unknownKeys(keys, names, a.path, a.label)
	}
	if e.key != nil && given != nil {
		for _, entry := range given.Entries() {
			if text, is := entry.Key.(string); is && known[text] {
				continue
			}
			path := join(a.path, yaql.Text(entry.Key))
			key, ok := a.at(path, e.key, entry.Key)
			item, _ := a.at(path, e.value, entry.Value)
			if ok {
				made = append(made, yaql.Entry{Key: key, Value: item})
			}
		}
	}
	return yaql.NewDict(made...), a.failed == 0
}

func dictItem(dict *yaql.Dict, key string) (any, bool) {
	if dict == nil {
		return nil, false
	}
	return dict.Get(key)
}

// join writes the path of a key.
func join(path, key string) string {
	switch {
	case !simpleKey(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// simpleKey tells that a key is written in a path as it is.
func simpleKey(key string) bool {
	for n, r := range key {
		if r != '_' && !unicode.IsLetter(r) && (n == 0 || r != '-' && !unicode.IsNumber(r)) {
			return false
		}
	}
	return key != ""
}
