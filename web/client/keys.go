package client

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// asJSON changes a document so that it can be written as JSON for the server: keys that YAML reads as numbers, booleans or dates become their original
// texts, and dates among the values, too. A value without a form in JSON is an error with its line.
func asJSON(node *yaml.Node) error {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, err := textKey(node, node.Content[i])
			if err != nil {
				return err
			}
			node.Content[i] = key
		}
	}
	if node.Kind == yaml.ScalarNode {
		switch node.ShortTag() {
		case "!!timestamp":
			node.Tag = "!!str"
		case "!!float":
			var number float64
			if err := node.Decode(&number); err != nil || number-number != 0 {
				return fmt.Errorf("line %d: %s is no number that a model can have", node.Line, node.Value)
			}
		}
	}
	for _, inner := range node.Content {
		if err := asJSON(inner); err != nil {
			return err
		}
	}
	return nil
}

// textKey returns a mapping's key as a text. The key is copied, because its node may have an anchor that is a value elsewhere.
func textKey(mapping, key *yaml.Node) (*yaml.Node, error) {
	text := key
	if key.Kind == yaml.AliasNode {
		text = key.Alias
	}
	if text.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("line %d: a key is a text, and no list or mapping", key.Line)
	}
	switch tag := text.ShortTag(); {
	case tag == "!!str", tag == "!!merge":
		return key, nil
	case tag == "!!null" && text.Value == "" && mapping.Style&yaml.FlowStyle != 0:
		// In flow style a question mark begins a key (https://yaml.org/spec/1.2.2/#rule-ns-flow-map-explicit-entry), so that {?: …} has an empty one.
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "?", Line: key.Line, Column: key.Column}, nil
	case tag == "!!null":
		return nil, fmt.Errorf("line %d: a key is empty, or null: write it in quotes if it is meant as a text", key.Line)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text.Value, Anchor: key.Anchor, Line: key.Line, Column: key.Column}, nil
}

// strictly decodes a mapping into a struct. Keys that the struct does not have are errors with their lines.
func strictly(root *yaml.Node, kind string, into any) error {
	of := reflect.TypeOf(into).Elem()
	var fields []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
		fields = append(fields, name)
	}
	wrong := &yaml.TypeError{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key := root.Content[i]; key.Tag != "!!merge" && !slices.Contains(fields, key.Value) {
			wrong.Errors = append(wrong.Errors, fmt.Sprintf("line %d: a document of the kind %s has no field %q", key.Line, kind, key.Value))
		}
	}
	switch err := root.Decode(into).(type) {
	case nil:
	case *yaml.TypeError:
		wrong.Errors = append(wrong.Errors, err.Errors...)
	default:
		return err
	}
	if len(wrong.Errors) > 0 {
		return wrong
	}
	return nil
}
