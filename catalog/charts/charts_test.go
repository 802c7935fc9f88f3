package charts_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/internal/fault"
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
	archive, err := charts.Archive(files, "chart")
	require.NoError(t, err)
	again, err := charts.Archive(files, "chart")
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
	taken, err := charts.Archive(files, "made.tgz")
	require.NoError(t, err)
	require.Equal(t, archive, taken)
}

func TestWhatIsNoChartsPlaceIsRefused(t *testing.T) {
	random := make([]byte, charts.MaxArchive+1) // does not get smaller
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
		"large file":         {filesOf{"Resources/chart/Chart.yaml": aChart, "Resources/chart/f": string(make([]byte, 5<<20+1))}, "chart", "Resources/chart/f has 5242881 bytes"},
		"large as a folder":  {filesOf{"Resources/chart/Chart.yaml": aChart, "Resources/chart/f": string(random)}, "chart", "leave out what its templates do not read"},
		"large as a archive": {filesOf{"Resources/a.tgz": string(random)}, "a.tgz", "leave out what its templates do not read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := charts.Archive(of.files, of.chart)
			require.ErrorContains(t, err, of.says)
		})
	}
}

// archive makes an archive of a chart with files besides Chart.yaml.
func archive(t *testing.T, files filesOf) []byte {
	t.Helper()
	all := filesOf{"Resources/chart/Chart.yaml": aChart}
	for name, text := range files {
		all["Resources/chart/"+name] = text
	}
	made, err := charts.Archive(all, "chart")
	require.NoError(t, err)
	return made
}

const aSchema = `{"type": "object", "required": ["replicas"], "properties": {
	"replicas": {"type": "integer", "minimum": 1}, "auth": {"properties": {"password": {"type": "string", "pattern": "^[a-z]+$"}}}}}`

func TestAChartIsRead(t *testing.T) {
	chart, err := charts.Read(archive(t, filesOf{
		"Chart.yaml":  aChart + "description: Pages\nicon: file://pics/icon.png\nkeywords: [web]\nmaintainers: [{name: Ann}]\ndependencies: [{name: part, version: 1.x.x}, {name: other}]\n",
		"values.yaml": "replicas: 1\nimage: {tag: x}\n", "values.schema.json": aSchema, "pics/icon.png": "an image",
		"charts/part/Chart.yaml": aChart, "charts/other-1.0.0.tgz": "", "templates/a.yaml": `{{- include "x" . | nindent 2 }}{{ range .Values.l }}{{ break }}{{ end }}`,
	}))
	require.NoError(t, err)
	require.Equal(t, []any{"pages", "1.0.0", "Pages", []string{"web"}, "Ann", "an image"},
		[]any{chart.Name, chart.Version, chart.Description, chart.Keywords, chart.Maintainer, string(chart.Icon)})
	require.Equal(t, map[string]any{"replicas": 1, "image": map[string]any{"tag": "x"}}, chart.Values)

	require.NoError(t, chart.CheckValues(nil))
	require.NoError(t, chart.CheckValues(map[string]any{"replicas": int64(3), "auth": map[string]any{"password": "horse"}}))
	require.ErrorContains(t, chart.CheckValues(map[string]any{"replicas": int64(0)}), "replicas: ")
	require.ErrorContains(t, chart.CheckValues(map[string]any{"replicas": nil}), "replicas")
	err = chart.CheckValues(map[string]any{"replicas": "many", "auth": map[string]any{"password": "Horse1"}})
	require.ErrorContains(t, err, "replicas: got string, want integer")
	require.ErrorContains(t, err, "auth.password: it breaks the schema's rule pattern")
	require.NotContains(t, err.Error(), "Horse1")
}

