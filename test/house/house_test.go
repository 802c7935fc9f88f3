// Package house holds the rules of the house: which folder may import which.
package house

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/burano/burano"

// mayImport lists for each folder the other folders of ours that its packages may import directly. The longest matching folder counts; unnamed ones are
// forbidden. A folder may always import packages of its own.
var mayImport = map[string][]string{
	"cmd/burano":          {"catalog", "gateway", "images", "internal", "nodes", "orchestrator", "web"},
	"cmd/localcloud":      {"test/localcloud", "internal"},
	"web":                 {"orchestrator", "catalog", "internal"},
	"web/client":          {"catalog", "internal"}, // others use it: nothing of the server comes with it
	"orchestrator":        {"catalog", "nodes", "gateway/route", "gateway/traffic", "internal"},
	"nodes":               {"gateway/route", "gateway/seal", "gateway/traffic", "internal/door", "internal/memory", "internal/panics", "internal/wait"},
	"gateway":             {"internal/door", "internal/wait"},
	"catalog":             {"internal"},
	"images":              {},
	"internal/blackbox":   {},
	"internal/database":   {"internal/identity", "internal/turns", "internal/wait"},
	"internal/door":       {"internal/turns"},
	"internal/envelope":   {"internal/door", "internal/sensitive"},
	"internal/fault":      {},
	"internal/identity":   {},
	"internal/requestid":  {},
	"internal/panics":     {},
	"internal/lists":      {},
	"internal/memory":     {},
	"internal/quota":      {"internal/database", "internal/fault"},
	"internal/scratch":    {"internal/door", "internal/fault", "internal/wait"},
	"internal/sensitive":  {},
	"internal/turns":      {},
	"internal/version":    {},
	"internal/wait":       {},
	"test":                {"catalog", "gateway", "images", "internal", "nodes", "orchestrator", "web", "cmd"},
	"catalog/yaql":        {"internal/door"},
	"catalog/hot":         {"catalog/yaql", "internal/door", "internal/fault"},
	"catalog/muranopl":    {"catalog/hot", "catalog/yaql", "internal/door", "internal/fault", "internal/lists", "internal/panics", "internal/sensitive", "internal/wait"},
	"orchestrator/secret": {"internal"},
}

type goPackage struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestEveryImportIsAllowed(t *testing.T) {
	for _, p := range packages(t) {
		folder := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		rule := folderOf(folder)
		require.NotEmptyf(t, rule, "%s lies in a folder that the house does not know: give it a rule in mayImport", folder)
		for _, imported := range p.Imports {
			require.Truef(t, allowed(rule, imported), "%s imports %s, which %s may not", folder, imported, rule)
		}
		for _, imported := range append(p.TestImports, p.XTestImports...) {
			require.Falsef(t, strings.HasPrefix(imported, module+"/test/") && !strings.HasPrefix(folder, "test"),
				"a test in %s imports %s: what needs the local cloud lives under test/", folder, imported)
		}
	}
}

func TestTheRulesAreHeld(t *testing.T) {
	require.True(t, allowed("web", module+"/orchestrator/store"))
	require.True(t, allowed("orchestrator", module+"/gateway/route"))
	require.True(t, allowed("gateway", module+"/gateway/route"))
	require.True(t, allowed("gateway", "github.com/labstack/echo/v4"))
	require.False(t, allowed("orchestrator", module+"/gateway/publish"))
	require.False(t, allowed("orchestrator", module+"/web/api"))
	require.False(t, allowed("nodes", module+"/internal/fault"))
	require.False(t, allowed("catalog", module+"/orchestrator"))
	require.False(t, allowed("web/client", module+"/orchestrator/store"))
	require.Equal(t, "catalog/muranopl", folderOf("catalog/muranopl"))
	require.Equal(t, "catalog", folderOf("catalog/store"))
	require.Empty(t, folderOf("common"))
}

func allowed(rule, imported string) bool {
	if imported != module && !strings.HasPrefix(imported, module+"/") {
		return true
	}
	target := strings.TrimPrefix(strings.TrimPrefix(imported, module), "/")
	for _, folder := range append([]string{rule}, mayImport[rule]...) {
		if target == folder || strings.HasPrefix(target, folder+"/") {
			return true
		}
	}
	return false
}

// folderOf returns the longest folder with a rule that holds this one, or "".
func folderOf(folder string) string {
	for ; folder != "." && folder != ""; folder = path.Dir(folder) {
		if _, ok := mayImport[folder]; ok {
			return folder
		}
	}
	return ""
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	look(t, "../..")
	command := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	require.NoError(t, err, complaints.String())
	var all []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}

// look opens the folders of the code. Go's cache of test results does not cover the files that `go list` reads: otherwise a change elsewhere would get a
// cached result.
func look(t *testing.T, root string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if name := entry.Name(); file != root && entry.IsDir() && (strings.HasPrefix(name, ".") || name == "build" || name == "node_modules" || name == "dist") {
			return fs.SkipDir
		}
		return err
	}))
}
