package hostile

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// headers sends questions without a token whose agent and path are long: little of them is kept.
func headers(t *testing.T, l *lab) {
	size := func() (bytes int64) {
		files, err := filepath.Glob(filepath.Join(l.state, "burano.db*"))
		require.NoError(t, err)
		for _, file := range files {
			info, err := os.Stat(file)
			require.NoError(t, err)
			bytes += info.Size()
		}
		return bytes
	}
	before := size()
	for range 300 {
		status, _, err := l.ask(t.Context(), "", http.MethodGet, "/v1/environments/"+strings.Repeat("x", 20<<10), nil, "User-Agent", strings.Repeat("x", 30<<10))
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, status)
	}
	status, _, err := l.ask(t.Context(), "", http.MethodGet, "/v1/environments", nil, "User-Agent", strings.Repeat("x", 1<<20))
	if err == nil { // else the server has ended the connection before all was sent
		require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, status)
	}
	require.Less(t, size()-before, int64(4<<20), "of 15 MB that were said")
}
