package check

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
)

// walker looks through a class document.
type walker struct {
	*checker
	file  string
	class *muranopl.Class
	own   bool // the document is that of class
	body  bool // whether the walk is in a body
	nodes int  // seen, since aliases can make few nodes many
}

const maxNodes = 200_000

func (w *walker) document(root *yaml.Node) {
	each(root, func(key string, value *yaml.Node) {
		if key == "Name" && w.class != nil {
			short := value.Value[strings.LastIndexByte(value.Value, '.')+1:]
			w.own = strings.HasSuffix("."+w.class.Name, "."+short)
		}
	})
	each(root, func(key string, value *yaml.Node) {
		switch key {
		case "Meta":
			w.meta(value, "Type", "", "")
		case "Properties":
			each(value, func(name string, property *yaml.Node) {
				each(property, func(key string, value *yaml.Node) {
					switch key {
					case "Contract", "Default":
						w.values(value)
					case "Meta":
						w.meta(value, "Property", name, "")
					}
				})
			})
		case "Methods", "Workflow":
			each(value, w.method)
		}
	})
}

func (w *walker) method(name string, method *yaml.Node) {
	each(method, func(key string, value *yaml.Node) {
		switch key {
		case "Meta":
			w.meta(value, "Method", name, "")
		case "Arguments":
			w.values(value)
			w.arguments(name, value)
		case "Body":
			w.body = true
			w.values(value)
			w.body = false
			w.block(value)
		}
	})
}

// arguments looks at the metadata of a method's arguments: a map of them, or a list of maps of one each.
func (w *walker) arguments(method string, node *yaml.Node) {
	if node = followed(node); node.Kind == yaml.SequenceNode {
		for _, one := range node.Content {
			w.arguments(method, one)
		}
		return
	}
	each(node, func(name string, argument *yaml.Node) {
		each(argument, func(key string, value *yaml.Node) {
			if key == "Meta" {
				w.meta(value, "Argument", method, name)
			}
		})
	})
}

// meta has reflection make the metadata of a part of the class.
func (w *walker) meta(at *yaml.Node, target, member, argument string) {
	if !w.own {
		return
	}
	if err := w.class.CheckMeta(w.ctx, target, member, argument); err != nil {
		w.findings = append(w.findings, wrongMeta(w.file, at.Line, at.Column, err))
	}
}

// wrongMeta makes a finding from a reflection error of metadata.
func wrongMeta(file string, line, column int, err error) Finding {
	var said *muranopl.Exception
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return Finding{UnknownClass, file, line, column, err.Error(), false}
	case errors.As(err, &said):
		return Finding{Metadata, file, line, column, said.Message, false}
	}
	return Finding{Metadata, file, line, column, err.Error(), false}
}

// each goes through the entries of a map.
func each(node *yaml.Node, of func(key string, value *yaml.Node)) {
	if node = followed(node); node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		of(node.Content[i].Value, node.Content[i+1])
	}
}

func followed(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

// plainText are plain scalars that are never taken for expressions.
var plainText = regexp.MustCompile(`^[\s\pL\pN_.]*$`)

// variable matches text that only an expression contains.
var variable = regexp.MustCompile(`\$[\pL_]*([.\[)]|\s|$)`)

// values looks at each scalar below the node as the language would.
func (w *walker) values(node *yaml.Node) {
	if w.nodes++; w.nodes > maxNodes {
		return
	}
	node = followed(node)
	if node.Kind != yaml.ScalarNode {
		for n, child := range node.Content {
			if node.Kind == yaml.MappingNode && n%2 == 1 && (node.Content[n-1].Value == "Throw" || node.Content[n-1].Value == "With") {
				continue // names of exceptions, which need be no classes
			}
			w.values(child)
		}
		return
	}
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle | yaml.TaggedStyle
	if node.Style&quoted != 0 || plainText.MatchString(node.Value) {
		return
	}
	expression, err := yaql.Parse(node.Value)
	if err != nil {
		if variable.MatchString(node.Value) {
			w.find(NoExpression, w.file, node, "this is no expression and so only a text: %v; put it in quotes when a text is meant", err)
		}
		return
	}
	if w.class != nil {
		w.classesOf(node, expression.Root())
	}
	if w.body && w.class != nil {
		w.calls(node, expression.Root())
	}
}

// classesOf looks for the names of classes in an expression.
func (w *walker) classesOf(at *yaml.Node, node yaql.Node) {
	yaql.Inspect(node, func(node yaql.Node) {
		switch n := node.(type) {
		case *yaql.Unary:
			if n.Operator == ":" {
				w.named(at, node)
			}
		case *yaql.Binary:
			if n.Operator == ":" {
				w.named(at, node)
			}
		case *yaql.Call:
			if _, word := first(n.Args).(*yaql.Keyword); word && slices.Contains([]string{"new", "class", "template"}, n.Name) {
				w.named(at, n.Args[0])
			}
		}
	})
}

func first(nodes []yaql.Node) yaql.Node {
	if len(nodes) == 0 {
		return nil
	}
	return nodes[0]
}

// named resolves a name of a class: Name, :Name or prefix:Name.
func (w *walker) named(at *yaml.Node, node yaql.Node) {
	word := func(node yaql.Node) string {
		if keyword, ok := node.(*yaql.Keyword); ok {
			return keyword.Name
		}
		return ""
	}
	name, begin := word(node), node
	switch n := node.(type) {
	case *yaql.Unary:
		name = ":" + word(n.Operand)
	case *yaql.Binary:
		name, begin = word(n.Left)+":"+word(n.Right), n.Left
	}
	if _, err := w.classes.Resolve(w.ctx, w.class, name); err != nil {
		w.findings = append(w.findings, Finding{UnknownClass, w.file, at.Line, at.Column + columns(at.Value, begin.Offset()), err.Error(), false})
	}
}

// columns is how far an offset is from the beginning of a text in one line; 0 where the text has several.
func columns(text string, offset int) int {
	if strings.Contains(text, "\n") {
		return 0
	}
	return len([]rune(text[:min(offset, len(text))]))
}
