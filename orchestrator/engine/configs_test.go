package engine_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/orchestrator/engine"
)

// TestTheOperatorConfiguresClasses in deployments and in static actions.
func TestTheOperatorConfiguresClasses(t *testing.T) {
	h := uploadedHouse(t)
	h.stop()
	pack, err := catalog.ReadFolder(fstest.MapFS{
		"manifest.yaml": {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test.Mirror\nName: Mirror\nVersion: 1.2.3\nClasses:\n  org.test.Mirror: Mirror.yaml\n")},
		"Classes/Mirror.yaml": {Data: []byte(`
Name: org.test.Mirror
Extends: io.murano.Application
Properties:
  address:
    Contract: $.string()
    Usage: Config
    Default: http://nowhere
  used:
    Contract: $.string()
    Usage: Out
Methods:
  deploy:
    Body:
      - $.used: $.address
  tell:
    Usage: Static
    Scope: Public
    Body:
      Return: new('org.test.Mirror').address
`)},
	})
	require.NoError(t, err)
	h.packages = append(h.packages, pack)
	for _, c := range []struct {
		configs fstest.MapFS
		wanted  string
	}{
		{nil, "http://nowhere"},
		{fstest.MapFS{"org.test.Mirror-1.yaml": {Data: []byte("address: http://mirror\n")}, "org.test.Mirror-2.yaml": {Data: []byte("address: http://newer\n")}}, "http://mirror"},
	} {
		h.configs = nil
		if c.configs != nil {
			h.configs = c.configs
		}
		h.start()
		said, err := h.engine.CallStatic(t.Context(), demo.ProjectID, engine.ClassName{Name: "org.test.Mirror"}, "tell", nil)
		require.NoError(t, err)
		require.Equal(t, c.wanted, said)

		id := h.create("of " + c.wanted)
		h.deploy(id, map[string]any{"?": map[string]any{"id": "mirror", "type": "org.test.Mirror"}})
		deployment := h.ended(id)
		require.Equal(t, "success", deployment.State, texts(h.reports(id, deployment)))
		row, err := h.store.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, c.wanted, row.Model.Objects["services"].([]any)[0].(map[string]any)["used"])
		h.stop()
	}
}
