package muranopl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/yaql"
)

// build makes a class of the document that declares it.
func (c *Classes) build(ctx context.Context, pkg Package, name, file string, content []byte) (*Class, error) {
	documents, err := readDocuments(c.parsed, file, content, pkg.Embedded())
	if err != nil {
		return nil, err
	}
	read, others, err := declaring(documents, name, file)
	c.beside(pkg, name, others)
	if err != nil {
		return nil, err
	}
	return c.complete(ctx, pkg, name, read)
}

// Parents are the parents that a class file gives a class of a package, by their full names; none of them is read. A class that names none
// extends io.murano.Object.
func Parents(name, file string, content []byte) ([]string, error) {
	documents, err := readDocuments(nil, file, content, false)
	if err != nil {
		return nil, err
	}
	read, _, err := declaring(documents, name, file)
	if err != nil {
		return nil, err
	}
	if read.fields["Extends"] == nil {
		if name == rootClass {
			return nil, nil
		}
		return []string{rootClass}, nil
	}
	written, err := read.names(read.fields["Extends"])
	if err != nil {
		return nil, err
	}
	names := make([]string, len(written))
	for i, one := range written {
		if names[i], err = read.namespaces.resolve(one); err != nil {
			return nil, read.wrong(read.fields["Extends"], "%v", err)
		}
	}
	return names, nil
}

// declaring finds the document of a file that declares a class; others are the classes that it declares beside.
func declaring(documents []document, name, file string) (read *classDocument, others []string, err error) {
	var spaces namespaces
	var named, nameless *classDocument
	for _, d := range documents {
		if isNull(d.root) { // comments only
			continue
		}
		read, err := d.class(spaces)
		if err != nil {
			return nil, nil, err
		}
		spaces = read.namespaces
		if read.prologue {
			continue
		}
		if read.name == "" {
			if nameless != nil {
				return nil, nil, d.wrong(d.root, "only one class of a file may go without a Name")
			}
			nameless = read
			continue
		}
		if read.name == name {
			named = read
			continue
		}
		others = append(others, read.name)
	}
	if named == nil {
		named = nameless
	}
	if named != nil {
		return named, others, nil
	}
	where := Position{file, 1, 1}
	if len(others) == 0 {
		return nil, nil, &DocumentError{where, fmt.Sprintf("the manifest says that class %s is here, but no class is", name)}
	}
	return nil, nil, &DocumentError{where, fmt.Sprintf("the manifest says that class %s is here, but only %s is", name, strings.Join(others, ", "))}
}

// classDocument is a class document, read as far as it can be without other classes.
type classDocument struct {
	document
	namespaces namespaces
	prologue   bool // holds only Namespaces
	name       string
	fields     map[string]*yaml.Node
}

var classKeys = []string{"Name", "Namespaces", "Extends", "Usage", "Cardinality", "Applies", "Inherited", "Meta", "Import", "Properties", "Methods", "Workflow"}

func (d document) class(inherited namespaces) (*classDocument, error) {
	read := &classDocument{document: d, namespaces: inherited, fields: map[string]*yaml.Node{}}
	fields, err := d.fields(d.root)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if d.strict && !slices.Contains(classKeys, f.key.Value) {
			return nil, d.wrong(f.key, "a class has no %q; it has %s", f.key.Value, strings.Join(classKeys, ", "))
		}
		read.fields[f.key.Value] = f.value
	}
	if node := read.fields["Namespaces"]; node != nil {
		if read.namespaces, err = d.namespaces(node); err != nil {
			return nil, err
		}
		read.prologue = len(read.fields) == 1
	}
	if node := read.fields["Name"]; node != nil {
		if node.Kind != yaml.ScalarNode {
			return nil, d.wrong(node, "Name is a class name")
		}
		if read.name, err = read.namespaces.resolve(node.Value); err != nil {
			return nil, d.wrong(node, "%v", err)
		}
	}
	return read, nil
}

func (d document) namespaces(node *yaml.Node) (namespaces, error) {
	fields, err := d.fields(node)
	if err != nil {
		return nil, err
	}
	spaces := namespaces{}
	for _, f := range fields {
		value, err := d.follow(f.value)
		if err != nil {
			return nil, err
		}
		if value.Kind != yaml.ScalarNode {
			return nil, d.wrong(value, "a namespace is a name such as io.murano")
		}
		spaces[f.key.Value] = nil
		if !plainStyle(value) || YAMLScalar(value.Value) != nil {
			spaces[f.key.Value] = &value.Value
		}
	}
	return spaces, nil
}

