package workloads

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/sensitive"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/task"
)

const (
	ClassHelmRelease   = "io.burano.HelmRelease"
	PackageHelmRelease = "io.burano.HelmRelease"
)

// maxValues is in bytes: Helm keeps chart and values of each revision in a Secret, which has one MiB of room.
const maxValues = 256 << 10

// maxWritten is the bound in bytes of values before they are written: as JSON they may be larger than as YAML, in which maxValues is meant.
const maxWritten = 2 * maxValues

// maxKeys is how deep a value may lie that is written in YAML of its own.
const maxKeys = 100

// Releases is io.burano.HelmRelease.
type Releases struct {
	Runtime interface {
		Conceal(value any)
		Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	}
	Reports task.Reports
	Pods    Pods
}

func (h Releases) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{task.MethodDeploy: h.deploy, task.MethodDestroy: h.destroy, "rollback": h.rollback, "getStatus": h.status}
}

// deploy installs or upgrades the release. The chart is looked at before the cluster is brought up.
func (h Releases) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	request, err := requestOf(ctx, "deploy", call.Object)
	if err != nil {
		return nil, err
	}
	live, err := h.cluster(ctx, call)
	if err != nil {
		return nil, err
	}
	return nil, h.Runtime.Step(ctx, call.Object, "deploy the Helm release", func(ctx context.Context) error {
		if err := h.adopt(ctx, live, call.Object, request); err != nil {
			return err
		}
		answer, err := h.do(ctx, live, call.Object, request)
		if err != nil {
			return err
		}
		if answer.Changed {
			h.Reports.Inform(ctx, call.Object, "Helm release %s is at revision %d, with chart %s%s", request.Name, answer.Revision, answer.Chart, originOf(call.Object))
		}
		return nil
	})
}

// labelOfRelease is on the Secrets of a release's revisions: the id of the object whose release it is.
const labelOfRelease = "burano.io/id"

// adopt takes over a release of this name that a former environment, whose ids no object has, has left in a restored cluster.
func (h Releases) adopt(ctx context.Context, live *nodes.Cluster, object *muranopl.Object, release nodes.HelmRequest) error {
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return err
	}
	secrets := client.CoreV1().Secrets(release.Namespace)
	revisions, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{"owner": "helm", "name": release.Name}.String() + "," + labelOfRelease})
	if err != nil {
		return fmt.Errorf("look for revisions of release %s: %w", release.Name, err)
	}
	adopted := 0
	for _, one := range revisions.Items {
		if id := one.Labels[labelOfRelease]; id == object.ID() || h.Pods.Hosting.Objects.Has(id) {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, labelOfRelease, object.ID())
		if _, err := secrets.Patch(ctx, one.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: kube.Manager}); err != nil {
			return fmt.Errorf("take over revision %s of release %s: %w", one.Name, release.Name, err)
		}
		adopted++
	}
	if adopted > 0 {
		h.Reports.Inform(ctx, object, "Helm release %s of a former environment is taken over, with its revisions: %d", release.Name, adopted)
	}
	return nil
}

// originOf is the address from which the package's chart was fetched; "" if the package contains it.
func originOf(object *muranopl.Object) string {
	if of, ok := object.Class().Package.(interface{ ChartOrigin() (from, digest string) }); ok {
		if from, digest := of.ChartOrigin(); from != "" {
			return fmt.Sprintf(" (%s, digest %s)", from, digest)
		}
	}
	return ""
}

