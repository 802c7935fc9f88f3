package clients

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/golden"
	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// startCloud starts a whole local cloud for the test, with the image and the flavor of the recording, and Burano on it. BURANO_SLOT, a
// digit, keeps the clouds of several checkouts apart.
func startCloud(t *testing.T) *server {
	t.Helper()
	return startCloudWith(t, cloudOfTests())
}

func cloudOfTests() localcloud.Config {
	slot := os.Getenv("BURANO_SLOT")
	return localcloud.Config{ExternalCIDR: netip.MustParsePrefix("10.86.7" + slot + ".0/24"), Prefix: "blr" + slot + "-"}
}

// startCloudWith is startCloud with other settings.
func startCloudWith(t *testing.T, settings localcloud.Config) *server {
	t.Helper()
	s := startCloudAlone(t, settings)
	s.build("faults")
	return s
}

// startCloudAlone starts the cloud without Burano.
func startCloudAlone(t *testing.T, settings localcloud.Config) *server {
	t.Helper()
	settings = localcloudtest.Start(t, settings)
	s := &server{t: t, home: t.TempDir(), keystone: "http://" + settings.Listen}

	admin := s.cloudAs("admin")
	public, disk := images.ImageVisibilityPublic, 1
	content, err := localcloudtest.TinyServer(t.Context())
	require.NoError(t, err)
	image, err := images.Create(t.Context(), admin.glance, images.CreateOpts{Name: "tiny", DiskFormat: "raw", ContainerFormat: "bare", Visibility: &public}).Extract()
	require.NoError(t, err)
	require.NoError(t, imagedata.Upload(t.Context(), admin.glance, image.ID, bytes.NewReader(content)).ExtractErr())
	_, err = flavors.Create(t.Context(), admin.nova, flavors.CreateOpts{Name: "m1.tiny", RAM: 512, VCPUs: 1, Disk: &disk}).Extract()
	require.NoError(t, err)
	return s
}

// cloudUser is a user with clients of the local cloud itself.
type cloudUser struct{ nova, neutron, heat, glance *gophercloud.ServiceClient }

// cloudAs signs a user in, whose password and project have its name.
func (s *server) cloudAs(user string) cloudUser { return s.cloudIn(user, keystone.Region) }

// cloudIn is cloudAs in a region of the cloud.
func (s *server) cloudIn(user, region string) cloudUser {
	s.t.Helper()
	provider, err := openstack.AuthenticatedClient(s.t.Context(), gophercloud.AuthOptions{IdentityEndpoint: s.keystone + "/identity/v3",
		Username: user, Password: user, TenantName: user, DomainName: "Default"})
	require.NoError(s.t, err)
	open := func(service func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)) *gophercloud.ServiceClient {
		client, err := service(provider, gophercloud.EndpointOpts{Region: region})
		require.NoError(s.t, err)
		return client
	}
	return cloudUser{open(openstack.NewComputeV2), open(openstack.NewNetworkV2), open(openstack.NewOrchestrationV1), open(openstack.NewImageV2)}
}

