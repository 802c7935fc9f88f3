package clients

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestApplyPrunesOnlyWhatWasAppliedUnderItsLabel removes documents from a file, and checks which objects are pruned.
func TestApplyPrunesOnlyWhatWasAppliedUnderItsLabel(t *testing.T) {
	s := start(t)
	const everything = "kind: Package\npath: org.test.App\n---\nkind: Template\nname: small\n---\nkind: Template\nname: kept\n---\nname: demo\napplications: [{'?': {type: org.test.App, id: app}, name: alpha}]\n"
	s.write(map[string]string{
		"org.test.App/manifest.yaml":    "Format: 1.4\nType: Application\nFullName: org.test.App\nName: app\nClasses: {org.test.App: App.yaml}\nRequire: {io.murano: }\n",
		"org.test.App/Classes/App.yaml": "Namespaces: {=: org.test, std: io.murano}\nName: App\nExtends: std:Application\nProperties:\n  name: {Contract: $.string().notNull()}\nMethods:\n  deploy: {Body: []}\n",
		"all.yaml":                      everything, "less.yaml": "kind: Template\nname: kept\n",
	})
	demo := s.as("demo", "demo")
	burano := func(args ...string) string {
		t.Helper()
		out, ok := s.run(demo, s.program, args...)
		require.True(t, ok, "%v: %s", args, out)
		return out
	}
	refused := func(says string, args ...string) string {
		t.Helper()
		out, ok := s.run(demo, s.program, args...)
		require.False(t, ok, "%v: %s", args, out)
		require.Contains(t, out, says)
		return out
	}
	there := func() string {
		return burano("environment", "list") + burano("template", "list") + burano("package", "list", "--owned")
	}
	burano("template", "create", "by-hand")
	burano("environment", "create", "by-hand-too")
	burano("apply", "-f", "all.yaml", "--label", "web", "--wait")

	refused("name it with --label", "apply", "-f", "less.yaml", "--prune", "--yes")
	refused("is no label", "apply", "-f", "less.yaml", "--label", "a/b c")
	require.Equal(t, "= Template kept\n0 added, 0 changed, 1 as described\n", burano("apply", "-f", "less.yaml", "--label", "other", "--prune", "--yes"), "another label has nothing to delete")
	require.Contains(t, burano("apply", "-f", "less.yaml", "--label", "web"), "Environment demo was applied under web and is no longer described: it stays (--prune)\n")
	looked := burano("apply", "-f", "less.yaml", "--label", "web", "--prune", "--dry-run")
	require.Contains(t, looked, "- Environment demo\n- Package org.test.App\n- Template small\n")
	refused("nothing is done: 3 things would be deleted", "apply", "-f", "less.yaml", "--label", "web", "--prune")
	for _, name := range []string{" demo ", " small ", " kept ", " by-hand ", " by-hand-too ", " org.test.App "} {
		require.Contains(t, there(), name)
	}

	// A template that another user has made again is not pruned.
	burano("template", "delete", "small")
	burano("template", "create", "small")
	pruned := burano("apply", "-f", "less.yaml", "--label", "web", "--prune", "--yes")
	require.Contains(t, pruned, "Environment demo: deleted\nPackage org.test.App: deleted\n", "the package goes when its environment is gone")
	left := there()
	for _, name := range []string{" small ", " kept ", " by-hand ", " by-hand-too "} {
		require.Contains(t, left, name)
	}
	require.NotContains(t, left, " demo ")
	require.NotContains(t, left, "org.test.App")
	require.Equal(t, "= Template kept\n0 added, 0 changed, 1 as described\n", burano("apply", "-f", "less.yaml", "--label", "web", "--prune", "--yes"))
}
