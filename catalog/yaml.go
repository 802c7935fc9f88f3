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

// yamlLine is how the YAML decoder, and its bounds, say where something is wrong.
var yamlLine = regexp.MustCompile(`\bline ([0-9]+):`)

// placed gives an error about YAML the place that its text names.
func placed(file string, err error, about error) error {
	p := &Placed{File: file, Line: 1, Column: 1, Err: err}
	if said := yamlLine.FindStringSubmatch(about.Error()); said != nil {
		p.Line, _ = strconv.Atoi(said[1])
	}
	return p
}

// unmarshalYAML reads a document into its nodes, and refuses what would grow beyond bounds when it is walked through.
func unmarshalYAML(text []byte, document *yaml.Node) error {
	return door.YAML(text, document, door.Bounds{})
}
