package workloads

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/preview"
)

// podSecrets are the Secrets of a pod's containers: one with the secret variables of each container, and one for each secret file.
type podSecrets struct {
	pod    podSpec
	client kubernetes.Interface
}

// secretPart is the part of a container that is kept in a Secret of its own.
type secretPart struct {
	container string
	content   string // for errors
	data      map[string][]byte
	name      *string // of the Secret, in the container; "" if it is not known
}

// secretParts lists the parts of containers that are kept in Secrets.
func secretParts(containers []container) (parts []secretPart) {
	for one := range partsOf(containers) {
		if len(one.options.secrets) > 0 {
			data := map[string][]byte{}
			for name, value := range one.options.secrets {
				data[name] = []byte(value)
			}
			content := "the variables " + strings.Join(slices.Sorted(maps.Keys(data)), ", ")
			parts = append(parts, secretPart{one.name, content, data, &one.secretName})
		}
		for i := range one.options.files {
			if file := &one.options.files[i]; file.secret {
				parts = append(parts, secretPart{one.name, "the file " + file.path, map[string][]byte{fileKey: []byte(file.text)}, &file.object})
			}
		}
	}
	return parts
}

// partsOf are containers with their init containers and sidecars.
func partsOf(containers []container) iter.Seq[*container] {
	return func(yield func(*container) bool) {
		for i := range containers {
			if !yield(&containers[i]) {
				return
			}
			for j := range containers[i].options.before {
				if !yield(&containers[i].options.before[j]) {
					return
				}
			}
		}
	}
}

// ensure makes the missing Secrets of containers, and names all in the containers. A Secret is never changed: another value is another Secret, so
// that pods get it by a rolling update, and former ones keep theirs.
func (s podSecrets) ensure(ctx context.Context, containers []container) error {
	for _, part := range secretParts(containers) {
		if err := s.find(ctx, part); err != nil {
			return err
		}
		if *part.name != "" {
			continue
		}
		fixed := true
		made, err := s.client.CoreV1().Secrets(s.pod.inNamespace()).Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{GenerateName: s.prefix(part), Namespace: s.pod.inNamespace(), Labels: s.labels(part)},
			Immutable:  &fixed, Data: part.data,
		}, metav1.CreateOptions{FieldManager: kube.Manager})
		if err != nil {
			return fmt.Errorf("make the Secret with %s of container %s: %w", part.content, part.container, err)
		}
		*part.name = made.Name
	}
	return nil
}

// labels are the labels of the Secrets of a container.
func (s podSecrets) labels(part secretPart) labels.Set {
	return labels.Set{LabelPod: s.pod.id, labelContainer: kubeName(part.container)}
}

// prefix begins the name of a Secret of a container.
func (s podSecrets) prefix(part secretPart) string {
	return kubeName(fmt.Sprintf("%.40s", s.pod.name+"-"+part.container)) + "-"
}

// find names the Secret in the container that has the part's data; "" if there is none.
func (s podSecrets) find(ctx context.Context, part secretPart) error {
	there, err := s.client.CoreV1().Secrets(s.pod.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: s.labels(part).String()})
	if err != nil {
		return fmt.Errorf("list the Secrets of pod %s: %w", s.pod.name, err)
	}
	*part.name = ""
	for _, secret := range there.Items {
		if maps.EqualFunc(secret.Data, part.data, bytes.Equal) {
			*part.name = secret.Name
			break
		}
	}
	return nil
}

// endToCome replaces, in previews, the end that Kubernetes will give to the name of a Secret.
const endToCome = "xxxxx"

// foresee names the Secrets of containers as ensure does, and makes none: it returns the additions of Secrets, whose names end with endToCome.
func (s podSecrets) foresee(ctx context.Context, containers []container) (made []preview.KubernetesChange, err error) {
	for _, part := range secretParts(containers) {
		if err := s.find(ctx, part); err != nil {
			return made, err
		}
		if *part.name == "" {
			*part.name = s.prefix(part) + endToCome
			made = append(made, preview.KubernetesChange{ObjectID: s.pod.id, Object: "pod " + s.pod.name, What: "added", Kind: "Secret", Namespace: s.pod.inNamespace(), Name: *part.name})
		}
	}
	return made, nil
}

