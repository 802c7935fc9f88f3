package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// UnusedClaims are the claims that Burano has made for an object, and that no pod and no workload mounts, the oldest first.
func UnusedClaims(ctx context.Context, config *rest.Config) ([]corev1.PersistentVolumeClaim, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return unusedClaims(ctx, client)
}

func unusedClaims(ctx context.Context, client kubernetes.Interface) ([]corev1.PersistentVolumeClaim, error) {
	all := metav1.ListOptions{}
	claims, err := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: LabelObject})
	if err != nil || len(claims.Items) == 0 {
		return nil, err
	}
	// What makes pods is read before pods: a pod that is made in between is in the second list.
	specs := map[string][]corev1.PodSpec{} // by namespace
	var sets []string                      // beginnings of the names of claims, with their namespaces
	deployments, err1 := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, all)
	stateful, err2 := client.AppsV1().StatefulSets(metav1.NamespaceAll).List(ctx, all)
	daemons, err3 := client.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, all)
	crons, err4 := client.BatchV1().CronJobs(metav1.NamespaceAll).List(ctx, all)
	jobs, err5 := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, all)
	pods, err6 := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, all)
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, fmt.Errorf("look for what uses claims: %w", err)
	}
	for _, one := range deployments.Items {
		specs[one.Namespace] = append(specs[one.Namespace], one.Spec.Template.Spec)
	}
	for _, one := range stateful.Items {
		specs[one.Namespace] = append(specs[one.Namespace], one.Spec.Template.Spec)
		for _, template := range one.Spec.VolumeClaimTemplates {
			sets = append(sets, one.Namespace+"/"+template.Name+"-"+one.Name+"-")
		}
	}
	for _, one := range daemons.Items {
		specs[one.Namespace] = append(specs[one.Namespace], one.Spec.Template.Spec)
	}
	for _, one := range crons.Items {
		specs[one.Namespace] = append(specs[one.Namespace], one.Spec.JobTemplate.Spec.Template.Spec)
	}
	for _, one := range jobs.Items {
		specs[one.Namespace] = append(specs[one.Namespace], one.Spec.Template.Spec)
	}
	for _, one := range pods.Items {
		specs[one.Namespace] = append(specs[one.Namespace], one.Spec)
	}
	used := map[string]bool{}
	for namespace, all := range specs {
		for _, spec := range all {
			for _, volume := range spec.Volumes {
				if volume.PersistentVolumeClaim != nil {
					used[namespace+"/"+volume.PersistentVolumeClaim.ClaimName] = true
				}
			}
		}
	}
	unused := slices.DeleteFunc(claims.Items, func(claim corev1.PersistentVolumeClaim) bool {
		name := claim.Namespace + "/" + claim.Name
		return claim.DeletionTimestamp != nil || used[name] || slices.ContainsFunc(sets, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	})
	slices.SortFunc(unused, func(a, b corev1.PersistentVolumeClaim) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return unused, nil
}

// DeleteUnusedClaim deletes a claim that UnusedClaims has found, and no other one of its name.
func DeleteUnusedClaim(ctx context.Context, config *rest.Config, claim corev1.PersistentVolumeClaim) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	err = client.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
	if err != nil {
		return fmt.Errorf("delete claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}
