package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/task/tasktest"
)

// tiers is an environment with a pod for each application; each application depends on those that needs names, by names.
func tiers(t *testing.T, needs map[string][]any, hosts map[string]string) (task.Objects, *muranopl.Interpreter) {
	t.Helper()
	embedded, err := apps.Packages()
	require.NoError(t, err)
	classes := muranopl.NewClasses(catalog.Shelf(embedded))
	object := func(class, id string, properties map[string]any) map[string]any {
		properties["?"] = map[string]any{"type": class, "id": id}
		return properties
	}
	cluster := tasktest.ClusterModel(nil)
	cluster["?"].(map[string]any)["id"] = "cluster"
	all := []any{cluster}
	for name, dependsOn := range needs {
		host := "pod-" + name
		if hosts[name] == "" {
			all = append(all, object(task.ClassPod, host, map[string]any{"name": name + "-pod", "replicas": 1, "kubernetesCluster": "cluster"}))
		} else {
			host = hosts[name]
		}
		all = append(all, object(task.ClassAnyImage, name, map[string]any{"name": name, "image": "i", "host": host, "dependsOn": dependsOn}))
	}
	root, problems := muranopl.Load(t.Context(), classes, object(task.ClassEnvironment, "environment", map[string]any{"name": "shop", "applications": all}))
	require.Empty(t, problems)
	natives := muranopl.Natives{task.ClassAnyImage: {task.ClassAnyImage: AnyImage{}.Methods()}}
	return task.Objects{Model: func() *muranopl.Object { return root }}, muranopl.NewInterpreter(classes, natives)
}

func foreseenOf(t *testing.T, objects task.Objects, interpreter *muranopl.Interpreter, isNew bool) preview.Foreseen {
	t.Helper()
	var foreseen preview.Foreseen
	Previews{Objects: objects}.foreseeDependencies(t.Context(), interpreter, map[*muranopl.Object]bool{objects.Find("cluster"): isNew}, true, &foreseen)
	return foreseen
}

func TestThePreviewHasTheOrderOfPodsThatDependOnOthers(t *testing.T) {
	objects, interpreter := tiers(t, map[string][]any{"front": {"books", "cache"}, "books": {}, "cache": {}}, nil)
	foreseen := foreseenOf(t, objects, interpreter, true)
	require.Empty(t, foreseen.Refused)
	require.Equal(t, []string{"front-pod begins when these are ready: books on books-pod, cache on cache-pod"}, foreseen.Effects)
	require.Empty(t, foreseenOf(t, objects, interpreter, false).Effects, "pods that do not change wait for nothing")
}

func TestApplicationsThatWaitForEachOtherAreRefusedByName(t *testing.T) {
	objects, interpreter := tiers(t, map[string][]any{"front": {"books"}, "books": {"cache"}, "cache": {"books"}}, nil)
	foreseen := foreseenOf(t, objects, interpreter, true)
	require.Equal(t, []preview.Note{{ObjectID: "pod-books", Text: "these applications wait for each other: books on books-pod depends on cache on cache-pod, " +
		"cache on cache-pod depends on books on books-pod. Take one of these out of dependsOn"}}, foreseen.Refused)

	objects, interpreter = tiers(t, map[string][]any{"front": {"books"}, "books": {}}, map[string]string{"front": "pod-books"})
	require.Contains(t, foreseenOf(t, objects, interpreter, true).Refused[0].Text, "front on books-pod depends on books on books-pod, which has the same host")
}

// planned is a task that writes its steps down.
type planned struct {
	mutex sync.Mutex
	plan  map[string][]string
	ran   []string
	acts  bool
}

func (p *planned) Deploys() bool                                         { return !p.acts }
func (p *planned) Planned(_ *muranopl.Object, steps map[string][]string) { p.plan = steps }
func (p *planned) Step(ctx context.Context, _ *muranopl.Object, name string, run func(context.Context) error) error {
	p.mutex.Lock()
	p.ran = append(p.ran, name)
	p.mutex.Unlock()
	return run(ctx)
}