// rollback is the action that goes back to the revision that came up before the newest. The model has its values then.
func (h Releases) rollback(ctx context.Context, call muranopl.Call) (any, error) {
	defer h.Pods.Clusters.Close()
	live, err := h.cluster(ctx, call)
	if err != nil {
		return nil, err
	}
	return nil, h.Runtime.Step(ctx, call.Object, "roll the Helm release back", func(ctx context.Context) error {
		answer, err := h.do(ctx, live, call.Object, helmRequest("rollback", call.Object))
		if err != nil {
			return err
		}
		if answer.Values == nil {
			answer.Values = map[string]any{}
		}
		if err := errors.Join(call.Object.Initialise("values", answer.Values), call.Object.Initialise("texts", map[string]any{})); err != nil {
			return fmt.Errorf("note the values of revision %d: %w", answer.Back, err)
		}
		h.Reports.Inform(ctx, call.Object, "Helm release %s went back to revision %d, as revision %d", call.Object.Text("name"), answer.Back, answer.Revision)
		if answer.OtherChart {
			h.Reports.Warn(ctx, call.Object, fmt.Sprintf("Helm release %s has the chart %s now, of a former version of its package", call.Object.Text("name"), answer.Chart),
				"The next deployment brings the chart of the package that the environment has.")
		}
		return nil
	})
}

// status is the action that shows the state of the release.
func (h Releases) status(ctx context.Context, call muranopl.Call) (any, error) {
	defer h.Pods.Clusters.Close()
	live, err := h.cluster(ctx, call)
	if err != nil {
		return nil, err
	}
	answer, err := h.do(ctx, live, call.Object, helmRequest("status", call.Object))
	if err != nil {
		return nil, err
	}
	return map[string]any{"revision": int64(answer.Revision), "status": answer.Status, "chart": answer.Chart, "appVersion": answer.AppVersion, "notes": answer.Notes}, nil
}

// destroy uninstalls the release, unless its cluster goes as well.
func (h Releases) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	object, err := h.Pods.Clusters.Remaining(ctx, call)
	if object == nil {
		return nil, err
	}
	live, err := h.Pods.Clusters.Live(object)
	if err != nil {
		return nil, err
	}
	return nil, h.Runtime.Step(ctx, call.Object, "uninstall the Helm release", func(ctx context.Context) error {
		_, err := h.do(ctx, live, call.Object, helmRequest("uninstall", call.Object))
		return err
	})
}

// cluster is the cluster of the release, brought up where that is not done.
func (h Releases) cluster(ctx context.Context, call muranopl.Call) (*nodes.Cluster, error) {
	if _, err := h.Pods.Kubernetes(ctx, call.Interpreter, call.Object); err != nil {
		return nil, err
	}
	return h.Pods.Clusters.Live(call.Object.Object("kubernetesCluster"))
}

func helmRequest(action string, object *muranopl.Object) nodes.HelmRequest {
	return nodes.HelmRequest{Action: action, Name: object.Text("name"), Namespace: object.Text("namespace"), Owner: object.ID(), Timeout: object.Int("timeout")}
}

// packageOfChart is a package with a Helm chart.
type packageOfChart interface {
	charts.Files
	CheckChartValues(ctx context.Context, archive []byte, values map[string]any) error
}

// requestOf is a request with chart and values.
func requestOf(ctx context.Context, action string, object *muranopl.Object) (request nodes.HelmRequest, err error) {
	request = helmRequest(action, object)
	files, err := chartFiles(object)
	if err == nil {
		request.Chart, err = charts.Archive(files, object.Text("chart"))
	}
	if err != nil {
		return request, fault.New(fault.Invalid, "the chart of %s: %w", object, err)
	}
	if request.Values, err = releaseValues(object); err != nil {
		return request, err
	}
	if err := files.CheckChartValues(ctx, request.Chart, request.Values); err != nil {
		return request, fault.New(fault.Invalid, "the values of %s: %w", object, err)
	}
	return request, nil
}

// chartFiles is the package of a release.
func chartFiles(object *muranopl.Object) (packageOfChart, error) {
	files, ok := object.Class().Package.(packageOfChart)
	if !ok {
		return nil, errors.New("its package has no files")
	}
	if object.Text("chart") == "" {
		return nil, errors.New("its package only names the chart, and was imported by a Burano that did not fetch it: import the package again")
	}
	return files, nil
}

