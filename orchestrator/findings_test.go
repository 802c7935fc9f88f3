package orchestrator_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator"
)

// kindsIn matches the kinds of findings in the code of the duties.
var kindsIn = regexp.MustCompile(`(?:Kind(?::|\b[^"\n]*=)|\badd\(|\bkindLocked =|\bkind, held :?=)\s*"([a-z]+(?:-[a-z]+)+)"`)

// A client that words remedies itself needs one for each kind of finding.
func TestEachKindOfFindingHasItsRemedies(t *testing.T) {
	files, err := filepath.Glob("upkeep/*.go")
	require.NoError(t, err)
	kinds := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, one := range kindsIn.FindAllStringSubmatch(string(text), -1) {
			kinds[one[1]] = true
		}
	}
	require.Greater(t, len(kinds), 35)
	for kind := range kinds {
		if kind != "server-without-key" { // which may stay as it is
			require.NotEmpty(t, orchestrator.RemediesOf(kind, "a node"), kind)
		}
	}
	require.Equal(t, []orchestrator.Remedy{{Kind: "unlock-node", Node: "murano-kube-2"}}, orchestrator.RemediesOf("node-locked", "murano-kube-2"))
	require.Equal(t, []orchestrator.Remedy{{Kind: "deploy-again"}}, orchestrator.RemediesOf("server-gone", "murano-kube-2"))
	require.Empty(t, orchestrator.RemediesOf("of another version", ""))
}
