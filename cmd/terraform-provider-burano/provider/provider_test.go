package provider_test

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/cmd/terraform-provider-burano/provider"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/web/client"
)

// Terraform's own program is not a Go module. The test's own client speaks protocol 6 to the provider, and checks the same rules as Terraform: each plan
// comes true, and an applied resource needs no further plan.

// terraform drives the provider.
type terraform struct {
	provider tfprotov6.ProviderServer
	schemas  *tfprotov6.GetProviderSchemaResponse
}

// newTerraform signs in with the variables OS_*.
func newTerraform(t *testing.T) *terraform {
	t.Helper()
	tf, said := tryTerraform(t)
	require.Empty(t, said)
	return tf
}

func tryTerraform(t *testing.T) (tf *terraform, said string) {
	t.Helper()
	server, err := providerserver.NewProtocol6WithError(provider.New("test")())()
	require.NoError(t, err)
	tf = &terraform{provider: server}
	tf.schemas, err = server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	require.NoError(t, err)
	require.Empty(t, errorsOf(tf.schemas.Diagnostics))
	config := dynamic(t, tf.schemas.Provider, map[string]any{})
	configured, err := server.ConfigureProvider(t.Context(), &tfprotov6.ConfigureProviderRequest{TerraformVersion: "1.9.0", Config: config})
	require.NoError(t, err)
	return tf, errorsOf(configured.Diagnostics)
}

// resource is a resource in the state.
type resource struct {
	kind    string
	state   *tfprotov6.DynamicValue
	private []byte
}

// get reads an attribute of the state.
func (tf *terraform) get(t *testing.T, r resource, attribute string) string {
	t.Helper()
	value, err := r.state.Unmarshal(tf.schemas.ResourceSchemas[r.kind].ValueType())
	require.NoError(t, err)
	var attributes map[string]tftypes.Value
	require.NoError(t, value.As(&attributes))
	var text string
	require.NoError(t, attributes[attribute].As(&text))
	return text
}

// plan returns the planned resource, and whether it replaces the present one; said are errors.
func (tf *terraform) plan(t *testing.T, r resource, config map[string]any) (planned *tfprotov6.PlanResourceChangeResponse, changes bool, said string) {
	t.Helper()
	schema := tf.schemas.ResourceSchemas[r.kind]
	value := dynamic(t, schema, config)
	checked, err := tf.provider.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: r.kind, Config: value})
	require.NoError(t, err)
	if said := errorsOf(checked.Diagnostics); said != "" {
		return nil, false, said
	}
	prior := r.state
	if prior == nil {
		prior = null(t, schema)
	}
	planned, err = tf.provider.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: r.kind, PriorState: prior, ProposedNewState: proposed(t, schema, prior, value), Config: value, PriorPrivate: r.private,
	})
	require.NoError(t, err)
	before, err := prior.Unmarshal(schema.ValueType())
	require.NoError(t, err)
	after, err := planned.PlannedState.Unmarshal(schema.ValueType())
	require.NoError(t, err)
	return planned, !before.Equal(after), errorsOf(planned.Diagnostics)
}

// apply changes a resource to its configuration. It keeps the state after that, also when it failed.
func (tf *terraform) apply(t *testing.T, r resource, config map[string]any) (resource, string) {
	t.Helper()
	planned, _, said := tf.plan(t, r, config)
	if said != "" {
		return r, said
	}
	return tf.applyPlan(t, r, config, planned)
}

// applyPlan applies a plan. As Terraform, it plans again with the private data of the state, and refuses when a known value of the plan is another one now.
func (tf *terraform) applyPlan(t *testing.T, r resource, config map[string]any, shown *tfprotov6.PlanResourceChangeResponse) (resource, string) {
	t.Helper()
	require.Empty(t, shown.RequiresReplace)
	planned, _, said := tf.plan(t, r, config)
	if said != "" {
		return r, said
	}
	schema := tf.schemas.ResourceSchemas[r.kind]
	before, err := shown.PlannedState.Unmarshal(schema.ValueType())
	require.NoError(t, err)
	now, err := planned.PlannedState.Unmarshal(schema.ValueType())
	require.NoError(t, err)
	if name := changed(t, before, now); name != "" {
		return r, "inconsistent final plan: " + name
	}
	return tf.applyNow(t, r, config, planned)
}

