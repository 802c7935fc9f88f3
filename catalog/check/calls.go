package check

import (
	"path"
	"regexp"
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

// calls looks for functions and methods that nothing at hand has, and for templates that are given too few values.
func (w *walker) calls(at *yaml.Node, node yaql.Node) {
	yaql.Inspect(node, func(node yaql.Node) {
		switch n := node.(type) {
		case *yaql.Binary:
			w.bound(at, n)
		case *yaql.Call:
			if !w.partial && !w.names[n.Name] && !w.class.HasFunction(n.Name) {
				w.findings = append(w.findings, Finding{UnknownCall, w.file, at.Line, at.Column + columns(at.Value, n.Offset()),
					"there is no function " + n.Name + "(), and no class at hand has a method of that name", true})
			}
		}
	})
}
