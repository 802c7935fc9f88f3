package nova_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/attachinterfaces"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/availabilityzones"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/limits"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/utils"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/hypervisor"
	"github.com/burano/burano/test/localcloud/neutron"
	"github.com/burano/burano/test/localcloud/neutron/neutrontest"
	"github.com/burano/burano/test/localcloud/nova"
)

const (
	waitFor = 20 * time.Second
	tick    = 10 * time.Millisecond
)

// machines is a hypervisor that runs nothing: it remembers.
type machines struct {
	sync.Mutex
	started map[string]hypervisor.Server
	states  map[string]hypervisor.State
	starts  int
	gate    chan struct{} // Start waits for it when it is there
	failure error
}

func (m *machines) Start(ctx context.Context, server hypervisor.Server) error {
	m.Lock()
	m.starts++
	gate, failure := m.gate, m.failure
	m.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if failure != nil {
		return failure
	}
	m.Lock()
	defer m.Unlock()
	m.started[server.ID], m.states[server.ID] = server, "running"
	return nil
}

func (m *machines) Stop(_ context.Context, id string) error { m.set(id, "stopped"); return nil }

func (m *machines) Delete(_ context.Context, id string) error {
	m.Lock()
	defer m.Unlock()
	delete(m.states, id)
	return nil
}

func (m *machines) State(_ context.Context, id string) (hypervisor.State, error) {
	m.Lock()
	defer m.Unlock()
	if state, ok := m.states[id]; ok {
		return state, nil
	}
	return "absent", nil
}

func (m *machines) SetDisks(context.Context, string, []hypervisor.Disk) error { return nil }

func (m *machines) ConsoleLog(context.Context, string, int) (string, error) { return "login:", nil }

func (m *machines) set(id string, state hypervisor.State) {
	m.Lock()
	defer m.Unlock()
	m.states[id] = state
}

func (m *machines) fail(failure error) {
	m.Lock()
	defer m.Unlock()
	m.failure = failure
}

func (m *machines) started1(id string) hypervisor.Server {
	m.Lock()
	defer m.Unlock()
	return m.started[id]
}

func (m *machines) count() int {
	m.Lock()
	defer m.Unlock()
	return m.starts
}

// shelf has one image.
type shelf struct{}

func (shelf) Find(_ context.Context, _, ref string) (glance.Image, error) {
	if ref != "node" && ref != "image-1" {
		return glance.Image{}, fault.New(fault.NotFound, "Image %s could not be found.", ref)
	}
	return glance.Image{ID: "image-1", Name: "node", Status: glance.StatusActive}, nil
}

type cloud struct {
	t        *testing.T
	dir      string
	url      string
	machines *machines
	networks *neutron.Service
	network  neutron.Network
	prefix   string // of everything that the networks make on the machine
	*nova.Service
}

func start(t *testing.T) *cloud {
	c := &cloud{t: t, dir: t.TempDir(), machines: &machines{started: map[string]hypervisor.Server{}, states: map[string]hypervisor.State{}}}
	var err error
	config := neutrontest.Config(t)
	config.StateDir, c.prefix = c.dir, config.Prefix
	c.networks, err = neutron.New(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.networks.DeleteAll(context.Background())) })
	require.NoError(t, c.networks.Restore(t.Context()))
	c.network, err = c.networks.CreateNetwork(t.Context(), "demo", neutron.NetworkRequest{Name: new("net")})
	require.NoError(t, err)
	dns := []string{"1.1.1.1"}
	_, err = c.networks.CreateSubnet(t.Context(), "demo", neutron.SubnetRequest{NetworkID: c.network.ID, CIDR: "10.0.0.0/24", DNSNameservers: &dns})
	require.NoError(t, err)

	server := httptest.NewServer(http.StripPrefix("/compute", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The token's text names the caller.
		who := r.Header.Get("X-Auth-Token")
		caller := identity.Caller{UserID: "user-" + who, ProjectID: who, Admin: who == "admin"}
		c.Handler().ServeHTTP(w, r.WithContext(identity.With(r.Context(), caller)))
	})))
	t.Cleanup(server.Close)
	c.url = server.URL
	c.open()
	t.Cleanup(func() { c.Service.Close() })
	return c
}