// do has the master work on the release and notes how that is then.
func (h Releases) do(ctx context.Context, live *nodes.Cluster, object *muranopl.Object, request nodes.HelmRequest) (nodes.HelmAnswer, error) {
	h.Runtime.Conceal(request.Values)
	answer, err := live.Helm(ctx, request)
	if err != nil {
		return answer, err
	}
	h.Runtime.Conceal(answer.Values)
	if answer.Error != "" || answer.Logs != "" {
		h.concealSecrets(ctx, live, request)
	}
	if answer.Revision > 0 {
		if err := errors.Join(object.Set("revision", int64(answer.Revision)), object.Set("status", answer.Status)); err != nil {
			return answer, err
		}
	}
	if answer.Logs != "" {
		h.Reports.Inform(ctx, object, "Hooks of Helm release %s wrote:\n%s", request.Name, answer.Logs)
	}
	if answer.Error == "" {
		return answer, nil
	}
	text := fmt.Sprintf("Helm release %s: %s", request.Name, answer.Error)
	for _, one := range h.obstacles(ctx, live, answer.Pods) {
		text += "; " + one.String()
	}
	return answer, errors.New(text)
}

// Helm's label of objects that it made, and its annotation that names the release.
const (
	labelOfHelm       = "app.kubernetes.io/managed-by=Helm"
	annotationRelease = "meta.helm.sh/release-name"
)

// concealSecrets registers the contents of the release's Secrets as secrets of the task, since a chart can generate them. An unreadable Secret is
// left out.
func (h Releases) concealSecrets(ctx context.Context, live *nodes.Cluster, release nodes.HelmRequest) {
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return
	}
	list, err := client.CoreV1().Secrets(release.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labelOfHelm})
	if err != nil {
		return
	}
	for _, one := range list.Items {
		if one.Annotations[annotationRelease] != release.Name {
			continue
		}
		for _, value := range one.Data {
			h.Runtime.Conceal(map[string]any{"secret": string(value)})
		}
	}
}

// obstacles are the reasons why pods are not ready. An unreadable pod is left out.
func (h Releases) obstacles(ctx context.Context, live *nodes.Cluster, pods []nodes.HelmPod) (found []obstacle) {
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(api)
	if err != nil {
		return nil
	}
	for _, one := range pods {
		pod, err := client.CoreV1().Pods(one.Namespace).Get(ctx, one.Name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		noted, err := client.CoreV1().Events(one.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Pod,type=Warning,involvedObject.name=" + one.Name})
		if err != nil {
			noted = &corev1.EventList{}
		}
		slices.SortStableFunc(noted.Items, func(a, b corev1.Event) int { return kube.EventTime(a).Compare(kube.EventTime(b)) })
		found = append(found, obstaclesOf(pod, noted.Items)...)
	}
	return found
}

// releaseValues are the values of a release, as JSON has them, merged with the values that are written in YAML.
func releaseValues(object *muranopl.Object) (map[string]any, error) {
	values, err := written(object.Map("values"), object.Map("texts"))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the values of %s: %w", object, err)
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the values of %s: %w", object, err)
	}
	if len(text) > maxValues {
		return nil, fault.New(fault.Invalid, "the values of %s have %d bytes, more than the %d allowed", object, len(text), maxValues)
	}
	return values, nil
}

// written puts values in YAML over others, at the places that their names are (RFC 6901), the shortest first.
func written(values, texts map[string]any) (map[string]any, error) {
	bounds := door.Bounds{Bytes: maxWritten, Written: maxWritten}
	if err := door.Written(values, maxWritten, "what is filled in"); err != nil {
		return nil, err
	}
	values = charts.Over(values, nil)
	for _, pointer := range slices.Sorted(maps.Keys(texts)) {
		text, _ := texts[pointer].(string)
		if strings.TrimSpace(text) == "" {
			continue
		}
		var value any
		if err := door.YAML([]byte(text), &value, bounds); door.IsExceeded(err) {
			return nil, fmt.Errorf("what is written for %q: %w", pointer, err)
		} else if err != nil {
			return nil, fmt.Errorf("what is written for %q is no YAML: %s", pointer, lineOf.FindString(err.Error()))
		}
		if pointer != "" && pointer[0] != '/' {
			return nil, fmt.Errorf("%q is no place among the values: write it like /ingress/hosts", pointer)
		}
		value = named(value)
		keys := strings.Split(pointer, "/")[1:]
		if len(keys) > maxKeys {
			return nil, fmt.Errorf("a place among the values is deeper than %d levels", maxKeys)
		}
		for _, key := range slices.Backward(keys) {
			value = map[string]any{strings.NewReplacer("~1", "/", "~0", "~").Replace(key): value}
		}
		inner, isMap := value.(map[string]any)
		if !isMap {
			return nil, errors.New("what is written should be a map of values, such as replicas: 2")
		}
		values = charts.Over(values, inner)
	}
	return values, door.Written(values, maxWritten, "the map of all")
}

// named gives maps names as keys, whatever YAML has there.
func named(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = named(item)
		}
	case map[any]any:
		plain := map[string]any{}
		for key, item := range v {
			plain[fmt.Sprint(key)] = named(item)
		}
		return plain
	case []any:
		for i, item := range v {
			v[i] = named(item)
		}
	}
	return value
}

