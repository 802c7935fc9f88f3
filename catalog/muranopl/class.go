package muranopl

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
)

// PropertyUsage defines the source of a property's value and whether it is stored with the model.
type PropertyUsage string

// The usages of properties.
const (
	In      PropertyUsage = "In"      // from the model, read only
	Out     PropertyUsage = "Out"     // written by methods, stored
	InOut   PropertyUsage = "InOut"   // from the model, written by methods, stored
	Runtime PropertyUsage = "Runtime" // written by methods, not stored
	Const   PropertyUsage = "Const"   // from the model when first loaded, read only
	Config  PropertyUsage = "Config"  // from the operator's class configuration, not stored
	Static  PropertyUsage = "Static"  // of the class and not of the object, not stored
)

// Writable reports whether methods may write a property of this usage.
func (u PropertyUsage) Writable() bool {
	return u == Out || u == InOut || u == Runtime || u == Static || u == Config
}

// kept reports whether the model holds values of this usage.
func (u PropertyUsage) kept() bool { return u == In || u == Out || u == InOut || u == Const }

// MethodUsage is the kind of a method's receiver.
type MethodUsage string

// The usages of methods. A method of usage Action (up to format 1.3) becomes one of usage RuntimeMethod and scope Public.
const (
	RuntimeMethod   MethodUsage = "Runtime"   // an object
	StaticMethod    MethodUsage = "Static"    // the class
	ExtensionMethod MethodUsage = "Extension" // any value, its first argument
)

// Scope defines the callers of a method.
type Scope string

// The scopes of methods.
const (
	Session Scope = "Session" // only from other methods
	Public  Scope = "Public"  // also through the API: an action
)

// ArgumentUsage is the form of an argument in a call.
type ArgumentUsage string

// The usages of arguments.
const (
	Standard ArgumentUsage = "Standard"
	VarArgs  ArgumentUsage = "VarArgs" // all further arguments, as a list
	KwArgs   ArgumentUsage = "KwArgs"  // all further named arguments, as a map
)

// Position is a place in a class file.
type Position struct {
	File         string
	Line, Column int // from 1
}

func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Meta is one piece of metadata: an instance of a meta class as written. In Properties expressions are texts.
type Meta struct {
	Class      string
	Properties map[string]any
	values     template // the properties with their expressions; nil: none
}

// Property is a property as one class declares it.
type Property struct {
	Name     string
	Class    *Class // declares it
	Usage    PropertyUsage
	Contract *Contract
	Default  *Default // nil: none
	Meta     []Meta
	Position Position
}

// Argument is one argument of a method.
type Argument struct {
	Name     string
	Usage    ArgumentUsage
	Contract *Contract
	Default  *Default // nil: none
	Meta     []Meta
}

// Method is a method as one class declares it.
type Method struct {
	Name      string
	Class     *Class // declares it
	Usage     MethodUsage
	Scope     Scope
	Arguments []*Argument
	// Native marks a body in Go; only in embedded packages.
	Native bool
	// Prompt marks a body in Go that hardly waits, so that other strands do not run meanwhile: "Native: prompt".
	Prompt bool
	// Body is the body as written, nil when there is none.
	Body     *yaml.Node
	code     block // the body as it is run
	Meta     []Meta
	Position Position

	// The metadata Synchronize; read at first use.
	synchronised sync.Once
	onThis       bool
	onArgs       []string
	fullName     string
}

// of is the method as one of a class of that document.
func (m *Method) of(class *Class) *Method {
	return &Method{Name: m.Name, fullName: m.fullName, Class: class, Usage: m.Usage, Scope: m.Scope, Arguments: m.Arguments, Native: m.Native, Prompt: m.Prompt,
		Body: m.Body, code: m.code, Meta: m.Meta, Position: m.Position}
}

// HasBody reports whether the method has a body in MuranoPL.
func (m *Method) HasBody() bool { return m.Body != nil }

// FullName is class and method, as errors name it.
func (m *Method) FullName() string {
	if m.fullName != "" {
		return m.fullName
	}
	return m.Class.Name + "." + m.Name
}

