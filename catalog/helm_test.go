package catalog_test

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/ui"
	"github.com/burano/burano/internal/fault"
)

const chartSchema = `{
  "type": "object",
  "required": ["replicas", "admin", "ratio"],
  "definitions": {"port": {"type": "integer", "title": "The port", "minimum": 1, "maximum": 65535}},
  "properties": {
    "replicas": {"type": "integer", "minimum": 1, "description": "How many"},
    "admin": {"type": "string", "minLength": 3, "pattern": "^[a-z]+$"},
    "adminPassword": {"type": "string"},
    "pin": {"type": ["string", "null"], "format": "password"},
    "ratio": {"type": "number"},
    "mode": {"enum": ["fast", "safe"]},
    "level": {"type": "integer", "enum": [1, 2]},
    "image": {"type": "object", "properties": {
      "tag": {"type": "string"},
      "pull": {"type": "object", "properties": {"always": {"type": "boolean"}, "retries-max": {"type": "integer", "default": 3}}}}},
    "service": {"properties": {"port": {"$ref": "#/definitions/port"}}},
    "hosts": {"type": "array", "items": {"type": "string"}, "description": "Names"},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}}
  }
}`

const chartValues = "replicas: 1\nadminPassword: changeme\nmode: fast\nimage: {tag: \"1.0\", pull: {always: true}}\nservice: {port: 80}\nhosts: [a]\n"

// helmFiles returns the files of a package with a chart.
func helmFiles(more map[string]string) map[string][]byte {
	files := map[string]string{
		"manifest.yaml":                    "Format: Helm/1.0\nFullName: org.Pages\n",
		"Resources/chart/Chart.yaml":       "apiVersion: v2\nname: pages\nversion: 1.2.3\ndescription: Pages of a web\nkeywords: [web]\nmaintainers: [{name: Ann}]\n",
		"Resources/chart/values.yaml":      chartValues,
		"Resources/chart/templates/a.yaml": "a: {{ .Values.replicas }}",
	}
	maps.Copy(files, more)
	all := map[string][]byte{}
	for name, text := range files {
		if text != "" {
			all[name] = []byte(text)
		}
	}
	return all
}

func helmPackage(t *testing.T, more map[string]string) *catalog.Package {
	t.Helper()
	p, err := catalog.ReadFiles(helmFiles(more))
	require.NoError(t, err)
	return p
}

// definition is the form of a package, without a flaw.
func definition(t *testing.T, p *catalog.Package) *ui.Definition {
	t.Helper()
	parsed, problems := ui.Parse("form", formOf(t, p))
	require.Empty(t, problems)
	return parsed
}

func TestAChartSaysWhatItsManifestDoesNot(t *testing.T) {
	p := helmPackage(t, map[string]string{"Resources/chart/icon.png": "\x89PNG\r\n\x1a\n"})
	require.Equal(t, []any{"org.Pages", "pages", "Application", "1.2.3", "Pages of a web", "Ann"}, []any{p.FullName(), p.Name(), p.Type(), p.Version().String(), p.Description(), p.Author()})
	require.Equal(t, []string{"web"}, p.Tags())
	require.Equal(t, []string{"org.Pages"}, p.ClassNames())
	require.Equal(t, map[string]string{"io.burano.HelmRelease": ">=1.0.0, <2.0.0"}, p.Requires())
	logo, err := p.Logo()
	require.NoError(t, err)
	require.Equal(t, "\x89PNG\r\n\x1a\n", string(logo))
	p = helmPackage(t, map[string]string{"manifest.yaml": "Format: Helm/1.0\nFullName: org.Pages\nName: Other\nVersion: 2.0.0\nType: Library\nTags: []\nRequire: {io.burano.HelmRelease: '1'}\n"})
	require.Equal(t, []any{"Other", "2.0.0", "Library"}, []any{p.Name(), p.Version().String(), p.Type()})
	require.Equal(t, map[string]string{"io.burano.HelmRelease": "1"}, p.Requires())
}

func TestTheClassOfAChartIsARelease(t *testing.T) {
	embedded, err := apps.Packages()
	require.NoError(t, err)
	class, err := muranopl.NewClasses(append(catalog.Shelf{helmPackage(t, nil)}, embedded...)).Class(t.Context(), "org.Pages", "")
	require.NoError(t, err)
	require.True(t, class.Is("io.burano.HelmRelease"))
	require.NotEmpty(t, class.Property("chart"))
}