// applyNow applies a plan as it is.
func (tf *terraform) applyNow(t *testing.T, r resource, config map[string]any, planned *tfprotov6.PlanResourceChangeResponse) (resource, string) {
	t.Helper()
	schema := tf.schemas.ResourceSchemas[r.kind]
	prior := r.state
	if prior == nil {
		prior = null(t, schema)
	}
	applied, err := tf.provider.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: r.kind, PriorState: prior, PlannedState: planned.PlannedState, Config: dynamic(t, schema, config), PlannedPrivate: planned.PlannedPrivate,
	})
	require.NoError(t, err)
	after, err := applied.NewState.Unmarshal(schema.ValueType())
	require.NoError(t, err)
	if after.IsNull() {
		return resource{kind: r.kind}, errorsOf(applied.Diagnostics)
	}
	made := resource{r.kind, applied.NewState, applied.Private}
	if said := errorsOf(applied.Diagnostics); said != "" {
		return made, said
	}
	require.True(t, after.IsFullyKnown(), "nothing is unknown once it was applied")
	promised, err := planned.PlannedState.Unmarshal(schema.ValueType())
	require.NoError(t, err)
	kept(t, promised, after)
	return made, ""
}

// kept checks the same rule as Terraform: each known value of the plan is in the result.
func kept(t *testing.T, planned, applied tftypes.Value) {
	t.Helper()
	require.Empty(t, changed(t, planned, applied), "%s was planned, and it is %s", planned, applied)
}

// changed is the first attribute whose known value is another one afterwards; "" if there is none.
func changed(t *testing.T, before, after tftypes.Value) string {
	t.Helper()
	var one, other map[string]tftypes.Value
	require.NoError(t, before.As(&one))
	require.NoError(t, after.As(&other))
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if one[name].IsFullyKnown() && !one[name].Equal(other[name]) {
			return name
		}
	}
	return ""
}

// destroy deletes a resource.
func (tf *terraform) destroy(t *testing.T, r resource) string {
	t.Helper()
	schema := tf.schemas.ResourceSchemas[r.kind]
	gone := null(t, schema)
	planned, err := tf.provider.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName: r.kind, PriorState: r.state, ProposedNewState: gone, Config: gone, PriorPrivate: r.private,
	})
	require.NoError(t, err)
	require.Empty(t, errorsOf(planned.Diagnostics))
	applied, err := tf.provider.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{
		TypeName: r.kind, PriorState: r.state, PlannedState: planned.PlannedState, Config: gone, PlannedPrivate: planned.PlannedPrivate,
	})
	require.NoError(t, err)
	return errorsOf(applied.Diagnostics)
}

// read refreshes a resource; one without a state is gone.
func (tf *terraform) read(t *testing.T, r resource) resource {
	t.Helper()
	found, err := tf.provider.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: r.kind, CurrentState: r.state, Private: r.private})
	require.NoError(t, err)
	require.Empty(t, errorsOf(found.Diagnostics))
	value, err := found.NewState.Unmarshal(tf.schemas.ResourceSchemas[r.kind].ValueType())
	require.NoError(t, err)
	if value.IsNull() {
		return resource{kind: r.kind}
	}
	return resource{r.kind, found.NewState, found.Private}
}

func (tf *terraform) importState(t *testing.T, kind, id string) (resource, string) {
	t.Helper()
	found, err := tf.provider.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: kind, ID: id})
	require.NoError(t, err)
	if said := errorsOf(found.Diagnostics); said != "" {
		return resource{}, said
	}
	require.Len(t, found.ImportedResources, 1)
	one := found.ImportedResources[0]
	return tf.read(t, resource{kind, one.State, one.Private}), ""
}

func errorsOf(list []*tfprotov6.Diagnostic) string {
	var said []string
	for _, one := range list {
		if one.Severity == tfprotov6.DiagnosticSeverityError {
			said = append(said, one.Summary+": "+one.Detail)
		}
	}
	return strings.Join(said, "\n")
}

