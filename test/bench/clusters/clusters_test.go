// Package clusters measures the load of one server that deploys many clusters and keeps them. The server is the real program in a process of its own: API, engine,
// store, driver and keeper. It speaks HTTP with the cloud, SSH with each node, and through it TLS, gRPC and HTTP/2 with etcd and the API server of each cluster. The
// other ends of these connections are simulated in the benchmark's process: no unit runs, and nothing takes time by itself.
package clusters

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/test/bench/server"
	"github.com/burano/burano/test/simulated"
)

const (
	// clusters is the number of clusters; BURANO_CLUSTERS overrides it.
	clusters = 1000
	// ofProject is the number of clusters of a project.
	ofProject = 10
	// minions is the number of minions of each cluster, beside a master and a gateway.
	minions = 8
	// atOnce is how many users submit a deployment at the same time.
	atOnce = 8
	// patience is how long all deployments may take.
	patience = 2 * time.Hour
	// span is how long the load of the keepers is measured, after each has checked its environment once; BURANO_CLUSTERS_TIME overrides it.
	span = 5 * time.Minute
)

// BenchmarkClusters deploys all clusters over a server's API, and then measures the server while it keeps them. It needs a network of its own (unshare --net), in which
// it takes the addresses of all nodes. BURANO_PROGRAM is the server's program; one that was built with the tag faults writes profiles to the folder BURANO_PROFILE.
// Where BURANO_CLUSTERS_TALLY is set, the benchmark prints how many requests of each kind the server sent.
func BenchmarkClusters(b *testing.B) {
	count, length := clusters, span
	var err error
	if text := os.Getenv("BURANO_CLUSTERS"); text != "" {
		count, err = strconv.Atoi(text)
		require.NoError(b, err, "BURANO_CLUSTERS")
	}
	if text := os.Getenv("BURANO_CLUSTERS_TIME"); text != "" {
		length, err = time.ParseDuration(text)
		require.NoError(b, err, "BURANO_CLUSTERS_TIME")
	}
	debug.SetGCPercent(400) // saves processor time, which the server needs; memory is not scarce
	simulated.TakeNetwork(b)
	w, endpoint := simulated.Start(b, os.Getenv("BURANO_PROGRAM"))
	if os.Getenv("BURANO_CLUSTERS_TALLY") != "" {
		w.Tally = simulated.NewTally()
	}
	config := server.Config{Endpoint: endpoint, Program: os.Getenv("BURANO_PROGRAM")}
	profiles := os.Getenv("BURANO_PROFILE")
	if profiles != "" {
		config.Args = append(config.Args, "--profile-listen", profileAt)
	}
	s := server.Start(b, config)
	users := s.Users(b, (count+ofProject-1)/ofProject)

	b.ResetTimer()
	began, before, own := time.Now(), s.Processor(b), ownProcessor(b)
	profiled := profile(b, profiles, "deploy", 30*time.Second)
	submit(b, s, users, count)
	await(b, s, users, count)
	took, spent, simulated := time.Since(began), s.Processor(b)-before, ownProcessor(b)-own
	require.NoError(b, <-profiled)
	require.Empty(b, w.Notes(), "what the server asked and nothing answered")
	fmt.Printf("deployed: %d clusters of %d nodes in %.1f s; the server took %.1f s of processors, %.0f ms for a cluster, and at most %d MiB; what is simulated took %.1f s\n",
		count, minions+2, took.Seconds(), spent.Seconds(), spent.Seconds()*1000/float64(count), s.Memory(b, "VmHWM"), simulated.Seconds())
	w.Tally.Write(os.Stdout, "deployed", count)
	if length == 0 {
		return
	}
	// The first check of each comes at once, and takes its first snapshot.
	began, before = time.Now(), s.Processor(b)
	awaitSnapshots(b, s, users, count)
	w.Tally.Write(os.Stdout, "looked at first", count)
	fmt.Printf("the first snapshots were there %.1f s later, after another %.1f s of processors\n", time.Since(began).Seconds(), (s.Processor(b) - before).Seconds())
	began, before, own = time.Now(), s.Processor(b), ownProcessor(b)
	looked := metric(b, s, looks, "")
	profiled = profile(b, profiles, "look", min(30*time.Second, length))
	<-time.After(length) // the load of this idle time is the measurement
	took, spent, simulated = time.Since(began), s.Processor(b)-before, ownProcessor(b)-own
	require.NoError(b, <-profiled)
	require.Empty(b, w.Notes(), "what the server asked and nothing answered")
	fmt.Printf("looked after: %.3f processors and %d MiB over %s, with %.1f looks/s; what is simulated took %.3f\n", spent.Seconds()/took.Seconds(), s.Memory(b, "VmRSS"), took.Round(time.Second),
		(metric(b, s, looks, "")-looked)/took.Seconds(), simulated.Seconds()/took.Seconds())
	w.Tally.Write(os.Stdout, "looked after", count)
	b.ReportMetric(0, "ns/op")
}