// Declared is a class file's own declaration of a class. It does not change.
type Declared struct {
	// Flaws are faults of its file that leave the class usable; there are none in embedded packages.
	Flaws []Flaw
	Meta  []Meta
	// IsMeta marks a class whose instances are metadata and not objects.
	IsMeta bool
	// Cardinality, Applies and Inherited describe a meta class: One or Many on one target, the kinds of targets (Package, Type, Method, Property,
	// Argument), and whether descendants have it as well.
	Cardinality string
	Applies     []string
	Inherited   bool
	Position    Position

	extends, imports references
	namespaces       namespaces
	places           places // of the expressions in its document
}

// references are other classes that a class names, by their full names, and where it does.
type references struct {
	names    []string
	position Position
}

// Class is a class of a certain version of a package. It does not change once it is there, but for its static properties.
type Class struct {
	Name       string // fully qualified
	Package    Package
	Parents    []*Class // as declared; all but io.murano.Object have at least one
	Properties []*Property
	Methods    []*Method
	// Imports are the classes whose extension methods its methods see.
	Imports []*Class
	Declared

	lineage   []*Class               // itself, then its ancestors, breadth first, each once
	members   func() members         // gathered when they are first asked for
	classes   *Classes               // that it is one of
	functions func() *yaql.Functions // of its expressions; made when first wanted

	speech func() *yaql.Dialect // of its expressions; made when first wanted
	base   func() *yaql.Scope   // of its expressions, without data; made when first wanted

	resolved sync.Map // names in its document → *Class, as far as they were found

	staticMutex sync.Mutex
	statics     map[string]any
}

// Type is how a model names the class: "name/version@package".
func (c *Class) Type() string {
	return c.Name + "/" + c.Package.Version().String() + "@" + c.Package.FullName()
}

// Lineage is the class and its ancestors, breadth first, each once.
func (c *Class) Lineage() []*Class { return slices.Clone(c.lineage) }

// Is reports whether the class or an ancestor has that fully qualified name.
func (c *Class) Is(name string) bool {
	return slices.ContainsFunc(c.lineage, func(a *Class) bool { return a.Name == name })
}

// IsEmbedded reports whether the class is the class of that name of an embedded package, or extends it. Bodies in Go ask this: a class of another
// package that merely has the name is not theirs.
func (c *Class) IsEmbedded(name string) bool {
	return slices.ContainsFunc(c.lineage, func(a *Class) bool { return a.Name == name && a.Package.Embedded() })
}

// Property returns the declarations of a property in the class and its ancestors, most derived first; nil when there is none. The list
// is not to be changed.
func (c *Class) Property(name string) []*Property { return c.members().properties[name] }

// PropertyNames lists the properties of the class and its ancestors: those of the farthest ancestor first, in the order of writing. The list must not be
// changed.
func (c *Class) PropertyNames() []string { return c.members().names }

// members are the declarations of a class and its ancestors, by name.
type members struct {
	properties map[string][]*Property // most derived first
	names      []string               // of properties
	methods    map[string][]*Method   // the nearest
	reflected  []any                  // methods as reflection lists them: methodInfo
}

const (
	// maxAncestors and maxMembers limit the inheritance of a class: without them the classes of one package of 5 MB have billions of members together. The
	// embedded classes have at most nine ancestors and 200 members.
	maxAncestors = 128
	maxMembers   = 4096
)

// inherited is why a class is refused that inherits more than a class may.
type inherited struct{ error }

func (e inherited) Unwrap() error { return e.error }

// bounded refuses a class that has too many ancestors, or too many members together with them.
func (c *Class) bounded(where Position) error {
	if len(c.lineage) > maxAncestors+1 {
		return inherited{fault.New(fault.Invalid, "class %s (%s) has more than %d ancestors: a class may extend so many, its parents' own counted", c.Name, where, maxAncestors)}
	}
	members := 0
	for _, a := range c.lineage {
		members += len(a.Properties) + len(a.Methods)
	}
	if members > maxMembers {
		return inherited{fault.New(fault.Invalid, "class %s (%s) has %d properties and methods, its ancestors' counted; %d are allowed", c.Name, where, members, maxMembers)}
	}
	return nil
}

