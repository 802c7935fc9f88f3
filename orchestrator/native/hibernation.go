package native

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/hibernation"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/task"
)

const (
	// serversAtOnce is how many servers are stopped or started at the same time.
	serversAtOnce = 16
	// podsPatience is how long the pods of a cluster that wakes may take until they are ready again; podsLook is the pause between two looks.
	podsPatience = 90 * time.Second
	podsLook     = 500 * time.Millisecond
	// podsNamed is how many pods that are not ready a report names.
	podsNamed = 5
	// skew is how far the clocks of nodes and servers of Burano may differ.
	skew = 10 * time.Second
)

// sleeper stops the servers of an environment, and starts them again. All of it can be repeated: a task that was interrupted begins anew.
type sleeper struct {
	clusters *clusters.Clusters
	runtime  task.Runtime
	reports  task.Reports
}

// taskSecrets are the secrets of the task's environment.
type taskSecrets struct{ runtime task.Runtime }

func (s taskSecrets) Secret(ctx context.Context, _, name string) ([]byte, bool, error) {
	return s.runtime.Secret(ctx, name)
}

func (s taskSecrets) SetSecret(ctx context.Context, _, name string, value []byte) error {
	return s.runtime.SetSecret(ctx, name, value)
}

// reach is the environment's project in a region.
func (s sleeper) reach(ctx context.Context, region string) (*openstack.Project, error) {
	project, err := s.runtime.Project(ctx)
	if err != nil || region == "" {
		return project, err
	}
	return project.In(ctx, region)
}

// hibernate stops the servers in turns, each in order: gateways, then minions and servers of applications, then masters. Volumes, addresses and disks stay.
func (s sleeper) hibernate(ctx context.Context, call muranopl.Call) (any, error) {
	defer s.clusters.Close()
	former, err := s.runtime.Hibernation(ctx)
	if err != nil {
		return nil, err
	}
	if former.State == store.Asleep {
		s.reports.Inform(ctx, call.Object, "The environment is asleep already")
		return nil, nil
	}
	if over, err := s.overtaken(ctx, former); err != nil || over {
		if over {
			s.reports.Inform(ctx, call.Object, "The schedule's time to sleep is over, or the schedule has changed: nothing is stopped")
		}
		return nil, err
	}
	plan, err := hibernation.Of(ctx, s.runtime.EnvironmentID(), muranopl.Save(call.Object), taskSecrets{s.runtime})
	if err != nil {
		return nil, err
	}
	running, err := plan.Running(ctx, s.reach)
	if err != nil {
		return nil, err
	}
	if err := plan.Refusal(call.Object.Text("name")); err != nil {
		return nil, err
	}
	if former.State != store.Awake { // one that was interrupted, or did not wake, has stopped others
		for _, one := range former.Servers {
			if !slices.Contains(running, one) {
				running = append(running, one)
			}
		}
	}
	if running == nil {
		running = []store.StoppedServer{}
	}
	if err := s.runtime.SetHibernation(ctx, store.Hibernating, running); err != nil {
		return nil, err
	}
	for turn := range hibernation.Turns {
		if err := s.each(ctx, call.Object, inTurn(running, turn), "stop", s.stop); err != nil {
			return nil, err
		}
	}
	if err := s.runtime.SetHibernation(ctx, store.Asleep, nil); err != nil {
		return nil, err
	}
	s.reports.Inform(ctx, call.Object, "The environment is asleep: %d servers are off, and start again when it wakes", len(running))
	return nil, nil
}

// overtaken is true for a schedule's task whose time to sleep is over: it began late, since no server of Burano ran, or a user has changed the schedule meanwhile.
func (s sleeper) overtaken(ctx context.Context, row store.Hibernation) (bool, error) {
	if row.ScheduledTask == "" || row.ScheduledTask != s.runtime.TaskID() {
		return false, nil
	}
	times, found, err := hibernation.Stored(row)
	if err != nil || !found {
		return err == nil, err
	}
	settled, err := s.runtime.Settled(ctx, row)
	if err != nil {
		return false, err
	}
	return times.Overtaken(time.Now(), row.State, settled.At.Time()), nil
}

// inTurn are the servers of a turn.
func inTurn(list []store.StoppedServer, turn int) (servers []store.StoppedServer) {
	for _, one := range list {
		if hibernation.Turn(one) == turn {
			servers = append(servers, one)
		}
	}
	return servers
}

func (s sleeper) stop(ctx context.Context, _ *muranopl.Object, project *openstack.Project, server store.StoppedServer) error {
	return project.StopServer(ctx, server.ID)
}

// start starts a server. One that was deleted in Nova, or has failed there, is reported and left: it is mended when the environment is awake.
func (s sleeper) start(ctx context.Context, object *muranopl.Object, project *openstack.Project, server store.StoppedServer) error {
	state, err := project.Server(ctx, server.ID)
	switch {
	case err != nil:
		return err
	case state.Status == openstack.Gone, state.Status == "ERROR":
		s.reports.Warn(ctx, object, fmt.Sprintf("Server %s (%s) does not wake: it is %s", server.Name, server.ID, state), "Deploy the environment when it is awake: that mends it, or names the remedy.")
		return nil
	}
	if err := project.StartServer(ctx, server.ID); err != nil {
		return fmt.Errorf("%w. Start it in Nova, or delete it there, and wake the environment again", err)
	}
	return nil
}

