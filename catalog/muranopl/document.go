package muranopl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/door"
)

// DocumentError is a fault in a class file, with its place.
type DocumentError struct {
	Position Position
	Message  string
	// Misnamed marks a file without a class of the name in the manifest. Murano accepts such a package, and uses its other classes.
	Misnamed bool
}

func (e *DocumentError) Error() string { return e.Position.String() + ": " + e.Message }

// SyntaxError is that a class file is no YAML. The parser's error names the line.
type SyntaxError struct {
	File string
	Err  error
}

func (e *SyntaxError) Error() string { return e.File + " is no YAML: " + e.Err.Error() }

func (e *SyntaxError) Unwrap() error { return e.Err }

// Flaw is a fault in a class file that leaves its class usable. A warning has no effect in Murano.
type Flaw struct {
	DocumentError
	Warning bool
}

// ReferenceError is that a class cannot be used that a class file names, and where.
type ReferenceError struct {
	Position Position
	Err      error
}

func (e *ReferenceError) Error() string { return e.Err.Error() }

func (e *ReferenceError) Unwrap() error { return e.Err }

// maxNodes is how many nodes a class file may have after its aliases were followed.
const maxNodes = 200_000

// maxDepth is how deep its lists and maps may be nested.
const maxDepth = 100

// ReadYAML reads a file with one document as Murano reads YAML: 1.1, dates are texts, keys too. A text like an expression is a text. An empty file is
// null.
func ReadYAML(file string, text []byte) (any, error) {
	documents, err := readDocuments(file, text, false)
	switch {
	case err != nil:
		return nil, err
	case len(documents) == 0:
		return nil, nil
	}
	return documents[0].value(documents[0].root)
}

// YAMLValue is the value of a node, as ReadYAML has it.
func YAMLValue(file string, node *yaml.Node) (any, error) {
	return document{file, node, new(int), places{}, new([]Flaw), false}.value(node)
}

// document is one YAML document of a class file.
type document struct {
	file  string
	root  *yaml.Node
	nodes *int // followed so far
	// places are the places of the expressions that were read so far.
	places places
	// flaws are faults that leave the file readable. With strict each is an error instead.
	flaws *[]Flaw
	// strict makes unknown keys errors; Murano ignores them, so only embedded packages are read strictly.
	strict bool
}

// places map expressions to their places.
type places map[*yaql.Expression]Position

// readDocuments reads a file.
func readDocuments(file string, text []byte, strict bool) ([]document, error) {
	roots, err := parseDocuments(file, text)
	if err != nil {
		return nil, err
	}
	nodes, where, flaws := 0, places{}, []Flaw(nil)
	documents := make([]document, len(roots))
	for i, root := range roots {
		documents[i] = document{file, root, &nodes, where, &flaws, strict}
	}
	return documents, nil
}

// parsingBounds leave the rest to the reading, whose errors have places.
var parsingBounds = door.Bounds{Depth: 100 * maxDepth, Values: 10 * maxNodes}

// parseDocuments returns the roots of a file's documents.
func parseDocuments(file string, text []byte) ([]*yaml.Node, error) {
	decoder, err := door.NewYAML(text, parsingBounds)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var roots []*yaml.Node
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, &SyntaxError{file, err}
		}
		if deep := deeper(&node, maxDepth+1); deep != nil { // the document itself is one of them
			return nil, document{file: file}.wrong(deep, "the file is nested deeper than %d levels", maxDepth)
		}
		if node.Kind == yaml.DocumentNode && len(node.Content) == 1 {
			roots = append(roots, node.Content[0])
		}
	}
}

// deeper returns a node that is nested deeper in another than that, nil when there is none. Aliases are not followed: their targets are counted
// (maxNodes).
func deeper(node *yaml.Node, levels int) *yaml.Node {
	if levels < 0 {
		return node
	}
	for _, child := range node.Content {
		if deep := deeper(child, levels-1); deep != nil {
			return deep
		}
	}
	return nil
}

func (d document) position(node *yaml.Node) Position { return Position{d.file, node.Line, node.Column} }

func (d document) wrong(node *yaml.Node, format string, args ...any) error {
	return &DocumentError{Position: d.position(node), Message: fmt.Sprintf(format, args...)}
}

// flaw records a tolerable fault; where the document is read strictly it is an error.
func (d document) flaw(flaw Flaw) error {
	if d.strict {
		return &flaw.DocumentError
	}
	if !slices.Contains(*d.flaws, flaw) {
		*d.flaws = append(*d.flaws, flaw)
	}
	return nil
}

// field is an entry of a YAML mapping.
type field struct {
	key, value *yaml.Node
}

// follow returns the target of an alias.
func (d document) follow(node *yaml.Node) (*yaml.Node, error) {
	if *d.nodes++; *d.nodes > maxNodes {
		return nil, d.wrong(node, "the file has more than %d nodes", maxNodes)
	}
	if node.Kind == yaml.AliasNode {
		if *d.nodes++; node.Alias == nil {
			return nil, d.wrong(node, "the alias stands for nothing")
		}
		return node.Alias, nil
	}
	return node, nil
}

// fields returns the entries of a mapping in order, with those merged in by "<<" after its own. Of a duplicate key the last value counts, as for PyYAML.
func (d document) fields(node *yaml.Node) ([]field, error) { return d.fieldsWithin(node, 0) }