// holds lists the resources of the user's project in the cloud, by kind.
func (u cloudUser) holds(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	pages, err := servers.List(u.nova, nil).AllPages(t.Context())
	require.NoError(t, err)
	allServers, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	for _, one := range allServers {
		found["servers"] = append(found["servers"], one.Name)
	}
	pages, err = stacks.List(u.heat, nil).AllPages(t.Context())
	require.NoError(t, err)
	allStacks, err := stacks.ExtractStacks(pages)
	require.NoError(t, err)
	for _, one := range allStacks {
		found["stacks"] = append(found["stacks"], one.Name)
	}
	pages, err = networks.List(u.neutron, nil).AllPages(t.Context())
	require.NoError(t, err)
	allNetworks, err := networks.ExtractNetworks(pages)
	require.NoError(t, err)
	for _, one := range allNetworks {
		found["networks"] = append(found["networks"], one.Name)
	}
	pages, err = routers.List(u.neutron, nil).AllPages(t.Context())
	require.NoError(t, err)
	allRouters, err := routers.ExtractRouters(pages)
	require.NoError(t, err)
	for _, one := range allRouters {
		found["routers"] = append(found["routers"], one.Name)
	}
	pages, err = ports.List(u.neutron, nil).AllPages(t.Context())
	require.NoError(t, err)
	allPorts, err := ports.ExtractPorts(pages)
	require.NoError(t, err)
	for _, one := range allPorts {
		found["ports"] = append(found["ports"], one.DeviceOwner+" "+one.Name)
	}
	pages, err = floatingips.List(u.neutron, nil).AllPages(t.Context())
	require.NoError(t, err)
	allFloating, err := floatingips.ExtractFloatingIPs(pages)
	require.NoError(t, err)
	for _, one := range allFloating {
		found["floating IPs"] = append(found["floating IPs"], one.FloatingIP)
	}
	pages, err = groups.List(u.neutron, groups.ListOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	allGroups, err := groups.ExtractGroups(pages)
	require.NoError(t, err)
	for _, one := range allGroups {
		found["security groups"] = append(found["security groups"], one.Name)
	}
	for _, names := range found {
		slices.Sort(names)
	}
	return found
}

func TestTheProgramOnAWholeCloud(t *testing.T) {
	s := startCloud(t)
	s.serve(http.DefaultClient, "http")
	demo := s.cloudAs("demo")
	before := demo.holds(t)
	for _, try := range []struct {
		name string
		run  func(*testing.T, *server, cloudUser)
	}{
		{"makes servers and stacks as recorded", serversAreMadeAsRecorded},
		{"makes all servers of an application in one change, and changes them", serversOfAnApplication},
		{"joins servers to a network that is there", serversJoinAnExistingNetwork},
		{"gives servers and volumes the metadata of what they belong to", metadataIsTakenOver},
		{"makes stacks of Heat templates with files and environments", heatTemplatesWithFiles},
		{"runs Heat templates whose parameters and outputs are of many kinds", heatTemplatesOfManyKinds},
		{"takes the packages and forms that Murano takes, and refuses a class that is not there by its name", packagesOfOtherHands},
		{"says what failed and where, and heals with the next deployment", failuresAreSaidAndHealed},
		{"keeps the servers that are there, whatever is edited", serversOutliveEdits},
		{"keeps the servers of Heat templates", serversOfTemplatesOutliveEdits},
		{"makes groups of servers of Heat templates larger and smaller", groupsOfTemplates},
	} {
		t.Run(try.name, func(t *testing.T) {
			try.run(t, s, demo)
			require.Equal(t, before, demo.holds(t), "nothing is left")
		})
	}
}

// serversAreMadeAsRecorded replays the recording of a server and of a Heat template, and looks at the server in the cloud.
func serversAreMadeAsRecorded(t *testing.T, s *server, demo cloudUser) {
	token, project := s.token("demo", "demo")
	seen := 0
	golden.ServersAnswerAsRecorded(t, &golden.Replay{URL: s.url, Keystone: s.keystone + "/identity/v3", Tokens: map[string]string{"{token:demo}": token},
		IDs: golden.IDs{golden.ProjectDemo: project}}, keystone.Region, func(d golden.Deployment) {
		seen++
		holds := demo.holds(t)
		application := d.Model["services"].([]any)[0].(map[string]any)
		instance, isServer := application["instance"].(map[string]any)
		if !isServer {
			require.Empty(t, holds["servers"])
			require.Len(t, holds["stacks"], 1)
			require.Regexp(t, `_`+d.Environment+`$`, holds["stacks"][0])
			return
		}
		require.Equal(t, []string{"burano-" + d.Environment}, holds["stacks"])
		require.Equal(t, []string{"goldenvm"}, holds["servers"])
		require.Equal(t, []string{instance["floatingIpAddress"].(string)}, holds["floating IPs"])
		server, err := servers.Get(t.Context(), demo.nova, instance["openstackId"].(string)).Extract()
		require.NoError(t, err)
		require.Equal(t, "ACTIVE", server.Status)
		addresses := server.Addresses["golden-vm-network"].([]any)
		for _, address := range instance["ipAddresses"].([]any) {
			require.True(t, slices.ContainsFunc(addresses, func(one any) bool { return one.(map[string]any)["addr"] == address }), "%v in %v", address, addresses)
		}
	})
	require.Equal(t, 2, seen)
}

// farm writes a file for `burano deploy` of an environment of that name with servers; each is a name and its differences from a small
// one.
func (s *server) farm(name string, list ...[2]string) (file string) {
	text := "name: " + name + "\napplications:\n  - '?': {type: io.burano.test.Farm, id: farm}\n    ports: [8080]\n    servers:\n"
	for _, one := range list {
		text += "      - {'?': {type: io.murano.resources.LinuxInstance, id: " + one[0] + "}, name: " + one[0] + ", " +
			cmp.Or(one[1], "flavor: m1.tiny, image: tiny") + "}\n"
	}
	s.write(map[string]string{name + ".yaml": text})
	return name + ".yaml"
}

// model returns the model of an environment.
func (s *server) model(t *testing.T, environment string) map[string]any {
	t.Helper()
	out, ok := s.run(s.as("demo", "demo"), s.program, "environment", "model", environment)
	require.True(t, ok, out)
	var model map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &model), out)
	return model
}

