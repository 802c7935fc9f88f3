package localcloud_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/hypervisor"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

const (
	prefix  = "blt-"
	waitFor = 60 * time.Second
	tick    = 50 * time.Millisecond
)

// cloud is a local cloud in this process, with real servers.
type cloud struct {
	t      *testing.T
	config localcloud.Config
	stop   func()
}

func start(t *testing.T) *cloud {
	require.NoError(t, localcloud.Reclaim(t.Context(), prefix))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	c := &cloud{t: t, config: localcloud.Config{
		StateDir: filepath.Join(t.TempDir(), "state"), Listen: listener.Addr().String(),
		ExternalCIDR: netip.MustParsePrefix("10.87.63.0/24"), Prefix: prefix,
	}}
	t.Cleanup(func() {
		if c.stop != nil {
			c.stop()
		}
		require.NoError(t, localcloud.Down(context.Background(), c.config.StateDir))
	})
	c.begin()
	return c
}

// begin starts the process's part; stop ends it.
func (c *cloud) begin() {
	listener, err := net.Listen("tcp", c.config.Listen)
	require.NoError(c.t, err)
	running, err := localcloud.New(c.t.Context(), c.config)
	require.NoError(c.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- running.Serve(ctx, listener) }()
	c.stop = func() {
		cancel()
		require.NoError(c.t, <-served)
		running.Close()
		c.stop = nil
	}
}

func (c *cloud) client(make func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)) *gophercloud.ServiceClient {
	provider, err := openstack.AuthenticatedClient(c.t.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: c.config.Endpoint() + "/identity/v3", Username: "demo", Password: "demo", DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: "demo", DomainName: "Default"},
	})
	require.NoError(c.t, err)
	client, err := make(provider, gophercloud.EndpointOpts{Region: "local"})
	require.NoError(c.t, err)
	return client
}

func (c *cloud) upload() string {
	client := c.client(openstack.NewImageV2)
	image, err := images.Create(c.t.Context(), client, images.CreateOpts{Name: "tiny", DiskFormat: "raw", ContainerFormat: "bare"}).Extract()
	require.NoError(c.t, err)
	content, err := localcloudtest.TinyServer(c.t.Context())
	require.NoError(c.t, err)
	require.NoError(c.t, imagedata.Upload(c.t.Context(), client, image.ID, bytes.NewReader(content)).ExtractErr())
	return image.ID
}

func (c *cloud) network() string {
	client := c.client(openstack.NewNetworkV2)
	network, err := networks.Create(c.t.Context(), client, networks.CreateOpts{Name: "net"}).Extract()
	require.NoError(c.t, err)
	_, err = subnets.Create(c.t.Context(), client, subnets.CreateOpts{NetworkID: network.ID, CIDR: "10.2.0.0/24", IPVersion: gophercloud.IPv4}).Extract()
	require.NoError(c.t, err)
	return network.ID
}

func (c *cloud) wait(id, status string) *servers.Server {
	c.t.Helper()
	client := c.client(openstack.NewComputeV2)
	var got *servers.Server
	require.Eventually(c.t, func() bool {
		var err error
		got, err = servers.Get(c.t.Context(), client, id).Extract()
		require.NoError(c.t, err)
		require.Empty(c.t, got.Fault.Message)
		return got.Status == status && got.TaskState == ""
	}, waitFor, tick)
	return got
}

// traces are the machine's mounts, namespaces, interfaces and cgroups of this cloud.
func (c *cloud) traces() []string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(c.t, err)
	links, err := exec.Command("ip", "-o", "link").Output()
	require.NoError(c.t, err)
	namespaces, err := filepath.Glob("/run/netns/" + prefix + "*")
	require.NoError(c.t, err)
	groups, err := filepath.Glob("/sys/fs/cgroup/*/burano-localcloud-" + prefix)
	require.NoError(c.t, err)
	found := append(namespaces, groups...)
	for line := range strings.Lines(string(mounts) + string(links)) {
		if strings.Contains(line, c.config.StateDir) || strings.Contains(line, prefix) {
			found = append(found, line)
		}
	}
	return found
}