func (d document) fieldsWithin(node *yaml.Node, depth int) ([]field, error) {
	node, err := d.follow(node)
	if err != nil {
		return nil, err
	}
	if node.Kind != yaml.MappingNode || depth > 20 {
		return nil, d.wrong(node, "a map is wanted here")
	}
	var own, merged []field
	seen := map[string]int{} // where the key is in own
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == "<<" && key.Kind == yaml.ScalarNode && plainStyle(key) {
			more, err := d.merged(value, depth)
			if err != nil {
				return nil, err
			}
			merged = append(merged, more...)
			continue
		}
		if key.Kind == yaml.ScalarNode {
			if before, twice := seen[key.Value]; twice {
				if err := d.flaw(Flaw{DocumentError{Position: d.position(key), Message: fmt.Sprintf("the key %q is there twice; the last one counts", key.Value)}, true}); err != nil {
					return nil, err
				}
				own[before] = field{key, value}
				continue
			}
			seen[key.Value] = len(own)
		}
		own = append(own, field{key, value})
	}
	for _, f := range merged {
		if _, has := seen[f.key.Value]; !has {
			seen[f.key.Value] = len(own)
			own = append(own, f)
		}
	}
	return own, nil
}

func (d document) merged(node *yaml.Node, depth int) ([]field, error) {
	node, err := d.follow(node)
	if err != nil {
		return nil, err
	}
	if node.Kind != yaml.SequenceNode {
		return d.fieldsWithin(node, depth+1)
	}
	var all []field
	for _, item := range node.Content {
		more, err := d.fieldsWithin(item, depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// template is a value that may hold expressions: a literal, a *yaql.Expression, a listTemplate or a mapTemplate.
type template any

type listTemplate []template

type mapTemplate []struct{ key, value template }

// template makes a template of a node. A plain scalar that reads like an expression is one.
func (d document) template(node *yaml.Node) (template, error) {
	node, err := d.follow(node)
	if err != nil {
		return nil, err
	}
	switch node.Kind {
	case yaml.ScalarNode:
		return d.scalar(node)
	case yaml.SequenceNode:
		items := make(listTemplate, len(node.Content))
		for i, item := range node.Content {
			if items[i], err = d.template(item); err != nil {
				return nil, err
			}
		}
		return items, nil
	}
	fields, err := d.fields(node)
	if err != nil {
		return nil, err
	}
	entries := make(mapTemplate, len(fields))
	for i, f := range fields {
		if entries[i].key, err = d.template(f.key); err != nil {
			return nil, err
		}
		if entries[i].value, err = d.template(f.value); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// value converts a node that may hold no expressions: texts like expressions are strings.
func (d document) value(node *yaml.Node) (any, error) {
	t, err := d.template(node)
	if err != nil {
		return nil, err
	}
	return literal(t), nil
}

// literal returns a template as a value, with expressions as texts.
func literal(t template) any {
	switch v := t.(type) {
	case *yaql.Expression:
		return v.String()
	case listTemplate:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = literal(item)
		}
		return list
	case mapTemplate:
		dict := make(map[string]any, len(v))
		for _, entry := range v {
			dict[yaql.Text(literal(entry.key))] = literal(entry.value)
		}
		return dict
	}
	return t
}

// neverExpression are the plain scalars that are no expressions even though they could be read as one.
var neverExpression = regexp.MustCompile(`^[\s\pL\pN_.]*$`)

func plainStyle(node *yaml.Node) bool {
	return node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle|yaml.TaggedStyle) == 0
}

func (d document) scalar(node *yaml.Node) (template, error) {
	if plainStyle(node) {
		if !neverExpression.MatchString(node.Value) {
			if expression, err := yaql.Parse(node.Value); err == nil {
				d.places[expression] = d.position(node)
				return expression, nil
			}
		}
		return YAMLScalar(node.Value), nil
	}
	if node.Style&yaml.TaggedStyle == 0 {
		return node.Value, nil
	}
	switch node.Tag {
	case "!yaql":
		expression, err := yaql.Parse(node.Value)
		if err != nil {
			return nil, d.wrong(node, "this is no expression: %v", err)
		}
		d.places[expression] = d.position(node)
		return expression, nil
	case "!!str":
		return node.Value, nil
	case "!!int", "!!float", "!!bool", "!!null":
		return YAMLScalar(node.Value), nil
	}
	return nil, d.wrong(node, "the tag %s is not known here", node.Tag)
}

var (
	yamlInt   = regexp.MustCompile(`^[-+]?(0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)$`)
	yamlFloat = regexp.MustCompile(`^[-+]?([0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9_]+([eE][-+][0-9]+)?)$`)
)

// YAMLScalar gives a plain scalar the type that YAML 1.1 gives it; Murano's files rely on "yes" being true. Dates stay strings.
func YAMLScalar(text string) any {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nil
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false
	case ".inf", ".Inf", ".INF", "+.inf":
		return math.Inf(1)
	case "-.inf", "-.Inf", "-.INF":
		return math.Inf(-1)
	}
	digits := strings.ReplaceAll(text, "_", "")
	if yamlInt.MatchString(text) {
		if n, err := strconv.ParseInt(digits, 0, 64); err == nil {
			return n
		}
	}
	if yamlFloat.MatchString(text) {
		if f, err := strconv.ParseFloat(digits, 64); err == nil {
			return f
		}
	}
	return text
}

// fill evaluates the expressions of a template; its value is one of YAQL.
func fill(ctx context.Context, t template, scope *yaql.Scope) (any, error) {
	switch v := t.(type) {
	case *yaql.Expression:
		return v.Evaluate(ctx, scope)
	case listTemplate:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = fill(ctx, item, scope); err != nil {
				return nil, err
			}
		}
		return list, nil
	case mapTemplate:
		entries := make([]yaql.Entry, len(v))
		for i, entry := range v {
			key, err := fill(ctx, entry.key, scope)
			if err != nil {
				return nil, err
			}
			value, err := fill(ctx, entry.value, scope)
			if err != nil {
				return nil, err
			}
			entries[i] = yaql.Entry{Key: key, Value: value}
		}
		return yaql.NewDict(entries...), nil
	}
	return t, nil
}