// names are a name or a list of names.
func (d document) names(node *yaml.Node) ([]string, error) {
	node, err := d.follow(node)
	if err != nil {
		return nil, err
	}
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	var names []string
	for _, item := range nodes {
		if item, err = d.follow(item); err != nil {
			return nil, err
		}
		if item.Kind != yaml.ScalarNode || item.Value == "" {
			return nil, d.wrong(item, "a name or a list of names is wanted here")
		}
		names = append(names, item.Value)
	}
	return names, nil
}

// complete makes the class, with its parents.
func (c *Classes) complete(ctx context.Context, pkg Package, name string, d *classDocument) (*Class, error) {
	class := &Class{Name: name, Package: pkg, Position: d.position(d.root), namespaces: d.namespaces, classes: c, places: d.places}
	class.functions = sync.OnceValue(class.functionTable)
	class.speech = sync.OnceValue(class.dialect)
	class.base = sync.OnceValue(func() *yaql.Scope { return class.baseOf(class.functions()) })
	var err error
	if class.Parents, err = c.parents(ctx, class, d); err != nil {
		return nil, err
	}
	class.lineage = lineage(class)
	if node := d.fields["Usage"]; node != nil {
		switch node.Value {
		case "Class":
		case "Meta":
			class.IsMeta = true
		default:
			return nil, d.wrong(node, "the Usage of a class is Class or Meta, not %q", node.Value)
		}
	}
	if class.IsMeta {
		if err := d.metaClass(class); err != nil {
			return nil, err
		}
	}
	if class.Meta, err = d.meta(d.fields["Meta"]); err != nil {
		return nil, err
	}
	if err := d.properties(class); err != nil {
		return nil, err
	}
	if err := d.methods(class); err != nil {
		return nil, err
	}
	class.members = class.gather()
	class.Flaws = *d.flaws
	return class, c.imports(ctx, class, d)
}

var metaTargets = []string{"Package", "Type", "Method", "Property", "Argument"}

// metaClass reads what only a meta class has.
func (d *classDocument) metaClass(class *Class) error {
	class.Cardinality = "One"
	if node := d.fields["Cardinality"]; node != nil {
		if class.Cardinality = node.Value; node.Value != "One" && node.Value != "Many" {
			return d.wrong(node, "the Cardinality of a meta class is One or Many, not %q", node.Value)
		}
	}
	if node := d.fields["Inherited"]; node != nil {
		inherited, ok := YAMLScalar(node.Value).(bool)
		if !ok {
			return d.wrong(node, "Inherited is true or false")
		}
		class.Inherited = inherited
	}
	class.Applies = metaTargets
	node := d.fields["Applies"]
	if node == nil {
		return nil
	}
	targets, err := d.names(node)
	if err != nil {
		return err
	}
	if slices.Contains(targets, "All") {
		return nil
	}
	for _, target := range targets {
		if !slices.Contains(metaTargets, target) {
			return d.wrong(node, "a meta class applies to All or to some of %s, not to %q", strings.Join(metaTargets, ", "), target)
		}
	}
	class.Applies = targets
	return nil
}

func (c *Classes) parents(ctx context.Context, class *Class, d *classDocument) ([]*Class, error) {
	if class.Name == rootClass {
		return nil, nil
	}
	written, where := []string{rootClass}, d.root
	if node := d.fields["Extends"]; node != nil {
		var err error
		if written, err = d.names(node); err != nil {
			return nil, err
		}
		where = node
	}
	var parents []*Class
	for _, name := range written {
		full, err := d.namespaces.resolve(name)
		if err != nil {
			return nil, d.wrong(where, "%v", err)
		}
		parent, err := c.visible(ctx, class.Package, full)
		if err != nil {
			return nil, &ReferenceError{d.position(where), fmt.Errorf("class %s (%s) extends %s: %w", class.Name, d.position(where), full, err)}
		}
		if !slices.Contains(parents, parent) {
			parents = append(parents, parent)
		}
	}
	return parents, nil
}

