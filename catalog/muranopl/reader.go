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
// build makes a class of its file.
func (c *Classes) build(ctx context.Context, pkg Package, name, file string, content []byte) (*Class, error) {
	declared, err := c.parsed.read(name, file, content, pkg.Embedded())
	c.beside(pkg, name, declared.others)
	if err != nil {
		return nil, err
	}
	return c.complete(ctx, pkg, name, declared)
}

// declaration is a class file's declaration of one of its classes. It does not change: each run makes a class of its own from it.
type declaration struct {
	Declared
	properties []*Property // without their class, as the methods
	methods    []*Method
	others     []string // classes in the same file
	nodes      int64    // of its document, without the targets of aliases
}

// readDeclaration reads a class of a file; others are there even when it cannot be read.
func readDeclaration(name, file string, content []byte, embedded bool) (declaration, error) {
	documents, err := readDocuments(file, content, embedded)
	if err != nil {
		return declaration{}, err
	}
	read, others, err := declaring(documents, name, file)
	declared := declaration{others: others}
	if err == nil {
		err = read.declare(name, embedded, &declared)
	}
	return declared, err
}

// Parents are the parents that a class file gives a class of a package, by their full names; none of them is read. A class that names none
// extends io.murano.Object.
func Parents(name, file string, content []byte) ([]string, error) {
	documents, err := readDocuments(file, content, false)
	if err != nil {
		return nil, err
	}
	read, _, err := declaring(documents, name, file)
	if err != nil {
		return nil, err
	}
	extends, err := read.parents(name)
	return extends.names, err
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
	found := "no class is"
	if len(others) > 0 {
		found = "only " + strings.Join(others, ", ") + " is"
	}
	return nil, nil, &DocumentError{Position{file, 1, 1}, fmt.Sprintf("the manifest says that class %s is here, but %s", name, found), true}
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

// declare reads the document's declaration of the class of that name.
func (d *classDocument) declare(name string, embedded bool, to *declaration) (err error) {
	to.Position, to.namespaces, to.places = d.position(d.root), d.namespaces, d.places
	if to.extends, err = d.parents(name); err != nil {
		return err
	}
	if node := d.fields["Usage"]; node != nil {
		switch node.Value {
		case "Class":
		case "Meta":
			to.IsMeta = true
		default:
			return d.wrong(node, "the Usage of a class is Class or Meta, not %q", node.Value)
		}
	}
	if to.IsMeta {
		if err := d.metaClass(&to.Declared); err != nil {
			return err
		}
	}
	if to.Meta, err = d.meta(d.fields["Meta"]); err != nil {
		return err
	}
	if to.properties, err = d.properties(); err != nil {
		return err
	}
	if to.methods, err = d.methods(name, embedded); err != nil {
		return err
	}
	if to.imports, err = d.references(d.fields["Import"]); err != nil {
		return err
	}
	to.Flaws, to.nodes = *d.flaws, nodes(d.root)
	return nil
}

// complete makes the class, with its parents.
func (c *Classes) complete(ctx context.Context, pkg Package, name string, declared declaration) (*Class, error) {
	class := &Class{Name: name, Package: pkg, Declared: declared.Declared, classes: c}
	class.functions = sync.OnceValue(class.functionTable)
	class.speech = sync.OnceValue(class.dialect)
	class.base = sync.OnceValue(func() *yaql.Scope { return class.baseOf(class.functions()) })
	var err error
	if class.Parents, err = c.parents(ctx, class); err != nil {
		return nil, err
	}
	class.lineage = lineage(class)
	for _, property := range declared.properties {
		own := *property
		own.Class = class
		class.Properties = append(class.Properties, &own)
	}
	for _, method := range declared.methods {
		class.Methods = append(class.Methods, method.of(class))
	}
	if err := class.bounded(class.extends.position); err != nil {
		return nil, err
	}
	class.members = sync.OnceValue(class.gather)
	return class, c.imports(ctx, class)
}

var metaTargets = []string{"Package", "Type", "Method", "Property", "Argument"}

// metaClass reads the keys that only a meta class has.
func (d *classDocument) metaClass(class *Declared) error {
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

// parents are the classes that the class of that name extends. One that names none extends io.murano.Object.
func (d *classDocument) parents(name string) (references, error) {
	switch {
	case name == rootClass:
		return references{}, nil
	case d.fields["Extends"] == nil:
		return references{[]string{rootClass}, d.position(d.root)}, nil
	}
	return d.references(d.fields["Extends"])
}

// references are the classes that a node names; none when there is no node.
func (d *classDocument) references(node *yaml.Node) (references, error) {
	if node == nil {
		return references{}, nil
	}
	written, err := d.names(node)
	if err != nil {
		return references{}, err
	}
	found := references{make([]string, len(written)), d.position(node)}
	for i, name := range written {
		if found.names[i], err = d.namespaces.resolve(name); err != nil {
			return references{}, d.wrong(node, "%v", err)
		}
	}
	return found, nil
}

func (c *Classes) parents(ctx context.Context, class *Class) ([]*Class, error) {
	var parents []*Class
	for _, full := range class.extends.names {
		parent, err := c.visible(ctx, class.Package, full)
		if err != nil {
			where := class.extends.position
			return nil, &ReferenceError{where, fmt.Errorf("class %s (%s) extends %s: %w", class.Name, where, full, err)}
		}
		if !slices.Contains(parents, parent) {
			parents = append(parents, parent)
		}
	}
	return parents, nil
}

// imports finds the classes whose extension methods the class sees. One that is being read already is left out: its document names
// this class in turn.
func (c *Classes) imports(ctx context.Context, class *Class) error {
	for _, full := range class.imports.names {
		if slices.ContainsFunc(c.reading, func(key string) bool { return parseTypeName(key).class == full }) {
			continue
		}
		imported, err := c.visible(ctx, class.Package, full)
		if err != nil {
			where := class.imports.position
			return &ReferenceError{where, fmt.Errorf("class %s (%s) imports %s: %w", class.Name, where, full, err)}
		}
		class.Imports = append(class.Imports, imported)
	}
	return nil
}

func lineage(class *Class) []*Class {
	line, seen := []*Class{class}, map[*Class]bool{class: true}
	for i := 0; i < len(line) && i <= maxAncestors; i++ {
		for _, parent := range line[i].Parents {
			if !seen[parent] {
				seen[parent] = true
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

func (d *classDocument) properties() (all []*Property, err error) {
	node := d.fields["Properties"]
	if node == nil || isNull(node) {
		return nil, nil
	}
	fields, err := d.document.fields(node)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		keys, err := d.attributes(f.value, "the property "+f.key.Value, "Contract", "Usage", "Default", "Meta")
		if err != nil {
			return nil, err
		}
		p := &Property{Name: f.key.Value, Usage: In, Position: d.position(f.key)}
		if usage := keys["Usage"]; usage != nil {
			p.Usage = PropertyUsage(usage.Value)
			if !slices.Contains([]PropertyUsage{In, Out, InOut, Runtime, Const, Config, Static}, p.Usage) {
				return nil, d.wrong(usage, "the Usage of a property is In, Out, InOut, Runtime, Const, Config or Static, not %q", usage.Value)
			}
		}
		if p.Contract, err = d.contract(keys["Contract"]); err != nil {
			return nil, err
		}
		if p.Default, err = d.defaultOf(keys["Default"]); err != nil {
			return nil, err
		}
		if p.Meta, err = d.meta(keys["Meta"]); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && plainStyle(node) && YAMLScalar(node.Value) == nil
}

func (d *classDocument) methods(class string, embedded bool) (all []*Method, err error) {
	for _, key := range []string{"Methods", "Workflow"} {
		node := d.fields[key]
		if node == nil || isNull(node) {
			continue
		}
		fields, err := d.document.fields(node)
		if err != nil {
			return nil, err
		}
		for _, f := range fields {
			m, err := d.method(class, embedded, f)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(all, func(other *Method) bool { return other.Name == m.Name }) {
				return nil, d.wrong(f.key, "the method %s is there twice", f.key.Value)
			}
			all = append(all, m)
		}
	}
	return all, nil
}

func (d *classDocument) method(class string, embedded bool, f field) (*Method, error) {
	name := methodName(f.key.Value)
	m := &Method{Name: name, fullName: class + "." + name, Usage: RuntimeMethod, Scope: Session, Position: d.position(f.key)}
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
	if m.Arguments, err = d.arguments(keys["Arguments"]); err != nil {
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
	if native := keys["Native"]; native != nil && embedded {
		said, ok := YAMLScalar(native.Value).(bool)
		m.Prompt = native.Value == "prompt"
		if !ok && !m.Prompt || !plainStyle(native) {
			return nil, d.wrong(native, "Native is true, false or prompt")
		}
		m.Native = said || m.Prompt
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
func (d *classDocument) arguments(node *yaml.Node) ([]*Argument, error) {
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
			if a.Default, err = d.defaultOf(keys["Default"]); err != nil {
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
