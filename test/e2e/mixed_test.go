package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// besideServers deploys an application with servers of its own beside the cluster, in the cluster's stack and network. It publishes the
// application through the cluster's gateway, and removes it again. Nothing of the cluster is replaced.
func (s *scaling) besideServers(t *testing.T) {
	l := s.lab
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	before := withoutTrusts(inventory(t, s.user))
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Servers")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "mixed.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.TrimRight(string(text), "\n")+`
  - "?": {type: io.burano.test.Farm, id: farm}
    servers:
      - {"?": {type: io.murano.resources.LinuxInstance}, name: plain-one, flavor: m1.small, image: burano-node, assignFloatingIp: true}
      - {"?": {type: io.murano.resources.LinuxInstance}, name: plain-two, flavor: m1.small, image: burano-node}
`), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	beside := inventory(t, s.user)
	for kind, more := range map[string]int{"servers": 2, "ports": 2, "floating IPs": 1, "security groups": 1, "stacks": 0, "networks": 0, "routers": 0} {
		require.Subset(t, beside[kind], before[kind], kind)
		require.Len(t, beside[kind], len(before[kind])+more, kind)
	}
	require.Contains(t, beside["servers"], "plain-one")
	s.routes(t, file)

	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	require.Equal(t, before, withoutTrusts(inventory(t, s.user)))
}

// routes publishes the application of a file at a port of the gateway and under a host name. Its servers admit no other
// clients.
func (s *scaling) routes(t *testing.T, file string) {
	l := s.lab
	const answering = "systemd-run --collect --unit answer socat TCP-LISTEN:8090,fork,reuseaddr EXEC:/srv/answer"
	s.cluster = l.clusterOf(t, s.user, environmentNamed(t, s.user, "scaling"))
	for _, server := range []string{"plain-one", "plain-two"} {
		s.in(t, server, `cat >/srv/answer <<'END'
#!/bin/bash
while read -r line && [[ -n ${line%$'\r'} ]]; do :; done
printf 'HTTP/1.0 200 OK\r\n\r\n`+server+`'
END
chmod +x /srv/answer
`+answering)
	}
	with := func(lines string) string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		published := filepath.Join(t.TempDir(), "published.yaml")
		require.NoError(t, os.WriteFile(published, []byte(string(text)+`
  - "?": {type: io.burano.Route, id: route}
    name: farm
    kubernetesCluster: cluster
    application: farm
    port: 8090
`+lines), 0o600))
		return published
	}
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", with("    gatewayPort: 9090\n"), "--follow")
	environment := environmentNamed(t, s.user, "scaling")
	var endpoint string
	for _, one := range environment["services"].([]any) {
		if one := one.(map[string]any); one["name"] == "farm" {
			endpoint = one["endpoints"].([]any)[0].(string)
		}
	}
	require.Contains(t, log, "farm is available at "+endpoint)
	gateway, port, err := net.SplitHostPort(endpoint)
	require.NoError(t, err)
	require.Equal(t, "9090", port)
	bothAnswer := func(url, host string) {
		t.Helper()
		answered := map[string]bool{}
		l.eventually(t, time.Minute, "both servers answer", func() error {
			page, err := getOf(url, host)
			answered[page] = true
			if !answered["plain-one"] || !answered["plain-two"] {
				return fmt.Errorf("only %v answered, and then %w", answered, err)
			}
			return nil
		})
	}
	bothAnswer("http://"+endpoint+"/", "")
	_, err = s.cluster.on("murano-kube-2", "curl", "-sS", "--max-time", "3", "http://"+s.fixed(t)["plain-one"].String()+":8090/")
	require.Error(t, err, "who is no gateway is not let in")

	s.in(t, "plain-two", "systemctl stop answer")
	l.eventually(t, time.Minute, "one server answers for both", func() error {
		for range 6 {
			if page, err := get("http://" + endpoint + "/"); err != nil || page != "plain-one" {
				return fmt.Errorf("%q, %w", page, err)
			}
		}
		return nil
	})
	s.in(t, "plain-two", answering)

	log, err = l.try(l.as("burano-demo"), "burano", "deploy", with("    gatewayPort: 80\n"), "--follow")
	require.Error(t, err)
	require.Contains(t, log, "gateway port 80 belongs to")
	log, err = l.try(l.as("burano-demo"), "burano", "deploy", with("    host: farm.example.org\n"), "--follow")
	require.Error(t, err)
	require.Contains(t, log, "port 80 of the gateways does not serve the Ingress: it belongs to the Service default/web-hello:tcp-80")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "    host: pod\n", "    host: pod\n    ports: 8081:8080\n", 1)), 0o600))
	log = l.run(t, l.as("burano-demo"), "burano", "deploy", with("    host: farm.example.org\n"), "--follow")
	require.Contains(t, log, "farm is available at http://farm.example.org/")
	bothAnswer("http://"+gateway+"/", "farm.example.org")

	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	for _, kind := range []string{"services", "endpointslices", "ingresses"} {
		require.NotContains(t, s.cluster.kubectl(t, "", "get", kind, "-n", "default", "-o", "name"), "farm", kind)
	}
}
