package e2e

import (
	"fmt"
	"io"
	"io/fs"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/charts"
)

// TestAHelmReleaseFailsIsMendedRolledBackAndRemoved uses a package with a chart (test/packages/io.burano.test.Chart) that has a hook, a
// custom resource and a Service of type LoadBalancer.
func TestAHelmReleaseFailsIsMendedRolledBackAndRemoved(t *testing.T) {
	named := chartInARegistry(t, "test/packages/io.burano.test.Board/Resources/chart", "board:1.0.0")
	t.Setenv("BURANO_CHART_SOURCES", strings.TrimSuffix(named, "/board:1.0.0"))
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Chart")
	log, err := l.try(l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/helm.yaml", "--follow")
	l.deleteIfFailed(t, "helm")
	require.Error(t, err, log)
	require.Regexp(t, `Helm release pages: .*Deployment/shop/pages not ready`, log)
	require.Contains(t, log, "it was given up before its time")
	require.Contains(t, log, "container serve of pages-")
	require.Contains(t, log, "its image registry.local/none:1 cannot be pulled")

	environment := environmentNamed(t, demo, "helm")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	a := &applications{lab: l, user: demo}
	deploy := func(values map[string]any) (state any, log string) {
		began := time.Now()
		task, log := s.changed(t, a, "pages", func(pages map[string]any) { pages["values"] = values })
		t.Logf("values %v: %s after %.1f s", values, task["state"], time.Since(began).Seconds())
		return task["state"], log
	}
	release := func() map[string]any {
		result, _ := s.call(t, "pages", "getStatus", map[string]any{})
		return result["result"].(map[string]any)
	}
	running := func() string {
		return s.cluster.kubectl(t, "", "-n", "shop", "get", "deployment", "pages", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.status.readyReplicas}")
	}
	gateway := s.floating(t, "murano-gateway-1")["murano-gateway-1"]
	serves := func() {
		t.Helper()
		l.eventually(t, time.Minute, "the gateway serves the pages", func() error {
			_, err := get("http://" + gateway + ":8090/")
			return err
		})
	}
	require.Equal(t, "failed", release()["status"])

	// A failed release is mended by the next deployment; the one after it has nothing to do.
	one := map[string]any{"replicas": 1}
	state, log := deploy(one)
	require.Equal(t, "success", state, log)
	require.Contains(t, log, "Helm release pages is at revision 2, with chart pages-1.2.3")
	require.Contains(t, log, "CoreDNS-1.15.0", "the hook's log")
	require.Equal(t, firstImage+" 1", running())
	require.Equal(t, "pages", s.cluster.kubectl(t, "", "-n", "shop", "get", "pages.test.burano.io", "pages", "-o", "jsonpath={.spec.title}"))
	serves()
	state, log = deploy(one)
	require.Equal(t, "success", state, log)
	require.NotContains(t, log, "Helm release pages is at revision")
	require.Equal(t, map[string]any{"revision": 2.0, "status": "deployed", "chart": "pages-1.2.3", "appVersion": "1", "notes": "Pages are at port 8090.\n"}, release())

	// The preview shows the changes of an upgrade, without secrets.
	changes, problems := a.previewOf(t, s.environment, "pages", map[string]any{"replicas": 2, "password": "battery-staple"})
	require.Empty(t, problems)
	require.Equal(t, []string{
		`changed Deployment pages [spec.replicas 1 2]`,
		`added Secret pages-login []`,
	}, changes)
	state, log = deploy(map[string]any{"replicas": 2, "password": "battery-staple"})
	require.Equal(t, "success", state, log)
	require.Equal(t, firstImage+" 2", running())
	changes, problems = a.previewOf(t, s.environment, "pages", map[string]any{"replicas": 2, "password": "other-staple"})
	require.Empty(t, problems)
	require.Equal(t, []string{`changed Secret pages-login [stringData.password *** SANITIZED *** *** SANITIZED ***]`}, changes)
	changes, problems = a.previewOf(t, s.environment, "pages", map[string]any{"replicas": 2})
	require.Empty(t, problems)
	require.Equal(t, []string{`removed Secret pages-login []`}, changes)
	_, problems = a.previewOf(t, s.environment, "pages", map[string]any{"replicas": 2, "password": "correct-horse"})
	require.Regexp(t, `Helm release pages: .*the password \*\*\* SANITIZED \*\*\* is too simple`, problems)
	state, log = deploy(map[string]any{"replicas": 2, "password": "correct-horse"})
	require.NotEqual(t, "success", state)
	require.Contains(t, log, "the password *** SANITIZED *** is too simple")
	require.NotContains(t, log, "correct-horse")

	state, log = deploy(map[string]any{"replicas": 2, "password": "battery-staple", "image": "registry.local/none:1"})
	require.NotEqual(t, "success", state)
	require.Contains(t, log, "its image registry.local/none:1 cannot be pulled")
	serves() // the former pods go on

	// From the failed revision 4 to 3, and from that to 2.
	lines := s.act(t, "pages", "rollback", map[string]any{})
	require.Contains(t, fmt.Sprint(lines["info"]), "Helm release pages went back to revision 3, as revision 5")
	require.Equal(t, firstImage+" 2", running())
	require.Equal(t, map[string]any{"replicas": 2.0, "password": "battery-staple"}, a.application(t, s.environment, "pages")["values"])

	// Another master works on the release, until it dies.
	s.cluster.kubectl(t, fmt.Sprintf(anotherMaster, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")), "apply", "-f", "-")
	began := time.Now()
	state, log = deploy(map[string]any{"replicas": 2, "password": "battery-staple"})
	require.Equal(t, "success", state, log)
	require.Greater(t, time.Since(began), 15*time.Second, "the lock of a master that died is respected for as long as it says")
	require.Equal(t, 5.0, release()["revision"], "the model says what runs")

	state, log = deploy(map[string]any{"replicas": "many"})
	require.NotEqual(t, "success", state)
	require.Contains(t, log, "replicas")
	require.Equal(t, firstImage+" 2", running())

	state, log = deploy(map[string]any{"replicas": 2, "password": "battery-staple"})
	require.Equal(t, "success", state, log)

	s.packagesOfCharts(t, a, named)

	session := a.draft(t, s.environment)
	all := demo.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)["services"].([]any)
	n := slices.IndexFunc(all, func(one any) bool { return one.(map[string]any)["name"] == "pages" })
	demo.must(t, http.MethodDelete, fmt.Sprintf("/v1/environments/%s/services/%d", s.environment, n), nil, "X-Configuration-Session", session)
	a.deploy(t, s.environment, session)
	require.Empty(t, s.cluster.kubectl(t, "", "-n", "shop", "get", "deployments,services,secrets", "-l", "app.kubernetes.io/managed-by=Helm", "-o", "name"))
	require.Empty(t, s.cluster.kubectl(t, "", "-n", "shop", "get", "secrets", "-l", "owner=helm", "-o", "name"))
	require.Empty(t, s.cluster.kubectl(t, "", "-n", "kube-system", "get", "leases", "burano-helm.shop.pages", "--ignore-not-found", "-o", "name"))
	require.Contains(t, s.cluster.kubectl(t, "", "get", "crd", "pages.test.burano.io", "-o", "name"), "pages.test.burano.io", "Helm leaves definitions, with which data would go")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "helm")
	asBefore(t, demo, found)
}

// packagesOfCharts deploys applications of two packages of the format Helm/1.0, by the forms that are made of the chart: one contains its chart,
// the other one names it in a registry.
func (s *scaling) packagesOfCharts(t *testing.T, a *applications, named string) {
	t.Helper()
	l, folder := a.lab, t.TempDir()
	l.run(t, nil, "burano", "package", "check", "test/packages/io.burano.test.Board")
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Board", "--categories", "Web")
	fetched := filepath.Join(folder, "fetched.zip")
	l.run(t, nil, "burano", "package", "create", "--chart", named, "--full-name", "io.burano.test.Fetched", "--output", fetched)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", fetched)
	elsewhere := filepath.Join(folder, "elsewhere.zip")
	l.run(t, nil, "burano", "package", "create", "--chart", "oci://registry.invalid/board:1.0.0", "--full-name", "io.burano.test.Elsewhere", "--output", elsewhere)
	refused, err := l.try(l.as("burano-demo"), "burano", "package", "import", elsewhere)
	require.Error(t, err)
	require.Contains(t, refused, "does not admit oci://registry.invalid/board:1.0.0 as a source of charts")

	a.packages = map[string]string{}
	for _, one := range a.user.must(t, http.MethodGet, "/v1/catalog/packages", nil)["packages"].([]any) {
		a.packages[one.(map[string]any)["fully_qualified_name"].(string)] = one.(map[string]any)["id"].(string)
	}
	session := a.draft(t, s.environment)
	cluster := s.clusterID(t)
	for _, one := range []string{"Board", "Fetched"} {
		name := strings.ToLower(one)
		a.add(t, s.environment, session, "io.burano.test."+one, "", map[string]any{
			"release": map[string]any{"name": name, "kubernetesCluster": cluster, "namespace": "boards"},
			"admin":   map[string]any{"password": "battery-staple"},
			"values":  map[string]any{"replicas": 2, "mode": "strict", "hosts": "[one.example, two.example]"}})
	}
	task, log := a.try(t, s.environment, session)
	require.Equal(t, "success", task["state"], log)
	require.Regexp(t, `Helm release fetched is at revision 1, with chart board-1.0.0 \(oci://127.0.0.1:[0-9]+/charts/board:1.0.0, digest sha256:[0-9a-f]{64}\)`, log)
	require.NotContains(t, log, "staple")
	for _, name := range []string{"board", "fetched"} {
		require.Equal(t, "2", s.cluster.kubectl(t, "", "-n", "boards", "get", "deployment", name, "-o", "jsonpath={.status.readyReplicas}"))
		require.Equal(t, "strict one.example two.example", s.cluster.kubectl(t, "", "-n", "boards", "get", "configmap", name, "-o", "jsonpath={.data.mode} {.data.hosts}"))
		require.Equal(t, "YmF0dGVyeS1zdGFwbGU=", s.cluster.kubectl(t, "", "-n", "boards", "get", "secret", name+"-admin", "-o", "jsonpath={.data.password}"))
	}
}

// folderOfPackage is a folder with the files of a package.
type folderOfPackage struct{ fs.FS }

func (f folderOfPackage) File(name string) ([]byte, error) { return fs.ReadFile(f.FS, name) }

func (f folderOfPackage) FileNames() (names []string) {
	_ = fs.WalkDir(f.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return names
}

// chartInARegistry runs a registry with the chart of a folder, and returns its address there.
func chartInARegistry(t *testing.T, folder, tag string) string {
	t.Helper()
	resources := filepath.Join("../..", filepath.Dir(filepath.Dir(folder)))
	archive, err := charts.Archive(folderOfPackage{os.DirFS(resources)}, "chart")
	require.NoError(t, err)
	server := httptest.NewServer(registry.New(registry.Logger(stdlog.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	reference, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/charts/" + tag)
	require.NoError(t, err)
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		mutate.Addendum{Layer: static.NewLayer(archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip")})
	require.NoError(t, err)
	require.NoError(t, remote.Write(reference, image))
	return "oci://" + reference.Name()
}

// anotherMaster holds the lock of the release.
const anotherMaster = `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: burano-helm.shop.pages, namespace: kube-system}
spec: {holderIdentity: murano-kube-9, leaseDurationSeconds: 15, acquireTime: %[1]q, renewTime: %[1]q}
`

// previewOf lists the changes in Kubernetes that the deployment of a draft would make, and the problems for which it would be refused. The draft, in
// which a release has other values, is dropped.
func (a *applications) previewOf(t *testing.T, environment, name string, values map[string]any) (changes []string, problems string) {
	t.Helper()
	session := a.draft(t, environment)
	all := a.user.must(t, http.MethodGet, "/v1/environments/"+environment, nil)["services"].([]any)
	n := slices.IndexFunc(all, func(one any) bool { return one.(map[string]any)["name"] == name })
	service := all[n].(map[string]any)
	service["values"] = values
	a.user.must(t, http.MethodPut, fmt.Sprintf("/v1/environments/%s/services/%d", environment, n), service, "X-Configuration-Session", session)
	began := time.Now()
	preview := a.user.must(t, http.MethodGet, "/burano/v1/environments/"+environment+"/sessions/"+session+"/preview", nil)
	t.Logf("previewed in %.1f s", time.Since(began).Seconds())
	a.user.must(t, http.MethodDelete, "/v1/environments/"+environment+"/sessions/"+session, nil)
	require.NotContains(t, fmt.Sprint(preview), "staple", "no password is told")
	for _, one := range preview["kubernetes"].([]any) {
		change := one.(map[string]any)
		var fields []string
		for _, field := range change["fields"].([]any) {
			fields = append(fields, fmt.Sprint(field.(map[string]any)["path"], " ", field.(map[string]any)["before"], " ", field.(map[string]any)["after"]))
		}
		changes = append(changes, fmt.Sprint(change["change"], " ", change["kind"], " ", change["name"], " ", fields))
	}
	for _, one := range preview["problems"].([]any) {
		problems += fmt.Sprintln(one.(map[string]any)["message"])
	}
	return changes, problems
}
