package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pastTheDoor are the calls that read or compile any amount of input. internal/door has their bounded forms.
var pastTheDoor = map[string]string{
	"io.ReadAll": "door.ReadAll", "yaml.Unmarshal": "door.YAML", "yaml.NewDecoder": "door.NewYAML", "regexp.Compile": "door.Pattern",
	"jsonschema.NewCompiler": "a child process of internal/door", "template.New": "a child process of internal/door",
}

// ofOurOwn are the files that may call them, with the reason: their input is our own, or comes from the user of the machine.
var ofOurOwn = map[string]string{
	"catalog/charts/chart.go":             "schemas are compiled in a child process",
	"cmd/burano/author/package_create.go": "an author's own folder",
	"cmd/burano/server/settings.go":       "the operator's settings",
	"cmd/burano/operator/setup.go":        "the operator's own file",
	"cmd/burano/author/yaql.go":           "the user's own expression and data",
	"nodes/access/userdata.go":            "parts of user data that was bounded as a property of the model",
	"orchestrator/model.go":               "the embedded schema of JSON patches",
	"orchestrator/openstack/retry.go":     "the request's own body, and answers behind a bound of the transport",
	"orchestrator/openstack/container.go": "objects of Burano's own snapshots, behind a bound of the transport",
	"orchestrator/secret/ring.go":         "the operator's key file",
	"web/api/openapi.go":                  "the embedded description",
	"web/client/documents.go":             "the user's own standard input",
	"web/policy/policy.go":                "the operator's rules",

	"cmd/burano/operator/image_upload.go":       "lists of the user's own project",
	"cmd/burano/author/package_images.go":       "lists of the user's own project",
	"orchestrator/openstack/pages.go":           "lists behind a bound of the transport",
	"orchestrator/registration/registration.go": "the operator's own lists",
}

// limited reports whether an argument has a bound by itself.
func limited(argument ast.Expr) bool {
	call, is := argument.(*ast.CallExpr)
	if !is {
		return false
	}
	name := called(call)
	return name == "io.LimitReader" || name == "http.MaxBytesReader" || strings.HasPrefix(name, "door.")
}

// called is the name of a called function of a package, like io.ReadAll; "" for other calls.
func called(call *ast.CallExpr) string {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return ""
	}
	of, is := selector.X.(*ast.Ident)
	if !is {
		return ""
	}
	return of.Name + "." + selector.Sel.Name
}

// callsPastTheDoor lists the unbounded calls of a file, as FILE:LINE: CALL.
func callsPastTheDoor(t *testing.T, name string, source any) (found []string) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(node ast.Node) bool {
		call, is := node.(*ast.CallExpr)
		if !is {
			return true
		}
		if selector, is := call.Fun.(*ast.SelectorExpr); is && selector.Sel.Name == "AllPages" {
			found = append(found, fmt.Sprintf("line %d: AllPages (use allPages of orchestrator/openstack)", files.Position(call.Pos()).Line))
		}
		instead := pastTheDoor[called(call)]
		if instead != "" && !(len(call.Args) > 0 && limited(call.Args[0])) {
			found = append(found, fmt.Sprintf("line %d: %s (use %s)", files.Position(call.Pos()).Line, called(call), instead))
		}
		return true
	})
	return found
}

// Input from a tenant, a package, a machine or a stranger is read and compiled through internal/door only.
func TestNothingComesInPastTheDoor(t *testing.T) {
	const root = "../.."
	used := map[string]bool{}
	for _, folder := range []string{"catalog", "cmd/burano", "gateway", "internal", "nodes", "orchestrator", "web"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			name := entry.Name()
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (name == "node_modules" || name == "door" || strings.HasSuffix(name, "test")):
				return fs.SkipDir
			case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			found := callsPastTheDoor(t, path, nil)
			if len(found) == 0 {
				return nil
			}
			used[relative] = true
			assert.NotEmptyf(t, ofOurOwn[relative], "%s reads or compiles what may come from a stranger without a bound: %s", relative, strings.Join(found, "; "))
			return nil
		}))
	}
	for file := range ofOurOwn {
		require.Truef(t, used[file], "%s has no such call any more: take it off the list", file)
	}
}

func TestCallsPastTheDoorAreSeen(t *testing.T) {
	const head = "package p\nfunc f() {\n"
	require.Len(t, callsPastTheDoor(t, "p.go", head+"io.ReadAll(body); yaml.Unmarshal(text, &v); regexp.Compile(p); list.AllPages(ctx)\n}"), 4)
	require.Empty(t, callsPastTheDoor(t, "p.go", head+"io.ReadAll(io.LimitReader(body, 5)); door.YAML(text, &v, door.Bounds{}); regexp.MustCompile(`a`)\n}"))
}
