package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKeystoneOfTheCatalogIssuesTokens deploys OpenStack's identity service, uses it as its clients do, and changes it while it is used.
func TestKeystoneOfTheCatalogIssuesTokens(t *testing.T) {
	soakOnly(t, "make soak runs this: it installs Debian's packages of OpenStack")
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.pushApplications(t, "mariadb", "keystone")

	const file = "test/e2e/testdata/keystone.yaml"
	text, err := os.ReadFile(filepath.Join(l.root, file))
	require.NoError(t, err)
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, bytes.ReplaceAll(text, []byte("expiration: 3600"), []byte("expire: 3600")), 0o600))
	output, _ := l.try(l.as("burano-demo"), "burano", "deploy", wrong, "--dry-run")
	require.Contains(t, output, "/etc/keystone/keystone.conf, section [token], option expire: there is no such option in this section, there are allow_expired_window, ")

	began := time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	l.deleteIfFailed(t, "keystone")
	t.Logf("cluster, database and Keystone took %.1f s", time.Since(began).Seconds())
	s, a, k := l.openStack(t, demo, "keystone")
	first, life, err := k.token()
	require.NoError(t, err)
	require.InDelta(t, time.Hour.Seconds(), life.Seconds(), 120)
	t.Logf("the first token after %.1f s", time.Since(began).Seconds())

	t.Run("passwords and keys stand in no description, and nothing is root", func(t *testing.T) {
		s.conceals(t, log, k.password, "mysql+pymysql")
		s.isConfined(t, "identity", "/etc/keystone/x")
	})

	t.Run("its package has the options of its image", func(t *testing.T) {
		s.hasOptions(t, "Keystone", "identity")
	})

	t.Run("its catalog of services has the address of the gateway", func(t *testing.T) {
		require.Contains(t, k.services(t, first), k.address+"/v3")
	})

	t.Run("another option is a rolling update, without a failed request", func(t *testing.T) {
		k.under(t, "token.expiration", func() {
			task, log := s.changed(t, a, "keystone", func(keystone map[string]any) {
				keystone["options"] = map[string]any{"token": map[string]any{"expiration": 7200}}
			})
			require.Equal(t, "success", task["state"], log)
		})
		_, life, err := k.token()
		require.NoError(t, err)
		require.InDelta(t, 2*time.Hour.Seconds(), life.Seconds(), 120)
	})

	t.Run("the database's password is rotated without a failed request", func(t *testing.T) {
		users := func() string {
			return s.cluster.kubectl(t, "", "exec", "deployment/data", "--", "sh", "-c", `MYSQL_PWD="$MARIADB_ROOT_PASSWORD" mariadb -N -e "SELECT user FROM mysql.user WHERE user LIKE 'keystone%'"`)
		}
		require.Equal(t, "keystone_1\n", users())
		k.under(t, "the database's password", func() { s.act(t, "keystone", "rotateDatabasePassword", map[string]any{}) })
		require.Equal(t, "keystone_2\n", users())
	})

	t.Run("keys of tokens are rotated without a failed request, and tokens go on", func(t *testing.T) {
		k.under(t, "keys of tokens", func() { s.act(t, "keystone", "rotateFernetKeys", map[string]any{}) })
		keys := strings.Fields(s.cluster.kubectl(t, "", "exec", "deployment/identity", "--", "ls", "/etc/keystone/fernet-keys"))
		require.Equal(t, []string{"0", "1", "2"}, keys)
		require.Contains(t, k.services(t, first), k.address+"/v3", "a token of before")
	})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "keystone")
}

// identity is a Keystone as its clients see it.
type identity struct{ address, password string }

var identityClient = &http.Client{Timeout: 60 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// token gets a token of the administrator, and how long it is valid.
func (k identity) token() (token string, life time.Duration, err error) {
	return k.tokenOf("admin", k.password)
}

// tokenOf gets a token for the project admin by password, and how long it is valid.
func (k identity) tokenOf(user, password string) (token string, life time.Duration, err error) {
	body, err := json.Marshal(map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": user, "domain": map[string]any{"id": "default"}, "password": password}}},
		"scope": map[string]any{"project": map[string]any{"name": "admin", "domain": map[string]any{"id": "default"}}}}})
	if err != nil {
		return "", 0, err
	}
	response, err := identityClient.Post(k.address+"/v3/auth/tokens", "application/json", bytes.NewReader(body))
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusCreated {
		err = fmt.Errorf("it answers %s: %s", response.Status, text)
	}
	if err != nil {
		return "", 0, err
	}
	var issued struct {
		Token struct {
			Expires time.Time `json:"expires_at"`
			Issued  time.Time `json:"issued_at"`
		}
	}
	err = json.Unmarshal(text, &issued)
	return response.Header.Get("X-Subject-Token"), issued.Token.Expires.Sub(issued.Token.Issued), err
}

// services is the catalog of services that a token's user sees, as JSON.
func (k identity) services(t *testing.T, token string) string {
	t.Helper()
	return k.get(t, token, "/auth/catalog")
}

// get is the answer of Keystone to a request with a token, as JSON.
func (k identity) get(t *testing.T, token, path string) string {
	t.Helper()
	text, err := askedService(t.Context(), http.MethodGet, k.address+"/v3"+path, token, nil)
	require.NoError(t, err)
	return string(text)
}

// askedService makes a request to a service of OpenStack. A reader whose length is not known is sent in chunks.
func askedService(ctx context.Context, method, address, token string, body io.Reader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPut {
		request.Header.Set("Content-Type", "application/octet-stream")
	}
	return sentToService(request, token)
}

// sentToService sends a request to a service of OpenStack, with JSON where its type of content is not set.
func sentToService(request *http.Request, token string) ([]byte, error) {
	request.Header.Set("X-Auth-Token", token)
	if request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := identityClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s answers %s: %s", request.Method, request.URL, response.Status, text)
	}
	return text, err
}

// under changes something while two clients get tokens, and demands that each request succeeds.
func (k identity) under(t *testing.T, what string, change func()) {
	t.Helper()
	underRequests(t, what, change, func() error { _, _, err := k.token(); return err })
}

// underRequests changes something while each of some clients makes its request again and again, and demands that each succeeds.
func underRequests(t *testing.T, what string, change func(), requests ...func() error) {
	t.Helper()
	var mutex sync.Mutex
	var clients sync.WaitGroup
	count, slowest, failed := 0, time.Duration(0), []string{}
	end := make(chan struct{})
	for n := range 2 * len(requests) {
		clients.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				began := time.Now()
				err := requests[n%len(requests)]()
				mutex.Lock()
				count, slowest = count+1, max(slowest, time.Since(began))
				if err != nil {
					failed = append(failed, fmt.Sprintf("%s: %v", began.Format(time.TimeOnly), err))
				}
				mutex.Unlock()
			}
		})
	}
	func() {
		defer clients.Wait()
		defer close(end)
		change()
	}()
	t.Logf("%s: %d of %d requests failed, the slowest took %.1f s", what, len(failed), count, slowest.Seconds())
	require.Empty(t, failed)
	require.Positive(t, count)
}
