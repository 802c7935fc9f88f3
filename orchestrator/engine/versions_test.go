package engine_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

// clock is a version of a package with an application that reports its version.
func clock(t *testing.T, version string) *catalog.Package {
	pack, err := catalog.ReadFolder(fstest.MapFS{
		"manifest.yaml": {Data: []byte(fmt.Sprintf("Format: 1.4\nType: Application\nFullName: org.test.Clock\nName: Clock\nVersion: %s\nClasses:\n  org.test.Clock: Clock.yaml\n", version))},
		"Classes/Clock.yaml": {Data: []byte(fmt.Sprintf(`
Name: org.test.Clock
Extends: io.murano.Application
Properties:
  made:
    Contract: $.string()
    Usage: Out
Methods:
  deploy:
    Body:
      - $.made: '%s'
`, version))},
	})
	require.NoError(t, err)
	return pack
}

// TestAnEnvironmentKeepsTheVersionsThatItWasDeployedWith also when the catalog has newer ones, until its model names another.
func TestAnEnvironmentKeepsTheVersionsThatItWasDeployedWith(t *testing.T) {
	h := uploadedHouse(t)
	restart := func(packages ...*catalog.Package) {
		h.stop()
		h.packages = append(h.packages, packages...)
		h.start()
	}
	restart(clock(t, "1.0.0"))
	application := func(id, kind string) map[string]any {
		return map[string]any{"?": map[string]any{"id": id, "type": kind}}
	}
	made := func(id string, applications ...any) (versions []string) {
		t.Helper()
		h.deploy(id, applications...)
		deployment := h.ended(id)
		require.Equal(t, "success", deployment.State, texts(h.reports(id, deployment)))
		row, err := h.store.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		for _, service := range row.Model.Objects["services"].([]any) {
			versions = append(versions, service.(map[string]any)["made"].(string))
		}
		return versions
	}
	const any = "org.test.Clock"
	old := h.create("old")
	require.Equal(t, []string{"1.0.0"}, made(old, application("a", any)))
	restart(clock(t, "2.0.0"))
	require.Equal(t, []string{"1.0.0", "1.0.0"}, made(old, application("a", any), application("b", any)), "of its version, though there is a newer one")
	young := h.create("young")
	require.Equal(t, []string{"2.0.0"}, made(young, application("a", any)), "other environments have the newest")

	// A draft is checked with the versions that it would be deployed with.
	session, err := h.service.Sessions().Open(t.Context(), demo, old)
	require.NoError(t, err)
	preview, err := h.service.Previews().Get(t.Context(), demo, old, session.ID)
	require.NoError(t, err)
	require.Empty(t, preview.Problems)

	require.Equal(t, []string{"2.0.0"}, made(old, application("a", any+"/2.0.0")), "it was asked for")
	require.Equal(t, []string{"2.0.0", "2.0.0"}, made(old, application("a", any), application("c", any)), "and is kept from then on")
	row, err := h.store.Environments().Get(t.Context(), old)
	require.NoError(t, err)
	require.Equal(t, []string{"2.0.0"}, row.Model.Packages["org.test.Clock"])
	require.Contains(t, row.Model.Packages, "io.murano")
}
