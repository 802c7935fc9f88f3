// Package hostile attacks servers as tenants, strangers and machines do: the built program as one server over SQLite, and as three servers behind HAProxy
// over PostgreSQL. Through each attack all servers live, their memory stays within a bound, and each of them answers another project within a second.
package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/test/site"
)

const (
	// mostBytes is the bound of a server's memory under memoryLimit, as on a small machine. Without a limit the collector leaves garbage for as long as the machine
	// has memory, and the peak measures the garbage.
	mostBytes   = 1 << 30
	memoryLimit = "1GiB"
	// promptly is how long another project waits for an answer, without the processor time of programs beside the test.
	promptly = time.Second
)

// lab is the servers, a hostile project and another project.
type lab struct {
	site           *site.Site
	entrances      []entrance
	turn           atomic.Int64
	hostile, other string                   // tokens
	stored         func(t *testing.T) int64 // bytes of the database
}

// entrance is an address for requests: the proxy's, or a server's own.
type entrance struct {
	name, scheme, address string
	client                *http.Client
}

// program is the program of BURANO_PROGRAM, or a compiled one.
func program(t *testing.T) string {
	if path := os.Getenv("BURANO_PROGRAM"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "burano")
	build := exec.Command("go", "build", "-o", path, "./cmd/burano")
	build.Dir = filepath.Join("..", "..")
	output, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	return path
}

// identityService serves the local cloud's Keystone, and returns its address.
func identityService(t *testing.T) string {
	cloud := httptest.NewUnstartedServer(nil)
	endpoint := "http://" + cloud.Listener.Addr().String()
	identity, err := keystone.New(keystone.Config{StateDir: t.TempDir(), Endpoint: endpoint})
	require.NoError(t, err)
	cloud.Config.Handler = http.StripPrefix("/identity", identity.Handler())
	cloud.Start()
	t.Cleanup(cloud.Close)
	return endpoint + "/identity/v3"
}

// inEach runs a test with one server over SQLite and with three over PostgreSQL.
func inEach(t *testing.T, test func(t *testing.T, database string)) {
	t.Run("one server over SQLite", func(t *testing.T) { test(t, "") })
	t.Run("three servers over PostgreSQL", func(t *testing.T) { test(t, databasetest.Postgres(t)) })
}

func start(t *testing.T, config site.Config) *lab {
	t.Helper()
	t.Setenv("GOMEMLIMIT", memoryLimit)
	l := &lab{site: site.Start(t, config)}
	l.hostile, l.other = l.site.Token(t, "demo"), l.site.Token(t, "admin")
	enter := func(name, scheme, address string, encryption *tls.Config) {
		transport := &http.Transport{TLSClientConfig: encryption, MaxIdleConnsPerHost: 100}
		t.Cleanup(transport.CloseIdleConnections)
		l.entrances = append(l.entrances, entrance{name, scheme, address, &http.Client{Transport: transport}})
	}
	for _, one := range l.site.Servers {
		enter("server "+one.Name, "http", one.Address, nil)
	}
	l.stored = func(t *testing.T) (bytes int64) {
		files, err := filepath.Glob(filepath.Join(l.site.Servers[0].State, "burano.db*"))
		require.NoError(t, err)
		for _, file := range files {
			info, err := os.Stat(file)
			require.NoError(t, err)
			bytes += info.Size()
		}
		return bytes
	}
	if proxy := l.site.Proxy; proxy != nil {
		enter("the proxy", "https", proxy.Address, &tls.Config{RootCAs: proxy.Trusted})
		l.stored = func(t *testing.T) (bytes int64) {
			connection, err := pgx.Connect(t.Context(), config.Database)
			require.NoError(t, err)
			require.NoError(t, connection.QueryRow(t.Context(), "SELECT pg_database_size(current_database())").Scan(&bytes))
			require.NoError(t, connection.Close(t.Context()))
			return bytes
		}
	}
	return l
}

// entrance is the next entrance: attacks use all of them in turn.
func (l *lab) entrance() entrance {
	return l.entrances[int(l.turn.Add(1))%len(l.entrances)]
}

// send sends a request with a token (of project: "", hostile, other) and returns the answer.
func (e entrance) send(ctx context.Context, token, method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, e.scheme+"://"+e.address+path, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", token)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return e.client.Do(request)
}

