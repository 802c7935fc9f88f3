package stack

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/native"
)

// act calls an action of a world's cluster; recorded is called in the place of new actions.
func (w *world) act(t *testing.T, model map[string]any, name string, args map[string]any, recorded func(name string, args map[string]any)) error {
	t.Helper()
	const cluster = "com.mirantis.docker.kubernetes.KubernetesCluster"
	methods := native.Methods(w, w.config)
	for _, action := range []string{"scale", "setNode", "rotate"} {
		if recorded == nil {
			break
		}
		methods[cluster][cluster][action] = func(_ context.Context, call muranopl.Call) (any, error) {
			recorded(action, call.Args)
			return nil, nil
		}
	}
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source(t)), methods)
	root, start, problems := interpreter.Prepare(t.Context(), model)
	require.Empty(t, problems)
	w.model, w.asked = root, nil
	require.NoError(t, start(t.Context()))
	for _, object := range root.Objects("applications") {
		if object.Class().Property("masterNode") != nil {
			_, err := interpreter.InvokeAction(t.Context(), object, name, args)
			return err
		}
	}
	require.Fail(t, "the model has no cluster")
	return nil
}

func grouped(t *testing.T) map[string]any {
	t.Helper()
	return withGroup(t, map[string]any{"count": 1, "maximum": 3})
}

func TestFormerNamesOfActionsCallTheNewOnes(t *testing.T) {
	type values = map[string]any
	for name, one := range map[string]struct {
		args   values
		action string
		given  values
	}{
		"setMasterCount":          {values{"count": 3}, "scale", values{"group": "masters", "count": int64(3)}},
		"setGroupCount":           {values{"group": "workers", "count": 2, "loseVolumes": true}, "scale", values{"group": "workers", "count": int64(2), "loseVolumes": true}},
		"setGroupLimits":          {values{"group": "workers", "minimum": -1, "maximum": 4}, "scale", values{"group": "workers", "minimum": int64(-1), "maximum": int64(4)}},
		"setGatewayLimits":        {values{"minimum": 2, "sessions": 9}, "scale", values{"group": "gateways", "minimum": int64(2), "sessions": int64(9)}},
		"labelNode":               {values{"node": "n", "labels": values{"a": "b"}, "remove": []any{"c"}}, "setNode", values{"node": "n", "labels": values{"a": "b"}, "removeLabels": []any{"c"}}},
		"taintNode":               {values{"node": "n", "remove": []any{"c"}}, "setNode", values{"node": "n", "removeTaints": []any{"c"}}},
		"cordonNode":              {values{"node": "n"}, "setNode", values{"node": "n", "cordoned": true}},
		"uncordonNode":            {values{"node": "n"}, "setNode", values{"node": "n", "cordoned": false}},
		"lockNode":                {values{"node": "n", "patience": 7, "force": true}, "setNode", values{"node": "n", "locked": true, "patience": int64(7), "force": true}},
		"unlockNode":              {values{"node": "n"}, "setNode", values{"node": "n", "locked": false}},
		"rotateCertificates":      {values{"restartPods": false}, "rotate", values{"what": []any{"certificates"}, "restartPods": false}},
		"rotateKeys":              {values{"keys": []any{"encryption"}}, "rotate", values{"what": []any{"encryption"}}},
		"rotateRegistryPasswords": {values{}, "rotate", values{"what": []any{"registry"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var called string
			var given map[string]any
			require.NoError(t, newWorld(t).act(t, grouped(t), name, one.args, func(action string, args map[string]any) { called, given = action, args }))
			require.Equal(t, one.action, called)
			for argument, value := range one.given {
				require.Equal(t, value, given[argument], argument)
			}
			for argument, value := range given { // the others have their defaults
				if _, is := one.given[argument]; is {
					continue
				}
				switch value := value.(type) {
				case bool:
					require.Equal(t, argument == "restartPods", value, argument)
				case int64:
					require.Zero(t, value, argument)
				default:
					require.Empty(t, value, argument)
				}
			}
		})
	}
}

func TestScaleSetsCountsAndLimitsOfEveryKindOfNode(t *testing.T) {
	type values = map[string]any
	servers := func(w *world) int {
		require.NotEmpty(t, w.asked)
		template, _ := w.asked[0]["template"].(map[string]any)
		return len(resourcesOf(template, "OS::Nova::Server"))
	}
	w := newWorld(t)
	before := len(resourcesOf(w.push(t, grouped(t)), "OS::Nova::Server"))
	for name, one := range map[string]struct {
		args values
		more int
	}{
		"masters":                      {values{"group": "masters", "count": 3}, 2},
		"a pair of masters":            {values{"group": "masters", "count": 2}, 1},
		"minions":                      {values{"group": "minions", "count": 2}, 1},
		"a group":                      {values{"group": "workers", "count": 3}, 2},
		"a group at its new maximum":   {values{"group": "workers", "count": 5, "maximum": 4}, 3},
		"a group by its minimum":       {values{"group": "workers", "minimum": 2}, 1},
		"a group to nothing":           {values{"group": "workers", "count": 0}, -1},
		"gateways by their minimum":    {values{"group": "gateways", "minimum": 2, "sessions": 10}, 1},
		"gateways by their number":     {values{"group": "gateways", "count": 2}, 1},
		"limits that change no number": {values{"group": "workers", "maximum": 9}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			require.ErrorContains(t, w.act(t, grouped(t), "scale", one.args, nil), errRecorded)
			require.Equal(t, before+one.more, servers(w))
		})
	}
	for name, one := range map[string]struct {
		args values
		want string
	}{
		"four masters":               {values{"group": "masters", "count": 4}, "a cluster has 1, 2, 3 or 5 masters"},
		"masters with a minimum":     {values{"group": "masters", "minimum": 1}, "minimum is no setting of masters"},
		"a maximum of gateways":      {values{"group": "gateways", "maximum": 4}, "maximum is no setting of gateways"},
		"sessions of minions":        {values{"group": "minions", "sessions": 4}, "sessions is no setting of minions"},
		"a group that is not there":  {values{"group": "others", "count": 1}, "others is no group of cluster"},
		"a maximum below the number": {values{"group": "workers", "maximum": 1, "minimum": 2}, "minimum"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			require.ErrorContains(t, w.act(t, grouped(t), "scale", one.args, nil), one.want)
			require.Empty(t, w.asked)
			require.Equal(t, 3, w.group(t).Int("maximum"), "the model stays as it was")
		})
	}
	w = newWorld(t)
	require.NoError(t, w.act(t, grouped(t), "scale", values{"group": "workers", "count": 1}, nil))
	require.Empty(t, w.asked, "it has one already")
	require.ErrorContains(t, w.act(t, grouped(t), "addGroup", values{"name": "masters"}, nil), "a group cannot be called masters")
}

// group is the cluster's group of minions.
func (w *world) group(t *testing.T) *muranopl.Object {
	t.Helper()
	for _, object := range w.model.Objects("applications") {
		if object.Class().Property("minionGroups") != nil {
			return object.Objects("minionGroups")[0]
		}
	}
	require.Fail(t, "the model has no cluster")
	return nil
}

func TestActionsOfTheKeeperAreNotPublic(t *testing.T) {
	for _, name := range []string{"scaleByLoad", "scaleGatewaysByLoad", "endBackup"} {
		require.ErrorContains(t, newWorld(t).act(t, grouped(t), name, nil, nil), "is not public")
	}
}
