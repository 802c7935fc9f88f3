package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

// issuer is an issuer of OpenID Connect that servers of the local cloud reach.
type issuer struct {
	url, authority string
	client         *http.Client
}

// startIssuer starts the issuer of test/issuer with its users: anna and bob with passwords like their names, and anna in the group developers.
func startIssuer(t *testing.T, l *lab) *issuer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "issuer")
	output, err := exec.Command("go", "build", "-C", filepath.Join(l.root, "test/issuer"), "-o", program, ".").CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	listener, err := net.Listen("tcp", outside("1")+":0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.ParseIP(outside("1"))}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	made := &issuer{url: "https://" + address, authority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))}
	folder := t.TempDir()
	certFile, keyFile := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	require.NoError(t, os.WriteFile(certFile, []byte(made.authority), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600))
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM([]byte(made.authority)))
	made.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}

	command := exec.Command(program, "-listen", address, "-cert", certFile, "-key", keyFile, "-audience", "kubernetes", "-users", "anna:anna:developers bob:bob:visitors")
	said, err := command.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	go func() { // so that it never waits for a reader
		for lines := bufio.NewScanner(said); lines.Scan(); {
		}
	}()
	l.eventually(t, 20*time.Second, "the issuer answers", func() error {
		answer, err := made.client.Get(made.url + "/.well-known/openid-configuration")
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
	return made
}

// token is a signed token of a user.
func (i *issuer) token(t *testing.T, user string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.url+"/oauth/token", strings.NewReader(url.Values{"grant_type": {"client_credentials"}, "scope": {"openid"}}.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(user, user)
	answer, err := i.client.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	var given struct {
		Token string `json:"access_token"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&given))
	require.Len(t, strings.Split(given.Token, "."), 3, "a JWT")
	return given.Token
}

// withToken runs kubectl with a token in place of a certificate.
func (c *cluster) withToken(t *testing.T, token string, args ...string) (string, error) {
	t.Helper()
	written, err := clientcmd.LoadFromFile(c.kubeconfig)
	require.NoError(t, err)
	for name := range written.AuthInfos {
		written.AuthInfos[name] = &clientapi.AuthInfo{Token: token}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*written, path))
	return outputOf(exec.Command(c.lab.kubectl(), append([]string{"--kubeconfig", path}, args...)...))
}

// whoami is a user with a token, as the API server knows the user.
func (c *cluster) whoami(t *testing.T, token string) (name string, groups []string, err error) {
	t.Helper()
	output, err := c.withToken(t, token, "auth", "whoami", "-o", "json")
	if err != nil {
		return "", nil, fmt.Errorf("%w: %s", err, output)
	}
	var who struct {
		Status struct {
			UserInfo struct {
				Username string
				Groups   []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(output), &who), output)
	return who.Status.UserInfo.Username, who.Status.UserInfo.Groups, nil
}

// refused demands that the API server does not know the user of a token.
func (c *cluster) refused(t *testing.T, token string) {
	t.Helper()
	output, err := c.withToken(t, token, "get", "pods")
	require.Error(t, err, output)
	require.Contains(t, output, "You must be logged in to the server")
}

// tokensOfKeystone has users of the project sign in with tokens of Keystone, and no others. In `make soak` a user who is deleted is refused within a minute, and
// certificates work without the server.
func (s *scaling) tokensOfKeystone(t *testing.T) {
	l := s.lab
	member := l.user(t, "burano-demo").provider.Token()
	l.eventually(t, 30*time.Second, "a member's token is admitted", func() error { // as soon as the server has connected to the master
		_, _, err := s.cluster.whoami(t, member)
		return err
	})
	name, groups, err := s.cluster.whoami(t, member)
	require.NoError(t, err)
	require.Equal(t, "keystone:demo@Default", name)
	require.Subset(t, groups, []string{"burano:admins", "keystone:role:member"})
	output, err := s.cluster.withToken(t, member, "create", "configmap", "theirs")
	require.NoError(t, err, output)
	s.cluster.refused(t, l.user(t, "burano-other").provider.Token())
	s.cluster.refused(t, "gAAAAAnonsense")
	s.cluster.kubectl(t, "", "get", "pods", "-A") // certificates and tokens of ServiceAccounts work as before
	account := strings.TrimSpace(s.cluster.kubectl(t, "", "create", "token", "default"))
	name, _, err = s.cluster.whoami(t, account)
	require.NoError(t, err)
	require.Equal(t, "system:serviceaccount:default:default", name)

	var reader string
	t.Run("a reader reads, and does not write", func(t *testing.T) {
		file := strings.TrimPrefix(l.reader(t)[0], "OS_CLIENT_CONFIG_FILE=")
		options, _, _, err := clouds.Parse(clouds.WithCloudName("onlooker"), clouds.WithLocations(file))
		require.NoError(t, err)
		provider, err := config.NewProviderClient(t.Context(), options)
		require.NoError(t, err)
		reader = provider.Token()
		output, err := s.cluster.withToken(t, reader, "get", "pods", "-A")
		require.NoError(t, err, output)
		output, err = s.cluster.withToken(t, reader, "create", "configmap", "never")
		require.Error(t, err)
		require.Contains(t, strings.ToLower(output), "forbidden")
	})
	if !soaking() { // the rest waits until caches have ended
		return
	}
	deleted := time.Now()
	l.eventually(t, time.Minute, "the token of a deleted user is refused", func() error {
		if name, _, err := s.cluster.whoami(t, reader); err == nil {
			return fmt.Errorf("it is that of %s", name)
		}
		return nil
	})
	t.Logf("a deleted user was refused after %.1f s", time.Since(deleted).Seconds())

	require.NoError(t, l.server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, l.server.Wait())
	l.eventually(t, time.Minute, "without the server tokens are refused", func() error {
		if name, _, err := s.cluster.whoami(t, member); err == nil {
			return fmt.Errorf("it is that of %s", name)
		}
		return nil
	})
	require.Contains(t, s.in(t, "murano-kube-1", "journalctl -u burano-sign-in --no-pager"), "no Burano server is connected to this master")
	s.cluster.kubectl(t, "", "get", "configmap", "theirs")
	l.launch(t)
	l.healthy(t)
	l.eventually(t, time.Minute, "with the server they are admitted again", func() error {
		_, _, err := s.cluster.whoami(t, member)
		return err
	})
}

// TestUsersSignInAtTheAPI has users of an issuer, and of Keystone, sign in at the API server of a running cluster, and then no more.
func TestUsersSignInAtTheAPI(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	usual, err := os.ReadFile("testdata/masters.yaml")
	require.NoError(t, err)
	bare, _, _ := strings.Cut(string(usual), "\n  - \"?\": {type: com.mirantis.docker.kubernetes.KubernetesPod")
	l.deleteIfFailed(t, "masters")
	file := filepath.Join(t.TempDir(), "masters.yaml")
	write := func(lines string) {
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(bare, "    nodeCount: 1", lines+"    nodeCount: 1", 1)), 0o600))
	}
	preview := func() string { return l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run") }
	deploy := func() {
		began := time.Now()
		l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
		t.Logf("deployed in %.1f s", time.Since(began).Seconds())
	}
	write("")
	deploy()
	environment := environmentNamed(t, demo, "masters")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	apiServer := s.startedAt(t, "murano-kube-1", "kube-apiserver")

	corp := startIssuer(t, l)
	anna, bob := corp.token(t, "anna"), corp.token(t, "bob")
	s.cluster.refused(t, anna)
	settings := func(authority string) string {
		return "    issuers:\n    - url: " + corp.url + "\n      audiences: [other, kubernetes]\n      usernameClaim: preferred_username\n      usernamePrefix: \"corp:\"\n      groupsPrefix: \"corp:\"\n" +
			"      requiredClaims: {tenant: corp}\n      ca: |\n        " + strings.ReplaceAll(strings.TrimSpace(authority), "\n", "\n        ") + "\n"
	}
	write(strings.Replace(settings(corp.authority), `"corp:"`, `"system:"`, 1))
	output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, "--dry-run")
	require.Error(t, err)
	require.Contains(t, output, "with which a claim could name a user or group of system:")

	write(settings(corp.authority))
	require.Contains(t, preview(), "users of the issuer "+corp.url+" can sign in at its API, as corp:NAME")
	deploy()
	require.NotContains(t, preview(), corp.url, "a second deployment changes nothing")
	name, groups, err := s.cluster.whoami(t, anna)
	require.NoError(t, err)
	require.Equal(t, "corp:anna", name)
	require.ElementsMatch(t, []string{"corp:developers", "system:authenticated"}, groups)
	output, err = s.cluster.withToken(t, anna, "create", "configmap", "hers")
	require.Error(t, err)
	require.Contains(t, strings.ToLower(output), "forbidden", "a user has no rights without a binding")
	s.cluster.kubectl(t, "", "create", "rolebinding", "developers", "--clusterrole", "edit", "--group", "corp:developers")
	output, err = s.cluster.withToken(t, anna, "create", "configmap", "hers")
	require.NoError(t, err, output)
	output, err = s.cluster.withToken(t, bob, "get", "configmaps")
	require.Error(t, err)
	require.Contains(t, strings.ToLower(output), "forbidden", "another group has no rights")
	s.cluster.refused(t, anna[:len(anna)-8]+"AAAAAAAA")

	write("")
	require.Contains(t, preview(), "users of the issuer "+corp.url+" can no longer sign in at its API")
	deploy()
	l.eventually(t, 30*time.Second, "her token is refused", func() error { // API servers remember it for ten seconds
		if name, _, err := s.cluster.whoami(t, anna); err == nil {
			return fmt.Errorf("it is that of %s", name)
		}
		return nil
	})
	s.cluster.refused(t, anna)
	require.Equal(t, apiServer, s.startedAt(t, "murano-kube-1", "kube-apiserver"), "nothing restarted")
	require.Contains(t, s.cluster.kubectl(t, "", "get", "configmap", "hers"), "hers")

	write("    keystoneSignIn: true\n")
	require.Contains(t, preview(), "users of Keystone can sign in at its API with their tokens. The API server restarts")
	deploy()
	require.NotContains(t, preview(), "users of Keystone", "a second deployment changes nothing")
	s.tokensOfKeystone(t)
	write("")
	require.Contains(t, preview(), "users of Keystone can no longer sign in at its API with tokens")
	deploy()
	s.cluster.refused(t, demo.provider.Token())
	require.Equal(t, "inactive", strings.TrimSpace(s.in(t, "murano-kube-1", "systemctl is-active burano-sign-in || true")))
	if soaking() { // an issuer that is not reached changes nothing
		write(settings(s.cluster.kubectl(t, "", "get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)))
		output, err = l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
		require.Error(t, err)
		require.Contains(t, output, "does not take over the issuers")
		require.Contains(t, s.cluster.kubectl(t, "", "get", "configmap", "hers"), "hers")
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "masters")
	asBefore(t, demo, found)
}
