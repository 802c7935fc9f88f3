package house

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Bounds inside of a package. testdata/sizes.txt lists the exceptions; these only shrink.
const (
	mostMethods = 30  // of a type
	mostLines   = 100 // of a function, from its first line to its last
	mostFiles   = 25  // of a package, without tests
)

// exceptions is the file of the sizes that are above the bounds: a line has kind, name, size, and may have a reason.
const exceptions = "testdata/sizes.txt"

// TestSizesInsideOfPackagesShrink checks the bounds. It fails where a size is above its bound and not listed, larger than listed, or smaller: in the last
// case the list needs the new size, so that nothing grows back. -update writes the smaller sizes.
func TestSizesInsideOfPackagesShrink(t *testing.T) {
	sizes := sizesInside(t, "../..")
	listed := readExceptions(t)
	for name, size := range sizes {
		known, is := listed[name]
		bound := map[string]int{"methods": mostMethods, "lines": mostLines, "files": mostFiles}[kindOf(name)]
		switch {
		case size <= bound && is && !*update:
			t.Errorf("%s has %d, within the bound of %d: remove it from %s", name, size, bound, exceptions)
		case size <= bound:
			delete(listed, name)
		case !is:
			t.Errorf("%s has %d, at most %d are allowed: divide it by its ideas", name, size, bound)
		case size > known.size:
			t.Errorf("%s has %d, it had %d: what is above the bound of %d only shrinks", name, size, known.size, bound)
		case size < known.size && !*update:
			t.Errorf("%s has %d, %s lists %d: write the smaller size (-update)", name, size, exceptions, known.size)
		default:
			known.size = size
			listed[name] = known
		}
	}
	for name := range listed {
		if _, there := sizes[name]; !there {
			if !*update {
				t.Errorf("%s lists %s, which is not there", exceptions, name)
			}
			delete(listed, name)
		}
	}
	if *update && !t.Failed() {
		writeExceptions(t, listed)
	}
}

type exception struct {
	size   int
	reason string
}

func kindOf(name string) string { kind, _, _ := strings.Cut(name, " "); return kind }

func readExceptions(t *testing.T) map[string]exception {
	t.Helper()
	file, err := os.Open(exceptions)
	require.NoError(t, err)
	defer file.Close()
	listed := map[string]exception{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if text := lines.Text(); text != "" && text[0] != '#' {
			parts := strings.SplitN(text, " ", 4)
			require.GreaterOrEqual(t, len(parts), 3, text)
			size, err := strconv.Atoi(parts[2])
			require.NoError(t, err, text)
			listed[parts[0]+" "+parts[1]] = exception{size, strings.Join(parts[3:], "")}
		}
	}
	return listed
}

func writeExceptions(t *testing.T, listed map[string]exception) {
	t.Helper()
	text, err := os.ReadFile(exceptions)
	require.NoError(t, err)
	head, _, _ := strings.Cut(string(text), "\n\n")
	var lines []string
	for name, one := range listed {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d %s", name, one.size, one.reason)))
	}
	slices.Sort(lines)
	require.NoError(t, os.WriteFile(exceptions, []byte(head+"\n\n"+strings.Join(lines, "\n")+"\n"), 0o644))
}

// sizesInside counts, by "KIND NAME": methods of each type, lines of each function, files of each package of the product.
func sizesInside(t *testing.T, root string) map[string]int {
	t.Helper()
	sizes := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"build", "node_modules", "dist", "test", "testdata", "modules"}, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		sizes["files "+filepath.ToSlash(folder)]++
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declared := range parsed.Decls {
			function, is := declared.(*ast.FuncDecl)
			if !is || function.Body == nil {
				continue
			}
			owner := receiver(function)
			if owner != "" {
				sizes["methods "+path.Join(filepath.ToSlash(folder), owner)]++
			}
			place := path.Join(filepath.ToSlash(folder), strings.TrimPrefix(owner+"."+function.Name.Name, "."))
			sizes["lines "+place] = max(sizes["lines "+place], files.Position(function.End()).Line-files.Position(function.Pos()).Line+1)
		}
		return nil
	}))
	require.NotEmpty(t, sizes)
	return sizes
}

// receiver is the name of a method's type, "" of a function.
func receiver(function *ast.FuncDecl) string {
	if function.Recv == nil || len(function.Recv.List) == 0 {
		return ""
	}
	of := function.Recv.List[0].Type
	for {
		switch one := of.(type) {
		case *ast.StarExpr:
			of = one.X
		case *ast.IndexExpr:
			of = one.X
		case *ast.IndexListExpr:
			of = one.X
		case *ast.Ident:
			return one.Name
		default:
			return ""
		}
	}
}