// statistics returns the statistics of an environment's instances.
func (s *server) statistics(t *testing.T, environment string) (list []map[string]any) {
	t.Helper()
	var shown struct {
		ID string `json:"id"`
	}
	require.NoError(t, json.Unmarshal([]byte(s.burano(t, "environment", "show", environment)), &shown))
	s.read(t, "/v1/environments/"+shown.ID+"/instance-statistics/raw", &list)
	return list
}

// read asks Burano as demo, and decodes the answer into a value.
func (s *server) read(t *testing.T, path string, into any) {
	t.Helper()
	token, _ := s.token("demo", "demo")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	require.NoError(t, err)
	request.Header.Set("X-Auth-Token", token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.NoError(t, json.NewDecoder(response.Body).Decode(into))
}

// burano runs the program as demo and demands success.
func (s *server) burano(t *testing.T, args ...string) string {
	t.Helper()
	out, ok := s.run(s.as("demo", "demo"), s.program, args...)
	require.True(t, ok, out)
	return out
}

// answers asks the tiny server behind an address, on a port that its group admits, for its name.
func answers(t *testing.T, address, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		connection, err := net.DialTimeout("tcp", net.JoinHostPort(address, "8080"), time.Second)
		if err != nil {
			return false
		}
		defer connection.Close()
		_ = connection.SetDeadline(time.Now().Add(time.Second))
		text, _ := io.ReadAll(connection)
		return strings.Contains(string(text), name)
	}, time.Minute, 50*time.Millisecond, "%s does not answer at %s", name, address)
}

// importServers uploads the package of farms and words.
func (s *server) importServers(t *testing.T) {
	t.Helper()
	folder, err := filepath.Abs("../packages/io.burano.test.Servers")
	require.NoError(t, err)
	s.burano(t, "package", "import", "--exists-action", "s", folder)
}

func serversOfAnApplication(t *testing.T, s *server, demo cloudUser) {
	s.importServers(t)
	out := s.burano(t, "deploy", s.farm("farm", [2]string{"one", "flavor: m1.tiny, image: tiny, assignFloatingIp: true"}, [2]string{"two"}), "--follow")
	require.Equal(t, 1, strings.Count(out, "Making servers"), out)
	require.Contains(t, out, "2 new in stack")
	require.Equal(t, []string{"one", "two"}, demo.holds(t)["servers"])
	application := func() map[string]any { return s.model(t, "farm")["services"].([]any)[0].(map[string]any) }
	instances := application()["servers"].([]any)
	require.Len(t, application()["addresses"], 2)
	answers(t, instances[0].(map[string]any)["floatingIpAddress"].(string), "one")

	counted := s.statistics(t, "farm")
	require.Len(t, counted, 1)
	require.Equal(t, []any{"farm", 2.0, true}, []any{counted[0]["type_title"], counted[0]["unit_count"], counted[0]["active"]})

	made := demo.server(t, "one")
	out = s.burano(t, "deploy", "farm.yaml", "--follow")
	require.Contains(t, out, "Deployment finished")
	require.Equal(t, made, demo.server(t, "one"), "the same again makes nothing anew")

	require.NoError(t, servers.Delete(t.Context(), demo.nova, made).ExtractErr())
	require.Eventually(t, func() bool { return len(demo.holds(t)["servers"]) == 1 }, time.Minute, 50*time.Millisecond)
	out = s.burano(t, "deploy", "farm.yaml", "--follow")
	require.Contains(t, out, "Server one ("+made+") is gone from Nova: a new one takes its place")
	made = demo.server(t, "one")
	require.Equal(t, made, application()["servers"].([]any)[0].(map[string]any)["openstackId"])

	// A third server in a network of its own; the first one loses its floating IP.
	out = s.burano(t, "deploy", s.farm("farm", [2]string{"one"}, [2]string{"two"}, [2]string{"three", "flavor: m1.tiny, image: tiny, networks: {useEnvironmentNetwork: true, " +
		"useFlatNetwork: false, primaryNetwork: null, customNetworks: [{'?': {type: io.murano.resources.NeutronNetwork}, name: private, autoUplink: false}]}"}), "--follow")
	require.Contains(t, out, "which then has 3")
	holds := demo.holds(t)
	require.Equal(t, []string{"one", "three", "two"}, holds["servers"])
	require.Contains(t, holds["networks"], "private")
	require.Empty(t, holds["floating IPs"])
	require.Equal(t, made, demo.server(t, "one"))
	third := application()["servers"].([]any)[2].(map[string]any)
	require.Len(t, third["ipAddresses"], 2)
	require.Len(t, third["joinedNetworks"], 2)

	s.burano(t, "action", "call", "farm", application()["?"].(map[string]any)["id"].(string), "shrink", "--follow")
	holds = demo.holds(t)
	require.Equal(t, []string{"one", "two"}, holds["servers"], "what an action drops is gone when it ends")
	require.NotContains(t, holds["networks"], "private")
	require.Equal(t, made, demo.server(t, "one"))

	s.burano(t, "deploy", s.farm("farm", [2]string{"two"}), "--follow")
	require.Equal(t, []string{"two"}, demo.holds(t)["servers"], "what the model does not hold any more is gone")
	s.write(map[string]string{"farm.yaml": "name: farm\napplications: []\n"})
	s.burano(t, "deploy", "farm.yaml", "--follow")
	require.Empty(t, demo.holds(t)["stacks"], "without servers there is no stack")
	require.Equal(t, false, s.statistics(t, "farm")[0]["active"])
	network := s.model(t, "farm")["regions"].(map[string]any)[keystone.Region].(map[string]any)["defaultNetworks"].(map[string]any)["environment"].(map[string]any)
	require.Nil(t, network["openstackId"], "its network is not there any more")
	require.NotNil(t, network["subnetCidr"], "its subnet would be the same again")
	s.burano(t, "environment", "delete", "--yes", "farm")
}

