package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/gateway/udp"
)

// SealKey is where a gateway has the key that certificates for it are sealed to.
const SealKey = "/etc/burano/gateway-seal.key"

// Status is how a gateway is.
type Status struct {
	Etcd    bool      `json:"etcd"`              // answers; without it everything stays as it is
	Trouble string    `json:"trouble,omitempty"` // the reason why the routes could not be applied fully, or HAProxy does not return its counters
	Applied time.Time `json:"applied,omitzero"`  // when the routes were last applied fully
	Ports   []Port    `json:"ports"`
	// Reached is up to which changes in etcd everything is served.
	Reached route.Applied `json:"reached"`
}

// Port is a route that the gateway is to serve.
type Port struct {
	Number uint16 `json:"port"`
	// Protocol is "UDP", or "" of TCP. The counters of a UDP port come from nftables: its connections are the flows that the kernel tracks.
	Protocol string `json:"protocol,omitempty"`
	Service  string `json:"service"` // namespace/service:port; "Ingresses" of a port that sends requests on by host and path
	Problem  string `json:"problem,omitempty"`
	// Listener has HAProxy's counters; nil when it does not listen.
	Listener *traffic.Listener `json:"listener,omitempty"`
}

// ingresses is whose a port for HTTP is.
const ingresses = "Ingresses"

// knowledge is the daemon's knowledge of its own state.
type knowledge struct {
	socket string // of HAProxy
	etcd   func() bool
	udp    func(context.Context) ([]udp.Published, error)

	reloads, changes prometheus.Counter

	mutex   sync.Mutex
	routes  []route.Route    // that won their ports
	web     []route.Listener // ports for HTTP
	refused map[uint16]string
	trouble string
	notUDP  string // why UDP is not served fully
	applied time.Time
	at      route.Applied
}

func newKnowledge(socket string, etcd func() bool) *knowledge {
	return &knowledge{
		socket: socket, etcd: etcd,
		reloads: prometheus.NewCounter(prometheus.CounterOpts{Name: "burano_gateway_reloads_total", Help: "Configurations that HAProxy has taken over."}),
		changes: prometheus.NewCounter(prometheus.CounterOpts{Name: "burano_gateway_server_changes_total", Help: "Servers changed at run time."}),
	}
}

// note records the result of applying routes.
func (k *knowledge) note(routes []route.Route, web []route.Listener, outcome haproxy.Outcome, err error) {
	if outcome.Reloaded {
		k.reloads.Inc()
	}
	k.changes.Add(float64(outcome.Changed))
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.routes, k.web, k.trouble = routes, web, ""
	k.refused = make(map[uint16]string, len(outcome.Refused))
	for port, reason := range outcome.Refused {
		k.refused[port] = reason.Error()
	}
	switch {
	case err != nil:
		k.trouble = err.Error()
	case len(k.refused) == 0 && !outcome.Waiting:
		k.applied = time.Now()
	}
}

// noteUDP records why UDP is not served fully; "" when it is.
func (k *knowledge) noteUDP(trouble string) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.notUDP = trouble
}

// noteServers takes in that backends alone have changed, and servers with them.
func (k *knowledge) noteServers(changed int) {
	k.changes.Add(float64(changed))
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.applied = time.Now()
}

// reached takes in up to which changes in etcd everything is served, and admitted by the firewall.
func (k *knowledge) reached(at route.Applied) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.at = at
}

