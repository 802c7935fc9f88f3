package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/kube"
)

// apiServer is an API server with one pod; the test drives its answers.
type apiServer struct {
	mutex sync.Mutex
	pod   string // JSON of its status, "" when it is gone
	logs  []func(w http.ResponseWriter, r *http.Request)
}

func (s *apiServer) set(pod string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pod = pod
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/pods/web/log") {
		s.mutex.Lock()
		next := s.logs[0]
		s.logs = s.logs[1:]
		s.mutex.Unlock()
		next(w, r)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.pod == "" {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"pods \"web\" not found","code":404}`))
		return
	}
	_, _ = fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default"},
		"spec":{"restartPolicy":"Always","containers":[{"name":"main","image":"web:1"},{"name":"side","image":"side:1"}]},"status":%s}`, s.pod)
}

func startAPIServer(t *testing.T, pod string, logs ...func(w http.ResponseWriter, r *http.Request)) (*apiServer, *rest.Config) {
	s := &apiServer{pod: pod, logs: logs}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

const (
	running  = `{"phase":"Running","containerStatuses":[{"name":"main","state":{"running":{"startedAt":"2026-11-22T06:00:00Z"}}}]}`
	crashing = `{"phase":"Running","containerStatuses":[{"name":"main","restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 10s"}}}]}`
)

func TestALogIsReadLineByLineWhateverItHolds(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	_, config := startAPIServer(t, running, func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, []string{"main", "3", "true", ""}, []string{r.FormValue("container"), r.FormValue("tailLines"), r.FormValue("timestamps"), r.FormValue("follow")})
		_, _ = w.Write([]byte("2026-11-22T06:00:00.000000001Z one <script>\n2026-11-22T06:00:01Z " + long + "\n2026-11-22T06:00:02Z \xff\n2026-11-22T06:00:03Z"))
	})
	var texts []string
	var last time.Time
	require.NoError(t, kube.ReadLog(t.Context(), config, kube.Log{Namespace: "default", Pod: "web", Tail: 3}, func(line kube.LogLine) error {
		texts, last = append(texts, line.Text), line.Time
		return nil
	}))
	require.Equal(t, "one <script>", texts[0])
	require.Equal(t, long, strings.Join(texts[1:3], ""), "a line that is too long is several")
	require.Equal(t, []string{"\uFFFD", ""}, texts[3:])
	require.Equal(t, time.Date(2026, 11, 22, 6, 0, 3, 0, time.UTC), last)

	var none *kube.NoContainer
	err := kube.ReadLog(t.Context(), config, kube.Log{Namespace: "default", Pod: "web", Container: "nope"}, nil)
	require.ErrorAs(t, err, &none)
	require.ErrorContains(t, err, "main, side")
}

func TestALogIsFollowedThroughARestartAndEachLineComesOnce(t *testing.T) {
	var s *apiServer
	s, config := startAPIServer(t, running,
		func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, "true", r.FormValue("follow"))
			s.set(crashing)
			_, _ = w.Write([]byte("2026-11-22T06:00:00.1Z one\n2026-11-22T06:00:00.2Z two\n"))
		},
		func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, []string{"2026-11-22T06:00:00Z", ""}, []string{r.FormValue("sinceTime"), r.FormValue("tailLines")})
			s.set("")
			_, _ = w.Write([]byte("2026-11-22T06:00:00.2Z two\n2026-11-22T06:00:05Z three\n"))
		})
	var happened []string
	end, err := kube.FollowLog(t.Context(), config, kube.Log{Namespace: "default", Pod: "web", Tail: 10}, func(line kube.LogLine) error {
		happened = append(happened, line.Text)
		return nil
	}, func(state string) error {
		happened = append(happened, state)
		s.set(running)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, "Deleted", end)
	require.Equal(t, []string{"one", "two", "CrashLoopBackOff", "three"}, happened)
}

func TestAContainerThatHasNotBegunIsWaitedFor(t *testing.T) {
	s, config := startAPIServer(t, `{"phase":"Pending","containerStatuses":[{"name":"main","state":{"waiting":{"reason":"ContainerCreating"}}}]}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := kube.FollowLog(ctx, config, kube.Log{Namespace: "default", Pod: "web"}, nil, func(state string) error {
		require.Equal(t, "ContainerCreating", state)
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	s.set(`{"phase":"Succeeded","containerStatuses":[{"name":"main","state":{"terminated":{"reason":"Completed"}}}]}`)
	s.logs = append(s.logs, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("2026-11-22T06:00:00Z done\n")) })
	var lines []string
	end, err := kube.FollowLog(t.Context(), config, kube.Log{Namespace: "default", Pod: "web"}, func(line kube.LogLine) error {
		lines = append(lines, line.Text)
		return nil
	}, func(state string) error { return errors.New(state) })
	require.NoError(t, err)
	require.Equal(t, "Completed", end)
	require.Equal(t, []string{"done"}, lines)
}
