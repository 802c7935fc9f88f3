package hostile

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readers request an answer of 6 MB and never read it, more often than there are places.
func readers(t *testing.T, l *lab) {
	status, answer, err := l.ask(t.Context(), l.hostile, http.MethodPost, "/v1/templates",
		map[string]any{"name": "large", "services": []any{map[string]any{"?": map[string]any{"id": "a", "type": "io.murano.Application"}, "text": strings.Repeat("x", 6<<20)}}})
	require.NoError(t, err)
	require.Equalf(t, http.StatusOK, status, "%.500s", answer)
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal(answer, &made))
	for range 400 {
		_, err := l.dial(t, "GET /v1/templates/"+made.ID+" HTTP/1.1\r\nHost: x\r\nX-Auth-Token: "+l.hostile+"\r\n\r\n")
		require.NoError(t, err)
	}
	l.ready(t)
}