// lineOf is the place of a fault in YAML. The rest of such an error can contain a secret value.
var lineOf = regexp.MustCompile(`line [0-9]+|$`)

// unknownKind is Helm's error for an object whose kind is missing in the cluster: another release of the same deployment can define it.
const unknownKind = "no matches for kind"

// previewReleases adds the changes that a deployment would make in Kubernetes through the Helm releases of a cluster, and the releases that it could
// not install.
func (c Previews) previewReleases(ctx context.Context, in *Observed, releases []*muranopl.Object, foreseen *preview.Foreseen) {
	for _, object := range releases {
		request, err := requestOf(ctx, "diff", object)
		if err != nil {
			foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: object.ID(), Text: err.Error()})
			continue
		}
		if in.Live == nil && in.Why == nil {
			continue
		}
		var answer nodes.HelmAnswer
		if err = in.Why; err == nil {
			answer, err = in.Live.Helm(ctx, request)
		}
		switch {
		case err != nil || strings.Contains(answer.Error, unknownKind):
			why := errors.Join(err, told(answer.Error))
			foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("what Helm release %s changes in Kubernetes is not known: %v", request.Name, why))
		case answer.Error != "":
			text := concealed(request.Values, answer.Values).Hide(answer.Error)
			foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: object.ID(), Text: fmt.Sprintf("Helm release %s: %s", request.Name, text)})
		default:
			foreseen.Kubernetes = append(foreseen.Kubernetes, kubernetesChanges(object, request, answer)...)
			if answer.MoreChanges > 0 {
				foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("Helm release %s changes %d objects more in Kubernetes", request.Name, answer.MoreChanges))
			}
		}
	}
}

func told(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// concealed are the secrets among values.
func concealed(values ...map[string]any) *secret.Known {
	known := &secret.Known{}
	for _, one := range values {
		known.Note("", one)
	}
	return known
}

// kubernetesChanges are the changes of a release, without the secrets among its values as they are and as they would be.
func kubernetesChanges(object *muranopl.Object, request nodes.HelmRequest, answer nodes.HelmAnswer) []preview.KubernetesChange {
	known := concealed(request.Values, answer.Values)
	list := make([]preview.KubernetesChange, 0, len(answer.Changes))
	for _, one := range answer.Changes {
		change := preview.KubernetesChange{ObjectID: object.ID(), Object: request.Name, What: one.What, Kind: one.Kind, Namespace: one.Namespace, Name: one.Name, More: one.More}
		for _, field := range one.Fields {
			change.Fields = append(change.Fields, preview.KubernetesField{Path: field.Path, Before: shown(known, field.Path, field.Before), After: shown(known, field.Path, field.After)})
		}
		list = append(list, change)
	}
	return list
}

// shown is a value at a path of an object, without its secrets.
func shown(known *secret.Known, path string, value any) any {
	name := ""
	if sensitive.Path(path) {
		name = "secret"
	}
	return known.HideIn(sensitive.Texts(name, value, func(string) string { return secret.Mark }))
}
