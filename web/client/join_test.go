package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPinStandsInThePlaceOfAnAuthority(t *testing.T) {
	var shown string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = r.Header.Get("X-Join-Token")
		_, _ = w.Write([]byte(`{"state": "waiting"}`))
	}))
	t.Cleanup(server.Close)
	pin, err := New(server.URL, nobody{}, server.Client().Transport).Pin(t.Context(), server.URL)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(pin, "sha256:"), pin)
	ask := func(pin string) error {
		t.Helper()
		transport, err := Pinned(pin)
		require.NoError(t, err)
		t.Cleanup(transport.CloseIdleConnections)
		_, err = NewJoiner(server.URL, "secret", transport).Progress(t.Context(), 0)
		return err
	}
	require.NoError(t, ask(pin))
	require.Equal(t, "secret", shown)
	require.NoError(t, ask("sha256:"+strings.ToUpper(pin[7:])))
	shown = ""
	require.ErrorContains(t, ask("sha256:"+strings.Repeat("0", 64)), "shows a certificate with the pin "+pin)
	require.Error(t, ask(""), "no authority of this machine has signed it")
	require.Empty(t, shown, "who is not believed gets no token")
	for _, wrong := range []string{"sha256:", "sha256:00", strings.Repeat("0", 64), "sha1:" + strings.Repeat("0", 64)} {
		_, err := Pinned(wrong)
		require.ErrorContains(t, err, "64 hexadecimal digits", wrong)
	}

	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, server.URL, http.StatusFound) }))
	t.Cleanup(plain.Close)
	pin, err = New(plain.URL, nobody{}, server.Client().Transport).Pin(t.Context(), server.URL)
	require.NoError(t, err)
	require.NotEmpty(t, pin)
	_, _ = NewJoiner(plain.URL, "secret", nil).Progress(t.Context(), 0)
	require.Empty(t, shown, "a token is for the server that was named")
}
