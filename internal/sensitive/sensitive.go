// Package sensitive says which names are those of secrets: of a property, an argument, a key of a map. It is the one rule for what is masked
// in answers, reports and logs.
package sensitive

import (
	"slices"
	"strings"
)

// words are what names of secrets have in them, as in Murano.
var words = []string{"pass", "token", "secret", "private", "trustid", "credential"}

// Name says whether what has this name is a secret: by Murano's words, or because it ends in "key", such as apiKey, where it is more than
// that and does not say public.
func Name(name string) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "key") && name != "key" && !strings.Contains(name, "public") {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// Path says the same of a path of names and indexes such as users[0].password, when one of its names is a secret's.
func Path(path string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }), Name)
}

// Texts calls found for each text of a JSON value that is a secret, and gives a copy with its answers in their places. A value that stands
// under a secret's name is one, and so are the items of a list there; what is in a map goes by the map's own keys.
func Texts(name string, value any, found func(text string) string) any {
	return texts(Name(name), value, found)
}

func texts(secret bool, value any, found func(string) string) any {
	switch v := value.(type) {
	case string:
		if secret && v != "" {
			return found(v)
		}
	case []any:
		if v == nil {
			return v
		}
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = texts(secret, item, found)
		}
		return list
	case map[string]any:
		if v == nil {
			return v
		}
		fields := make(map[string]any, len(v))
		for key, item := range v {
			fields[key] = texts(Name(key), item, found)
		}
		return fields
	}
	return value
}
