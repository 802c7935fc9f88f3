package muranopl

import (
	"context"
	"strings"

	"github.com/burano/burano/catalog/yaql"
)

// Schema is the JSON schema (draft 4, with Murano's muranoObject and form keys) of what a model gives an object of the class.
func (c *Class) Schema(ctx context.Context) map[string]any {
	properties := map[string]any{}
	for _, name := range c.PropertyNames() {
		p := c.Property(name)[0]
		if p.Usage != In && p.Usage != InOut {
			continue
		}
		entry := schemaOf(p.Contract.rule)
		withDefault(ctx, entry, p.Default)
		describeSchema(entry, c.described(ctx, propertyMetas(name)))
		properties[name] = entry
	}
	return objectSchema(properties, c.described(ctx, typeMetas))
}

// BuilderSchemas are the schemas of the arguments of the class's model builders: public static methods with the metadata
// io.murano.metadata.ModelBuilder, enabled.
func (c *Class) BuilderSchemas(ctx context.Context) map[string]map[string]any {
	schemas := map[string]map[string]any{}
	for _, class := range c.lineage {
		for _, m := range class.Methods {
			if schemas[m.Name] != nil || m.Usage != StaticMethod || m.Scope != Public || !m.buildsModels() {
				continue
			}
			properties := map[string]any{}
			for _, a := range m.Arguments {
				if a.Usage != Standard {
					continue
				}
				entry := schemaOf(a.Contract.rule)
				withDefault(ctx, entry, a.Default)
				describeSchema(entry, class.described(ctx, argumentMetas(m.Name, a.Name)))
				properties[a.Name] = entry
			}
			schemas[m.Name] = objectSchema(properties, class.described(ctx, methodMetas(m.Name)))
		}
	}
	return schemas
}

func (m *Method) buildsModels() bool {
	for _, meta := range m.Meta {
		if meta.Class == "io.murano.metadata.ModelBuilder" {
			enabled, said := meta.Properties["enabled"]
			return !said || yaql.Truth(enabled)
		}
	}
	return false
}

func objectSchema(properties map[string]any, metas []Meta) map[string]any {
	schema := map[string]any{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": properties,
		"additionalProperties": false, "formSections": map[string]any{}}
	describeSchema(schema, metas)
	sections := schema["formSections"].(map[string]any)
	for _, meta := range metas {
		name, ok := meta.Properties["name"].(string)
		if meta.Class != "io.murano.metadata.forms.Section" || !ok || sections[name] != nil {
			continue
		}
		section := map[string]any{}
		for _, key := range []string{"title", "index"} {
			if value := meta.Properties[key]; value != nil {
				section[key] = value
			}
		}
		sections[name] = section
	}
	return schema
}

// describeSchema adds what metadata says; of several of a class the nearest holds.
func describeSchema(schema map[string]any, metas []Meta) {
	put := func(key string, value any) {
		if _, has := schema[key]; !has && value != nil {
			schema[key] = value
		}
	}
	for _, meta := range metas {
		switch meta.Class {
		case "io.murano.metadata.Title":
			put("title", meta.Properties["text"])
		case "io.murano.metadata.Description":
			put("description", meta.Properties["text"])
		case "io.murano.metadata.HelpText":
			put("helpText", meta.Properties["text"])
		case "io.murano.metadata.forms.Hidden":
			visible, _ := meta.Properties["visible"].(bool)
			put("visible", visible)
		case "io.murano.metadata.forms.Position":
			put("formIndex", meta.Properties["index"])
			put("formSection", meta.Properties["section"])
		}
	}
}

// withDefault adds a default that holds no expressions.
func withDefault(ctx context.Context, schema map[string]any, d *Default) {
	if d == nil || hasExpression(d.value) {
		return
	}
	if value, err := d.evaluate(ctx, nil); err == nil {
		schema["default"] = settle(value)
	}
}

func hasExpression(t template) bool {
	switch v := t.(type) {
	case *yaql.Expression:
		return true
	case listTemplate:
		for _, item := range v {
			if hasExpression(item) {
				return true
			}
		}
	case mapTemplate:
		for _, entry := range v {
			if hasExpression(entry.key) || hasExpression(entry.value) {
				return true
			}
		}
	}
	return false
}

