package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxytest"
)

// ownGateways are two gateways without a cluster, two servers with an application, and four routes: a port, a host, a host whose TLS ends at the gateways, and
// one whose TLS ends at the servers.
const ownGateways = `name: own
applications:
  - "?": {type: io.burano.test.Farm, id: farm}
    servers:
      - {"?": {type: io.murano.resources.LinuxInstance, id: one}, name: plain-one, flavor: m1.small, image: burano-node}
      - {"?": {type: io.murano.resources.LinuxInstance, id: two}, name: plain-two, flavor: m1.small, image: burano-node}
`

func gatewaysModel(count int) string {
	var nodes strings.Builder
	for n := range 3 {
		fmt.Fprintf(&nodes, `
      - "?": {type: com.mirantis.docker.kubernetes.KubernetesGatewayNode}
        instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: gateway-%d, flavor: m1.small, image: burano-node, assignFloatingIp: true}`, n+1)
	}
	return fmt.Sprintf(`  - "?": {type: io.burano.Gateways, id: gateways}
    name: doors
    autoRepair: true
    gatewayCount: %d
    gatewayNodes:%s
`, count, nodes.String())
}

func ownRoute(name, more string) string {
	return fmt.Sprintf("  - {\"?\": {type: io.burano.Route, id: route-%[1]s}, name: %[1]s, gateways: gateways, %s}\n", name, more)
}

