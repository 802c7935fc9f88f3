package openstack

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARequestIsNotSentOnceTheProcessMayNoLongerAct(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	client := http.Client{Transport: guardedTransport{http.DefaultTransport}}
	send := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, server.URL, nil)
		require.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	var lost error
	ctx := Guarded(t.Context(), func() error { return lost })
	require.NoError(t, send(t.Context()))
	require.NoError(t, send(ctx))
	lost = errors.New("the lease is lost")
	require.ErrorIs(t, send(ctx), lost)
	require.NoError(t, send(t.Context()))
	require.Equal(t, 3, asked)
}
