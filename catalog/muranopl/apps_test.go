package muranopl_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// catalogSource is a catalog of real packages.
type catalogSource []*catalog.Package

func (s catalogSource) PackageForClass(_ context.Context, class, spec string) (muranopl.Package, error) {
	return s.find(spec, func(p *catalog.Package) bool { return slices.Contains(p.ClassNames(), class) })
}

func (s catalogSource) PackageByName(_ context.Context, name, spec string) (muranopl.Package, error) {
	return s.find(spec, func(p *catalog.Package) bool { return p.FullName() == name })
}

func (s catalogSource) find(spec string, fits func(*catalog.Package) bool) (muranopl.Package, error) {
	admitted, err := muranopl.ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	for _, p := range s {
		if fits(p) && admitted.Admits(p.Version()) {
			return p, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no such package")
}

func TestEveryClassThatComesWithBuranoCanBeRead(t *testing.T) {
	packages, err := apps.Packages()
	require.NoError(t, err)
	classes := muranopl.NewClasses(catalogSource(packages))
	for _, p := range packages {
		for _, name := range p.ClassNames() {
			_, err := classes.Class(t.Context(), name, "")
			require.NoError(t, err, name)
		}
	}
}

func TestTheDemonstrationEnvironmentLoads(t *testing.T) {
	packages, err := apps.Packages()
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join("..", "..", "test", "environments", "demo.yaml"))
	require.NoError(t, err)
	var model map[string]any
	require.NoError(t, yaml.Unmarshal(text, &model))
	model["?"] = map[string]any{"type": "io.murano.Environment", "id": "demo"}
	model["applications"] = slices.DeleteFunc(model["applications"].([]any), func(application any) bool {
		class := application.(map[string]any)["?"].(map[string]any)["type"].(string)
		return !slices.ContainsFunc(packages, func(p *catalog.Package) bool { return slices.Contains(p.ClassNames(), class) }) // uploaded, not embedded
	})
	root, problems := muranopl.Load(t.Context(), muranopl.NewClasses(catalogSource(packages)), model)
	require.Empty(t, problems)
	require.NotEmpty(t, root.Objects("applications"))
}
