package core

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// keyVersion names the version of Heat's language that a template is written in.
const keyVersion = "heat_template_version"

// sections are the parts of a template whose entries have names.
var sections = []string{"resources", "outputs"}

// Replacement replaces a part of a template, in one step.
type Replacement struct {
	// The removals: the resources and outputs whose names begin with one of Prefixes, and those with these Names.
	Prefixes, Names []string
	// With has the additions.
	With map[string]any
	// Aliases map the names of resources in With, by which code knows them, to their names in the template.
	Aliases map[string]string
}

// ReplacementOf reads the arguments of HeatStack.replaceInTemplate.
func ReplacementOf(arguments map[string]any) Replacement {
	texts := func(name string) []string {
		list, _ := arguments[name].([]any)
		made := make([]string, 0, len(list))
		for _, item := range list {
			if text, ok := item.(string); ok {
				made = append(made, text)
			}
		}
		return made
	}
	r := Replacement{Prefixes: texts("prefix"), Names: texts("names"), Aliases: map[string]string{}}
	r.With, _ = arguments["template"].(map[string]any)
	aliases, _ := arguments["aliases"].(map[string]any)
	for alias, name := range aliases {
		r.Aliases[alias], _ = name.(string)
	}
	return r
}

// In returns the template with the replacement done. Nothing given is changed.
func (r Replacement) In(template map[string]any) map[string]any {
	without := maps.Clone(template)
	goes := func(name string, _ any) bool {
		return slices.Contains(r.Names, name) || slices.ContainsFunc(r.Prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
	for _, section := range sections {
		entries, ok := without[section].(map[string]any)
		if !ok {
			continue
		}
		entries = maps.Clone(entries)
		maps.DeleteFunc(entries, goes)
		without[section] = entries
	}
	with := r.With
	for alias, name := range r.Aliases {
		with = renamed(with, template, alias, name)
	}
	return MergeTemplates(without, with)
}

// renamed gives a resource another name, with the references to it. Where the stack has a resource that is called like the alias, references lead
// to that one.
func renamed(part, stack map[string]any, alias, name string) map[string]any {
	resources, _ := part["resources"].(map[string]any)
	resource, there := resources[alias]
	if !there || alias == name {
		return part
	}
	if others, _ := stack["resources"].(map[string]any); others[alias] == nil {
		part, _ = referring(part, alias, name).(map[string]any)
		resources, _ = part["resources"].(map[string]any)
		resource = resources[alias]
	}
	made := maps.Clone(part)
	resources = maps.Clone(resources)
	delete(resources, alias)
	resources[name] = mergeValues(resources[name], resource)
	made["resources"] = resources
	return made
}

// referring is a value of a template whose references to a resource have another name for it.
func referring(value any, alias, name string) any {
	of := func(text any) any {
		if text == alias {
			return name
		}
		return text
	}
	switch v := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, item := range v {
			list, isList := item.([]any)
			switch {
			case key == "get_resource":
				made[key] = of(item)
			case key == "get_attr" && isList && len(list) > 0:
				made[key] = append([]any{of(list[0])}, list[1:]...)
			case key == "depends_on" && isList:
				after := make([]any, len(list))
				for i, one := range list {
					after[i] = of(one)
				}
				made[key] = after
			case key == "depends_on":
				made[key] = of(item)
			default:
				made[key] = referring(item, alias, name)
			}
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			made[i] = referring(item, alias, name)
		}
		return made
	}
	return value
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