func (c *cloud) open() {
	service, err := nova.New(nova.Config{StateDir: c.dir + "/nova", Endpoint: c.url, Networks: c.networks, Hypervisor: c.machines, Images: shelf{}, Zones: []string{"nova"}})
	require.NoError(c.t, err)
	c.Service = service
}

// restart ends the process's work and begins it again from its files.
func (c *cloud) restart() {
	c.Service.Close()
	c.open()
	require.NoError(c.t, c.Restore(c.t.Context()))
}

func (c *cloud) as(project string) *gophercloud.ServiceClient {
	return &gophercloud.ServiceClient{
		ProviderClient: &gophercloud.ProviderClient{TokenID: project}, Endpoint: c.url + "/compute/v2.1/", Type: "compute",
	}
}

func (c *cloud) create(options servers.CreateOpts) *servers.Server {
	made, err := servers.Create(c.t.Context(), c.as("demo"), options, nil).Extract()
	require.NoError(c.t, err)
	return made
}

func (c *cloud) wait(id, status string) *servers.Server {
	c.t.Helper()
	var got *servers.Server
	require.Eventually(c.t, func() bool {
		var err error
		got, err = servers.Get(c.t.Context(), c.as("demo"), id).Extract()
		require.NoError(c.t, err)
		return got.Status == status && got.TaskState == ""
	}, waitFor, tick)
	return got
}

func (c *cloud) gone(id string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool {
		return gophercloud.ResponseCodeIs(servers.Get(c.t.Context(), c.as("demo"), id).Err, http.StatusNotFound)
	}, waitFor, tick)
}

func (c *cloud) namespaces() string {
	out, err := exec.Command("ip", "netns", "list").Output()
	require.NoError(c.t, err)
	var own []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, c.prefix) {
			own = append(own, strings.TrimSpace(line))
		}
	}
	return strings.Join(own, "\n")
}

func requireStatus(t *testing.T, err error, status int) {
	t.Helper()
	require.Error(t, err)
	require.True(t, gophercloud.ResponseCodeIs(err, status), "want status %d, got: %v", status, err)
}

