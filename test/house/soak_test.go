package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSoakRunsWhatItAloneRuns checks that `make soak` names each end-to-end test that is meant for it, or has parts that are.
func TestSoakRunsWhatItAloneRuns(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	_, recipe, found := strings.Cut(string(makefile), "\nsoak:")
	require.True(t, found)
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	var patterns []*regexp.Regexp
	for _, one := range regexp.MustCompile(`(?m)BURANO_SOAK=1 .* -run '?([^' ]+)'? \./test/e2e$`).FindAllStringSubmatch(recipe, -1) {
		pattern, err := regexp.Compile(strings.ReplaceAll(one[1], "$$", "$"))
		require.NoError(t, err)
		patterns = append(patterns, pattern)
	}
	require.NotEmpty(t, patterns)
	files, err := filepath.Glob("../e2e/*_test.go")
	require.NoError(t, err)
	known := 0
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		for _, declared := range parsed.Decls {
			function, is := declared.(*ast.FuncDecl)
			if !is || !strings.HasPrefix(function.Name.Name, "Test") || !calls(function, "soakOnly", "soaking", "inSoak") {
				continue
			}
			known++
			name := function.Name.Name
			runs := false
			for _, pattern := range patterns {
				runs = runs || pattern.MatchString(name)
			}
			require.Truef(t, runs, "%s is for `make soak` alone, which does not run it: name it in the Makefile", name)
		}
	}
	require.NotZero(t, known)
}

func calls(function *ast.FuncDecl, names ...string) (found bool) {
	ast.Inspect(function, func(node ast.Node) bool {
		if call, is := node.(*ast.CallExpr); is {
			called, is := call.Fun.(*ast.Ident)
			found = found || is && slices.Contains(names, called.Name)
		}
		return !found
	})
	return found
}
