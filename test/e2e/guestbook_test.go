package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/stretchr/testify/require"
)

// guestbook is a guestbook that visitors reach through a gateway, over HTTPS under a host name.
type guestbook struct {
	scaling *scaling
	client  *http.Client
	written []string // the visitors' entries
}

const guestbookHost = "guestbook.example.org"

// guestbookByMurano has Murano's own client add a guestbook to the deployed environment, over the database of this name, and gives its Service
// a host.
func (s *scaling) guestbookByMurano(t *testing.T, database string) *guestbook {
	t.Helper()
	output, err := exec.Command(filepath.Join("..", "setup", "packages.sh"), "python3-muranoclient").CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	idOf := func(name string) string {
		return (&applications{lab: s.lab, user: s.user}).application(t, s.environment, name)["?"].(map[string]any)["id"].(string)
	}
	const pod, page = "f0000000000000000000000000000001", "f0000000000000000000000000000002"
	add := func(value map[string]any) map[string]any {
		return map[string]any{"op": "add", "path": "/-", "value": value}
	}
	patch, err := json.Marshal([]any{
		add(map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesPod", "id": pod}, "name": "front", "kubernetesCluster": idOf("ledger-cluster"), "replicas": 2}),
		add(map[string]any{"?": map[string]any{"type": "io.burano.Guestbook", "id": page}, "name": "guestbook", "host": pod, "database": idOf(database), "port": 8082}),
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "add.json")
	require.NoError(t, os.WriteFile(file, patch, 0o600))
	session := regexp.MustCompile(`[0-9a-f]{32}`).FindString(s.murano(t, "environment-session-create", s.environment))
	s.murano(t, "environment-apps-edit", "--session-id", session, s.environment, file)
	s.murano(t, "environment-deploy", "--session-id", session, s.environment)
	s.ready(t)
	require.Contains(t, s.murano(t, "deployment-list", s.environment), "success")

	certificate, pair := selfSigned(t, guestbookHost)
	private := pair[len(certificate):]
	s.cluster.kubectl(t, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: guestbook-tls}
type: kubernetes.io/tls
data: {tls.crt: %s, tls.key: %s}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: guestbook}
spec:
  ingressClassName: burano
  tls: [{hosts: [%[3]s], secretName: guestbook-tls}]
  rules: [{host: %[3]s, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: front-guestbook, port: {number: 8082}}}}]}}]
`, base64.StdEncoding.EncodeToString(certificate), base64.StdEncoding.EncodeToString(private), guestbookHost), "apply", "-f", "-")
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	gateway, _, err := net.SplitHostPort(s.published(t, &applications{lab: s.lab, user: s.user}, "guestbook"))
	require.NoError(t, err)
	return &guestbook{scaling: s, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(gateway, "443"))
		},
	}}}
}

// murano runs Murano's client as the user.
func (s *scaling) murano(t *testing.T, args ...string) string {
	t.Helper()
	options, endpoint, _, err := clouds.Parse(clouds.WithCloudName("burano-demo"), clouds.WithLocations(filepath.Join(s.lab.cloud, "clouds.yaml")))
	require.NoError(t, err)
	command := exec.Command("/usr/bin/murano", args...)
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "COLUMNS=200", "MURANO_URL="+s.lab.url, "OS_AUTH_URL="+options.IdentityEndpoint, "OS_USERNAME="+options.Username,
		"OS_PASSWORD="+options.Password, "OS_PROJECT_NAME="+options.TenantName, "OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default", "OS_REGION_NAME="+endpoint.Region)
	output, err := command.CombinedOutput()
	require.NoErrorf(t, err, "murano %s: %s", strings.Join(args, " "), output)
	return string(output)
}

// recreatedByMurano has Murano's client call the action of a pod that replaces its replicas.
func (s *scaling) recreatedByMurano(t *testing.T, pod string) {
	t.Helper()
	object := (&applications{lab: s.lab, user: s.user}).application(t, s.environment, pod)["?"].(map[string]any)["id"].(string)
	task := regexp.MustCompile(`[0-9a-f]{32}`).FindString(s.murano(t, "environment-action-call", "--action-id", object+"_recreatePod", "--", s.environment))
	s.ready(t)
	require.NotContains(t, s.murano(t, "environment-action-get-result", "--task-id", task, s.environment), "True", "isException")
}

// ready waits until the environment is ready.
func (s *scaling) ready(t *testing.T) {
	t.Helper()
	s.lab.eventually(t, 5*time.Minute, "the environment is ready", func() error {
		if status := s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)["status"]; status != "ready" {
			return fmt.Errorf("it is %s", status)
		}
		return nil
	})
}

// write writes an entry as a visitor.
func (g *guestbook) write(t *testing.T, entry string) {
	t.Helper()
	g.scaling.lab.eventually(t, 30*time.Second, "the guestbook takes an entry", func() error {
		response, err := g.client.PostForm("https://"+guestbookHost+"/", url.Values{"entry": {entry}}) // follows to the page
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("it answers %s", response.Status)
		}
		return nil
	})
	g.written = append(g.written, entry)
}

// holds demands that all entries of visitors are on the page of both replicas.
func (g *guestbook) holds(t *testing.T, when string) {
	t.Helper()
	g.scaling.lab.eventually(t, time.Minute, when+" the guestbook has all entries", func() error {
		for range 4 { // of both replicas
			response, err := g.client.Get("https://" + guestbookHost + "/")
			if err != nil {
				return err
			}
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(g.written, func(entry string) bool {
				return !strings.Contains(string(text), "<li>"+html.EscapeString(entry)+"</li>")
			}); i >= 0 {
				return fmt.Errorf("there is no %q in %s: %s", g.written[i], response.Status, text)
			}
		}
		return nil
	})
}
