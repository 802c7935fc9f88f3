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
