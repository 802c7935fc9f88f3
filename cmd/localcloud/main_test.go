package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"
)

// asCommand makes the test binary be the command itself, so that "up" can start "serve".
const asCommand = "BURANO_TEST_AS_LOCALCLOUD"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const (
	prefix   = "bup-"
	external = "10.87.62.0/24"
)

// machine is one local cloud under test, handled by its command as a person does.
type machine struct {
	t             *testing.T
	state, listen string
}

func newMachine(t *testing.T) *machine {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	m := &machine{t: t, state: filepath.Join(t.TempDir(), "state"), listen: listener.Addr().String()}
	m.must("down", "--abandoned") // the rest of a killed test
	t.Cleanup(func() {
		if out, err := m.run("down"); err != nil {
			t.Errorf("clean up: %v\n%s", err, out)
		}
	})
	return m
}

func (m *machine) run(arguments ...string) (string, error) {
	self, err := os.Executable()
	require.NoError(m.t, err)
	command := exec.Command(self, append(arguments, "--state", m.state, "--listen", m.listen, "--external-cidr", external, "--prefix", prefix)...)
	command.Env = append(os.Environ(), asCommand+"=1")
	out, err := command.CombinedOutput()
	return string(out), err
}

func (m *machine) must(arguments ...string) string {
	m.t.Helper()
	out, err := m.run(arguments...)
	require.NoError(m.t, err, out)
	return out
}

func (m *machine) process() (pid int) {
	m.t.Helper()
	pid, alive, err := serving(m.state)
	require.NoError(m.t, err)
	require.True(m.t, alive)
	return pid
}

// kill ends the cloud as a crash does.
func (m *machine) kill() {
	m.t.Helper()
	require.NoError(m.t, syscall.Kill(m.process(), syscall.SIGKILL))
	require.Eventually(m.t, func() bool {
		_, alive, err := serving(m.state)
		return err == nil && !alive
	}, 10*time.Second, 10*time.Millisecond)
}

func (m *machine) login(user string) *gophercloud.ProviderClient {
	m.t.Helper()
	provider, err := openstack.AuthenticatedClient(m.t.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: "http://" + m.listen + "/identity/v3", Username: user, Password: user, DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: user, DomainName: "Default"},
	})
	require.NoError(m.t, err)
	return provider
}

