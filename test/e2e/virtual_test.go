package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// TestGatewaysShareAnAddress has the gateways of an existing cluster share an address, and takes it away from its holder: its HAProxy is frozen,
// its server dies, it leaves. Each time the other gateway takes it over, and requests to that gateway's own address do not fail. `make soak` runs
// it.
func TestGatewaysShareAnAddress(t *testing.T) {
	soakOnly(t, "make soak runs this")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "scaling")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	two := strings.Replace(string(text), "gatewayCount: 1", "gatewayCount: 2", 1)
	file := filepath.Join(t.TempDir(), "scaling.yaml")
	deploy := func(model string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	deploy(two)
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	gateways := []string{"murano-gateway-1", "murano-gateway-2"}
	s.cluster.kubectl(t, `{apiVersion: v1, kind: Service, metadata: {name: shared}, spec: {type: LoadBalancer, selector: {id: web}, ports: [{port: 8099, targetPort: 80}]}}`,
		"apply", "-f", "-")

	before := s.cluster.startTimes(t)
	sharing := strings.Replace(two, "    gatewayCount: 2\n", `    gatewayCount: 2
    virtualAddress: {"?": {type: io.murano.SharedIp, id: shared}, assignFloatingIp: true}
`, 1)
	move := func(from, to string) {
		t.Helper()
		output, err := s.cluster.on("murano-gateway-2", "mv", from, to)
		require.NoError(t, err, output)
	}
	move("/usr/sbin/keepalived", "/root/keepalived")
	require.NoError(t, os.WriteFile(file, []byte(sharing), 0o600))
	output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Error(t, err, output)
	require.Contains(t, output, "murano-gateway-2: made from an older image, without keepalived, which a virtualAddress needs")
	move("/root/keepalived", "/usr/sbin/keepalived")
	deploy(sharing)
	require.Equal(t, before, s.cluster.startTimes(t), "nothing that runs is touched")
	own, floating := s.shared(t)
	host, port, err := net.SplitHostPort(endpointOf(t, environmentNamed(t, demo, "scaling")))
	require.NoError(t, err)
	require.Equal(t, floating, host, "applications are published at the shared address")
	l.eventually(t, 10*time.Second, "the Service's status has the shared address alone", func() error {
		if has := s.cluster.kubectl(t, "", "get", "service", "shared", "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}"); has != floating {
			return fmt.Errorf("it has %q, and the shared address is %s", has, floating)
		}
		return nil
	})
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "scaling"), floating)

	// moves runs happen on the gateway that has the address, and waits until the other one has it.
	moves := func(what string, happen func(holder, other string)) {
		t.Helper()
		holder := s.holder(t, own, gateways...)
		other := gateways[0]
		if holder == other {
			other = gateways[1]
		}
		untouched := startLoadOf(t, net.JoinHostPort(s.floating(t, other)[other], port), loadRate/2)
		away := watchAnswers(t, "http://"+net.JoinHostPort(floating, port))
		happen(holder, other)
		l.eventually(t, 20*time.Second, "the other gateway has the address", func() error {
			if now := s.holder(t, own, other); now != other {
				return fmt.Errorf("it is not at %s", other)
			}
			return nil
		})
		began := time.Now()
		l.eventually(t, 20*time.Second, "the address answers", func() error {
			if !away.answered(began) {
				return fmt.Errorf("there is no answer since %s", began.Format(time.TimeOnly))
			}
			return nil
		})
		away.end()
		untouched.end()
		t.Logf("%s: no answer for %s; through %s itself: %s", what, away.longest.Round(time.Millisecond), other, untouched)
		require.Empty(t, untouched.failed, "%s: through the other gateway nothing fails", what)
		require.Less(t, away.longest, 4*time.Second, what) // under 2 s on an idle machine
	}
	signal := func(gateway, name string) {
		t.Helper()
		output, err := s.cluster.on(gateway, "systemctl", "kill", "--kill-who=all", "--signal="+name, "haproxy.service")
		require.NoError(t, err, output)
	}
	still := ""
	moves("HAProxy stands still", func(holder, _ string) {
		still = holder
		signal(holder, "STOP")
	})
	signal(still, "CONT")
	dead := ""
	moves("the server dies", func(holder, _ string) {
		dead = holder
		require.NoError(t, servers.Delete(t.Context(), demo.nova(t), s.cluster.servers[holder]).ExtractErr())
	})
	stays := s.holder(t, own, gateways...)
	s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": dead})
	gateways = []string{stays, dead + "-r2"}
	s.holds(t, []string{"murano-kube-2"}, gateways)
	require.Equal(t, stays, s.holder(t, own, gateways...), "the address stays where it is when a gateway comes")
	moves("a gateway leaves", func(holder, _ string) {
		s.act(t, "scaling-cluster", "scaleGatewaysDown", map[string]any{"node": holder})
	})
	gateways = gateways[1:]
	s.holds(t, []string{"murano-kube-2"}, gateways)

	deploy(strings.Replace(two, "gatewayCount: 2", "gatewayCount: 1", 1))
	output, err = s.cluster.on(gateways[0], "systemctl", "is-active", "virtual-address")
	require.Error(t, err, output)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// answers requests a page all the time, each on a connection of its own, and records for how long there was no answer.
type answers struct {
	stop    context.CancelFunc
	group   sync.WaitGroup
	mutex   sync.Mutex
	last    time.Time // when the last answered request was sent
	longest time.Duration
}

func watchAnswers(t *testing.T, page string) *answers {
	ctx, stop := context.WithCancel(context.Background())
	a := &answers{stop: stop, last: time.Now()}
	t.Cleanup(a.end)
	client := &http.Client{Timeout: 200 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	a.group.Go(func() {
		for ctx.Err() == nil {
			asked := time.Now()
			if response, err := client.Get(page); err == nil {
				response.Body.Close()
				a.mutex.Lock()
				a.longest = max(a.longest, time.Since(a.last))
				a.last = asked
				a.mutex.Unlock()
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	return a
}

// answered reports whether a request was answered that was sent after a time.
func (a *answers) answered(after time.Time) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.last.After(after)
}

func (a *answers) end() {
	a.stop()
	a.group.Wait()
}

// shared is the address that the gateways share, and its floating address.
func (s *scaling) shared(t *testing.T) (own, floating string) {
	t.Helper()
	return s.sharedBy(t, s.clusterID(t))
}

// sharedBy is shared for the gateways of a cluster with this id, or without one.
func (s *scaling) sharedBy(t *testing.T, cluster string) (own, floating string) {
	t.Helper()
	return s.addressOf(t, cluster, "virtual_address")
}

// addressOf is an address that nodes of a cluster share, by its field in the cluster's status, with its floating address.
func (s *scaling) addressOf(t *testing.T, cluster, field string) (own, floating string) {
	t.Helper()
	status := s.user.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/clusters/"+cluster, nil)
	shared, _ := status[field].(map[string]any)
	require.NotNil(t, shared, "the cluster shows its shared address")
	return shared["address"].(string), shared["floating_address"].(string)
}

// holder is the gateway of these that has an address, "" for none.
func (s *scaling) holder(t *testing.T, address string, gateways ...string) (holder string) {
	t.Helper()
	for _, gateway := range gateways {
		if output, err := s.cluster.on(gateway, "ip", "-o", "address", "show", "to", address+"/32"); err == nil && output != "" {
			require.Empty(t, holder, "one gateway has the address at a time")
			holder = gateway
		}
	}
	return holder
}
