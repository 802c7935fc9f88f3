package door

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Bounds are the bounds of one document. A zero field has a default: 16 MiB, 100 levels, 100,000 values, 64 MiB written out.
type Bounds struct {
	Bytes   int64 // of the text
	Depth   int   // of nested lists and maps
	Values  int   // scalars, lists, maps and keys, aliases written out
	Written int64 // bytes of all scalars, aliases written out
}

// defaults are the bounds of a YAML document without bounds of its own.
var defaults = Bounds{Bytes: 16 << 20, Depth: 100, Values: 100_000, Written: 64 << 20}

func (b Bounds) filled() Bounds {
	if b.Bytes == 0 {
		b.Bytes = defaults.Bytes
	}
	if b.Depth == 0 {
		b.Depth = defaults.Depth
	}
	if b.Values == 0 {
		b.Values = defaults.Values
	}
	if b.Written == 0 {
		b.Written = defaults.Written
	}
	return b
}

// YAML decodes the first document of a text, as yaml.Unmarshal does, once it is known to be within bounds. Into may be a *yaml.Node. Errors name the line.
func YAML(text []byte, into any, bounds Bounds) error {
	decoder, err := NewYAML(text, bounds)
	if err != nil {
		return err
	}
	if err := decoder.Decode(into); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// parsedPerValue is how many values may be parsed, before they are counted, for each that is allowed. A parsed value takes about 200 bytes of memory.
const parsedPerValue = 5

// atMost returns a bound of how many values a text has: each but the first has an indicator before it, which may also be a character of a text.
func atMost(text []byte) int {
	count := 2
	for i, c := range text {
		switch c {
		case ',', '[', '{':
			count += 2
		case ':', '-', '?':
			if i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\n' || text[i+1] == '\t' || text[i+1] == '\r' {
				count += 2
			}
		}
	}
	return count
}

// YAMLDecoder decodes the documents of a text one after another.
type YAMLDecoder struct {
	decoder *yaml.Decoder
	bounds  Bounds
	counted measured // of all documents so far
}

// NewYAML returns a decoder of a text's documents. The bounds apply to all documents together.
func NewYAML(text []byte, bounds Bounds) (*YAMLDecoder, error) {
	bounds = bounds.filled()
	if int64(len(text)) > bounds.Bytes {
		return nil, &Exceeded{What: "the document", Bound: Bytes(bounds.Bytes)}
	}
	if most := parsedPerValue * bounds.Values; len(text) > most && atMost(text) > most {
		return nil, &Exceeded{What: "the document", Bound: fmt.Sprintf("%d values", bounds.Values)}
	}
	return &YAMLDecoder{decoder: yaml.NewDecoder(bytes.NewReader(text)), bounds: bounds}, nil
}

// Decode decodes the next document. The error is io.EOF when there is none.
func (d *YAMLDecoder) Decode(into any) error {
	var document yaml.Node
	if err := d.decoder.Decode(&document); err != nil {
		return err
	}
	if err := d.counted.add(&document, 0, d.bounds); err != nil {
		return err
	}
	if node, ok := into.(*yaml.Node); ok {
		*node = document
		return nil
	}
	return document.Decode(into)
}

type measured struct {
	values   int
	written  int64
	compared int // pairs of keys, which the decoder compares
}

// maxCompared is the bound of these pairs: 20,000 keys in one map.
const maxCompared = 200_000_000

func (m *measured) add(node *yaml.Node, depth int, bounds Bounds) error {
	m.values++
	m.written += int64(len(node.Value))
	if keys := len(node.Content) / 2; node.Kind == yaml.MappingNode {
		m.compared += keys * keys / 2
	}
	var beyond string
	switch {
	case depth > bounds.Depth:
		return fmt.Errorf("line %d: it is nested deeper than %d levels", node.Line, bounds.Depth)
	case m.values > bounds.Values:
		beyond = fmt.Sprintf("%d values", bounds.Values)
	case m.compared > maxCompared:
		return fmt.Errorf("line %d: %w", node.Line, &Exceeded{What: "a map", Bound: "20000 keys"})
	case m.written > bounds.Written:
		beyond = Bytes(bounds.Written)
	}
	if beyond != "" {
		return fmt.Errorf("line %d: %w, aliases written out", node.Line, &Exceeded{What: "it", Bound: beyond})
	}
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return m.add(node.Alias, depth+1, bounds)
	}
	for _, child := range node.Content {
		if err := m.add(child, depth+1, bounds); err != nil {
			return err
		}
	}
	return nil
}
