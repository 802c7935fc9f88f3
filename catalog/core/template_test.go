package core_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/core"
)

func TestTemplatesAreMergedKeyByKeyAndListsWithoutDoubles(t *testing.T) {
	for name, try := range map[string]struct{ one, other, made string }{
		"what the second has counts":        {`{"a": {"x": 1, "y": 2}}`, `{"a": {"y": 3}, "b": 4}`, `{"a": {"x": 1, "y": 3}, "b": 4}`},
		"lists are united":                  {`{"a": [1, {"x": 2}]}`, `{"a": [{"x": 2}, 3]}`, `{"a": [1, {"x": 2}, 3]}`},
		"another kind takes the place":      {`{"a": [1]}`, `{"a": {"x": 2}}`, `{"a": {"x": 2}}`},
		"the newer version counts":          {`{"heat_template_version": "2016-10-14"}`, `{"heat_template_version": "2013-05-23"}`, `{"heat_template_version": "2016-10-14"}`},
		"names of versions are after dates": {`{"heat_template_version": "2016-10-14"}`, `{"heat_template_version": "rocky"}`, `{"heat_template_version": "rocky"}`},
		"one alone says the version":        {`{}`, `{"heat_template_version": "2013-05-23"}`, `{"heat_template_version": "2013-05-23"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var one, other, made map[string]any
			require.NoError(t, json.Unmarshal([]byte(try.one), &one))
			require.NoError(t, json.Unmarshal([]byte(try.other), &other))
			require.NoError(t, json.Unmarshal([]byte(try.made), &made))
			require.Equal(t, made, core.MergeTemplates(one, other))
			unchanged, err := json.Marshal(one)
			require.NoError(t, err)
			require.JSONEq(t, try.one, string(unchanged))
		})
	}
}

func TestAPartOfATemplateIsReplaced(t *testing.T) {
	template := `{"resources": {"a-port": {"x": 1}, "a-server": {"x": 1}, "ab": {"x": 1}, "web": {"x": 1}, "web2": {"x": 1}}, "outputs": {"a-port": 1, "web": 1}}`
	for name, try := range map[string]struct{ arguments, made string }{
		"names that begin with a prefix go": {`{"prefix": ["a-"], "template": {"resources": {"a-server": {"y": 2}}}}`,
			`{"resources": {"a-server": {"y": 2}, "ab": {"x": 1}, "web": {"x": 1}, "web2": {"x": 1}}, "outputs": {"web": 1}}`},
		"whole names go": {`{"prefix": ["a-"], "names": ["web"], "template": {}}`, `{"resources": {"ab": {"x": 1}, "web2": {"x": 1}}, "outputs": {}}`},
		"a resource gets its name, and references lead to it": {`{"prefix": ["a-", "web"], "aliases": {"w": "a-server"}, "template": {"resources": {
				"w": {"properties": {"name": "w"}}, "alarm": {"depends_on": ["w", "ab"], "server": {"get_resource": "w"}, "of": [{"get_attr": ["w", "w"]}]}}, "outputs": {"w": {"get_resource": "w"}}}}`,
			`{"resources": {"ab": {"x": 1}, "a-server": {"properties": {"name": "w"}}, "alarm": {"depends_on": ["a-server", "ab"], "server": {"get_resource": "a-server"},
				"of": [{"get_attr": ["a-server", "w"]}]}}, "outputs": {"w": {"get_resource": "a-server"}}}`},
		"references lead to the resource of the stack with that name": {`{"prefix": ["a-", "web"], "aliases": {"ab": "a-server"}, "template": {"resources": {
				"ab": {"properties": {"group": {"get_resource": "ab"}}}}}}`,
			`{"resources": {"ab": {"x": 1}, "a-server": {"properties": {"group": {"get_resource": "ab"}}}}, "outputs": {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var before, arguments map[string]any
			require.NoError(t, json.Unmarshal([]byte(template), &before))
			require.NoError(t, json.Unmarshal([]byte(try.arguments), &arguments))
			made, err := json.Marshal(core.ReplacementOf(arguments).In(before))
			require.NoError(t, err)
			require.JSONEq(t, try.made, string(made))
			unchanged, err := json.Marshal(before)
			require.NoError(t, err)
			require.JSONEq(t, template, string(unchanged))
		})
	}
}
