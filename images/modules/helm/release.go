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
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
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

// Annotations by which Helm recognises a release's objects.
const (
	annotationName      = "meta.helm.sh/release-name"
	annotationNamespace = "meta.helm.sh/release-namespace"
)

// mostRevisions is the number of stored revisions of a release, as in Helm's program.
const mostRevisions = 10

// releases are the revisions of one name and namespace.
type releases struct {
	asked   request
	timeout time.Duration
	config  *action.Configuration
	waits   []kube.WaitOption // of Helm's waits: when they end
	logs    bytes.Buffer
}

// history returns the revisions, for the holder of the release's lock: no other program works on it, so an unfinished one was interrupted, and has failed.
func (r *releases) history() ([]*releasev1.Release, error) {
	list, err := r.revisions()
	if err != nil || len(list) == 0 || !list[0].Info.Status.IsPending() {
		return list, err
	}
	list[0].Info.Status, list[0].Info.Description = common.StatusFailed, "It was broken off"
	if err := r.config.Releases.Update(list[0]); err != nil {
		return nil, fmt.Errorf("note that revision %d was broken off: %w", list[0].Version, err)
	}
	return list, nil
}

// revisions returns the revisions of the release, the newest first; none for no release. A release of another owner is an error.
func (r *releases) revisions() ([]*releasev1.Release, error) {
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
	return list, nil
}

// replaced is Helm's description of a failed install that another one has replaced; its status is superseded, as of a revision that ran before.
const replaced = "superseded by new release"

// ran reports whether a revision came up.
func ran(release *releasev1.Release) bool {
	return release.Info.Status == common.StatusDeployed || release.Info.Status == common.StatusSuperseded && release.Info.Description != replaced
}

// read reads the chart, and computes the digest of the request.
func (r *releases) read() (loaded *chartv2.Chart, digest string, err error) {
	if loaded, err = loader.LoadArchive(bytes.NewReader(r.asked.Chart)); err != nil {
		return nil, "", fmt.Errorf("read the chart: %w", err)
	}
	if err := loaded.Validate(); err != nil {
		return nil, "", fmt.Errorf("read the chart: %w", err)
	}
	if err := action.CheckDependencies(loaded, dependencies(loaded)); err != nil {
		return nil, "", fmt.Errorf("the chart lacks parts, which belong into its folder charts: %w", err)
	}
	digest, err = r.digest()
	return loaded, digest, err
}

// unchanged reports whether a revision runs, and has this chart and these values.
func unchanged(release *releasev1.Release, digest string) bool {
	return release.Info.Status == common.StatusDeployed && release.Labels[labelDigest] == digest
}

// deploy installs the release, or upgrades it where chart or values are others. An install that failed is begun anew, with its hooks.
func (r *releases) deploy() (answer, error) {
	loaded, digest, err := r.read()
	if err != nil {
		return answer{}, err
	}
	list, err := r.history()
	if err != nil {
		return answer{}, err
	}
	if len(list) > 0 && unchanged(list[0], digest) {
		return describe(list[0]), nil
	}
	marks := map[string]string{labelOwner: r.asked.Owner, labelDigest: digest}
	if !slices.ContainsFunc(list, ran) {
		err = r.install(loaded, marks, list)
	} else {
		err = r.upgrade(loaded, marks)
	}
	if err == nil {
		err = r.clear(failures(list))
	}
	said, unknown := r.last()
	said.Changed = true
	return said, errors.Join(err, unknown)
}

func (r *releases) install(loaded *chartv2.Chart, marks map[string]string, failed []*releasev1.Release) error {
	install := r.newInstall()
	install.Replace, install.Labels = len(failed) > 0, marks
	_, err := install.Run(loaded, r.asked.Values)
	return err
}

