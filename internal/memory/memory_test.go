package memory_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/memory"
)

func TestMemoryIsRefusedToTheOwnerThatHoldsMost(t *testing.T) {
	var tight atomic.Bool
	budget := memory.NewGuard(tight.Load).Budget(100 << 20)
	open := func(owner string, bytes int64) (*memory.Account, error) {
		account, err := budget.Open(owner)
		if err != nil {
			return nil, err
		}
		return account, account.Take(bytes)
	}
	first, err := open("greedy", 40<<20)
	require.NoError(t, err)
	_, err = open("greedy", 30<<20)
	require.Equal(t, &memory.None{Held: 40 << 20, Wanted: 30 << 20}, err, "more is not left for others")
	_, err = open("calm", 30<<20)
	require.NoError(t, err)
	tight.Store(true)
	require.Eventually(t, func() bool { _, err := budget.Open("greedy"); return err != nil }, 10*time.Second, time.Millisecond)
	_, err = budget.Open("greedy")
	require.Equal(t, &memory.None{Held: 40 << 20, Process: true}, err)
	require.Positive(t, budget.Short())
	_, err = budget.Open("calm")
	require.NoError(t, err, "and not to others")
	first.Close()
	_, err = budget.Open("greedy")
	require.NoError(t, err, "whose requests have ended may ask again")
	_, err = (*memory.Budget)(nil).Open("anybody")
	require.NoError(t, err)
}

func TestTasksOfAnOwnerCountAgainstItsRequests(t *testing.T) {
	guard := memory.NewGuard(func() bool { return true })
	requests, answers := guard.Budget(100<<20), guard.Budget(100<<20)
	task := answers.Account("greedy")
	task.Note(300 << 20)
	_, err := requests.Open("greedy")
	require.Equal(t, &memory.None{Held: 300 << 20, Process: true}, err)
	other, err := requests.Open("calm")
	require.NoError(t, err)
	require.NoError(t, other.Take(60<<20), "what others note takes nothing of the budget")
	task.Close()
	_, err = requests.Open("greedy")
	require.NoError(t, err)
}

func TestTheLastAnswerCountsUntilTheNextOneEnds(t *testing.T) {
	budget := memory.NewGuard(nil).Budget(100 << 20)
	account := budget.Account("project")
	free := func() (bytes int64) {
		for other := budget.Account("other"); other.Take(1<<20) == nil; bytes += 1 << 20 {
			defer other.Close()
		}
		return bytes
	}
	read := func(bytes int64) error {
		answer := account.Answer()
		defer answer.End()
		return answer.Grow(bytes)
	}
	require.NoError(t, read(80<<20))
	require.EqualValues(t, 20<<20, free()*2, "an owner leaves as much as it has")
	require.ErrorContains(t, read(40<<20), "are not free")
	require.NoError(t, read(10<<20))
	require.NoError(t, read(10<<20))
	require.EqualValues(t, 45<<20, free())
	unended := account.Answer()
	require.NoError(t, unended.Grow(5<<20))
	account.Close()
	unended.End()
	require.EqualValues(t, 50<<20, free())
	require.NoError(t, (*memory.Account)(nil).Answer().Grow(1<<40), "without a budget nothing is bounded")
}
