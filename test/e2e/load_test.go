package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	loadRate  = 100              // requests a second, half on new and half on open connections
	heavyRate = 200              // in tests that `make test` does not have: here the requests alone would take a tenth of the processors
	keepers   = 20               // connections that stay open
	patience  = 30 * time.Second // for a connection or an answer: longer than a busy machine lets one wait
)

// load sends requests to an address at a steady rate and counts failures. It repeats nothing: a request that gets no answer
// has failed. An open connection is left only when an answer asks for it (Connection: close, RFC 9112 section 9.6).
type load struct {
	address string
	rate    int // requests a second
	stop    context.CancelFunc
	group   sync.WaitGroup

	mutex   sync.Mutex
	fresh   int // requests on new connections
	kept    int // requests on open connections
	left    int // connections that were left at the request of an answer
	failed  []failure
	slowest time.Duration
}

// failure is a request that failed, and when it was begun.
type failure struct {
	at  time.Time
	err error
}

func (f failure) String() string { return f.at.Format("15:04:05.000: ") + f.err.Error() }

func startLoad(t *testing.T, address string) *load {
	return startLoadOf(t, address, loadRate)
}

// startLoads has the load come through a port of several gateways, an equal part through each; it is returned by their names.
func startLoads(t *testing.T, gateways map[string]string, port string, rate int) map[string]*load {
	loads := map[string]*load{}
	for name, address := range gateways {
		loads[name] = startLoadOf(t, net.JoinHostPort(address, port), rate/len(gateways))
	}
	return loads
}

func startLoadOf(t *testing.T, address string, rate int) *load {
	ctx, stop := context.WithCancel(context.Background())
	l := &load{address: address, rate: rate, stop: stop}
	t.Cleanup(func() { stop(); l.group.Wait() })
	l.group.Go(func() { l.freshConnections(ctx) })
	for i := range keepers {
		l.group.Go(func() { l.keptConnection(ctx, i) })
	}
	return l
}

// end stops the load and waits for the requests in flight.
func (l *load) end() {
	l.stop()
	l.group.Wait()
}

func (l *load) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return fmt.Sprintf("%d requests on new and %d on kept connections (%d of them left when asked to), %d failed, slowest %s",
		l.fresh, l.kept, l.left, len(l.failed), l.slowest.Round(time.Millisecond))
}

func (l *load) note(count *int, began time.Time, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	*count++
	l.slowest = max(l.slowest, time.Since(began))
	if err != nil {
		l.failed = append(l.failed, failure{began, err})
	}
}

// freshConnections sends half of the load, each request at its time, whether earlier ones were answered or not.
func (l *load) freshConnections(ctx context.Context) {
	// Not a ticker: that drops the ticks for which it is late.
	for due := time.Now(); ; due = due.Add(2 * time.Second / time.Duration(l.rate)) {
		wait := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		l.group.Go(func() {
			began := time.Now()
			conn, err := net.DialTimeout("tcp", l.address, patience)
			if err == nil {
				_, err = ask(conn, bufio.NewReader(conn), "close")
				conn.Close()
			}
			l.note(&l.fresh, began, err)
		})
	}
}

func (l *load) keptConnection(ctx context.Context, number int) {
	interval := 2 * keepers * time.Second / time.Duration(l.rate)
	var conn net.Conn
	var reader *bufio.Reader
	defer func() {
		if conn != nil {
			conn.Close()
		}
	}()
	for due := time.Now().Add(interval * time.Duration(number) / keepers); ; due = due.Add(interval) {
		wait := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
		}
		began := time.Now()
		var err error
		if conn == nil {
			if conn, err = net.DialTimeout("tcp", l.address, patience); err != nil {
				l.note(&l.kept, began, err)
				conn = nil
				continue
			}
			reader = bufio.NewReader(conn)
		}
		last, err := ask(conn, reader, "keep-alive")
		l.note(&l.kept, began, err)
		if err != nil || last {
			conn.Close()
			conn = nil
			if err == nil {
				l.mutex.Lock()
				l.left++
				l.mutex.Unlock()
			}
		}
	}
}

// ask sends one request and reads the answer; last is set when the server closes the connection after it.
func ask(conn net.Conn, reader *bufio.Reader, connection string) (last bool, err error) {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: %s\r\n\r\n", conn.RemoteAddr(), connection); err != nil {
		return false, fmt.Errorf("send a request (%s): %w", connection, err)
	}
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return false, fmt.Errorf("read an answer (%s): %w", connection, err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return false, fmt.Errorf("read the body of an answer (%s): %w", connection, err)
	}
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("answered %s", response.Status)
	}
	return response.Close, nil
}

// noneFailed ends a test some of whose requests failed with when they failed, and with the logs of gateways and publishers of that time.
func (c *cluster) noneFailed(t *testing.T, failed []failure) {
	t.Helper()
	if len(failed) == 0 {
		return
	}
	first, last := failed[0].at, failed[len(failed)-1].at
	var down []string
	for server := range c.servers {
		output, err := c.on(server, "journalctl", "--no-pager", "--output=short-precise", "--identifier=haproxy", "--identifier=burano",
			fmt.Sprintf("--since=@%d", first.Add(-20*time.Second).Unix()), fmt.Sprintf("--until=@%d", last.Add(2*time.Second).Unix()))
		lines := strings.Split(strings.TrimSpace(output), "\n")
		t.Logf("%s then (%v):\n%s", server, err, strings.Join(lines[:min(len(lines), 60)], "\n"))
		for _, line := range lines {
			if _, what, found := strings.Cut(line, ": Server port-"); found && strings.Contains(what, "DOWN") {
				down = append(down, line[7:19]+" "+what)
			}
		}
	}
	require.Fail(t, fmt.Sprintf("%d requests failed from %s to %s, the last one with %v, and servers were down: %s", len(failed), first.UTC().Format("15:04:05.000"),
		last.UTC().Format("15:04:05.000"), failed[len(failed)-1].err, strings.Join(down[:min(len(down), 6)], "; ")))
}