// roomsMayImport lists which rooms of a storey import which others of it, directly. An unlisted room imports none.
var roomsMayImport = map[string][]string{
	"cmd/burano":                     {"cmd/burano/author", "cmd/burano/cli", "cmd/burano/client", "cmd/burano/cluster", "cmd/burano/node", "cmd/burano/operator", "cmd/burano/server"},
	"cmd/burano/author":              {"cmd/burano/cli", "cmd/burano/process"},
	"cmd/burano/client":              {"cmd/burano/cli"},
	"cmd/burano/cluster":             {"cmd/burano/cli"},
	"cmd/burano/node":                {"cmd/burano/cli", "cmd/burano/process"},
	"cmd/burano/operator":            {"cmd/burano/cli", "cmd/burano/process", "cmd/burano/server"},
	"cmd/burano/server":              {"cmd/burano/cli", "cmd/burano/process"},
	"nodes":                          {"nodes/access", "nodes/etcd", "nodes/kube", "nodes/network", "nodes/pki", "nodes/plan", "nodes/signin", "nodes/signin/webhook", "nodes/ssh", "nodes/systemd"},
	"nodes/access":                   {"nodes/ssh"},
	"nodes/claimdata":                {"nodes/ssh"},
	"nodes/claimdata/claimdatatest":  {"nodes/ssh"},
	"nodes/etcd":                     {"nodes/pki", "nodes/ssh", "nodes/systemd"},
	"nodes/etcd/restore":             {"nodes/etcd"},
	"nodes/signin/webhook":           {"nodes/line"},
	"nodes/kube":                     {"nodes/autoscale", "nodes/network", "nodes/pki", "nodes/signin", "nodes/ssh", "nodes/systemd"},
	"nodes/network":                  {"nodes/pki", "nodes/ssh", "nodes/systemd"},
	"nodes/systemd":                  {"nodes/ssh"},
	"orchestrator":                   {"orchestrator/backup", "orchestrator/engine", "orchestrator/hibernation", "orchestrator/openstack", "orchestrator/preview", "orchestrator/secret", "orchestrator/store"},
	"orchestrator/access":            {"orchestrator/desired", "orchestrator/known", "orchestrator/scaling", "orchestrator/snapshot", "orchestrator/store"},
	"orchestrator/agent":             {"orchestrator/engine", "orchestrator/execution", "orchestrator/known", "orchestrator/openstack", "orchestrator/stacks", "orchestrator/task"},
	"orchestrator/attachments":       {"orchestrator/openstack", "orchestrator/volumes"},
	"orchestrator/backup":            {"orchestrator/snapshot", "orchestrator/store"},
	"orchestrator/claims":            {"orchestrator/clusters", "orchestrator/known", "orchestrator/openstack", "orchestrator/preview", "orchestrator/storage", "orchestrator/task", "orchestrator/volumes"},
	"orchestrator/clusters":          {"orchestrator/desired", "orchestrator/known", "orchestrator/openstack", "orchestrator/preview", "orchestrator/snapshot", "orchestrator/stacks", "orchestrator/storage", "orchestrator/store", "orchestrator/task", "orchestrator/volumes", "orchestrator/workloads"},
	"orchestrator/definitions":       {"orchestrator/clusters", "orchestrator/known", "orchestrator/task", "orchestrator/workloads"},
	"orchestrator/direct":            {"orchestrator/openstack", "orchestrator/store"},
	"orchestrator/doctor":            {"orchestrator/openstack"},
	"orchestrator/engine":            {"orchestrator/lease", "orchestrator/openstack", "orchestrator/preview", "orchestrator/secret", "orchestrator/store"},
	"orchestrator/engine/enginetest": {"orchestrator/engine", "orchestrator/openstack"},
	"orchestrator/execution":         {"orchestrator/execution/body"},
	"orchestrator/hibernation":       {"orchestrator/known", "orchestrator/openstack", "orchestrator/store"},
	"orchestrator/keeper":            {"orchestrator/desired", "orchestrator/lease", "orchestrator/openstack", "orchestrator/store"},
	"orchestrator/known":             {"orchestrator/backup", "orchestrator/desired", "orchestrator/openstack", "orchestrator/snapshot", "orchestrator/store"},
	"orchestrator/murano":            {"orchestrator/engine", "orchestrator/openstack", "orchestrator/store"},
	"orchestrator/native":            {"orchestrator/agent", "orchestrator/claims", "orchestrator/clusters", "orchestrator/definitions", "orchestrator/engine", "orchestrator/hibernation", "orchestrator/known", "orchestrator/nodesteps", "orchestrator/openstack", "orchestrator/operations", "orchestrator/preview", "orchestrator/resizing", "orchestrator/restores", "orchestrator/routes", "orchestrator/stacks", "orchestrator/store", "orchestrator/task", "orchestrator/upgrades", "orchestrator/workloads"},
	"orchestrator/nodesteps":         {"orchestrator/clusters", "orchestrator/desired", "orchestrator/task"},
	"orchestrator/operations":        {"orchestrator/clusters", "orchestrator/known", "orchestrator/openstack", "orchestrator/resizing", "orchestrator/stacks", "orchestrator/task"},
	"orchestrator/preview":           {"orchestrator/openstack", "orchestrator/secret"},
	"orchestrator/resizing":          {"orchestrator/clusters", "orchestrator/desired", "orchestrator/known", "orchestrator/openstack", "orchestrator/routes", "orchestrator/scaling", "orchestrator/task"},
	"orchestrator/restores":          {"orchestrator/attachments", "orchestrator/backup", "orchestrator/clusters", "orchestrator/engine", "orchestrator/known", "orchestrator/snapshot", "orchestrator/storage", "orchestrator/store", "orchestrator/task", "orchestrator/volumes", "orchestrator/workloads"},
	"orchestrator/scaling":           {"orchestrator/desired", "orchestrator/known", "orchestrator/openstack"},
	"orchestrator/snapshot":          {"orchestrator/secret", "orchestrator/store"},
	"orchestrator/stacks":            {"orchestrator/engine", "orchestrator/known", "orchestrator/openstack", "orchestrator/preview", "orchestrator/task"},
	"orchestrator/storage":           {"orchestrator/attachments", "orchestrator/openstack", "orchestrator/volumes"},
	"orchestrator/task":              {"orchestrator/desired", "orchestrator/engine", "orchestrator/openstack", "orchestrator/store"},
	"orchestrator/upgrades":          {"orchestrator/clusters", "orchestrator/desired", "orchestrator/known", "orchestrator/openstack", "orchestrator/resizing", "orchestrator/store", "orchestrator/task", "orchestrator/workloads"},
	"orchestrator/upkeep":            {"orchestrator/attachments", "orchestrator/desired", "orchestrator/hibernation", "orchestrator/keeper", "orchestrator/known", "orchestrator/openstack", "orchestrator/scaling", "orchestrator/snapshot", "orchestrator/storage", "orchestrator/store", "orchestrator/volumes", "orchestrator/workloads"},
	"orchestrator/volumes":           {"orchestrator/openstack"},
	"orchestrator/routes":            {"orchestrator/known", "orchestrator/task"},
	"orchestrator/workloads":         {"orchestrator/desired", "orchestrator/known", "orchestrator/namespaces", "orchestrator/openstack", "orchestrator/preview", "orchestrator/secret", "orchestrator/storage", "orchestrator/task"},
	"orchestrator/task/tasktest":     {"orchestrator/task"},
}

// TestRoomsOfAStoreyImportWhatTheyMay also demands that every listed import exists.
func TestRoomsOfAStoreyImportWhatTheyMay(t *testing.T) {
	used := map[string]bool{}
	for _, one := range packages(t) {
		room := strings.TrimPrefix(one.ImportPath, module+"/")
		storey, _, _ := strings.Cut(room, "/")
		if !slices.Contains([]string{"orchestrator", "nodes", "cmd"}, storey) {
			continue
		}
		for _, imported := range one.Imports {
			other, ours := strings.CutPrefix(imported, module+"/")
			if !ours || other != storey && !strings.HasPrefix(other, storey+"/") {
				continue
			}
			if !slices.Contains(roomsMayImport[room], other) {
				t.Errorf("%s imports %s, which roomsMayImport does not allow", room, other)
			}
			used[room+" "+other] = true
		}
	}
	for room, others := range roomsMayImport {
		require.True(t, slices.IsSortedFunc(others, cmp.Compare[string]), room)
		for _, other := range others {
			require.True(t, used[room+" "+other], "%s does not import %s any more: take it off roomsMayImport", room, other)
		}
	}
}
