package cloud

import (
	"bytes"
	"context"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// with is the template with other properties of its server "one".
func with(template stackTemplate, properties map[string]any) stackTemplate {
	for name, value := range properties {
		template.Resources["one-server"].Properties[name] = value
	}
	return template
}

func aRefusedTemplateSaysWhy(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "refused")
	for property, unknown := range map[string]string{"image": "no-such-image", "flavor": "no-such-flavor"} {
		_, err := project.ApplyStack(t.Context(), name, with(plan(t, project, "one"), map[string]any{property: unknown}).content(t))
		require.Error(t, err)
		require.Contains(t, err.Error(), unknown)
		require.Contains(t, err.Error(), name)
		require.Equal(t, fault.Invalid, fault.KindOf(err), err)
		require.Empty(t, demo.stacksNamed(t, name), "nothing was begun")
	}
}

func noRoomIsSaidAndHealed(t *testing.T, c *cloud) {
	const giant = "burano-test-giant"
	nova := c.as(t, "admin").nova(t)
	disk := 1
	made, err := flavors.Create(t.Context(), nova, flavors.CreateOpts{Name: giant, RAM: 64 << 20, VCPUs: 1, Disk: &disk}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, flavors.Delete(context.Background(), nova, made.ID).ExtractErr()) })

	demo := c.as(t, "demo")
	admin, projectID := nova, demo.caller(t, c.service(t)).ProjectID
	unlimited := -1
	require.NoError(t, quotasets.Update(t.Context(), admin, projectID, quotasets.UpdateOpts{RAM: &unlimited}).Err)
	t.Cleanup(func() { require.NoError(t, quotasets.Delete(context.Background(), admin, projectID).Err) })

	project := demo.project(t, c.service(t))
	name := begin(t, project, "no-room")
	_, err = project.ApplyStack(t.Context(), name, with(plan(t, project, "one"), map[string]any{"flavor": giant}).content(t))
	require.ErrorContains(t, err, "No valid host was found")
	if c.rows == nil {
		require.ErrorContains(t, err, "one-server", "Heat's words have the resource's name")
	}
	require.ErrorContains(t, err, "server burano-test-one")
	require.ErrorContains(t, err, name)
	require.ErrorContains(t, err, "(flavor "+giant+", availability zone any")
	failed := demo.stacksNamed(t, name)
	require.Len(t, failed, 1)

	healed, err := project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	require.Equal(t, failed[0].ID, healed.ID)
	require.Len(t, demo.serversNamed(t, "burano-test-one"), 1, "the one that failed is gone")
}

// whatIsMissingIsSaidBefore: a deployment checks before it makes anything.
func whatIsMissingIsSaidBefore(t *testing.T, c *cloud) {
	other, demo := c.as(t, "other"), c.as(t, "demo")
	admin, projectID := c.as(t, "admin"), other.caller(t, c.service(t)).ProjectID
	project := other.project(t, c.service(t))
	name := begin(t, project, "room")
	room := func(properties map[string]any) error {
		_, err := project.CheckRoom(t.Context(), name, with(plan(t, project, "one", "two"), properties).content(t))
		return err
	}
	require.NoError(t, room(nil))
	require.NoError(t, room(map[string]any{"image": admin.communityImage(t)}), "it is in no list, and can be used")
	err := room(map[string]any{"flavor": "no-flavor", "image": "no-image", "availability_zone": "no-zone"})
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	for _, want := range []string{`server burano-test-one: the project sees no flavor with the name or id "no-flavor": there are `, flavor,
		`no active image with the name or id "no-image"`, image, `no availability zone "no-zone" to make servers in: there are nova`} {
		require.ErrorContains(t, err, want)
	}
	require.NotContains(t, err.Error(), "burano-test-two")
	vast := admin.flavor(t, 1<<20)
	require.ErrorContains(t, room(map[string]any{"flavor": vast}), "the project's quota of memory (MiB) is exceeded")

	one := 1
	require.NoError(t, quotasets.Update(t.Context(), admin.nova(t), projectID, quotasets.UpdateOpts{Instances: &one}).Err)
	t.Cleanup(func() { require.NoError(t, quotasets.Delete(context.Background(), admin.nova(t), projectID).Err) })
	require.ErrorContains(t, room(nil), "the project's quota of instances is exceeded: 2 more are needed and 1 of 1 are left, so 1 are missing")
	require.Empty(t, other.stacksNamed(t, name), "nothing was begun")
	_, err = project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err)
	coming, err := project.CheckRoom(t.Context(), name, plan(t, project, "one").content(t))
	require.NoError(t, err, "what is there needs no room")
	require.Empty(t, coming)
	require.ErrorContains(t, room(nil), "1 more are needed and 0 of 1 are left")
	seen, err := c.service(t).ProjectOf(t.Context(), other.caller(t, c.service(t)))
	require.NoError(t, err)
	for _, one := range []*driver.Project{project, seen} { // in a task, and in a preview
		missing, err := one.RoomFor(t.Context(), flavor)
		require.NoError(t, err)
		require.Equal(t, []string{"the project's quota of instances is exceeded: 1 more are needed and 0 of 1 are left, so 1 are missing"}, missing)
	}
	missing, err := demo.project(t, c.service(t)).RoomFor(t.Context(), flavor)
	require.NoError(t, err)
	require.Empty(t, missing)
}

