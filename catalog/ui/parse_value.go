package ui

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
)

const (
	// maxNodes is how many values a definition may have after its aliases were followed.
	maxNodes = 100_000
	// maxDepth is how deep its lists and maps may be nested.
	maxDepth = 100

	endless = "the definition has more than %d values, aliases written out, or is nested deeper than %d levels"
)

var (
	// plain are texts that are never taken for expressions (murano-dashboard, dynamic_ui/yaql_expression.py).
	plain = regexp.MustCompile(`^[\s\pL\pN_.:]*$`)
	// date matches a date of YAML 1.1, which is no expression.
	date = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt\s]|$)`)
	// variable matches text that only an expression contains.
	variable = regexp.MustCompile(`\$[\pL_]*([.\[)]|\s|$)`)
)

func place(node *yaml.Node) Place { return Place{node.Line, node.Column} }

// value reads a node. Of one that cannot be read null is left.
func (p *parser) value(node *yaml.Node) *Value {
	p.nodes++
	p.depth++
	defer func() { p.depth-- }()
	if !p.endless && (p.nodes > maxNodes || p.depth > maxDepth) {
		p.endless = true
		p.wrong(place(node), endless, maxNodes, maxDepth)
	}
	if p.endless {
		return &Value{Place: place(node)}
	}
	if node.Kind == yaml.AliasNode {
		return p.value(node.Alias)
	}
	value := &Value{Place: place(node)}
	switch node.Kind {
	case yaml.SequenceNode:
		value.Kind = List
		for i := 0; i < len(node.Content) && !p.endless; i++ {
			value.Items = append(value.Items, p.value(node.Content[i]))
		}
	case yaml.MappingNode:
		value.Kind = Map
		p.entries(value, node)
	default:
		p.scalar(value, node)
	}
	return value
}

// entries reads a map: its own keys, then the keys that "<<" merges in.
func (p *parser) entries(value *Value, node *yaml.Node) {
	own := map[string]int{} // where the key is among the entries
	var merged []*Value
	for i := 0; i+1 < len(node.Content) && !p.endless; i += 2 {
		if node.Content[i].Tag == "!!merge" {
			merged = append(merged, p.value(node.Content[i+1]))
			continue
		}
		key := p.value(node.Content[i])
		if key.Kind == List || key.Kind == Map {
			p.wrong(key.Place, "a key should be a text")
			continue
		}
		entry := Entry{key, p.value(node.Content[i+1])}
		if before, twice := own[entry.Name()]; twice {
			p.warn(key.Place, "the key %s is there twice; the last one counts", entry.Name())
			value.Entries[before] = entry
			continue
		}
		own[entry.Name()] = len(value.Entries)
		value.Entries = append(value.Entries, entry)
	}
	for len(merged) > 0 {
		from := merged[0]
		merged = merged[1:]
		switch from.Kind {
		case List:
			merged = append(merged, from.Items...)
		case Map:
			for _, entry := range from.Entries {
				if _, has := own[entry.Name()]; !has {
					own[entry.Name()] = len(value.Entries)
					value.Entries = append(value.Entries, entry)
				}
			}
		default:
			p.wrong(from.Place, "what is merged with << should be a map or a list of maps")
		}
	}
}

// scalar reads a text, a number, true, false, null or an expression: a text without quotes that reads like one is one.
func (p *parser) scalar(value *Value, node *yaml.Node) {
	if node.Tag == "!yaql" {
		p.expression(value, node)
		return
	}
	if node.Style&yaml.TaggedStyle == 0 && node.Style != 0 || node.Tag == "!!str" && node.Style&yaml.TaggedStyle != 0 {
		value.Constant = node.Value
		return
	}
	value.Constant = muranopl.YAMLScalar(node.Value)
	written, is := value.Constant.(string)
	if !is || plain.MatchString(written) || date.MatchString(written) {
		return
	}
	if _, err := yaql.Parse(written); err == nil {
		p.expression(value, node)
	} else if variable.MatchString(written) {
		p.problems = append(p.problems, &Problem{Place: value.Place, File: p.file, Warning: true, NoExpression: true,
			Message: fmt.Sprintf("this is no expression and so only a text: %v; put it in quotes when a text is meant", err)})
	}
}

func (p *parser) expression(value *Value, node *yaml.Node) {
	expression, err := yaql.Parse(node.Value)
	if err != nil {
		p.wrong(value.Place, "this is no expression: %v", err)
		return
	}
	value.Kind, value.Constant, value.Expression = Expression, nil, expression
}

// isNull reports whether the value is null.
func (v *Value) isNull() bool { return v.Kind == Constant && v.Constant == nil }
