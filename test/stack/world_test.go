// Package stack fixes the requests of Burano's classes to Heat: the templates of environments, byte by byte. A stack of a former version
// is updated with this version's template, so a difference here may destroy users' servers.
package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	clients "github.com/gophercloud/gophercloud/v2/openstack"
	identitytokens "github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
	localkeystone "github.com/burano/burano/test/localcloud/keystone"
)

// errRecorded ends a deployment at the request for its stack.
const errRecorded = "this Heat only records"

// world is a task's surroundings, in memory, over a Keystone, a Heat and a Neutron that answer only the requests for a new stack.
type world struct {
	project    *openstack.Project
	model      *muranopl.Object
	mutex      sync.Mutex
	attributes map[string]any
	secrets    map[string][]byte
	asked      []map[string]any // the bodies of the requests to Heat
	// The content of the cloud: external networks in the order in which Neutron lists them, subnets, and availability
	// zones.
	networks, subnets, zones string
	routers, ports           string
	limits                   string // of Nova, beside the unset ones
	imageSays                string // the one image of Glance, beside its name; "": there is no Glance
	// there is the template of Heat's stack, with all of its resources; nil for none.
	there  map[string]any
	config native.Config
	nova   http.HandlerFunc // answers requests for servers
}

func newWorld(t *testing.T) *world {
	w := &world{attributes: map[string]any{}, secrets: map[string][]byte{}, networks: `{"id": "outside", "name": "public"}`, zones: zonesNamed("nova", "zone-1", "zone-2"),
		limits: `"maxServerGroups": 10, "maxServerGroupMembers": 10`,
		config: native.Config{Networks: netip.MustParsePrefix("10.20.0.0/16"), Region: localkeystone.Region,
			Settings: clusters.Settings{ServerPatience: time.Minute, Reach: known.Reach{Logger: slog.New(slog.DiscardHandler)}}}}
	w.nova, w.ports = answer(`{}`), `{"id": "p", "device_owner": "network:dhcp"}`
	listener := httptest.NewUnstartedServer(nil)
	url := "http://" + listener.Listener.Addr().String()
	users, err := localkeystone.New(localkeystone.Config{StateDir: t.TempDir(), Endpoint: url})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/identity/", http.StripPrefix("/identity", users.Handler()))
	mux.HandleFunc("GET /network/v2.0/networks", func(rw http.ResponseWriter, r *http.Request) { answer(`{"networks": [`+w.networks+`]}`)(rw, r) })
	mux.HandleFunc("GET /network/v2.0/subnets", func(rw http.ResponseWriter, r *http.Request) { answer(`{"subnets": [`+w.subnets+`]}`)(rw, r) })
	mux.HandleFunc("GET /network/v2.0/routers", func(rw http.ResponseWriter, r *http.Request) { answer(`{"routers": [`+w.routers+`]}`)(rw, r) })
	mux.HandleFunc("GET /network/v2.0/networks/{id}", func(rw http.ResponseWriter, r *http.Request) {
		answer(fmt.Sprintf(`{"network": {"id": %q, "router:external": %t}}`, r.PathValue("id"), r.PathValue("id") == "outside"))(rw, r)
	})
	mux.HandleFunc("GET /network/v2.0/ports", func(rw http.ResponseWriter, r *http.Request) { answer(`{"ports": [`+w.ports+`]}`)(rw, r) })
	mux.HandleFunc("GET /network/v2.0/extensions", answer(`{"extensions": [{"alias": "router"}, {"alias": "security-group"}]}`))
	mux.HandleFunc("GET /compute/v2.1/os-availability-zone", func(rw http.ResponseWriter, r *http.Request) {
		answer(`{"availabilityZoneInfo": [`+w.zones+`]}`)(rw, r)
	})
	mux.HandleFunc("GET /network/{$}", answer(`{"versions": [{"id": "v2.0", "status": "CURRENT", "links": []}]}`))
	mux.HandleFunc("GET /compute/v2.1/limits", func(rw http.ResponseWriter, r *http.Request) {
		answer(`{"limits": {"absolute": {`+w.limits+`}}}`)(rw, r)
	})
	mux.HandleFunc("GET /image/{rest...}", func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case w.imageSays == "":
			http.NotFound(rw, r)
		case r.PathValue("rest") == "":
			answer(`{"versions": [{"id": "v2.16", "status": "CURRENT", "links": []}]}`)(rw, r)
		case r.PathValue("rest") == "v2/images":
			answer(`{"images": [{"id": "image-id", "name": "burano-node", "status": "active"`+w.imageSays+`}]}`)(rw, r)
		default:
			http.NotFound(rw, r)
		}
	})
	mux.HandleFunc("GET /compute/v2.1/servers/{id}", func(rw http.ResponseWriter, r *http.Request) { w.nova(rw, r) })
	mux.HandleFunc("GET /compute/v2.1/os-keypairs", answer(`{"keypairs": [{"keypair": {"name": "somebody"}}]}`))
	mux.HandleFunc("GET /compute/{rest...}", answer(`{"versions": [{"id": "v2.1", "status": "CURRENT", "links": []}]}`))
	const stack = `{"id": "stack", "stack_name": "burano-environment", "stack_status": "CREATE_COMPLETE", "tags": ["burano"]}`
	mux.HandleFunc("GET /orchestration/v1/{project}/stacks", func(rw http.ResponseWriter, r *http.Request) {
		list := ""
		if w.there != nil {
			list = stack
		}
		answer(`{"stacks": [`+list+`]}`)(rw, r)
	})
	mux.HandleFunc("GET /orchestration/v1/{project}/stacks/{name}/{id}", answer(`{"stack": `+stack+`}`))
	mux.HandleFunc("GET /orchestration/v1/{project}/stacks/{name}/{id}/template", func(rw http.ResponseWriter, _ *http.Request) {
		answerWith(rw, w.there)
	})
	mux.HandleFunc("GET /orchestration/v1/{project}/stacks/{name}/{id}/resources", func(rw http.ResponseWriter, _ *http.Request) {
		list := []any{}
		made, _ := w.there["resources"].(map[string]any)
		for name, one := range made {
			list = append(list, map[string]any{"resource_name": name, "physical_resource_id": name, "resource_status": "CREATE_COMPLETE", "resource_type": one.(map[string]any)["type"]})
		}
		answerWith(rw, map[string]any{"resources": list})
	})
	record := func(rw http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.mutex.Lock()
		w.asked = append(w.asked, body)
		w.mutex.Unlock()
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"error": {"message": "`+errRecorded+`"}}`)
	}
	mux.HandleFunc("POST /orchestration/v1/{project}/stacks", record)
	mux.HandleFunc("PUT /orchestration/v1/{project}/stacks/{name}/{id}", record)
	listener.Config.Handler = mux
	listener.Start()
	t.Cleanup(listener.Close)

	as := func(user string) gophercloud.AuthOptions {
		return gophercloud.AuthOptions{IdentityEndpoint: url + "/identity/v3", Username: user, Password: user, TenantName: user, DomainName: "Default"}
	}
	service := as("burano")
	service.TenantName = "service"
	cloud, err := openstack.NewService(t.Context(), service, gophercloud.EndpointOpts{Region: localkeystone.Region}, nil)
	require.NoError(t, err)
	provider, err := clients.AuthenticatedClient(t.Context(), as("demo"))
	require.NoError(t, err)
	result, _ := provider.GetAuthResult().(identitytokens.CreateResult)
	token, err := result.ExtractTokenID()
	require.NoError(t, err)
	caller, err := cloud.Validate(t.Context(), token)
	require.NoError(t, err)
	trust, _, err := cloud.CreateTrust(t.Context(), caller, caller.Roles, time.Time{})
	require.NoError(t, err)
	w.project, err = cloud.Project(t.Context(), trust)
	require.NoError(t, err)
	return w
}

// zonesNamed are zones as Nova lists them.
func zonesNamed(names ...string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = `{"zoneName": "` + name + `", "zoneState": {"available": true}}`
	}
	return strings.Join(list, ", ")
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func answerWith(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// push deploys the last application of an environment until the stack is requested, and returns the template: the first request has all
// resources of the environment.
func (w *world) push(t *testing.T, environment map[string]any) map[string]any {
	t.Helper()
	err := w.deploy(t, environment)
	require.ErrorContains(t, err, errRecorded)
	require.Len(t, w.asked, 1, "one push carries a whole change")
	if w.there == nil {
		require.Equal(t, "burano-environment", w.asked[0]["stack_name"])
	}
	template, _ := w.asked[0]["template"].(map[string]any)
	return template
}

// fail is push for a deployment that requests no stack.
func (w *world) fail(t *testing.T, environment map[string]any) error {
	t.Helper()
	err := w.deploy(t, environment)
	require.Error(t, err)
	require.Empty(t, w.asked)
	return err
}

func (w *world) deploy(t *testing.T, environment map[string]any) error {
	t.Helper()
	w.asked = nil
	interpreter, root := w.load(t, environment)
	applications := root.Objects("applications")
	_, err := interpreter.Invoke(t.Context(), applications[len(applications)-1], "deploy", nil)
	return err
}

// source are the packages that come with Burano and the tests' own.
func source(t *testing.T) muranopl.Source {
	t.Helper()
	embedded, err := apps.Packages()
	require.NoError(t, err)
	for _, name := range []string{"io.burano.demo.Hello", "io.burano.test.Containers", "io.burano.test.Extended", "io.burano.test.Overrides", "io.burano.test.Servers"} {
		one, err := catalog.ReadFolder(os.DirFS(filepath.Join("..", "packages", name)))
		require.NoError(t, err)
		embedded = append(embedded, one)
	}
	return catalog.Shelf(embedded)
}

// environment reads a file for `burano deploy` as a model. An object's id is its word in the file, or else its place in the file.
func environment(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var file map[string]any
	require.NoError(t, yaml.Unmarshal(text, &file))
	named, _ := identified("", file).(map[string]any)
	named["?"] = map[string]any{"type": "io.murano.Environment", "id": "environment"}
	named["defaultNetworks"] = map[string]any{"flat": nil, "environment": map[string]any{
		"?": map[string]any{"type": "io.murano.resources.NeutronNetwork", "id": "own"}, "name": "environment-network"}}
	return named
}

func identified(place string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		made := map[string]any{}
		for key, item := range v {
			made[key] = identified(place+"-"+key, item)
		}
		if header, ok := v["?"].(map[string]any); ok {
			made["?"] = map[string]any{"type": header["type"], "id": place[1:]}
			if header["id"] != nil {
				made["?"] = header
			}
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			made[i] = identified(place+string(rune('a'+i)), item)
		}
		return made
	}
	return value
}

// The part of the engine that bodies use.

func (w *world) EnvironmentID() string   { return "environment" }
func (w *world) TaskID() string          { return "task" }
func (w *world) Submitter() string       { return "demo" }
func (w *world) Model() *muranopl.Object { return w.model }
func (w *world) Deploys() bool           { return false }
func (w *world) Allowed(string) bool     { return false }
func (w *world) Fence() uint64           { return 1 }
func (w *world) Alive() error            { return nil }

func (w *world) AtEnd(func(context.Context) error) {}

func (w *world) Ended(func()) {}

func (w *world) Conceal(any) {}

func (w *world) Looks() bool { return false }

func (w *world) Hibernation(context.Context) (store.Hibernation, error) {
	return store.Hibernation{}, nil
}

func (w *world) SetHibernation(context.Context, store.HibernationState, []store.StoppedServer) error {
	return nil
}

func (w *world) Settled(context.Context, store.Hibernation) (store.Settled, error) {
	return store.Settled{}, nil
}

func (w *world) Former() map[string]any { return nil }

func (w *world) Planned(*muranopl.Object, map[string][]string) {}

func (w *world) Project(context.Context) (*openstack.Project, error) { return w.project, nil }

func (w *world) Report(context.Context, *muranopl.Object, engine.Level, string, string) error {
	return nil
}

func (w *world) Step(ctx context.Context, _ *muranopl.Object, _ string, run func(context.Context) error) error {
	return run(ctx)
}

func (w *world) Attribute(_ context.Context, object *muranopl.Object, name string) (any, bool, error) {
	return w.CodeAttribute(context.Background(), object, "", name)
}

func (w *world) SetAttribute(_ context.Context, object *muranopl.Object, name string, value any) error {
	return w.SetCodeAttribute(context.Background(), object, "", name, value)
}

func (w *world) CodeAttribute(_ context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	value, found := w.attributes[object.ID()+" "+class+" "+name]
	return value, found, nil
}

func (w *world) SetCodeAttribute(_ context.Context, object *muranopl.Object, class, name string, value any) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.attributes[object.ID()+" "+class+" "+name] = value
	return nil
}

func (w *world) Secret(_ context.Context, name string) ([]byte, bool, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	value, found := w.secrets[name]
	return value, found, nil
}

func (w *world) SetSecret(_ context.Context, name string, value []byte) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.secrets[name] = value
	return nil
}

func (w *world) TrackApplication(context.Context, *muranopl.Object, string, int64) error {
	return nil
}

func (w *world) TrackServer(context.Context, *muranopl.Object, string, int64) error {
	return nil
}

func (w *world) Untrack(context.Context, *muranopl.Object) error { return nil }

func (w *world) Deployed(*muranopl.Object) {}
