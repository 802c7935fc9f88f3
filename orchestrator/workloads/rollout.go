package workloads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/secret"
)

const (
	// rolloutLimit is how long a pod's replicas may take until they run.
	rolloutLimit = 5 * time.Minute
	// rolloutLook is how often the rollout looks for obstacles.
	rolloutLook = 2 * time.Second
	// imagePatience is how long a registry may not give an image.
	imagePatience = 45 * time.Second
	// othersPatience is how long a part may be missing that others can still provide: a dependency of a crashing container, an object that its
	// configuration names, room in a quota.
	othersPatience = 2 * time.Minute
	// crashes is how often at least a container has been started again before its rollout counts as failed.
	crashes = 3
	// lastLines and lastBytes bound an error's share of a container's log.
	lastLines = 20
	lastBytes = 4 << 10
)

// revisionLabels are the labels of pods that identify the form of their workload.
const (
	labelReplicaSet = appsv1.DefaultDeploymentUniqueLabelKey
	labelRevision   = appsv1.ControllerRevisionHashLabelKey
)

const (
	// annotationRevision numbers the forms of a Deployment.
	annotationRevision = "deployment.kubernetes.io/revision"
	// labelRan is on forms of a Deployment that were ready once: a rollback leaves others out. It is no annotation, since kubectl rollout undo
	// copies annotations to the Deployment, and each new form would have it.
	labelRan = "burano.io/ran"
	// annotationTried is on a ReplicaSet that was to be tried again: of which version it was.
	annotationTried = "burano.io/tried-again"
)

// obstacle keeps a pod from running.
type obstacle struct {
	pod, container string // the container may be ""
	kind           string // by which it is known again
	why            string
	patience       time.Duration // how long it may last; endless for an obstacle that may pass by itself within the limit
	wrote          bool          // whether the container's log has more about it
	previous       bool          // and whether that is the log of its former run
}

const endless = time.Duration(-1)

// ownLimit matches kubelets' messages about pods that they end for writing too much: their successors do so, too.
var ownLimit = regexp.MustCompile(`exceed(s|ed) (the|its) .*limit`)

func (o obstacle) String() string {
	if o.container == "" {
		return o.pod + ": " + o.why
	}
	return fmt.Sprintf("container %s of %s: %s", o.container, o.pod, o.why)
}

func inOneLine(obstacles []obstacle) string {
	var texts []string
	for _, one := range obstacles {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, "; ")
}

// rollout waits until pods run as they are wanted.
type rollout struct {
	api    *rest.Config
	client kubernetes.Interface
	spec   podSpec
	delays delays
	pods   labels.Set    // of the pods
	limit  time.Duration // how long they may take
	freed  bool          // pods of before were looked at
}

func newRollout(api *rest.Config, spec podSpec) (*rollout, error) {
	client, err := kubernetes.NewForConfig(api)
	return rolloutOf(api, client, spec), err
}

func rolloutOf(api *rest.Config, client kubernetes.Interface, spec podSpec) *rollout {
	return &rollout{api: api, client: client, spec: spec, pods: labels.Set{LabelPod: spec.id}, limit: rolloutLimit}
}

// failedRollout has the reasons why replicas do not run.
type failedRollout struct {
	pod       string
	obstacles []obstacle
	err       error
}

func (f *failedRollout) Error() string {
	why := "Kubernetes gives no reason"
	if len(f.obstacles) > 0 {
		why = inOneLine(f.obstacles)
	}
	return fmt.Sprintf("pod %s does not run: %s (%v)", f.pod, why, f.err)
}

func (f *failedRollout) Unwrap() error { return f.err }

var errHopeless = errors.New("it was given up: what is wrong does not pass by itself. Pods of before go on where there are any")

