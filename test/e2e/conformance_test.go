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

// TestKubernetesConforms runs the conformance tests of Kubernetes on a cluster of two minions; BURANO_FOCUS selects some of them.
func TestKubernetesConforms(t *testing.T) {
	u := startUpstream(t, start, nil)
	// Serial ones run after all others, one by one: Ginkgo sees to that.
	u.run(t, "conformance tests", "", []string{"--label-filter=Conformance", "--focus=" + os.Getenv("BURANO_FOCUS")}, nil)
}

// upstream is a cluster of two minions for tests of Kubernetes itself. Its nodes get the images of these tests from a registry of this test alone.
type upstream struct {
	lab     *lab
	cluster *cluster
	built   string // the folder in which build.sh has built
	own     *imageRegistry
	made    []string // names of the images
	model   string   // the file from which the cluster was deployed
}

// startUpstream deploys the cluster in the lab that start returns, with replacements (old, new, …) in its model.
func startUpstream(t *testing.T, start func(*testing.T, ...string) *lab, replacements []string) *upstream {
	built := os.Getenv(conformanceVariable)
	if built == "" {
		t.Skipf("%s is not set: make conformance sets it", conformanceVariable)
	}
	images, err := conformance.Images(built)
	require.NoError(t, err)
	u := &upstream{lab: start(t), built: built, own: startRegistry(t, "", "")}
	for _, image := range images {
		u.made = append(u.made, image.Name)
		reference, err := name.ParseReference(u.own.address+"/"+image.Name, name.Insecure)
		require.NoError(t, err)
		require.NoError(t, remote.Write(reference, image.Content))
	}
	text, err := os.ReadFile("testdata/conformance.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "conformance.yaml")
	model := strings.NewReplacer(append(replacements, "REGISTRY", conformance.Registry, "PROXY", startForwarder(t, u.own).address)...).Replace(string(text))
	require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
	began := time.Now()
	u.model = file
	u.lab.run(t, u.lab.as("burano-demo"), "burano", "deploy", file, "--follow")
	t.Logf("the cluster was deployed in %.1f s", time.Since(began).Seconds())
	demo := u.lab.user(t, "burano-demo")
	u.cluster = u.lab.clusterOf(t, demo, environmentNamed(t, demo, "conformance"))
	return u
}

// run runs the tests of a kind that options of Ginkgo and of the tests choose. The report, the tests' output and the summary, with the given addition, are left in the
// folder reports beside their program.
func (u *upstream) run(t *testing.T, kind, besides string, choice, options []string) {
	reports := filepath.Join(u.built, "reports")
	require.NoError(t, os.MkdirAll(reports, 0o755))
	output, err := os.Create(filepath.Join(reports, "output.txt"))
	require.NoError(t, err)
	defer output.Close()
	began := time.Now()
	arguments := append(slices.Clone(choice), "--procs="+cmp.Or(os.Getenv("BURANO_PROCS"), "4"), "--timeout="+cmp.Or(os.Getenv("BURANO_TIMEOUT"), "5h"), "--no-color", "--silence-skips",
		"--output-dir="+reports, "--json-report=report.json", filepath.Join(u.built, "e2e.test"), "--",
		"--provider=skeleton", "--kubeconfig="+u.cluster.kubeconfig, "--kubectl-path="+u.lab.kubectl(), "--e2e-output-dir="+reports)
	run := exec.CommandContext(t.Context(), filepath.Join(u.built, "ginkgo"), append(arguments, options...)...)
	run.Stdout, run.Stderr = output, output
	require.NoError(t, os.RemoveAll(filepath.Join(reports, "report.json")))
	ended := run.Run()
	t.Logf("the tests ran for %s and ended: %v", time.Since(began).Round(time.Second), ended)

	report, err := conformance.ReadReport(filepath.Join(reports, "report.json"))
	require.NoErrorf(t, err, "what they wrote is in %s", output.Name())
	summary := report.Summary(kind) + besides
	for _, name := range u.own.missing(u.made) {
		summary += "not made: the image " + name + "\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(reports, "summary.txt"), []byte(summary), 0o644))
	t.Log("\n" + summary)
	require.NotEmpty(t, report.Specs, "no test matches BURANO_FOCUS")
	require.False(t, slices.ContainsFunc(report.Specs, func(s conformance.Spec) bool { return s.Failure != "" }), "the summary above says what failed")
	require.Zero(t, report.Left, "the time was over before all had begun")
}
