package glance

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/identity"
)

func FuzzAPatchChangesOnlyWhatACallerMayChange(f *testing.F) {
	for _, seed := range []string{
		`{"op":"add","path":"/kind","value":"1"}`, `{"op":"replace","path":"/name","value":null}`, `{"op":"remove","path":"/keep"}`,
		`{"op":"replace","path":"/tags","value":["a",1]}`, `{"op":"add","path":"/a~1b","value":"1"}`, `{"op":"add","path":"","value":1}`,
		`{"op":"replace","path":"/visibility","value":"public"}`, `{"op":"replace","path":"/min_ram","value":1e99}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var step operation
		if json.Unmarshal(data, &step) != nil {
			return
		}
		image := Image{ID: "id", Owner: "demo", Status: StatusActive, Visibility: "private", Size: 7, Hash: "h", Properties: map[string]string{"keep": "1"}}
		_ = image.apply(identity.Caller{ProjectID: "demo"}, step)
		require.Equal(t, "id demo active h", image.ID+" "+image.Owner+" "+image.Status+" "+image.Hash)
		require.EqualValues(t, 7, image.Size)
		require.NotEqual(t, "public", image.Visibility)
		require.GreaterOrEqual(t, image.MinRAM, 0)
		body, err := json.Marshal(image.body())
		require.NoError(t, err)
		require.Contains(t, string(body), `"status":"active"`)
	})
}