// wait returns when everything runs, or when it does not within the limit, or cannot.
func (r *rollout) wait(ctx context.Context) error {
	limited, cancel := context.WithTimeoutCause(ctx, r.limit, fmt.Errorf("it took longer than %s", r.limit))
	defer cancel()
	watched, giveUp := context.WithCancelCause(limited)
	looking := make(chan struct{})
	go func() {
		defer close(looking)
		_ = wait.Every(rolloutLook).Until(watched, func(ctx context.Context) error {
			if r.hopeless(ctx) {
				giveUp(errHopeless)
				return nil
			}
			return wait.Again(nil)
		})
	}()
	err := r.until(watched)
	cause := context.Cause(watched)
	giveUp(nil)
	<-looking
	if err == nil && r.keepsForms() {
		_ = r.noteRan(ctx) // without the note a rollback takes the form before the newest, whatever became of it
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if r.spec.options.kind == kindJob && cause != nil && !errors.Is(cause, errHopeless) {
		return errJobRuns
	}
	if cause != nil {
		err = cause
	}
	var found []obstacle
	pods, _, unknown := r.newest(ctx)
	if unknown == nil {
		found, unknown = r.obstacles(ctx, pods)
	}
	return &failedRollout{pod: r.spec.name, obstacles: found, err: errors.Join(err, unknown)}
}

// keepsForms is true if the pods belong to a Deployment.
func (r *rollout) keepsForms() bool {
	return r.spec.replicas > 0 && r.spec.options.kind == kindDeployment
}

// until waits for the workload of the pod's kind.
func (r *rollout) until(ctx context.Context) error {
	name := kubeName(r.spec.name)
	switch {
	case r.spec.options.kind == kindCronJob:
		return nil // its time comes
	case r.spec.options.kind == kindJob:
		return waitJob(ctx, r.client, r.spec.inNamespace(), name)
	case r.spec.options.kind == kindStatefulSet:
		return waitStatefulSet(ctx, r.client, r.spec.inNamespace(), name)
	case r.spec.options.kind == kindDaemonSet:
		return waitDaemonSet(ctx, r.client, r.spec.inNamespace(), name)
	case r.spec.replicas > 0:
		return waitDeployment(ctx, r.client, r.spec.inNamespace(), name)
	}
	if err := waitPods(ctx, r.client, r.spec.inNamespace(), labels.Set{LabelPod: r.spec.id}); err != nil {
		return err
	}
	lives := time.Duration(livesSeconds) * time.Second
	if seconds := r.spec.options.minReady; seconds != nil {
		lives = time.Duration(*seconds) * time.Second
	}
	return waitLives(ctx, r.client, r.spec.inNamespace(), labels.Set{LabelPod: r.spec.id}, lives)
}

// hopeless is true if there is a problem that does not pass by itself.
func (r *rollout) hopeless(ctx context.Context) bool {
	pods, known, err := r.newest(ctx)
	if err != nil || !known {
		return false
	}
	if !r.freed {
		r.freed = true
		r.free(ctx, pods)
		r.nudge(ctx)
		return false
	}
	found, err := r.obstacles(ctx, pods)
	if err != nil {
		return false
	}
	return r.delays.over(found, time.Now())
}

// delays has the begin of each obstacle.
type delays map[string]time.Time

// over is true if one of them has lasted longer than it may; obstacles that are not found any more are dropped.
func (d *delays) over(found []obstacle, now time.Time) bool {
	seen := delays{}
	over := false
	for _, one := range found {
		key := one.pod + " " + one.container + " " + one.kind
		first, ok := (*d)[key]
		if !ok {
			first = now
		}
		seen[key] = first
		over = over || one.patience != endless && now.Sub(first) >= one.patience
	}
	*d = seen
	return over
}

// free deletes pods of an earlier try in which no container has ever run, because the registry had not given their images. New pods ask the registry at
// once, and not after the minutes that the kubelet waits by now. Of a stateful set it deletes former pods that do not run: its controller would wait for
// them for ever.
func (r *rollout) free(ctx context.Context, pods []corev1.Pod) {
	if r.spec.options.kind == kindStatefulSet {
		r.freeSet(ctx, pods)
	}
	for i := range pods {
		statuses := slices.Concat(pods[i].Status.InitContainerStatuses, pods[i].Status.ContainerStatuses)
		refused, ran := false, false
		for _, status := range statuses {
			waiting := status.State.Waiting
			refused = refused || waiting != nil && waiting.Reason == "ImagePullBackOff"
			ran = ran || status.State.Running != nil || status.State.Terminated != nil || status.RestartCount > 0
		}
		if refused && !ran && metav1.GetControllerOf(&pods[i]) != nil {
			r.deletePod(ctx, &pods[i])
		}
	}
}

func (r *rollout) freeSet(ctx context.Context, newest []corev1.Pod) {
	all, err := listPods(ctx, r.client, r.spec, labels.Set{LabelPod: r.spec.id})
	if err != nil {
		return // the wait asks again
	}
	for i := range all {
		pod := &all[i]
		current := slices.ContainsFunc(newest, func(one corev1.Pod) bool { return one.UID == pod.UID })
		if !current && !kube.PodIsReady(pod) && pod.Labels[labelRevision] != "" {
			r.deletePod(ctx, pod)
		}
	}
}

// nudge has Kubernetes try again to make pods that it could not make, such as for a quota. After each failure it waits longer by itself, up to a quarter of
// an hour; any change of the ReplicaSet has it try at once.
func (r *rollout) nudge(ctx context.Context) {
	if !r.keepsForms() {
		return
	}
	deployment, err := r.client.AppsV1().Deployments(r.spec.inNamespace()).Get(ctx, kubeName(r.spec.name), metav1.GetOptions{})
	if err != nil || len(obstaclesOfDeployment(deployment)) == 0 {
		return
	}
	sets, err := r.revisions(ctx)
	if err != nil || len(sets) == 0 {
		return
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotationTried, sets[0].ResourceVersion)
	_, _ = r.client.AppsV1().ReplicaSets(r.spec.inNamespace()).Patch(ctx, sets[0].Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kube.Manager})
}

