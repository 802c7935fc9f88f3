package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// step is one native step of a deployment as the API tells it.
type step struct {
	Name     string
	Started  time.Time
	Finished time.Time
}

// phase is the part of a step's name that is the same for all nodes; node is "" for steps of no node.
func (s step) split() (node, phase string) {
	if node, phase, ok := strings.Cut(s.Name, ": "); ok {
		return node, phase
	}
	return "", s.Name
}

// steps returns the native steps of a deployment in the order in which they began.
func steps(t *testing.T, u *user, deployment string) []step {
	t.Helper()
	got := u.call(t, http.MethodGet, "/burano/v1/deployments/"+deployment+"/steps", nil)
	require.Equal(t, http.StatusOK, got.Status, string(got.Body))
	var answer struct{ Steps []step }
	require.NoError(t, json.Unmarshal(got.Body, &answer))
	slices.SortStableFunc(answer.Steps, func(a, b step) int { return a.Started.Compare(b.Started) })
	return answer.Steps
}

// criticalPath goes back from the step that ended last, each time to the step that ended last before it began.
func criticalPath(all []step) []step {
	var path []step
	left := slices.Clone(all)
	for len(left) > 0 {
		last := slices.MaxFunc(left, func(a, b step) int { return a.Finished.Compare(b.Finished) })
		path = append(path, last)
		left = slices.DeleteFunc(left, func(one step) bool { return one == last || one.Finished.After(last.Started) })
	}
	slices.Reverse(path)
	return path
}

// printTimeline prints when each step of the newest deployment began and ended since began, per phase and node, and the critical
// path. With BURANO_TIMELINE set, it is also written to that file.
func (l *lab) printTimeline(t *testing.T, u *user, environment string, began, answered time.Time) {
	t.Helper()
	deployments := u.must(t, http.MethodGet, "/v1/environments/"+environment+"/deployments", nil)["deployments"].([]any)
	all := steps(t, u, deployments[0].(map[string]any)["id"].(string))
	require.NotEmpty(t, all)

	var text strings.Builder
	fmt.Fprintf(&text, "from the call of deploy to an answer from both replicas through the gateway: %.1f s\n", answered.Sub(began).Seconds())
	since := func(at time.Time) float64 { return at.Sub(began).Seconds() }
	fmt.Fprintf(&text, "\n%7s %7s %7s  %-18s %s\n", "from s", "to s", "took s", "node", "step")
	for _, one := range all {
		node, phase := one.split()
		fmt.Fprintf(&text, "%7.2f %7.2f %7.2f  %-18s %s\n", since(one.Started), since(one.Finished), one.Finished.Sub(one.Started).Seconds(), node, phase)
	}
	fmt.Fprintf(&text, "\ncritical path:\n")
	previous := began
	for _, one := range criticalPath(all) {
		fmt.Fprintf(&text, "%7.2f s waiting, %6.2f s  %s\n", one.Started.Sub(previous).Seconds(), one.Finished.Sub(one.Started).Seconds(), one.Name)
		previous = one.Finished
	}
	fmt.Fprintf(&text, "%7.2f s until both replicas had answered\n", answered.Sub(previous).Seconds())
	t.Log("\n" + text.String())
	if path := os.Getenv("BURANO_TIMELINE"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	}
}

func TestTheCriticalPathIsTheChainOfLastEnds(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	a, b, c, d := step{"a", at(0), at(4)}, step{"b", at(0), at(2)}, step{"c", at(4), at(6)}, step{"d", at(2), at(5)}
	require.Equal(t, []step{a, c}, criticalPath([]step{a, b, c, d}))
	require.Empty(t, criticalPath(nil))
	instant := step{"instant", at(1), at(1)}
	require.Equal(t, []step{instant}, criticalPath([]step{instant}))
}
