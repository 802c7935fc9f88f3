package state_test

import (
	"os"
	"path/filepath"
	"strconv"
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

// A process may be killed in the middle of a write.
func TestALineThatWasNotWrittenToItsEndIsForgotten(t *testing.T) {
	dir := t.TempDir()
	table, err := state.Open[thing](dir, "things")
	require.NoError(t, err)
	require.NoError(t, table.Put("a", thing{1}))
	require.NoError(t, table.Put("b", thing{2}))
	path := filepath.Join(dir, "things.jsonl")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, info.Size()-3))

	table, err = state.Open[thing](dir, "things")
	require.NoError(t, err)
	require.Equal(t, []thing{{1}}, table.All())
	require.NoError(t, table.Put("c", thing{3}))
	table, err = state.Open[thing](dir, "things")
	require.NoError(t, err)
	require.Equal(t, []thing{{1}, {3}}, table.All())
}

func TestATableOfManyChangesStaysSmallAndIsTheSame(t *testing.T) {
	dir := t.TempDir()
	table, err := state.Open[thing](dir, "things")
	require.NoError(t, err)
	wanted := map[string]thing{}
	for i := range 5000 {
		id := strconv.Itoa(i * 7919 % 20)
		if i%5 == 4 {
			_, err = table.Delete(id)
			delete(wanted, id)
		} else {
			err = table.Put(id, thing{i})
			wanted[id] = thing{i}
		}
		require.NoError(t, err)
	}
	before := table.All()
	table, err = state.Open[thing](dir, "things")
	require.NoError(t, err)
	require.Equal(t, before, table.All())
	require.Len(t, before, len(wanted))
	for id, one := range wanted {
		found, ok := table.Get(id)
		require.True(t, ok)
		require.Equal(t, one, found)
	}
	info, err := os.Stat(filepath.Join(dir, "things.jsonl"))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(50_000), "former changes are taken out")
}

func TestTheFileOfAFormerVersionIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	former := filepath.Join(dir, "things.json")
	require.NoError(t, os.WriteFile(former, []byte(`[{"ID":"b","Value":{"Size":1}},{"ID":"a","Value":{"Size":2}}]`), 0o600))
	for range 2 {
		table, err := state.Open[thing](dir, "things")
		require.NoError(t, err)
		require.Equal(t, []thing{{1}, {2}}, table.All())
	}
	require.NoFileExists(t, former)
}
