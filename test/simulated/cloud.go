package simulated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"
	"golang.org/x/crypto/ssh"

	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/hypervisor"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/test/localcloud/neutron"
	"github.com/burano/burano/test/localcloud/nova"
)

// floatingNetwork contains the floating addresses of all nodes.
var floatingNetwork = netip.MustParsePrefix("10.87.0.0/16")

// ImageName is the one image, with imageID.
const ImageName, imageID = "burano-node", "5f0f7c6e-2c7e-4b0f-8c55-5d6c1f0a9b11"

// cloud answers as OpenStack. Keystone, and the used parts of Nova's flavors and limits and Neutron's networks, are the local cloud's; stacks, servers and the image are
// simulated. A stack is complete as soon as it is made.
type cloud struct {
	world *World
	made  time.Time

	mutex    sync.Mutex
	stacks   map[string]*stack // by id
	floating netip.Addr        // the last one
}

// stack is a stack of one cluster.
type stack struct {
	id, project, name string
	template          json.RawMessage
	created           time.Time
	outputs           []map[string]any
	resources         []map[string]any
}

// images is Nova's view of the image.
type images struct{}

func (images) Find(context.Context, string, string) (glance.Image, error) {
	return glance.Image{}, errors.New("not simulated")
}

// machines are none: Nova's own servers are not used.
type machines struct{ nova.Hypervisor }

func (machines) State(context.Context, string) (hypervisor.State, error) { return "", nil }

func (w *World) newCloud(folder, endpoint string) (http.Handler, error) {
	discard := slog.New(slog.DiscardHandler)
	identity, err := keystone.New(keystone.Config{StateDir: filepath.Join(folder, "keystone"), Endpoint: endpoint, TokenLifetime: 24 * time.Hour, Logger: discard, Services: []keystone.CatalogService{
		{Type: "identity", Name: "keystone", Path: "/identity/v3"}, {Type: "image", Name: "glance", Path: "/image"}, {Type: "compute", Name: "nova", Path: "/compute/v2.1"},
		{Type: "network", Name: "neutron", Path: "/network"}, {Type: "orchestration", Name: "heat", Path: "/orchestration/v1/{project}"}}})
	if err != nil {
		return nil, err
	}
	networks, err := neutron.New(neutron.Config{StateDir: folder, ExternalCIDR: floatingNetwork, Prefix: "bcl-", Logger: discard})
	if err != nil {
		return nil, err
	}
	compute, err := nova.New(nova.Config{StateDir: filepath.Join(folder, "nova"), Endpoint: endpoint, Zones: []string{"nova"}, Networks: networks, Hypervisor: machines{}, Images: images{}, MemoryMiB: 1 << 20, Logger: discard})
	if err != nil {
		return nil, err
	}
	if err := compute.Restore(context.Background()); err != nil { // makes the flavors
		return nil, err
	}
	c := &cloud{world: w, made: time.Now(), stacks: map[string]*stack{}, floating: floatingNetwork.Addr().Next()}
	mux := http.NewServeMux()
	guarded := func(pattern string, handler http.HandlerFunc) { mux.Handle(pattern, identity.Require(handler)) }
	mux.Handle("/identity/", http.StripPrefix("/identity", identity.Handler()))
	mux.Handle("/network/", http.StripPrefix("/network", identity.Require(networks.Handler())))
	mux.Handle("/compute/", http.StripPrefix("/compute", identity.Require(compute.Handler())))
	guarded("GET /compute/v2.1/servers/{id}", c.showServer)
	mux.HandleFunc("GET /image/{$}", func(out http.ResponseWriter, _ *http.Request) {
		answer.JSON(out, http.StatusMultipleChoices, map[string]any{"versions": []any{map[string]any{"id": "v2.9", "status": "CURRENT", "links": []any{map[string]any{"rel": "self", "href": endpoint + "/image/v2/"}}}}})
	})
	guarded("GET /image/v2/images", func(out http.ResponseWriter, request *http.Request) {
		list := []any{}
		if name := request.URL.Query().Get("name"); name == "" || name == ImageName {
			list = append(list, c.image())
		}
		answer.JSON(out, http.StatusOK, map[string]any{"images": list, "first": "/v2/images", "schema": "/v2/schemas/images"})
	})
	guarded("GET /image/v2/images/{id}", func(out http.ResponseWriter, request *http.Request) {
		if request.PathValue("id") != imageID {
			http.NotFound(out, request)
			return
		}
		answer.JSON(out, http.StatusOK, c.image())
	})
	guarded("POST /orchestration/v1/{project}/stacks", c.createStack)
	guarded("GET /orchestration/v1/{project}/stacks", c.listStacks)
	guarded("GET /orchestration/v1/{project}/stacks/{name}/{id}", c.of(func(s *stack) any { return map[string]any{"stack": s.show()} }))
	guarded("GET /orchestration/v1/{project}/stacks/{name}/{id}/template", c.of(func(s *stack) any { return s.template }))
	guarded("GET /orchestration/v1/{project}/stacks/{name}/{id}/resources", c.of(func(s *stack) any { return map[string]any{"resources": s.resources} }))
	mux.HandleFunc("/", func(out http.ResponseWriter, request *http.Request) {
		w.note("OpenStack %s %s", request.Method, request.URL.Path)
		http.NotFound(out, request)
	})
	return http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		w.Tally.http("OpenStack", request)
		mux.ServeHTTP(out, request)
	}), nil
}