// deletePod deletes this very pod. The wait notices a failure.
func (r *rollout) deletePod(ctx context.Context, pod *corev1.Pod) {
	_ = r.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
}

// newest lists the pods that have the workload's newest form; known is false as long as its controller has not seen that.
func (r *rollout) newest(ctx context.Context) (newest []corev1.Pod, facts bool, err error) {
	mine := maps.Clone(r.pods)
	name := kubeName(r.spec.name)
	switch {
	case r.spec.options.kind == kindStatefulSet:
		set, err := r.client.AppsV1().StatefulSets(r.spec.inNamespace()).Get(ctx, name, metav1.GetOptions{})
		if err != nil || set.Status.ObservedGeneration < set.Generation {
			return nil, false, err
		}
		mine[labelRevision] = set.Status.UpdateRevision
	case r.spec.options.kind == kindDaemonSet:
		set, err := r.client.AppsV1().DaemonSets(r.spec.inNamespace()).Get(ctx, name, metav1.GetOptions{})
		if err != nil || set.Status.ObservedGeneration < set.Generation {
			return nil, false, err
		}
		revisions, err := r.client.AppsV1().ControllerRevisions(r.spec.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: mine.String()})
		if err != nil || len(revisions.Items) == 0 {
			return nil, false, err
		}
		newest := slices.MaxFunc(revisions.Items, func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
		mine[labelRevision] = newest.Labels[labelRevision]
	case r.keepsForms():
		deployment, err := r.client.AppsV1().Deployments(r.spec.inNamespace()).Get(ctx, name, metav1.GetOptions{})
		if err != nil || deployment.Status.ObservedGeneration < deployment.Generation {
			return nil, false, err
		}
		sets, err := r.revisions(ctx)
		if err != nil || len(sets) == 0 {
			return nil, false, err
		}
		mine[labelReplicaSet] = sets[0].Labels[labelReplicaSet]
	}
	pods, err := listPods(ctx, r.client, r.spec, mine)
	if err != nil {
		return nil, false, err
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			newest = append(newest, pod)
		}
	}
	return newest, true, nil
}

// listPods lists the running pods of a pod, with these labels.
func listPods(ctx context.Context, client kubernetes.Interface, pod podSpec, with labels.Set) ([]corev1.Pod, error) {
	pods, err := client.CoreV1().Pods(pod.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: with.String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", pod.name, err)
	}
	return pods.Items, nil
}

// revisions are the ReplicaSets of the pod's Deployment, the newest first.
func (r *rollout) revisions(ctx context.Context) ([]appsv1.ReplicaSet, error) {
	sets, err := r.client.AppsV1().ReplicaSets(r.spec.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{LabelPod: r.spec.id}.String()})
	if err != nil {
		return nil, fmt.Errorf("list the ReplicaSets of %s: %w", r.spec.name, err)
	}
	slices.SortFunc(sets.Items, func(a, b appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(b), revisionOf(a)) })
	return sets.Items, nil
}

func revisionOf(set appsv1.ReplicaSet) int64 {
	number, _ := strconv.ParseInt(set.Annotations[annotationRevision], 10, 64)
	return number
}