// clear deletes the Secrets and the ConfigMaps of files that nothing refers to, and that nothing can need again by a rollback.
func (s podSecrets) clear(ctx context.Context, containers []container) error {
	mine := metav1.ListOptions{LabelSelector: labels.Set{LabelPod: s.pod.id}.String()}
	secrets, err := s.client.CoreV1().Secrets(s.pod.inNamespace()).List(ctx, mine)
	if err != nil {
		return err
	}
	files, err := s.client.CoreV1().ConfigMaps(s.pod.inNamespace()).List(ctx, metav1.ListOptions{LabelSelector: mine.LabelSelector + "," + labelContainer})
	if err != nil || len(secrets.Items)+len(files.Items) == 0 {
		return err
	}
	referring, err := s.referring(ctx, mine)
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for _, part := range secretParts(containers) {
		wanted[*part.name] = true
	}
	for _, one := range s.pod.fileMaps(containers) {
		wanted[one.Name] = true
	}
	unused := func(object metav1.ObjectMeta) bool {
		return !wanted[object.Name] && !bytes.Contains(referring, []byte(`"name":"`+object.Name+`"`)) && !bytes.Contains(referring, []byte(`"secretName":"`+object.Name+`"`))
	}
	var errs []error
	remove := func(err error) {
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, secret := range secrets.Items {
		if unused(secret.ObjectMeta) {
			remove(s.client.CoreV1().Secrets(s.pod.inNamespace()).Delete(ctx, secret.Name, metav1.DeleteOptions{}))
		}
	}
	for _, file := range files.Items {
		if unused(file.ObjectMeta) {
			remove(s.client.CoreV1().ConfigMaps(s.pod.inNamespace()).Delete(ctx, file.Name, metav1.DeleteOptions{}))
		}
	}
	return errors.Join(errs...)
}

// referring are the objects of the pod that can refer to Secrets and ConfigMaps, in JSON.
func (s podSecrets) referring(ctx context.Context, mine metav1.ListOptions) ([]byte, error) {
	var objects []runtime.Object
	pods, err := s.client.CoreV1().Pods(s.pod.inNamespace()).List(ctx, mine)
	objects = append(objects, pods)
	replicaSets, err2 := s.client.AppsV1().ReplicaSets(s.pod.inNamespace()).List(ctx, mine)
	objects = append(objects, replicaSets)
	revisions, err3 := s.client.AppsV1().ControllerRevisions(s.pod.inNamespace()).List(ctx, mine)
	objects = append(objects, revisions)
	jobs, err4 := s.client.BatchV1().Jobs(s.pod.inNamespace()).List(ctx, mine)
	objects = append(objects, jobs)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return nil, err
	}
	return json.Marshal(objects)
}

// annotationValues is on pods whose variables come from objects of others, and has a digest for each of these objects: "configMap/levels=1f2e, …". A change of
// such an object changes it at the next deployment, and pods get the new value by a rolling update.
const annotationValues = "burano.io/values"

// foreignValues are the objects that the containers' variables come from, with digests of the values that are read there, as annotationValues has them. A
// value that is missing has none.
func foreignValues(ctx context.Context, client kubernetes.Interface, namespace string, containers []container) (string, error) {
	read := map[string]map[string]bool{} // keys of objects
	for one := range partsOf(containers) {
		for _, source := range one.options.valueFrom {
			object, key := "", ""
			switch {
			case source.SecretKeyRef != nil:
				object, key = "secret/"+source.SecretKeyRef.Name, source.SecretKeyRef.Key
			case source.ConfigMapKeyRef != nil:
				object, key = "configMap/"+source.ConfigMapKeyRef.Name, source.ConfigMapKeyRef.Key
			default:
				continue
			}
			if read[object] == nil {
				read[object] = map[string]bool{}
			}
			read[object][key] = true
		}
	}
	var digests []string
	for _, object := range slices.Sorted(maps.Keys(read)) {
		kind, name, _ := strings.Cut(object, "/")
		values := map[string]string{}
		var meta metav1.ObjectMeta
		if kind == "secret" {
			found, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return "", fmt.Errorf("read Secret %s, which variables come from: %w", name, err)
			}
			meta = found.ObjectMeta
			for key, value := range found.Data {
				values[key] = string(value)
			}
		} else {
			found, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return "", fmt.Errorf("read ConfigMap %s, which variables come from: %w", name, err)
			}
			values = found.Data
		}
		sum := sha256.New()
		sum.Write([]byte(meta.UID)) // so that nobody compares a digest with those of another cluster
		for _, key := range slices.Sorted(maps.Keys(read[object])) {
			value, is := values[key]
			fmt.Fprintf(sum, "%q %v %q\n", key, is, value)
		}
		digests = append(digests, object+"="+hex.EncodeToString(sum.Sum(nil)[:4]))
	}
	return strings.Join(digests, ", "), nil
}

// valuesToNote is the annotationValues of the pods. Pods of former versions have none: it comes with their next change, since only their own begin decides
// which values they have.
func (p podSpec) valuesToNote(ctx context.Context, api *rest.Config, client kubernetes.Interface, containers []container) (string, error) {
	values, err := foreignValues(ctx, client, p.inNamespace(), containers)
	if err != nil || values == "" {
		return "", err
	}
	same, err := leavesTemplate(ctx, api, p.objects(containers))
	if same {
		return "", nil
	}
	return values, err
}
