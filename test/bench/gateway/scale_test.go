package gateway_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway"
	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// The environment of a daemon in a process of its own: the address of etcd, the directory of HAProxy, and the URL that
// reloads it.
const (
	etcdVariable      = "BURANO_BENCH_ETCD"
	directoryVariable = "BURANO_BENCH_DIRECTORY"
	reloadVariable    = "BURANO_BENCH_RELOAD"
)

// TestMain runs the daemon where etcdVariable is set: its memory is measured alone.
func TestMain(m *testing.M) {
	if os.Getenv(etcdVariable) == "" {
		os.Exit(m.Run())
	}
	if err := daemon(); err != nil {
		slog.Error("the daemon ends", "error", err)
		os.Exit(1)
	}
}

func daemon() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{os.Getenv(etcdVariable)}, DialTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer etcd.Close()
	process := haproxytest.Process{Directory: os.Getenv(directoryVariable)}
	proxy := process.Config()
	proxy.ReloadGap, proxy.MaxConnections = 0, 500
	proxy.Reload = func(context.Context) error {
		answer, err := http.Post(os.Getenv(reloadVariable), "", nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("reload: %s", answer.Status)
		}
		return nil
	}
	return gateway.Run(ctx, gateway.Config{Etcd: etcd, HAProxy: proxy, Firewall: open{}, Logger: slog.Default()})
}

const (
	backendsEach = 4
	measured     = 20 // changes of each kind
)

