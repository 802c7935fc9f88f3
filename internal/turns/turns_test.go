package turns_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/turns"
)

func TestAnOwnerThatWaitsInHundredsLeavesTheOthersTheirTurn(t *testing.T) {
	places := turns.New(3, 2)
	enter := func(owner string) func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		leave, err := places.Enter(ctx, owner)
		require.NoError(t, err)
		return leave
	}
	first, second := enter("greedy"), enter("greedy")
	ctx, cancel := context.WithCancelCause(t.Context())
	waited := make(chan error)
	for range 100 {
		go func() {
			leave, err := places.Enter(ctx, "greedy")
			if err == nil {
				leave()
			}
			waited <- err
		}()
	}
	for range 5 {
		enter("modest")()
	}
	gone := errors.New("nobody waits any more")
	cancel(gone)
	for range 100 {
		require.ErrorIs(t, <-waited, gone)
	}
	first()
	first()
	second()
	enter("greedy")
	enter("greedy")
	enter("modest")
	short, end := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer end()
	_, err := places.Enter(short, "modest")
	require.ErrorIs(t, err, context.DeadlineExceeded, "what is given back twice is one place")
}
