package cloud

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"

	driver "github.com/burano/burano/orchestrator/openstack"
)

// heatKeepsATrustOfItsOwn: stacks made through a trust decide how long the trust must last.
func heatKeepsATrustOfItsOwn(t *testing.T, c *cloud) {
	const name = "burano-test-trust"
	service, demo := c.service(t), c.as(t, "demo")
	made := func() (string, *driver.Project) {
		trust, granted, err := service.CreateTrust(t.Context(), demo.caller(t, service), []string{"member"}, time.Time{})
		require.NoError(t, err)
		require.NotContains(t, granted, "admin")
		t.Cleanup(func() { require.NoError(t, service.DeleteTrust(context.Background(), trust)) })
		project, err := service.Project(t.Context(), trust)
		require.NoError(t, err)
		return trust, project
	}
	passedOn := func(trust string) bool {
		passed, err := service.PassedOn(t.Context(), trust)
		require.NoError(t, err)
		return passed
	}
	content := func(names ...string) driver.Content {
		resources := map[string]any{}
		for _, one := range names {
			resources[one] = map[string]any{"type": "OS::Heat::RandomString"}
		}
		return driver.Content{Template: map[string]any{"heat_template_version": "2018-08-31", "resources": resources}}
	}

	_, cleaner := made()
	t.Cleanup(func() { require.NoError(t, cleaner.DeleteStack(context.Background(), name)) })
	first, project := made()
	var noted []string
	project = project.Noting(func(_ context.Context, stack string) error { noted = append(noted, stack); return nil })
	require.False(t, passedOn(first))
	_, err := project.ApplyStack(t.Context(), name, content("a"))
	require.NoError(t, err)
	require.Equal(t, []string{name}, noted)
	require.True(t, passedOn(first), "Heat has made one of its own")
	changing, err := service.Changing(t.Context(), first, noted)
	require.NoError(t, err)
	require.False(t, changing)

	second, project := made()
	_, err = project.ApplyStack(t.Context(), name, content("a", "b"))
	require.NoError(t, err)
	require.True(t, passedOn(first), "the same user has changed the stack")
	require.False(t, passedOn(second))
	require.NoError(t, service.DeleteTrust(t.Context(), second))
	_, project = made()
	_, err = project.ApplyStack(t.Context(), name, content("a", "b", "c"))
	require.NoError(t, err, "nothing depends on the second")

	require.NoError(t, service.DeleteTrust(t.Context(), first))
	require.False(t, passedOn(first))
	changing, err = service.Changing(t.Context(), first, noted)
	require.NoError(t, err, "nothing is done through one that is gone")
	require.False(t, changing)
	stack, err := stacks.Find(t.Context(), demo.heat(t), name).Extract()
	require.NoError(t, err)
	options := stacks.UpdateOpts{TemplateOpts: &stacks.Template{TE: stacks.TE{Bin: []byte("heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::RandomString}}\n")}}}
	err = stacks.Update(t.Context(), demo.heat(t), name, stack.ID, options).ExtractErr()
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusInternalServerError), "the stack cannot be changed any more: %v", err)
	_, project = made()
	_, err = project.ApplyStack(driver.WithOutages(t.Context(), driver.Outages{Patience: time.Second}), name, content("a"))
	require.ErrorContains(t, err, "can act no more for the user whose trust it keeps")
}