// noteRan notes of the newest form that it came up.
func (r *rollout) noteRan(ctx context.Context) error {
	sets, err := r.revisions(ctx)
	if err != nil || len(sets) == 0 || sets[0].Labels[labelRan] != "" {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"true"}}}`, labelRan)
	_, err = r.client.AppsV1().ReplicaSets(r.spec.inNamespace()).Patch(ctx, sets[0].Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kube.Manager})
	if err != nil {
		return fmt.Errorf("note that %s came up: %w", sets[0].Name, err)
	}
	return nil
}

// obstacles are the obstacles of the newest pods.
func (r *rollout) obstacles(ctx context.Context, pods []corev1.Pod) ([]obstacle, error) {
	noted, err := r.client.CoreV1().Events(r.spec.inNamespace()).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,type=Warning"})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	slices.SortStableFunc(noted.Items, func(a, b corev1.Event) int { return kube.EventTime(a).Compare(kube.EventTime(b)) })
	var found []obstacle
	for i := range pods {
		found = append(found, obstaclesOf(&pods[i], noted.Items)...)
	}
	if r.keepsForms() {
		deployment, err := r.client.AppsV1().Deployments(r.spec.inNamespace()).Get(ctx, kubeName(r.spec.name), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return found, fmt.Errorf("read Deployment %s: %w", r.spec.name, err)
		}
		if err == nil {
			found = append(found, obstaclesOfDeployment(deployment)...)
		}
	}
	return found, nil
}

// obstaclesOfJob are the obstacles, present or past, of one Job's pods.
func (r *rollout) obstaclesOfJob(ctx context.Context, name string) ([]obstacle, error) {
	pods, err := listPods(ctx, r.client, r.spec, labels.Set{LabelPod: r.spec.id, batchv1.JobNameLabel: name})
	if err != nil {
		return nil, err
	}
	return r.obstacles(ctx, pods)
}

// obstaclesOfDeployment are the reasons why no pods are made.
func obstaclesOfDeployment(deployment *appsv1.Deployment) []obstacle {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			why := "Kubernetes makes no pod: " + condition.Message
			if strings.Contains(condition.Message, "exceeded quota") {
				why = "the quota of the namespace has no room for a pod: " + condition.Message
			}
			return []obstacle{{pod: deployment.Name, kind: "quota", why: why, patience: othersPatience}}
		}
	}
	return nil
}

// obstaclesOf are the obstacles of a pod; warnings are events, the newest last.
func obstaclesOf(pod *corev1.Pod, warnings []corev1.Event) (found []obstacle) {
	warned := func(reason, has string) string {
		for _, event := range slices.Backward(warnings) {
			if event.InvolvedObject.UID == pod.UID && event.Reason == reason && strings.Contains(event.Message+event.InvolvedObject.FieldPath, has) {
				return event.Message
			}
		}
		return ""
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		one := obstacle{pod: pod.Name, kind: "ended", why: fmt.Sprintf("it was ended: %s %s", pod.Status.Reason, pod.Status.Message), patience: endless}
		if ownLimit.MatchString(pod.Status.Message) {
			one.patience = othersPatience
		}
		return []obstacle{one}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			why := "no node can take it: " + condition.Message
			if strings.Contains(condition.Message, "free ports") {
				why = "a port that it wants of its node is another's on every node: " + condition.Message
			}
			return []obstacle{{pod: pod.Name, kind: "unschedulable", why: why, patience: endless}}
		}
	}
	for i, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		one := obstacle{pod: pod.Name, container: status.Name, patience: endless}
		waiting, last := status.State.Waiting, status.LastTerminationState.Terminated
		if status.State.Terminated != nil {
			last = status.State.Terminated
		}
		switch {
		case waiting != nil && (waiting.Reason == "InvalidImageName" || waiting.Reason == "ErrImageNeverPull"):
			one.kind, one.why, one.patience = "image", fmt.Sprintf("its image %s cannot be had: %s", status.Image, waiting.Message), 0
		case waiting != nil && (waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff"):
			one.kind, one.why, one.patience = "image", fmt.Sprintf("its image %s cannot be pulled: %s", status.Image, waiting.Message), imagePatience
		case waiting != nil && strings.HasSuffix(waiting.Reason, "Error"):
			one.kind, one.why, one.patience = "config", "it cannot be started: "+waiting.Reason+" "+waiting.Message, othersPatience
		case last != nil && (last.ExitCode != 0 || i >= len(pod.Status.InitContainerStatuses) && status.State.Running == nil) && !status.Ready && pod.Status.Phase != corev1.PodSucceeded:
			one.kind, one.wrote = "crash", true
			one.previous = status.State.Terminated == nil
			switch last.Reason {
			case "OOMKilled":
				one.why = fmt.Sprintf("it used more memory than its limit (exit code %d, OOMKilled)", last.ExitCode)
			case "ContainerCannotRun", "StartError":
				one.why, one.wrote = "it cannot be started: "+last.Message, false
			default:
				one.why = fmt.Sprintf("it ended with exit code %d (%s)", last.ExitCode, last.Reason)
			}
			if status.RestartCount > 0 {
				one.why += fmt.Sprintf(", and was started again %d times", status.RestartCount)
			}
			if probe := warned("Unhealthy", "Liveness probe failed"); probe != "" {
				one.why += "; " + probe
			} else if probe := warned("Unhealthy", "Startup probe failed"); probe != "" {
				one.why += "; " + probe
			}
			if with := shares(pod, status.Name); with != "" {
				one.why += "; " + with
			}
			if status.RestartCount >= crashes && status.State.Running == nil {
				one.patience = othersPatience
			}
		case status.State.Running != nil && !status.Ready && i >= len(pod.Status.InitContainerStatuses):
			one.kind, one.wrote = "probe", true
			one.why = cmp.Or(warned("Unhealthy", "Startup probe failed"), warned("Unhealthy", "Liveness probe failed"), warned("Unhealthy", "Readiness probe failed"), "its readiness probe has not succeeded")
			one.why = "it runs, but is not ready: " + strings.TrimSpace(one.why)
		case waiting != nil && waiting.Reason != "PodInitializing":
			one.kind = "waits"
			one.why = strings.TrimSpace(fmt.Sprintf("it waits: %s %s", waiting.Reason, waiting.Message))
			for _, reason := range []string{"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"} {
				if message := warned(reason, ""); message != "" {
					one.why += ": " + message
					break
				}
			}
		default:
			continue
		}
		found = append(found, one)
	}
	return found
}

// shares is the other container of the pod with the same port: the second to listen on it fails.
func shares(pod *corev1.Pod, name string) string {
	ports := func(container corev1.Container) map[string]bool {
		named := map[string]bool{}
		for _, port := range container.Ports {
			named[fmt.Sprintf("%d/%s", port.ContainerPort, port.Protocol)] = true
		}
		return named
	}
	i := slices.IndexFunc(pod.Spec.Containers, func(container corev1.Container) bool { return container.Name == name })
	if i < 0 {
		return ""
	}
	mine := ports(pod.Spec.Containers[i])
	for j, other := range pod.Spec.Containers {
		for port := range ports(other) {
			if i != j && mine[port] {
				return fmt.Sprintf("container %s of the same pod names port %s as well, and only one can listen on it", other.Name, port)
			}
		}
	}
	return ""
}

// lastOf reads the last lines of the log about an obstacle.
func (r *rollout) lastOf(ctx context.Context, one obstacle) (string, error) {
	facts, err := knownOf(ctx, r.client, r.spec)
	if err != nil {
		return "", err
	}
	text, err := readLast(ctx, r.api, kube.Log{Namespace: r.spec.inNamespace(), Pod: one.pod, Container: one.container, Tail: lastLines, Previous: one.previous}, lastBytes)
	return facts.Hide(text), err
}

// knownOf are the secrets of a pod, which are masked in its containers' output.
func knownOf(ctx context.Context, client kubernetes.Interface, pod podSpec) (*secret.Known, error) {
	secrets, err := client.CoreV1().Secrets(pod.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{LabelPod: pod.id}.String()})
	if err != nil {
		return nil, fmt.Errorf("list the pod's Secrets: %w", err)
	}
	others, err := foreignSecrets(ctx, client, pod)
	if err != nil {
		return nil, err
	}
	known := &secret.Known{}
	for _, one := range slices.Concat(secrets.Items, others) {
		for _, value := range one.Data {
			known.Add(string(value))
		}
	}
	return known, nil
}

// foreignSecrets are the Secrets of a pod's variables that others made. A missing one has no secret.
func foreignSecrets(ctx context.Context, client kubernetes.Interface, pod podSpec) (found []corev1.Secret, err error) {
	pods, err := client.CoreV1().Pods(pod.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{LabelPod: pod.id}.String()})
	if err != nil {
		return nil, fmt.Errorf("list the pod's replicas: %w", err)
	}
	asked := map[string]bool{}
	for _, one := range pods.Items {
		for _, container := range slices.Concat(one.Spec.InitContainers, one.Spec.Containers) {
			for _, variable := range container.Env {
				if variable.ValueFrom == nil || variable.ValueFrom.SecretKeyRef == nil || asked[variable.ValueFrom.SecretKeyRef.Name] {
					continue
				}
				name := variable.ValueFrom.SecretKeyRef.Name
				asked[name] = true
				secret, err := client.CoreV1().Secrets(pod.inNamespace()).Get(ctx, name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					continue
				}
				if err != nil {
					return nil, fmt.Errorf("read Secret %s: %w", name, err)
				}
				if secret.Labels[LabelPod] != pod.id {
					found = append(found, *secret)
				}
			}
		}
	}
	return found, nil
}

// readLast reads the last lines of a log, as many as have room in so many bytes.
func readLast(ctx context.Context, api *rest.Config, log kube.Log, limit int) (string, error) {
	var lines []string
	size := 0
	err := kube.ReadLog(ctx, api, log, func(line kube.LogLine) error {
		text := line.Text
		if len(text) > limit {
			text = strings.ToValidUTF8(text[:limit-1], "")
		}
		lines, size = append(lines, text), size+len(text)+1
		for size > limit && len(lines) > 1 {
			size -= len(lines[0]) + 1
			lines = lines[1:]
		}
		return nil
	})
	return strings.Join(lines, "\n"), err
}

// errJobRuns is the error of a wait for a Job that has not ended.
var errJobRuns = errors.New("the job has not ended")

// ended returns the error of a Job that has failed, and errJobRuns for one that runs.
func ended(job *batchv1.Job) error {
	switch end, message := endOf(job); end {
	case batchv1.JobComplete:
		return nil
	case batchv1.JobFailed:
		return fmt.Errorf("the job has failed: %s", message)
	}
	return errJobRuns
}

// Crash is a container of a pod of the catalog that ends again and again.
type Crash struct {
	ObjectID  string // of the KubernetesPod
	Subject   string // container NAME of the pod's first label "id": replicas of a pod are one
	Why       string // in a sentence, with the replica
	LastLines string // secrets are masked
}

// mostCrashes is how many containers of a cluster are found.
const mostCrashes = 10

// Crashes finds the containers of a cluster's pods that end again and again, each once for all replicas.
func Crashes(ctx context.Context, api *rest.Config) ([]Crash, error) {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return nil, err
	}
	return crashesIn(ctx, client, func(ctx context.Context, pod podSpec, one obstacle) (string, error) {
		return rolloutOf(api, client, pod).lastOf(ctx, one)
	})
}

// crashesIn is Crashes. lastOf reads the last lines about an obstacle of a pod.
func crashesIn(ctx context.Context, client kubernetes.Interface, lastOf func(ctx context.Context, pod podSpec, one obstacle) (string, error)) (found []Crash, err error) {
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: LabelPod})
	if err != nil {
		return nil, fmt.Errorf("list the pods of applications: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			continue // a job ends with its own error
		}
		for _, one := range obstaclesOf(pod, nil) {
			crash := Crash{ObjectID: pod.Labels[LabelPod], Subject: fmt.Sprintf("container %s of pod %s", one.container, pod.Labels["id"]), Why: one.String()}
			same := func(other Crash) bool { return other.ObjectID == crash.ObjectID && other.Subject == crash.Subject }
			if one.kind != "crash" || one.patience == endless || slices.ContainsFunc(found, same) || len(found) == mostCrashes {
				continue
			}
			if crash.LastLines, err = lastOf(ctx, podSpec{id: crash.ObjectID, namespace: pod.Namespace}, one); err != nil {
				crash.LastLines = fmt.Sprintf("its log cannot be read: %v", err)
			}
			crash.LastLines = cmp.Or(crash.LastLines, "it wrote none")
			found = append(found, crash)
		}
	}
	return found, nil
}
