package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
)

// Labels of a release: whose it is, and a digest of chart and values, by which it is seen that nothing is to change.
const (
	labelOwner  = "burano.io/id"
	labelDigest = "burano.io/digest"
)

// mostRevisions of a release are kept, as Helm's program keeps them.
const mostRevisions = 10

// releases are those of one name and namespace.
type releases struct {
	asked   request
	timeout time.Duration
	config  *action.Configuration
	logs    bytes.Buffer
}

// history are the revisions, the newest first; none for no release. One of somebody else's is an error. Nobody else works on the release: its
// lock is held. So what began and did not end was broken off, and has failed.
func (r *releases) history() ([]*releasev1.Release, error) {
	kept, err := r.config.Releases.History(r.asked.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read release %s: %w", r.asked.Name, err)
	}
	var list []*releasev1.Release
	for _, one := range kept {
		if release, ok := one.(*releasev1.Release); ok {
			list = append(list, release)
		}
	}
	slices.SortFunc(list, func(a, b *releasev1.Release) int { return b.Version - a.Version })
	if len(list) == 0 {
		return nil, nil
	}
	if list[0].Labels[labelOwner] != r.asked.Owner {
		return nil, fmt.Errorf("namespace %s has a release %s that this application did not make: give the application another name or namespace, "+
			"or uninstall that release", r.asked.Namespace, r.asked.Name)
	}
	if list[0].Info.Status.IsPending() {
		list[0].Info.Status, list[0].Info.Description = common.StatusFailed, "It was broken off"
		if err := r.config.Releases.Update(list[0]); err != nil {
			return nil, fmt.Errorf("note that revision %d was broken off: %w", list[0].Version, err)
		}
	}
	return list, nil
}

// replaced is what Helm says of a failed install that another one has taken the place of; it calls that superseded, as what ran before.
const replaced = "superseded by new release"

// ran tells whether a revision came up.
func ran(release *releasev1.Release) bool {
	return release.Info.Status == common.StatusDeployed || release.Info.Status == common.StatusSuperseded && release.Info.Description != replaced
}

// deploy installs the release, or upgrades it where chart or values are others. An install that failed is begun anew, with its hooks.
func (r *releases) deploy() (answer, error) {
	loaded, err := loader.LoadArchive(bytes.NewReader(r.asked.Chart))
	if err != nil {
		return answer{}, fmt.Errorf("read the chart: %w", err)
	}
	if err := loaded.Validate(); err != nil {
		return answer{}, fmt.Errorf("read the chart: %w", err)
	}
	if err := action.CheckDependencies(loaded, dependencies(loaded)); err != nil {
		return answer{}, fmt.Errorf("the chart lacks parts, which belong into its folder charts: %w", err)
	}
	digest, err := r.digest()
	if err != nil {
		return answer{}, err
	}
	list, err := r.history()
	if err != nil {
		return answer{}, err
	}
	if len(list) > 0 && list[0].Info.Status == common.StatusDeployed && list[0].Labels[labelDigest] == digest {
		return describe(list[0]), nil
	}
	marks := map[string]string{labelOwner: r.asked.Owner, labelDigest: digest}
	if !slices.ContainsFunc(list, ran) {
		err = r.install(loaded, marks, list)
	} else {
		err = r.upgrade(loaded, marks)
	}
	said, unknown := r.last()
	said.Changed = true
	return said, errors.Join(err, unknown)
}

