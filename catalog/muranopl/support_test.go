package muranopl_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// testPackage is a package of class files.
type testPackage struct {
	name     string
	version  string
	format   string // "" is 1.4
	embedded bool
	requires map[string]string
	meta     any
	classes  map[string]string // class → text
}

func (p *testPackage) FullName() string            { return p.name }
func (p *testPackage) Version() *semver.Version    { return semver.MustParse(p.version) }
func (p *testPackage) Format() string              { return cmp.Or(p.format, "1.4") }
func (p *testPackage) Embedded() bool              { return p.embedded }
func (p *testPackage) Requires() map[string]string { return p.requires }
func (p *testPackage) Meta() any                   { return p.meta }

func (p *testPackage) ClassNames() []string {
	var names []string
	for name := range p.classes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (p *testPackage) ClassFile(class string) (string, []byte, error) {
	return "Classes/Some.yaml", []byte(p.classes[class]), nil
}

// testSource is a catalog of packages, the first that fits is found.
type testSource []*testPackage

func (s testSource) PackageForClass(_ context.Context, class, spec string) (muranopl.Package, error) {
	return s.find(spec, "class "+class, func(p *testPackage) bool { _, ok := p.classes[class]; return ok })
}

func (s testSource) PackageByName(_ context.Context, name, spec string) (muranopl.Package, error) {
	return s.find(spec, "package "+name, func(p *testPackage) bool { return p.name == name })
}

func (s testSource) find(spec, what string, fits func(*testPackage) bool) (muranopl.Package, error) {
	admitted, err := muranopl.ParseSpec(spec)
	if err != nil {
		return nil, err
	}
	for _, p := range s {
		if fits(p) && admitted.Admits(p.Version()) {
			return p, nil
		}
	}
	return nil, fault.New(fault.NotFound, "there is no %s of version %q", what, spec)
}

func file(t testing.TB, name string, classes ...string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "packages", name))
	require.NoError(t, err)
	files := map[string]string{}
	for _, class := range classes {
		files[class] = string(text)
	}
	return files
}

// shop is the catalog of testdata.
func shop(t testing.TB) testSource {
	return testSource{
		{name: "io.murano", version: "0.0.0", embedded: true,
			classes: file(t, "io.murano/Core.yaml", "io.murano.Object", "io.murano.Application", "io.murano.Environment")},
		{name: "org.example.Shop", version: "1.2.3", embedded: true,
			classes: file(t, "org.example.Shop/Shop.yaml", "org.example.Cluster", "org.example.Node", "org.example.GatewayNode", "org.example.Instance",
				"org.example.Network", "org.example.Pod", "org.example.Circle", "org.example.Everything")},
	}
}

// with adds a package of one class to the catalog.
func (s testSource) with(class, text string) testSource {
	return append(slices.Clone(s), &testPackage{name: class, version: "1.0.0",
		requires: map[string]string{"org.example.Shop": "1"}, classes: map[string]string{class: text}})
}

func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var model map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &model))
	return model
}

// environment is the model of an environment with applications, written as JSON.
func environment(applications ...string) string {
	joined := ""
	for i, a := range applications {
		if i > 0 {
			joined += ","
		}
		joined += a
	}
	return fmt.Sprintf(`{"?": {"type": "io.murano.Environment", "id": "env"}, "name": "shop", "applications": [%s]}`, joined)
}

const cluster = `{"?": {"type": "org.example.Cluster/1.2.3@org.example.Shop", "id": "c1", "_26411": {"name": "Cluster"}}, "name": "kube", "nodeCount": 2,
	"minionNodes": [
		{"?": {"type": "org.example.Node", "id": "n1"}, "instance": {"?": {"type": "org.example.Instance", "id": "i1"}, "name": "a", "flavor": "m1.small"}},
		{"?": {"type": "org.example.GatewayNode", "id": "n2"}, "instance": {"?": {"type": "org.example.Instance", "id": "i2"}, "name": "b", "flavor": "m1.small"}}]}`

const pod = `{"?": {"type": "org.example.Pod", "id": "p1"}, "name": "web", "cluster": "c1"}`

func load(t testing.TB, source testSource, text string) (*muranopl.Object, []muranopl.Problem) {
	t.Helper()
	return muranopl.Load(t.Context(), muranopl.NewClasses(source), parse(t, text))
}

func mustLoad(t testing.TB, text string) *muranopl.Object {
	t.Helper()
	root, problems := load(t, shop(t), text)
	require.Empty(t, problems)
	return root
}
