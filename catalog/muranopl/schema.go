package muranopl

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/burano/burano/catalog/yaql"
)

// Schemas returns JSON schemas (draft 4, with Murano's muranoObject and form keys). Under the key "" is the schema of an object of the class in a model,
// under the names of its model builders the schemas of their arguments; with methods only of these. Model builders are public static methods with the
// metadata io.murano.metadata.ModelBuilder, enabled.
func (c *Class) Schemas(ctx context.Context, methods ...string) map[string]any {
	schemas := map[string]any{}
	for name, schema := range c.builderSchemas(ctx) {
		if len(methods) == 0 || slices.Contains(methods, name) {
			schemas[name] = schema
		}
	}
	if len(methods) == 0 {
		schemas[""] = c.schema(ctx)
	}
	return schemas
}

func (c *Class) schema(ctx context.Context) map[string]any {
	properties := map[string]any{}
	for _, name := range c.PropertyNames() {
		p := c.Property(name)[0]
		if p.Usage != In && p.Usage != InOut {
			continue
		}
		entry := schemaOf(p.Contract.rule)
		withDefault(ctx, entry, p.Default)
		c.describeSchema(entry, c.shown(ctx, c, propertyMetas(name)))
		properties[name] = entry
	}
	return c.objectSchema(properties, c.shown(ctx, c, typeMetas))
}