func TestAChartWithASchemaGetsAForm(t *testing.T) {
	p := helmPackage(t, map[string]string{"Resources/chart/values.schema.json": chartSchema})
	form := definition(t, p)
	views, err := form.Describe(t.Context(), nil)
	require.NoError(t, err)
	fields := map[string]ui.FieldView{}
	var names []string
	for _, view := range views {
		for _, field := range view.Fields {
			names = append(names, view.Name+"."+field.Name)
			fields[view.Name+"."+field.Name] = field
		}
	}
	require.Equal(t, []string{"release.title", "release.name", "release.kubernetesCluster", "release.namespace", "release.timeout",
		"values.replicas", "values.admin", "values.adminPassword", "values.pin", "values.ratio", "values.mode", "values.level", "values.hosts", "values.labels", "values.furtherValues",
		"image.tag", "image.pull_always", "image.pull_retries_max", "service.port"}, names)
	one := int64(1)
	require.Equal(t, ui.FieldView{Name: "replicas", Type: "integer", Label: "Replicas", Description: "How many", Initial: int64(1), MinValue: &one}, fields["values.replicas"])
	require.True(t, fields["values.admin"].Required)
	require.True(t, fields["values.adminPassword"].Secret)
	require.Equal(t, "", fields["values.adminPassword"].Initial, "what the chart has for a password is not shown")
	require.True(t, fields["values.pin"].Secret)
	require.Equal(t, []ui.Choice{{Label: "-"}, {Value: "fast", Label: "fast"}, {Value: "safe", Label: "safe"}}, fields["values.mode"].Choices)
	require.Equal(t, "Pull: Retries max", fields["image.pull_retries_max"].Label)
	require.Equal(t, "The port", fields["service.port"].Label)
	require.Equal(t, "Names. In YAML", fields["values.hosts"].Description)

	fill := func(values map[string]map[string]any) ui.Result {
		values["release"] = map[string]any{"name": "shop", "kubernetesCluster": "c1"}
		result, err := form.Evaluate(t.Context(), ui.Input{Values: values})
		require.NoError(t, err)
		return result
	}
	result := fill(map[string]map[string]any{"values": {"admin": "ann", "ratio": "1.5"}})
	require.Empty(t, result.Errors)
	require.Equal(t, map[string]any{"admin": "ann", "ratio": json.Number("1.5"), "image": map[string]any{"pull": map[string]any{"retries-max": int64(3)}}}, result.Model["values"],
		"what the chart has anyhow is not repeated: the next version of the chart may have another")
	require.Equal(t, map[string]any{}, result.Model["texts"])
	require.Equal(t, []any{"shop", "c1", "default", int64(300)}, []any{result.Model["name"], result.Model["kubernetesCluster"], result.Model["namespace"], result.Model["timeout"]})

	result = fill(map[string]map[string]any{
		"values": {"admin": "ann", "ratio": "2", "replicas": 3, "adminPassword": "x", "pin": "0000", "mode": "safe", "level": "2", "hosts": "[b]", "labels": "a: b", "furtherValues": "other: 1"},
		"image":  {"tag": "2.0", "pull_always": false, "pull_retries_max": nil}, "service": {"port": 8080}})
	require.Empty(t, result.Errors)
	require.Equal(t, map[string]any{"admin": "ann", "ratio": json.Number("2.0"), "replicas": int64(3), "adminPassword": "x", "pin": "0000", "mode": "safe", "level": int64(2),
		"image": map[string]any{"tag": "2.0", "pull": map[string]any{"always": false}}, "service": map[string]any{"port": int64(8080)}}, result.Model["values"])
	require.Equal(t, map[string]any{"/hosts": "[b]", "/labels": "a: b", "": "other: 1"}, result.Model["texts"])

	result = fill(map[string]map[string]any{"values": {"admin": "A", "ratio": "many", "replicas": 0, "level": "3"}})
	wrong := map[string]bool{}
	for _, one := range result.Errors {
		wrong[one.Form+"."+one.Field] = true
	}
	require.Equal(t, map[string]bool{"values.admin": true, "values.ratio": true, "values.replicas": true, "values.level": true}, wrong)
}

func TestAChartWithoutASchemaGetsAFieldForItsValues(t *testing.T) {
	form := definition(t, helmPackage(t, nil))
	result, err := form.Evaluate(t.Context(), ui.Input{Values: map[string]map[string]any{
		"release": {"name": "shop", "kubernetesCluster": "c1"}, "values": {"furtherValues": "replicas: 2"}}})
	require.NoError(t, err)
	require.Empty(t, result.Errors)
	require.Equal(t, []any{map[string]any{}, map[string]any{"": "replicas: 2"}}, []any{result.Model["values"], result.Model["texts"]})
}