// each does a step with each server, some at a time, and joins the errors.
func (s sleeper) each(ctx context.Context, object *muranopl.Object, servers []store.StoppedServer, name string,
	do func(context.Context, *muranopl.Object, *openstack.Project, store.StoppedServer) error) error {
	errs := make([]error, len(servers))
	places := make(chan struct{}, serversAtOnce)
	var all sync.WaitGroup
	for i, server := range servers {
		all.Go(func() {
			errs[i] = panics.Run(func() error {
				places <- struct{}{}
				defer func() { <-places }()
				return s.runtime.Step(ctx, object, clusters.StepName(server.Name, name), func(ctx context.Context) error {
					limited, cancel := stacks.Limit(ctx, s.clusters.Settings.ServerPatience)
					defer cancel()
					project, err := s.reach(limited, server.Region)
					if err != nil {
						return err
					}
					return do(limited, object, project, server)
				})
			})
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// wake starts the servers that the hibernation has stopped, masters first, and waits until the clusters and their pods answer. When all servers were started the environment is
// awake: a cluster that does not come up then is mended as any other.
func (s sleeper) wake(ctx context.Context, call muranopl.Call) (any, error) {
	defer s.clusters.Close()
	former, err := s.runtime.Hibernation(ctx)
	if err != nil {
		return nil, err
	}
	since := former.Changed.Time().Add(-skew)
	if former.State == store.Awake {
		if former.TaskID != s.runtime.TaskID() {
			s.reports.Inform(ctx, call.Object, "The environment is awake already")
			return nil, nil
		}
		since = time.Time{} // the task was interrupted when the servers ran
	} else {
		if err := s.runtime.SetHibernation(ctx, store.Waking, nil); err != nil {
			return nil, err
		}
		masters := inTurn(former.Servers, hibernation.Turns-1)
		others := slices.DeleteFunc(slices.Clone(former.Servers), func(one store.StoppedServer) bool { return slices.Contains(masters, one) })
		for _, list := range [][]store.StoppedServer{masters, others} {
			if err := s.each(ctx, call.Object, list, "start", s.start); err != nil {
				return nil, err
			}
		}
		if err := s.runtime.SetHibernation(ctx, store.Awake, nil); err != nil {
			return nil, err
		}
	}
	err = task.Each(s.clusters.Objects.Clusters(), func(cluster *muranopl.Object) error { return s.wakeCluster(ctx, cluster, since) })
	if err != nil {
		return nil, err
	}
	if err := clusters.AnswersAwaitedOf(s.clusters).AwaitAnswers(ctx); err != nil {
		return nil, err
	}
	s.reports.Inform(ctx, call.Object, "The environment is awake")
	return nil, nil
}

// wakeCluster brings a cluster up as it was deployed last, with new certificates in place of those that ended or end soon, and waits for its pods.
func (s sleeper) wakeCluster(ctx context.Context, object *muranopl.Object, since time.Time) error {
	facts, err := s.clusters.Facts(ctx, object)
	if err != nil || facts == nil {
		return err
	}
	s.clusters.UseFacts(object, facts)
	live, err := clusters.ConnectionsOf(s.clusters).Connect(ctx, object, facts.Nodes)
	if err != nil {
		return err
	}
	if err := live.Deploy(ctx); err != nil {
		return err
	}
	if task.OnlyGateways(object) {
		return nil
	}
	if err := s.runtime.Step(ctx, object, "wait for the pods", func(ctx context.Context) error { return s.awaitPods(ctx, object, live, since) }); err != nil {
		return err
	}
	var ports []uint16
	asked, cancel := context.WithTimeout(ctx, known.AnswerPatience)
	defer cancel()
	for _, route := range live.Status(asked, nil).Routes {
		if len(route.Backends) > 0 {
			ports = append(ports, route.GatewayPort)
		}
	}
	s.clusters.Await(object, ports...)
	return nil
}

// awaitPods waits until the pods of a cluster are ready again, since a time. Pods that are not ready in time are a warning: they may have been so before.
func (s sleeper) awaitPods(ctx context.Context, object *muranopl.Object, live *nodes.Cluster, since time.Time) error {
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, podsPatience)
	defer cancel()
	var missing []string
	err = wait.Every(podsLook).Until(limited, func(ctx context.Context) error {
		list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return wait.Again(err)
		}
		if missing = asleep(list.Items, since); len(missing) > 0 {
			return wait.Again(fmt.Errorf("%d pods are not ready", len(missing)))
		}
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		s.reports.Warn(ctx, object, fmt.Sprintf("Not all pods of cluster %s are ready yet after %s", object.Text("name"), podsPatience),
			fmt.Sprintf("%v: %s", err, strings.Join(missing[:min(len(missing), podsNamed)], ", ")))
	}
	return nil
}

// asleep are the pods that run for good and are not ready, or were last started before a time.
func asleep(pods []corev1.Pod, since time.Time) []string {
	missing := map[string]bool{}
	for _, pod := range pods {
		name := pod.Namespace + "/" + pod.Name
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		ofJob := slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool { return owner.Kind == "Job" })
		if pod.DeletionTimestamp != nil || finished || ofJob {
			continue
		}
		if !kube.PodIsReady(&pod) {
			missing[name] = true
		}
		for _, container := range pod.Status.ContainerStatuses {
			if container.State.Running == nil || container.State.Running.StartedAt.Time.Before(since) {
				missing[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}
