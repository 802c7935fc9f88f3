package native

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
)

const (
	classHelmRelease   = "io.burano.HelmRelease"
	packageHelmRelease = "io.burano.HelmRelease"
)

// Helm keeps chart and values of each revision in a Secret, which has one MiB of room.
const (
	maxChart     = 700 << 10 // bytes of the archive
	maxChartFile = 5 << 20   // bytes of a file in it, Helm's own limit
	maxValues    = 256 << 10
)

// helmClass is io.burano.HelmRelease.
type helmClass struct {
	runtime interface {
		Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	}
	reports reports
	pods    podClass
}

func (h helmClass) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{methodDeploy: h.deploy, methodDestroy: h.destroy, "rollback": h.rollback, "getStatus": h.status}
}

// deploy installs or upgrades the release. The chart is looked at before the cluster is brought up.
func (h helmClass) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	chart, err := chartOf(call.Object)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the chart of %s: %w", call.Object, err)
	}
	values, err := releaseValues(call.Object)
	if err != nil {
		return nil, err
	}
	live, err := h.cluster(ctx, call)
	if err != nil {
		return nil, err
	}
	request := h.request("deploy", call.Object)
	request.Chart, request.Values = chart, values
	return nil, h.runtime.Step(ctx, call.Object, "deploy the Helm release", func(ctx context.Context) error {
		answer, err := h.do(ctx, live, call.Object, request)
		if err != nil {
			return err
		}
		if answer.Changed {
			h.reports.inform(ctx, call.Object, "Helm release %s is at revision %d, with chart %s", request.Name, answer.Revision, answer.Chart)
		}
		return nil
	})
}

// rollback is the action that goes back to the revision that came up before the newest. The model has its values then.
func (h helmClass) rollback(ctx context.Context, call muranopl.Call) (any, error) {
	defer h.pods.clusters.close()
	live, err := h.cluster(ctx, call)
	if err != nil {
		return nil, err
	}
	return nil, h.runtime.Step(ctx, call.Object, "roll the Helm release back", func(ctx context.Context) error {
		answer, err := h.do(ctx, live, call.Object, h.request("rollback", call.Object))
		if err != nil {
			return err
		}
		if answer.Values == nil {
			answer.Values = map[string]any{}
		}
		if err := call.Object.Initialise("values", answer.Values); err != nil {
			return fmt.Errorf("note the values of revision %d: %w", answer.Back, err)
		}
		h.reports.inform(ctx, call.Object, "Helm release %s went back to revision %d, as revision %d", call.Object.Text("name"), answer.Back, answer.Revision)
		if answer.OtherChart {
			h.reports.warn(ctx, call.Object, fmt.Sprintf("Helm release %s has the chart %s now, of a former version of its package", call.Object.Text("name"), answer.Chart),
				"The next deployment brings the chart of the package that the environment has.")
		}
		return nil
	})
}

// status is the action that says how the release is.
func (h helmClass) status(ctx context.Context, call muranopl.Call) (any, error) {
	defer h.pods.clusters.close()
	live, err := h.cluster(ctx, call)
	if err != nil {
		return nil, err
	}
	answer, err := h.do(ctx, live, call.Object, h.request("status", call.Object))
	if err != nil {
		return nil, err
	}
	return map[string]any{"revision": int64(answer.Revision), "status": answer.Status, "chart": answer.Chart, "appVersion": answer.AppVersion, "notes": answer.Notes}, nil
}

// destroy uninstalls the release, unless its cluster goes as well.
func (h helmClass) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	object, err := h.pods.clusters.remaining(ctx, call)
	if object == nil {
		return nil, err
	}
	live, err := h.pods.clusters.live(object)
	if err != nil {
		return nil, err
	}
	return nil, h.runtime.Step(ctx, call.Object, "uninstall the Helm release", func(ctx context.Context) error {
		_, err := h.do(ctx, live, call.Object, h.request("uninstall", call.Object))
		return err
	})
}

// cluster is the cluster of the release, brought up where that is not done.
func (h helmClass) cluster(ctx context.Context, call muranopl.Call) (*nodes.Cluster, error) {
	if _, err := h.pods.kubernetes(ctx, call.Interpreter, call.Object); err != nil {
		return nil, err
	}
	return h.pods.clusters.live(call.Object.Object("kubernetesCluster"))
}

func (h helmClass) request(action string, object *muranopl.Object) nodes.HelmRequest {
	return nodes.HelmRequest{Action: action, Name: object.Text("name"), Namespace: object.Text("namespace"), Owner: object.ID(), Timeout: object.Int("timeout")}
}