// imports finds the classes whose extension methods the class sees. One that is being read already is left out: its document names
// this class in turn.
func (c *Classes) imports(ctx context.Context, class *Class, d *classDocument) error {
	node := d.fields["Import"]
	if node == nil {
		return nil
	}
	written, err := d.names(node)
	if err != nil {
		return err
	}
	for _, name := range written {
		full, err := d.namespaces.resolve(name)
		if err != nil {
			return d.wrong(node, "%v", err)
		}
		if slices.ContainsFunc(c.reading, func(key string) bool { return parseTypeName(key).class == full }) {
			continue
		}
		imported, err := c.visible(ctx, class.Package, full)
		if err != nil {
			return &ReferenceError{d.position(node), fmt.Errorf("class %s (%s) imports %s: %w", class.Name, d.position(node), full, err)}
		}
		class.Imports = append(class.Imports, imported)
	}
	return nil
}

func lineage(class *Class) []*Class {
	line := []*Class{class}
	for i := 0; i < len(line); i++ {
		for _, parent := range line[i].Parents {
			if !slices.Contains(line, parent) {
				line = append(line, parent)
			}
		}
	}
	return line
}

// meta reads "{MetaClass: {properties}}", a name, or a list of these.
func (d *classDocument) meta(node *yaml.Node) ([]Meta, error) {
	if node == nil {
		return nil, nil
	}
	node, err := d.follow(node)
	if err != nil {
		return nil, err
	}
	items := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		items = node.Content
	}
	var all []Meta
	for _, item := range items {
		if item, err = d.follow(item); err != nil {
			return nil, err
		}
		if item.Kind == yaml.ScalarNode {
			name, err := d.namespaces.resolve(item.Value)
			if err != nil {
				return nil, d.wrong(item, "%v", err)
			}
			all = append(all, Meta{Class: name})
			continue
		}
		fields, err := d.document.fields(item)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			name, err := d.namespaces.resolve(f.key.Value)
			if err != nil {
				return nil, d.wrong(f.key, "%v", err)
			}
			values, err := d.template(f.value)
			if err != nil {
				return nil, err
			}
			properties, _ := literal(values).(map[string]any)
			all = append(all, Meta{name, properties, values})
		}
	}
	return all, nil
}