func serversJoinAnExistingNetwork(t *testing.T, s *server, demo cloudUser) {
	network, err := networks.Create(t.Context(), demo.neutron, networks.CreateOpts{Name: "theirs"}).Extract()
	require.NoError(t, err)
	defer func() { require.NoError(t, networks.Delete(t.Context(), demo.neutron, network.ID).ExtractErr()) }()
	_, err = subnets.Create(t.Context(), demo.neutron, subnets.CreateOpts{NetworkID: network.ID, CIDR: "10.77.0.0/24", IPVersion: gophercloud.IPv4}).Extract()
	require.NoError(t, err)
	s.burano(t, "deploy", s.farm("guest", [2]string{"one", "flavor: m1.tiny, image: tiny, networks: {useEnvironmentNetwork: false, useFlatNetwork: false, " +
		"primaryNetwork: null, customNetworks: [{'?': {type: io.murano.resources.ExistingNeutronNetwork}, internalNetworkName: theirs}]}"}), "--follow")
	instance := s.model(t, "guest")["services"].([]any)[0].(map[string]any)["servers"].([]any)[0].(map[string]any)
	require.Len(t, instance["ipAddresses"], 1)
	require.Regexp(t, `^10\.77\.0\.`, instance["ipAddresses"].([]any)[0])
	require.NotContains(t, demo.holds(t)["networks"], "guest-network", "a network that nobody joins is not made")
	s.burano(t, "environment", "delete", "--yes", "guest")
}

// metadataIsTakenOver deploys an application with metadata; namespaces of Glance declare which of it is for servers and which for volumes.
// There are more namespaces than Glance lists at once.
func metadataIsTakenOver(t *testing.T, s *server, demo cloudUser) {
	admin := s.cloudAs("admin")
	define := func(namespace, resource, property string) {
		_, err := admin.glance.Post(t.Context(), admin.glance.ServiceURL("metadefs", "namespaces"), map[string]any{"namespace": namespace, "visibility": "public",
			"resource_type_associations": []any{map[string]any{"name": resource}},
			"objects":                    []any{map[string]any{"name": "all", "properties": map[string]any{property: map[string]any{"type": "string", "title": property}}}},
		}, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusCreated}})
		require.NoError(t, err)
	}
	define("Team", "OS::Nova::Server", "team")
	define("Disks", "OS::Cinder::Volume", "tier")
	for n := range 30 {
		define(fmt.Sprintf("Other%d", n), "OS::Nova::Server", fmt.Sprintf("other%d", n))
	}
	application := func(metadata string) string {
		s.write(map[string]string{"marked.yaml": "name: marked\napplications:\n  - '?': {type: io.burano.test.Farm, id: farm, metadata: " + metadata + "}\n    servers:\n" +
			"      - {'?': {type: io.murano.resources.LinuxInstance, id: one, metadata: {own: 1}}, name: one, flavor: m1.tiny, image: tiny, " +
			"volumes: {/dev/vdb: {'?': {type: io.murano.resources.CinderVolume, id: disk}, name: disk, size: 1}}}\n"})
		return "marked.yaml"
	}
	blockStorage, err := openstack.NewBlockStorageV3(demo.nova.ProviderClient, gophercloud.EndpointOpts{Region: keystone.Region})
	require.NoError(t, err)
	has := func(server, volume map[string]string) (id string) {
		id = demo.server(t, "one")
		shown, err := servers.Get(t.Context(), demo.nova, id).Extract()
		require.NoError(t, err)
		require.Equal(t, server, shown.Metadata)
		pages, err := volumes.List(blockStorage, volumes.ListOpts{Name: "disk"}).AllPages(t.Context())
		require.NoError(t, err)
		found, err := volumes.ExtractVolumes(pages)
		require.NoError(t, err)
		require.Len(t, found, 1)
		delete(found[0].Metadata, "attached_mode") // Cinder's own
		require.Equal(t, volume, found[0].Metadata)
		return id
	}
	s.burano(t, "deploy", application("{team: blue, tier: gold, unknown: x}"), "--follow")
	id := has(map[string]string{"team": "blue", "own": "1"}, map[string]string{"tier": "gold"})
	s.burano(t, "deploy", application("{team: red}"), "--follow")
	require.Equal(t, id, has(map[string]string{"team": "red", "own": "1"}, map[string]string{}), "the server is the same")
	s.burano(t, "environment", "delete", "--yes", "marked")
}