func TestAWrongChartIsRefusedWithWhatIsWrong(t *testing.T) {
	for says, files := range map[string]filesOf{
		"Chart.yaml: yaml: ": {"Chart.yaml": "a: [b"},
		`Chart.yaml: apiVersion is "", and should be v2 or v1`:          {"Chart.yaml": "name: a\nversion: 1.0.0"},
		"Chart.yaml: it has no name":                                    {"Chart.yaml": "apiVersion: v2\nversion: 1.0.0"},
		"Chart.yaml: it has no version":                                 {"Chart.yaml": "apiVersion: v2\nname: a"},
		`Chart.yaml: version is "new", and should be one such as 1.2.3`: {"Chart.yaml": "apiVersion: v2\nname: a\nversion: new"},
		`Chart.yaml: name is "../a", which is no name of a chart`:       {"Chart.yaml": "apiVersion: v2\nname: ../a\nversion: 1.0.0"},
		"Chart.yaml: a chart of type library cannot be installed":       {"Chart.yaml": aChart + "type: library\n"},
		"it depends on the chart db, which is not in its folder charts": {"Chart.yaml": aChart + "dependencies: [{name: db}]\n"},
		"it depends on the chart old, which is not":                     {"Chart.yaml": "apiVersion: v1\nname: a\nversion: 1.0.0", "requirements.yaml": "dependencies: [{name: old}]"},
		"values.yaml: it should be a map of values":                     {"values.yaml": "- a"},
		"values.schema.json: it is no JSON":                             {"values.schema.json": "{"},
		"values.schema.json: it should be an object":                    {"values.schema.json": "[]"},
		"values.schema.json: ":                                          {"values.schema.json": `{"type": "nothing"}`},
		"templates/a.yaml:2: missing value for if":                      {"templates/a.yaml": "a: b\n{{ if }}"},
		"templates/_b.tpl:1: unexpected EOF":                            {"templates/_b.tpl": "{{ define \"x\" }}"},
	} {
		_, err := charts.Read(archive(t, files))
		require.ErrorContains(t, err, says)
	}
	_, err := charts.Read([]byte("no archive"))
	require.ErrorContains(t, err, "it is no archive (.tgz)")
	var compressed bytes.Buffer
	zipped := gzip.NewWriter(&compressed)
	packed := tar.NewWriter(zipped)
	require.NoError(t, packed.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "chart/values.yaml", Linkname: "/etc/passwd"}))
	require.NoError(t, packed.Close())
	require.NoError(t, zipped.Close())
	_, err = charts.Read(compressed.Bytes())
	require.ErrorContains(t, err, "chart/values.yaml is no plain file")
}

func TestASchemaOfSomewhereElseIsNotFetched(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	for _, of := range []string{server.URL + "/a.json", "file:///etc/passwd"} {
		chart, err := charts.Read(archive(t, filesOf{"values.schema.json": `{"properties": {"a": {"$ref": "` + of + `"}}}`}))
		require.NoError(t, err)
		require.NoError(t, chart.CheckValues(map[string]any{"a": 1}))
	}
	require.False(t, asked)
}

