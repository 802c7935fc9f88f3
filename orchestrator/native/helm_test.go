package native

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"io"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// filesOf is a package with files.
type filesOf map[string]string

func (f filesOf) File(name string) ([]byte, error) {
	text, there := f[name]
	if !there {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (f filesOf) FileNames() (names []string) {
	for name := range f {
		names = append(names, name)
	}
	return names
}

const aChart = "apiVersion: v2\nname: pages\nversion: 1.0.0\n"

func TestAChartsFolderBecomesTheSameArchiveEachTime(t *testing.T) {
	files := filesOf{
		"manifest.yaml": "", "Resources/chart/Chart.yaml": aChart, "Resources/chart/templates/a.yaml": "a: {{ .Values.a }}",
		"Resources/chart/charts/part/Chart.yaml": "no chart that is looked at", "Resources/charter/Chart.yaml": "another",
	}
	archive, err := archiveOf(files, "chart")
	require.NoError(t, err)
	again, err := archiveOf(files, "chart")
	require.NoError(t, err)
	require.Equal(t, archive, again)

	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	require.NoError(t, err)
	reader := tar.NewReader(compressed)
	found := map[string]string{}
	for {
		header, err := reader.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		content, err := io.ReadAll(reader)
		require.NoError(t, err)
		found[header.Name] = string(content)
	}
	require.Equal(t, map[string]string{"chart/Chart.yaml": aChart, "chart/templates/a.yaml": "a: {{ .Values.a }}",
		"chart/charts/part/Chart.yaml": "no chart that is looked at"}, found)

	files["Resources/made.tgz"] = string(archive)
	taken, err := archiveOf(files, "made.tgz")
	require.NoError(t, err)
	require.Equal(t, archive, taken)
}

func TestAWrongChartIsRefusedWithWhatIsWrong(t *testing.T) {
	random := make([]byte, maxChart+1) // does not get smaller
	_, err := rand.Read(random)
	require.NoError(t, err)
	for name, of := range map[string]struct {
		files filesOf
		chart string
		says  string
	}{
		"nothing there":      {filesOf{}, "chart", "the package has no file Resources/chart/Chart.yaml: put the chart's folder there"},
		"no archive":         {filesOf{}, "a.tgz", "the package has no file Resources/a.tgz"},
		"outside":            {filesOf{"manifest.yaml": ""}, "../..", `"../.." is no place in the package's folder Resources`},
		"the whole folder":   {filesOf{"Resources/Chart.yaml": aChart}, ".", `"." is no place`},
		"no YAML":            {filesOf{"Resources/chart/Chart.yaml": "a: [b"}, "chart", "Resources/chart/Chart.yaml: yaml: "},
		"no API version":     {filesOf{"Resources/chart/Chart.yaml": "name: a\nversion: 1.0.0"}, "chart", `apiVersion is "", and should be v2 or v1`},
		"no name":            {filesOf{"Resources/chart/Chart.yaml": "apiVersion: v2\nversion: 1.0.0"}, "chart", "it has no name"},
		"no version":         {filesOf{"Resources/chart/Chart.yaml": "apiVersion: v2\nname: a"}, "chart", "it has no version"},
		"library":            {filesOf{"Resources/chart/Chart.yaml": aChart + "type: library\n"}, "chart", "a chart of type library cannot be installed"},
		"large file":         {filesOf{"Resources/chart/Chart.yaml": aChart, "Resources/chart/f": string(make([]byte, maxChartFile+1))}, "chart", "Resources/chart/f has 5242881 bytes"},
		"large as a folder":  {filesOf{"Resources/chart/Chart.yaml": aChart, "Resources/chart/f": string(random)}, "chart", "leave out what its templates do not read"},
		"large as a archive": {filesOf{"Resources/a.tgz": string(random)}, "a.tgz", "leave out what its templates do not read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := archiveOf(of.files, of.chart)
			require.ErrorContains(t, err, of.says)
		})
	}
}
