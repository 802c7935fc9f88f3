package catalog

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Placed is an error at a place in a file of a package.
type Placed struct {
	File         string
	Line, Column int // from 1
	Err          error
}

func (p *Placed) Error() string { return p.Err.Error() }

func (p *Placed) Unwrap() error { return p.Err }

// yamlLine is how the YAML decoder, and measure, say where something is wrong.
var yamlLine = regexp.MustCompile(`\bline ([0-9]+):`)

// placed gives an error about YAML the place that its text names.
func placed(file string, err error, about error) error {
	p := &Placed{File: file, Line: 1, Column: 1, Err: err}
	if said := yamlLine.FindStringSubmatch(about.Error()); said != nil {
		p.Line, _ = strconv.Atoi(said[1])
	}
	return p
}

const (
	// maxDepth is how deep lists and maps may be nested in what a user sends.
	maxDepth = 100
	// maxNodes is how many values a document may have when its aliases are written out.
	maxNodes = 100_000
)

// unmarshalYAML reads a document into its nodes, and refuses what would grow beyond bounds when it is walked through.
func unmarshalYAML(text []byte, document *yaml.Node) error {
	if err := yaml.Unmarshal(text, document); err != nil {
		return err
	}
	count := 0
	return measure(document, 0, &count)
}

// measure counts the nodes with their aliases written out.
func measure(node *yaml.Node, depth int, count *int) error {
	*count++
	switch {
	case depth > maxDepth:
		return fmt.Errorf("line %d: it is nested deeper than %d levels", node.Line, maxDepth)
	case *count > maxNodes:
		return fmt.Errorf("line %d: it has more than %d values, aliases written out", node.Line, maxNodes)
	}
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return measure(node.Alias, depth+1, count)
	}
	for _, child := range node.Content {
		if err := measure(child, depth+1, count); err != nil {
			return err
		}
	}
	return nil
}