// dynamic writes attributes as a configuration does: attributes without a name are null.
func dynamic(t *testing.T, schema *tfprotov6.Schema, attributes map[string]any) *tfprotov6.DynamicValue {
	t.Helper()
	kind := schema.ValueType().(tftypes.Object)
	values := make(map[string]tftypes.Value)
	for name, of := range kind.AttributeTypes {
		values[name] = tftypes.NewValue(of, nil)
	}
	for name, value := range attributes {
		of := kind.AttributeTypes[name]
		require.NotNil(t, of, name)
		if list, ok := value.([]string); ok {
			items := []tftypes.Value{}
			for _, one := range list {
				items = append(items, tftypes.NewValue(tftypes.String, one))
			}
			value = items
		}
		values[name] = tftypes.NewValue(of, value)
	}
	encoded, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	require.NoError(t, err)
	return &encoded
}

func null(t *testing.T, schema *tfprotov6.Schema) *tfprotov6.DynamicValue {
	t.Helper()
	encoded, err := tfprotov6.NewDynamicValue(schema.ValueType(), tftypes.NewValue(schema.ValueType(), nil))
	require.NoError(t, err)
	return &encoded
}

// proposed is the configuration, with the former values where the provider fills in values.
func proposed(t *testing.T, schema *tfprotov6.Schema, prior, config *tfprotov6.DynamicValue) *tfprotov6.DynamicValue {
	t.Helper()
	kind := schema.ValueType()
	before, err := prior.Unmarshal(kind)
	require.NoError(t, err)
	wanted, err := config.Unmarshal(kind)
	require.NoError(t, err)
	if before.IsNull() {
		return config
	}
	var had, values map[string]tftypes.Value
	require.NoError(t, before.As(&had))
	require.NoError(t, wanted.As(&values))
	for _, attribute := range schema.Block.Attributes {
		if attribute.Computed && values[attribute.Name].IsNull() {
			values[attribute.Name] = had[attribute.Name]
		}
	}
	encoded, err := tfprotov6.NewDynamicValue(kind, tftypes.NewValue(kind, values))
	require.NoError(t, err)
	return &encoded
}

// startBurano starts the local cloud's Keystone and Burano, and signs in as a user by the variables OS_*.
func startBurano(t *testing.T, user string) *client.Client {
	t.Helper()
	program := filepath.Join(t.TempDir(), "burano")
	build := exec.Command("go", "build", "-o", program, "./cmd/burano")
	build.Dir = filepath.Join("..", "..", "..")
	output, err := build.CombinedOutput()
	require.NoErrorf(t, err, "%s", output)

	listener := httptest.NewUnstartedServer(nil)
	identity := "http://" + listener.Listener.Addr().String()
	users, err := keystone.New(keystone.Config{StateDir: t.TempDir(), Endpoint: identity})
	require.NoError(t, err)
	listener.Config.Handler = http.StripPrefix("/identity", users.Handler())
	listener.Start()
	t.Cleanup(listener.Close)

	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	as := func(user, project string) map[string]string {
		return map[string]string{"OS_AUTH_URL": identity + "/identity/v3", "OS_USERNAME": user, "OS_PASSWORD": user, "OS_PROJECT_NAME": project,
			"OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default", "OS_REGION_NAME": keystone.Region, "BURANO_URL": "http://" + address}
	}
	command := exec.Command(program, "serve", "--listen", address, "--state", t.TempDir(), "--embedded-packages", "io.murano")
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for name, value := range as("burano", "service") {
		command.Env = append(command.Env, name+"="+value)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		require.NoError(t, command.Wait(), "the server ends cleanly when asked to")
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the server's log:\n%s", text)
		}
	})
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "the server is not ready")
	for name, value := range as(user, user) {
		t.Setenv(name, value)
	}
	api, err := client.Connect(t.Context(), "", "http://"+address)
	require.NoError(t, err)
	return api
}

// files writes a package with one class, whose deployment fails where it is asked to.
func files(t *testing.T, folder, more string) {
	t.Helper()
	for name, content := range map[string]string{
		"manifest.yaml": "Format: 1.4\nType: Application\nFullName: org.test.App\nName: app\nClasses: {org.test.App: App.yaml}\nRequire: {io.murano: }\n",
		"Classes/App.yaml": `
Namespaces: {=: org.test, std: io.murano}
Name: App
Extends: std:Application
Properties:
  name: {Contract: $.string().notNull()}
  fail: {Contract: $.bool().notNull(), Default: false}
Methods:
  deploy:
    Body:
      - If: $.fail
        Then:
          - Throw: AskedTo
            Message: asked to fail
` + more,
	} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
}

