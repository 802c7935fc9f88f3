package check

import (
	"bytes"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/yaql"
)

// key is anything in a class file that may name a method or a property.
var key = regexp.MustCompile(`([\pL_.][\pL\pN_.]*)["']?[ \t]*:`)

// namesOf are the names of everything that is declared in packages, and more: a call of another name is certainly wrong.
func namesOf(packages catalog.Shelf) map[string]bool {
	names := map[string]bool{}
	for _, pkg := range packages {
		for _, file := range pkg.FileNames() {
			if !strings.HasPrefix(file, "Classes/") || path.Ext(file) != ".yaml" && path.Ext(file) != ".yml" {
				continue
			}
			text, _ := pkg.File(file)
			for _, found := range key.FindAllSubmatch(text, -1) {
				names[string(found[1])] = true
			}
		}
	}
	return names
}

// markDeprecated is the text of class files that declare deprecated methods.
var markDeprecated = []byte("Deprecated:")

// deprecatedOf finds the methods that are deprecated in each class of packages that declares them: the class of a call's object is not known.
func (c *checker) deprecatedOf(packages catalog.Shelf) map[string]string {
	deprecated := map[string]string{}
	for _, pkg := range packages {
		for _, name := range pkg.ClassNames() {
			_, text, err := pkg.ClassFile(name)
			if err != nil || !bytes.Contains(text, markDeprecated) {
				continue
			}
			class, err := c.classes.Class(c.ctx, name, "="+pkg.Version().String())
			if err != nil {
				continue // a finding where it is the package's
			}
			for _, method := range class.Methods {
				if instead := method.Deprecated(); instead != "" {
					deprecated[method.Name] = instead
				}
			}
		}
	}
	if len(deprecated) == 0 {
		return nil
	}
	for _, pkg := range packages {
		for _, name := range pkg.ClassNames() {
			c.keep(deprecated, pkg, name)
		}
	}
	return deprecated
}

// keep removes the names of methods that a class has and does not deprecate.
func (c *checker) keep(deprecated map[string]string, pkg *catalog.Package, name string) {
	_, text, err := pkg.ClassFile(name)
	if err != nil || !slices.ContainsFunc(slices.Collect(maps.Keys(deprecated)), func(method string) bool { return bytes.Contains(text, []byte(method)) }) {
		return
	}
	class, err := c.classes.Class(c.ctx, name, "="+pkg.Version().String())
	if err != nil {
		return
	}
	for _, method := range class.Methods {
		if method.Deprecated() == "" {
			delete(deprecated, method.Name)
		}
	}
}

// calls looks for functions and methods that nothing at hand has, and for templates that are given too few values.
func (w *walker) calls(at *yaml.Node, node yaql.Node) {
	yaql.Inspect(node, func(node yaql.Node) {
		switch n := node.(type) {
		case *yaql.Binary:
			w.bound(at, n)
		case *yaql.Call:
			if instead := w.deprecated[n.Name]; instead != "" {
				w.findings = append(w.findings, Finding{Deprecated, w.file, at.Line, at.Column + columns(at.Value, n.Offset()),
					n.Name + "() is deprecated, and a coming release does not have it: " + instead, true})
			}
			if !w.partial && !w.names[n.Name] && !w.class.HasFunction(n.Name) {
				w.findings = append(w.findings, Finding{UnknownCall, w.file, at.Line, at.Column + columns(at.Value, n.Offset()),
					"there is no function " + n.Name + "(), and no class at hand has a method of that name", true})
			}
		}
	})
}