func TestChartsAreFetchedFromWhereTheOperatorAdmitsIt(t *testing.T) {
	packed := archive(t, filesOf{"values.yaml": "a: 1\n"})
	oci := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer oci.Close()
	host := strings.TrimPrefix(oci.URL, "http://")
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image, err := mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(packed, "application/vnd.cncf.helm.chart.content.v1.tar+gzip")})
	require.NoError(t, err)
	tag, err := name.ParseReference(host + "/charts/pages:1.0.0")
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, image))
	other, err := name.ParseReference(host + "/charts/image:1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(other, empty.Image))

	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		digest := strings.TrimPrefix(charts.Digest(packed), "sha256:")
		switch r.URL.Path {
		case "/stable/index.yaml":
			_, _ = io.WriteString(w, "entries:\n  pages:\n  - {version: 2.0.0, urls: [pages-1.0.0.tgz], digest: 00}\n  - {version: 1.0.0, urls: [pages-1.0.0.tgz], digest: "+digest+
				"}\n  - {version: 3.0.0, urls: ['http://elsewhere.invalid/pages.tgz']}\n  - {version: 4.0.0, urls: ['"+web.URL+"/stable/none.tgz']}\n")
		case "/stable/pages-1.0.0.tgz":
			_, _ = w.Write(packed)
		default:
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	sources, err := charts.NewSources([]string{"oci://" + host + "/charts/", web.URL + "/stable"}, charts.Logins{}, nil)
	require.NoError(t, err)
	fetch := func(of charts.Reference) error {
		got, err := sources.Fetch(t.Context(), of)
		if err == nil {
			require.Equal(t, packed, got)
		} else {
			require.Equal(t, fault.Invalid, fault.KindOf(err))
		}
		return err
	}
	of := func(repository, name, version string) charts.Reference {
		return charts.Reference{Repository: repository, Name: name, Version: version}
	}
	require.NoError(t, fetch(charts.Reference{OCI: "oci://" + host + "/charts/pages:1.0.0"}))
	require.NoError(t, fetch(of(web.URL+"/stable/", "pages", "1.0.0")))
	for says, wrong := range map[string]charts.Reference{
		"what is there is no Helm chart":                           {OCI: "oci://" + host + "/charts/image:1"},
		"MANIFEST_UNKNOWN":                                         {OCI: "oci://" + host + "/charts/pages:2.0.0"},
		"does not admit oci://" + host + "/chartsmore/pages:1.0.0": {OCI: "oci://" + host + "/chartsmore/pages:1.0.0"},
		"does not admit oci://elsewhere.invalid/":                  {OCI: "oci://elsewhere.invalid/charts/pages:1.0.0"},
		"should be like oci://":                                    {OCI: "oci://" + host + "/charts/pages"},
		"should begin with oci://":                                 {OCI: "https://" + host},
		"does not admit " + web.URL + " as a source":               of(web.URL, "pages", "1.0.0"),
		"should be an address such as":                             of("http://127.0.0.1@elsewhere.invalid/stable", "pages", "1.0.0"),
		"it has no version":                                        of(web.URL+"/stable", "pages", ""),
		"no chart of that name":                                    of(web.URL+"/stable", "none", "1.0.0"),
		"no such version; there is 2.0.0, 1.0.0, 3.0.0, 4.0.0":     of(web.URL+"/stable", "pages", "9.0.0"),
		"another chart than index.yaml says":                       of(web.URL+"/stable", "pages", "2.0.0"),
		"elsewhere.invalid/pages.tgz, which the operator does not": of(web.URL+"/stable", "pages", "3.0.0"),
		"none.tgz answers 404":                                     of(web.URL+"/stable", "pages", "4.0.0"),
		"/../other as a source":                                    of(web.URL+"/stable/../other", "pages", "4.0.0"),
	} {
		require.ErrorContains(t, fetch(wrong), says)
	}
	_, err = charts.NewSources([]string{"registry.example.org/charts"}, charts.Logins{}, nil)
	require.ErrorContains(t, err, "is no source of charts")
}

// closed serves requests with this user and password, by HTTP's basic authentication.
func closed(user, password string, inside http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, word, _ := r.BasicAuth(); name != user || word != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		inside.ServeHTTP(w, r)
	})
}

