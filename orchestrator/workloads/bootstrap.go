package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
)

// bootstrap is a program with a container's image, environment and files that must end before, or after, the pods roll.
type bootstrap struct {
	EntryPoint []string          `json:"entryPoint"`
	Commands   []string          `json:"commands"`
	Env        map[string]string `json:"env"`
	Deadline   int64             `json:"deadline"` // seconds; 0: defaultDeadline
}

// phase is when a bootstrap runs.
type phase string

const (
	beforeRoll phase = "before"
	afterRoll  phase = "after"
)

const (
	// defaultDeadline is how long a bootstrap may take, in seconds.
	defaultDeadline = 3600
	// labelBootstrap is the phase of a bootstrap's Job.
	labelBootstrap = "burano.io/bootstrap"
	// labelBootstrapOf is the pod's id on the pods of a bootstrap. They have no LabelPod: Services and budgets would count them among the pod's replicas.
	labelBootstrapOf = "burano.io/bootstrap-of"
)

// bootstraps reads the bootstraps of a container.
func (v values) bootstraps() (map[phase]*bootstrap, error) {
	var found map[phase]*bootstrap
	for when, property := range map[phase]string{beforeRoll: "bootstrap", afterRoll: "bootstrapAfter"} {
		var one *bootstrap
		if err := v.kubernetes(property, &one); err != nil {
			return nil, fmt.Errorf("%s: write {entryPoint: [...], commands: [...], env: {...}, deadline: SECONDS}: %w", property, err)
		}
		if one == nil {
			continue
		}
		if len(one.EntryPoint)+len(one.Commands) == 0 || one.Deadline < 0 {
			return nil, fmt.Errorf("%s needs an entryPoint or commands that differ from the container's, and a deadline above 0 if it has one", property)
		}
		if found == nil {
			found = map[phase]*bootstrap{}
		}
		found[when] = one
	}
	return found, nil
}

// bootstrapJobs are the Jobs of a phase, one for each container that has a bootstrap. A Job mounts the files of its container, and no
// persistent volumes: the pods that serve meanwhile have these.
func (p podSpec) bootstrapJobs(containers []container, when phase) (jobs []*batchv1.Job) {
	for _, one := range containers {
		run := one.options.bootstraps[when]
		if run == nil {
			continue
		}
		own := one
		own.env = maps.Clone(one.env)
		maps.Copy(own.env, run.Env)
		built := own.build()
		built.LivenessProbe, built.ReadinessProbe, built.StartupProbe, built.Lifecycle = nil, nil, nil, nil
		if len(run.EntryPoint) > 0 {
			built.Command = run.EntryPoint
		}
		built.Args = run.Commands
		template := corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelBootstrapOf: p.id}},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: p.options.serviceAccount, NodeSelector: p.options.nodeSelector,
				Affinity: p.options.affinity, Tolerations: p.options.tolerations, SecurityContext: p.options.security},
		}
		own.volumes = maps.Clone(one.volumes)
		maps.DeleteFunc(own.volumes, func(_ string, mounted volume) bool { return mounted.options.claim != nil })
		p.mountVolumes(own, &built, &template.Spec, map[string]string{})
		p.mountFiles(one, &built, &template.Spec)
		template.Spec.Containers = []corev1.Container{built}
		once, never, failed := int32(1), int32(0), batchv1.Failed
		deadline := run.Deadline
		if deadline == 0 {
			deadline = defaultDeadline
		}
		job := &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			ObjectMeta: metav1.ObjectMeta{Name: kubeName(fmt.Sprintf("%.48s-%s", p.name+"-"+one.name, when)), Namespace: p.inNamespace(),
				Labels: map[string]string{LabelPod: p.id, labelContainer: kubeName(one.name), labelBootstrap: string(when)}},
			// Another try is begun by the next deployment, which sees the log of this one.
			Spec: batchv1.JobSpec{Parallelism: &once, Completions: &once, BackoffLimit: &never, ActiveDeadlineSeconds: &deadline,
				PodReplacementPolicy: &failed, Template: template},
		}
		// Another place for the pods, or their hardening, is no reason to run it again.
		job.Annotations = map[string]string{annotationDigest: digestOfJob(batchv1.JobSpec{
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: template.Spec.Containers, Volumes: template.Spec.Volumes}}})}
		job.Spec.Template.Spec.Containers = []corev1.Container{*built.DeepCopy()}
		harden(p, own, &job.Spec.Template.Spec.Containers[0])
		jobs = append(jobs, job)
	}
	return jobs
}

// runBootstraps runs the bootstraps of a phase, one after another, and returns when the last has succeeded. A bootstrap that has succeeded already runs
// again only with another image, environment, command or file; one that runs already is waited for.
func (p Pods) runBootstraps(ctx context.Context, pod *muranopl.Object, api *rest.Config, spec podSpec, containers []container, when phase) error {
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	for _, job := range spec.bootstrapJobs(containers, when) {
		if err := spec.applyJob(ctx, api, client, job); err != nil {
			return err
		}
		if err := p.waitBootstrap(ctx, pod, api, client, spec, job); err != nil {
			return err
		}
	}
	return nil
}

// waitBootstrap waits until the Job of a bootstrap has succeeded. The error of a failed one ends with its last lines.
func (p Pods) waitBootstrap(ctx context.Context, pod *muranopl.Object, api *rest.Config, client kubernetes.Interface, spec podSpec, job *batchv1.Job) error {
	now, err := client.BatchV1().Jobs(spec.inNamespace()).Get(ctx, job.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read Job %s: %w", job.Name, err)
	}
	if end, _ := endOf(now); end == batchv1.JobComplete {
		return nil
	}
	limit := time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second
	p.Reports.Inform(ctx, pod, "The bootstrap %s runs; its limit is %s", job.Name, limit)
	waiting := rolloutOf(api, client, podSpec{id: spec.id, name: job.Name, namespace: spec.namespace, options: podOptions{kind: kindJob}})
	waiting.pods = labels.Set{labelBootstrapOf: spec.id, batchv1.JobNameLabel: job.Name}
	waiting.limit = limit + time.Minute // Kubernetes ends it by itself
	err = waiting.wait(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	failure := fmt.Errorf("the bootstrap %s failed, so that nothing after it begins and former pods serve on", job.Name)
	var failed *failedRollout
	if !errors.As(err, &failed) {
		return errors.Join(failure, err)
	}
	failure = fmt.Errorf("%w: %w", failure, err)
	i := slices.IndexFunc(failed.obstacles, func(one obstacle) bool { return one.wrote })
	if i < 0 {
		return failure
	}
	text, unread := waiting.lastOf(ctx, failed.obstacles[i])
	if unread != nil {
		return errors.Join(failure, unread)
	}
	return fmt.Errorf("%w. Its last lines:\n%s", failure, text)
}
