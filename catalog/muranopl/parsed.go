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
	// maxParsedNodes is how many nodes their documents have together at most: of about 200 bytes each, and with what is made of them up to 600.
	// Those of all embedded packages have some 6,000.
	maxParsedNodes = 50_000
)

// Parsed remembers what class files say of their classes, by the files' texts: each run has Classes of its own, and most read the same
// files. It is safe for concurrent use; a nil Parsed remembers nothing.
type Parsed struct {
	classes *lists.Cache[declaration]
}

// NewParsed makes a Parsed that remembers nothing yet.
func NewParsed() *Parsed {
	return &Parsed{lists.New(maxParsed, maxParsedNodes, func(one declaration) int64 { return one.nodes })}
}

// WithParsed shares what class files say with other Classes.
func WithParsed(parsed *Parsed) Option {
	return func(c *Classes) { c.parsed = parsed }
}

// read returns what a file says of a class.
func (p *Parsed) read(name, file string, content []byte, embedded bool) (declaration, error) {
	read := func() (declaration, error) { return readDeclaration(name, file, content, embedded) }
	if p == nil {
		return read()
	}
	var key strings.Builder
	key.Grow(len(name) + len(file) + len(content) + 8)
	key.WriteString(strconv.FormatBool(embedded)) // what is a flaw elsewhere is an error in an embedded one, and its methods may be native
	for _, part := range []string{name, file} {
		key.WriteByte(0)
		key.WriteString(part)
	}
	key.WriteByte(0)
	key.Write(content)
	return p.classes.Read(key.String(), read)
}

// nodes is how many nodes there are without what aliases stand for.
func nodes(node *yaml.Node) int64 {
	count := int64(1)
	for _, child := range node.Content {
		count += nodes(child)
	}
	return count
}
