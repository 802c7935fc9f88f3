package auth

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAttemptsAreCountedInBoundedMemory(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := NewAttempts(func() time.Time { return now })
	for range accountBurst {
		require.Zero(t, a.Take("10.0.0.1", "mine"))
	}
	require.Equal(t, accountEvery, a.Take("10.0.0.1", "mine"))
	for i := range 2 * remembered {
		require.Zero(t, a.Take(fmt.Sprintf("2001:db8:%x:%x::1", i/0x10000, i%0x10000), strings.Repeat("x", 1000)))
	}
	require.Equal(t, remembered, a.byAddress.Len())
	require.Equal(t, remembered, a.byAccount.Len())
}

func TestWaitingIsWorthWhile(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := NewAttempts(func() time.Time { return now })
	taken := 0
	for range 3600 {
		if a.Take("10.0.0.1", "mine") == 0 {
			taken++
		}
		now = now.Add(time.Second)
	}
	require.InDelta(t, accountBurst+3600/int(accountEvery/time.Second), taken, 1, "refused attempts count for nothing: somebody who tries all the time gets as many as who waits")
	require.Equal(t, 7, (&TooMany{Wait: 6500 * time.Millisecond}).Seconds())
}
