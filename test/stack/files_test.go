package stack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/muranopl"
)

// TestFilesOfTestsHaveNoKeysThatNoClassKnows loads the environments of the demonstration and of the end-to-end tests: with such a key they could not be deployed.
func TestFilesOfTestsHaveNoKeysThatNoClassKnows(t *testing.T) {
	files, err := filepath.Glob("../*/testdata/*.yaml")
	require.NoError(t, err)
	more, err := filepath.Glob("../environments/*.yaml")
	require.NoError(t, err)
	looked := 0
	for _, file := range append(files, more...) {
		model, is := tryEnvironment(t, file)
		if !is {
			continue
		}
		looked++
		unknown := muranopl.LoadStrictly(t.Context(), muranopl.NewClasses(source(t)), model).Unknown
		require.Empty(t, unknown, file)
	}
	require.Greater(t, looked, 5)
}

// tryEnvironment is environment for a file that may hold none.
func tryEnvironment(t *testing.T, path string) (model map[string]any, is bool) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var file map[string]any
	if yaml.Unmarshal(text, &file) != nil || file["applications"] == nil {
		return nil, false
	}
	return environment(t, path), true
}