func heatTemplatesWithFiles(t *testing.T, s *server, demo cloudUser) {
	s.write(map[string]string{
		"hot/manifest.yaml": "Format: Heat.HOT/1.0\nType: Application\nFullName: org.test.Greeting\nName: Greeting\n",
		"hot/template.yaml": `heat_template_version: 2016-10-14
parameters:
  length: {type: number, constraints: [{range: {min: 2, max: 9}}]}
resources:
  word: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
  text: {type: OS::Heat::Value, properties: {type: string, value: {get_file: greeting.txt}}}
outputs:
  word: {value: {get_attr: [word, value]}}
  text: {value: {get_attr: [text, value]}}
`,
		"hot/Resources/HotFiles/greeting.txt":      "hello",
		"hot/Resources/HotEnvironments/short.yaml": "parameters: {length: 3}\n",
		"hot/Resources/HotEnvironments/long.yaml":  "parameters: {length: 8}\n",
		"hot/Resources/HotEnvironments/wrong.yaml": "parameters: {length: 99}\n",
	})
	s.burano(t, "package", "import", "hot")
	deploy := func(environment string) (string, bool) {
		s.write(map[string]string{"greeting.yaml": "name: greeting\napplications:\n  - {'?': {type: org.test.Greeting}, name: greeting, hotEnvironment: " + environment + "}\n"})
		return s.run(s.as("demo", "demo"), s.program, "deploy", "greeting.yaml", "--follow")
	}
	outputs := func() map[string]any {
		return s.model(t, "greeting")["services"].([]any)[0].(map[string]any)["templateOutputs"].(map[string]any)
	}
	out, ok := deploy("wrong.yaml")
	require.False(t, ok, out)
	for _, word := range []string{"org.test.Greeting.deploy", "create stack", "99", "Deployment finished with errors"} {
		require.Contains(t, out, word)
	}
	require.Empty(t, demo.holds(t)["stacks"])
	out, ok = deploy("short.yaml")
	require.True(t, ok, out)
	require.Len(t, outputs()["word"], 3)
	require.Equal(t, "hello", outputs()["text"])
	stack := demo.holds(t)["stacks"]
	out, ok = deploy("long.yaml")
	require.True(t, ok, out)
	require.Len(t, outputs()["word"], 8)
	require.Equal(t, stack, demo.holds(t)["stacks"], "it is the same stack")
	s.write(map[string]string{"greeting.yaml": "name: greeting\napplications: []\n"})
	s.burano(t, "deploy", "greeting.yaml", "--follow")
	require.Empty(t, demo.holds(t)["stacks"], "the stack goes with the application")
	s.burano(t, "environment", "delete", "--yes", "greeting")
}

