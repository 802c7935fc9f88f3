package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// changeValues is testdata/changes-values.yaml.
type changeValues struct {
	Previews []changedValues
	Left     map[string][]string
}

type changedValues struct {
	Of    string         // a path from the name of an application
	Unmet bool           // the values are refused here, and allowed elsewhere
	Set   map[string]any // by properties
}

// TestEachChangeHasItsDeclaredEffect previews other values of each property of a cluster, its nodes, a server, a pod and its container. The preview asks Heat, Nova and the
// cluster, and its outcome is the declared one: refused, replaced nodes, rolled pods, losses, or none of them.
func TestEachChangeHasItsDeclaredEffect(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.deleteIfFailed(t, "changes")
	folder := filepath.Join(l.root, "test", "e2e", "testdata")
	l.run(t, l.as("burano-demo"), "burano", "deploy", filepath.Join(folder, "changes.yaml"), "--follow")
	environment := environmentNamed(t, demo, "changes")
	text, err := os.ReadFile(filepath.Join(folder, "changes-values.yaml"))
	require.NoError(t, err)
	var values changeValues
	require.NoError(t, yaml.Unmarshal(text, &values))
	previewed := map[string]map[string]any{} // by class and property
	for _, one := range values.Previews {
		t.Run(fmt.Sprint(one.Of, " ", strings.Join(slices.Sorted(maps.Keys(one.Set)), " ")), func(t *testing.T) {
			class, declared, plan := demo.previewOf(t, environment, one)
			if previewed[class] == nil {
				previewed[class] = map[string]any{}
			}
			maps.Copy(previewed[class], one.Set)
			for property := range one.Set {
				matches(t, one, property, declared[property], plan)
			}
		})
	}
	for class, properties := range previewed {
		schema := demo.must(t, http.MethodGet, "/v1/schemas/"+class+"?effects=true", nil)[""].(map[string]any)
		for property, entry := range schema["properties"].(map[string]any) {
			assert.Contains(t, entry, "onChange", "%s.%s", class, property)
			_, is := properties[property]
			assert.True(t, is || slices.Contains(values.Left[class[strings.LastIndex(class, ".")+1:]], property), "another value of %s.%s was previewed", class, property)
		}
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--allow-destroy", "changes-cluster", "changes")
}

// matches holds a preview against the declared effect of one of its changes.
func matches(t *testing.T, changed changedValues, property, declared string, plan map[string]any) {
	t.Helper()
	problems, consents := plan["problems"].([]any), plan["consents"].([]any)
	replaced := slices.ContainsFunc(plan["means"].([]any), func(one any) bool { return strings.Contains(one.(string), " replaced") })
	rolled := strings.Contains(fmt.Sprint(plan["kubernetes"]), "kind:Deployment")
	if changed.Unmet {
		require.Equal(t, "inPlace", declared, "%s", property)
		require.NotEmpty(t, problems, "%s", property)
		return
	}
	switch declared {
	case "refused":
		require.NotEmpty(t, problems, "%s", property)
	case "nodeByNode":
		require.True(t, replaced, "%s: %v", property, plan["means"])
	case "rollsPods":
		require.True(t, rolled, "%s: %v", property, plan["kubernetes"])
		require.Empty(t, append(consents, problems...), "%s", property)
	case "loses":
		require.NotEmpty(t, consents, "%s", property)
	case "inPlace", "newOnly", "none":
		require.False(t, replaced, "%s: %v", property, plan["means"])
		require.NotContains(t, fmt.Sprint(plan["kubernetes"]), "path:spec.template", "%s", property)
		require.Empty(t, slices.Concat(problems, consents, plan["losses"].([]any)), "%s", property)
	default:
		require.Fail(t, "nothing is declared", "%s declares %q", property, declared)
	}
}

// previewOf previews a deployment with the values, and returns the class of their object and the declared effects by properties.
func (u *user) previewOf(t *testing.T, environment map[string]any, changed changedValues) (class string, declared map[string]string, plan map[string]any) {
	t.Helper()
	text, err := json.Marshal(environment["services"])
	require.NoError(t, err)
	var services []any
	require.NoError(t, json.Unmarshal(text, &services))
	steps := strings.Split(changed.Of, ".")
	n := slices.IndexFunc(services, func(one any) bool { return one.(map[string]any)["name"] == steps[0] })
	require.GreaterOrEqual(t, n, 0, "an application is called %s", steps[0])
	object := services[n].(map[string]any)
	for _, step := range steps[1:] {
		inner := object[step]
		if list, is := inner.([]any); is {
			inner = list[0]
		}
		object = inner.(map[string]any)
	}
	header := object["?"].(map[string]any)
	class, _, _ = strings.Cut(header["type"].(string), "/")
	maps.Copy(object, changed.Set)
	of := "/v1/environments/" + environment["id"].(string)
	session := u.must(t, http.MethodPost, of+"/configure", nil)["id"].(string)
	u.must(t, http.MethodPut, fmt.Sprintf("%s/services/%d", of, n), services[n], "X-Configuration-Session", session)
	plan = u.must(t, http.MethodGet, "/burano"+of+"/sessions/"+session+"/preview", nil)
	u.must(t, http.MethodDelete, of+"/sessions/"+session, nil)
	declared = map[string]string{}
	for _, one := range plan["changes"].([]any) {
		if change := one.(map[string]any); change["id"] == header["id"] {
			for _, value := range change["values"].([]any) {
				value := value.(map[string]any)
				declared[value["name"].(string)], _ = value["effect"].(string)
			}
		}
	}
	return class, declared, plan
}
