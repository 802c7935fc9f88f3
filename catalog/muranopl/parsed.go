package muranopl

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/lists"
)

const (
	// maxParsed is how many classes are remembered.
	maxParsed = 10_000
	// maxParsedNodes is the maximum number of nodes of their documents together: of about 200 bytes each, and up to 600 with the results. The documents of
	// all embedded packages have some 6,000.
	maxParsedNodes = 50_000
)

// Parsed caches the declarations of class files, by the files' texts: each run has Classes of its own, and most read the same files. It is safe for
// concurrent use; a nil Parsed caches nothing.
type Parsed struct {
	classes *lists.Cache[declaration]
}

// NewParsed makes a Parsed that remembers nothing yet.
func NewParsed() *Parsed {
	return &Parsed{lists.New(maxParsed, maxParsedNodes, func(one declaration) int64 { return one.nodes })}
}

// WithParsed shares the declarations of class files with other Classes.
func WithParsed(parsed *Parsed) Option {
	return func(c *Classes) { c.parsed = parsed }
}

// read returns a file's declaration of a class.
func (p *Parsed) read(name, file string, content []byte, embedded bool) (declaration, error) {
	read := func() (declaration, error) { return readDeclaration(name, file, content, embedded) }
	if p == nil {
		return read()
	}
	var key strings.Builder
	key.Grow(len(name) + len(file) + len(content) + 8)
	key.WriteString(strconv.FormatBool(embedded)) // flaws are errors in an embedded file, and its methods may be native
	for _, part := range []string{name, file} {
		key.WriteByte(0)
		key.WriteString(part)
	}
	key.WriteByte(0)
	key.Write(content)
	return p.classes.Read(key.String(), read)
}

// nodes counts the nodes without the targets of aliases.
func nodes(node *yaml.Node) int64 {
	count := int64(1)
	for _, child := range node.Content {
		count += nodes(child)
	}
	return count
}
