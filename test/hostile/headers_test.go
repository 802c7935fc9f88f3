package hostile

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// headers sends requests without a token whose agent and path are long: the server must store little of them.
func headers(t *testing.T, l *lab) {
	before := l.stored(t)
	for range 300 {
		status, _, err := l.ask(t.Context(), "", http.MethodGet, "/v1/environments/"+strings.Repeat("x", 6<<10), nil, "User-Agent", strings.Repeat("x", 6<<10))
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, status)
	}
	for _, one := range l.entrances {
		if one.scheme == "https" {
			continue // HAProxy takes headers of 16 KiB
		}
		for range 300 {
			status, _, err := one.ask(t.Context(), "", http.MethodGet, "/v1/environments/"+strings.Repeat("x", 20<<10), nil, "User-Agent", strings.Repeat("x", 30<<10))
			require.NoError(t, err)
			require.Equal(t, http.StatusUnauthorized, status)
		}
	}
	for _, one := range l.entrances {
		status, _, err := one.ask(t.Context(), "", http.MethodGet, "/v1/environments", nil, "User-Agent", strings.Repeat("x", 1<<20))
		if err == nil { // else the connection ended before all was sent
			require.Contains(t, []int{http.StatusRequestHeaderFieldsTooLarge, http.StatusBadRequest}, status, one.name)
		}
	}
	require.Less(t, l.stored(t)-before, int64(4<<20), "of 15 MB and more that were said")
}
