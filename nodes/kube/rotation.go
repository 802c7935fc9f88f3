package kube

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/wait"
)

const (
	// rootConfigMap is the ConfigMap from which pods know the API server's authority: one in each namespace, made by the controller-manager.
	rootConfigMap = "kube-root-ca.crt"
	// annotationTrusts of a pod names the authorities that its programs know since they began.
	annotationTrusts = "burano.io/trusts"
	// rotationManager owns that annotation, so that applying a workload again, which does not have it, leaves it.
	rotationManager = "burano-rotation"
	// restartedAtOnce is how many workloads' pods are replaced at the same time.
	restartedAtOnce = 5
	rotationPoll    = 500 * time.Millisecond
	// endOfPods is how long replaced pods are waited for, which serve for some seconds after they were told to end.
	endOfPods = 30 * time.Second
	pageSize  = 500
)

// AwaitRoot waits until every namespace offers its pods these authorities (PEM), as the controller-manager is configured.
func AwaitRoot(ctx context.Context, config *rest.Config, authorities []byte) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	err = wait.Every(rotationPoll).Until(ctx, func(ctx context.Context) error {
		namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return wait.Again(err)
		}
		known, err := client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", rootConfigMap).String()})
		if err != nil {
			return wait.Again(err)
		}
		has := map[string]bool{}
		for _, one := range known.Items {
			has[one.Namespace] = one.Data["ca.crt"] == string(authorities)
		}
		for _, namespace := range namespaces.Items {
			if namespace.Status.Phase == corev1.NamespaceActive && !has[namespace.Name] {
				return wait.Again(fmt.Errorf("namespace %s does not have them yet", namespace.Name))
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("offer pods the authorities of Kubernetes (ConfigMap %s): %w", rootConfigMap, err)
	}
	return nil
}

// knowsRoot is true if a pod mounts the API server's authority that Kubernetes offers.
func knowsRoot(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		if volume.ConfigMap != nil && volume.ConfigMap.Name == rootConfigMap {
			return true
		}
		return volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
			return source.ConfigMap != nil && source.ConfigMap.Name == rootConfigMap
		})
	})
}

// RestartKnowing replaces the pods that may know a former authority of the API server: most programs read it once, when they begin. mark stands for the
// present authorities. The pods' Deployments, StatefulSets and DaemonSets replace them as at any change. RestartKnowing returns the number of these
// workloads, and the pods that no workload replaces.
func RestartKnowing(ctx context.Context, config *rest.Config, mark string) (count int, left []string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	began := metav1.Now()
	pods, err := unmarked(ctx, client, mark)
	if err != nil {
		return 0, nil, err
	}
	var owners []WorkloadRef
	for _, pod := range pods {
		owner, err := replacerOf(ctx, client, &pod)
		if err != nil {
			return 0, nil, err
		}
		if owner.Name != "" && !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	slices.SortFunc(owners, func(a, b WorkloadRef) int { return strings.Compare(a.String(), b.String()) })
	for some := range slices.Chunk(owners, restartedAtOnce) {
		if err := restartWorkloads(ctx, client, some, mark); err != nil {
			return 0, nil, err
		}
	}
	// API servers start again next, and gateways must know by then which pods have ended. A pod may take an hour to end: its Service has left it long before.
	_ = wait.Every(rotationPoll).For(endOfPods).Until(ctx, func(ctx context.Context) error {
		former, err := unmarked(ctx, client, mark)
		if err == nil && slices.ContainsFunc(former, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }) {
			return wait.Again(errors.New("former pods are still ending"))
		}
		return err
	})
	if pods, err = unmarked(ctx, client, mark); err != nil {
		return 0, nil, err
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && pod.CreationTimestamp.Before(&began) {
			left = append(left, pod.Namespace+"/"+pod.Name)
		}
	}
	return len(owners), left, nil
}

// mostGathered is how many bytes of a list that is read page by page may be kept.
const mostGathered = 64 << 20

// gathered counts the kept bytes of a list that an API server gives page by page, which may have no end.
type gathered struct {
	what  string
	bytes int
}

// take counts a page, with the bytes of text that are kept of its objects.
func (g *gathered) take(objects, text int) error {
	const each, object = 4 << 10, 512 // bytes that a page and an object of it count at least
	if g.bytes += each + objects*object + text; g.bytes > mostGathered {
		return &door.Exceeded{What: g.what, Bound: door.Bytes(mostGathered)}
	}
	return nil
}

// unmarked are the metadata of running pods that know the authority and do not have the mark.
func unmarked(ctx context.Context, client kubernetes.Interface, mark string) (list []corev1.Pod, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	kept := gathered{what: "the list of pods"}
	for {
		var page *corev1.PodList
		err := persist(ctx, func(ctx context.Context) (err error) {
			page, err = client.CoreV1().Pods("").List(ctx, options)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list the pods: %w", err)
		}
		text := 0
		for _, pod := range page.Items {
			ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
			if !ended && knowsRoot(&pod) && pod.Annotations[annotationTrusts] != mark {
				one := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp}}
				text += len(one.Namespace) + len(one.Name)
				if owner := metav1.GetControllerOf(&pod); owner != nil {
					one.OwnerReferences = []metav1.OwnerReference{*owner}
					text += owner.Size()
				}
				list = append(list, one)
			}
		}
		if err := kept.take(len(page.Items), text); err != nil {
			return nil, err
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return list, nil
		}
	}
}

