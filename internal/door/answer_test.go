package door_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/door"
)

func TestFewBytesOfJSONThatBecomeMuchMemoryAreRefused(t *testing.T) {
	read := func(text string) error {
		_, err := io.ReadAll(door.JSON(strings.NewReader(text), 1<<20, 1<<20, "the list of pods"))
		return err
	}
	require.NoError(t, read(`{"items":[`+strings.TrimSuffix(strings.Repeat("{},", 900), ",")+`]}`))
	require.EqualError(t, read(`{"items":[`+strings.TrimSuffix(strings.Repeat("{},", 2000), ",")+`]}`), "the list of pods has more than 1 MiB when it is decoded")
	require.EqualError(t, read(`{"items":[{"spec":{"containers":[`+strings.TrimSuffix(strings.Repeat("{},", 2000), ",")+`]}}]}`), "the list of pods has more than 1 MiB when it is decoded")
	require.True(t, door.IsExceeded(read(`{`+strings.Repeat(`"a":{},`, 20_000)+`}`)))
	require.True(t, door.IsExceeded(read(`[`+strings.Repeat(`"",`, 50_000)+`]`)))
	require.NoError(t, read(`{"data":"`+strings.Repeat(`{},\"[`, 20_000)+`"}`), "braces within a text are text")
	require.EqualError(t, read(strings.Repeat("[", 2000)), "the list of pods has more than 1000 levels of lists and objects")
	require.EqualError(t, read(strings.Repeat("x", 2<<20)), "the list of pods has more than 1 MiB")
}

func TestEachValueOfAStreamHasBounds(t *testing.T) {
	read := func(text string) error {
		_, err := io.ReadAll(door.JSONStream(strings.NewReader(text), 64<<10, 1<<20, "an event of the watch"))
		return err
	}
	require.NoError(t, read(strings.Repeat(`{"type":"ADDED","object":{"spec":{"containers":[{},{}]}}}`+"\n", 50_000)))
	require.EqualError(t, read(`{"object":{"text":"`+strings.Repeat("x", 70_000)), "an event of the watch has more than 64 KiB")
	require.EqualError(t, read(`{"object":{"spec":{"containers":[`+strings.Repeat("{},\n", 2_000)), "an event of the watch has more than 1 MiB when it is decoded")
	require.True(t, door.IsExceeded(read(strings.Repeat("\n", 70_000))))
}

func TestAStreamEndsAtALineWithoutEndOnly(t *testing.T) {
	line := strings.Repeat("x", 1000) + "\n"
	n, err := io.Copy(io.Discard, door.Lines(strings.NewReader(strings.Repeat(line, 1000)), 1001, "the watch"))
	require.NoError(t, err)
	require.EqualValues(t, 1_001_000, n)
	_, err = io.Copy(io.Discard, door.Lines(endless{}, 1<<10, "the watch"))
	require.EqualError(t, err, "a line of the watch has more than 1 KiB")
}