func TestAServerComesUpWithItsPortsAndConfigDrive(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	before := c.namespaces()
	_, err := keypairs.Create(t.Context(), demo, keypairs.CreateOpts{Name: "key", PublicKey: publicKey}).Extract()
	require.NoError(t, err)
	port, err := c.networks.CreatePort(t.Context(), "demo", neutron.PortRequest{NetworkID: c.network.ID})
	require.NoError(t, err)
	made, err := servers.Create(t.Context(), demo, keypairs.CreateOptsExt{KeyName: "key", CreateOptsBuilder: servers.CreateOpts{
		Name: "Murano Kube_1", FlavorRef: "2", ImageRef: "image-1", UserData: []byte("#!/bin/sh\n"), Metadata: map[string]string{"a": "b"},
		Networks: []servers.Network{{Port: port.ID}, {UUID: c.network.ID}},
	}}, nil).Extract()
	require.NoError(t, err)
	got := c.wait(made.ID, "ACTIVE")

	require.Equal(t, "Murano Kube_1", got.Name)
	require.Equal(t, "key", got.KeyName)
	require.Equal(t, "active", got.VmState)
	require.EqualValues(t, servers.RUNNING, got.PowerState)
	require.Equal(t, map[string]string{"a": "b"}, got.Metadata)
	require.Equal(t, "2", got.Flavor["id"])
	require.Equal(t, "image-1", got.Image["id"])
	require.Len(t, got.Addresses["net"], 2)
	first := got.Addresses["net"].([]any)[0].(map[string]any)
	require.Equal(t, port.FixedIPs[0].IPAddress, first["addr"])
	require.Equal(t, "fixed", first["OS-EXT-IPS:type"])
	require.False(t, got.LaunchedAt.IsZero())

	machine := c.machines.started1(made.ID)
	require.Equal(t, "murano-kube-1", machine.Hostname)
	require.Equal(t, 1024, machine.MemoryMiB)
	require.Contains(t, c.namespaces(), machine.NetNS)
	require.Equal(t, "#!/bin/sh\n", string(machine.ConfigDrive["openstack/latest/user_data"]))
	var meta struct {
		UUID, Hostname, Name string
		Keys                 map[string]string `json:"public_keys"`
		Zone                 string            `json:"availability_zone"`
		Meta                 map[string]string
	}
	require.NoError(t, json.Unmarshal(machine.ConfigDrive["openstack/latest/meta_data.json"], &meta))
	require.Equal(t, made.ID, meta.UUID)
	require.Equal(t, "murano-kube-1", meta.Hostname)
	require.Equal(t, publicKey, meta.Keys["key"])
	require.Equal(t, "nova", meta.Zone)
	var network struct {
		Links []struct {
			ID, Type string
			VIF      string `json:"vif_id"`
			MAC      string `json:"ethernet_mac_address"`
			MTU      int
		}
		Networks []struct {
			Link, Type string
			IP         string `json:"ip_address"`
			Netmask    string
			Routes     []struct{ Network, Netmask, Gateway string }
		}
		Services []struct{ Type, Address string }
	}
	require.NoError(t, json.Unmarshal(machine.ConfigDrive["openstack/latest/network_data.json"], &network))
	require.Len(t, network.Links, 2)
	require.Equal(t, port.MACAddress, network.Links[0].MAC)
	require.Equal(t, 1450, network.Links[0].MTU)
	require.Equal(t, network.Links[0].ID, network.Networks[0].Link)
	require.Equal(t, port.FixedIPs[0].IPAddress, network.Networks[0].IP)
	require.Equal(t, "255.255.255.0", network.Networks[0].Netmask)
	require.Equal(t, "10.0.0.1", network.Networks[0].Routes[0].Gateway)
	require.Equal(t, "1.1.1.1", network.Services[0].Address)

	pages, err := attachinterfaces.List(demo, made.ID).AllPages(t.Context())
	require.NoError(t, err)
	attached, err := attachinterfaces.ExtractInterfaces(pages)
	require.NoError(t, err)
	require.Len(t, attached, 2)
	require.Equal(t, port.ID, attached[0].PortID)

	console, err := servers.ShowConsoleOutput(t.Context(), demo, made.ID, servers.ShowConsoleOutputOpts{Length: 5}).Extract()
	require.NoError(t, err)
	require.Equal(t, "login:", console)

	require.NoError(t, servers.Delete(t.Context(), demo, made.ID).ExtractErr())
	c.gone(made.ID)
	require.Equal(t, before, c.namespaces())
	left := c.networks.Ports("demo")
	require.Len(t, left, 1, "the port that was there before stays, the one that Nova made goes")
	require.Equal(t, port.ID, left[0].ID)
	require.Empty(t, left[0].DeviceID)
}

func TestStopStartAndRebootAreRefusedWhereNovaRefusesThem(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	c.wait(id, "ACTIVE")
	requireStatus(t, servers.Start(t.Context(), demo, id).Err, http.StatusConflict)
	require.NoError(t, servers.Stop(t.Context(), demo, id).ExtractErr())
	c.wait(id, "SHUTOFF")
	requireStatus(t, servers.Stop(t.Context(), demo, id).Err, http.StatusConflict)
	require.NoError(t, servers.Start(t.Context(), demo, id).ExtractErr())
	c.wait(id, "ACTIVE")
	for range 3 {
		require.NoError(t, servers.Reboot(t.Context(), demo, id, servers.RebootOpts{Type: servers.SoftReboot}).ExtractErr())
		c.wait(id, "ACTIVE")
	}
	requireStatus(t, servers.ForceDelete(t.Context(), demo, id).Err, http.StatusBadRequest)
	c.machines.set(id, "stopped") // it went down by itself
	c.wait(id, "SHUTOFF")
}

