package timeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/timeline"
)

func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

func TestTheCriticalPathIsTheChainOfLastEnds(t *testing.T) {
	a, b, c, d := timeline.Step{Name: "a", Started: at(0), Finished: at(4)}, timeline.Step{Name: "b", Started: at(0), Finished: at(2)},
		timeline.Step{Name: "c", Started: at(4), Finished: at(6)}, timeline.Step{Name: "d", Started: at(2), Finished: at(5)}
	require.Equal(t, []timeline.Step{a, c}, timeline.CriticalPath([]timeline.Step{a, b, c, d}))
	require.Empty(t, timeline.CriticalPath(nil))
	instant := timeline.Step{Name: "instant", Started: at(1), Finished: at(1)}
	require.Equal(t, []timeline.Step{instant}, timeline.CriticalPath([]timeline.Step{instant}))
}

func TestAPhaseLastsFromTheFirstStartToTheLastEnd(t *testing.T) {
	phases := timeline.Phases([]timeline.Step{
		{Name: "n2: files", Started: at(3), Finished: at(7)},
		{Name: "n1: files", Started: at(2), Finished: at(4)},
		{Name: "servers", Started: at(0), Finished: at(2)},
	})
	require.Equal(t, []timeline.Phase{
		{Name: "servers", Steps: 1, From: at(0), To: at(2), Longest: 2 * time.Second},
		{Name: "files", Steps: 2, From: at(2), To: at(7), Longest: 4 * time.Second},
	}, phases)
}
