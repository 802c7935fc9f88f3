package conformance

import (
	"archive/tar"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/stretchr/testify/require"
)

func TestTheTestsAreOfTheNodeImagesKubernetes(t *testing.T) {
	pinned := func(folder string) string {
		command := exec.Command("go", "mod", "edit", "-print")
		command.Dir = folder
		output, err := command.Output()
		require.NoError(t, err)
		var lines []string
		for line := range strings.Lines(string(output)) {
			// the version, and from where what goes with it comes
			if strings.HasPrefix(strings.TrimSpace(line), "k8s.io/kubernetes ") || strings.Contains(line, " => ") {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	require.Equal(t, pinned("../../images/modules/kubernetes"), pinned("kubernetes"))
}

func TestAReportTellsWhatCameOfEachTestThatWasChosen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, os.WriteFile(path, []byte(`[{"PreRunStats": {"TotalSpecs": 9, "SpecsThatWillRun": 7}, "SpecReports": [
{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
{"ContainerHierarchyTexts": ["[sig-b]", "Pods"], "LeafNodeType": "It", "LeafNodeText": "run [Conformance]", "State": "passed", "RunTime": 1500000000},
{"ContainerHierarchyTexts": ["[sig-a]"], "LeafNodeType": "It", "LeafNodeText": "fails", "State": "failed", "Failure": {"Message": "Told you:\nso"}},
{"ContainerHierarchyTexts": ["[sig-c]"], "LeafNodeType": "It", "LeafNodeText": "needs more", "State": "skipped", "Failure": {"Message": "Requires two zones"}},
{"ContainerHierarchyTexts": ["[sig-d]"], "LeafNodeType": "It", "LeafNodeText": "was cut off", "State": "timedout"},
{"ContainerHierarchyTexts": ["[sig-e]"], "LeafNodeType": "It", "LeafNodeText": "was not chosen", "State": "skipped"},
{"ContainerHierarchyTexts": ["[sig-f] ImageVolume"], "LeafNodeType": "It", "LeafNodeText": "should succeed with pod and pull policy of Always", "State": "failed"},
{"LeafNodeType": "SynchronizedAfterSuite", "State": "panicked", "Failure": {"Message": "nil"}}]}]`), 0o600))
	report, err := ReadReport(path)
	require.NoError(t, err)
	require.Equal(t, `8 conformance tests: 1 passed, 4 failed, 1 skipped, 2 not begun
failed: SynchronizedAfterSuite: nil
failed: [sig-a] fails: Told you:
failed: [sig-d] was cut off: timedout
failed: [sig-f] ImageVolume should succeed with pod and pull policy of Always: as is known: the node image has Debian 12's containerd 1.6; volumes made of images need 2.1
skipped: [sig-c] needs more: Requires two zones
`, report.Summary())
	require.Equal(t, "[sig-b] Pods run [Conformance]", report.Specs[2].Name)
	require.Equal(t, 1.5, report.Specs[2].Took.Seconds())
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
