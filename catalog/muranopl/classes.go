package muranopl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"

	"github.com/burano/burano/internal/fault"
)

// rootClass is the root of all classes.
const rootClass = "io.murano.Object"

// Classes finds and reads classes, each once. It belongs to one run: it does not see later changes of the catalog.
type Classes struct {
	source  Source
	configs fs.FS
	parsed  *Parsed // class files; nil for unread ones

	mutex    sync.Mutex
	packages map[string][]Package // by name: used or fixed packages; they have precedence
	read     map[string]*Class    // by Type
	names    map[Package]map[string]bool
	reading  []string         // Types being read, to find circles
	refused  map[string]error // by Type: classes that inherit too much, and their subclasses
	// siblings are, by Type, classes that no manifest names, each with the class in whose file it was found: such a class is known as soon as
	// that file was read, as in Murano.
	siblings map[string]string
}

// Option is an option of NewClasses.
type Option func(*Classes)

// WithConfigs gives values for properties of usage Config, and defaults for others: files named by class, "<class>-<major>.<minor>.<patch>.json" before
// "<class>-<major>.<minor>.json" before "<class>-<major>.json" and, for major version 0, "<class>.json"; ".yaml" does as well. nil gives none.
func WithConfigs(files fs.FS) Option {
	return func(c *Classes) { c.configs = files }
}

// NewClasses makes a Classes over the packages of a source.
func NewClasses(source Source, options ...Option) *Classes {
	c := &Classes{source: source, packages: map[string][]Package{}, read: map[string]*Class{}, refused: map[string]error{}, names: map[Package]map[string]bool{}, siblings: map[string]string{}}
	for _, option := range options {
		option(c)
	}
	return c
}

// Class returns a class by its fully qualified name, of a version of its package that the spec admits ("" is any). The error is a
// fault of kind NotFound when there is none, a *DocumentError when its file is wrong.
func (c *Classes) Class(ctx context.Context, name, spec string) (*Class, error) {
	return c.named(ctx, typeName{class: name, version: spec})
}

// ClassOf is Class, of the package of that name ("" is any that declares the class).
func (c *Classes) ClassOf(ctx context.Context, pkg, name, spec string) (*Class, error) {
	return c.named(ctx, typeName{class: name, version: spec, pkg: pkg})
}

// OfType returns the class that an object's header names: "name", "name/version", "name@package" or "name/version@package".
func (c *Classes) OfType(ctx context.Context, text string) (*Class, error) {
	return c.named(ctx, parseTypeName(text))
}

// named returns the class of a type name as models write it.
func (c *Classes) named(ctx context.Context, name typeName) (*Class, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	pkg, err := c.packageOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return c.readClass(ctx, pkg, name.class)
}

func (c *Classes) packageOf(ctx context.Context, name typeName) (Package, error) {
	spec, err := ParseSpec(name.version)
	if err != nil {
		return nil, fault.New(fault.Invalid, "class %s: %w", name.class, err)
	}
	for _, known := range slices.Sorted(maps.Keys(c.packages)) {
		for _, pkg := range c.packages[known] {
			if (name.pkg == "" || name.pkg == pkg.FullName()) && spec.Admits(pkg.Version()) && c.declares(pkg, name.class) {
				return pkg, nil
			}
		}
	}
	var pkg Package
	if name.pkg != "" {
		pkg, err = c.source.PackageByName(ctx, name.pkg, name.version)
	} else {
		pkg, err = c.source.PackageForClass(ctx, name.class, name.version)
	}
	if err != nil {
		return nil, err
	}
	if pkg == nil || !slices.Contains(pkg.ClassNames(), name.class) {
		return nil, fault.New(fault.NotFound, "package %s declares no class %s", name.pkg, name.class)
	}
	return c.keep(pkg), nil
}

// keep remembers a package, so that its version goes before others.
func (c *Classes) keep(pkg Package) Package {
	for _, known := range c.packages[pkg.FullName()] {
		if known.Version().Equal(pkg.Version()) {
			return known
		}
	}
	c.packages[pkg.FullName()] = append(c.packages[pkg.FullName()], pkg)
	return pkg
}

// Fix gives versions of packages, by their names, precedence over all others that a model or a class admits as well. These are the versions of an
// environment's deployment, in ascending order: of several the highest goes first, as in Murano. A missing version is replaced by another.
func (c *Classes) Fix(ctx context.Context, versions map[string][]string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		for _, version := range slices.Backward(versions[name]) {
			pkg, err := c.source.PackageByName(ctx, name, "="+version)
			if fault.KindOf(err) == fault.NotFound {
				continue
			}
			if err != nil {
				return err
			}
			c.keep(pkg)
		}
	}
	return nil
}

// Versions returns the versions of the packages whose classes were read, by their names, in ascending order: the argument of the next Fix.
func (c *Classes) Versions() map[string][]string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	used := map[string]semver.Collection{}
	for _, class := range c.read {
		name, version := class.Package.FullName(), class.Package.Version()
		if !slices.ContainsFunc(used[name], version.Equal) {
			used[name] = append(used[name], version)
		}
	}
	versions := map[string][]string{}
	for name, list := range used {
		sort.Sort(list)
		for _, version := range list {
			versions[name] = append(versions[name], version.String())
		}
	}
	return versions
}

// extensionPrefix was once the prefix of classes in Python; Murano still finds a class that is written with it.
const extensionPrefix = "io.murano.extensions."