// replacerOf is the workload that replaces a pod when its template changes; without a name where there is none.
func replacerOf(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) (WorkloadRef, error) {
	owner := metav1.GetControllerOf(pod)
	if owner != nil && owner.Kind == "ReplicaSet" {
		var set *appsv1.ReplicaSet
		err := persist(ctx, func(ctx context.Context) (err error) {
			set, err = client.AppsV1().ReplicaSets(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
			return err
		})
		if apierrors.IsNotFound(err) {
			return WorkloadRef{}, nil
		}
		if err != nil {
			return WorkloadRef{}, fmt.Errorf("look at ReplicaSet %s/%s: %w", pod.Namespace, owner.Name, err)
		}
		owner = metav1.GetControllerOf(set)
	}
	if owner == nil || !slices.Contains([]string{kindDeployment, kindStatefulSet, kindDaemonSet}, owner.Kind) {
		return WorkloadRef{}, nil
	}
	return WorkloadRef{Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name}, nil
}

func restartWorkloads(ctx context.Context, client kubernetes.Interface, list []WorkloadRef, mark string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]string{annotationTrusts: mark}}}}})
	if err != nil {
		return err
	}
	options := metav1.PatchOptions{FieldManager: rotationManager}
	for _, one := range list {
		err := persist(ctx, func(ctx context.Context) (err error) {
			switch one.Kind {
			case kindDeployment:
				_, err = client.AppsV1().Deployments(one.Namespace).Patch(ctx, one.Name, types.StrategicMergePatchType, patch, options)
			case kindStatefulSet:
				_, err = client.AppsV1().StatefulSets(one.Namespace).Patch(ctx, one.Name, types.StrategicMergePatchType, patch, options)
			default:
				_, err = client.AppsV1().DaemonSets(one.Namespace).Patch(ctx, one.Name, types.StrategicMergePatchType, patch, options)
			}
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("have the pods of %s replaced: %w", one, err)
		}
	}
	for _, one := range list {
		err := wait.Every(rotationPoll).Until(ctx, func(ctx context.Context) error {
			missing, err := replacing(ctx, client, one)
			if err != nil {
				return wait.Again(err)
			}
			if missing != "" {
				return wait.Again(fmt.Errorf("%s", missing))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("wait until the pods of %s are replaced: %w", one, err)
		}
	}
	return nil
}

// replacing describes what is missing until all pods of a workload have its newest template. It is "" for nothing, and for a workload that does not
// replace its pods by itself.
func replacing(ctx context.Context, client kubernetes.Interface, one WorkloadRef) (missing string, err error) {
	say := func(observed bool, updated, available, wanted int32) string {
		if observed && updated >= wanted && available >= wanted {
			return ""
		}
		return fmt.Sprintf("%d of %d are new, and %d can be used", updated, wanted, available)
	}
	switch one.Kind {
	case kindDeployment:
		found, err := client.AppsV1().Deployments(one.Namespace).Get(ctx, one.Name, metav1.GetOptions{})
		if err != nil || found.Spec.Paused {
			return "", ignoreGone(err)
		}
		status, wanted := found.Status, *found.Spec.Replicas
		if status.Replicas > status.UpdatedReplicas {
			return fmt.Sprintf("%d former ones are there", status.Replicas-status.UpdatedReplicas), nil
		}
		return say(status.ObservedGeneration >= found.Generation, status.UpdatedReplicas, status.AvailableReplicas, wanted), nil
	case kindStatefulSet:
		found, err := client.AppsV1().StatefulSets(one.Namespace).Get(ctx, one.Name, metav1.GetOptions{})
		if err != nil || found.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			return "", ignoreGone(err)
		}
		wanted := *found.Spec.Replicas
		if rolling := found.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
			wanted = max(0, wanted-*rolling.Partition)
		}
		return say(found.Status.ObservedGeneration >= found.Generation, found.Status.UpdatedReplicas, found.Status.AvailableReplicas, wanted), nil
	default:
		found, err := client.AppsV1().DaemonSets(one.Namespace).Get(ctx, one.Name, metav1.GetOptions{})
		if err != nil || found.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return "", ignoreGone(err)
		}
		return say(found.Status.ObservedGeneration >= found.Generation, found.Status.UpdatedNumberScheduled, found.Status.NumberAvailable, found.Status.DesiredNumberScheduled), nil
	}
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// SealedBy is the beginning of a Secret that the API server has sealed under the key of that name.
func SealedBy(name string) string { return "k8s:enc:secretbox:v1:" + name + ":" }