func TestChartsAreFetchedFromWhatWantsAPassword(t *testing.T) {
	packed := archive(t, filesOf{"values.yaml": "a: 1\n"})
	oci := httptest.NewServer(closed("ann", "right", registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
	defer oci.Close()
	host := strings.TrimPrefix(oci.URL, "http://")
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image, err := mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(packed, "application/vnd.cncf.helm.chart.content.v1.tar+gzip")})
	require.NoError(t, err)
	tag, err := name.ParseReference(host + "/charts/pages:1.0.0")
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, image, remote.WithAuth(&authn.Basic{Username: "ann", Password: "right"})))

	told := make(chan string, 1) // receives the credentials that reach the redirect's target
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told <- r.Header.Get("Authorization")
		_, _ = w.Write(packed)
	}))
	defer elsewhere.Close()
	other := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
	web := httptest.NewServer(closed("bob", "good", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/index.yaml":
			_, _ = io.WriteString(w, "entries:\n  pages:\n  - {version: 1.0.0, urls: [pages.tgz]}\n  - {version: 2.0.0, urls: [moved.tgz]}\n")
		case "/pages.tgz":
			_, _ = w.Write(packed)
		case "/moved.tgz":
			http.Redirect(w, r, other, http.StatusFound)
		}
	})))
	defer web.Close()

	file := filepath.Join(t.TempDir(), "logins.json")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(`{"auths": {}}`)
	logins, err := charts.NewLogins(file)
	require.NoError(t, err)
	sources, err := charts.NewSources([]string{"oci://" + host + "/charts", web.URL, other + "/moved"}, logins, nil)
	require.NoError(t, err)
	fetch := func(of charts.Reference) error {
		got, err := sources.Fetch(t.Context(), of)
		if err == nil {
			require.Equal(t, packed, got)
			return nil
		}
		require.Equal(t, fault.Invalid, fault.KindOf(err))
		for _, secret := range []string{"right", "guessed", "good", "YW5uOnJpZ2h0"} {
			require.NotContains(t, err.Error(), secret)
		}
		return err
	}
	inRegistry, inRepository := charts.Reference{OCI: "oci://" + host + "/charts/pages:1.0.0"}, charts.Reference{Repository: web.URL, Name: "pages", Version: "1.0.0"}
	at := strings.TrimPrefix(web.URL, "http://")

	require.ErrorContains(t, fetch(inRegistry), host+" wants a login")
	require.ErrorContains(t, fetch(inRepository), at+" wants a login")

	// The file is read each time. Both forms of Docker's are known.
	write(`{"auths": {"` + host + `": {"auth": "YW5uOnJpZ2h0"}, "http://` + at + `/": {"username": "bob", "password": "good"}}}`)
	require.NoError(t, fetch(inRegistry))
	require.NoError(t, fetch(inRepository))
	require.NoError(t, fetch(charts.Reference{Repository: web.URL, Name: "pages", Version: "2.0.0"}))
	require.Empty(t, <-told, "a login is for its own host")

	write(`{"auths": {"` + host + `": {"username": "ann", "password": "guessed"}, "` + at + `": {"username": "bob", "password": "guessed"}}}`)
	require.ErrorContains(t, fetch(inRegistry), host+" refuses the login of user ann")
	require.ErrorContains(t, fetch(inRepository), at+" refuses the login of user bob")
	require.NoError(t, os.Remove(file))
	require.ErrorContains(t, fetch(inRegistry), "read the operator's logins (setting chart-credentials)")
}

// elsewhere is a server of a host that no operator admits. Nothing may ask it.
func elsewhere(t *testing.T, content []byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("it was asked for %s", r.URL)
		_, _ = w.Write(content)
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
}