// visible returns a class that a class of the package names: one of the package itself, else of a required package.
func (c *Classes) visible(ctx context.Context, from Package, name string) (*Class, error) {
	class, err := c.seen(ctx, from, name)
	if short, old := strings.CutPrefix(name, extensionPrefix); old && fault.KindOf(err) == fault.NotFound {
		if found, err := c.seen(ctx, from, short); err == nil {
			return found, nil
		}
	}
	return class, err
}

func (c *Classes) seen(ctx context.Context, from Package, name string) (*Class, error) {
	if c.declares(from, name) {
		return c.readClass(ctx, from, name)
	}
	requires := from.Requires()
	required := make([]string, 0, len(requires)+1)
	for pkg := range requires {
		required = append(required, pkg)
	}
	slices.Sort(required)
	if _, said := requires["io.murano"]; !said {
		required = append(required, "io.murano")
	}
	var missing, searched []string
	for _, pkgName := range required {
		pkg, err := c.required(ctx, pkgName, RequirementSpec(requires[pkgName]))
		switch {
		case fault.KindOf(err) == fault.NotFound:
			missing = append(missing, pkgName)
		case err != nil:
			return nil, err
		case c.declares(pkg, name):
			return c.readClass(ctx, pkg, name)
		default:
			searched = append(searched, pkg.FullName()+"/"+pkg.Version().String())
		}
	}
	if len(missing) > 0 {
		return nil, fault.New(fault.NotFound, "class %s is not in package %s nor in those that it requires; of these there is no %s: add it to the catalog",
			name, from.FullName(), strings.Join(missing, ", "))
	}
	searched = append(searched, from.FullName()+"/"+from.Version().String())
	elsewhere := ""
	if other, err := c.source.PackageForClass(ctx, name, ""); err == nil && other != nil {
		elsewhere = fmt.Sprintf(": it is in package %s, so add that to Require", other.FullName())
	}
	return nil, &missingClass{
		fault.New(fault.NotFound, "class %s is neither in package %s nor in one that its manifest requires%s", name, from.FullName(), elsewhere),
		fmt.Sprintf("Class %q is not found in %s", name, strings.Join(searched, ", "))}
}

// missingClass is that no package has a class, in our words and in Murano's.
type missingClass struct {
	err       error
	violation string
}

func (e *missingClass) Error() string { return e.err.Error() }

func (e *missingClass) Unwrap() error { return e.err }

func (c *Classes) required(ctx context.Context, name, spec string) (Package, error) {
	admitted, err := ParseSpec(spec)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the requirement of package %s: %w", name, err)
	}
	for _, known := range c.packages[name] {
		if admitted.Admits(known.Version()) {
			return known, nil
		}
	}
	pkg, err := c.source.PackageByName(ctx, name, spec)
	if err != nil {
		return nil, err
	}
	return c.keep(pkg), nil
}

// readClass reads a class of a package, with its ancestors.
func (c *Classes) readClass(ctx context.Context, pkg Package, name string) (*Class, error) {
	probe := Class{Name: name, Package: pkg}
	key := probe.Type()
	if class := c.read[key]; class != nil {
		return class, nil
	}
	if err := c.refused[key]; err != nil {
		return nil, err
	}
	if slices.Contains(c.reading, key) {
		return nil, fault.New(fault.Invalid, "class %s extends itself, by way of %s", name, strings.Join(c.reading, ", "))
	}
	c.reading = append(c.reading, key)
	defer func() { c.reading = c.reading[:len(c.reading)-1] }()

	file, content, err := pkg.ClassFile(cmp.Or(c.siblings[key], name))
	if err != nil {
		return nil, fmt.Errorf("read class %s: %w", name, err)
	}
	class, err := c.build(ctx, pkg, name, file, content)
	if err != nil {
		if above, ok := errors.AsType[inherited](err); ok {
			c.refused[key] = above
			return nil, above
		}
		var document *DocumentError
		var syntax *SyntaxError
		if errors.As(err, &document) || errors.As(err, &syntax) && fault.KindOf(err) == 0 {
			return nil, fault.New(fault.Invalid, "package %s, %w", pkg.FullName(), err)
		}
		return nil, err
	}
	c.read[key] = class
	return class, nil
}

// declares reports whether the class is known to belong to the package.
func (c *Classes) declares(pkg Package, name string) bool {
	names := c.names[pkg]
	if names == nil {
		names = map[string]bool{}
		for _, one := range pkg.ClassNames() {
			names[one] = true
		}
		c.names[pkg] = names
	}
	if names[name] {
		return true
	}
	probe := Class{Name: name, Package: pkg}
	return c.siblings[probe.Type()] != ""
}

// beside records the classes in the file of a class that the manifest names.
func (c *Classes) beside(pkg Package, name string, others []string) {
	for _, other := range others {
		if probe := (Class{Name: other, Package: pkg}); !c.declares(pkg, other) {
			c.siblings[probe.Type()] = name
		}
	}
}

// Resolve returns the class that a name in a document of this class refers to.
func (c *Classes) Resolve(ctx context.Context, from *Class, name string) (*Class, error) {
	if known, ok := from.resolved.Load(name); ok && from.classes == c {
		return known.(*Class), nil
	}
	full, err := from.namespaces.resolve(name)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	class, err := c.visible(ctx, from.Package, full)
	if err == nil && from.classes == c {
		from.resolved.Store(name, class)
	}
	return class, err
}
