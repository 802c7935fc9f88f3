package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/test/bench/server"
	"github.com/burano/burano/test/simulated"
)

const (
	// inOwnNetwork is set for a test that runs in a network of its own.
	inOwnNetwork = "BURANO_HOSTILE_NETWORK"
	// floodedLooks is how many looks of the keeper find machines that answer without end before the test ends, or floodTime is over.
	floodedLooks = 12
	floodTime    = 4 * time.Minute
	// mostMemory is what the server may have at a time, in MiB: some answers at once that are just within their bounds.
	mostMemory = 1500
	// soon is how long another project waits for an answer, but for one in twenty: what is simulated takes processors from the server. Those have latest.
	soon   = time.Second
	latest = 10 * time.Second
)

// A cluster's machines answer whatever its owner has them answer: here sshd, API server and etcd answer each question without end.
func TestAServerLivesWithMachinesThatAnswerWithoutEnd(t *testing.T) {
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
	program := filepath.Join(t.TempDir(), "burano")
	build := exec.Command("go", "build", "-o", program, "./cmd/burano")
	build.Dir = "../.."
	output, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	world, endpoint := simulated.Start(t, program)
	s := server.Start(t, server.Config{Endpoint: endpoint, Program: program, Args: []string{"--keeper-interval", "5s"}})
	users := s.Users(t, 2)
	hostile, other := users[0].Token, users[1].Token

	const clusters = 3
	for i := range clusters {
		var environment, session struct{ ID string }
		ask(t, s, hostile, http.MethodPost, "/v1/environments", map[string]any{"name": fmt.Sprintf("e%d", i)}, &environment)
		path := "/v1/environments/" + environment.ID
		ask(t, s, hostile, http.MethodPost, path+"/configure", nil, &session)
		ask(t, s, hostile, http.MethodPost, path+"/services", simulated.Cluster(i, 1), nil, "X-Configuration-Session", session.ID)
		ask(t, s, hostile, http.MethodPost, path+"/sessions/"+session.ID+"/deploy", nil, nil)
	}
	var environments struct {
		Environments []struct{ ID, Name, Status string }
	}
	err = wait.Every(time.Second).For(5*time.Minute).Until(t.Context(), func(context.Context) error {
		ask(t, s, hostile, http.MethodGet, "/v1/environments", nil, &environments)
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
	require.Empty(t, world.Notes(), "what the server asked and nothing answered")
	before := s.Memory(t, "VmRSS")

	world.Endless.Store(true)
	looked, began := looks(t, s), time.Now()
	var waited []time.Duration
	for round := 0; ; round++ {
		// The owner's own questions, which go to the cluster, may fail; they end.
		one := environments.Environments[round%clusters]
		number, err := strconv.Atoi(strings.TrimPrefix(one.Name, "e"))
		require.NoError(t, err)
		cluster := fmt.Sprintf("/burano/v1/environments/%s/clusters/%08d-cluster", one.ID, number)
		for _, path := range []string{cluster, cluster + "/running"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
			require.NoError(t, err)
			request.Header.Set("X-Auth-Token", hostile)
			go func() {
				if answer, err := s.Client.Do(request); err == nil {
					_, _ = io.Copy(io.Discard, answer.Body)
					_ = answer.Body.Close()
				}
			}()
		}
		asked := time.Now()
		ask(t, s, other, http.MethodGet, "/v1/environments", nil, nil)
		waited = append(waited, time.Since(asked))
		require.Less(t, s.Memory(t, "VmHWM"), mostMemory)
		if looks(t, s)-looked >= floodedLooks && round >= 30 || time.Since(began) > floodTime {
			break
		}
		require.NoError(t, wait.Pause(t.Context(), 500*time.Millisecond))
	}
	slices.Sort(waited)
	most, slowest := waited[len(waited)*19/20], waited[len(waited)-1]
	t.Logf("the server had %d MiB before and %d MiB at most, %.0f looks ended, and another project waited %s and once %s", before, s.Memory(t, "VmHWM"), looks(t, s)-looked, most, slowest)
	require.GreaterOrEqual(t, looks(t, s)-looked, float64(floodedLooks), "looks end")
	require.Less(t, most, soon)
	require.Less(t, slowest, latest)

	world.Endless.Store(false)
	err = wait.Every(time.Second).For(2*time.Minute).Until(t.Context(), func(context.Context) error {
		var found struct{ Findings []struct{ Text string } }
		ask(t, s, hostile, http.MethodGet, "/burano/v1/environments/"+environments.Environments[0].ID+"/findings", nil, &found)
		for _, one := range found.Findings {
			if len(one.Text) > 64<<10 {
				return fmt.Errorf("a finding has %d bytes", len(one.Text))
			}
		}
		return nil
	})
	require.NoError(t, err)
}

// looks is how many looks of the keeper have ended.
func looks(t *testing.T, s *server.Server) (sum float64) {
	t.Helper()
	response, err := s.Client.Get(s.URL + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "burano_keeper_looks_total"); is {
			fields := strings.Fields(rest)
			value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			require.NoError(t, err)
			sum += value
		}
	}
	return sum
}

// ask sends JSON (nil: none) and reads JSON (nil: it does not matter).
func ask(t *testing.T, s *server.Server, token, method, path string, body, answer any, headers ...string) {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		text, err = json.Marshal(body)
		require.NoError(t, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, bytes.NewReader(text))
	require.NoError(t, err)
	request.Header.Set("X-Auth-Token", token)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.Client.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	told, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Lessf(t, response.StatusCode, 300, "%s %s: %s", method, path, told)
	if answer != nil {
		require.NoErrorf(t, json.Unmarshal(told, answer), "%s", told)
	}
}