func TestAPackageWithAWrongChartIsRefused(t *testing.T) {
	for says, files := range map[string]map[string]string{
		"the chart: the package has no file Resources/chart/Chart.yaml":              {"Resources/chart/Chart.yaml": ""},
		"the chart: the package has no file Resources/other.tgz":                     {"manifest.yaml": "Format: Helm/1.0\nFullName: org.Pages\nChart: other.tgz\n"},
		"the chart in Resources/chart: templates/a.yaml:1: missing value":            {"Resources/chart/templates/a.yaml": "{{ if }}"},
		"the chart in Resources/chart: values.schema.json: it is no JSON":            {"Resources/chart/values.schema.json": "{"},
		"Chart should be a place in Resources, an address oci://…, or a map of":      {"manifest.yaml": "Format: Helm/1.0\nFullName: org.Pages\nChart: {repo: a}\n"},
		"Chart: \"oci://a\" should be like oci://registry.example.org/charts/pages:": {"manifest.yaml": "Format: Helm/1.0\nFullName: org.Pages\nChart: oci://a\n"},
		"Chart: it has no version: say which one":                                    {"manifest.yaml": "Format: Helm/1.0\nFullName: org.Pages\nChart: {repository: 'https://a.example', name: b}\n"},
	} {
		_, err := catalog.ReadFiles(helmFiles(files))
		require.ErrorContains(t, err, says)
		require.Equal(t, fault.Invalid, fault.KindOf(err))
	}
}

// oneChart is a source of charts.
type oneChart struct{ archive []byte }

func (o oneChart) Fetch(_ context.Context, reference charts.Reference) ([]byte, error) {
	if !strings.HasSuffix(reference.OCI, "/pages:1.2.3") {
		return nil, fault.New(fault.Invalid, "%s is not there", reference)
	}
	return o.archive, nil
}

func TestAChartThatIsOnlyNamedIsFetchedAtUpload(t *testing.T) {
	const named = "Format: Helm/1.0\nFullName: org.Pages\nChart: oci://registry.example.org/pages:1.2.3\n"
	archive, err := charts.Archive(helmPackage(t, map[string]string{"Resources/chart/values.schema.json": chartSchema}), "chart")
	require.NoError(t, err)
	zip := zipOf(t, entry{name: "manifest.yaml", content: named})
	p, err := read(zip)
	require.NoError(t, err)
	require.Equal(t, "oci://registry.example.org/pages:1.2.3", p.ChartReference().String())

	s := service(t)
	_, err = s.Upload(t.Context(), demo, catalog.Metadata{}, zip)
	require.ErrorContains(t, err, "the package names the chart oci://registry.example.org/pages:1.2.3, and this Burano fetches none: put the chart itself into the package")
	s = service(t, catalog.ChartsFrom(oneChart{archive}))
	_, err = s.Upload(t.Context(), demo, catalog.Metadata{}, zipOf(t, entry{name: "manifest.yaml", content: strings.Replace(named, "1.2.3", "2.0.0", 1)}))
	require.ErrorContains(t, err, "pages:2.0.0 is not there")
	record, err := s.Upload(t.Context(), demo, catalog.Metadata{}, zip)
	require.NoError(t, err)
	require.Equal(t, []any{"pages", "1.2.3", "Pages of a web"}, []any{record.Name, record.Version, record.Description})

	kept, err := s.Download(t.Context(), demo, record.ID)
	require.NoError(t, err)
	p, err = read(kept)
	require.NoError(t, err)
	require.Nil(t, p.ChartReference())
	from, digest := p.ChartOrigin()
	require.Equal(t, []string{"oci://registry.example.org/pages:1.2.3", charts.Digest(archive)}, []string{from, digest})
	require.Contains(t, string(formOf(t, p)), "adminPassword")
	_, class, err := p.ClassFile("org.Pages")
	require.NoError(t, err)
	require.Contains(t, string(class), `"Default": "pages-1.2.3.tgz"`)

	// A fetched chart cannot be replaced.
	files := map[string][]byte{}
	for _, name := range p.FileNames() {
		files[name], err = p.File(name)
		require.NoError(t, err)
	}
	files["manifest.yaml"] = []byte(strings.Replace(named, "1.2.3", "2.0.0", 1))
	_, err = catalog.ReadFiles(files)
	require.ErrorContains(t, err, "Resources/chart.lock is of the chart oci://registry.example.org/pages:1.2.3, and the manifest names oci://registry.example.org/pages:2.0.0")
	files["manifest.yaml"], files["Resources/pages-1.2.3.tgz"] = []byte(named), []byte("another")
	_, err = catalog.ReadFiles(files)
	require.ErrorContains(t, err, "pages-1.2.3.tgz is not what Resources/chart.lock says")
}
