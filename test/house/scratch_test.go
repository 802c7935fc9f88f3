package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Temporary files of the server with tenants' data get their room from internal/scratch. No other code makes any, with these exceptions and reasons.
var temporaryFiles = map[string]string{
	"internal/scratch/scratch.go":      "it gives the room",
	"orchestrator/workloads/images.go": "its folder is another one, and its room is reserved before the first byte",
	"orchestrator/secret/ring.go":      "a file of keys is replaced by the operator",
	"nodes/etcd/restore/restore.go":    "a process of its own, for which the server has reserved room",
	"nodes/etcd/restore/export.go":     "on nodes, and in a process of its own",
	"cmd/burano/operator/backup.go":    "the operator's backup, beside its target",
	"cmd/burano/operator/doctor.go":    "a database that is empty",
	"web/client/bundle.go":             "a command of users, on their machine",
}

func TestTemporaryFilesHaveTheirRoomFromTheBudget(t *testing.T) {
	makes := regexp.MustCompile(`\bos\.(CreateTemp|MkdirTemp|TempDir)\(|\bParseMultipartForm\(|\.FormFile\(`)
	var found []string
	root := filepath.Join("..", "..")
	for _, folder := range []string{"orchestrator", "web", "catalog", "internal", "nodes", "gateway", "cmd/burano"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
			name := entry.Name()
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (name == "node_modules" || strings.HasSuffix(name, "test")): // packages for tests
				return filepath.SkipDir
			case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(text)) {
				if makes.MatchString(line) {
					short, _ := filepath.Rel(root, path)
					found = append(found, short)
				}
			}
			return nil
		})
		require.NoError(t, err)
	}
	slices.Sort(found)
	for _, path := range slices.Compact(found) {
		require.Contains(t, temporaryFiles, path, "%s makes temporary files beside the budget of internal/scratch", path)
	}
	for path := range temporaryFiles {
		require.Contains(t, found, path, "it makes none any more: take it off the list")
	}
}