// RewriteSecrets has the API server write every Secret again as it is, and so seal it under the key that it writes with now. It returns how many there are.
func RewriteSecrets(ctx context.Context, config *rest.Config) (count int, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	err = eachSecret(ctx, client, metav1.ListOptions{}, func(secret *corev1.Secret) error {
		count++
		// An empty patch is written if the stored value is sealed under another key.
		return patchSecret(ctx, client, secret, `{}`)
	})
	return count, err
}

// RenewTokenSecrets renews the tokens in Secrets that a former key (TokenKeyID) signed. It returns the Secrets' names.
func RenewTokenSecrets(ctx context.Context, config *rest.Config, former []string) (renewed []string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String()}
	err = eachSecret(ctx, client, only, func(secret *corev1.Secret) error {
		if !slices.Contains(former, SignedBy(string(secret.Data[corev1.ServiceAccountTokenKey]))) {
			return nil
		}
		if err := patchSecret(ctx, client, secret, `{"data":{"`+corev1.ServiceAccountTokenKey+`":null}}`); err != nil {
			return err
		}
		renewed = append(renewed, secret.Namespace+"/"+secret.Name)
		err := wait.Every(rotationPoll).Until(ctx, func(ctx context.Context) error {
			now, err := client.CoreV1().Secrets(secret.Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return nil
			case err != nil:
				return wait.Again(err)
			case len(now.Data[corev1.ServiceAccountTokenKey]) == 0:
				return wait.Again(fmt.Errorf("the controller-manager has not made one"))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("wait for a new token in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
		return nil
	})
	return renewed, err
}

// SignedBy is the id of the key (TokenKeyID) in a token; "" for none.
func SignedBy(token string) string {
	header, _, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		return ""
	}
	var parsed struct {
		KeyID string `json:"kid"`
	}
	if json.Unmarshal(text, &parsed) != nil {
		return ""
	}
	return parsed.KeyID
}

// eachSecret does something with each Secret that there is; of their data it has the tokens only. All are listed before the first one is worked on: a
// list that is read slowly expires.
func eachSecret(ctx context.Context, client kubernetes.Interface, options metav1.ListOptions, do func(*corev1.Secret) error) error {
	options.Limit = pageSize
	var all []corev1.Secret
	sum := gathered{what: "the list of Secrets"}
	for {
		var page *corev1.SecretList
		err := persist(ctx, func(ctx context.Context) (err error) {
			page, err = client.CoreV1().Secrets("").List(ctx, options)
			return err
		})
		if err != nil {
			return fmt.Errorf("list the Secrets: %w", err)
		}
		text := 0
		for _, one := range page.Items {
			kept := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: one.Namespace, Name: one.Name}}
			if one.Type == corev1.SecretTypeServiceAccountToken {
				kept.Data = map[string][]byte{corev1.ServiceAccountTokenKey: one.Data[corev1.ServiceAccountTokenKey]}
			}
			text += len(kept.Namespace) + len(kept.Name) + len(kept.Data[corev1.ServiceAccountTokenKey])
			all = append(all, kept)
		}
		if err := sum.take(len(page.Items), text); err != nil {
			return err
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	for i := range all {
		if err := do(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

func patchSecret(ctx context.Context, client kubernetes.Interface, secret *corev1.Secret, patch string) error {
	err := persist(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: rotationManager})
		return ignoreGone(err)
	})
	if err != nil {
		return fmt.Errorf("write Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

// KeepAuthorities removes all authorities but these (PEM) from the list that the API server gives to extension API servers: the authorities of clients,
// and of its own calls. The API server itself only adds its own to the list, and removes none.
func KeepAuthorities(ctx context.Context, config *rest.Config, clients, calls []byte) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	const name = "extension-apiserver-authentication"
	err = persist(ctx, func(ctx context.Context) error {
		found, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return ignoreGone(err)
		}
		changes := map[string]string{}
		for key, trusted := range map[string][]byte{"client-ca-file": clients, "requestheader-client-ca-file": calls} {
			if kept := among([]byte(found.Data[key]), trusted); kept != nil {
				changes[key] = string(kept)
			}
		}
		if len(changes) == 0 {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"data": changes})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: rotationManager})
		return err
	})
	if err != nil {
		return fmt.Errorf("take former authorities out of ConfigMap %s: %w", name, err)
	}
	return nil
}

// among are the certificates of a list (PEM) that are trusted; nil when all are.
func among(list, trusted []byte) (kept []byte) {
	certificates := func(text []byte) (all [][]byte) {
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			all = append(all, block.Bytes)
		}
		return all
	}
	known, all := certificates(trusted), certificates(list)
	kept = []byte{}
	for _, one := range all {
		if slices.ContainsFunc(known, func(other []byte) bool { return bytes.Equal(one, other) }) {
			kept = append(kept, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one})...)
		}
	}
	if len(certificates(kept)) == len(all) {
		return nil
	}
	return kept
}
