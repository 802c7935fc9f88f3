package conformance

import (
	"archive/tar"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

func TestWhatIsTriedBesideTheNodeImageIsOfItsKubernetes(t *testing.T) {
	pinned := func(folder string) string {
		command := exec.Command("go", "mod", "edit", "-print")
		command.Dir = folder
		output, err := command.Output()
		require.NoError(t, err)
		var lines []string
		for line := range strings.Lines(string(output)) {
			line, _, _ = strings.Cut(line, "//")
			// the version, and the sources of the replaced modules
			if strings.HasPrefix(strings.TrimSpace(line), "k8s.io/kubernetes ") || strings.Contains(line, " => ") {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	for _, folder := range []string{"kubernetes", "../bench/kubeadm"} {
		require.Equal(t, pinned("../../images/modules/kubernetes"), pinned(folder), folder)
	}
}

func TestAReportTellsWhatCameOfEachTestThatWasChosen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"PreRunStats": {"TotalSpecs": 10, "SpecsThatWillRun": 8}, "SpecReports": [
{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
{"ContainerHierarchyTexts": ["[sig-b]", "Pods"], "LeafNodeType": "It", "LeafNodeText": "run [Conformance]", "State": "passed", "RunTime": 1500000000},
{"ContainerHierarchyTexts": ["[sig-a]"], "LeafNodeType": "It", "LeafNodeText": "fails", "State": "failed", "Failure": {"Message": "Told you:\nso"}},
{"ContainerHierarchyTexts": ["[sig-c]"], "LeafNodeType": "It", "LeafNodeText": "needs more", "State": "skipped", "Failure": {"Message": "Requires two zones"}},
{"ContainerHierarchyTexts": ["[sig-c]"], "LeafNodeType": "It", "LeafNodeText": "needs snapshots", "State": "skipped", "Failure": {"Message": "Driver has none"}},
{"ContainerHierarchyTexts": ["[sig-c]"], "LeafNodeType": "It", "LeafNodeText": "needs many", "State": "skipped", "Failure": {"Message": "Driver has none"}},
{"ContainerHierarchyTexts": ["[sig-d]"], "LeafNodeType": "It", "LeafNodeText": "was cut off", "State": "timedout"},
{"ContainerHierarchyTexts": ["[sig-e]"], "LeafNodeType": "It", "LeafNodeText": "was not chosen", "State": "skipped"},
{"LeafNodeType": "SynchronizedAfterSuite", "State": "panicked", "Failure": {"Message": "nil"}}]}]`), 0o600))
	report, err := ReadReport(path)
	require.NoError(t, err)
	require.Equal(t, `9 conformance tests: 1 passed, 3 failed, 3 skipped, 2 not begun
failed: SynchronizedAfterSuite: nil
failed: [sig-a] fails: Told you:
failed: [sig-d] was cut off: timedout
skipped: 2 tests: Driver has none
skipped: [sig-c] needs more: Requires two zones
`, report.Summary("conformance tests"))
	require.Equal(t, "[sig-b] Pods run [Conformance]", report.Specs[2].Name)
	require.Equal(t, 1.5, report.Specs[2].Took.Seconds())
}

// A feature that upstream adds is neither claimed nor named as missing until an engineer has decided about it.
func TestEachFeatureOfDriversIsClaimedOrSaysWhyNot(t *testing.T) {
	// A machine that has built no Kubernetes yet has only its go.mod.
	command := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes")
	command.Dir = "kubernetes"
	output, err := command.Output()
	require.NoError(t, err, "%s", output)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(output, &module))
	source, err := os.ReadFile(filepath.Join(module.Dir, "test/e2e/storage/framework/testdriver.go"))
	require.NoError(t, err)
	var known []string
	for _, found := range regexp.MustCompile(`Cap\w+\s+Capability = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		known = append(known, found[1])
	}
	require.NotEmpty(t, known)
	text, err := StorageDriver{Class: "burano-cinder", Grows: true}.File()
	require.NoError(t, err)
	var file struct {
		DriverInfo struct {
			Capabilities map[string]bool `yaml:"Capabilities"`
		} `yaml:"DriverInfo"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.ElementsMatch(t, known, slices.Collect(maps.Keys(file.DriverInfo.Capabilities)))
	said := StorageDriver{Grows: true}.Unclaimed()
	for feature, has := range file.DriverInfo.Capabilities {
		require.Equal(t, !has, strings.Contains(said, "not claimed: "+feature+": "), feature)
	}
	require.Contains(t, StorageDriver{}.Unclaimed(), "not claimed: onlineExpansion: ")
}

func TestImagesAreMadeOfWhatWasBuilt(t *testing.T) {
	folder := t.TempDir()
	for _, recipe := range recipes() {
		for _, file := range recipe.files {
			if file.from != "" {
				path := filepath.Join(folder, file.from)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte("content of "+file.from), 0o600))
			}
		}
	}
	for _, root := range []string{debian, busybox} {
		file, err := os.Create(filepath.Join(folder, root))
		require.NoError(t, err)
		writer := tar.NewWriter(file)
		require.NoError(t, writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "of-" + root + "/", Mode: 0o755}))
		require.NoError(t, writer.Close())
		require.NoError(t, file.Close())
	}
	images, err := Images(folder)
	require.NoError(t, err)
	digests := map[string]string{}
	for _, image := range images {
		digest, err := image.Content.Digest()
		require.NoError(t, err)
		require.NotContains(t, digests, digest.String(), "%s would be taken for %s", image.Name, digests[digest.String()])
		digests[digest.String()] = image.Name
	}
	i := slices.IndexFunc(images, func(i Image) bool { return i.Name == "e2e-test-images/nonewprivs:1.4" })
	content := mutate.Extract(images[i].Content)
	defer content.Close()
	found := map[string]string{}
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		data, err := io.ReadAll(reader)
		require.NoError(t, err)
		found[header.Name] = header.FileInfo().Mode().String() + " " + string(data)
	}
	require.Equal(t, map[string]string{"of-busybox.tar": "drwxr-xr-x ", "usr/local/bin/nnp": "urwxr-xr-x content of nnp"}, found)
}
