package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/test/simulated"
	"github.com/burano/burano/test/site"
)

const (
	// inOwnNetwork is set for a test that runs in a network of its own.
	inOwnNetwork = "BURANO_HOSTILE_NETWORK"
	// clusters is the number of clusters that answer without end, and floodedLooks the number of the keepers' checks of them before the test
	// ends, unless floodTime ends it.
	clusters, floodedLooks = 3, 12
	floodTime              = 4 * time.Minute
	// mostFlooded is the limit of a server's memory: several simultaneous answers that are just within their bounds.
	mostFlooded = 1500 << 20
)

// A cluster's owner controls all answers of its machines: here sshd, API server and etcd answer each request without end.
func TestServersLiveWithMachinesThatAnswerWithoutEnd(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a network of its own takes root")
	}
	if os.Getenv(inOwnNetwork) == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.timeout", "15m")
		again.Env = append(os.Environ(), inOwnNetwork+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		output, err := again.CombinedOutput()
		t.Logf("%s", output)
		require.NoError(t, err)
		return
	}
	simulated.TakeNetwork(t)
	program := program(t)
	world, endpoint := simulated.Start(t, program)
	inEach(t, func(t *testing.T, database string) {
		l := start(t, site.Config{Program: program, Keystone: endpoint + "/identity/v3", Database: database, Flags: []string{"--keeper-interval", "5s", "--trusted-proxies", "127.0.0.1"}})
		world.Endless.Store(false)
		made := l.deployClusters(t)
		require.Empty(t, world.Notes(), "what the servers asked and nothing answered")
		t.Logf("the servers have had %v MiB", l.memory(t))
		l.through(t, mostFlooded, func(t *testing.T) {
			world.Endless.Store(true)
			defer world.Endless.Store(false)
			looked, began := l.looks(t), time.Now()
			var seen float64
			for round := 0; time.Since(began) < floodTime && (seen < floodedLooks || round < 30); round++ {
				// The owner's own requests to the cluster may fail; they end.
				one := made[round%clusters]
				for _, path := range []string{one, one + "/running"} {
					at := l.entrance()
					go func() { _, _, _ = at.ask(t.Context(), l.hostile, http.MethodGet, path, nil) }()
				}
				require.NoError(t, wait.Pause(t.Context(), 500*time.Millisecond))
				seen = l.looks(t) - looked
			}
			t.Logf("%.0f looks of keepers ended in %s", seen, time.Since(began).Round(time.Second))
			require.GreaterOrEqual(t, seen, float64(floodedLooks), "looks end")
		})
		for _, one := range made {
			var found struct{ Findings []struct{ Text string } }
			environment, _, _ := strings.Cut(one, "/clusters/")
			l.must(t, http.MethodGet, environment+"/findings", nil, &found)
			for _, finding := range found.Findings {
				require.LessOrEqual(t, len(finding.Text), 64<<10)
			}
		}
	})
}

// deployClusters deploys the clusters of the hostile project, and returns their paths.
func (l *lab) deployClusters(t *testing.T) (paths []string) {
	names := map[string]int{}
	for i := range clusters {
		var environment, session struct{ ID string }
		l.must(t, http.MethodPost, "/v1/environments", map[string]any{"name": fmt.Sprintf("e%d", i)}, &environment)
		path := "/v1/environments/" + environment.ID
		l.must(t, http.MethodPost, path+"/configure", nil, &session)
		l.must(t, http.MethodPost, path+"/services", simulated.Cluster(i, 1), nil, "X-Configuration-Session", session.ID)
		l.must(t, http.MethodPost, path+"/sessions/"+session.ID+"/deploy", nil, nil)
		names[environment.ID] = i
	}
	var environments struct {
		Environments []struct{ ID, Status string }
	}
	err := wait.Every(500*time.Millisecond).For(5*time.Minute).Until(t.Context(), func(context.Context) error {
		l.must(t, http.MethodGet, "/v1/environments", nil, &environments)
		for _, one := range environments.Environments {
			if one.Status == "deploy failure" {
				return errors.New("a deployment failed")
			}
			if one.Status != "ready" {
				return wait.Again(fmt.Errorf("environment %s is %s", one.ID, one.Status))
			}
		}
		return nil
	})
	require.NoError(t, err)
	for _, one := range environments.Environments {
		paths = append(paths, fmt.Sprintf("/burano/v1/environments/%s/clusters/%08d-cluster", one.ID, names[one.ID]))
	}
	return paths
}

// looks is how many checks of the keepers have ended.
func (l *lab) looks(t *testing.T) (sum float64) {
	t.Helper()
	for _, one := range l.site.Servers {
		response, err := http.Get("http://" + one.Address + "/metrics")
		require.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		for line := range strings.Lines(string(text)) {
			if rest, is := strings.CutPrefix(line, "burano_keeper_looks_total"); is {
				fields := strings.Fields(rest)
				value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
				require.NoError(t, err)
				sum += value
			}
		}
	}
	return sum
}

// must sends JSON (nil: none) as the hostile project and reads JSON (nil: it does not matter) from an answer of
// success.
func (l *lab) must(t *testing.T, method, path string, body, answer any, headers ...string) {
	t.Helper()
	status, text, err := l.ask(t.Context(), l.hostile, method, path, body, headers...)
	require.NoError(t, err)
	require.Lessf(t, status, 300, "%s %s: %s", method, path, text)
	if answer != nil {
		require.NoErrorf(t, json.Unmarshal(text, answer), "%s", text)
	}
}
