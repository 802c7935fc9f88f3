package workloads

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/orchestrator/known"
)

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
	return crashesIn(ctx, client, func(ctx context.Context, pod string, one obstacle) (string, error) {
		return rolloutOf(api, client, podSpec{id: pod}).lastOf(ctx, one)
	})
}

// crashesIn is Crashes. lastOf reads the last lines about an obstacle of a pod.
func crashesIn(ctx context.Context, client kubernetes.Interface, lastOf func(ctx context.Context, pod string, one obstacle) (string, error)) (found []Crash, err error) {
	pods, err := client.CoreV1().Pods(known.Namespace).List(ctx, metav1.ListOptions{LabelSelector: LabelPod})
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
			if crash.LastLines, err = lastOf(ctx, crash.ObjectID, one); err != nil {
				crash.LastLines = fmt.Sprintf("its log cannot be read: %v", err)
			}
			crash.LastLines = cmp.Or(crash.LastLines, "it wrote none")
			found = append(found, crash)
		}
	}
	return found, nil
}