// communityImage makes an image of visibility community: any user that knows its id can use it.
func (u user) communityImage(t *testing.T) string {
	visibility := images.ImageVisibilityCommunity
	client := u.client(t, openstack.NewImageV2)
	made, err := images.Create(t.Context(), client, images.CreateOpts{Name: "burano-test-community", DiskFormat: "raw", ContainerFormat: "bare", Visibility: &visibility}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, images.Delete(context.Background(), client, made.ID).ExtractErr()) })
	content, err := localcloudtest.TinyServer(t.Context())
	require.NoError(t, err)
	require.NoError(t, imagedata.Upload(t.Context(), client, made.ID, bytes.NewReader(content)).ExtractErr())
	return made.ID
}

func aQuotaIsNamed(t *testing.T, c *cloud) {
	other := c.as(t, "other")
	admin, projectID := c.as(t, "admin").nova(t), other.caller(t, c.service(t)).ProjectID
	one := 1
	require.NoError(t, quotasets.Update(t.Context(), admin, projectID, quotasets.UpdateOpts{Instances: &one}).Err)
	reset := func() error { return quotasets.Delete(context.Background(), admin, projectID).Err }
	t.Cleanup(func() { require.NoError(t, reset()) })

	project := other.project(t, c.service(t))
	name := begin(t, project, "quota")
	_, err := project.ApplyStack(t.Context(), name, plan(t, project, "one", "two").content(t))
	require.ErrorContains(t, err, "Quota exceeded")
	require.ErrorContains(t, err, "instances")

	require.NoError(t, reset())
	_, err = project.ApplyStack(t.Context(), name, plan(t, project, "one", "two").content(t))
	require.NoError(t, err)
	require.Len(t, other.serversNamed(t, "burano-test-.*"), 2)
}

// aNetworkThatIsGoneIsNamed: a user has deleted it in Neutron, of which Heat knows nothing.
func aNetworkThatIsGoneIsNamed(t *testing.T, c *cloud) {
	demo := c.as(t, "demo")
	project := demo.project(t, c.service(t))
	name := begin(t, project, "no-network")
	stack, err := project.ApplyStack(t.Context(), name, plan(t, project).content(t))
	require.NoError(t, err)
	has, neutron := demo.resources(t, stack, name), demo.neutron(t)
	subnet, network := has["subnet"].PhysicalID, has["network"].PhysicalID
	_, err = routers.RemoveInterface(t.Context(), neutron, has["router"].PhysicalID, routers.RemoveInterfaceOpts{SubnetID: subnet}).Extract()
	require.NoError(t, err)
	require.NoError(t, networks.Delete(t.Context(), neutron, network).ExtractErr())

	_, err = project.ApplyStack(t.Context(), name, plan(t, project, "one").content(t))
	require.ErrorContains(t, err, name)
	require.ErrorContains(t, err, "subnet (OS::Neutron::Subnet)", "Heat looks at what there was first")
	require.ErrorContains(t, err, "Unable to find network with name or id '"+network+"'")
	require.NoError(t, project.DeleteStack(t.Context(), name), "it can be deleted all the same")
}
