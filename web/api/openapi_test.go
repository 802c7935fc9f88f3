package api

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func described(t *testing.T, s *server) map[string]any {
	recorder := s.send("GET", "/openapi.json", nil, nil)
	require.Equal(t, http.StatusOK, recorder.Code)
	document, err := jsonschema.UnmarshalJSON(recorder.Body)
	require.NoError(t, err)
	return document.(map[string]any)
}

var parameter = regexp.MustCompile(`:(\w+)`)

// template is a route's path as OpenAPI writes it.
func template(path string) string {
	return strings.ReplaceAll(parameter.ReplaceAllString(path, "{$1}"), "*", "{path}")
}

func TestTheDescriptionHasTheRegisteredRoutesAndNoOthers(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Metrics = prometheus.NewRegistry() })
	var routes, operations []string
	for _, route := range s.echo.Routes() {
		if route.Method != echo.RouteNotFound {
			routes = append(routes, route.Method+" "+template(route.Path))
		}
	}
	document := described(t, s)
	ids := map[string]bool{}
	for path, item := range document["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			name := strings.ToUpper(method) + " " + path
			operations = append(operations, name)
			require.NotEmpty(t, field(operation, "summary"), name)
			id := field(operation, "operationId").(string)
			require.False(t, ids[id], "%s: there is another operation %s", name, id)
			ids[id] = true
			var wanted, found []string
			for _, match := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(path, -1) {
				wanted = append(wanted, match[1])
			}
			parameters, _ := field(operation, "parameters").([]any)
			for _, one := range parameters {
				if field(one, "in") == "path" {
					found = append(found, field(one, "name").(string))
				}
			}
			require.ElementsMatch(t, wanted, found, name)
		}
	}
	slices.Sort(routes)
	slices.Sort(operations)
	require.Equal(t, routes, operations)
}

// docs/api.md lists Burano's own API for people, too: rows that begin with `METHOD /burano/v1/…`, names of parameters apart.
func TestTheDocumentOfTheAPIListsTheRoutesThatMuranoDoesNotHave(t *testing.T) {
	parameters := regexp.MustCompile(`{\w+}`)
	var routes, documented []string
	for path, item := range described(t, newServer(t))["paths"].(map[string]any) {
		if strings.HasPrefix(path, "/burano/v1/") {
			for method := range item.(map[string]any) {
				routes = append(routes, strings.ToUpper(method)+" "+parameters.ReplaceAllString(path, "{}"))
			}
		}
	}
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	require.NoError(t, err)
	row := regexp.MustCompile(`(?m)^\| ([^|]*)(/burano/v1/[^` + "`" + `|]*)` + "`" + ` \|`)
	for _, match := range row.FindAllStringSubmatch(string(document), -1) {
		for _, method := range regexp.MustCompile(`[A-Z]{3,}`).FindAllString(match[1], -1) {
			documented = append(documented, method+" "+parameters.ReplaceAllString(match[2], "{}"))
		}
	}
	slices.Sort(routes)
	slices.Sort(documented)
	require.NotEmpty(t, routes)
	require.Equal(t, routes, documented, "docs/api.md has a row for each of them")
}

// Murano's recorded answers are examples of the described ones.
func TestTheRecordedAnswersAreAsDescribed(t *testing.T) {
	s := newServer(t)
	document := described(t, s)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020) // the draft of OpenAPI 3.1's schemas
	require.NoError(t, compiler.AddResource("openapi.json", document))
	compared := map[string]bool{}
	for _, e := range goldenExchanges(t, func(string) bool { return true }) {
		path, _, _ := strings.Cut(e.Path, "?")
		c := s.echo.NewContext(nil, nil)
		s.echo.Router().Find(e.Method, path, c)
		item, _ := field(document, "paths", template(c.Path())).(map[string]any)
		operation, _ := item[strings.ToLower(e.Method)].(map[string]any)
		if operation == nil || e.Status >= 300 || !strings.HasPrefix(e.ResponseHeaders["Content-Type"], "application/json") {
			continue
		}
		answer, there := field(operation, "responses").(map[string]any)[strconv.Itoa(e.Status)].(map[string]any)
		require.True(t, there, "%s: %s %s answers %d, which is not described", e.Name, e.Method, template(c.Path()), e.Status)
		if answer["content"] == nil || e.ResponseBody == nil {
			continue
		}
		pointer := fmt.Sprintf("openapi.json#/paths/%s/%s/responses/%d/content/application~1json/schema",
			strings.ReplaceAll(template(c.Path()), "/", "~1"), strings.ToLower(e.Method), e.Status)
		schema, err := compiler.Compile(pointer)
		require.NoError(t, err, pointer)
		assert.NoError(t, schema.Validate(e.ResponseBody), "%s: %s %s", e.Name, e.Method, e.Path)
		compared[e.Method+" "+c.Path()] = true
	}
	require.Greater(t, len(compared), 30, "%v", compared)
}