// TestGatewaysOfTheirOwnPublishServers publishes an application on plain servers through gateways without a Kubernetes cluster. A gateway that is deleted in Nova
// comes back with the same routes, routes change without a dropped request, and gateways come, are replaced and go. In the end nothing of them is left.
func TestGatewaysOfTheirOwnPublishServers(t *testing.T) {
	soakOnly(t, "`make soak` runs it: it makes ten servers")
	l := start(t)
	l.relaunch(t, watchful...)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.deleteIfFailed(t, "own")
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Servers")
	file := filepath.Join(t.TempDir(), "own.yaml")
	deploy := func(model string) string {
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		return l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	deploy(ownGateways)
	s := &scaling{lab: l, user: demo}
	s.environment = environmentNamed(t, demo, "own")["id"].(string)
	beside := withoutTrusts(inventory(t, demo))

	s.find(t)
	certificate, private := haproxytest.Certificate(t, "given.example.org", 0)
	for _, server := range []string{"plain-one", "plain-two"} {
		s.running(t, server)
		s.in(t, server, `cat >/srv/answer <<'END'
#!/bin/bash
while read -r line && [[ -n ${line%$'\r'} ]]; do :; done
printf 'HTTP/1.0 200 OK\r\n\r\n`+server+`'
END
chmod +x /srv/answer
cat >/srv/pair.pem <<'END'
`+string(certificate)+string(private)+`END
systemd-run --collect --unit answer socat TCP-LISTEN:8090,fork,reuseaddr,backlog=128 EXEC:/srv/answer
systemd-run --collect --unit answer-tls socat OPENSSL-LISTEN:8443,fork,reuseaddr,verify=0,cert=/srv/pair.pem EXEC:/srv/answer`)
	}
	chain, err := json.Marshal(string(certificate))
	require.NoError(t, err)
	key, err := json.Marshal(string(private))
	require.NoError(t, err)
	routes := ownRoute("farm", "application: farm, port: 8090, host: farm.example.org") +
		ownRoute("given", fmt.Sprintf("application: farm, port: 8090, host: given.example.org, tls: terminate, certificateChain: %s, certificateKey: %s", chain, key)) +
		ownRoute("signed", "application: farm, port: 8090, host: signed.example.org, path: /shop, tls: terminate") +
		ownRoute("passed", "application: farm, port: 8443, host: passed.example.org, tls: passThrough") +
		ownRoute("plain", "application: farm, port: 8090, gatewayPort: 9090")
	began := time.Now()
	log := deploy(ownGateways + gatewaysModel(2) + routes)
	t.Logf("two gateways with five routes were there after %.1f s", time.Since(began).Seconds())
	require.Contains(t, log, "The gateways doors are up and running")
	require.Contains(t, log, "given is available at https://given.example.org/")
	s.find(t)
	addresses := s.ownAddresses(t)
	require.Len(t, addresses, 2)
	for name, address := range addresses {
		require.Contains(t, log, "plain is available at "+address+":9090")
		s.allAnswer(t, name, address, certificate)
	}
	_, err = s.cluster.on("gateway-1", "test", "-e", "/etc/kubernetes")
	require.Error(t, err, "a gateway of its own has nothing of Kubernetes")
	status, err := s.cluster.on("gateway-1", "/opt/burano/bin/burano", "gateway", "status")
	require.NoErrorf(t, err, "%s", status)
	require.Regexp(t, `9090 +burano/plain:servers +yes`, status)
	shown := l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "own")
	require.Contains(t, shown, "gateway-2")

	// They share an address, which moves to the other one when its holder dies.
	log = deploy(ownGateways + strings.Replace(gatewaysModel(2), "    gatewayCount: 2\n", `    gatewayCount: 2
    virtualAddress: {"?": {type: io.murano.SharedIp, id: shared}, assignFloatingIp: true}
`, 1) + routes)
	virtual, floating := s.sharedBy(t, s.ownService(t, "doors")["?"].(map[string]any)["id"].(string))
	require.Contains(t, log, "plain is available at "+floating+":9090")
	require.Equal(t, []any{floating + ":9090"}, s.ownService(t, "plain")["endpoints"])
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "own"), floating)
	s.allAnswer(t, "the shared address", floating, certificate)
	dead, stays := "gateway-1", "gateway-2"
	if s.holder(t, virtual, dead, stays) == stays {
		dead, stays = stays, dead
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "own")
	s.finds(t)
	former := s.cluster.servers[dead]
	other := s.steady(t, addresses[stays])
	away := watchAnswers(t, "http://"+net.JoinHostPort(floating, "9090")+"/")
	began = time.Now()
	require.NoError(t, servers.Delete(t.Context(), demo.nova(t), former).ExtractErr())
	l.eventually(t, 20*time.Second, "the other gateway has the address, which answers", func() error {
		if s.holder(t, virtual, stays) != stays {
			return fmt.Errorf("it has not")
		}
		if !away.answered(began) {
			return fmt.Errorf("there is no answer since %s", began.Format(time.TimeOnly))
		}
		return nil
	})
	l.eventually(t, 3*time.Minute, "the gateway that was deleted has a successor that answers", func() error {
		if s.find(t); s.cluster.servers[dead] == "" || s.cluster.servers[dead] == former {
			return fmt.Errorf("there is no other server yet")
		}
		_, err := getOf("http://"+addresses[dead]+"/", "farm.example.org")
		return err
	})
	t.Logf("a gateway that was deleted was back after %.1f s", time.Since(began).Seconds())
	s.finds(t)
	l.eventually(t, time.Minute, "the repair has ended", func() error { return s.idle(t) })
	away.end()
	t.Logf("the shared address did not answer for %s", away.longest.Round(time.Millisecond))
	require.Less(t, away.longest, 4*time.Second) // under 2 s on an idle machine
	require.Equal(t, stays, s.holder(t, virtual, "gateway-1", "gateway-2"), "the address stays where it is when a gateway comes")
	s.allAnswer(t, dead, addresses[dead], certificate)
	other("the other gateway was lost")

	first, second := s.steady(t, addresses["gateway-1"]), s.steady(t, addresses["gateway-2"])
	began = time.Now()
	deploy(ownGateways + gatewaysModel(2) + strings.Replace(strings.Replace(routes, "application: farm, port: 8090, host: farm", "servers: [two], port: 8090, host: farm", 1), "path: /shop", "path: /market", 1))
	t.Logf("two routes were changed after %.1f s", time.Since(began).Seconds())
	for _, address := range addresses {
		for range 4 {
			page, err := getOf("http://"+address+"/", "farm.example.org")
			require.NoError(t, err)
			require.Equal(t, "plain-two", page)
		}
		_, err := getTLS(address, "signed.example.org", "/shop", nil)
		require.ErrorContains(t, err, "404")
		_, err = getTLS(address, "signed.example.org", "/market", nil)
		require.NoError(t, err)
	}
	first("routes changed")
	second("routes changed")

	refused, err := l.try(l.as("burano-demo"), "burano", "deploy", writeModel(t, ownGateways+gatewaysModel(2)+routes+ownRoute("second", "application: farm, port: 8090, gatewayPort: 9090")), "--follow")
	require.Error(t, err)
	require.Contains(t, refused, "port 9090 of the gateways belongs to the route plain")
	deploy(ownGateways + gatewaysModel(2) + routes)

	s.act(t, "doors", "scaleGatewaysUp", map[string]any{"count": 1})
	addresses = s.ownAddresses(t)
	require.Len(t, addresses, 3)
	s.allAnswer(t, "gateway-3", addresses["gateway-3"], certificate)
	require.Len(t, s.ownService(t, "plain")["endpoints"], 3)
	first = s.steady(t, addresses["gateway-1"])
	s.find(t)
	former = s.cluster.servers["gateway-3"]
	s.act(t, "doors", "replaceNode", map[string]any{"node": "gateway-3"})
	s.allAnswer(t, "gateway-3", addresses["gateway-3"], certificate)
	s.find(t)
	require.NotContains(t, slices.Collect(maps.Values(s.cluster.servers)), former)
	s.act(t, "doors", "renewCertificates", map[string]any{})
	s.act(t, "doors", "scaleGatewaysDown", map[string]any{"count": 1})
	require.Len(t, s.ownAddresses(t), 2)
	first("gateways came and went")

	deploy(ownGateways + gatewaysModel(2) + routes[:strings.Index(routes, "\n")+1])
	_, err = net.DialTimeout("tcp", net.JoinHostPort(addresses["gateway-1"], "9090"), 2*time.Second)
	require.Error(t, err, "a port of a route that is gone is closed")
	deploy(ownGateways)
	require.Equal(t, beside, withoutTrusts(inventory(t, demo)))
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "own")
	asBefore(t, demo, found)
}