// attributes reads a map with certain keys.
func (d *classDocument) attributes(node *yaml.Node, what string, known ...string) (map[string]*yaml.Node, error) {
	fields, err := d.document.fields(node)
	if err != nil {
		return nil, err
	}
	found := map[string]*yaml.Node{}
	for _, f := range fields {
		if d.strict && !slices.Contains(known, f.key.Value) {
			return nil, d.wrong(f.key, "%s has no %q; it has %s", what, f.key.Value, strings.Join(known, ", "))
		}
		if found[f.key.Value], err = d.follow(f.value); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (d *classDocument) properties(class *Class) error {
	node := d.fields["Properties"]
	if node == nil || isNull(node) {
		return nil
	}
	fields, err := d.document.fields(node)
	if err != nil {
		return err
	}
	for _, f := range fields {
		keys, err := d.attributes(f.value, "the property "+f.key.Value, "Contract", "Usage", "Default", "Meta")
		if err != nil {
			return err
		}
		p := &Property{Name: f.key.Value, Class: class, Usage: In, Position: d.position(f.key)}
		if usage := keys["Usage"]; usage != nil {
			p.Usage = PropertyUsage(usage.Value)
			if !slices.Contains([]PropertyUsage{In, Out, InOut, Runtime, Const, Config, Static}, p.Usage) {
				return d.wrong(usage, "the Usage of a property is In, Out, InOut, Runtime, Const, Config or Static, not %q", usage.Value)
			}
		}
		if p.Contract, err = d.contract(keys["Contract"]); err != nil {
			return err
		}
		if p.Default, err = d.defaultOf(class, keys["Default"]); err != nil {
			return err
		}
		if p.Meta, err = d.meta(keys["Meta"]); err != nil {
			return err
		}
		class.Properties = append(class.Properties, p)
	}
	return nil
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && plainStyle(node) && YAMLScalar(node.Value) == nil
}

func (d *classDocument) methods(class *Class) error {
	for _, key := range []string{"Methods", "Workflow"} {
		node := d.fields[key]
		if node == nil || isNull(node) {
			continue
		}
		fields, err := d.document.fields(node)
		if err != nil {
			return err
		}
		for _, f := range fields {
			m, err := d.method(class, f)
			if err != nil {
				return err
			}
			if class.own(m.Name) != nil {
				return d.wrong(f.key, "the method %s is there twice", f.key.Value)
			}
			class.Methods = append(class.Methods, m)
		}
	}
	return nil
}

func (d *classDocument) method(class *Class, f field) (*Method, error) {
	name := methodName(f.key.Value)
	m := &Method{Name: name, fullName: class.Name + "." + name, Class: class, Usage: RuntimeMethod, Scope: Session, Position: d.position(f.key)}
	if isNull(f.value) {
		return m, nil
	}
	keys, err := d.attributes(f.value, "the method "+f.key.Value, "Arguments", "Body", "Usage", "Scope", "Meta", "Native")
	if err != nil {
		return nil, err
	}
	if err := d.methodUsage(m, keys); err != nil {
		return nil, err
	}
	if m.Arguments, err = d.arguments(class, keys["Arguments"]); err != nil {
		return nil, err
	}
	if m.Meta, err = d.meta(keys["Meta"]); err != nil {
		return nil, err
	}
	if body := keys["Body"]; body != nil && !isNull(body) {
		m.Body = body
		if m.code, err = d.block(body); err != nil {
			return nil, err
		}
	}
	if native := keys["Native"]; native != nil && class.Package.Embedded() {
		said, ok := YAMLScalar(native.Value).(bool)
		if !ok || !plainStyle(native) {
			return nil, d.wrong(native, "Native is true or false")
		}
		m.Native = said
	}
	if m.Native && m.Body != nil {
		return nil, d.wrong(f.key, "the method %s is native and has a Body as well", f.key.Value)
	}
	return m, nil
}

func (d *classDocument) methodUsage(m *Method, keys map[string]*yaml.Node) error {
	usage, scope := keys["Usage"], keys["Scope"]
	if scope != nil {
		m.Scope = Scope(scope.Value)
		if m.Scope != Session && m.Scope != Public {
			return d.wrong(scope, "the Scope of a method is Session or Public, not %q", scope.Value)
		}
	}
	if usage == nil {
		return nil
	}
	switch MethodUsage(usage.Value) {
	case RuntimeMethod, StaticMethod, ExtensionMethod:
		m.Usage = MethodUsage(usage.Value)
	case "Action":
		if scope != nil && m.Scope == Session {
			return d.wrong(scope, "an Action has the Scope Public")
		}
		m.Scope = Public
	default:
		return d.wrong(usage, "the Usage of a method is Runtime, Static, Extension or Action, not %q", usage.Value)
	}
	return nil
}

// arguments reads a list of maps with one entry each, or a map.
func (d *classDocument) arguments(class *Class, node *yaml.Node) ([]*Argument, error) {
	if node == nil || isNull(node) {
		return nil, nil
	}
	maps := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		maps = node.Content
	}
	var all []*Argument
	order := []ArgumentUsage{Standard, VarArgs, KwArgs}
	for _, one := range maps {
		fields, err := d.document.fields(one)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			keys, err := d.attributes(f.value, "the argument "+f.key.Value, "Contract", "Default", "Usage", "Meta")
			if err != nil {
				return nil, err
			}
			a := &Argument{Name: f.key.Value, Usage: Standard}
			if usage := keys["Usage"]; usage != nil {
				if a.Usage = ArgumentUsage(usage.Value); !slices.Contains(order, a.Usage) {
					return nil, d.wrong(usage, "the Usage of an argument is Standard, VarArgs or KwArgs, not %q", usage.Value)
				}
			}
			if len(all) > 0 {
				before := slices.Index(order, all[len(all)-1].Usage)
				if at := slices.Index(order, a.Usage); at < before || at == before && at > 0 {
					return nil, d.wrong(f.key, "Standard arguments come first, then at most one of VarArgs, then at most one of KwArgs")
				}
			}
			if a.Contract, err = d.contract(keys["Contract"]); err != nil {
				return nil, err
			}
			if a.Default, err = d.defaultOf(class, keys["Default"]); err != nil {
				return nil, err
			}
			if a.Meta, err = d.meta(keys["Meta"]); err != nil {
				return nil, err
			}
			all = append(all, a)
		}
	}
	return all, nil
}
