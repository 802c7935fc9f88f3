package check

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/door"
)

// Mistake is a fault of a template; the keys of Path lead to it.
type Mistake struct {
	Path []string
	Text string
}

// Plans finds the faults in the template of an execution plan, with the files of Resources from read. The package that runs plans implements it.
type Plans func(template map[string]any, read func(name string) ([]byte, error)) []Mistake

const resourcesFolder = "Resources/"

// isPlan reports whether a file that is no YAML was meant as the template of a plan.
var isPlan = regexp.MustCompile(`(?m)^FormatVersion:`)

// plans checks the templates of execution plans among the resources.
func (c *checker) plans(find Plans) {
	for _, file := range c.pkg.FileNames() {
		if !strings.HasPrefix(file, resourcesFolder) || path.Ext(file) != ".template" {
			continue
		}
		text, _ := c.pkg.File(file)
		root, template, err := c.template(text)
		if err != nil && isPlan.Match(text) {
			c.findings = append(c.findings, Finding{Plan, file, 1, 1, err.Error(), true})
		}
		if template == nil || find == nil {
			continue
		}
		for _, mistake := range find(template, c.resource) {
			at := root
			for _, key := range mistake.Path {
				each(at, func(name string, value *yaml.Node) {
					if name == key {
						at = value
					}
				})
			}
			c.findings = append(c.findings, Finding{Plan, file, at.Line, at.Column, mistake.Text, true})
		}
	}
}

// template reads a file; nil when it is no template of a plan, which has a Body and Scripts.
func (c *checker) template(text []byte) (*yaml.Node, map[string]any, error) {
	var root yaml.Node
	if err := door.YAML(text, &root, door.Bounds{}); err != nil || len(root.Content) == 0 {
		return nil, nil, err
	}
	var template map[string]any
	if err := root.Decode(&template); err != nil {
		return nil, nil, err
	}
	if template["FormatVersion"] == nil && (template["Scripts"] == nil || template["Body"] == nil) {
		return nil, nil, nil
	}
	return root.Content[0], template, nil
}

func (c *checker) resource(name string) ([]byte, error) {
	text, err := c.pkg.File(resourcesFolder + name)
	if err != nil {
		return nil, fmt.Errorf("there is no file %s%s", resourcesFolder, name)
	}
	return text, nil
}

// bound checks yaml('FILE').bind(dict(…)): each text of the file that begins with $ must have a value there. It checks only a dict that is written out.
func (w *walker) bound(at *yaml.Node, n *yaql.Binary) {
	bind, isCall := n.Right.(*yaql.Call)
	if !isCall || n.Operator != "." || bind.Name != "bind" || len(bind.Args) != 1 {
		return
	}
	of, isChain := n.Left.(*yaql.Binary)
	if !isChain || of.Operator != "." {
		return
	}
	read, isCall := of.Right.(*yaql.Call)
	if !isCall || read.Name != "yaml" || len(read.Args) != 1 {
		return
	}
	file, isText := read.Args[0].(*yaql.Literal)
	values, isDict := bind.Args[0].(*yaql.Call)
	if !isText || !isDict || values.Name != "dict" {
		return
	}
	var given []string
	for _, one := range values.Args {
		mapping, is := one.(*yaql.Mapping)
		if !is {
			return
		}
		switch key := mapping.Key.(type) {
		case *yaql.Keyword:
			given = append(given, key.Name)
		case *yaql.Literal:
			given = append(given, fmt.Sprint(key.Value))
		default:
			return
		}
	}
	name, _ := file.Value.(string)
	text, err := w.pkg.File(resourcesFolder + name)
	if err != nil {
		w.find(Plan, w.file, at, "there is no file %s%s", resourcesFolder, name)
		return
	}
	var root yaml.Node
	if door.YAML(text, &root, door.Bounds{}) != nil {
		return
	}
	var missing []string
	w.placeholders(&root, func(name string) {
		if !slices.Contains(given, name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	})
	for _, one := range missing {
		w.find(Plan, w.file, at, "bind() has no value for $%s of %s%s", one, resourcesFolder, name)
	}
}

// inBraces matches names within a text that begins with $; names without a value are left out of it.
var inBraces = regexp.MustCompile(`\{\w+\}`)

// placeholders lists the names of placeholders in the texts of a document.
func (w *walker) placeholders(node *yaml.Node, tell func(name string)) {
	if w.nodes++; w.nodes > maxNodes {
		return
	}
	node = followed(node)
	if node.Kind == yaml.ScalarNode {
		if name, is := strings.CutPrefix(node.Value, "$"); is && node.ShortTag() == "!!str" && !inBraces.MatchString(name) {
			tell(name)
		}
		return
	}
	for _, child := range node.Content {
		w.placeholders(child, tell)
	}
}
