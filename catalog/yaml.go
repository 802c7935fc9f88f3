package catalog

import (
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/door"
)

// Placed is an error at a place in a file of a package.
type Placed struct {
	File         string
	Line, Column int // from 1
	Err          error
}

func (p *Placed) Error() string { return p.Err.Error() }

func (p *Placed) Unwrap() error { return p.Err }

// yamlLine matches the line in an error of the YAML decoder, and of its bounds.
var yamlLine = regexp.MustCompile(`\bline ([0-9]+):`)

// placed gives an error about YAML the place that its text names.
func placed(file string, err error, about error) error {
	p := &Placed{File: file, Line: 1, Column: 1, Err: err}
	if said := yamlLine.FindStringSubmatch(about.Error()); said != nil {
		p.Line, _ = strconv.Atoi(said[1])
	}
	return p
}

// unmarshalYAML reads a document into its nodes, and refuses one that would exceed the bounds when it is visited.
func unmarshalYAML(text []byte, document *yaml.Node) error {
	return door.YAML(text, document, door.Bounds{})
}