func TestAServerIsRealAndOutlivesTheProcessAndTheMachine(t *testing.T) {
	c := start(t)
	compute := c.client(openstack.NewComputeV2)
	made, err := servers.Create(t.Context(), compute, servers.CreateOpts{
		Name: "Tiny 1", FlavorRef: "2", ImageRef: c.upload(), UserData: []byte("user data"), Networks: []servers.Network{{UUID: c.network()}},
	}, nil).Extract()
	require.NoError(t, err)
	began := time.Now()
	up := c.wait(made.ID, "ACTIVE")
	t.Logf("ACTIVE after %v", time.Since(began))
	require.Len(t, up.Addresses["net"], 1)
	says := func() string {
		text, err := servers.ShowConsoleOutput(t.Context(), compute, made.ID, servers.ShowConsoleOutputOpts{Length: 1}).Extract()
		require.NoError(t, err)
		return text
	}
	require.Eventually(t, func() bool { return says() == "server tiny-1 is up: user data\n" }, waitFor, tick)

	require.NoError(t, servers.Stop(t.Context(), compute, made.ID).ExtractErr())
	c.wait(made.ID, "SHUTOFF")
	require.NoError(t, servers.Start(t.Context(), compute, made.ID).ExtractErr())
	c.wait(made.ID, "ACTIVE")

	// The process ends and begins again: the server did not notice.
	before := c.traces()
	c.stop()
	require.Equal(t, before, c.traces())
	c.begin()
	require.Equal(t, up.Addresses, c.wait(made.ID, "ACTIVE").Addresses)

	// The machine goes down: no process, no namespace, no interface is left.
	c.stop()
	machines, err := hypervisor.New(hypervisor.Config{StateDir: filepath.Join(c.config.StateDir, "hypervisor"), CgroupParent: "/burano-localcloud-" + prefix})
	require.NoError(t, err)
	require.NoError(t, machines.Stop(t.Context(), made.ID))
	namespaces, err := filepath.Glob("/run/netns/" + prefix + "*")
	require.NoError(t, err)
	for _, namespace := range namespaces {
		require.NoError(t, exec.Command("ip", "netns", "delete", filepath.Base(namespace)).Run())
	}
	require.NoError(t, exec.Command("ip", "link", "delete", prefix+"ext").Run())
	c.begin()
	require.Equal(t, up.Addresses, c.wait(made.ID, "ACTIVE").Addresses)

	require.NoError(t, servers.Delete(t.Context(), compute, made.ID).ExtractErr())
	require.Eventually(t, func() bool {
		return gophercloud.ResponseCodeIs(servers.Get(t.Context(), compute, made.ID).Err, http.StatusNotFound)
	}, waitFor, tick)
	require.NotContains(t, strings.Join(c.traces(), ""), made.ID[:8])
}

func TestDownRemovesServersThatRunWithoutTheirProcess(t *testing.T) {
	c := start(t)
	compute := c.client(openstack.NewComputeV2)
	made, err := servers.Create(t.Context(), compute, servers.CreateOpts{
		Name: "tiny", FlavorRef: "2", ImageRef: c.upload(), Networks: []servers.Network{{UUID: c.network()}},
	}, nil).Extract()
	require.NoError(t, err)
	c.wait(made.ID, "ACTIVE")
	require.ErrorContains(t, localcloud.Down(t.Context(), c.config.StateDir), "used by another process")
	c.stop()
	require.NotEmpty(t, c.traces())
	require.NoError(t, localcloud.Down(t.Context(), c.config.StateDir))
	require.Empty(t, c.traces())
	require.NoDirExists(t, c.config.StateDir)
}

func TestACloudThatLostItsProcessAndItsStateIsReclaimed(t *testing.T) {
	c := start(t)
	compute := c.client(openstack.NewComputeV2)
	made, err := servers.Create(t.Context(), compute, servers.CreateOpts{
		Name: "tiny", FlavorRef: "2", ImageRef: c.upload(), Networks: []servers.Network{{UUID: c.network()}},
	}, nil).Extract()
	require.NoError(t, err)
	c.wait(made.ID, "ACTIVE")
	require.ErrorContains(t, localcloud.Reclaim(t.Context(), prefix), "used by another process")
	c.stop()
	require.Error(t, os.RemoveAll(c.config.StateDir), "the server's root is mounted, all else goes")
	require.NoFileExists(t, filepath.Join(c.config.StateDir, "config.json"))
	require.NotEmpty(t, c.traces())
	require.NoError(t, localcloud.Reclaim(t.Context(), prefix))
	require.Empty(t, c.traces())
	require.NoError(t, localcloud.Reclaim(t.Context(), prefix), "nothing is left to do")
}

func TestOneMachineHasOneCloudOfAName(t *testing.T) {
	c := start(t)
	second := c.config
	second.StateDir = filepath.Join(t.TempDir(), "second")
	_, err := localcloud.New(t.Context(), second)
	require.ErrorContains(t, err, "there is a local cloud on this machine already, with its state in "+c.config.StateDir)
	require.NoDirExists(t, second.StateDir)
}

func TestWhatSomebodyElsePutIntoTheFolderStays(t *testing.T) {
	c := start(t)
	note := filepath.Join(c.config.StateDir, "note")
	require.NoError(t, os.WriteFile(note, []byte("mine"), 0o600))
	c.stop()
	require.NoError(t, localcloud.Down(t.Context(), c.config.StateDir))
	entries, err := os.ReadDir(c.config.StateDir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NoError(t, os.Remove(note))
}