// A package is made of each template as users make it, and its form, its values and its outputs are tested.
func heatTemplatesOfManyKinds(t *testing.T, s *server, _ cloudUser) {
	const word = "resources:\n  word: {type: OS::Heat::RandomString, properties: {length: {get_param: word-length}, salt: {get_param: size}}}\n"
	s.write(map[string]string{
		"stacks/kinds.yaml": `heat_template_version: 2018-08-31
description: "of all kinds: 100% {text} $x"
parameters:
  zero: &number {type: number, default: 0}
  word-length: {<<: *number, default: 8, constraints: [{range: {min: 4, max: 40}}, {modulo: {step: 4, offset: 0}}]}
  size: {type: string, default: small, constraints: [{allowed_values: [small, large]}]}
  ratio: {type: number, default: 0.5, constraints: [{range: {min: 0.1, max: 1}}]}
  release: {type: number, default: 2.4, constraints: [{allowed_values: [2.4, 3]}]}
  port: {type: string, default: 80}
  day: {type: string, default: 2016-10-14}
  on_line: {type: boolean, default: "off"}
  none: {type: string, default: ""}
  ports: {type: comma_delimited_list, default: "http,https", constraints: [{allowed_values: [http, https, ssh]}, {length: {min: 1, max: 3}}]}
  options: {type: json, default: {colour: red, depth: 3}}
  key: {type: string, hidden: true, default: geheim, constraints: [{length: {min: 5}}]}
conditions:
  is_large: {equals: [{get_param: size}, large]}
` + strings.Replace(word, "\n  word", "\n  spare: {type: OS::Heat::RandomString, condition: is_large}\n  text: {type: OS::Heat::Value, properties: {value: {get_file: ./text.txt}}}\n  word", 1) + `outputs:
  the-word: {value: {get_attr: [word, value]}}
  net/word: {value: {str_split: ["-", {list_join: ["-", [a, {get_param: size}]]}, 1]}}
  number: {value: {get_param: word-length}}
  ratio: {value: {get_param: ratio}}
  release: {value: {get_param: release}}
  truth: {value: {get_param: on_line}}
  list: {value: [1, two, {get_param: ports}]}
  map: {value: {get_param: options}}
  colour: {value: {get_param: [options, colour]}}
  texts: {value: {list_join: [",", [{get_param: port}, {get_param: day}, {get_param: none}]]}}
  zero: {value: {get_param: zero}}
  query: {value: {yaql: {expression: $.data.len(), data: {get_param: ports}}}}
  absent: {condition: is_large, value: {get_attr: [spare, value]}}
  file: {value: {get_attr: [text, value]}}
parameter_groups:
- {label: first, parameters: [word-length, size, size]}
`,
		"stacks/text.txt": "from a file",
	})
	s.burano(t, "package", "create", "-t", "stacks/kinds.yaml", "--full-name", "org.test.Kinds", "--output", "kinds.zip")
	require.NotContains(t, s.burano(t, "package", "check", "kinds.zip"), "error")
	s.burano(t, "package", "import", "kinds.zip")
	deploy := func(parameters string) (string, bool) {
		s.write(map[string]string{"kinds.yaml": "name: kinds\napplications:\n- ?: {type: org.test.Kinds}\n  name: kinds\n  templateParameters: " + parameters + "\n"})
		return s.run(s.as("demo", "demo"), s.program, "deploy", "kinds.yaml", "--follow")
	}
	outputs := func() map[string]any {
		made := s.model(t, "kinds")["services"].([]any)[0].(map[string]any)["templateOutputs"].(map[string]any)
		require.Len(t, made["the-word"], int(made["number"].(float64)))
		delete(made, "the-word")
		return made
	}
	wanted := map[string]any{"net/word": "small", "number": 8.0, "ratio": 0.5, "release": 2.4, "truth": false, "list": []any{1.0, "two", []any{"http", "https"}},
		"map": map[string]any{"colour": "red", "depth": 3.0}, "colour": "red", "texts": "80,2016-10-14,", "zero": 0.0, "query": 2.0, "absent": nil, "file": "from a file"}
	out, ok := deploy("{size: null, port: null, key: ''}")
	require.True(t, ok, out)
	require.Equal(t, wanted, outputs())
	out, ok = deploy("{word-length: '12', size: large, ratio: 0.25, release: '3', port: 443, on_line: YES, ports: [ssh], options: '{\"colour\": [1, 2]}'}")
	require.True(t, ok, out)
	changed := outputs()
	require.Len(t, changed["absent"], 32)
	delete(changed, "absent")
	delete(wanted, "absent")
	maps.Copy(wanted, map[string]any{"net/word": "large", "number": 12.0, "ratio": 0.25, "release": 3.0, "truth": true, "list": []any{1.0, "two", []any{"ssh"}},
		"map": map[string]any{"colour": []any{1.0, 2.0}}, "colour": []any{1.0, 2.0}, "texts": "443,2016-10-14,", "query": 1.0})
	require.Equal(t, wanted, changed)
	for parameters, why := range map[string]string{
		"{word-length: 5}":              "5 is no multiple of 4",
		"{ports: 'http,gopher'}":        `"gopher" is not one of`,
		"{options: '{a: 1'}":            "JSON is wanted",
		"{key: abc}":                    `the value breaks the constraint {"length":{"min":5}}`,
		"{ports: [ssh, ssh, ssh, ssh]}": "the length 4 is out of range (1 to 3)",
	} {
		out, ok := deploy(parameters)
		require.False(t, ok, out)
		require.Contains(t, out, why)
	}
	s.write(map[string]string{"kinds.yaml": "name: kinds\napplications: []\n"})
	s.burano(t, "deploy", "kinds.yaml", "--follow")
	s.burano(t, "environment", "delete", "--yes", "kinds")
}

