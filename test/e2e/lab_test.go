// Package e2e tests Burano as users run it: the built programs, the HTTP API and the command line, on real servers of the local cloud.
// `make test` runs it; `make lab` starts a local cloud for repeating single cases. BURANO_LAB names its folder: a local cloud that is not
// there yet is started in it, and stays.
package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
)

// lab is a local cloud with the node image in it and a Burano server beside it.
type lab struct {
	root      string // the project's folder
	cloud     string // the local cloud's state
	serves    string // the program that serves
	server    *exec.Cmd
	state     string // the server's folder
	address   string // where it listens
	serverLog string
	missed    string // the condition that did not come in time
	url       string
	before    machine              // the state of the machine before the local cloud
	whenDead  func(instant string) // is called when the server was killed at an instant; may be nil
	ownCloud  bool
	patience  int // factor on the timeouts of the local cloud; 0 is 1
}

// start starts a local cloud, unless BURANO_LAB names one, and the server. The server is the program in build/, or one
// built with the tags.
func start(t *testing.T, tags ...string) *lab { return startIn(t, nil, tags...) }

// startIn is start with more flags of the local cloud; an existing one stays as it is.
func startIn(t *testing.T, cloud []string, tags ...string) *lab {
	return startWith(t, func(l *lab) string {
		if len(tags) > 0 {
			return l.built(t, tags)
		}
		return l.program("burano")
	}, cloud...)
}

// startWith is startIn with a server of another program.
func startWith(t *testing.T, program func(*lab) string, cloud ...string) *lab {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	l := &lab{root: root}
	for _, needed := range []string{l.program("burano"), l.program("localcloud"), l.image()} {
		_, err := os.Stat(needed)
		require.NoErrorf(t, err, "%s is missing: `make build image` makes it", needed)
	}
	folder := filepath.Join(root, "build", "e2e-"+slot())
	if kept := os.Getenv("BURANO_LAB"); kept != "" {
		folder = kept
	} else {
		l.ownCloud = true
	}
	l.cloud = filepath.Join(folder, "cloud")
	if _, err := os.Stat(filepath.Join(l.cloud, "clouds.yaml")); l.ownCloud || errors.Is(err, fs.ErrNotExist) {
		l.bringUp(t, cloud...)
	}
	l.serves = program(l)
	l.startServer(t)
	return l
}

// bringUp starts a local cloud with the node image; the test's own cloud ends with the test.
func (l *lab) bringUp(t *testing.T, flags ...string) {
	l.run(t, nil, "localcloud", append([]string{"down", "--abandoned"}, placeOfCloud()...)...) // left by a killed test
	l.before = look(t)
	l.run(t, nil, "localcloud", slices.Concat([]string{"up", "--state", l.cloud}, placeOfCloud(), flags)...)
	if l.ownCloud {
		t.Cleanup(func() {
			l.run(t, nil, "localcloud", "down", "--state", l.cloud)
			require.NoError(t, os.RemoveAll(filepath.Dir(l.cloud)))
		})
	}
	began := time.Now()
	l.run(t, l.as("burano-admin"), "burano", "image", "upload", "--name", "burano-node", "--public", l.image())
	t.Logf("the node image was uploaded in %.1f s", time.Since(began).Seconds())
}

// built builds the program with these build tags.
func (l *lab) built(t *testing.T, tags []string) string {
	path := filepath.Join(t.TempDir(), "burano")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-tags", strings.Join(tags, ","), "-o", path, "./cmd/burano")
	build.Dir, build.Env = l.root, append(os.Environ(), "CGO_ENABLED=0") // it runs on nodes too
	output, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	return path
}

// slot separates local clouds, so that tests of several checkouts, or several of one, can run at the same time: slotVariable is a digit.
// None of them collides with the demonstration's.
func slot() string { return cmp.Or(os.Getenv(slotVariable), "0") }

const slotVariable = "BURANO_SLOT"

func placeOfCloud() []string {
	return []string{"--prefix", "b" + slot() + "-", "--listen", "127.0.0.1:506" + slot(), "--external-cidr", outside("0/24")}
}