func (r *releases) newInstall() *action.Install {
	install := action.NewInstall(r.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = r.asked.Name, r.asked.Namespace, true
	install.Timeout, install.WaitStrategy, install.WaitOptions, install.WaitForJobs = r.timeout, kube.StatusWatcherStrategy, r.waits, true
	return install
}

// failures are the revisions after the one that came up last.
func failures(list []*releasev1.Release) []*releasev1.Release {
	if i := slices.IndexFunc(list, ran); i >= 0 {
		return list[:i]
	}
	return list
}

// clear removes objects that revisions have made, or left, that the newest one does not have, and that no other owner has taken over. Helm itself
// considers only the newest revision and the one that ran before it.
func (r *releases) clear(former []*releasev1.Release) error {
	if len(former) == 0 {
		return nil
	}
	now, err := r.config.Releases.Last(r.asked.Name)
	if err != nil {
		return err
	}
	current, ok := now.(*releasev1.Release)
	if !ok {
		return nil
	}
	left, err := r.left(former, current)
	if err != nil {
		return err
	}
	return r.remove(left)
}

// left are the objects of former revisions that another one does not have.
func (r *releases) left(former []*releasev1.Release, current *releasev1.Release) (left kube.ResourceList, err error) {
	wanted, err := r.config.KubeClient.Build(bytes.NewBufferString(current.Manifest), false)
	if err != nil {
		return nil, fmt.Errorf("read what is installed: %w", err)
	}
	for _, one := range former {
		for _, manifest := range releaseutil.SplitManifests(one.Manifest) {
			had, err := r.config.KubeClient.Build(bytes.NewBufferString(manifest), false)
			if err != nil && strings.Contains(err.Error(), unknownKind) {
				continue // nothing of that kind can be there
			}
			if err != nil {
				return nil, fmt.Errorf("read what revision %d made: %w", one.Version, err)
			}
			left = append(left, had.Difference(wanted).Difference(left)...)
		}
	}
	return left, nil
}

// unknownKind is part of Helm's error for an object whose kind the cluster does not have.
const unknownKind = "no matches for kind"

// remove deletes the existing objects that belong to this release, except ones with the keep policy.
func (r *releases) remove(left kube.ResourceList) error {
	gone := left.Filter(func(info *resource.Info) bool {
		if err := info.Get(); err != nil {
			return false
		}
		object, err := meta.Accessor(info.Object)
		if err != nil {
			return false
		}
		marks := object.GetAnnotations()
		return marks[annotationName] == r.asked.Name && marks[annotationNamespace] == r.asked.Namespace && marks[kube.ResourcePolicyAnno] != kube.KeepPolicy
	})
	if len(gone) == 0 {
		return nil
	}
	_, failures := r.config.KubeClient.Delete(gone, metav1.DeletePropagationBackground)
	return errors.Join(failures...)
}

func (r *releases) upgrade(loaded *chartv2.Chart, marks map[string]string) error {
	upgrade := r.newUpgrade()
	upgrade.Labels = marks
	_, err := upgrade.Run(r.asked.Name, loaded, r.asked.Values)
	return err
}

func (r *releases) newUpgrade() *action.Upgrade {
	upgrade := action.NewUpgrade(r.config)
	upgrade.Namespace, upgrade.MaxHistory, upgrade.ResetValues = r.asked.Namespace, mostRevisions, true
	upgrade.Timeout, upgrade.WaitStrategy, upgrade.WaitOptions, upgrade.WaitForJobs = r.timeout, kube.StatusWatcherStrategy, r.waits, true
	return upgrade
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
	rollback.Timeout, rollback.WaitStrategy, rollback.WaitOptions, rollback.WaitForJobs = r.timeout, kube.StatusWatcherStrategy, r.waits, true
	if err = rollback.Run(r.asked.Name); err == nil {
		err = r.clear(failures(list))
	}
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
	uninstall.WaitOptions = r.waits
	left, err := r.left(list[1:], list[0])
	if err != nil {
		return answer{}, err
	}
	if _, err = uninstall.Run(r.asked.Name); err == nil {
		err = r.remove(left)
	}
	return answer{Changed: true}, err
}

func (r *releases) status() (answer, error) {
	list, err := r.revisions()
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

// unready returns the pods of the newest revision, and of its hooks, that are not ready. Unknown ones are left out: an error is reported already.
func (r *releases) unready() (list []corev1.Pod) {
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
				list = append(list, found.Items[i])
			}
		}
	}
	return list
}

// podsOf returns the selector of the pods of an object of a manifest.
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
