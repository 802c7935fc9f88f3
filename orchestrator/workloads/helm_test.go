package workloads

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePreviewOfAReleaseTellsNoSecret(t *testing.T) {
	values := map[string]any{"auth": map[string]any{"password": "correct-horse"}, "env": []any{map[string]any{"name": "API_TOKEN", "value": "battery-staple"}}}
	former := map[string]any{"auth": map[string]any{"password": "former-horse"}}
	known := concealed(values, former)
	require.Equal(t, "--password=*** SANITIZED ***", shown(known, "spec.args[0]", "--password=correct-horse"))
	require.Equal(t, "--password=*** SANITIZED ***", shown(known, "spec.args[0]", "--password=former-horse"))
	require.Equal(t, []any{"*** SANITIZED ***"}, shown(known, "spec.args", []any{"battery-staple"}))
	require.Equal(t, "*** SANITIZED ***", shown(known, "spec.containers[web].env[DB_PASSWORD].value", "short"))
	require.Equal(t, map[string]any{"name": "DB_PASSWORD", "value": "*** SANITIZED ***"}, shown(known, "spec.containers[web].env[DB_PASSWORD]", map[string]any{"name": "DB_PASSWORD", "value": "short"}))
	require.Equal(t, "user: x\npassword: *** SANITIZED ***\n", shown(known, "data[app.yaml]", "user: x\npassword: short\n"))
	require.Equal(t, int64(2), shown(known, "spec.replicas", int64(2)))
	require.Nil(t, shown(known, "spec.password", nil))
}

func TestValuesInYAMLGoOverOthers(t *testing.T) {
	values, err := written(map[string]any{"replicas": int64(1), "image": map[string]any{"tag": "1", "name": "web"}}, map[string]any{
		"": "replicas: 2\nimage: {tag: \"2\"}\nports: {80: http}", "/ingress/hosts": "- a\n- b", "/a~1b/c~0d": "1", "/none": " ", "/gone": "null"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"replicas": 2, "image": map[string]any{"tag": "2", "name": "web"}, "ports": map[string]any{"80": "http"},
		"ingress": map[string]any{"hosts": []any{"a", "b"}}, "a/b": map[string]any{"c~d": 1}, "gone": nil}, values)
	for text, says := range map[string]string{"a: [": "is no YAML: line 1", "- a": "should be a map of values", "word": "should be a map of values"} {
		_, err := written(nil, map[string]any{"": text})
		require.ErrorContains(t, err, says)
	}
	_, err = written(nil, map[string]any{"ingress.hosts": "a"})
	require.ErrorContains(t, err, "write it like /ingress/hosts")
	_, err = written(nil, map[string]any{"": "password: 'correct-horse"})
	require.NotContains(t, err.Error(), "correct-horse")
}

func TestValuesAreMeasuredBeforeTheyAreWritten(t *testing.T) {
	shared := "a: &a {text: " + strings.Repeat("x", 2000) + "}\nlist: [" + strings.TrimSuffix(strings.Repeat("*a, ", 3000), ", ") + "]\n"
	_, err := written(nil, map[string]any{"": shared})
	require.ErrorContains(t, err, `what is written for "": line 1: it has more than 512 KiB, aliases written out`)

	one, list := strings.Repeat("x", 100<<10), []any{}
	for range 10_000 {
		list = append(list, one)
	}
	_, err = written(map[string]any{"list": list}, nil)
	require.ErrorContains(t, err, "what is filled in has more than 512 KiB")

	parts := map[string]any{}
	for i := range 10 {
		parts[fmt.Sprintf("/part%d", i)] = "text: " + strings.Repeat("x", 100<<10)
	}
	_, err = written(nil, parts)
	require.ErrorContains(t, err, "the map of all has more than 512 KiB")
	_, err = written(nil, map[string]any{strings.Repeat("/a", 100_000): "1"})
	require.ErrorContains(t, err, "deeper than 100 levels")
}
