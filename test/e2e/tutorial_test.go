package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheTutorialWorks runs every command of docs/tutorial.md, in its order, in an empty folder. `make test-tutorial` and `make soak` run it.
func TestTheTutorialWorks(t *testing.T) {
	soakOnly(t, "make test-tutorial runs the tutorial")
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "tutorial.md"))
	require.NoError(t, err)
	// A preview with changes exits with 2, which would end the script.
	commands := "burano() { command burano \"$@\" || [[ $? == 2 && \" $* \" == *' --dry-run '* ]]; }\n" + shellBlocks(string(document))
	require.Greater(t, strings.Count(commands, "\nburano "), 10, "the commands are found")

	l := start(t)
	l.deleteIfFailed(t, "tutorial")
	before := inventory(t, l.user(t, "burano-demo"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	shell.Dir = t.TempDir()
	shell.Env = append(os.Environ(), append(l.as("burano-demo"), "PATH="+filepath.Join(l.root, "build")+":"+os.Getenv("PATH"))...)
	began := time.Now()
	output, err := shell.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	t.Logf("the tutorial took %.0f s:\n%s", time.Since(began).Seconds(), output)
	asBefore(t, l.user(t, "burano-demo"), before)
}

// shellBlocks returns the text of a document's shell blocks. Each begins with a line that names its place, so that a failed one can be
// found.
func shellBlocks(document string) string {
	var script strings.Builder
	in, number := false, 0
	for line := range strings.Lines(document) {
		number++
		switch {
		case strings.TrimSpace(line) == "```sh":
			in = true
			fmt.Fprintf(&script, "echo '== tutorial.md, line %d'\n", number+1)
		case strings.HasPrefix(line, "```"):
			in = false
		case in:
			script.WriteString(line)
		}
	}
	return script.String()
}
