// Package sensitive recognises names of secrets: of a property, an argument, a key of a map. It is the one rule for masking in answers, reports and logs.
package sensitive

import (
	"regexp"
	"slices"
	"strings"
)

// Mark is shown in the place of a secret.
const Mark = "*** SANITIZED ***"

// SealedPrefix begins a secret in an exported environment that is sealed for a recipient (internal/envelope).
const SealedPrefix = "burano-sealed:"

// words are what names of secrets have in them, as in Murano.
var words = []string{"pass", "token", "secret", "private", "trustid", "credential"}

// Name reports whether a value of this name is a secret: by Murano's words, or because the name ends in "key", such as apiKey, has more than that and does
// not contain public.
func Name(name string) bool {
	name = strings.ToLower(name)
	if strings.HasSuffix(name, "key") && name != "key" && !strings.Contains(name, "public") {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(name, word) })
}

// Path reports the same of a path of names and indexes such as users[0].password, when one of its names is a secret's.
func Path(path string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }), Name)
}

// Texts calls found for each text of a JSON value that is a secret, and returns a copy with the results in their places. A value under a secret's name is
// one, and so are the items of a list there; values of a map are judged by the map's own keys. The value of a pair {name, value}, as Kubernetes lists
// variables, is judged by that name. The text of a map {text, secret: true} is one, as files of containers have it. A line of a text in YAML is judged by
// the name that it gives a value.
func Texts(name string, value any, found func(text string) string) any {
	return texts(Name(name), value, found)
}

func texts(secret bool, value any, found func(string) string) any {
	switch v := value.(type) {
	case string:
		if secret && v != "" {
			return found(v)
		}
		return inLines(v, found)
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
		if named, _ := v["name"].(string); Name(named) {
			if text, is := v["value"].(string); is {
				fields["value"] = texts(true, text, found)
			}
		}
		if text, is := v["text"].(string); is && v["secret"] == true {
			fields["text"] = texts(true, text, found)
		}
		return fields
	}
	return value
}

// given is a line of YAML that gives a name a value of one line.
var given = regexp.MustCompile(`(?m)^([\t -]*["']?([\w.-]+)["']?[\t ]*:[\t ]+)("(?:[^"\\]|\\.)+"|'[^']+'|[^\s"'|>&*!{\[#]\S*)([\t ]*(?:#.*)?)$`)

// inLines is Texts for the lines of a text.
func inLines(text string, found func(string) string) string {
	if !strings.Contains(text, ":") {
		return text
	}
	return given.ReplaceAllStringFunc(text, func(line string) string {
		part := given.FindStringSubmatch(line)
		if !Name(part[2]) {
			return line
		}
		value, quote := part[3], ""
		if value[0] == '"' || value[0] == '\'' {
			value, quote = value[1:len(value)-1], value[:1]
		}
		return part[1] + quote + found(value) + quote + part[4]
	})
}
