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

	"github.com/burano/burano/test/timeline"
)

// steps returns the native steps of a deployment in the order in which they began.
func steps(t *testing.T, u *user, deployment string) []timeline.Step {
	t.Helper()
	got := u.call(t, http.MethodGet, "/burano/v1/deployments/"+deployment+"/steps", nil)
	require.Equal(t, http.StatusOK, got.Status, string(got.Body))
	var answer struct{ Steps []timeline.Step }
	require.NoError(t, json.Unmarshal(got.Body, &answer))
	slices.SortStableFunc(answer.Steps, func(a, b timeline.Step) int { return a.Started.Compare(b.Started) })
	return answer.Steps
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
		node, phase := one.Split()
		fmt.Fprintf(&text, "%7.2f %7.2f %7.2f  %-18s %s\n", since(one.Started), since(one.Finished), one.Took().Seconds(), node, phase)
	}
	fmt.Fprintf(&text, "\ncritical path:\n")
	previous := began
	for _, one := range timeline.CriticalPath(all) {
		fmt.Fprintf(&text, "%7.2f s waiting, %6.2f s  %s\n", one.Started.Sub(previous).Seconds(), one.Took().Seconds(), one.Name)
		previous = one.Finished
	}
	fmt.Fprintf(&text, "%7.2f s until both replicas had answered\n", answered.Sub(previous).Seconds())
	t.Log("\n" + text.String())
	if path := os.Getenv("BURANO_TIMELINE"); path != "" {
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	}
}
