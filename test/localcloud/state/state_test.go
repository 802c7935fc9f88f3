package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/state"
)

type thing struct{ Size int }

func TestTableIsTheSameAfterReopening(t *testing.T) {
	dir := t.TempDir()
	table, err := state.Open[thing](dir, "things")
	require.NoError(t, err)
	require.NoError(t, table.Put("b", thing{1}))
	require.NoError(t, table.Put("a", thing{2}))
	require.NoError(t, table.Put("c", thing{3}))
	require.NoError(t, table.Put("b", thing{4}))
	found, err := table.Update("a", func(v *thing) { v.Size++ })
	require.NoError(t, err)
	require.True(t, found)
	found, err = table.Delete("c")
	require.NoError(t, err)
	require.True(t, found)
	found, err = table.Delete("c")
	require.NoError(t, err)
	require.False(t, found)

	table, err = state.Open[thing](dir, "things")
	require.NoError(t, err)
	require.Equal(t, []thing{{4}, {3}}, table.All())
	_, ok := table.Get("c")
	require.False(t, ok)
}