func (c *cloud) image() map[string]any {
	made := c.made.UTC().Format(time.RFC3339)
	return map[string]any{"id": imageID, "name": ImageName, "status": "active", "visibility": "public", "created_at": made, "updated_at": made, "min_disk": 0, "min_ram": 0, "size": 1 << 30, "protected": false,
		"container_format": "bare", "disk_format": "raw", "owner": "", "tags": []string{}, "checksum": nil, "file": "/v2/images/" + imageID + "/file", "schema": "/v2/schemas/image", "os_hidden": false,
		openstack.KubernetesProperty: "v1.36.3", openstack.KeepalivedProperty: "1:2.2.7-1+b2", openstack.StorageProperty: "v13.0.0", openstack.CinderProperty: "v4.12.0", openstack.XFSProperty: "6.1.0-1",
		openstack.NFSProperty: "1:2.6.2", openstack.RegistryProperty: "v3.1.2", openstack.CalicoProperty: "v3.28.5"}
}

func (c *cloud) showServer(out http.ResponseWriter, request *http.Request) {
	n := c.world.server(request.PathValue("id"))
	if n == nil {
		http.NotFound(out, request)
		return
	}
	made := c.made.UTC()
	answer.JSON(out, http.StatusOK, map[string]any{"server": map[string]any{"id": n.id, "name": n.name, "status": "ACTIVE", "created": made.Format(time.RFC3339), "updated": made.Format(time.RFC3339),
		"image": map[string]any{"id": imageID}, "flavor": map[string]any{"id": "3"}, "addresses": map[string]any{}, "metadata": map[string]any{}, "links": []any{}, "tenant_id": "", "user_id": "", "hostId": "",
		"OS-EXT-AZ:availability_zone": "nova", "OS-EXT-STS:task_state": nil, "OS-EXT-STS:vm_state": "active", "OS-EXT-STS:power_state": 1, "OS-DCF:diskConfig": "MANUAL",
		"OS-SRV-USG:launched_at": made.Format("2006-01-02T15:04:05.000000"), "OS-SRV-USG:terminated_at": nil, "os-extended-volumes:volumes_attached": []any{}}})
}

func (c *cloud) of(show func(*stack) any) http.HandlerFunc {
	return func(out http.ResponseWriter, request *http.Request) {
		c.mutex.Lock()
		found := c.stacks[request.PathValue("id")]
		c.mutex.Unlock()
		if found == nil {
			http.NotFound(out, request)
			return
		}
		answer.JSON(out, http.StatusOK, show(found))
	}
}

func (c *cloud) listStacks(out http.ResponseWriter, request *http.Request) {
	list := []any{}
	c.mutex.Lock()
	for _, s := range c.stacks {
		if name := request.URL.Query().Get("name"); s.project == request.PathValue("project") && (name == "" || name == s.name) {
			list = append(list, s.show())
		}
	}
	c.mutex.Unlock()
	answer.JSON(out, http.StatusOK, map[string]any{"stacks": list})
}

func (s *stack) show() map[string]any {
	created := s.created.UTC().Format(time.RFC3339)
	return map[string]any{"id": s.id, "stack_name": s.name, "stack_status": "CREATE_COMPLETE", "stack_status_reason": "Stack CREATE completed successfully", "creation_time": created, "updated_time": nil,
		"tags": []string{openstack.OwnTag}, "outputs": s.outputs, "parameters": map[string]any{}, "links": []any{}, "disable_rollback": true, "capabilities": []any{}, "notification_topics": []any{}, "description": "",
		"template_description": "", "timeout_mins": 15}
}