// traces is the state that a cloud leaves on the machine: mounts, namespaces, interfaces, processes, cgroups, settings.
func (m *machine) traces() map[string]string {
	read := func(path string) string {
		data, err := os.ReadFile(path)
		require.NoError(m.t, err)
		return string(data)
	}
	// Other tests work on this machine at the same time: names without our prefix and our folder are not ours.
	own := func(text string) string {
		var lines []string
		for line := range strings.Lines(text) {
			if strings.Contains(line, prefix) || strings.Contains(line, m.state) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	var noted string // for whom the host's settings were changed
	if _, err := os.Stat("/run/burano-localcloud-settings.json"); err == nil {
		noted = read("/run/burano-localcloud-settings.json")
	}
	links, err := exec.Command("ip", "-o", "link").Output()
	require.NoError(m.t, err)
	routes, err := exec.Command("ip", "route").Output()
	require.NoError(m.t, err)
	var files, processes []string
	for _, pattern := range []string{"/run/netns/*", "/run/*localcloud*", "/sys/fs/cgroup/*", "/sys/fs/cgroup/*/*", m.state + "*"} {
		found, err := filepath.Glob(pattern)
		require.NoError(m.t, err)
		files = append(files, found...)
	}
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(m.t, err)
	for _, command := range commands {
		if data, err := os.ReadFile(command); err == nil && command != fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			processes = append(processes, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return map[string]string{
		"mounts": own(read("/proc/self/mountinfo")), "links": own(string(links)), "routes": own(string(routes)),
		"files": own(strings.Join(files, "\n")), "processes": own(strings.Join(processes, "\n")), "settings": own(noted),
	}
}

func TestDownLeavesTheMachineAsItWasBeforeUp(t *testing.T) {
	m := newMachine(t)
	before := m.traces()
	require.Contains(t, m.must("up"), "The local cloud is up.")
	during := m.traces()
	require.NotEmpty(t, during["links"])
	require.NotEmpty(t, during["processes"])
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_user_instances")
	require.NoError(t, err)
	instances, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.GreaterOrEqual(t, instances, 1024, "enough for ten servers")
	first := m.process()

	require.Contains(t, m.must("up"), "up already")
	require.Equal(t, first, m.process())
	require.Contains(t, m.must("status"), "is up")
	clouds, err := os.ReadFile(filepath.Join(m.state, "clouds.yaml"))
	require.NoError(t, err)
	for _, name := range []string{"burano-admin:", "burano-demo:", "burano-other:", "http://" + m.listen + "/identity/v3"} {
		require.Contains(t, string(clouds), name)
	}

	m.must("down")
	require.Equal(t, before, m.traces())
	require.NoDirExists(t, m.state)
	m.must("down")
	out, err := m.run("status")
	require.Error(t, err)
	require.Contains(t, out, "there is no local cloud")
}

func TestEveryServiceAnswersWhatTheCatalogNames(t *testing.T) {
	m := newMachine(t)
	m.must("up")
	demo := m.login("demo")
	where := gophercloud.EndpointOpts{Region: "local"}
	compute, err := openstack.NewComputeV2(demo, where)
	require.NoError(t, err)
	pages, err := servers.List(compute, nil).AllPages(t.Context())
	require.NoError(t, err)
	empty, err := pages.IsEmpty()
	require.NoError(t, err)
	require.True(t, empty)
	image, err := openstack.NewImageV2(demo, where)
	require.NoError(t, err)
	_, err = images.List(image, nil).AllPages(t.Context())
	require.NoError(t, err)
	network, err := openstack.NewNetworkV2(demo, where)
	require.NoError(t, err)
	listed, err := networks.List(network, networks.ListOpts{Name: "public"}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := networks.ExtractNetworks(listed)
	require.NoError(t, err)
	require.Len(t, found, 1)
	orchestration, err := openstack.NewOrchestrationV1(demo, where)
	require.NoError(t, err)
	_, err = stacks.List(orchestration, nil).AllPages(t.Context())
	require.NoError(t, err)

	for _, path := range []string{"/compute/v2.1/servers", "/image/v2/images", "/network/v2.0/networks", "/orchestration/v1/x/stacks"} {
		response, err := http.Get("http://" + m.listen + path)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusUnauthorized, response.StatusCode, path)
		require.Contains(t, response.Header.Get("WWW-Authenticate"), "Keystone uri=")
		require.Regexp(t, `^req-[0-9a-f-]{36}$`, response.Header.Get("X-Openstack-Request-Id"))
	}
	for _, path := range []string{"/identity", "/image", "/compute/", "/compute/v2.1/", "/network/", "/orchestration/"} {
		response, err := http.Get("http://" + m.listen + path)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Contains(t, []int{http.StatusOK, http.StatusMultipleChoices}, response.StatusCode, path)
	}
}

// makeNetwork makes a network with a router to the outside, so that there is something on the machine to lose.
func (m *machine) makeNetwork(provider *gophercloud.ProviderClient) string {
	client, err := openstack.NewNetworkV2(provider, gophercloud.EndpointOpts{Region: "local"})
	require.NoError(m.t, err)
	made, err := networks.Create(m.t.Context(), client, networks.CreateOpts{Name: "net"}).Extract()
	require.NoError(m.t, err)
	subnet, err := subnets.Create(m.t.Context(), client, subnets.CreateOpts{NetworkID: made.ID, CIDR: "10.1.0.0/24", IPVersion: gophercloud.IPv4}).Extract()
	require.NoError(m.t, err)
	router, err := routers.Create(m.t.Context(), client, routers.CreateOpts{Name: "router"}).Extract()
	require.NoError(m.t, err)
	_, err = routers.AddInterface(m.t.Context(), client, router.ID, routers.AddInterfaceOpts{SubnetID: subnet.ID}).Extract()
	require.NoError(m.t, err)
	return made.ID
}

func TestACloudThatWasKilledGoesOn(t *testing.T) {
	m := newMachine(t)
	m.must("up")
	demo := m.login("demo")
	id := m.makeNetwork(demo)
	before := m.traces()
	m.kill()
	out, err := m.run("status")
	require.Error(t, err)
	require.Contains(t, out, "its servers and networks are still there")
	m.must("up")
	after := m.traces()
	before["processes"], after["processes"] = "", ""
	require.Equal(t, before, after)

	identity, err := openstack.NewIdentityV3(demo, gophercloud.EndpointOpts{})
	require.NoError(t, err)
	require.NoError(t, tokens.Get(t.Context(), identity, demo.Token()).Err, "a token survives")
	client, err := openstack.NewNetworkV2(demo, gophercloud.EndpointOpts{Region: "local"})
	require.NoError(t, err)
	require.NoError(t, networks.Get(t.Context(), client, id).Err, "a network survives")
}

func TestDownWorksWhenTheProcessWasKilledAndHalfIsGone(t *testing.T) {
	m := newMachine(t)
	before := m.traces()
	m.must("up")
	m.makeNetwork(m.login("demo"))
	m.kill()
	namespaces, err := filepath.Glob("/run/netns/" + prefix + "*")
	require.NoError(t, err)
	require.NotEmpty(t, namespaces)
	require.NoError(t, exec.Command("ip", "netns", "delete", filepath.Base(namespaces[0])).Run())
	require.NoError(t, os.RemoveAll(filepath.Join(m.state, "keystone")))
	require.NoError(t, os.WriteFile(filepath.Join(m.state, "nova", "servers.jsonl"), []byte("[half\n"), 0o600))
	m.must("down")
	require.Equal(t, before, m.traces())
}

func TestDownEndsNoForeignProcess(t *testing.T) {
	m := newMachine(t)
	m.must("up")
	m.kill()
	foreign := exec.Command("sleep", "1000")
	require.NoError(t, foreign.Start())
	defer func() { _ = foreign.Process.Kill(); _ = foreign.Wait() }()
	record := filepath.Join(m.state, "process.json")
	data, err := os.ReadFile(record)
	require.NoError(t, err)
	dead, _, err := serving(m.state)
	require.NoError(t, err)
	data = bytes.Replace(data, fmt.Appendf(nil, `"PID": %d`, dead), fmt.Appendf(nil, `"PID": %d`, foreign.Process.Pid), 1)
	require.NoError(t, os.WriteFile(record, data, 0o600))
	m.must("down")
	require.NoError(t, foreign.Process.Signal(syscall.Signal(0)))
}

func TestUpSaysWhatIsInTheWay(t *testing.T) {
	m := newMachine(t)
	listener, err := net.Listen("tcp", m.listen)
	require.NoError(t, err)
	defer listener.Close()
	out, err := m.run("up")
	require.Error(t, err)
	require.Contains(t, out, "cannot listen at "+m.listen)
	require.Contains(t, out, "--listen")
	require.NoDirExists(t, m.state)
}
