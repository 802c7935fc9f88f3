package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/native"
)

// TestWhatAGroupMakesOfItselfIsTheSameInEveryModel deploys a cluster with a group whose model never lists the nodes that the group makes: they
// are neither destroyed nor said to change.
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
		// What is destroyed leaves the statistics.
		natives["io.murano"]["io.murano.system.InstanceNotifier"]["untrackCloudInstance"] = func(_ context.Context, call muranopl.Call) (any, error) {
			instance, _ := call.Args["instance"].(*muranopl.Object)
			destroyed = append(destroyed, instance.Text("name"))
			return nil, nil
		}
		return natives
	}
	h.rehearsal = func(stage *engine.Stage) (muranopl.Natives, engine.Rehearsed) {
		natives, _ := native.Rehearsal(stage, native.Config{})
		return natives, func(context.Context, *muranopl.Interpreter, *muranopl.Object) (engine.Foreseen, error) {
			return engine.Foreseen{}, nil
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
		session, err := h.service.Configure(t.Context(), demo, id)
		require.NoError(t, err)
		require.NoError(t, h.service.PutServices(t.Context(), demo, id, session.ID, nil, []any{cluster(fields)}, false))
		found, err := h.service.Preview(t.Context(), demo, id, session.ID)
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
