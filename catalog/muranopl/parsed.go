package muranopl

import (
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/lists"
)

const (
	// maxParsed is how many class files are remembered.
	maxParsed = 10_000
	// maxParsedNodes is how many nodes they have together at most, of about 200 bytes each; those of all embedded packages have some 6,000.
	maxParsedNodes = 100_000
)

// Parsed remembers what class files hold, by their texts: each run has Classes of its own, and most read the same files. What is made of
// them is the run's own. It is safe for concurrent use; a nil Parsed remembers nothing.
type Parsed struct {
	files *lists.Cache[[]*yaml.Node]
}

// NewParsed makes a Parsed that remembers nothing yet.
func NewParsed() *Parsed {
	return &Parsed{lists.New(maxParsed, maxParsedNodes, func(documents []*yaml.Node) int64 {
		var count int64
		for _, document := range documents {
			count += nodes(document)
		}
		return count
	})}
}

// WithParsed shares what class files hold with other Classes.
func WithParsed(parsed *Parsed) Option {
	return func(c *Classes) { c.parsed = parsed }
}

// read returns the documents of a file, which are not to be changed.
func (p *Parsed) read(file string, text []byte) ([]*yaml.Node, error) {
	if p == nil {
		return parseDocuments(file, text)
	}
	return p.files.Read(string(text), func() ([]*yaml.Node, error) { return parseDocuments(file, text) })
}

// nodes is how many nodes there are without what aliases stand for.
func nodes(node *yaml.Node) int64 {
	count := int64(1)
	for _, child := range node.Content {
		count += nodes(child)
	}
	return count
}
