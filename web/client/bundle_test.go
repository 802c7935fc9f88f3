package client_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/web/client"
)

func TestWhatIsWrongWithABundleIsSaidInItsOwnWords(t *testing.T) {
	for text, says := range map[string]string{
		"":                                " is no bundle: it is empty; a bundle is JSON or YAML such as ",
		"5":                               " is no bundle: line 1 has another kind of value than a bundle has there; a bundle is ",
		"Packages: all of them\n":         " is no bundle: line 1 has another kind of value",
		"Name: a\nPackages:\n- io.test\n": " is no bundle: line 3 has another kind of value",
		"{\"Packages\": [":                " is no bundle: line 1: ",
		"Packages: []\n":                  " is no bundle: it has no list \"Packages\"",
	} {
		path := filepath.Join(t.TempDir(), "apps.bundle")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := client.NewFinder("").Bundle(t.Context(), path)
		require.ErrorContains(t, err, says, "%q", text)
		require.NotRegexp(t, `struct|unmarshal|client\.|EOF`, err.Error())
	}
}
