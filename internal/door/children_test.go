package door_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/door"
)

// TestMain makes the test's binary a child, too.
func TestMain(m *testing.M) {
	if door.IsChild(os.Args[1:]) {
		os.Exit(door.ServeChild(os.Args[1:], map[string]door.Work{
			"echo": func(input []byte) ([]byte, error) { return input, nil },
			"refuse": func(input []byte) ([]byte, error) {
				return []byte("half a result"), errors.New("it is wrong: " + string(input) + ", out of memory")
			},
			"panic": func([]byte) ([]byte, error) { panic("a mistake") },
			"deep":  func([]byte) ([]byte, error) { return []byte{byte(deep(1 << 30))}, nil },
			"large": func([]byte) ([]byte, error) {
				var kept [][]byte
				for len(kept) < 1<<20 { // a TiB
					kept = append(kept, bytes.Repeat([]byte("x"), 1<<20))
				}
				return kept[0], nil
			},
			"long": func([]byte) ([]byte, error) {
				sum := byte(0)
				for i := range uint64(1 << 62) { // years
					sum += byte(i)
				}
				return []byte{sum}, nil
			},
			"much": func([]byte) ([]byte, error) { return make([]byte, 1<<20), nil },
		}))
	}
	os.Exit(m.Run())
}

func deep(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + deep(n-1)
}

func children(t *testing.T, places int, limits door.Limits) *door.Children {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return door.NewChildren(self, places, limits)
}

func TestAChildAnswersOrSaysWhatIsWrong(t *testing.T) {
	of := children(t, 2, door.Limits{})
	result, err := of.Run(t.Context(), door.Job{Kind: "echo", Doing: "reading the text", Input: []byte("hello")})
	require.NoError(t, err)
	require.Equal(t, "hello", string(result))
	_, err = of.Run(t.Context(), door.Job{Kind: "refuse", Doing: "reading the text", Input: []byte("line 3")})
	require.EqualError(t, err, "it is wrong: line 3, out of memory")
	require.False(t, door.IsExceeded(err))
	_, err = of.Run(t.Context(), door.Job{Kind: "panic", Doing: "reading the text"})
	require.ErrorContains(t, err, "reading the text: its process failed (exit status 2): panic: a mistake")
	_, err = of.Run(t.Context(), door.Job{Kind: "unheard of", Doing: "reading the text"})
	require.ErrorContains(t, err, "child KIND MEMORY SECONDS is run by Burano itself")
}

func TestAChildEndsAtItsLimitsAndTheParentLives(t *testing.T) {
	of := children(t, 8, door.Limits{Memory: 384 << 20, Processor: time.Second, Result: 1 << 10})
	for kind, want := range map[string]string{
		"deep":  "reading the text takes more than 64 MiB of stack: it is nested too deeply",
		"large": "reading the text takes more than 384 MiB of memory",
		"long":  "reading the text takes more than 1s of a processor",
		"much":  "the result of reading the text has more than 1 KiB",
	} {
		t.Run(kind, func(t *testing.T) {
			_, err := of.Run(t.Context(), door.Job{Kind: kind, Doing: "reading the text"})
			require.EqualError(t, err, want)
			require.True(t, door.IsExceeded(err))
		})
	}
	_, err := children(t, 1, door.Limits{Time: time.Second, Processor: time.Minute}).Run(t.Context(), door.Job{Kind: "long", Doing: "reading the text"})
	require.EqualError(t, err, "reading the text takes more than 1s")
}

func TestAChildEndsWithItsContext(t *testing.T) {
	of := children(t, 1, door.Limits{})
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("nobody waits any more"))
	defer cancel()
	_, err := of.Run(ctx, door.Job{Kind: "long", Doing: "reading the text"})
	require.ErrorContains(t, err, "nobody waits any more")
	_, err = of.Run(ctx, door.Job{Kind: "echo", Doing: "reading the text"})
	require.Error(t, err)
	_, err = of.Run(t.Context(), door.Job{Kind: "echo", Doing: "reading the text"})
	require.NoError(t, err, "the place is free again")
}

func TestAProjectThatTakesAllItsPlacesLeavesTheOthersTheirs(t *testing.T) {
	of := children(t, 2, door.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	var greedy sync.WaitGroup
	for range 5 {
		greedy.Go(func() {
			_, err := of.Run(ctx, door.Job{Kind: "long", Doing: "reading the text", Project: "greedy"})
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	for range 3 {
		_, err := of.Run(t.Context(), door.Job{Kind: "echo", Doing: "reading the text", Project: "modest"})
		require.NoError(t, err)
	}
	cancel()
	greedy.Wait()
}