func TestARescuedServerRunsFromAnotherDiskUntilItIsUnrescued(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	c.wait(id, "ACTIVE")
	requireStatus(t, servers.Unrescue(t.Context(), demo, id).Err, http.StatusConflict)
	requireStatus(t, servers.Rescue(t.Context(), demo, id, servers.RescueOpts{RescueImageRef: "nothing"}).Err, http.StatusBadRequest)
	password, err := servers.Rescue(t.Context(), demo, id, servers.RescueOpts{AdminPass: "s3cret"}).Extract()
	require.NoError(t, err)
	require.Equal(t, "s3cret", password)
	got := c.wait(id, "RESCUE")
	require.Equal(t, "rescued", got.VmState)
	require.EqualValues(t, servers.RUNNING, got.PowerState)
	require.Equal(t, "image-1", got.Image["id"])
	require.Equal(t, "image-1", c.machines.started1(id).RescueImageID)
	require.Equal(t, 2, c.machines.count())

	for _, refused := range []error{
		servers.Rescue(t.Context(), demo, id, servers.RescueOpts{}).Err, servers.Stop(t.Context(), demo, id).Err, servers.Start(t.Context(), demo, id).Err,
		servers.Rebuild(t.Context(), demo, id, servers.RebuildOpts{ImageRef: "image-1"}).Err,
	} {
		requireStatus(t, refused, http.StatusConflict)
	}
	require.NoError(t, servers.Reboot(t.Context(), demo, id, servers.RebootOpts{Type: servers.HardReboot}).ExtractErr())
	c.wait(id, "RESCUE")
	c.machines.set(id, "stopped") // the machine went down
	c.restart()
	require.Eventually(t, func() bool { return c.machines.count() == 4 }, waitFor, tick)
	c.wait(id, "RESCUE")
	require.Equal(t, "image-1", c.machines.started1(id).RescueImageID)

	require.NoError(t, servers.Unrescue(t.Context(), demo, id).ExtractErr())
	c.wait(id, "ACTIVE")
	require.Empty(t, c.machines.started1(id).RescueImageID)

	c.machines.fail(errors.New("no memory left on this machine"))
	_, err = servers.Rescue(t.Context(), demo, id, servers.RescueOpts{}).Extract()
	require.NoError(t, err)
	c.wait(id, "ERROR")
	c.machines.fail(nil)
	require.NoError(t, servers.Reboot(t.Context(), demo, id, servers.RebootOpts{Type: servers.HardReboot}).ExtractErr())
	c.wait(id, "ACTIVE")
	require.Empty(t, c.machines.started1(id).RescueImageID, "what could not be rescued starts from its own disk")
}

func TestAResizeIsConfirmedOrReverted(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	c.wait(id, "ACTIVE")
	resize := func(flavor string) error {
		return servers.Resize(t.Context(), demo, id, servers.ResizeOpts{FlavorRef: flavor}).ExtractErr()
	}
	requireStatus(t, resize("2"), http.StatusBadRequest)
	requireStatus(t, resize("nothing"), http.StatusBadRequest)
	requireStatus(t, servers.ConfirmResize(t.Context(), demo, id).Err, http.StatusConflict)
	requireStatus(t, servers.RevertResize(t.Context(), demo, id).Err, http.StatusConflict)

	require.NoError(t, resize("3"))
	require.Equal(t, "resized", c.wait(id, "VERIFY_RESIZE").VmState)
	require.Equal(t, 2048, c.machines.started1(id).MemoryMiB)
	requireStatus(t, servers.Reboot(t.Context(), demo, id, servers.RebootOpts{Type: servers.HardReboot}).Err, http.StatusConflict)
	c.machines.set(id, "stopped") // the machine went down
	c.restart()
	require.Eventually(t, func() bool { return c.machines.count() == 3 }, waitFor, tick)
	c.wait(id, "VERIFY_RESIZE")
	require.NoError(t, servers.RevertResize(t.Context(), demo, id).ExtractErr())
	require.Equal(t, "2", c.wait(id, "ACTIVE").Flavor["id"])
	require.Equal(t, 1024, c.machines.started1(id).MemoryMiB)

	require.NoError(t, resize("3"))
	c.wait(id, "VERIFY_RESIZE")
	require.NoError(t, servers.ConfirmResize(t.Context(), demo, id).ExtractErr())
	require.Equal(t, "3", c.wait(id, "ACTIVE").Flavor["id"])

	require.NoError(t, servers.Stop(t.Context(), demo, id).ExtractErr())
	c.wait(id, "SHUTOFF")
	starts := c.machines.count()
	require.NoError(t, resize("2"))
	c.wait(id, "VERIFY_RESIZE")
	require.NoError(t, servers.ConfirmResize(t.Context(), demo, id).ExtractErr())
	require.Equal(t, "2", c.wait(id, "SHUTOFF").Flavor["id"])
	require.Equal(t, starts, c.machines.count(), "what was off stays off")

	require.NoError(t, servers.Start(t.Context(), demo, id).ExtractErr())
	c.wait(id, "ACTIVE")
	c.machines.fail(errors.New("no memory left on this machine"))
	require.NoError(t, resize("3"))
	require.Equal(t, "2", c.wait(id, "ERROR").Flavor["id"])
}

