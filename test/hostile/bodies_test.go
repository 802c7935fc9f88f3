package hostile

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// bodies begins sign-ins and calls of the hostile project that never end, three times as many as there are places.
func bodies(t *testing.T, l *lab) {
	const begun = "Host: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
	for range 800 {
		_, err := l.dial(t, "POST /burano/v1/session HTTP/1.1\r\n"+begun+"\r\n{")
		require.NoError(t, err)
		_, err = l.dial(t, "POST /v1/environments HTTP/1.1\r\n"+begun+"X-Auth-Token: "+l.hostile+"\r\n\r\n{")
		require.NoError(t, err)
	}
	l.ready(t)
	for _, one := range l.entrances {
		status, _, err := one.ask(t.Context(), "", http.MethodPost, "/burano/v1/session", map[string]string{"user": "demo", "password": "wrong"}, "X-Requested-With", "test")
		require.NoError(t, err)
		require.Equalf(t, http.StatusUnauthorized, status, "%s looks at a sign-in", one.name)
	}
}