// ask sends JSON (nil: none) with a token and returns the status and the answer.
func (e entrance) ask(ctx context.Context, token, method, path string, body any, headers ...string) (int, []byte, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	response, err := e.send(ctx, token, method, path, bytes.NewReader(text), headers...)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// ask is ask of the next entrance.
func (l *lab) ask(ctx context.Context, token, method, path string, body any, headers ...string) (int, []byte, error) {
	return l.entrance().ask(ctx, token, method, path, body, headers...)
}

// dial opens a connection of the attacker at the next entrance, until the test ends, and sends a text.
func (l *lab) dial(t *testing.T, text string) (net.Conn, error) {
	at := l.entrance()
	connection, err := net.Dial("tcp", at.address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = connection.Close() })
	_ = connection.SetDeadline(time.Now().Add(5 * time.Second)) // the server may have ended it
	if transport := at.client.Transport.(*http.Transport); at.scheme == "https" {
		config := transport.TLSClientConfig.Clone()
		config.ServerName, _, _ = net.SplitHostPort(at.address)
		connection = tls.Client(connection, config)
	}
	_, _ = io.WriteString(connection, text)
	return connection, nil
}

// ready requires that all servers report that they are ready.
func (l *lab) ready(t *testing.T) {
	t.Helper()
	for _, one := range l.entrances {
		status, answer, err := one.ask(t.Context(), "", http.MethodGet, "/readyz", nil)
		require.NoError(t, err, one.name)
		require.Equalf(t, http.StatusOK, status, "%s: %s", one.name, answer)
	}
}

// slow is the longest wait of another project for an answer, and its place.
type slow struct {
	at            string
	waited, alone time.Duration // alone is without the processor time of programs beside the test
}

// through sends requests of another project to each entrance in turn for as long as an attack lasts, and checks the servers'
// memory.
func (l *lab) through(t *testing.T, most int64, attack func(t *testing.T)) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var answers []slow
	failed := make(chan error, 1)
	go func() {
		failed <- func() error {
			for turn := 0; ctx.Err() == nil; turn++ {
				at := l.entrances[turn%len(l.entrances)]
				measure := measureOthers()
				asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
				status, answer, err := at.ask(asking, l.other, http.MethodGet, "/v1/environments", nil)
				cancel()
				if err != nil || status != http.StatusOK {
					return fmt.Errorf("another project is answered by %s: %d %s %w", at.name, status, answer, err)
				}
				waited, alone := measure()
				answers = append(answers, slow{at.name, waited, alone})
				if err := wait.Pause(ctx, 50*time.Millisecond); err != nil {
					return nil
				}
			}
			return nil
		}()
	}()
	attack(t)
	end()
	require.NoError(t, <-failed)
	require.NotEmpty(t, answers)
	slices.SortFunc(answers, func(a, b slow) int { return int(a.alone - b.alone) })
	usual, slowest := answers[(len(answers)-1)*19/20], answers[len(answers)-1]
	memory := l.memory(t)
	t.Logf("another project was answered %d times, within %s and at most %s (%s with the other programs of the machine) by %s; the servers had %v MiB at most",
		len(answers), usual.alone, slowest.alone, slowest.waited, slowest.at, memory)
	require.Lessf(t, slowest.alone, promptly, "the slowest of all answers; these were slow: %v", answers[max(0, len(answers)-10):])
	require.Less(t, slices.Max(memory), most>>20)
}

// memory is each server's peak of memory, in MiB.
func (l *lab) memory(t *testing.T) (memory []int64) {
	for _, one := range l.site.Servers {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", one.Process.Pid))
		require.NoError(t, err)
		_, rest, found := strings.Cut(string(content), "VmHWM:")
		require.Truef(t, found, "server %s is dead", one.Name)
		kibibytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		require.NoError(t, err)
		memory = append(memory, kibibytes>>10)
	}
	return memory
}

func TestServersLiveThroughAttacksOnTheirAPI(t *testing.T) {
	inEach(t, func(t *testing.T, database string) {
		flags := []string{"--embedded-packages", "io.murano"}
		if database != "" {
			flags = append(flags, "--trusted-proxies", "127.0.0.1")
		}
		l := start(t, site.Config{Program: program(t), Keystone: identityService(t), Database: database, Flags: flags})
		for _, attack := range []struct {
			name string
			run  func(t *testing.T, l *lab)
		}{
			{"connections of strangers", connections}, {"headers of strangers", headers}, {"bodies that are half sent", bodies}, {"readers that do not read", readers},
			{"results that multiply", results}, {"packages", packages},
		} {
			t.Run(attack.name, func(t *testing.T) { l.through(t, mostBytes, func(t *testing.T) { attack.run(t, l) }) })
		}
	})
}