// Packages of kinds that are published (see catalog/check): a class whose file declares others, a form with duplicate entries.
func packagesOfOtherHands(t *testing.T, s *server, _ cloudUser) {
	const class = "Namespaces: {=: org.test.hands, std: io.murano}\nName: NAME\nExtends: std:Application\nMethods: {deploy: {Body: [!yaql '$.setAttr(done, true)']}}\n"
	named := func(name string) string { return strings.Replace(class, "NAME", name, 1) }
	s.write(map[string]string{
		"hands/manifest.yaml": "Format: 1.3\nType: Application\nFullName: org.test.hands\nName: Hands\nClasses:\n  org.test.hands.App: App.yaml\n" +
			"  org.test.hands.Wanted: Wanted.yaml\n  org.test.hands.Good: Good.yaml\n",
		"hands/Classes/App.yaml": named("App.Sub"), "hands/Classes/Wanted.yaml": named("Other"), "hands/Classes/Good.yaml": named("Good"),
		"hands/UI/ui.yaml": "Version: 2\nApplication: {'?': {type: org.test.hands.Good}, name: $.one.a}\nForms:\n- one:\n    fields:\n    - {name: a, type: string, label: x, label: y}\n" +
			"    - {name: a, type: string, initial: $.two.b}\n- two: {fields: []}\n- two: {fields: [{name: b, type: string}]}\n",
		"base/manifest.yaml":    "Format: 1.3\nType: Application\nFullName: org.test.base\nName: Base\nClasses: {org.test.base.App: App.yaml}\n",
		"base/Classes/App.yaml": "Namespaces: {=: org.test.base, other: org.test.hands}\nName: App\nExtends: other:Good\n",
	})
	out := s.burano(t, "package", "check", "hands")
	for _, warning := range []string{"Classes/App.yaml:1:1: class: the manifest says that class org.test.hands.App is here, but only App.Sub is", "UI/ui.yaml:6:41: ui: the key label is there twice"} {
		require.Contains(t, out, warning)
	}
	s.burano(t, "package", "import", "hands")
	s.burano(t, "package", "import", "base")
	deploy := func(class string) (string, bool) {
		s.write(map[string]string{"hands.yaml": "name: hands\napplications:\n- ?: {type: " + class + "}\n"})
		return s.run(s.as("demo", "demo"), s.program, "deploy", "hands.yaml", "--follow")
	}
	out, ok := deploy("org.test.hands.Good")
	require.True(t, ok, out)
	for class, why := range map[string]string{
		"org.test.hands.App": "the manifest says that class org.test.hands.App is here, but only App.Sub is",
		"org.test.base.App":  "class org.test.hands.Good is neither in package org.test.base nor in one that its manifest requires: it is in package org.test.hands, so add that to Require",
	} {
		out, ok := deploy(class)
		require.False(t, ok, out)
		require.Contains(t, out, why)
	}
	s.write(map[string]string{"hands.yaml": "name: hands\napplications: []\n"})
	s.burano(t, "deploy", "hands.yaml", "--follow")
	s.burano(t, "environment", "delete", "--yes", "hands")
}

// server returns the id of the server with that name.
func (u cloudUser) server(t *testing.T, name string) string {
	t.Helper()
	pages, err := servers.List(u.nova, servers.ListOpts{Name: "^" + name + "$"}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := servers.ExtractServers(pages)
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0].ID
}

func failuresAreSaidAndHealed(t *testing.T, s *server, demo cloudUser) {
	admin := s.cloudAs("admin")
	_, project := s.token("demo", "demo")
	disk, none := 1, 1
	// More than a machine has, and less than the quota of a project.
	_, err := flavors.Create(t.Context(), admin.nova, flavors.CreateOpts{Name: "giant", RAM: 500 << 10, VCPUs: 1, Disk: &disk}).Extract()
	require.NoError(t, err)
	reset := func() { require.NoError(t, quotasets.Delete(t.Context(), admin.nova, project).Err) }
	for name, try := range map[string]struct {
		second string
		quota  quotasets.UpdateOpts
		says   []string
	}{
		"an unknown flavor": {second: "flavor: nothing, image: tiny", says: []string{"nothing", "server two"}},
		"an unknown image":  {second: "flavor: m1.tiny, image: nothing", says: []string{"nothing", "server two"}},
		"no image":          {second: "flavor: m1.tiny", says: []string{"server two has nothing to start from, name an image"}},
		"a volume":          {second: "flavor: m1.tiny, image: tiny, volumes: {/data: {'?': {type: io.murano.resources.Volume}}}", says: []string{"server two has a volume of class io.murano.resources.Volume"}},
		"no room":           {second: "flavor: giant, image: tiny", says: []string{"No valid host", "server two"}},
		"a quota":           {quota: quotasets.UpdateOpts{Instances: &none}, says: []string{"the project's quota of instances is exceeded: 2 more are needed and 1 of 1 are left"}},
	} {
		t.Run(name, func(t *testing.T) {
			if try.quota != (quotasets.UpdateOpts{}) {
				require.NoError(t, quotasets.Update(t.Context(), admin.nova, project, try.quota).Err)
				defer reset()
			}
			out, ok := s.run(s.as("demo", "demo"), s.program, "deploy", s.farm("broken", [2]string{"one"}, [2]string{"two", try.second}), "--follow")
			require.False(t, ok, out)
			for _, word := range append(try.says, "io.burano.test.Farm.deploy", "Deployment finished with errors") {
				require.Contains(t, out, word)
			}
			reset()
			s.burano(t, "deploy", s.farm("broken", [2]string{"one"}, [2]string{"two"}), "--follow")
			require.Equal(t, []string{"one", "two"}, demo.holds(t)["servers"])
			s.burano(t, "environment", "delete", "--yes", "broken")
			require.Empty(t, demo.holds(t)["servers"])
		})
	}
}

