package client

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestArgumentsAreJSONWhereTheyCan(t *testing.T) {
	arguments, err := actionArguments([]string{"count=2", "node=murano-kube-2", `text="2"`, "list=[1, 2]", "empty=", "equals=a=b", "version=1.2.3", "no=null"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"count": json.Number("2"), "node": "murano-kube-2", "text": "2", "list": []any{json.Number("1"), json.Number("2")},
		"empty": "", "equals": "a=b", "version": "1.2.3", "no": nil}, arguments)
	for _, wrong := range [][]string{{"count"}, {"=2"}, {"a=1", "a=2"}} {
		_, err := actionArguments(wrong)
		require.Error(t, err)
	}
}