// status queries HAProxy's counters, and adds the known state. The error is HAProxy's, and part of the trouble.
func (k *knowledge) status() (Status, error) {
	listeners, err := k.listeners()
	var datagrams []udp.Published
	var unknown error
	if k.udp != nil {
		datagrams, unknown = k.udp(context.Background())
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	s := Status{Etcd: k.etcd(), Trouble: cmp.Or(k.trouble, k.notUDP), Applied: k.applied, Reached: k.at, Ports: make([]Port, 0, len(k.routes))}
	if err != nil && len(k.routes)+len(k.web) > 0 {
		s.Trouble = cmp.Or(s.Trouble, err.Error())
	}
	if unknown != nil {
		s.Trouble = cmp.Or(s.Trouble, unknown.Error())
	}
	add := func(number uint16, whose string) {
		port := Port{Number: number, Service: whose, Problem: k.refused[number]}
		if listener, listens := listeners[number]; listens {
			port.Listener = &listener
		}
		s.Ports = append(s.Ports, port)
	}
	for _, r := range k.routes {
		add(r.GatewayPort, r.String())
	}
	for _, l := range k.web {
		add(l.Port, ingresses)
	}
	for _, one := range datagrams {
		s.Ports = append(s.Ports, Port{Number: one.Number, Protocol: route.ProtocolUDP, Service: one.Flow.String(), Listener: &one.Listener})
	}
	slices.SortFunc(s.Ports, func(a, b Port) int {
		return cmp.Or(int(a.Number)-int(b.Number), cmp.Compare(a.Protocol, b.Protocol))
	})
	return s, err
}

func (k *knowledge) listeners() (map[uint16]traffic.Listener, error) {
	const patience = 5 * time.Second
	connection, err := net.DialTimeout("unix", k.socket, patience)
	if err != nil {
		return nil, fmt.Errorf("ask HAProxy what it counts: %w", err)
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(patience))
	list, err := traffic.Ask(connection)
	if err != nil {
		return nil, err
	}
	byPort := make(map[uint16]traffic.Listener, len(list))
	for _, one := range list {
		byPort[one.Port] = one
	}
	return byPort, nil
}

// HAProxy's counters of a port, and the state of the whole.
var (
	perPort = []string{"port", "service"}
	up      = prometheus.NewDesc("burano_gateway_haproxy_up", "1 when HAProxy tells what it counts.", nil, nil)
	etcdUp  = prometheus.NewDesc("burano_gateway_etcd_up", "1 when etcd answers.", nil, nil)
	refused = prometheus.NewDesc("burano_gateway_port_refused", "1 for a port that is to be served and is not.", perPort, nil)
	servers = prometheus.NewDesc("burano_gateway_backends", "Backends of a port, by their state.", append([]string{"state"}, perPort...), nil)
	counted = []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value func(traffic.Listener) int64
	}{
		{prometheus.NewDesc("burano_gateway_connections", "Connections that are open.", perPort, nil), prometheus.GaugeValue, func(l traffic.Listener) int64 { return l.Connections }},
		{prometheus.NewDesc("burano_gateway_connections_total", "Connections since HAProxy took its configuration over.", perPort, nil), prometheus.CounterValue, func(l traffic.Listener) int64 { return l.ConnectionsTotal }},
		{prometheus.NewDesc("burano_gateway_received_bytes_total", "Bytes from clients.", perPort, nil), prometheus.CounterValue, func(l traffic.Listener) int64 { return l.BytesIn }},
		{prometheus.NewDesc("burano_gateway_sent_bytes_total", "Bytes to clients.", perPort, nil), prometheus.CounterValue, func(l traffic.Listener) int64 { return l.BytesOut }},
		{prometheus.NewDesc("burano_gateway_connection_errors_total", "Connections to backends that did not come about.", perPort, nil), prometheus.CounterValue, func(l traffic.Listener) int64 { return l.ConnectionErrors }},
		{prometheus.NewDesc("burano_gateway_denied_total", "Connections refused by a rule: source ranges, limits of one client.", perPort, nil), prometheus.CounterValue, func(l traffic.Listener) int64 { return l.Denied }},
		{prometheus.NewDesc("burano_gateway_retries_total", "Connections to backends that were tried again.", perPort, nil), prometheus.CounterValue, func(l traffic.Listener) int64 { return l.Retries }},
	}
)

// Describe describes nothing: the ports are found at each collection.
func (k *knowledge) Describe(chan<- *prometheus.Desc) {}

// Collect queries HAProxy's counters.
func (k *knowledge) Collect(metrics chan<- prometheus.Metric) {
	truth := func(desc *prometheus.Desc, is bool, labels ...string) {
		value := 0.0
		if is {
			value = 1
		}
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	found, err := k.status()
	truth(up, err == nil)
	truth(etcdUp, found.Etcd)
	for _, port := range found.Ports {
		labels := []string{strconv.Itoa(int(port.Number)), port.Service}
		truth(refused, port.Problem != "", labels...)
		if port.Listener == nil {
			continue
		}
		for _, one := range counted {
			metrics <- prometheus.MustNewConstMetric(one.desc, one.kind, float64(one.value(*port.Listener)), labels...)
		}
		states := map[string]int{traffic.Up: 0, traffic.Down: 0, traffic.Draining: 0, traffic.Unchecked: 0}
		for _, backend := range port.Listener.Backends {
			states[backend.State]++
		}
		for state, number := range states {
			metrics <- prometheus.MustNewConstMetric(servers, prometheus.GaugeValue, float64(number), append([]string{state}, labels...)...)
		}
	}
	k.reloads.Collect(metrics)
	k.changes.Collect(metrics)
}

// serve answers at the socket, and the metrics alone at the address, until the context ends. That something else is there keeps no
// route from being served: it is logged.
func (k *knowledge) serve(ctx context.Context, c Config) (wait func()) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(k)
	measure := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	open, own := http.NewServeMux(), http.NewServeMux()
	open.Handle("GET /metrics", measure)
	own.Handle("GET /metrics", measure)
	own.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		found, _ := k.status()
		_ = json.NewEncoder(w).Encode(found)
	})
	var all sync.WaitGroup
	start := func(network, address string, handler http.Handler) {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, network, address)
		if err == nil && network == "unix" {
			err = os.Chmod(address, 0o600)
		}
		if err != nil {
			c.Logger.Error("the gateway does not tell how it is", "at", address, "error", err)
			return
		}
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute}
		all.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				c.Logger.Error("the gateway does not tell any more how it is", "at", address, "error", err)
			}
		})
		all.Go(func() {
			<-ctx.Done()
			_ = server.Close()
		})
	}
	if c.Metrics.IsValid() {
		start("tcp", c.Metrics.String(), open)
	}
	if c.StatusSocket != "" {
		if err := os.Remove(c.StatusSocket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.Logger.Warn("a former socket stays", "error", err)
		}
		start("unix", c.StatusSocket, own)
	}
	return all.Wait
}

// AskStatus asks the daemon of this gateway how it is.
func AskStatus(ctx context.Context, socket string) (Status, error) {
	var dialer net.Dialer
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", socket)
	}}}
	var found Status
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gateway/status", nil)
	if err != nil {
		return found, err
	}
	response, err := client.Do(request)
	if err != nil {
		return found, fmt.Errorf("ask the gateway daemon of this node: %w; systemctl status burano-gateway tells whether it runs", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return found, fmt.Errorf("ask the gateway daemon of this node: %s: %w", response.Status, err)
	}
	return found, nil
}
