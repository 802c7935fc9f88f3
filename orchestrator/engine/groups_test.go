package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/preview"
)

// TestWhatAGroupMakesOfItselfIsTheSameInEveryModel deploys a cluster with a group whose model never lists the nodes that the group makes: they
// are neither destroyed nor reported as changes.
func TestWhatAGroupMakesOfItselfIsTheSameInEveryModel(t *testing.T) {
	const pkg = "com.mirantis.docker.kubernetes.KubernetesCluster"
	var destroyed []string
	h := uploadedHouse(t)
	h.stop()
	own := h.natives
	h.natives = func(runtime *engine.Runtime) muranopl.Natives {
		natives := own(runtime)
		cluster := natives[pkg]["com.mirantis.docker.kubernetes.KubernetesCluster"]
		cluster["deploy"] = func(context.Context, muranopl.Call) (any, error) { return nil, nil }
		// A destroyed server leaves the statistics.
		natives["io.murano"]["io.murano.system.InstanceNotifier"]["untrackCloudInstance"] = func(_ context.Context, call muranopl.Call) (any, error) {
			instance, _ := call.Args["instance"].(*muranopl.Object)
			destroyed = append(destroyed, instance.Text("name"))
			return nil, nil
		}
		return natives
	}
	h.rehearsal = func(stage *engine.Stage) (muranopl.Natives, engine.Rehearsed) {
		natives, _ := native.Rehearsal(stage, native.Config{})
		return natives, func(context.Context, *muranopl.Interpreter, *muranopl.Object) (preview.Foreseen, error) {
			return preview.Foreseen{}, nil
		}
	}
	h.start()
	node := func(role, name string) map[string]any {
		return map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.Kubernetes" + role + "Node", "id": "n" + name},
			"instance": map[string]any{"?": map[string]any{"type": "io.murano.resources.LinuxMuranoInstance", "id": "i" + name}, "name": name, "flavor": "m1.medium", "image": "node"}}
	}
	cluster := func(fields map[string]any) map[string]any {
		group := map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.KubernetesMinionGroup", "id": "workers"}, "name": "workers"}
		for name, value := range fields {
			group[name] = value
		}
		return map[string]any{"?": map[string]any{"type": pkg, "id": "cluster"}, "name": "kube", "masterNode": node("Master", "kube-1"), "nodeCount": 1,
			"minionNodes": []any{node("Minion", "kube-2")}, "gatewayCount": 1, "gatewayNodes": []any{node("Gateway", "gate-1")}, "minionGroups": []any{group}}
	}
	id := h.create("one")
	for range 2 {
		h.deploy(id, cluster(map[string]any{"count": 2}))
		deployment := h.ended(id)
		require.Equal(t, "success", deployment.State, texts(h.reports(id, deployment)))
	}
	require.Empty(t, destroyed)

	preview := func(fields map[string]any) (changed []string) {
		session, err := h.service.Sessions().Open(t.Context(), demo, id)
		require.NoError(t, err)
		require.NoError(t, h.service.Models().PutServices(t.Context(), demo, id, session.ID, nil, []any{cluster(fields)}, false))
		found, err := h.service.Previews().Get(t.Context(), demo, id, session.ID)
		require.NoError(t, err)
		require.Empty(t, found.Problems)
		for _, one := range found.Changes {
			changed = append(changed, one.What+" "+one.Name)
		}
		return changed
	}
	require.Empty(t, preview(map[string]any{"count": 2}))
	require.Equal(t, []string{"changed workers", "added ", "added workers-3"}, preview(map[string]any{"count": 3}))

	without := cluster(nil)
	delete(without, "minionGroups")
	h.deploy(id, without)
	deployment := h.ended(id)
	require.Equal(t, "success", deployment.State, texts(h.reports(id, deployment)))
	require.ElementsMatch(t, []string{"workers-1", "workers-2"}, destroyed, "a group that is gone takes its nodes along, and no others")
}