// submit makes the environments and submits their deployments.
func submit(b *testing.B, s *server.Server, users []server.User, count int) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range count {
		group.Go(func() error {
			token, project := users[i%len(users)].Token, i%len(users)
			var environment, session struct{ ID string }
			if err := call(s, token, http.MethodPost, "/v1/environments", map[string]any{"name": fmt.Sprintf("e%d-%d", project, i)}, &environment); err != nil {
				return err
			}
			path := "/v1/environments/" + environment.ID
			if err := call(s, token, http.MethodPost, path+"/configure", nil, &session); err != nil {
				return err
			}
			if err := call(s, token, http.MethodPost, path+"/services", simulated.Cluster(i, minions), nil, "X-Configuration-Session", session.ID); err != nil {
				return err
			}
			return call(s, token, http.MethodPost, path+"/sessions/"+session.ID+"/deploy", nil, nil)
		})
	}
	require.NoError(b, group.Wait())
}

// await waits until all environments are deployed. It reads the environments only when enough tasks have ended, or one has failed: the load of polling users is not part of the
// measurement.
func await(b *testing.B, s *server.Server, users []server.User, count int) {
	b.Helper()
	err := wait.Every(time.Second).For(patience).Until(b.Context(), func(context.Context) error {
		if ended := metric(b, s, tasks, ""); ended < float64(count) && ended == metric(b, s, tasks, `outcome="success"`) {
			return wait.Again(fmt.Errorf("%.0f of %d are deployed", ended, count))
		}
		ready := 0
		for _, user := range users {
			var list struct{ Environments []struct{ ID, Status string } }
			if err := call(s, user.Token, http.MethodGet, "/v1/environments", nil, &list); err != nil {
				return err
			}
			for _, environment := range list.Environments {
				switch environment.Status {
				case "ready":
					ready++
				case "deploy failure":
					return fmt.Errorf("environment %s: %s", environment.ID, said(s, user.Token, environment.ID))
				}
			}
		}
		if ready < count {
			return wait.Again(fmt.Errorf("%d of %d are deployed", ready, count))
		}
		return nil
	})
	require.NoError(b, err)
}

// said is the last report of an environment's deployment.
func said(s *server.Server, token, environment string) string {
	var list struct{ Deployments []struct{ ID string } }
	path := "/v1/environments/" + environment + "/deployments"
	if err := call(s, token, http.MethodGet, path, nil, &list); err != nil || len(list.Deployments) == 0 {
		return fmt.Sprint(err)
	}
	var answer struct {
		Reports []struct{ Level, Text string }
	}
	if err := call(s, token, http.MethodGet, path+"/"+list.Deployments[0].ID, nil, &answer); err != nil {
		return err.Error()
	}
	var lines []string
	for _, one := range answer.Reports[max(0, len(answer.Reports)-10):] {
		lines = append(lines, one.Level+" "+one.Text)
	}
	return strings.Join(lines, "\n")
}

// awaitSnapshots waits until each cluster has been checked.
func awaitSnapshots(b *testing.B, s *server.Server, users []server.User, count int) {
	b.Helper()
	err := wait.Every(5*time.Second).For(patience).Until(b.Context(), func(context.Context) error {
		if looked := int(metric(b, s, looks, `duty="snapshots"`)); looked < count {
			return wait.Again(fmt.Errorf("%d of %d clusters have been looked at whether they have a snapshot", looked, count))
		}
		return nil
	})
	require.NoError(b, err)
}

// Metrics that count the checks of the keeper, and the ended tasks.
const looks, tasks = "burano_keeper_looks_total", "burano_task_seconds_count"

// metric is the sum of a metric of the server over all its labels, or over the lines that contain a text.
func metric(b *testing.B, s *server.Server, name, saying string) (sum float64) {
	b.Helper()
	response, err := s.Client.Get(s.URL + "/metrics")
	require.NoError(b, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, name); is && strings.Contains(rest, saying) {
			fields := strings.Fields(rest)
			value, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			require.NoError(b, err)
			sum += value
		}
	}
	return sum
}

// call sends JSON (nil: none) and reads JSON (nil: it does not matter).
func call(s *server.Server, token, method, path string, body, answer any, headers ...string) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, s.URL+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("X-Auth-Token", token)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, bytes.TrimSpace(said))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(said, answer)
}

// ownProcessor is the processor time of this process.
func ownProcessor(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

const profileAt = "127.0.0.1:6060"

// profile writes a processor profile of the given length and then a heap profile of the server to files in a folder; nothing where the folder is
// "".
func profile(b *testing.B, folder, name string, length time.Duration) <-chan error {
	b.Helper()
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		if folder == "" {
			return
		}
		for _, kind := range []string{"profile?seconds=" + strconv.Itoa(int(length.Seconds())), "heap"} { // the heap at the end of that time
			file, _, _ := strings.Cut(kind, "?")
			if err := fetch("http://"+profileAt+"/debug/pprof/"+kind, filepath.Join(folder, name+"."+file)); err != nil {
				ended <- err
				return
			}
		}
	}()
	return ended
}

func fetch(url, file string) error {
	response, err := http.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}
