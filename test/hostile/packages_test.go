package hostile

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/internal/wait"
)

// upload uploads a package of these files for the hostile project at the next entrance.
func (l *lab) upload(t *testing.T, files map[string]string) (status int, answer string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "package.zip")
	require.NoError(t, err)
	archive := zip.NewWriter(part)
	for name, text := range files {
		file, err := archive.Create(name)
		require.NoError(t, err)
		_, err = io.WriteString(file, text)
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	require.NoError(t, form.Close())
	content := body.Bytes()
	// The requests of the former attack may still have the project's places.
	require.NoError(t, wait.Every(100*time.Millisecond).For(time.Minute).Until(t.Context(), func(context.Context) error {
		response, err := l.entrance().send(t.Context(), l.hostile, http.MethodPost, "/v1/catalog/packages", bytes.NewReader(content), "Content-Type", form.FormDataContentType())
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode == http.StatusTooManyRequests {
			err = wait.Again(fmt.Errorf("%s", text))
		}
		status, answer = response.StatusCode, string(text)
		return err
	}))
	return status, answer
}

// use asks for the form of an uploaded package, whose upload was answered with this text, and for a preview of an application
// of it, and deletes it.
func (l *lab) use(t *testing.T, name, uploaded string) {
	t.Helper()
	var made struct {
		ID   string
		Name string `json:"fully_qualified_name"`
	}
	require.NoError(t, json.Unmarshal([]byte(uploaded), &made))
	path := "/v1/catalog/packages/" + made.ID
	environment := map[string]any{"name": "hostile", "services": []any{map[string]any{"?": map[string]any{"id": "a", "type": made.Name}, "name": "a"}}}
	for _, one := range []struct {
		method, path string
		body         any
	}{{http.MethodGet, path + "/ui", nil}, {http.MethodPost, "/burano/v1/preview", environment}, {http.MethodDelete, path, nil}} {
		status, answer, err := l.ask(t.Context(), l.hostile, one.method, one.path, one.body)
		require.NoError(t, err, name)
		require.Lessf(t, status, 500, "%s: %s %s: %.500s", name, one.method, one.path, answer)
		require.NotContains(t, string(answer), "report this", name)
	}
}

const (
	chart     = "apiVersion: v2\nname: hostile\nversion: 1.0.0\n"
	chartForm = "Format: Helm/1.0\nFullName: org.hostile.Chart\n"
	matcher   = `
Namespaces: {=: org.hostile}
Name: Matcher
Methods:
  match:
    Usage: Static
    Scope: Public
    Body:
      - Return: regex('(x+x+)+y|' * 1700).search('x' * 100000)
`
)

// laughs is a document of nested lists, each with the next one ten times, with so many levels.
func laughs(levels int) string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range levels {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	return text
}

// packages uploads a package for each of the parsers, and has one match a pattern without end: each is refused, or ends.
func packages(t *testing.T, l *lab) {
	anchors := "a: &a {text: " + strings.Repeat("x", 2000) + "}\n"
	for i := range 3000 {
		anchors += fmt.Sprintf("b%d: *a\n", i)
	}
	schema := `"d0": {"type": "object"}`
	for i := range 40 {
		schema += fmt.Sprintf(`, "d%d": {"allOf": [{"$ref": "#/definitions/d%d"}, {"$ref": "#/definitions/d%d"}]}`, i+1, i, i)
	}
	library := func(files map[string]string) map[string]string {
		files["manifest.yaml"] = "Format: 1.4\nType: Application\nFullName: org.hostile.App\nName: App\nClasses: {org.hostile.App: App.yaml}\n"
		if files["Classes/App.yaml"] == "" {
			files["Classes/App.yaml"] = "Name: org.hostile.App\nExtends: io.murano.Application\n"
		}
		return files
	}
	for _, one := range []struct {
		name  string
		files map[string]string
		taken bool // it is harmless until it is used
	}{
		{"blocks of a chart's template", map[string]string{"manifest.yaml": chartForm, "Resources/chart/Chart.yaml": chart, "Resources/chart/templates/a.yaml": strings.Repeat("{{if.}}", 748_000)}, false},
		{"anchors of a chart's values", map[string]string{"manifest.yaml": chartForm, "Resources/chart/Chart.yaml": chart, "Resources/chart/values.yaml": anchors}, false},
		{"schema of a chart", map[string]string{"manifest.yaml": chartForm, "Resources/chart/Chart.yaml": chart,
			"Resources/chart/values.schema.json": `{"allOf": [{"$ref": "#/definitions/d40"}], "definitions": {` + schema + `}}`}, true},
		{"aliases of a manifest", map[string]string{"manifest.yaml": laughs(9)}, false},
		{"aliases of a class", library(map[string]string{"Classes/App.yaml": laughs(9)}), true},
		{"aliases of a form", library(map[string]string{"UI/ui.yaml": laughs(9)}), true},
		{"aliases of a template of Heat", map[string]string{"manifest.yaml": "Format: Heat.HOT/1.0\nType: Application\nFullName: org.hostile.Stack\nName: Stack\n", "template.yaml": laughs(9)}, false},
		{"depth of a class", library(map[string]string{"Classes/App.yaml": "Name: org.hostile.App\nProperties: " + strings.Repeat("{a: ", 200_000) + strings.Repeat("}", 200_000)}), true},
		{"depth of an expression", library(map[string]string{"Classes/App.yaml": "Name: org.hostile.App\nMethods: {a: {Body: [{Return: '$" + strings.Repeat(".a(", 400_000) + strings.Repeat(")", 400_000) + "'}]}}\n"}), true},
		{"a file that unpacks to much", library(map[string]string{"Resources/zeros": strings.Repeat("\x00", 600<<20)}), false},
	} {
		status, answer := l.upload(t, one.files)
		if one.taken && status == http.StatusOK {
			l.use(t, one.name, answer)
			continue
		}
		require.GreaterOrEqualf(t, status, 400, "%s: %.500s", one.name, answer)
		require.Lessf(t, status, 500, "%s: %.500s", one.name, answer)
		require.NotContains(t, answer, "report this", one.name)
	}

	status, answer := l.upload(t, map[string]string{"Classes/Matcher.yaml": matcher,
		"manifest.yaml": "Format: 1.4\nType: Library\nFullName: org.hostile.Patterns\nName: Patterns\nClasses: {org.hostile.Matcher: Matcher.yaml}\n"})
	require.Equal(t, http.StatusOK, status, answer)
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			status, answer, err := l.ask(t.Context(), l.hostile, http.MethodPost, "/v1/actions", map[string]any{"className": "org.hostile.Matcher", "methodName": "match"})
			if err == nil && status < 400 {
				err = fmt.Errorf("a pattern of 15 KiB was matched with 100,000 characters: %s", answer)
			}
			return err
		})
	}
	require.NoError(t, group.Wait())
}