// TestAGroupIsAddedAndRemovedByActions has deploy fail for a flavor; there is no cloud that could report its progress.
func TestAGroupIsAddedAndRemovedByActions(t *testing.T) {
	const pkg = "com.mirantis.docker.kubernetes.KubernetesCluster"
	h := uploadedHouse(t)
	h.stop()
	own := h.natives
	var deployed [][]string
	h.natives = func(runtime *engine.Runtime) muranopl.Natives {
		natives := own(runtime)
		natives[pkg][pkg]["deploy"] = func(_ context.Context, call muranopl.Call) (any, error) {
			var names []string
			for _, group := range call.Object.Objects("minionGroups") {
				for _, node := range group.Objects("nodes")[:group.Int("count")] {
					if node.Object("instance").Text("flavor") == "nothing" {
						return nil, errors.New("there is no flavor nothing")
					}
					names = append(names, node.Object("instance").Text("name"))
				}
			}
			deployed = append(deployed, names)
			return nil, nil
		}
		return natives
	}
	h.start()
	node := func(role, name string) map[string]any {
		return map[string]any{"?": map[string]any{"type": "com.mirantis.docker.kubernetes.Kubernetes" + role + "Node", "id": "n" + name},
			"instance": map[string]any{"?": map[string]any{"type": "io.murano.resources.LinuxMuranoInstance", "id": "i" + name}, "name": name, "flavor": "m1.medium", "image": "node"}}
	}
	id := h.create("one")
	h.deploy(id, map[string]any{"?": map[string]any{"type": pkg, "id": "cluster"}, "name": "kube", "masterNode": node("Master", "kube-1"), "nodeCount": 1,
		"minionNodes": []any{node("Minion", "kube-2")}, "gatewayCount": 1, "gatewayNodes": []any{node("Gateway", "gate-1")}})
	deployment := h.ended(id)
	require.Equal(t, "success", deployment.State, texts(h.reports(id, deployment)))

	act := func(action string, args map[string]any) string {
		t.Helper()
		_, err := h.service.Actions().Call(t.Context(), demo, id, "cluster_"+action, args)
		require.NoError(t, err)
		ended := h.ended(id)
		return ended.State + strings.Join(texts(h.reports(id, ended)), "; ")
	}
	groups := func() (names []string) {
		environment, err := h.store.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		cluster := environment.Model.Objects["services"].([]any)[0].(map[string]any)
		for _, one := range cluster["minionGroups"].([]any) {
			names = append(names, one.(map[string]any)["name"].(string))
		}
		return names
	}
	require.Contains(t, act("addGroup", map[string]any{"name": "workers", "count": 2, "labels": map[string]any{"disk": "fast"}}), "success")
	require.Equal(t, []string{"workers"}, groups())
	require.Equal(t, []string{"workers-1", "workers-2"}, deployed[len(deployed)-1])

	require.Contains(t, act("addGroup", map[string]any{"name": "workers"}), "cluster kube has a group workers")
	require.Contains(t, act("addGroup", map[string]any{"name": "more", "count": 3, "maximum": 2}), "count of group more is 3 but its maximum is 2")
	require.Equal(t, []string{"workers"}, groups(), "what cannot be is not there")
	require.Contains(t, act("addGroup", map[string]any{"name": "more", "flavor": "nothing"}), "there is no flavor nothing (group more is part of the cluster")
	require.Equal(t, []string{"workers", "more"}, groups(), "no cloud says that no server was made")
	require.Contains(t, act("removeGroup", map[string]any{"group": "more"}), "success")

	require.Contains(t, act("addGroup", map[string]any{"name": "more", "minimum": 1}), "success")
	require.Contains(t, act("removeGroup", map[string]any{"group": "workers"}), "success")
	require.Equal(t, []string{"more-1"}, deployed[len(deployed)-1])
	require.Equal(t, []string{"more"}, groups())
	require.Contains(t, act("removeGroup", map[string]any{"group": "workers"}), "workers is no group of cluster kube: there are more")
	require.Contains(t, act("removeGroup", map[string]any{"group": "more"}), "success")
	require.Empty(t, groups())
}