// TestDeploymentsOnACloudSurviveTheDeathOfTheServer kills the server at steps in which it changes the cloud, and starts it again: each
// ordered resource exists once, and is not changed.
func TestDeploymentsOnACloudSurviveTheDeathOfTheServer(t *testing.T) {
	s := startCloud(t)
	state := t.TempDir()
	first := s.serve(http.DefaultClient, "http", "--state", state)
	s.importServers(t)
	first.stop(t)
	demo := s.cloudAs("demo")
	before := demo.holds(t)
	s.write(map[string]string{"words.yaml": "name: words\napplications:\n  - {'?': {type: io.burano.test.Words}, length: 12}\n"})
	s.farm("farm", [2]string{"one", "flavor: m1.tiny, image: tiny, assignFloatingIp: true"}, [2]string{"two"})

	said := s.killedDuring(t, state, []string{"begin:push stack burano-test-words", "end:push stack burano-test-words"}, "deploy", "words.yaml")
	require.Len(t, demo.holds(t)["stacks"], 1, said)
	application := s.model(t, "words")["services"].([]any)[0].(map[string]any)
	words := application["words"].([]any)
	require.Len(t, words, 2)
	require.Len(t, words[0], 12)
	require.Equal(t, map[string]any{"length": "12"}, application["parameters"])
	require.Equal(t, []any{"first", "second"}, application["resources"])
	require.Equal(t, "two words", application["description"])
	s.burano(t, "deploy", "words.yaml", "--follow")
	require.Equal(t, words, s.model(t, "words")["services"].([]any)[0].(map[string]any)["words"], "another push makes no other words")

	said = s.killedDuring(t, state, []string{"begin:servers", "end:servers"}, "deploy", "farm.yaml")
	holds := demo.holds(t)
	for kind, count := range map[string]int{"stacks": 2, "servers": 2, "floating IPs": 1, "routers": 1, "ports": 3, "security groups": 1, "networks": 1} {
		require.Len(t, holds[kind], len(before[kind])+count, "%s: %v\n%s", kind, holds[kind], said)
	}
	made := demo.server(t, "one")
	s.burano(t, "deploy", "farm.yaml", "--follow")
	require.Equal(t, made, demo.server(t, "one"))

	s.killedDuring(t, state, []string{"begin:delete stack", "end:delete stack"}, "environment", "delete", "--yes", "farm")
	s.killedDuring(t, state, []string{"end:delete stack burano-test-words"}, "environment", "delete", "--yes", "words")
	require.Equal(t, before, demo.holds(t), "nothing is left")
}

// stop stops the server as an operator does.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-p.ended)
}

// killedDuring has the program work on a server that is killed at each of the instants, one after another, and waits until no task runs
// any more. A server runs before and after. It returns the last reports of the environments.
func (s *server) killedDuring(t *testing.T, state string, instants []string, call ...string) string {
	t.Helper()
	if s.running != nil {
		s.running.stop(t)
	}
	for i, instant := range instants {
		dying := s.serve(http.DefaultClient, "http", "--state", state, "--kill-at-step", instant)
		if i == 0 { // it may die before it has answered
			_, _ = s.run(s.as("demo", "demo"), s.program, call...)
		}
		select {
		case <-dying.ended:
			status, ok := dying.ProcessState.Sys().(syscall.WaitStatus)
			require.True(t, ok && status.Signaled() && status.Signal() == syscall.SIGKILL, "%s: %v", instant, dying.ProcessState)
		case <-time.After(2 * time.Minute):
			require.Fail(t, "the server was not killed", instant)
		}
	}
	s.running = s.serve(http.DefaultClient, "http", "--state", state)
	var listed string
	require.Eventually(t, func() bool {
		listed = s.burano(t, "environment", "list")
		return !strings.Contains(listed, "deploying") && !strings.Contains(listed, "deleting")
	}, 3*time.Minute, 100*time.Millisecond)
	require.NotContains(t, listed, "failure")
	return listed
}
