package provider_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/web/client"
)

// plannedIsApplied has another user change an environment between a plan and its apply, so that the apply would remove an application that the plan did not name.
func plannedIsApplied(t *testing.T, api *client.Client) {
	tf := newTerraform(t)
	config := map[string]any{"name": "planned", "applications": applications("alpha", false), "deletion_protection": false}
	made, said := tf.apply(t, resource{kind: "burano_environment"}, config)
	require.Empty(t, said)
	id := tf.get(t, made, "id")
	names := func() (list []string) {
		t.Helper()
		found, err := api.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		for _, one := range found.Services {
			list = append(list, one["name"].(string))
		}
		return list
	}
	deployed := func() {
		t.Helper()
		newest, err := api.Deployments().Newest(t.Context(), id)
		require.NoError(t, err)
		state, err := api.Deployments().Follow(t.Context(), newest.ID, func(client.Event) error { return nil })
		require.NoError(t, err)
		require.True(t, client.Succeeded(state))
	}
	others := func(names ...string) {
		t.Helper()
		file := client.EnvironmentFile{Name: "planned"}
		for _, name := range names {
			file.Applications = append(file.Applications, map[string]any{"?": map[string]any{"type": "org.test.App", "id": name}, "name": name})
		}
		file.Applications[0]["?"].(map[string]any)["id"] = "app"
		_, err := api.Files().Deploy(t.Context(), file)
		require.NoError(t, err)
		deployed()
	}

	config["applications"] = applications("beta", false)
	planned, _, said := tf.plan(t, made, config)
	require.Empty(t, said)
	others("alpha", "precious")
	_, said = tf.applyPlan(t, made, config, planned)
	require.Contains(t, said, "inconsistent final plan: preview", "Terraform refuses it")
	_, said = tf.applyNow(t, made, config, planned)
	require.Contains(t, said, "does more than was shown, since something has changed: precious (org.test.App) is removed. Nothing was done", "so does Burano")
	require.Equal(t, []string{"alpha", "precious"}, names())

	planned, _, said = tf.plan(t, made, config)
	require.Empty(t, said)
	made, said = tf.applyPlan(t, made, config, planned)
	require.Empty(t, said)
	require.Equal(t, []string{"beta"}, names(), "the new plan named it")
	require.Len(t, tf.get(t, made, "preview"), 64)
	_, changes, said := tf.plan(t, tf.read(t, made), config)
	require.Empty(t, said)
	require.False(t, changes)

	config["name"], config["applications"] = "renamed", applications("gamma", false)
	planned, _, said = tf.plan(t, made, config)
	require.Empty(t, said)
	made, said = tf.applyPlan(t, made, config, planned)
	require.Empty(t, said, "the name is another one when it is deployed")
	require.Equal(t, []string{"gamma"}, names())
	require.Empty(t, tf.destroy(t, made))
}
