package catalog_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

// TestMain makes the test's binary a child, too.
func TestMain(m *testing.M) {
	if door.IsChild(os.Args[1:]) {
		os.Exit(door.ServeChild(os.Args[1:], catalog.ChildWork()))
	}
	os.Exit(m.Run())
}

// inChildren has a service read charts in children.
func inChildren(t *testing.T) catalog.Option {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return catalog.ReadIn(door.NewChildren(self, 2, door.Limits{Processor: time.Second}))
}

// packed is the archive of a package with a chart, with enough of a file that does not get smaller.
func packed(t *testing.T, more map[string]string) []byte {
	t.Helper()
	random := make([]byte, 40<<10)
	_, err := rand.Read(random)
	require.NoError(t, err)
	entries := []entry{{name: "random", content: string(random)}}
	for name, content := range helmFiles(more) {
		entries = append(entries, entry{name: name, content: string(content)})
	}
	return zipOf(t, entries...)
}

// doubling is a schema that takes twice the time for each of its levels.
func doubling(levels int) string {
	definitions := []string{`"d0": {"type": "object"}`}
	for i := range levels {
		definitions = append(definitions, fmt.Sprintf(`"d%d": {"allOf": [{"$ref": "#/definitions/d%d"}, {"$ref": "#/definitions/d%d"}]}`, i+1, i, i))
	}
	return fmt.Sprintf(`{"allOf": [{"$ref": "#/definitions/d%d"}], "definitions": {%s}}`, levels, strings.Join(definitions, ", "))
}

func TestAChartThatWouldEndTheServerIsRefusedInOneSentence(t *testing.T) {
	s := service(t, inChildren(t))
	shared := "a: &a {text: " + strings.Repeat("x", 2000) + "}\n"
	for i := range 3000 {
		shared += fmt.Sprintf("b%d: *a\n", i)
	}
	wide := `{"type": "object", "properties": {` + strings.TrimSuffix(strings.Repeat(`"P": {"$ref": "#"},`, 300), ",") + `}}`
	for i := range 300 {
		wide = strings.Replace(wide, `"P"`, fmt.Sprintf(`"p%d"`, i), 1)
	}
	for says, files := range map[string]map[string]string{
		"the chart in Resources/chart: templates/a.yaml:1: more than 1000 blocks are open, one in another": {"Resources/chart/templates/a.yaml": strings.Repeat("{{if.}}", 748_000)},
		"templates/a.yaml:2: more than 1000 blocks are open":                                               {"Resources/chart/templates/a.yaml": "{{if 1}}\n" + strings.Repeat("{{else if 1}}", 400_000)},
		"values.yaml: it should be a map of values: line 1: it has more than 4 MiB, aliases written out":   {"Resources/chart/values.yaml": shared},
	} {
		_, err := s.Upload(t.Context(), demo, catalog.Metadata{}, packed(t, files))
		require.ErrorContains(t, err, says)
		require.Equal(t, fault.Invalid, fault.KindOf(err))
	}
	_, err := s.Upload(t.Context(), demo, catalog.Metadata{}, packed(t, map[string]string{"Resources/chart/values.schema.json": wide}))
	require.NoError(t, err, "a form has no room for all of its values")
}

func TestASchemaWithoutEndDoesNotHoldUpADeployment(t *testing.T) {
	s := service(t, inChildren(t))
	record, err := s.Upload(t.Context(), demo, catalog.Metadata{}, packed(t, map[string]string{"Resources/chart/values.schema.json": doubling(40)}))
	require.NoError(t, err)
	p, err := s.Open(t.Context(), demo, record.ID)
	require.NoError(t, err)
	archive, err := charts.Archive(p, "chart")
	require.NoError(t, err)
	err = p.CheckChartValues(t.Context(), archive, map[string]any{"replicas": 2})
	require.ErrorContains(t, err, "checking the values with the chart's schema takes more than 1s of a processor")
}

func TestAChildReadsAChartAsTheProcessItselfDoes(t *testing.T) {
	files := map[string]string{"Resources/chart/values.schema.json": chartSchema, "Resources/chart/icon.png": "\x89PNG\r\n\x1a\n"}
	s := service(t, inChildren(t))
	record, err := s.Upload(t.Context(), demo, catalog.Metadata{}, packed(t, files))
	require.NoError(t, err)
	p, err := s.Open(t.Context(), demo, record.ID)
	require.NoError(t, err)
	here := helmPackage(t, files)
	require.Equal(t, []any{here.Name(), here.Description(), here.Author(), here.Tags(), here.Version()}, []any{p.Name(), p.Description(), p.Author(), p.Tags(), p.Version()})
	require.Equal(t, string(formOf(t, here)), string(formOf(t, p)))
	logo, err := p.Logo()
	require.NoError(t, err)
	require.Equal(t, "\x89PNG\r\n\x1a\n", string(logo))

	archive, err := charts.Archive(p, "chart")
	require.NoError(t, err)
	require.NoError(t, p.CheckChartValues(t.Context(), archive, map[string]any{"replicas": int64(1234567), "admin": "ann", "ratio": 0.5}))
	err = p.CheckChartValues(t.Context(), archive, map[string]any{"replicas": int64(0), "admin": "ann", "ratio": "much"})
	require.ErrorContains(t, err, "ratio: got string, want number")
	require.ErrorContains(t, err, "replicas: ")
	_, err = s.Upload(t.Context(), demo, catalog.Metadata{}, packed(t, map[string]string{"manifest.yaml": "Format: Helm/1.0\nFullName: org.Other\n", "Resources/chart/templates/a.yaml": "{{ if }}"}))
	require.ErrorContains(t, err, "the chart in Resources/chart: templates/a.yaml:1: missing value")
}

func TestAnArchiveThatUnpacksWithoutEndIsRefused(t *testing.T) {
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	writer := tar.NewWriter(compressed)
	zeros := make([]byte, 4<<20)
	for i := range 20 {
		require.NoError(t, writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("chart/f%d", i), Size: int64(len(zeros)), Mode: 0o644}))
		_, err := writer.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, writer.Close())
	require.NoError(t, compressed.Close())
	_, err := charts.Read(archive.Bytes())
	require.ErrorContains(t, err, "it unpacks to too much")
}

func TestAReaderHasChildrenReadItsCharts(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	archive := packed(t, nil)
	read := func(limits door.Limits) (errs []error) {
		of := catalog.Reader{Children: door.NewChildren(self, 1, limits)}
		_, zipped := of.Zip(t.Context(), bytes.NewReader(archive), int64(len(archive)))
		_, files := of.Files(t.Context(), helmFiles(nil))
		folder := fstest.MapFS{}
		for name, text := range helmFiles(nil) {
			folder[name] = &fstest.MapFile{Data: text}
		}
		_, unpacked := of.Folder(t.Context(), folder)
		return []error{zipped, files, unpacked}
	}
	for _, err := range read(door.Limits{}) {
		require.NoError(t, err)
	}
	for _, err := range read(door.Limits{Result: 10}) {
		require.ErrorContains(t, err, "the result of reading the chart has more than 10 bytes", "its limits hold")
	}
}