// BenchmarkScale serves 10 and 5,000 Services (BURANO_SERVICES overrides the number) with four backends each. These are hollow: each has an address
// of its own on loopback, and one program answers for all.
func BenchmarkScale(b *testing.B) {
	services := 5000
	if text := os.Getenv("BURANO_SERVICES"); text != "" {
		var err error
		services, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	for _, number := range []int{10, services} {
		b.Run(fmt.Sprintf("%d-services", number), func(b *testing.B) {
			for range b.N {
				scale(b, number)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func scale(b *testing.B, services int) {
	server := etcdtest.New(b)
	etcd := server.Client(b)
	backend := hollow(b)
	routes := make([]route.Route, services)
	var writes []clientv3.Op
	for i := range routes {
		port := haproxytest.FreePort(b)
		routes[i] = route.Route{Namespace: "default", Service: fmt.Sprint("s", port), Port: "http", GatewayPort: port, Protocol: route.TCP}
		for j := range backendsEach {
			routes[i].Backends = append(routes[i].Backends, backend(i*backendsEach+j))
		}
		value, err := route.Encode(routes[i])
		require.NoError(b, err)
		writes = append(writes, clientv3.OpPut(route.Key(routes[i]), string(value)))
	}
	for some := range slices.Chunk(writes, 100) {
		_, err := etcd.Txn(b.Context()).Then(some...).Commit()
		require.NoError(b, err)
	}
	answers := func(r route.Route) func() bool { return func() bool { return ask(r.GatewayPort, "", "hollow") } }

	process := haproxytest.New(b)
	start := time.Now()
	child := startDaemon(b, server.URL, process)
	for i := 0; i < services; i += max(1, services/100) {
		until(b, answers(routes[services-1-i]))
	}
	b.ReportMetric(time.Since(start).Seconds(), "s/start")
	for _, r := range routes {
		until(b, answers(r))
	}

	live := haproxytest.NewBackend(b, "live")
	before, took := processor(b, child.Process.Pid), []time.Duration(nil)
	for i := range measured {
		port := routes[i*len(routes)/measured].GatewayPort
		backends, name := []route.Backend{live.Ready()}, live.Name
		if i%2 != 0 && services < measured {
			backends, name = routes[0].Backends, "hollow" // the same port is changed again
		}
		publish(b, etcd, port, backends...)
		took = append(took, until(b, func() bool { return ask(port, "", name) }))
	}
	report(b, "backend", took)
	b.ReportMetric((processor(b, child.Process.Pid)-before).Seconds()*1000/measured, "ms-processor/backend")
	took = nil
	before = processor(b, child.Process.Pid)
	for range measured {
		port := haproxytest.FreePort(b)
		publish(b, etcd, port, live.Ready())
		took = append(took, until(b, func() bool { return ask(port, "", live.Name) }))
	}
	report(b, "listener", took)
	b.ReportMetric((processor(b, child.Process.Pid)-before).Seconds()*1000/measured, "ms-processor/listener")
	b.ReportMetric(peak(b, child.Process.Pid), "MiB-peak/daemon")

	stopDaemon(b, child)
	start = time.Now()
	child = startDaemon(b, server.URL, process)
	other := haproxytest.NewBackend(b, "other")
	publish(b, etcd, routes[0].GatewayPort, other.Ready())
	until(b, func() bool { return ask(routes[0].GatewayPort, "", other.Name) })
	b.ReportMetric(time.Since(start).Seconds(), "s/restart")
	before, start = processor(b, child.Process.Pid), time.Now()
	time.Sleep(30 * time.Second) // it is measured at rest
	b.ReportMetric((processor(b, child.Process.Pid)-before).Seconds()/time.Since(start).Seconds(), "processors-at-rest/daemon")
	b.ReportMetric(peak(b, child.Process.Pid), "MiB-peak/restarted-daemon")
	for pid, name := range haproxies(b, process.Directory) {
		b.Logf("HAProxy %s: %.0f MiB at most", name, peak(b, pid))
	}
	stopDaemon(b, child)
}

// hollow returns backends by their number; one program answers for all of them.
func hollow(b *testing.B) func(number int) route.Backend {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(b, err)
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hollow") })}
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() { _ = server.Close() })
	port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
	return func(number int) route.Backend {
		address := netip.AddrFrom4([4]byte{127, byte(1 + number>>16), byte(number >> 8), byte(number)})
		return route.Backend{Address: address.String(), Port: port, Node: "node", Ready: true}
	}
}

// startDaemon runs this program as the daemon.
func startDaemon(b *testing.B, etcd string, process *haproxytest.Process) *exec.Cmd {
	b.Helper()
	reload := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := process.Reload(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	b.Cleanup(reload.Close)
	log, err := os.OpenFile(filepath.Join(process.Directory, "daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(b, err)
	defer log.Close()
	program, err := os.Executable()
	require.NoError(b, err)
	child := exec.Command(program)
	child.Env = append(os.Environ(), etcdVariable+"="+etcd, directoryVariable+"="+process.Directory, reloadVariable+"="+reload.URL)
	child.Stderr = log
	require.NoError(b, child.Start())
	b.Cleanup(func() {
		if child.ProcessState == nil {
			_ = child.Process.Kill()
			_ = child.Wait()
		}
		if b.Failed() {
			content, _ := os.ReadFile(log.Name())
			b.Logf("the daemon's log:\n%s", content)
		}
	})
	return child
}

func stopDaemon(b *testing.B, child *exec.Cmd) {
	b.Helper()
	require.NoError(b, child.Process.Signal(syscall.SIGTERM))
	require.NoError(b, child.Wait())
}

// processor is the processor time of a process, including its ended children.
func processor(b *testing.B, pid int) time.Duration {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	_, after, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(after)
	var ticks int64
	for _, field := range fields[11:15] { // utime, stime, cutime and cstime, of which there are 100 a second (proc(5))
		number, err := strconv.ParseInt(field, 10, 64)
		require.NoError(b, err)
		ticks += number
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// peak is a process's peak of memory, in MiB.
func peak(b *testing.B, pid int) float64 {
	b.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	for line := range strings.Lines(string(content)) {
		if text, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
			require.NoError(b, err)
			return kib / 1024
		}
	}
	require.FailNow(b, "no VmHWM")
	return 0
}

// haproxies are the processes whose configuration is in a directory.
func haproxies(b *testing.B, directory string) map[int]string {
	b.Helper()
	found := make(map[int]string)
	entries, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(b, err)
	for _, entry := range entries {
		content, _ := os.ReadFile(entry)
		line := strings.ReplaceAll(string(content), "\x00", " ")
		if !strings.HasPrefix(line, "haproxy ") || !strings.Contains(line, directory) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry))); err == nil {
			found[pid] = strconv.Itoa(pid)
		}
	}
	return found
}
