package e2e

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/conformance"
)

// conformanceVariable names the folder in which test/conformance/build.sh has built.
const conformanceVariable = "BURANO_CONFORMANCE"

// TestKubernetesConforms runs the conformance tests of Kubernetes, or those of them that BURANO_FOCUS matches, on a cluster of two minions. Nodes know the
// images that they ask for from a registry of this test alone. The report, what the tests wrote and the summary are left in the folder reports beside
// their program.
func TestKubernetesConforms(t *testing.T) {
	built := os.Getenv(conformanceVariable)
	if built == "" {
		t.Skipf("%s is not set: make conformance sets it", conformanceVariable)
	}
	images, err := conformance.Images(built)
	require.NoError(t, err)
	l := start(t)
	own := startRegistry(t, "", "")
	var made []string
	for _, image := range images {
		made = append(made, image.Name)
		reference, err := name.ParseReference(own.address+"/"+image.Name, name.Insecure)
		require.NoError(t, err)
		require.NoError(t, remote.Write(reference, image.Content))
	}
	text, err := os.ReadFile("testdata/conformance.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "conformance.yaml")
	model := strings.NewReplacer("REGISTRY", conformance.Registry, "PROXY", startForwarder(t, own).address).Replace(string(text))
	require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
	began := time.Now()
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	t.Logf("the cluster was deployed in %.1f s", time.Since(began).Seconds())
	demo := l.user(t, "burano-demo")
	cluster := l.clusterOf(t, demo, environmentNamed(t, demo, "conformance"))

	reports := filepath.Join(built, "reports")
	require.NoError(t, os.MkdirAll(reports, 0o755))
	output, err := os.Create(filepath.Join(reports, "output.txt"))
	require.NoError(t, err)
	defer output.Close()
	began = time.Now()
	// Those that are serial run after all others, one by one, which is Ginkgo's doing.
	run := exec.CommandContext(t.Context(), filepath.Join(built, "ginkgo"), "--procs="+cmp.Or(os.Getenv("BURANO_PROCS"), "4"), "--label-filter=Conformance",
		"--focus="+os.Getenv("BURANO_FOCUS"), "--timeout="+cmp.Or(os.Getenv("BURANO_TIMEOUT"), "5h"), "--no-color", "--silence-skips", "--output-dir="+reports, "--json-report=report.json",
		filepath.Join(built, "e2e.test"), "--",
		"--provider=skeleton", "--kubeconfig="+cluster.kubeconfig, "--kubectl-path="+l.kubectl(), "--e2e-output-dir="+reports)
	run.Stdout, run.Stderr = output, output
	require.NoError(t, os.RemoveAll(filepath.Join(reports, "report.json")))
	ended := run.Run()
	t.Logf("the tests ran for %s and ended: %v", time.Since(began).Round(time.Second), ended)

	report, err := conformance.ReadReport(filepath.Join(reports, "report.json"))
	require.NoErrorf(t, err, "what they wrote is in %s", output.Name())
	summary := report.Summary()
	for _, name := range own.missing(made) {
		summary += "not made: the image " + name + "\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(reports, "summary.txt"), []byte(summary), 0o644))
	t.Log("\n" + summary)
	require.NotEmpty(t, report.Specs, "no conformance test matches BURANO_FOCUS")
	require.False(t, slices.ContainsFunc(report.Specs, func(s conformance.Spec) bool { return s.Failure != "" && s.Known() == "" }), "the summary above says what failed")
	require.False(t, slices.ContainsFunc(report.Specs, func(s conformance.Spec) bool { return s.Passed && s.Known() != "" }), "what was known to fail has passed: it is known no more")
	require.Zero(t, report.Left, "the time was over before all had begun")
}