func TestAHostWaitsForTheApplicationsThatItDependsOn(t *testing.T) {
	objects, interpreter := tiers(t, map[string][]any{"front": {"books", "cache"}, "books": {}, "cache": {}}, nil)
	pod := objects.Find("pod-front")
	hosting := &Hosting{Objects: objects}
	all, err := hosting.all(t.Context(), interpreter, pod)
	require.NoError(t, err)
	one := &planned{}
	ready := map[string]bool{}
	bringUp := func(_ context.Context, application *muranopl.Object) error {
		one.mutex.Lock()
		defer one.mutex.Unlock()
		ready[application.ID()] = true
		return nil
	}
	require.NoError(t, hosting.awaitDependencies(t.Context(), one, pod, all, []string{stepApplyPod, stepWaitPod}, bringUp))
	require.Equal(t, map[string]bool{"books": true, "cache": true}, ready)
	require.Equal(t, map[string][]string{"wait for books on books-pod": {}, "wait for cache on cache-pod": {},
		stepApplyPod: {"wait for books on books-pod", "wait for cache on cache-pod"}, stepWaitPod: {stepApplyPod}}, one.plan)
	require.ElementsMatch(t, []string{"wait for books on books-pod", "wait for cache on cache-pod"}, one.ran)

	broken := func(_ context.Context, application *muranopl.Object) error {
		if application.ID() == "books" {
			return errors.New("it ended with exit code 3")
		}
		return nil
	}
	err = hosting.awaitDependencies(t.Context(), one, pod, all, nil, broken)
	require.EqualError(t, err, "front-pod did not begin: front on front-pod depends on books on books-pod, which did not become ready: it ended with exit code 3")
	require.NoError(t, hosting.awaitDependencies(t.Context(), &planned{acts: true}, pod, all, nil, broken), "an action takes them as they are")
}

// TestHostsThatWouldWaitForEachOtherForEverAreRefused has two hosts begin at once.
func TestHostsThatWouldWaitForEachOtherForEverAreRefused(t *testing.T) {
	objects, interpreter := tiers(t, map[string][]any{"front": {"books"}, "books": {"front"}}, nil)
	hosting := &Hosting{Objects: objects}
	var once task.Once
	var bringUp func(ctx context.Context, application *muranopl.Object) error
	bringUp = func(ctx context.Context, application *muranopl.Object) error {
		host := hostOf(application)
		return once.Do(host.ID(), func() error {
			all, err := hosting.all(ctx, interpreter, host)
			if err != nil {
				return err
			}
			return hosting.awaitDependencies(ctx, &planned{}, host, all, nil, bringUp)
		})
	}
	err := task.Each([]*muranopl.Object{objects.Find("front"), objects.Find("books")}, func(application *muranopl.Object) error { return bringUp(t.Context(), application) })
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.ErrorContains(t, err, "these applications wait for each other")
}

func TestDependsOnNamesApplications(t *testing.T) {
	_, err := containerIn(t, `{"name": "web", "image": "i", "dependsOn": ["db"]}`)
	require.ErrorContains(t, err, fmt.Sprintf("dependsOn of container web has %v, which is no application", "db"))
}

func TestPodsThatLeaveWithTheirDependencyEndBeforeIt(t *testing.T) {
	objects, interpreter := tiers(t, map[string][]any{"front": {"books"}, "books": {}}, nil)
	all, err := (&Hosting{Objects: objects}).all(t.Context(), interpreter, objects.Find("pod-front"))
	require.NoError(t, err)
	spec, err := PodSpecOf(objects.Find("pod-front"))
	require.NoError(t, err)
	made := spec.objects(containersIn(all))
	front := made[slices.IndexFunc(made, func(one runtime.Object) bool { _, is := one.(*appsv1.Deployment); return is })].(*appsv1.Deployment)
	require.Equal(t, "pod-books", front.Annotations[annotationDependsOn])
	require.Empty(t, front.Spec.Template.Annotations, "another order rolls no pods")

	client := fake.NewClientset(front)
	found, err := dependentsOf(t.Context(), client, "pod-books", func(string) bool { return false })
	require.NoError(t, err)
	require.Equal(t, []dependent{{"pod-front", "front-pod", known.Namespace, front.Spec.Template.Spec.TerminationGracePeriodSeconds}}, found)
	found, err = dependentsOf(t.Context(), client, "pod-front", func(string) bool { return false })
	require.NoError(t, err)
	require.Len(t, found, 1, "it ends first, and the other one waits for that")
	found, err = dependentsOf(t.Context(), client, "pod-front", func(id string) bool { return id == "pod-books" })
	require.NoError(t, err)
	require.Empty(t, found, "the other one stays")
	found, err = dependentsOf(t.Context(), client, "pod-other", func(string) bool { return false })
	require.NoError(t, err)
	require.Empty(t, found)
	found, err = dependentsOf(t.Context(), client, "pod-books", func(id string) bool { return id == "pod-front" })
	require.NoError(t, err)
	require.Empty(t, found, "it stays")
}