func TestAFailedBuildSaysWhyAndLeavesNothingWhenDeleted(t *testing.T) {
	c := start(t)
	before := c.namespaces()
	c.machines.failure = errors.New("no memory left on this machine")
	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	got := c.wait(id, "ERROR")
	require.Equal(t, 500, got.Fault.Code)
	require.Contains(t, got.Fault.Message, "no memory left on this machine")
	require.NoError(t, c.Delete(t.Context(), "demo", id))
	c.gone(id)
	require.Equal(t, before, c.namespaces())
	require.Empty(t, c.networks.Ports("demo"))
}

func TestABuildGoesOnAfterARestart(t *testing.T) {
	c := start(t)
	c.machines.gate = make(chan struct{})
	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	require.Eventually(t, func() bool { return c.machines.count() == 1 }, waitFor, tick)
	c.restart()
	require.Eventually(t, func() bool { return c.machines.count() == 2 }, waitFor, tick)
	got, err := c.Get(t.Context(), "demo", id)
	require.NoError(t, err)
	require.Equal(t, nova.StatusBuild, got.Status)
	close(c.machines.gate)
	c.wait(id, "ACTIVE")
	require.Len(t, c.networks.Ports("demo"), 1, "the second try uses the port of the first")
}

func TestADeletionEndsABuild(t *testing.T) {
	c := start(t)
	before := c.namespaces()
	c.machines.gate = make(chan struct{})
	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	require.Eventually(t, func() bool { return c.machines.count() == 1 }, waitFor, tick)
	require.NoError(t, c.Delete(t.Context(), "demo", id))
	require.Equal(t, fault.NotFound, fault.KindOf(c.Delete(t.Context(), "demo", id)))
	require.Equal(t, before, c.namespaces())
}

func TestServersThatRanAreStartedAgainAfterTheMachineWentDown(t *testing.T) {
	c := start(t)
	up := c.create(servers.CreateOpts{Name: "up", FlavorRef: "2", ImageRef: "image-1"}).ID
	down := c.create(servers.CreateOpts{Name: "down", FlavorRef: "2", ImageRef: "image-1"}).ID
	c.wait(up, "ACTIVE")
	c.wait(down, "ACTIVE")
	require.NoError(t, servers.Stop(t.Context(), c.as("demo"), down).ExtractErr())
	c.wait(down, "SHUTOFF")
	c.machines.set(up, "stopped")
	c.restart()
	c.wait(up, "ACTIVE")
	c.wait(down, "SHUTOFF")
	require.Equal(t, 3, c.machines.count())
}