// do has the master work on the release and notes how that is then.
func (h helmClass) do(ctx context.Context, live *nodes.Cluster, object *muranopl.Object, request nodes.HelmRequest) (nodes.HelmAnswer, error) {
	answer, err := live.Helm(ctx, request)
	if err != nil {
		return answer, err
	}
	if answer.Revision > 0 {
		if err := errors.Join(object.Set("revision", int64(answer.Revision)), object.Set("status", answer.Status)); err != nil {
			return answer, err
		}
	}
	if answer.Logs != "" {
		h.reports.inform(ctx, object, "Hooks of Helm release %s wrote:\n%s", request.Name, answer.Logs)
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

// obstacles are what keeps pods from being ready. What cannot be found out is left out.
func (h helmClass) obstacles(ctx context.Context, live *nodes.Cluster, pods []nodes.HelmPod) (found []obstacle) {
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
		slices.SortStableFunc(noted.Items, func(a, b corev1.Event) int { return timeOf(a).Compare(timeOf(b)) })
		found = append(found, obstaclesOf(pod, noted.Items)...)
	}
	return found
}

// releaseValues are the values of a release, as JSON has them.
func releaseValues(object *muranopl.Object) (map[string]any, error) {
	values := object.Map("values")
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the values of %s: %w", object, err)
	}
	if len(text) > maxValues {
		return nil, fault.New(fault.Invalid, "the values of %s have %d bytes, more than the %d allowed", object, len(text), maxValues)
	}
	return values, nil
}

// packageFiles are the files of a package.
type packageFiles interface {
	File(name string) ([]byte, error) // fails with fs.ErrNotExist
	FileNames() []string
}

// chartOf is the chart of a release as an archive; the same files give the same bytes.
func chartOf(object *muranopl.Object) ([]byte, error) {
	files, ok := object.Class().Package.(packageFiles)
	if !ok {
		return nil, errors.New("its package has no files")
	}
	return archiveOf(files, object.Text("chart"))
}

// archiveOf makes the archive of a chart in a package's folder Resources, or takes the one that is there.
func archiveOf(files packageFiles, chart string) ([]byte, error) {
	place := path.Join("Resources", chart)
	if !strings.HasPrefix(place, "Resources/") {
		return nil, fmt.Errorf("%q is no place in the package's folder Resources", chart)
	}
	if strings.HasSuffix(place, ".tgz") {
		archive, err := files.File(place)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the package has no file %s", place)
		}
		if err != nil {
			return nil, err
		}
		return archive, fits(place, archive)
	}
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	writer := tar.NewWriter(compressed)
	name := ""
	for _, file := range slices.Sorted(slices.Values(files.FileNames())) {
		inside, ok := strings.CutPrefix(file, place+"/")
		if !ok || strings.HasSuffix(file, "/") {
			continue
		}
		content, err := files.File(file)
		if err != nil {
			return nil, err
		}
		if len(content) > maxChartFile {
			return nil, fmt.Errorf("%s has %d bytes, more than the %d that Helm takes", file, len(content), maxChartFile)
		}
		if inside == "Chart.yaml" {
			if name, err = checkChart(file, content); err != nil {
				return nil, err
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: "chart/" + inside, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if _, err := writer.Write(content); err != nil {
			return nil, err
		}
	}
	if name == "" {
		return nil, fmt.Errorf("the package has no file %s/Chart.yaml: put the chart's folder there, or say by the property chart where it is", place)
	}
	if err := errors.Join(writer.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return archive.Bytes(), fits(place, archive.Bytes())
}

func fits(place string, archive []byte) error {
	if len(archive) > maxChart {
		return fmt.Errorf("%s has %d bytes as an archive, more than the %d for which Kubernetes has room: leave out what its templates do not read", place, len(archive), maxChart)
	}
	return nil
}

// checkChart looks at what Helm wants to know of a chart, and returns its name.
func checkChart(file string, text []byte) (string, error) {
	var chart struct {
		APIVersion string `yaml:"apiVersion"`
		Name       string `yaml:"name"`
		Version    string `yaml:"version"`
		Type       string `yaml:"type"`
	}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	switch {
	case chart.APIVersion != "v1" && chart.APIVersion != "v2":
		return "", fmt.Errorf("%s: apiVersion is %q, and should be v2 or v1", file, chart.APIVersion)
	case chart.Name == "":
		return "", fmt.Errorf("%s: it has no name", file)
	case chart.Version == "":
		return "", fmt.Errorf("%s: it has no version", file)
	case chart.Type == "library":
		return "", fmt.Errorf("%s: a chart of type library cannot be installed", file)
	}
	return chart.Name, nil
}
