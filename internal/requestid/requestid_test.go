package requestid_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/requestid"
)

func TestAContextCarriesAnIDOfOpenStacksForm(t *testing.T) {
	id := requestid.New()
	require.True(t, requestid.Valid(id))
	require.NotEqual(t, id, requestid.New())
	require.Empty(t, requestid.From(t.Context()))
	require.Equal(t, id, requestid.From(requestid.With(t.Context(), id)))
	for _, bad := range []string{"", "req-1", id + "0", "x" + id, id[4:], id + "\n"} {
		require.False(t, requestid.Valid(bad), bad)
	}
}
