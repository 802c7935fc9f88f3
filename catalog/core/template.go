package core

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// keyVersion names the version of Heat's language that a template is written in.
const keyVersion = "heat_template_version"

// ReplacedInTemplate is the template without the resources and outputs whose names begin with the prefix, merged with another one.
func ReplacedInTemplate(template map[string]any, prefix string, with map[string]any) map[string]any {
	without := maps.Clone(template)
	for _, section := range []string{"resources", "outputs"} {
		entries, ok := without[section].(map[string]any)
		if !ok {
			continue
		}
		entries = maps.Clone(entries)
		maps.DeleteFunc(entries, func(name string, _ any) bool { return strings.HasPrefix(name, prefix) })
		without[section] = entries
	}
	return MergeTemplates(without, with)
}

// MergeTemplates merges the second template of Heat into the first: maps key by key, lists without doubles. Of two versions of the language the
// newer one counts. Nothing given is changed.
func MergeTemplates(one, other map[string]any) map[string]any {
	made, _ := mergeValues(one, other).(map[string]any)
	if a, _ := one[keyVersion].(string); a != "" {
		if b, _ := other[keyVersion].(string); b != "" {
			made[keyVersion] = max(a, b) // dates, and after them names
		}
	}
	return made
}

func mergeValues(one, other any) any {
	switch a := one.(type) {
	case map[string]any:
		if b, ok := other.(map[string]any); ok {
			made := maps.Clone(a)
			if made == nil {
				made = map[string]any{}
			}
			for key, value := range b {
				if before, there := made[key]; there {
					value = mergeValues(before, value)
				}
				made[key] = value
			}
			return made
		}
	case []any:
		if b, ok := other.([]any); ok {
			made := slices.Clone(a)
			for _, item := range b {
				if !slices.ContainsFunc(made, func(there any) bool { return reflect.DeepEqual(there, item) }) {
					made = append(made, item)
				}
			}
			return made
		}
	}
	return other
}
