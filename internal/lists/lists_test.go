package lists_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/lists"
)

func TestNothingIsRememberedWhileSomethingIsWritten(t *testing.T) {
	cache := lists.New(2, 40, func(value int) int64 { return int64(value) })
	stored, reads := 1, 0
	read := func() (int, error) { reads++; return stored, nil }
	got := func(want, wantReads int) {
		t.Helper()
		value, err := cache.Read("a", read)
		require.NoError(t, err)
		require.Equal(t, want, value)
		require.Equal(t, wantReads, reads)
	}
	got(1, 1)
	got(1, 1)

	done := cache.Writing()
	got(1, 2) // the write is not visible yet
	stored = 2
	got(2, 3) // and now it is, before the writer reports it
	done()
	got(2, 4)
	got(2, 4)

	_, err := cache.Read("b", func() (int, error) {
		cache.Writing()() // while it is read
		return 7, nil
	})
	require.NoError(t, err)
	value, err := cache.Read("b", func() (int, error) { return 8, nil })
	require.NoError(t, err)
	require.Equal(t, 8, value, "what may be old was remembered")
	value, err = cache.Read("b", func() (int, error) { return 9, nil })
	require.NoError(t, err)
	require.Equal(t, 8, value)
	for _, key := range []string{"large", "c"} { // one weighs too much; the other pushes out the oldest
		value := map[string]int{"large": 11, "c": 10}[key]
		_, err = cache.Read(key, func() (int, error) { return value, nil })
		require.NoError(t, err)
		got, err := cache.Read(key, func() (int, error) { return -1, nil })
		require.NoError(t, err)
		require.Equal(t, key == "large", got == -1, key)
	}

	var none *lists.Cache[int]
	value, err = none.Read("a", func() (int, error) { return 5, nil })
	require.NoError(t, err)
	require.Equal(t, 5, value)
	none.Writing()()
}