func TestWhatCannotBeBuiltIsRefused(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	good := servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}
	try := func(change func(*servers.CreateOpts)) error {
		options := good
		change(&options)
		return servers.Create(t.Context(), demo, options, nil).Err
	}
	for name, test := range map[string]struct {
		status int
		change func(*servers.CreateOpts)
	}{
		"unknown flavor":         {400, func(o *servers.CreateOpts) { o.FlavorRef = "m9" }},
		"unknown image":          {400, func(o *servers.CreateOpts) { o.ImageRef = "nothing" }},
		"unknown network":        {400, func(o *servers.CreateOpts) { o.Networks = []servers.Network{{UUID: "nothing"}} }},
		"unknown port":           {400, func(o *servers.CreateOpts) { o.Networks = []servers.Network{{Port: "nothing"}} }},
		"unknown security group": {400, func(o *servers.CreateOpts) { o.SecurityGroups = []string{"nothing"} }},
		"unknown zone":           {400, func(o *servers.CreateOpts) { o.AvailabilityZone = "mars" }},
		"too much user data":     {400, func(o *servers.CreateOpts) { o.UserData = []byte(strings.Repeat("x", 65536)) }},
	} {
		t.Run(name, func(t *testing.T) { requireStatus(t, try(test.change), test.status) })
	}
	_, err := servers.Create(t.Context(), demo, keypairs.CreateOptsExt{CreateOptsBuilder: good, KeyName: "nothing"}, nil).Extract()
	requireStatus(t, err, http.StatusBadRequest)
	require.ErrorContains(t, err, `{"badRequest":{"code":400,"message":"Invalid key_name provided."}}`)
	pages, err := servers.List(demo, nil).AllPages(t.Context())
	require.NoError(t, err)
	empty, err := pages.IsEmpty()
	require.NoError(t, err)
	require.True(t, empty)

	port, err := c.networks.CreatePort(t.Context(), "demo", neutron.PortRequest{NetworkID: c.network.ID})
	require.NoError(t, err)
	taken := servers.CreateOpts{Name: "a", FlavorRef: "m1.small", ImageRef: "node", Networks: []servers.Network{{Port: port.ID}}}
	c.wait(c.create(taken).ID, "ACTIVE")
	requireStatus(t, servers.Create(t.Context(), demo, taken, nil).Err, http.StatusConflict)
}

func TestAProjectSeesItsOwnServersOnly(t *testing.T) {
	c := start(t)
	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	c.wait(id, "ACTIVE")
	names := func(project string, options servers.ListOpts) []string {
		pages, err := servers.List(c.as(project), options).AllPages(t.Context())
		require.NoError(t, err)
		found, err := servers.ExtractServers(pages)
		require.NoError(t, err)
		list := []string{}
		for _, s := range found {
			list = append(list, s.Name)
		}
		return list
	}
	require.Equal(t, []string{"a"}, names("demo", servers.ListOpts{Status: "active"}))
	require.Empty(t, names("demo", servers.ListOpts{Name: "^b"}))
	require.Empty(t, names("other", servers.ListOpts{AllTenants: true}))
	require.Empty(t, names("admin", servers.ListOpts{}))
	require.Equal(t, []string{"a"}, names("admin", servers.ListOpts{AllTenants: true}))
	requireStatus(t, servers.Get(t.Context(), c.as("other"), id).Err, http.StatusNotFound)
	requireStatus(t, servers.Delete(t.Context(), c.as("other"), id).Err, http.StatusNotFound)
	require.ErrorContains(t, servers.Get(t.Context(), c.as("demo"), "nothing").Err,
		`{"itemNotFound":{"code":404,"message":"Instance nothing could not be found."}}`)
}

func TestMicroversionsAreAnswered(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	supported, err := utils.GetSupportedMicroversions(t.Context(), demo)
	require.NoError(t, err)
	require.Equal(t, utils.SupportedMicroversions{MaxMajor: 2, MaxMinor: 90, MinMajor: 2, MinMinor: 1}, supported)

	id := c.create(servers.CreateOpts{Name: "a", FlavorRef: "2", ImageRef: "image-1"}).ID
	c.wait(id, "ACTIVE")
	demo.Microversion = "2.79"
	result := servers.Get(t.Context(), demo, id)
	got, err := result.Extract()
	require.NoError(t, err)
	require.Equal(t, "2.79", result.Header.Get("X-OpenStack-Nova-API-Version"))
	require.Equal(t, "m1.small", got.Flavor["original_name"])
	require.NotNil(t, got.Locked)
	requireStatus(t, servers.Create(t.Context(), demo, servers.CreateOpts{Name: "b", FlavorRef: "2", ImageRef: "image-1"}, nil).Err, http.StatusBadRequest)
	demo.Microversion = "2.999"
	requireStatus(t, servers.Get(t.Context(), demo, id).Err, http.StatusNotAcceptable)
}