func (r *releases) install(loaded *chartv2.Chart, marks map[string]string, failed []*releasev1.Release) error {
	install := action.NewInstall(r.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = r.asked.Name, r.asked.Namespace, true
	install.Replace = len(failed) > 0
	install.Labels, install.Timeout, install.WaitStrategy, install.WaitForJobs = marks, r.timeout, kube.StatusWatcherStrategy, true
	if _, err := install.Run(loaded, r.asked.Values); err != nil {
		return err
	}
	if len(failed) > 0 {
		return r.clear(failed[0])
	}
	return nil
}

// clear removes what a failed install has made and the one after it does not have.
func (r *releases) clear(failed *releasev1.Release) error {
	now, err := r.config.Releases.Last(r.asked.Name)
	if err != nil {
		return err
	}
	current, ok := now.(*releasev1.Release)
	if !ok {
		return nil
	}
	before, err := r.config.KubeClient.Build(bytes.NewBufferString(failed.Manifest), false)
	if err != nil {
		return fmt.Errorf("read what the failed install made: %w", err)
	}
	wanted, err := r.config.KubeClient.Build(bytes.NewBufferString(current.Manifest), false)
	if err != nil {
		return fmt.Errorf("read what is installed: %w", err)
	}
	gone := before.Difference(wanted).Filter(func(info *resource.Info) bool {
		object, err := meta.Accessor(info.Object)
		return err == nil && object.GetAnnotations()[kube.ResourcePolicyAnno] != kube.KeepPolicy
	})
	if len(gone) == 0 {
		return nil
	}
	_, failures := r.config.KubeClient.Delete(gone, metav1.DeletePropagationBackground)
	return errors.Join(failures...)
}

func (r *releases) upgrade(loaded *chartv2.Chart, marks map[string]string) error {
	upgrade := action.NewUpgrade(r.config)
	upgrade.Namespace, upgrade.MaxHistory, upgrade.ResetValues = r.asked.Namespace, mostRevisions, true
	upgrade.Labels, upgrade.Timeout, upgrade.WaitStrategy, upgrade.WaitForJobs = marks, r.timeout, kube.StatusWatcherStrategy, true
	_, err := upgrade.Run(r.asked.Name, loaded, r.asked.Values)
	return err
}

// rollback goes back to the revision that came up last before the newest.
func (r *releases) rollback() (answer, error) {
	list, err := r.history()
	if err != nil {
		return answer{}, err
	}
	if len(list) == 0 {
		return answer{}, fmt.Errorf("there is no release %s: deploy the environment", r.asked.Name)
	}
	i := slices.IndexFunc(list[1:], ran)
	if i < 0 {
		return describe(list[0]), fmt.Errorf("no revision of release %s before revision %d came up: there is nothing to go back to", r.asked.Name, list[0].Version)
	}
	target := list[1+i]
	rollback := action.NewRollback(r.config)
	rollback.Version, rollback.MaxHistory = target.Version, mostRevisions
	rollback.Timeout, rollback.WaitStrategy, rollback.WaitForJobs = r.timeout, kube.StatusWatcherStrategy, true
	err = rollback.Run(r.asked.Name)
	said, unknown := r.last()
	said.Changed, said.Back, said.OtherChart = true, target.Version, !sameChart(list[0], target)
	return said, errors.Join(err, unknown)
}

func (r *releases) uninstall() (answer, error) {
	list, err := r.history()
	if err != nil || len(list) == 0 {
		return answer{}, err
	}
	uninstall := action.NewUninstall(r.config)
	uninstall.IgnoreNotFound, uninstall.Timeout, uninstall.WaitStrategy = true, r.timeout, kube.StatusWatcherStrategy
	_, err = uninstall.Run(r.asked.Name)
	return answer{Changed: true}, err
}

func (r *releases) status() (answer, error) {
	list, err := r.history()
	if err != nil || len(list) == 0 {
		return answer{}, err
	}
	return describe(list[0]), nil
}

// last describes the newest revision.
func (r *releases) last() (answer, error) {
	now, err := r.config.Releases.Last(r.asked.Name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return answer{}, nil
	}
	release, _ := now.(*releasev1.Release)
	if err != nil || release == nil {
		return answer{}, err
	}
	return describe(release), nil
}

func describe(release *releasev1.Release) answer {
	said := answer{Revision: release.Version, Status: string(release.Info.Status), Notes: release.Info.Notes, Values: release.Config}
	if release.Chart != nil && release.Chart.Metadata != nil {
		said.Chart, said.AppVersion = release.Chart.Metadata.Name+"-"+release.Chart.Metadata.Version, release.Chart.Metadata.AppVersion
	}
	return said
}

func sameChart(a, b *releasev1.Release) bool {
	one, err := json.Marshal(a.Chart)
	other, err2 := json.Marshal(b.Chart)
	return err == nil && err2 == nil && bytes.Equal(one, other)
}

// digest is of chart and values, short enough for a label.
func (r *releases) digest() (string, error) {
	values, err := json.Marshal(r.asked.Values)
	if err != nil {
		return "", err
	}
	chart := sha256.Sum256(r.asked.Chart)
	sum := sha256.Sum256(append(chart[:], values...))
	return hex.EncodeToString(sum[:20]), nil
}

func dependencies(loaded *chartv2.Chart) (list []chart.Dependency) {
	for _, one := range loaded.Metadata.Dependencies {
		list = append(list, one)
	}
	return list
}

// unready are the pods of the newest revision, and of its hooks, that are not ready. What cannot be found out is left out: an error is told already.
func (r *releases) unready() (list []pod) {
	now, err := r.config.Releases.Last(r.asked.Name)
	release, ok := now.(*releasev1.Release)
	if err != nil || !ok {
		return nil
	}
	client, err := r.config.KubernetesClientSet()
	if err != nil {
		return nil
	}
	manifests := release.Manifest
	for _, hook := range release.Hooks {
		manifests += "\n---\n" + hook.Manifest
	}
	resources, err := r.config.KubeClient.Build(bytes.NewBufferString(manifests), false)
	if err != nil {
		return nil
	}
	for _, info := range resources {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(info.Object)
		if err != nil {
			continue
		}
		which, has := podsOf(info.Mapping.GroupVersionKind.Kind, info.Name, object)
		if !has {
			continue
		}
		found, err := client.CoreV1().Pods(info.Namespace).List(context.Background(), which)
		if err != nil {
			continue
		}
		for i := range found.Items {
			if found.Items[i].DeletionTimestamp == nil && !isReady(&found.Items[i]) {
				list = append(list, pod{info.Namespace, found.Items[i].Name})
			}
		}
	}
	return list
}

// podsOf says which pods belong to an object of a manifest.
func podsOf(kind, name string, object map[string]any) (which metav1.ListOptions, has bool) {
	switch kind {
	case "Pod":
		which.FieldSelector = "metadata.name=" + name
	case "Job":
		which.LabelSelector = "batch.kubernetes.io/job-name=" + name
	case "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet":
		wanted, _, err := unstructured.NestedStringMap(object, "spec", "selector", "matchLabels")
		if err != nil || len(wanted) == 0 {
			return which, false
		}
		which.LabelSelector = labels.Set(wanted).String()
	default:
		return which, false
	}
	return which, true
}

func isReady(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}
