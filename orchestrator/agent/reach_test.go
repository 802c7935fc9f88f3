package agent

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// stored is a runtime with secrets and no more.
type stored struct {
	task.Runtime
	secrets map[string][]byte
}

func (s stored) EnvironmentID() string { return "environment" }

func (s stored) Model() *muranopl.Object { return nil }

func (s stored) Secret(_ context.Context, name string) ([]byte, bool, error) {
	value, found := s.secrets[name]
	return value, found, nil
}

// coreMethods are bodies of the core library's classes for a runtime without a cloud.
func coreMethods(runtime task.Runtime) muranopl.Natives {
	objects := task.Objects{Model: func() *muranopl.Object { return nil }}
	reports := task.Reports{Runtime: runtime, Logger: slog.New(slog.DiscardHandler)}
	return muranopl.Natives{"io.murano": stacks.New(runtime, objects, reports, stacks.Settings{}, false).Methods()}
}

// instances are objects of these classes, by their ids, as their last deployment left them.
func instances(t *testing.T, classes map[string]string) map[string]*muranopl.Object {
	made, _ := prepared(t, classes)
	return made
}

func prepared(t *testing.T, classes map[string]string) (map[string]*muranopl.Object, *muranopl.Interpreter) {
	t.Helper()
	embedded, err := apps.Packages()
	require.NoError(t, err)
	runtime := stored{}
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(catalog.Shelf(embedded)), coreMethods(runtime))
	made := map[string]*muranopl.Object{}
	for id, class := range classes {
		model := map[string]any{"?": map[string]any{"type": class, "id": id}}
		if strings.HasPrefix(class, "io.murano.resources.") {
			maps.Copy(model, map[string]any{"name": "server-" + id, "flavor": "f", "image": "i", "openstackId": "nova-" + id})
		}
		object, _, problems := interpreter.Prepare(t.Context(), model)
		require.Empty(t, problems)
		made[id] = object
	}
	return made, interpreter
}

func TestWhyAServerCannotBeLoggedInToIsSaid(t *testing.T) {
	all := instances(t, map[string]string{"windows": classWindows, "former": "io.murano.resources.LinuxInstance", "scripted": task.ClassNodeServer,
		"foreign": "io.murano.resources.LinuxInstance", "node": task.ClassNodeServer})
	require.NoError(t, all["node"].Set(task.PropertyNode, map[string]any{"userData": "#cloud-config\n"}))
	resources := map[string]any{}
	for id, data := range map[string]string{"windows": "", "former": "", "scripted": "#!/bin/sh\n", "foreign": "#ps1\ndir", "node": "#cloud-config\n"} {
		resources[id+"-server"] = map[string]any{"properties": map[string]any{"user_data": data}}
	}
	template, err := json.Marshal(map[string]any{"resources": resources})
	require.NoError(t, err)
	runtime := stored{secrets: map[string][]byte{known.SecretTemplate: template}}
	servers := &Servers{runtime: runtime, stacks: stacks.NewTemplates(runtime, "")}
	for id, why := range map[string]string{
		"windows":  "Burano cannot log in to server server-windows: it runs Windows, ",
		"former":   "server-former: it was made without Burano's SSH key, by a former version or from outside",
		"scripted": "server-scripted: it was made without Burano's SSH key",
		"foreign":  "server-foreign: its user data is nothing that cloud-init takes",
		"node":     "server-node: it is a node of a Kubernetes cluster",
	} {
		_, err := servers.Connection(t.Context(), all[id])
		var none *NoAccess
		require.ErrorAs(t, err, &none, id)
		require.ErrorContains(t, err, why)
		require.Equal(t, fault.Conflict, fault.KindOf(err))
	}
	require.NoError(t, all["former"].Set("openstackId", nil))
	_, err = servers.Connection(t.Context(), all["former"])
	require.ErrorContains(t, err, "server server-former is not deployed")
	servers.rehearsal = true
	_, err = servers.Connection(t.Context(), all["scripted"])
	require.ErrorContains(t, err, "a rehearsal logs in to no server")
}

func TestServersAreReachedThroughOthersOfTheirEnvironmentThatFloat(t *testing.T) {
	embedded, err := apps.Packages()
	require.NoError(t, err)
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(catalog.Shelf(embedded)), coreMethods(stored{}))
	var models []any
	resources := map[string]any{}
	marked := "#cloud-config\n# Burano reaches this server over SSH. SHA-256 of the other user data: 0\n"
	for id, floating := range map[string]string{"to": "192.0.2.9", "floats": "192.0.2.1", "fixed": "", "windows": "192.0.2.2", "former": "192.0.2.3", "early": ""} {
		class, data := task.ClassNodeServer, marked
		switch id {
		case "windows":
			class = classWindows
		case "former":
			data = ""
		}
		model := map[string]any{"?": map[string]any{"type": class, "id": id}, "name": "server-" + id, "flavor": "f", "image": "i"}
		if id != "early" { // its own endDeploy comes later
			model["openstackId"], model["floatingIpAddress"] = "nova-"+id, floating
		}
		models = append(models, model)
		resources[id+"-server"] = map[string]any{"properties": map[string]any{"user_data": data}}
	}
	root, _, problems := interpreter.Prepare(t.Context(), map[string]any{"?": map[string]any{"type": "io.murano.applications.ServerList", "id": "list"}, "servers": models})
	require.Empty(t, problems)
	template, err := json.Marshal(map[string]any{"resources": resources})
	require.NoError(t, err)
	runtime := stored{secrets: map[string][]byte{known.SecretTemplate: template}}
	servers := &Servers{runtime: runtime, stacks: stacks.NewTemplates(runtime, ""), objects: task.Objects{Model: func() *muranopl.Object { return root }}}
	servers.stacks.Own().SetOutputs(map[string]any{"early-server": "nova-early", "early-floating": "192.0.2.4", "fixed-server": "nova-fixed"})
	found := map[string]string{}
	for _, jump := range servers.through(access.Server{Key: "to"}) {
		found[jump.Name+" "+jump.ID] = jump.Access.String()
	}
	require.Equal(t, map[string]string{"server-floats nova-floats": "192.0.2.1", "server-early nova-early": "192.0.2.4"}, found)

	unreached := &ssh.UnreachableError{Waited: time.Minute}
	require.Equal(t, unreached, servers.wayless(access.Server{Key: "to"}, unreached), "another server has one")
	servers.objects = task.Objects{Model: func() *muranopl.Object { return nil }}
	require.ErrorContains(t, servers.wayless(access.Server{Key: "to"}, unreached), "give it one (assignFloatingIp)")
	require.Equal(t, unreached, servers.wayless(access.Server{Key: "to", Access: netip.MustParseAddr("192.0.2.9")}, unreached))
}

func TestSoftwareDeploymentsAndWorkflowsAreRefusedWithTheirReasons(t *testing.T) {
	all, interpreter := prepared(t, map[string]string{"a": "io.murano.resources.HeatSWConfigLinuxInstance", "m": "io.murano.system.MistralClient"})
	_, err := interpreter.Invoke(t.Context(), all["a"], "addSoftwareConfig", map[string]any{"configName": "web", "configSection": "#!/bin/sh\n"})
	require.ErrorContains(t, err, "server server-a is to have a software deployment of Heat, which needs an agent of Heat in the image")
	_, err = interpreter.Invoke(t.Context(), all["m"], "run", map[string]any{"name": "build"})
	require.ErrorContains(t, err, "Burano does not speak to Mistral")
}
