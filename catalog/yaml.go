package catalog

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

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