// gather finds the members of a class that is read.
func (c *Class) gather() members {
	m := members{properties: map[string][]*Property{}, methods: map[string][]*Method{}, reflected: []any{}}
	for _, a := range c.lineage {
		for _, p := range a.Properties {
			m.properties[p.Name] = append(m.properties[p.Name], p)
		}
		for _, method := range a.Methods {
			if m.methods[method.Name] != nil {
				continue
			}
			nearest := c.closest(method.Name)
			m.methods[method.Name] = nearest
			if strings.HasPrefix(method.Name, ".") {
				continue
			}
			for _, one := range nearest {
				m.reflected = append(m.reflected, methodInfo{one})
			}
		}
	}
	seen := map[string]bool{}
	for _, a := range slices.Backward(c.lineage) {
		for _, p := range a.Properties {
			if !seen[p.Name] {
				seen[p.Name] = true
				m.names = append(m.names, p.Name)
			}
		}
	}
	return m
}

// Method finds a method of the class or of its ancestors: the nearest declaration on each line of descent. Two different ones are ambiguous; (nil, nil)
// means that there is none.
func (c *Class) Method(name string) (*Method, error) {
	found := c.nearest(methodName(name))
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	owners := make([]string, len(found))
	for i, m := range found {
		owners[i] = m.Class.Name
	}
	return nil, fmt.Errorf("method %s of class %s is ambiguous: %s each have one; declare it in %s to say which is meant",
		name, c.Name, strings.Join(owners, " and "), c.Name)
}

// nearest are the declarations of a method that are found first on each line of descent. The list is not to be changed.
func (c *Class) nearest(name string) []*Method { return c.members().methods[name] }

// closest walks up the lines of descent and stops each line at the first declaration.
func (c *Class) closest(name string) []*Method {
	if own := c.own(name); own != nil {
		return []*Method{own}
	}
	if len(c.Parents) == 1 {
		return c.Parents[0].nearest(name) // which the ancestors know
	}
	var found []*Method
	for _, parent := range c.Parents {
		for _, m := range parent.nearest(name) {
			if !slices.Contains(found, m) {
				found = append(found, m)
			}
		}
	}
	// The nearest first; of equally near ones the one whose class comes first.
	slices.SortStableFunc(found, func(a, b *Method) int { return slices.Index(c.lineage, a.Class) - slices.Index(c.lineage, b.Class) })
	// A method that another found one overrides is not a rival.
	return slices.DeleteFunc(slices.Clone(found), func(m *Method) bool {
		return slices.ContainsFunc(found, func(other *Method) bool {
			return other != m && slices.Contains(other.Class.lineage[1:], m.Class)
		})
	})
}

// nearestProperties are the declarations of a property that no other overrides.
func (c *Class) nearestProperties(name string) []*Property {
	declared := c.Property(name)
	return slices.DeleteFunc(slices.Clone(declared), func(p *Property) bool {
		return slices.ContainsFunc(declared, func(other *Property) bool {
			return other != p && slices.Contains(other.Class.lineage[1:], p.Class)
		})
	})
}

func (c *Class) own(name string) *Method {
	for _, m := range c.Methods {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// PublicMethods lists the methods, static ones too, that may be called through the API, nearest declarations only, ancestors' first.
func (c *Class) PublicMethods() []*Method {
	var public []*Method
	seen := map[string]bool{}
	for _, a := range slices.Backward(c.lineage) {
		for _, m := range a.Methods {
			if seen[m.Name] || strings.HasPrefix(m.Name, ".") {
				continue
			}
			seen[m.Name] = true
			if nearest := c.nearest(m.Name); len(nearest) == 1 && nearest[0].Scope == Public && nearest[0].Usage != ExtensionMethod {
				public = append(public, nearest[0])
			}
		}
	}
	return public
}

// methodName gives the two life-cycle methods their one name each.
func methodName(name string) string {
	switch name {
	case "initialize":
		return ".init"
	case "destroy":
		return ".destroy"
	}
	return name
}