func (c *Class) builderSchemas(ctx context.Context) map[string]map[string]any {
	schemas := map[string]map[string]any{}
	for _, class := range c.lineage {
		for _, m := range class.Methods {
			if schemas[m.Name] != nil || m.Usage != StaticMethod || m.Scope != Public || !m.buildsModels() {
				continue
			}
			properties := map[string]any{}
			for _, a := range m.Arguments {
				entry := schemaOf(a.Contract.rule)
				withDefault(ctx, entry, a.Default)
				c.describeSchema(entry, c.shown(ctx, class, argumentMetas(m.Name, a.Name)))
				properties[a.Name] = entry
			}
			schemas[m.Name] = c.objectSchema(properties, c.shown(ctx, class, methodMetas(m.Name)))
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

// schemaMeta is metadata with the distance of its class from the class of the schema.
type schemaMeta struct {
	Meta
	distance int
}

// shown returns the metadata about presentation, if its classes can be found, the nearest first. from is the class where the search begins.
func (c *Class) shown(ctx context.Context, from *Class, of func(*Class) []Meta) []schemaMeta {
	all, err := from.metas(ctx, of)
	if err != nil {
		all = nil
		for _, meta := range of(from) {
			all = append(all, attached{Meta: meta, in: from})
		}
	}
	distances := c.distances()
	metas := make([]schemaMeta, len(all))
	for n, a := range all {
		metas[n] = schemaMeta{a.Meta, distances[a.in.Name]}
	}
	return metas
}

// distances returns the number of steps from the class to each of its ancestors, on the shortest path.
func (c *Class) distances() map[string]int {
	found := map[string]int{c.Name: 0}
	for level, next := []*Class{c}, 1; len(level) > 0; next++ {
		var above []*Class
		for _, class := range level {
			for _, parent := range class.Parents {
				if _, known := found[parent.Name]; !known {
					found[parent.Name] = next
					above = append(above, parent)
				}
			}
		}
		level = above
	}
	return found
}

// order is the place of an indexed part in a form: ancestors' parts come before their descendants'.
func (c *Class) order(meta schemaMeta) (int64, bool) {
	index, ok := meta.Properties["index"].(int64)
	return (index+1)*int64(len(c.distances())) - int64(meta.distance), ok
}

func (c *Class) objectSchema(properties map[string]any, metas []schemaMeta) map[string]any {
	schema := map[string]any{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "properties": properties,
		"additionalProperties": false, "formSections": c.sections(metas)}
	c.describeSchema(schema, metas)
	return schema
}

// sections returns the parts of a form: indexed parts, renumbered in their order, then the others.
func (c *Class) sections(metas []schemaMeta) map[string]any {
	var names []string
	chosen := map[string]schemaMeta{}
	for _, meta := range metas {
		name, ok := meta.Properties["name"].(string)
		if meta.Class != "io.murano.metadata.forms.Section" || !ok {
			continue
		}
		before, has := chosen[name]
		if !has {
			names = append(names, name)
		} else {
			at, indexed := c.order(meta)
			then, was := c.order(before)
			if before.distance < meta.distance || before.distance == meta.distance && (!indexed || was && then <= at) {
				continue
			}
		}
		chosen[name] = meta
	}
	slices.SortStableFunc(names, func(a, b string) int {
		x, indexedA := c.order(chosen[a])
		y, indexedB := c.order(chosen[b])
		switch {
		case indexedA && indexedB:
			return cmp.Compare(x, y)
		case indexedA:
			return -1
		case indexedB:
			return 1
		}
		return 0
	})
	sections := map[string]any{}
	for n, name := range names {
		section := map[string]any{"title": chosen[name].Properties["title"]}
		if _, indexed := c.order(chosen[name]); indexed {
			section["index"] = int64(n)
		}
		sections[name] = section
	}
	return sections
}

// describeSchema adds metadata; of several of a class the nearest counts.
func (c *Class) describeSchema(schema map[string]any, metas []schemaMeta) {
	put := func(key string, value any) {
		if _, has := schema[key]; !has {
			schema[key] = value
		}
	}
	positioned := false
	for _, meta := range metas {
		switch meta.Class {
		case "io.murano.metadata.Title":
			put("title", meta.Properties["text"])
		case "io.murano.metadata.Description":
			put("description", meta.Properties["text"])
		case "io.murano.metadata.HelpText":
			put("helpText", meta.Properties["text"])
		case onChangeClass:
			put("onChange", meta.Properties)
		case "io.murano.metadata.forms.Hidden":
			visible, _ := meta.Properties["visible"].(bool)
			put("visible", visible)
		case "io.murano.metadata.forms.Position":
			if positioned {
				continue
			}
			positioned = true
			put("formSection", meta.Properties["section"])
			if index, ok := c.order(meta); ok {
				put("formIndex", index)
			}
		}
	}
}

// withDefault adds a default that holds no expressions.
func withDefault(ctx context.Context, schema map[string]any, d *Default) {
	if d == nil || hasExpression(d.value) {
		return
	}
	if value, err := fill(ctx, d.value, nil); err == nil {
		schema["default"] = plainValue(value)
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
		all := make([]any, len(r.rules))
		for n := range all {
			all[n] = schemaOf(r.rules[n])
		}
		schema["items"], schema["additionalItems"] = all, schemaOf(r.rules[len(r.rules)-1])
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
				schema["owned"] = true
			}
			schema["muranoType"] = s.class
			if len(s.exclude) > 0 {
				schema["excludedProperties"] = s.exclude
			}
		case "owned", "notOwned":
			schema["owned"] = s.name == "owned"
		case "heatParameter":
			maps.Copy(schema, s.parameter.Schema())
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

// checkSchema translates the conditions that JSON schema can express: comparisons of $ with a constant, "$ in list", $.matches(…), joined by "and".
func checkSchema(schema map[string]any, node yaql.Node) {
	binary, ok := node.(*yaql.Binary)
	if !ok {
		return
	}
	operator, right := binary.Operator, binary.Right
	if operator == "and" {
		checkSchema(schema, binary.Left)
		checkSchema(schema, right)
		return
	}
	if !isThis(binary.Left) {
		mirrored := map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<="}[operator]
		if mirrored == "" || !isThis(right) {
			return
		}
		operator, right = mirrored, binary.Left
	}
	switch operator {
	case "<", "<=", ">", ">=":
		key, exclusive := "minimum", "exclusiveMinimum"
		if operator[0] == '<' {
			key, exclusive = "maximum", "exclusiveMaximum"
		}
		if value, ok := constantOf(right); ok && value != nil {
			schema[key], schema[exclusive] = value, len(operator) == 1
		}
	case "in":
		if values, ok := constantOf(right); ok {
			if list, ok := values.([]any); ok {
				schema["enum"] = list
			}
		}
	case ".":
		if call, ok := right.(*yaql.Call); ok && call.Name == "matches" && len(call.Args) > 0 {
			if pattern, ok := constantOf(call.Args[0]); ok && pattern != nil {
				schema["pattern"] = pattern
			}
		}
	}
}

func isThis(node yaql.Node) bool {
	variable, ok := node.(*yaql.Variable)
	return ok && (variable.Name == "" || variable.Name == "1")
}

// constantOf is the value of a node that is written out: texts, numbers, lists of them.
func constantOf(node yaql.Node) (any, bool) {
	several := func(nodes []yaql.Node) (any, bool) {
		list := make([]any, len(nodes))
		for n, item := range nodes {
			var ok bool
			if list[n], ok = constantOf(item); !ok {
				return nil, false
			}
		}
		return list, true
	}
	switch n := node.(type) {
	case *yaql.Literal:
		return n.Value, true
	case *yaql.Keyword:
		return n.Name, true
	case *yaql.List:
		return several(n.Items)
	case *yaql.Call:
		if n.Name == "list" {
			return several(n.Args)
		}
	case *yaql.Unary:
		value, ok := constantOf(n.Operand)
		switch v := value.(type) {
		case int64:
			return -v, ok && n.Operator == "-"
		case float64:
			return -v, ok && n.Operator == "-"
		}
	}
	return nil, false
}

const onChangeClass = "io.murano.metadata.OnChange"

// OnChange is the effect of another value of a property on a deployed object, as the metadata io.murano.metadata.OnChange declares it.
type OnChange struct {
	Effect string // inPlace, rollsPods, nodeByNode, newOnly, refused, loses or none; "" where nothing is declared
	Text   string // its details in a sentence, or ""
}

// OnChangeOf is the declared effect for a property of the object: that of the property which contains the object, else that of its class.
func OnChangeOf(ctx context.Context, object *Object, property string) OnChange {
	if owner := object.Owner(); owner != nil {
		for _, name := range owner.class.PropertyNames() {
			if value, _ := owner.Get(name); value != any(object) {
				continue
			}
			if _, parts := OnChanges(ctx, owner.class, name); parts[property].Effect != "" {
				return parts[property]
			}
		}
	}
	own, _ := OnChanges(ctx, object.class, property)
	return own
}

// OnChanges is the declared effect for a property of a class, and those for properties of the object that the property contains, by their names.
func OnChanges(ctx context.Context, class *Class, property string) (own OnChange, parts map[string]OnChange) {
	for _, meta := range class.shown(ctx, class, propertyMetas(property)) {
		if meta.Class != onChangeClass {
			continue
		}
		own, parts = onChangeOf(meta.Properties), map[string]OnChange{}
		all, _ := meta.Properties["parts"].(map[string]any)
		for name, one := range all {
			if values, is := one.(map[string]any); is {
				parts[name] = onChangeOf(values)
			}
		}
		return own, parts
	}
	return OnChange{}, nil
}

func onChangeOf(values map[string]any) (o OnChange) {
	o.Effect, _ = values["effect"].(string)
	o.Text, _ = values["text"].(string)
	return o
}
