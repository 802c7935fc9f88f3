package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingIsDemandedOfTheClock refuses upper limits on elapsed time: a busy machine exceeds them. A test counts steps, bytes or requests, waits for a
// condition, or has a clock of its own (testing/synctest). How long requests went unanswered (`longest`) is measured in test/e2e: users feel that.
func TestNothingIsDemandedOfTheClock(t *testing.T) {
	files := 0
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "build" || entry.Name() == "node_modules" || entry.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../bench/"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		files++
		for _, declared := range parsed.Decls {
			function, is := declared.(*ast.FuncDecl)
			if !is || function.Body == nil || selects(function, "synctest", "Test") {
				continue
			}
			ast.Inspect(function, func(node ast.Node) bool {
				call, is := node.(*ast.CallExpr)
				if is && isUpperBound(call) && selects(call, "time", "Since") && !waits(function) {
					t.Errorf("%s: %s has an upper limit on elapsed time", path, function.Name.Name)
				}
				return true
			})
		}
		return nil
	}))
	require.NotZero(t, files)
}

// isUpperBound reports whether a call is testify's Less or LessOrEqual.
func isUpperBound(call *ast.CallExpr) bool {
	selected, is := call.Fun.(*ast.SelectorExpr)
	return is && strings.HasPrefix(selected.Sel.Name, "Less")
}

// waits reports whether a function polls in a loop, which may end at a time.
func waits(function *ast.FuncDecl) bool { return selects(function, "time", "After") }

func selects(in ast.Node, room, name string) (found bool) {
	ast.Inspect(in, func(node ast.Node) bool {
		if selected, is := node.(*ast.SelectorExpr); is {
			of, is := selected.X.(*ast.Ident)
			found = found || is && of.Name == room && selected.Sel.Name == name
		}
		return !found
	})
	return found
}