// template has the parts of a template that the simulation reads.
type template struct {
	Resources map[string]struct {
		Type       string
		Properties map[string]any
	}
	Outputs map[string]struct{ Value map[string]any }
}

func (c *cloud) createStack(out http.ResponseWriter, request *http.Request) {
	var body struct {
		Name     string          `json:"stack_name"`
		Template json.RawMessage `json:"template"`
	}
	made := &stack{id: uuid.NewString(), project: request.PathValue("project"), created: time.Now()}
	err := json.NewDecoder(request.Body).Decode(&body)
	if err == nil {
		made.name, made.template = body.Name, body.Template
		err = c.build(made)
	}
	if err != nil {
		c.world.note("stack: %v", err)
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	c.mutex.Lock()
	c.stacks[made.id] = made
	c.mutex.Unlock()
	answer.JSON(out, http.StatusCreated, map[string]any{"stack": map[string]any{"id": made.id, "links": []any{}}})
}

// build makes the servers of a stack, and its outputs.
func (c *cloud) build(s *stack) error {
	var wanted template
	if err := json.Unmarshal(s.template, &wanted); err != nil {
		return err
	}
	ids, fixed, floating := map[string]string{}, map[string]netip.Addr{}, map[string]netip.Addr{}
	subnet, _ := wanted.Resources["subnet"].Properties["cidr"].(string)
	network, err := netip.ParsePrefix(subnet)
	if err != nil {
		return fmt.Errorf("cidr of the subnet: %w", err)
	}
	address := network.Addr().Next().Next()
	names := make([]string, 0, len(wanted.Resources))
	for name := range wanted.Resources {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ids[name] = uuid.NewString()
		of, is := strings.CutSuffix(name, "-port")
		if is {
			address = address.Next()
			fixed[of] = address
		}
		if of, is := strings.CutSuffix(name, "-floating"); is {
			c.mutex.Lock()
			c.floating = c.floating.Next()
			floating[of] = c.floating
			c.mutex.Unlock()
		}
		s.resources = append(s.resources, map[string]any{"resource_name": name, "logical_resource_id": name, "physical_resource_id": ids[name], "resource_type": wanted.Resources[name].Type,
			"resource_status": "CREATE_COMPLETE", "resource_status_reason": "state changed", "updated_time": s.created.UTC().Format(time.RFC3339), "creation_time": s.created.UTC().Format(time.RFC3339), "links": []any{}, "required_by": []any{}})
	}
	cluster := c.world.newCluster()
	for _, name := range names {
		of, is := strings.CutSuffix(name, "-server")
		if !is || wanted.Resources[name].Type != "OS::Nova::Server" {
			continue
		}
		n := &node{cluster: cluster, id: ids[name], name: fmt.Sprint(wanted.Resources[name].Properties["name"]), fixed: fixed[of], floating: floating[of]}
		if err := n.boot(fmt.Sprint(wanted.Resources[name].Properties["user_data"])); err != nil {
			return err
		}
		cluster.nodes[n.fixed] = n
		c.world.add(n)
	}
	for name, output := range wanted.Outputs {
		var value any
		if resource, is := output.Value["get_resource"].(string); is {
			value = ids[resource]
		}
		if path, is := output.Value["get_attr"].([]any); is {
			resource := fmt.Sprint(path[0])
			if of, is := strings.CutSuffix(resource, "-port"); is {
				value = fixed[of].String()
			}
			if of, is := strings.CutSuffix(resource, "-floating"); is {
				value = floating[of].String()
			}
		}
		if value == nil {
			return fmt.Errorf("output %s: %v is not simulated", name, output.Value)
		}
		s.outputs = append(s.outputs, map[string]any{"output_key": name, "output_value": value, "description": ""})
	}
	return nil
}

// boot applies a node's user data as cloud-init does.
func (n *node) boot(userData string) error {
	var config struct {
		Users []struct {
			Keys []string `yaml:"ssh_authorized_keys"`
		} `yaml:"users"`
		HostKeys map[string]string `yaml:"ssh_keys"`
	}
	if err := yaml.Unmarshal([]byte(userData), &config); err != nil {
		return fmt.Errorf("user data of %s: %w", n.name, err)
	}
	if len(config.Users) != 1 || len(config.Users[0].Keys) != 1 {
		return fmt.Errorf("user data of %s name no user with a key", n.name)
	}
	fields := strings.Fields(config.Users[0].Keys[0])
	n.login = strings.Join(fields[:2], " ")
	var err error
	n.hostKey, err = ssh.ParsePrivateKey([]byte(config.HostKeys["ed25519_private"]))
	return err
}
