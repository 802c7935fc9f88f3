package e2e

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/images"
)

// TestGatewayAPIsOwnSuitePasses runs Gateway API's conformance suite, which is a module of its own, on a cluster with three gateways.
// BURANO_GATEWAYAPI is the folder for its output, its report and a summary; `make conformance-gateway` sets it.
func TestGatewayAPIsOwnSuitePasses(t *testing.T) {
	folder := os.Getenv("BURANO_GATEWAYAPI")
	if folder == "" {
		t.Skip("`make conformance-gateway` runs this: it takes minutes")
	}
	require.NoError(t, os.MkdirAll(folder, 0o755))
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.deleteIfFailed(t, "gatewayapi")
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/gatewayapi.yaml", "--follow")
	environment := environmentNamed(t, demo, "gatewayapi")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	module := filepath.Join(l.root, "test", "conformance", "gateway")
	imagesOfTheSuite(t, s.cluster, module, "murano-kube-2")

	var addresses []string
	for _, address := range s.floating(t, "murano-gateway-1", "murano-gateway-2", "murano-gateway-3") {
		addresses = append(addresses, address)
	}
	said, err := os.Create(filepath.Join(folder, "suite.log"))
	require.NoError(t, err)
	defer said.Close()
	suite := exec.Command("go", "test", "-count=1", "-v", "-timeout", "60m", ".")
	suite.Dir, suite.Stdout, suite.Stderr = module, said, said
	suite.Env = append(os.Environ(), "KUBECONFIG="+s.cluster.kubeconfig, "BURANO_ADDRESSES="+strings.Join(addresses, ","), "BURANO_RESULTS="+folder,
		"BURANO_VERSION="+strings.TrimSpace(l.run(t, nil, "burano", "version")))
	// The suite deletes its pods at its end, and logs no more of them than whether they were ready.
	events, err := os.Create(filepath.Join(folder, "events.txt"))
	require.NoError(t, err)
	defer events.Close()
	watch := exec.Command(l.kubectl(), "--kubeconfig", s.cluster.kubeconfig, "get", "events", "--all-namespaces", "--watch")
	watch.Stdout = events
	require.NoError(t, watch.Start())
	began := time.Now()
	failed := suite.Run()
	require.NoError(t, watch.Process.Kill())
	_ = watch.Wait() // it was killed
	summary, err := os.ReadFile(filepath.Join(folder, "summary.txt"))
	require.NoErrorf(t, err, "%s says what the suite said", said.Name())
	t.Logf("after %s: %s", time.Since(began).Round(time.Second), summary)
	require.NoErrorf(t, failed, "%s says what the suite said", said.Name())

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "gatewayapi")
}

// imagesOfTheSuite puts the container images of the suite's manifests into the store of a node, under their names: its echo server and CoreDNS, which
// are compiled from their modules. A test whose pods need another image fails.
func imagesOfTheSuite(t *testing.T, c *cluster, module, node string) {
	wanted := imagesNamedIn(t, module)
	for _, one := range []struct{ program, module, source, user string }{
		{"echo-basic", module, "sigs.k8s.io/gateway-api/conformance/echo-basic", "65535:65535"},
		{"coredns", filepath.Join(c.lab.root, "images", "modules", "coredns"), "./conformance", "0:0"}, // its pod drops root's capabilities, but for port 53
	} {
		compiled := filepath.Join(t.TempDir(), one.program)
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", compiled, one.source)
		build.Dir, build.Env = one.module, append(os.Environ(), "CGO_ENABLED=0")
		output, err := build.CombinedOutput()
		require.NoErrorf(t, err, "%s", output)
		image := images.Container{Program: one.program, Reference: "registry.local/conformance-" + one.program + ":1", User: one.user}
		require.NoError(t, image.Write(compiled+".tar", compiled, runtime.GOARCH))
		archive, err := os.Open(compiled + ".tar")
		require.NoError(t, err)
		load := c.command(node, "ctr", "-n", "k8s.io", "images", "import", "-")
		load.Stdin = archive
		output, err = load.CombinedOutput()
		archive.Close()
		require.NoErrorf(t, err, "%s", output)
		for _, name := range wanted {
			if repository, _, _ := strings.Cut(name, ":"); path.Base(repository) == one.program {
				// Pinned, so that a kubelet whose disk is nearly full does not delete it: no registry has it.
				for _, command := range [][]string{{"tag", image.Reference, name}, {"label", name, "io.cri-containerd.pinned=pinned"}} {
					output, err := c.on(node, append([]string{"ctr", "-n", "k8s.io", "images"}, command...)...)
					require.NoError(t, err, output)
				}
			}
		}
	}
}

// imagesNamedIn lists the container images of the suite's manifests.
func imagesNamedIn(t *testing.T, module string) (names []string) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api/conformance")
	list.Dir, list.Stderr = module, t.Output()
	folder, err := list.Output()
	require.NoError(t, err)
	manifests, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(folder)), "*", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, manifests)
	image := regexp.MustCompile(`(?m)^\s*(?:- )?image: (\S+)$`)
	for _, manifest := range manifests {
		text, err := os.ReadFile(manifest)
		require.NoError(t, err)
		for _, found := range image.FindAllStringSubmatch(string(text), -1) {
			names = append(names, found[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
