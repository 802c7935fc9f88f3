package engine_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/native"
)

// uploadedHouse runs an engine over the real core library, whose environment makes no stack here, and a package that is not embedded.
func uploadedHouse(t *testing.T) *house {
	h := newHouse(t)
	h.stop()
	var err error
	h.packages, err = apps.Packages()
	require.NoError(t, err)
	uploaded, err := catalog.ReadFolder(os.DirFS("../../test/packages/io.burano.test.Uploaded"))
	require.NoError(t, err)
	require.False(t, uploaded.Embedded())
	h.packages = append(h.packages, uploaded)
	h.natives = func(runtime *engine.Runtime) muranopl.Natives {
		natives := native.Methods(runtime, native.Config{Settings: clusters.Settings{Reach: known.Reach{Logger: runtime.Logger()}}})
		natives["io.murano"]["io.murano.Environment"] = map[string]muranopl.NativeMethod{
			"deploy": func(ctx context.Context, call muranopl.Call) (any, error) {
				for _, application := range call.Object.Objects("applications") {
					if _, err := call.Interpreter.Invoke(ctx, application, "deploy", nil); err != nil {
						return nil, err
					}
				}
				return nil, nil
			},
			".destroy": func(context.Context, muranopl.Call) (any, error) { return nil, nil },
		}
		return natives
	}
	h.start()
	return h
}

func TestAnUploadedPackageInMuranoPLIsDeployedAndItsActionsAnswer(t *testing.T) {
	h := uploadedHouse(t)
	id := h.create("one")
	h.deploy(id, map[string]any{"?": map[string]any{"id": "c", "type": "io.burano.test.Counter"}, "start": 5})
	deployment := h.ended(id)
	require.Equal(t, "success", deployment.State, texts(h.reports(id, deployment)))
	require.Contains(t, texts(h.reports(id, deployment)), "Counting from 5, run 1")
	service := func() map[string]any {
		row, err := h.store.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		return row.Model.Objects["services"].([]any)[0].(map[string]any)
	}
	require.EqualValues(t, 5, service()["count"])

	_, err := h.service.Actions().Call(t.Context(), demo, id, "c_add", map[string]any{"by": 3})
	require.NoError(t, err)
	deployment = h.ended(id)
	result := deployment.Result["result"].(map[string]any)
	require.Equal(t, false, deployment.Result["isException"])
	require.EqualValues(t, 8, result["count"])
	require.EqualValues(t, 1, result["runs"], "attributes live from one task to the next")
	require.Equal(t, "c", result["me"], "an object that the environment owns is its id")
	require.EqualValues(t, 8, service()["count"])

	_, err = h.service.Actions().Call(t.Context(), demo, id, "c_break", nil)
	require.NoError(t, err)
	deployment = h.ended(id)
	require.Equal(t, true, deployment.Result["isException"])
	failed := deployment.Result["result"].(map[string]any)
	require.Equal(t, "[io.burano.test.CounterBroken]: it counts no more", failed["message"])
	require.Contains(t, failed["details"], "in method break of type io.burano.test.Counter")
}

func TestTheEmbeddedClassesAndTheirBodiesMatch(t *testing.T) {
	packages, err := apps.Packages()
	require.NoError(t, err)
	var list []muranopl.Package
	for _, p := range packages {
		list = append(list, p)
	}
	classes := muranopl.NewClasses(catalog.Shelf(packages))
	require.NoError(t, muranopl.CheckNatives(t.Context(), classes, list, native.Methods(nil, native.Config{Settings: clusters.Settings{Reach: known.Reach{Logger: slog.New(slog.DiscardHandler)}}})))
}

// A former version has admitted an uploaded copy of the cluster's package to its catalog.
func TestAPackageThatOnlyHasTheNameOfAnEmbeddedOneIsNotTakenForIt(t *testing.T) {
	h := uploadedHouse(t)
	h.stop()
	const name = "com.mirantis.docker.kubernetes.KubernetesCluster"
	copied, err := catalog.ReadFolder(os.DirFS("../../catalog/apps/" + name))
	require.NoError(t, err)
	h.packages = append([]*catalog.Package{copied}, h.packages...)
	h.start()
	id := h.create("one")
	nodes := name[:len(name)-len("KubernetesCluster")]
	node := func(kind, id string) map[string]any {
		return map[string]any{"?": map[string]any{"id": id, "type": nodes + "Kubernetes" + kind + "Node"}, "instance": map[string]any{
			"?": map[string]any{"id": id + "i", "type": "io.murano.resources.LinuxMuranoInstance"}, "name": id, "flavor": "m1.small", "image": "burano-node"}}
	}
	h.deploy(id, map[string]any{"?": map[string]any{"id": "k", "type": name}, "name": "k8s", "masterNode": node("Master", "m"), "nodeCount": 1, "minionNodes": []any{node("Minion", "n")},
		"gatewayCount": 1, "gatewayNodes": []any{node("Gateway", "g")}})
	deployment := h.ended(id)
	errors := texts(h.reports(id, deployment), "error")
	require.Equal(t, "completed_w_errors", deployment.State)
	require.Len(t, errors, 1)
	require.NotContains(t, errors[0], "defect")
	require.Contains(t, errors[0], "of the uploaded package "+name+" has no body: only packages that come with Burano have methods that run in Burano itself")
}

func TestAPanicIsToldAsAFailureOfTheObjectWithWhatItWasDoing(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.natives = func(runtime *engine.Runtime) muranopl.Natives {
		natives := h.world.Natives(runtime)
		natives["org.golden.Hello"]["org.golden.Hello"]["deploy"] = func(ctx context.Context, call muranopl.Call) (any, error) {
			return nil, runtime.Step(ctx, call.Object, "greet", func(context.Context) error { panic("oh no") })
		}
		return natives
	}
	h.start()
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	deployment := h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	reports := h.reports(id, deployment)
	require.Contains(t, texts(reports, "error")[0], `org.golden.Hello.deploy: the step greet: Burano itself failed: oh no`)
	steps, err := h.service.Deployments().Steps(t.Context(), demo, deployment.ID)
	require.NoError(t, err)
	require.NotNil(t, steps[len(steps)-1].Finished, "the step has ended")
}