func writeModel(t *testing.T, model string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.yaml")
	require.NoError(t, os.WriteFile(path, []byte(model), 0o600))
	return path
}

func (s *scaling) ownService(t *testing.T, name string) map[string]any {
	t.Helper()
	for _, one := range s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)["services"].([]any) {
		if service := one.(map[string]any); service["name"] == name {
			return service
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// ownAddresses are the floating addresses of the gateways, by the names that their instances have in the model.
func (s *scaling) ownAddresses(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, one := range s.ownService(t, "doors")["gatewayNodes"].([]any) {
		instance := one.(map[string]any)["instance"].(map[string]any)
		if address, _ := instance["floatingIpAddress"].(string); address != "" {
			found[instance["name"].(string)] = address
		}
	}
	return found
}

// allAnswer demands that both servers answer behind each of the routes.
func (s *scaling) allAnswer(t *testing.T, name, gateway string, certificate []byte) {
	t.Helper()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	for what, ask := range map[string]func() (string, error){
		"a host":          func() (string, error) { return getOf("http://"+gateway+"/any", "farm.example.org") },
		"a port":          func() (string, error) { return get("http://" + gateway + ":9090/") },
		"a host with TLS": func() (string, error) { return getTLS(gateway, "given.example.org", "/", trusted) },
		"a host whose certificate the gateway signs": func() (string, error) { return getTLS(gateway, "signed.example.org", "/shop/one", nil) },
		"a host whose servers open TLS":              func() (string, error) { return getTLS(gateway, "passed.example.org", "/", nil) },
	} {
		answered := map[string]bool{}
		s.lab.eventually(t, 20*time.Second, what+" answers through "+name, func() error {
			page, err := ask()
			answered[page] = true
			if !answered["plain-one"] || !answered["plain-two"] {
				return fmt.Errorf("only %v answered, and then %w", answered, err)
			}
			return nil
		})
	}
}

// getTLS returns a page of a host that a gateway serves by TLS; the certificate is checked if trusted is set.
func getTLS(gateway, host, path string, trusted *x509.CertPool) (string, error) {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: host, RootCAs: trusted, InsecureSkipVerify: trusted == nil, MinVersion: tls.VersionTLS12}}
	client := http.Client{Timeout: 5 * time.Second, Transport: transport}
	request, err := http.NewRequest(http.MethodGet, "https://"+net.JoinHostPort(gateway, "443")+path, nil)
	if err != nil {
		return "", err
	}
	request.Host = host
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s%s answers %d", host, path, response.StatusCode)
	}
	return string(body), err
}

// steady sends a request to a host through a gateway ten times a second, each on a connection of its own. end demands that all were answered.
func (s *scaling) steady(t *testing.T, gateway string) (end func(what string)) {
	t.Helper()
	var group, all sync.WaitGroup
	var mutex sync.Mutex
	var failed []string
	count := 0
	stop := make(chan struct{})
	group.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			all.Go(func() {
				began := time.Now()
				page, err := getOf("http://"+gateway+"/", "farm.example.org")
				mutex.Lock()
				defer mutex.Unlock()
				if count++; err != nil || !strings.HasPrefix(page, "plain-") {
					failed = append(failed, fmt.Sprintf("%s: %q, %v", began.Format("15:04:05.000"), page, err))
				}
			})
		}
	})
	once := sync.OnceFunc(func() { close(stop); group.Wait(); all.Wait() })
	t.Cleanup(once)
	return func(what string) {
		t.Helper()
		once()
		require.Emptyf(t, failed, "of %d requests while %s", count, what)
		require.Positive(t, count)
		t.Logf("%d requests were answered while %s", count, what)
	}
}
