package haproxytest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/route"
)

// Backend is a web server on loopback that answers with its name.
type Backend struct {
	Name    string
	Address netip.AddrPort
	Hits    atomic.Int64
	server  *http.Server
}

// NewBackend starts one; it ends with the test, or by Stop.
func NewBackend(t testing.TB, name string) *Backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &Backend{Name: name, Address: listener.Addr().(*net.TCPAddr).AddrPort()}
	b.server = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.Hits.Add(1)
		if r.URL.Path == "/slow" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, name)
	})}
	go func() { _ = b.server.Serve(listener) }()
	t.Cleanup(func() { _ = b.server.Close() })
	return b
}

// Stop finishes the requests in progress and then ends the server, as a pod does after SIGTERM.
func (b *Backend) Stop(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, b.server.Shutdown(ctx))
}

// Ready is the server as a backend of a route that takes connections.
func (b *Backend) Ready() route.Backend {
	return route.Backend{Address: b.Address.Addr().String(), Port: b.Address.Port(), Node: "node-of-" + b.Name, Ready: true}
}

// Draining is the server as a terminating backend of a route.
func (b *Backend) Draining() route.Backend {
	d := b.Ready()
	d.Ready, d.Draining = false, true
	return d
}

// Get asks for / over a new connection and returns the answer.
func Get(ctx context.Context, port uint16) (string, error) { return GetHost(ctx, port, "") }

// GetHost asks a host for /, or, when that is empty, the address.
func GetHost(ctx context.Context, port uint16, host string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), nil)
	if err != nil {
		return "", err
	}
	if host != "" {
		request.Host = host
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s: %s", response.Status, body)
	}
	return string(body), err
}

// Load asks a port again and again over new connections, a few at a time, until it is stopped.
type Load struct {
	stop    context.CancelFunc
	group   sync.WaitGroup
	mutex   sync.Mutex
	answers map[string]int
	errors  []error
	worst   time.Duration
}

// StartLoad begins with a bounded load: two clients, each with a pause of a millisecond between its requests.
func StartLoad(t testing.TB, port uint16) *Load {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	l := &Load{stop: stop, answers: make(map[string]int)}
	for range 2 {
		l.group.Go(func() { l.run(ctx, port) })
	}
	t.Cleanup(func() { stop(); l.group.Wait() })
	return l
}

func (l *Load) run(ctx context.Context, port uint16) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		start := time.Now()
		answer, err := Get(context.WithoutCancel(ctx), port)
		l.mutex.Lock()
		if err != nil {
			l.errors = append(l.errors, err)
		} else {
			l.answers[answer]++
		}
		l.worst = max(l.worst, time.Since(start))
		l.mutex.Unlock()
	}
}

// Answers is how many answers came so far from each backend.
func (l *Load) Answers() map[string]int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	counts := make(map[string]int, len(l.answers))
	for name, n := range l.answers {
		counts[name] = n
	}
	return counts
}

// WaitFor waits until so many more answers have come.
func (l *Load) WaitFor(t testing.TB, more int) {
	t.Helper()
	total := func() (n int) {
		for _, count := range l.Answers() {
			n += count
		}
		return n
	}
	goal := total() + more
	Wait(t, fmt.Sprintf("%d more answers", more), func() error {
		if n := total(); n < goal {
			return fmt.Errorf("%d answers are missing", goal-n)
		}
		return nil
	})
}

// Stop ends the load and returns the failures, and the longest time of an answer.
func (l *Load) Stop() (total int, failed []error, worst time.Duration) {
	l.stop()
	l.group.Wait()
	for _, n := range l.answers {
		total += n
	}
	return total + len(l.errors), l.errors, l.worst
}