// outside returns an address, or the range, of the network outside the slot's local cloud: "1" is this machine's, which servers reach.
func outside(last string) string { return "10.89." + slot() + "." + last }

func (l *lab) program(name string) string { return filepath.Join(l.root, "build", name) }

func (l *lab) image() string {
	if path := os.Getenv("BURANO_NODE_IMAGE"); path != "" {
		return path
	}
	return filepath.Join(l.root, "build", "node-image.tar")
}

// as returns the environment variables of a user: an entry of the local cloud's clouds.yaml.
func (l *lab) as(cloud string) []string {
	return []string{"OS_CLIENT_CONFIG_FILE=" + filepath.Join(l.cloud, "clouds.yaml"), "OS_CLOUD=" + cloud, "BURANO_URL=" + l.url}
}

// run runs one of our programs and returns its output; it fails the test when the program fails.
func (l *lab) run(t *testing.T, environment []string, program string, args ...string) string {
	t.Helper()
	output, err := l.try(environment, program, args...)
	require.NoErrorf(t, err, "%s %s:\n%s", program, strings.Join(args, " "), output)
	return output
}

func (l *lab) try(environment []string, program string, args ...string) (string, error) {
	command := exec.Command(l.program(program), args...)
	command.Dir = l.root
	command.Env = append(os.Environ(), environment...)
	output, err := command.CombinedOutput()
	if slices.Contains(args, "--dry-run") && command.ProcessState != nil && command.ProcessState.ExitCode() == 2 {
		err = nil // the exit status of a preview with changes
	}
	return string(output), err
}

// deleteIfFailed deletes an environment of the user demo after a failed test, so that it leaves no servers in a lab that
// stays.
func (l *lab) deleteIfFailed(t *testing.T, environment string) {
	t.Cleanup(func() {
		if t.Failed() {
			_, _ = l.try(l.as("burano-demo"), "burano", "environment", "delete", "--yes", environment)
		}
	})
}

// startServer starts a Burano server with a state folder and an address of its own; later launches use them again.
func (l *lab) startServer(t *testing.T) {
	l.state = t.TempDir()
	l.address = freeAddress(t)
	l.url = "http://" + l.address
	t.Cleanup(func() {
		if l.server.ProcessState == nil {
			require.NoError(t, l.server.Process.Signal(syscall.SIGTERM))
			require.NoError(t, l.server.Wait(), "the server ends cleanly when asked to")
		}
		if t.Failed() {
			if text, err := os.ReadFile(l.serverLog); err == nil {
				// Whoever sees the end of the output only sees the reason too.
				t.Logf("the server's last warnings and errors:\n%s\n%s", lastComplaints(string(text)), l.missed)
			}
		}
	})
	l.launch(t)
	l.healthy(t)
}

// lastComplaints are the last 30 lines of a server's log about a failed request, a warning or an error: a whole log would hide why a test failed.
func lastComplaints(log string) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(log), "\n"), func(line string) bool {
		return strings.Contains(line, "level=INFO") && !strings.Contains(line, " status=5")
	})
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// launch starts the server's process, with more flags; a former one must have ended. Its log is appended to the former
// one's.
func (l *lab) launch(t *testing.T, flags ...string) {
	l.serverLog = filepath.Join(l.state, "log")
	log, err := os.OpenFile(l.serverLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer log.Close()
	l.server = exec.Command(l.serves, append([]string{"serve", "--listen", l.address, "--state", l.state}, flags...)...)
	l.server.Env = append(os.Environ(), l.as("burano-service")...)
	l.server.Stdout, l.server.Stderr = log, log
	require.NoError(t, l.server.Start())
}

// healthy waits until the server is ready.
func (l *lab) healthy(t *testing.T) {
	l.eventually(t, time.Minute, "the server is ready", func() error {
		response, err := http.Get(l.url + "/readyz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %d", response.StatusCode)
		}
		return nil
	})
}

// soakOnly skips a test that `make soak` alone runs; why is the reason why `make test` omits it.
func soakOnly(t *testing.T, why string) {
	t.Helper()
	if !soaking() {
		t.Skip(why)
	}
}

// soaking reports whether `make soak` runs the test, which then has its long parts too.
func soaking() bool { return os.Getenv("BURANO_SOAK") != "" }

