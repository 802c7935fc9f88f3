package muranopl

import (
	"context"
	"slices"
)

// metaDeprecated marks methods that a coming release does not have.
const metaDeprecated = "io.murano.metadata.Deprecated"

// Deprecated is the replacement of a method that a coming release does not have; "" for another one.
func (m *Method) Deprecated() string {
	for _, meta := range m.Meta {
		if meta.Class == metaDeprecated {
			text, _ := meta.Properties["text"].(string)
			return text
		}
	}
	return ""
}

// Action is a public method, as callers of the API see it.
type Action struct {
	Name        string
	Static      bool // it is the class's, and needs no object
	Title       string
	Description string
	Help        string
	Confirm     string // a warning for the caller before it runs; "" for none
	Deprecated  string // its replacement, where a coming release does not have it; "" for none
	// Arguments is the JSON schema of its arguments, in the dialect of Schemas. Its formIndex has the order of writing where no metadata gives another
	// one, and required names arguments that have no default and may not be null.
	Arguments map[string]any
}

// Actions lists the public methods, with their metadata and the schemas of their arguments.
func (c *Class) Actions(ctx context.Context) []Action {
	actions := []Action{}
	for _, m := range c.PublicMethods() {
		shown := map[string]any{}
		metas := c.shown(ctx, c, methodMetas(m.Name))
		c.describeSchema(shown, metas)
		one := Action{Name: m.Name, Static: m.Usage == StaticMethod, Title: m.Name, Arguments: c.argumentsSchema(ctx, m)}
		if title, ok := shown["title"].(string); ok && title != "" {
			one.Title = title
		}
		one.Description, _ = shown["description"].(string)
		one.Help, _ = shown["helpText"].(string)
		text := func(class string) string {
			i := slices.IndexFunc(metas, func(meta schemaMeta) bool { return meta.Class == class })
			if i < 0 {
				return ""
			}
			text, _ := metas[i].Properties["text"].(string)
			return text
		}
		one.Confirm, one.Deprecated = text("io.murano.metadata.Confirm"), text(metaDeprecated)
		actions = append(actions, one)
	}
	return actions
}

func (c *Class) argumentsSchema(ctx context.Context, m *Method) map[string]any {
	properties, required := map[string]any{}, []any{}
	var further any = false
	positioned := false
	var names []string
	for _, a := range m.Arguments {
		switch a.Usage {
		case KwArgs:
			further = schemaOf(a.Contract.rule)
			continue
		case VarArgs:
			continue // arguments of actions have names
		}
		entry := schemaOf(a.Contract.rule)
		withDefault(ctx, entry, a.Default)
		c.describeSchema(entry, c.shown(ctx, c, argumentMetas(m.Name, a.Name)))
		if a.Default == nil && !takesNull(entry) {
			required = append(required, a.Name)
		}
		positioned = positioned || entry["formIndex"] != nil
		properties[a.Name], names = entry, append(names, a.Name)
	}
	if !positioned {
		for index, name := range names {
			properties[name].(map[string]any)["formIndex"] = int64(index)
		}
	}
	schema := map[string]any{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": properties, "additionalProperties": further}
	if len(required) > 0 {
		schema["required"] = required // draft 4 wants one at least
	}
	return schema
}

// takesNull reports whether a schema admits null.
func takesNull(schema map[string]any) bool {
	kinds, several := schema["type"].([]any)
	return several && slices.Contains(kinds, any("null")) || schema["type"] == nil && schema["enum"] == nil
}
