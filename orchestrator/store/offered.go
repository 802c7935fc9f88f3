package store

import (
	"maps"
	"strings"
)

// keyActions is where the header of a deployed object lists its actions.
const keyActions = "_actions"

// withActions gives the objects of a model their actions in a former one: a failed deployment removes no action. The given model stays as it is.
func withActions(model, former map[string]any) map[string]any {
	offered := map[string]map[string]any{} // headers, by the objects' ids
	collect(offered, former)
	if len(offered) == 0 {
		return model
	}
	given, _ := offering(model, offered).(map[string]any)
	return given
}

func collect(offered map[string]map[string]any, value any) {
	switch v := value.(type) {
	case map[string]any:
		if header, is := v["?"].(map[string]any); is && header[keyActions] != nil {
			if id, _ := header["id"].(string); id != "" {
				offered[id] = header
			}
		}
		for key, inner := range v {
			if key != "?" {
				collect(offered, inner)
			}
		}
	case []any:
		for _, inner := range v {
			collect(offered, inner)
		}
	}
}

func offering(value any, offered map[string]map[string]any) any {
	switch v := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, inner := range v {
			if key != "?" {
				inner = offering(inner, offered)
			}
			made[key] = inner
		}
		if header, is := v["?"].(map[string]any); is && header[keyActions] == nil {
			id, _ := header["id"].(string)
			if had := offered[id]; had != nil && classOf(had) == classOf(header) {
				header = maps.Clone(header)
				header[keyActions] = had[keyActions]
				made["?"] = header
			}
		}
		return made
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = offering(inner, offered)
		}
		return list
	}
	return value
}

// classOf is the class that a header names, without version and package.
func classOf(header map[string]any) string {
	full, _ := header["type"].(string)
	class, _, _ := strings.Cut(full, "/")
	class, _, _ = strings.Cut(class, "@")
	return class
}