func TestARedirectToAHostThatIsNotAdmittedIsRefused(t *testing.T) {
	packed := archive(t, filesOf{"values.yaml": "a: 1\n"})
	other := elsewhere(t, packed)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stable/index.yaml":
			_, _ = io.WriteString(w, "entries:\n  pages:\n  - {version: 1.0.0, urls: [pages.tgz]}\n  - {version: 2.0.0, urls: [moved.tgz]}\n")
		case "/stable/pages.tgz":
			http.Redirect(w, r, "/storage/pages", http.StatusFound) // of the same host
		case "/storage/pages":
			_, _ = w.Write(packed)
		default:
			http.Redirect(w, r, other+"/latest/meta-data", http.StatusFound)
		}
	}))
	defer web.Close()
	blobs := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	var away bool
	oci := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			http.Redirect(w, r, other+"/blob", http.StatusTemporaryRedirect)
			return
		}
		blobs.ServeHTTP(w, r)
	}))
	defer oci.Close()
	host := strings.TrimPrefix(oci.URL, "http://")
	push(t, host+"/charts/pages:1.0.0", static.NewLayer(packed, chartType), nil)
	away = true

	sources, err := charts.NewSources([]string{"oci://" + host + "/charts", web.URL + "/stable", web.URL + "/gone"}, charts.Logins{}, nil)
	require.NoError(t, err)
	got, err := sources.Fetch(t.Context(), charts.Reference{Repository: web.URL + "/stable", Name: "pages", Version: "1.0.0"})
	require.NoError(t, err)
	require.Equal(t, packed, got)
	for _, one := range []charts.Reference{
		{Repository: web.URL + "/stable", Name: "pages", Version: "2.0.0"}, {Repository: web.URL + "/gone", Name: "pages", Version: "1.0.0"}, {OCI: "oci://" + host + "/charts/pages:1.0.0"},
	} {
		_, err = sources.Fetch(t.Context(), one)
		require.ErrorContains(t, err, "it redirects to "+other+", which the operator of this Burano does not admit (setting chart-sources)")
		require.Equal(t, fault.Invalid, fault.KindOf(err))
	}
}

const chartType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// push puts a chart into a registry, with addresses for its layer.
func push(t *testing.T, at string, layer v1.Layer, urls []string) {
	t.Helper()
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{Layer: layer, URLs: urls})
	require.NoError(t, err)
	tag, err := name.ParseReference(at)
	require.NoError(t, err)
	require.NoError(t, remote.Write(tag, image))
}

func TestAddressesThatAManifestHasForALayerAreNotAsked(t *testing.T) {
	packed := archive(t, filesOf{"values.yaml": "a: 1\n"})
	other := elsewhere(t, packed)
	blobs, gone := registry.New(registry.Logger(log.New(io.Discard, "", 0))), false
	oci := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone && strings.Contains(r.URL.Path, "/blobs/") {
			http.NotFound(w, r)
			return
		}
		blobs.ServeHTTP(w, r)
	}))
	defer oci.Close()
	host := strings.TrimPrefix(oci.URL, "http://")
	push(t, host+"/charts/pages:1.0.0", static.NewLayer(packed, chartType), []string{other + "/layer"})
	gone = true
	sources, err := charts.NewSources([]string{"oci://" + host + "/charts"}, charts.Logins{}, nil)
	require.NoError(t, err)
	_, err = sources.Fetch(t.Context(), charts.Reference{OCI: "oci://" + host + "/charts/pages:1.0.0"})
	require.ErrorContains(t, err, "404")
}

func TestAFileOfLoginsThatIsNoneIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "logins.json")
	for text, says := range map[string]string{
		"hunter2":      "is not as Docker's config.json is",
		`{"auth": 1}`:  "is not as Docker's config.json is",
		`{"auths": 1}`: "is not as Docker's config.json is",
		`{"auths": {"registry.example.org": {}}, "credsStore": "x"}`:                                 "the entry of registry.example.org has no login",
		`{"auths": {"registry.example.org": {"auth": "hunter2"}}}`:                                   "the entry of registry.example.org has no login",
		`{"auths": {"registry.example.org/charts": {"username": "a", "password": "hunter2"}}}`:       `"registry.example.org/charts" is no host such as`,
		`{"auths": {"https://index.docker.io/v1/": {"username": "a", "password": "hunter2"}, "": 1}`: "is not as Docker's config.json is",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := charts.NewLogins(file)
		require.ErrorContains(t, err, says, text)
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.NoError(t, os.WriteFile(file, []byte(`{"auths": {"https://index.docker.io/v1/": {"username": "a", "password": "hunter2"}}}`), 0o600))
	_, err := charts.NewLogins(file)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(file, 0o640))
	_, err = charts.NewLogins(file)
	require.ErrorContains(t, err, "chmod 600")
	_, err = charts.NewLogins(file + ".none")
	require.ErrorContains(t, err, "no such file")
}