func TestFlavorsKeyPairsZonesAndLimits(t *testing.T) {
	c := start(t)
	demo := c.as("demo")
	pages, err := flavors.ListDetail(demo, nil).AllPages(t.Context())
	require.NoError(t, err)
	sizes, err := flavors.ExtractFlavors(pages)
	require.NoError(t, err)
	require.Len(t, sizes, 3)
	require.Equal(t, "m1.medium", sizes[1].Name)
	require.Equal(t, 2048, sizes[1].RAM)
	requireStatus(t, flavors.Get(t.Context(), demo, "nothing").Err, http.StatusNotFound)

	made, err := keypairs.Create(t.Context(), demo, keypairs.CreateOpts{Name: "made"}).Extract()
	require.NoError(t, err)
	require.Contains(t, made.PrivateKey, "PRIVATE KEY")
	requireStatus(t, keypairs.Create(t.Context(), demo, keypairs.CreateOpts{Name: "made"}).Err, http.StatusConflict)
	requireStatus(t, keypairs.Create(t.Context(), demo, keypairs.CreateOpts{Name: "bad", PublicKey: "nothing"}).Err, http.StatusBadRequest)
	shown, err := keypairs.Get(t.Context(), demo, "made", nil).Extract()
	require.NoError(t, err)
	require.Equal(t, made.Fingerprint, shown.Fingerprint)
	require.Empty(t, shown.PrivateKey)
	listed, err := keypairs.List(demo, nil).AllPages(t.Context())
	require.NoError(t, err)
	all, err := keypairs.ExtractKeyPairs(listed)
	require.NoError(t, err)
	require.Len(t, all, 1)
	requireStatus(t, keypairs.Get(t.Context(), c.as("other"), "made", nil).Err, http.StatusNotFound)
	require.NoError(t, keypairs.Delete(t.Context(), demo, "made", nil).ExtractErr())

	zones, err := availabilityzones.List(demo).AllPages(t.Context())
	require.NoError(t, err)
	found, err := availabilityzones.ExtractAvailabilityZones(zones)
	require.NoError(t, err)
	require.Equal(t, "nova", found[0].ZoneName)
	require.True(t, found[0].ZoneState.Available)

	c.wait(c.create(servers.CreateOpts{Name: "a", FlavorRef: "3", ImageRef: "image-1"}).ID, "ACTIVE")
	limit, err := limits.Get(t.Context(), demo, nil).Extract()
	require.NoError(t, err)
	require.Equal(t, 1, limit.Absolute.TotalInstancesUsed)
	require.Equal(t, 2048, limit.Absolute.TotalRAMUsed)
	quota, err := quotasets.Get(t.Context(), demo, "demo").Extract()
	require.NoError(t, err)
	require.Positive(t, quota.Instances)
	requireStatus(t, quotasets.Get(t.Context(), demo, "other").Err, http.StatusForbidden)
}

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4tl2XFUbf3+8WQOkUVBnrNnvCThgLfKGYcHPnbPTDv somebody"

func TestAServerForWhichNoGroupIsNamedIsInTheDefaultGroup(t *testing.T) {
	c := start(t)
	made := c.create(servers.CreateOpts{Name: "plain", FlavorRef: "2", ImageRef: "image-1", Networks: []servers.Network{{UUID: c.network.ID}}})
	c.wait(made.ID, "ACTIVE")
	for _, port := range c.networks.Ports("demo") {
		require.Len(t, port.SecurityGroups, 1)
		group, err := c.networks.GetSecurityGroup(t.Context(), "demo", port.SecurityGroups[0])
		require.NoError(t, err)
		require.Equal(t, "default", group.Name)
	}
}