func applications(name string, fail bool) string {
	return fmt.Sprintf(`[{"?": {"type": "org.test.App", "id": "app"}, "name": %q, "fail": %t}]`, name, fail)
}

func TestResourcesOfARealBurano(t *testing.T) {
	api := startBurano(t, "demo")
	tf := newTerraform(t)
	folder := t.TempDir()
	files(t, folder, "")

	// A package.
	config := map[string]any{"path": folder, "tags": []string{"ours"}}
	app, said := tf.apply(t, resource{kind: "burano_package"}, config)
	require.Empty(t, said)
	require.Equal(t, "org.test.App", tf.get(t, app, "name"))
	_, changes, said := tf.plan(t, tf.read(t, app), config)
	require.Empty(t, said)
	require.False(t, changes, "what was applied needs no further plan")
	_, said = tf.apply(t, resource{kind: "burano_package"}, config)
	require.Contains(t, said, "the project has a package org.test.App already")
	imported, said := tf.importState(t, "burano_package", "org.test.App")
	require.Empty(t, said)
	require.Equal(t, tf.get(t, app, "id"), tf.get(t, imported, "id"))
	files(t, folder, "  greet: {Scope: Public, Body: [{Return: hello}]}\n")
	_, changes, said = tf.plan(t, tf.read(t, app), config)
	require.Empty(t, said)
	require.True(t, changes, "its files are others")
	app, said = tf.apply(t, tf.read(t, app), config)
	require.Empty(t, said)
	_, said = tf.apply(t, resource{kind: "burano_package"}, map[string]any{"path": filepath.Join(folder, "nowhere")})
	require.Contains(t, said, "is no file, folder or URL")

	// An environment: it is deployed, and again when it is to be another one.
	config = map[string]any{"name": "shop", "applications": applications("alpha", false)}
	shop, said := tf.apply(t, resource{kind: "burano_environment"}, config)
	require.Empty(t, said)
	require.Equal(t, "ready", tf.get(t, shop, "status"))
	deployments := func() int {
		t.Helper()
		list, err := api.Deployments().List(t.Context(), tf.get(t, shop, "id"), 0)
		require.NoError(t, err)
		return len(list)
	}
	require.Equal(t, 1, deployments())
	_, changes, said = tf.plan(t, tf.read(t, shop), config)
	require.Empty(t, said)
	require.False(t, changes)
	config["applications"] = ` [ {"name":"alpha", "fail":false, "?": {"id": "app", "type": "org.test.App"}} ]`
	shop, said = tf.apply(t, tf.read(t, shop), config)
	require.Empty(t, said)
	require.Equal(t, 1, deployments(), "the same written otherwise is not deployed")
	config["applications"] = applications("beta", false)
	shop, said = tf.apply(t, tf.read(t, shop), config)
	require.Empty(t, said)
	require.Equal(t, 2, deployments())
	config["name"] = "store"
	shop, said = tf.apply(t, tf.read(t, shop), config)
	require.Empty(t, said)
	require.Equal(t, 2, deployments(), "another name is no deployment")
	config["applications"] = `[{"?": {"type": "org.test.App", "id": "app"}, "nam": "beta"}]`
	_, _, said = tf.plan(t, tf.read(t, shop), config)
	require.Contains(t, said, "cannot be deployed", "what is wrong is said before anything is done")
	config["applications"] = `{"name": "beta"}`
	_, said = tf.apply(t, tf.read(t, shop), config)
	require.Contains(t, said, "a list of applications is wanted")

	// Another user changes it.
	config["applications"] = applications("beta", false)
	_, err := api.Files().Deploy(t.Context(), client.EnvironmentFile{Name: "store", Applications: []map[string]any{{"?": map[string]any{"type": "org.test.App", "id": "app"}, "name": "gamma"}}})
	require.NoError(t, err)
	newest, err := api.Deployments().Newest(t.Context(), tf.get(t, shop, "id"))
	require.NoError(t, err)
	state, err := api.Deployments().Follow(t.Context(), newest.ID, func(client.Event) error { return nil })
	require.NoError(t, err)
	require.True(t, client.Succeeded(state))
	shop = tf.read(t, shop)
	require.Contains(t, tf.get(t, shop, "applications"), "gamma")
	_, changes, _ = tf.plan(t, shop, config)
	require.True(t, changes)
	shop, said = tf.apply(t, shop, config)
	require.Empty(t, said)

	// One that is there already is neither taken nor changed; it can be imported.
	_, said = tf.apply(t, resource{kind: "burano_environment"}, config)
	require.Contains(t, said, "There is an environment store already")
	imported, said = tf.importState(t, "burano_environment", "store")
	require.Empty(t, said)
	require.Equal(t, tf.get(t, shop, "id"), tf.get(t, imported, "id"))
	_, said = tf.importState(t, "burano_environment", "nowhere")
	require.Contains(t, said, "There is nothing to import")

	// A deployment fails: the error has the cause, the state stays known, and the next apply deploys again.
	config["applications"] = applications("beta", true)
	shop, said = tf.apply(t, tf.read(t, shop), config)
	require.Contains(t, said, "asked to fail")
	shop = tf.read(t, shop)
	require.Equal(t, "deploy failure", tf.get(t, shop, "status"))
	_, changes, _ = tf.plan(t, shop, config)
	require.True(t, changes, "it is tried again")
	config["applications"] = applications("beta", false)
	shop, said = tf.apply(t, shop, config)
	require.Empty(t, said)
	first, said := tf.apply(t, resource{kind: "burano_environment"}, map[string]any{"name": "first", "applications": applications("alpha", true), "deletion_protection": false})
	require.Contains(t, said, "asked to fail")
	require.NotEmpty(t, tf.get(t, first, "id"), "what was made is known")
	require.Empty(t, tf.destroy(t, first))

	// It goes when that is asked for, and only then.
	said = tf.destroy(t, shop)
	require.Contains(t, said, "Nothing was deleted")
	config["deletion_protection"] = false
	shop, said = tf.apply(t, tf.read(t, shop), config)
	require.Empty(t, said)
	require.NotNil(t, tf.read(t, shop).state)
	require.Empty(t, tf.destroy(t, shop))
	require.Nil(t, tf.read(t, shop).state)
	require.Empty(t, tf.destroy(t, shop), "what has gone is gone")

	// Data of a cluster that is none.
	schema := tf.schemas.DataSourceSchemas["burano_kubeconfig"]
	found, err := tf.provider.ReadDataSource(t.Context(), &tfprotov6.ReadDataSourceRequest{TypeName: "burano_kubeconfig", Config: dynamic(t, schema, map[string]any{"environment": "store"})})
	require.NoError(t, err)
	require.Contains(t, errorsOf(found.Diagnostics), "environment cannot be found")

	t.Run("what was planned is applied", func(t *testing.T) { plannedIsApplied(t, api) })
	t.Run("bad days", func(t *testing.T) { badDays(t, api) })
	for _, name := range []string{"unanswered", "unknown", "placed"} {
		left, said := tf.importState(t, "burano_environment", name)
		require.Empty(t, said)
		require.Contains(t, tf.destroy(t, left), "Nothing was deleted", "what was imported is protected")
		require.NoError(t, api.Environments().Delete(t.Context(), tf.get(t, left, "id"), false))
		require.NoError(t, api.Environments().WaitDeleted(t.Context(), tf.get(t, left, "id")))
	}

	require.Empty(t, tf.destroy(t, app))
	t.Run("categories are for administrators", func(t *testing.T) {
		_, said := tf.apply(t, resource{kind: "burano_category"}, map[string]any{"name": "Shops"})
		require.Contains(t, said, "The category Shops cannot be made")
		for _, name := range []string{"OS_USERNAME", "OS_PASSWORD", "OS_PROJECT_NAME"} {
			t.Setenv(name, "admin")
		}
		tf := newTerraform(t)
		category, said := tf.apply(t, resource{kind: "burano_category"}, map[string]any{"name": "Shops"})
		require.Empty(t, said)
		imported, said := tf.importState(t, "burano_category", "Shops")
		require.Empty(t, said)
		require.Equal(t, tf.get(t, category, "id"), tf.get(t, imported, "id"))
		require.Empty(t, tf.destroy(t, category))
		require.Nil(t, tf.read(t, category).state)
	})
	t.Run("wrong credentials", func(t *testing.T) {
		t.Setenv("OS_PASSWORD", "wrong")
		_, said := tryTerraform(t)
		require.Contains(t, said, "check user, password and project")
	})
}