func schemaOf(r rule) map[string]any {
	switch r := r.(type) {
	case constant:
		return map[string]any{"enum": []any{r.value}}
	case items:
		return itemsSchema(r)
	case entries:
		schema := map[string]any{"type": "object"}
		properties := map[string]any{}
		for _, f := range r.fixed {
			properties[f.key] = schemaOf(f.value)
		}
		schema["properties"], schema["additionalProperties"] = properties, false
		if r.key != nil {
			schema["additionalProperties"] = schemaOf(r.value)
		} else if len(r.fixed) == 0 {
			schema["additionalProperties"] = map[string]any{}
		}
		return schema
	case chain:
		return chainSchema(r)
	}
	return map[string]any{}
}

func itemsSchema(r items) map[string]any {
	schema := map[string]any{"type": "array"}
	switch len(r.rules) {
	case 0:
	case 1:
		schema["items"] = schemaOf(r.rules[0])
	default:
		first := make([]any, len(r.rules)-1)
		for n := range first {
			first[n] = schemaOf(r.rules[n])
		}
		schema["items"], schema["additionalItems"] = first, schemaOf(r.rules[len(r.rules)-1])
	}
	if r.min > 0 {
		schema["minItems"] = r.min
	}
	if r.max >= 0 {
		schema["maxItems"] = r.max
	}
	return schema
}

func chainSchema(c chain) map[string]any {
	schema := map[string]any{}
	kind, nullable := "", true
	for n := range c.steps {
		s := &c.steps[n]
		switch s.name {
		case "string":
			kind = "string"
		case "int":
			kind = "integer"
		case "bool":
			kind = "boolean"
		case "notNull":
			nullable = false
		case "class", "template":
			kind = "muranoObject"
			if s.name == "template" {
				kind, schema["owned"] = "muranoTemplate", true
			}
			schema["muranoType"] = s.class
			if len(s.exclude) > 0 {
				schema["excludedProperties"] = s.exclude
			}
		case "owned", "notOwned":
			schema["owned"] = s.name == "owned"
		case "check":
			checkSchema(schema, s.predicate.Root())
		}
	}
	switch {
	case kind != "" && nullable:
		schema["type"] = []any{kind, "null"}
	case kind != "":
		schema["type"] = kind
	}
	return schema
}

// checkSchema translates the conditions that JSON schema can say: comparisons of $ with a number, "$ in [...]", $.matches(…), joined by
// "and".
func checkSchema(schema map[string]any, node yaql.Node) {
	binary, ok := node.(*yaql.Binary)
	if !ok {
		return
	}
	variable, isVariable := binary.Left.(*yaql.Variable)
	isThis := isVariable && variable.Name == ""
	switch literal, isLiteral := binary.Right.(*yaql.Literal); {
	case binary.Operator == "and":
		checkSchema(schema, binary.Left)
		checkSchema(schema, binary.Right)
	case !isThis:
	case isLiteral && strings.ContainsAny(binary.Operator, "<>"):
		key, exclusive := "minimum", "exclusiveMinimum"
		if binary.Operator[0] == '<' {
			key, exclusive = "maximum", "exclusiveMaximum"
		}
		schema[key], schema[exclusive] = literal.Value, len(binary.Operator) == 1
	case binary.Operator == "in":
		list, ok := binary.Right.(*yaql.List)
		if !ok {
			return
		}
		var values []any
		for _, item := range list.Items {
			switch v := item.(type) {
			case *yaql.Literal:
				values = append(values, v.Value)
			case *yaql.Keyword:
				values = append(values, v.Name)
			default:
				return
			}
		}
		schema["enum"] = values
	case binary.Operator == ".":
		call, ok := binary.Right.(*yaql.Call)
		if !ok || call.Name != "matches" || len(call.Args) != 1 {
			return
		}
		if pattern, ok := call.Args[0].(*yaql.Literal); ok {
			schema["pattern"] = pattern.Value
		}
	}
}