// eventually repeats try until it succeeds, at most for the limit.
func (l *lab) eventually(t *testing.T, limit time.Duration, what string, try func() error) {
	t.Helper()
	// Limits are for an idle machine, and the tests keep theirs busy. In a cleanup the test's context has ended.
	limit *= time.Duration(max(3, l.patience))
	err := wait.Every(50*time.Millisecond).For(limit).Until(context.WithoutCancel(t.Context()), func(context.Context) error {
		began := time.Now()
		if err := try(); err != nil {
			// Many tries start programs, which must not take the processors from the awaited work.
			return wait.After(min(3*time.Since(began), time.Second), err)
		}
		return nil
	})
	if err != nil {
		l.missed = fmt.Sprintf("%s: not within %s: %v", what, limit, err)
	}
	require.NoErrorf(t, err, "%s: not within %s", what, limit)
}

// user calls Burano's API and the cloud's.
type user struct {
	lab      *lab
	entry    string // of clouds.yaml
	provider *gophercloud.ProviderClient
	endpoint gophercloud.EndpointOpts
}

// user signs in to Keystone with an entry of clouds.yaml.
func (l *lab) user(t *testing.T, cloud string) *user {
	options, endpoint, _, err := clouds.Parse(clouds.WithCloudName(cloud), clouds.WithLocations(filepath.Join(l.cloud, "clouds.yaml")))
	require.NoError(t, err)
	options.AllowReauth = true
	provider, err := config.NewProviderClient(t.Context(), options)
	require.NoError(t, err)
	return &user{lab: l, entry: cloud, provider: provider, endpoint: endpoint}
}

func (u *user) service(t *testing.T, open func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)) *gophercloud.ServiceClient {
	t.Helper()
	client, err := open(u.provider, u.endpoint)
	require.NoError(t, err)
	return client
}

func (u *user) nova(t *testing.T) *gophercloud.ServiceClient {
	return u.service(t, openstack.NewComputeV2)
}

func (u *user) neutron(t *testing.T) *gophercloud.ServiceClient {
	return u.service(t, openstack.NewNetworkV2)
}

func (u *user) heat(t *testing.T) *gophercloud.ServiceClient {
	return u.service(t, openstack.NewOrchestrationV1)
}

func (u *user) keystone(t *testing.T) *gophercloud.ServiceClient {
	return u.service(t, openstack.NewIdentityV3)
}

// answer is an answer of the API.
type answer struct {
	Status int
	Body   []byte
}

func (a answer) json(t *testing.T) map[string]any {
	t.Helper()
	var value map[string]any
	require.NoErrorf(t, json.Unmarshal(a.Body, &value), "%s", a.Body)
	return value
}

// call sends a request to Burano's API; body is nil, bytes, or a value sent as JSON; headers come in pairs.
func (u *user) call(t *testing.T, method, path string, body any, headers ...string) answer {
	t.Helper()
	got, err := u.send(t.Context(), method, path, body, headers...)
	require.NoError(t, err)
	return got
}

func (u *user) send(ctx context.Context, method, path string, body any, headers ...string) (answer, error) {
	var content io.Reader
	contentType := ""
	switch body := body.(type) {
	case nil:
	case []byte:
		content = bytes.NewReader(body)
	default:
		data, err := json.Marshal(body)
		if err != nil {
			return answer{}, err
		}
		content, contentType = bytes.NewReader(data), "application/json"
	}
	request, err := http.NewRequestWithContext(ctx, method, u.lab.url+path, content)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("X-Auth-Token", u.provider.Token())
	request.Header.Set("Accept", "application/json")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	return answer{Status: response.StatusCode, Body: data}, err
}

// must is call for requests that have to succeed; it returns the decoded answer.
func (u *user) must(t *testing.T, method, path string, body any, headers ...string) map[string]any {
	t.Helper()
	got := u.call(t, method, path, body, headers...)
	require.Equalf(t, http.StatusOK, got.Status, "%s %s: %s", method, path, got.Body)
	if len(got.Body) == 0 {
		return nil
	}
	return got.json(t)
}
