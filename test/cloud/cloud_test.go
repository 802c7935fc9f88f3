// Package cloud tests Burano's cloud driver (orchestrator/openstack) on a whole cloud. The same tests run on the local cloud, in
// `make test`, and on a real OpenStack, in `make test-openstack`, with the same results.
package cloud

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/direct"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/localcloudtest"
)

// cloudsVariable names a clouds.yaml with the entries burano-admin, burano-demo, burano-other, burano-service and burano-brief. The last
// one is the service user at a Keystone whose tokens end after minutes. Without the variable a local cloud is started, where all tokens
// end soon.
const cloudsVariable = "BURANO_TEST_CLOUDS"

// The cloud's objects that the tests need: an image that boots with the least, and a flavor for it.
const (
	image  = "tiny"
	flavor = "m1.small"
)

// patience is how long a test waits for a condition: a real cloud on a few busy processors emulates its servers', and needs minutes
// where a local cloud needs seconds.
func patience() time.Duration {
	if os.Getenv(cloudsVariable) != "" {
		return 15 * time.Minute
	}
	return 4 * time.Minute
}

func TestTheDriverDoesTheSameOnEveryCloud(t *testing.T) {
	c := open(t)
	for _, try := range []struct {
		name string
		run  func(*testing.T, *cloud)
	}{
		{"a token tells whose it is", aTokenTellsWhoseItIs},
		{"what a caller may choose from is listed", whatACallerMayChooseFromIsListed},
		{"a bad token is refused", aBadTokenIsRefused},
		{"a user signs in and chooses a project", aUserSignsInAndChoosesAProject},
		{"the server lets in whom the cloud knows", theServerLetsInWhomTheCloudKnows},
		{"a trust acts for its trustor until it is deleted", aTrustActsUntilItIsDeleted},
		{"a trust that its trustor has deleted is no error", aTrustDeletedByItsTrustorIsNoError},
		{"an application credential makes no trust", anApplicationCredentialMakesNoTrust},
		{"Heat keeps a trust that was made through ours, and changes no stack without it", heatKeepsATrustOfItsOwn},
		{"a stack whose user is deleted is told from an outage", aUserWhoIsDeletedIsNoOutage},
		{"a trust that is refused in the middle ends a task, and another member goes on", aTrustThatIsRefusedInTheMiddleEndsATask},
		{"a project lets Burano work with a role, and its users leave in the middle of a deployment", aProjectLetsBuranoWorkWithARole},
		{"the role that a project gives is no more than that", aRoleIsNoMore},
		{"a stack whose user has gone is taken over, with its servers", aStackWhoseUserHasGoneIsTakenOver},
		{"who has gone takes no stack away", whoHasGoneTakesNothingAway},
		{"work goes on when its tokens end", workOutlivesItsTokens},
		{"the external network is found", theExternalNetworkIsFound},
		{"a free network avoids the subnets that are there", aFreeNetworkAvoidsWhatIsThere},
		{"a port is open when its group says so, and a server reaches the metadata address", aPortIsOpenWhenItsGroupSaysSo},
		{"a stack grows and shrinks in single updates and leaves nothing", aStackGrowsAndShrinks},
		{"a stack whose creator was cut off is taken over", aStackIsTakenOver},
		{"a stack has parameters, files and an environment, and changes when these do", aStackHasParametersAndFiles},
		{"two who create the same stack make one", twoCreateOneStack},
		{"of several stacks of one name the oldest is kept", severalStacksBecomeOne},
		{"a stack of somebody else is left alone", aStackOfSomebodyElseIsLeftAlone},
		{"a stack of Murano is taken over, with its servers", muranosStackIsTakenOver},
		{"a stack of a template of Murano is taken over", stacksOfMuranosTemplatesAreTakenOver},
		{"a stack that is being deleted is made anew", aStackThatIsBeingDeletedIsMadeAnew},
		{"a refused template says why", aRefusedTemplateSaysWhy},
		{"a server for which there is no room says why, and a stack is healed by applying it again", noRoomIsSaidAndHealed},
		{"container images are found by their names", containerImagesAreFound},
		{"what is missing is said before anything is made", whatIsMissingIsSaidBefore},
		{"a quota that is used up is named", aQuotaIsNamed},
		{"a container that a project shares takes a snapshot, and gives it back without the project's trust", aSharedContainerTakesASnapshot},
		{"servers are members of their server group", serversAreMembersOfTheirGroup},
		{"a network that is gone is named", aNetworkThatIsGoneIsNamed},
		{"a server that is off is started, one that is gone is made anew, and a rebuild is seen", missingServersAreMended},
		{"a server that is there is not rebuilt, resized or replaced by an update", serversThatAreThereAreKept},
		{"a server that was made with the value of a hidden parameter keeps it", whatHeatHidesIsComparedByHeat},
		{"a new release with other user data and another template changes no server", aNewReleaseChangesNoServer},
		{"Heat does with each property what the table says", heatDoesWhatTheTableSays},
		{"a server's further networks come and go while it runs", heatChangesServersAsTheTableSays},
	} {
		t.Run(try.name, func(t *testing.T) {
			began := time.Now()
			try.run(t, c)
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

// localTokens is the lifetime of tokens of the local cloud: its users must get new ones all the time.
const localTokens = 5 * time.Second

// cloud is the cloud under test.
type cloud struct {
	path  string       // of its clouds.yaml
	brief string       // the entry of the service user whose tokens end soon
	rows  *countedRows // of stacks that are made without Heat; nil where Heat makes them
}

func open(t *testing.T) *cloud {
	if path := os.Getenv(cloudsVariable); path != "" {
		return &cloud{path: path, brief: "brief"}
	}
	c := &cloud{path: startLocalCloud(t), brief: "service"}
	c.upload(t)
	return c
}

// startLocalCloud serves a local cloud in this process until the test ends. BURANO_SLOT, a digit, separates the clouds of several
// checkouts.
func startLocalCloud(t *testing.T) (clouds string) {
	slot := os.Getenv("BURANO_SLOT")
	settings := localcloudtest.Start(t, localcloud.Config{
		ExternalCIDR: netip.MustParsePrefix("10.86.6" + slot + ".0/24"), Prefix: "bld" + slot + "-",
		TokenLifetime: localTokens,
	})
	path, err := localcloud.WriteClouds(settings)
	require.NoError(t, err)
	return path
}

func (c *cloud) upload(t *testing.T) {
	content, err := localcloudtest.TinyServer(t.Context())
	require.NoError(t, err)
	public := images.ImageVisibilityPublic
	client := c.as(t, "admin").client(t, openstack.NewImageV2)
	made, err := images.Create(t.Context(), client, images.CreateOpts{
		Name: image, DiskFormat: "raw", ContainerFormat: "bare", Visibility: &public,
	}).Extract()
	require.NoError(t, err)
	require.NoError(t, imagedata.Upload(t.Context(), client, made.ID, bytes.NewReader(content)).ExtractErr())
}

// options are the credentials of an entry of clouds.yaml: "service" is the entry burano-service.
func (c *cloud) options(t *testing.T, entry string) (gophercloud.AuthOptions, gophercloud.EndpointOpts) {
	options, endpoint, _, err := clouds.Parse(clouds.WithCloudName("burano-"+entry), clouds.WithLocations(c.path))
	require.NoError(t, err)
	return options, endpoint
}

// service is a new driver with empty caches, as after a start of Burano.
func (c *cloud) service(t *testing.T) *driver.Service { return c.serviceAs(t, "service") }

func (c *cloud) serviceAs(t *testing.T, entry string) *driver.Service {
	options, endpoint := c.options(t, entry)
	service, err := driver.NewService(t.Context(), options, endpoint, nil)
	require.NoError(t, err)
	if c.rows != nil {
		service.Orchestrate(driver.Direct, direct.New(c.rows).In)
	}
	return service
}

// user is a user with a token.
type user struct {
	provider *gophercloud.ProviderClient
	endpoint gophercloud.EndpointOpts
	rows     *countedRows // of their cloud
}

func (c *cloud) as(t *testing.T, entry string) user {
	options, endpoint := c.options(t, entry)
	made := signIn(t, options, endpoint)
	made.rows = c.rows
	return made
}

func signIn(t *testing.T, options gophercloud.AuthOptions, endpoint gophercloud.EndpointOpts) user {
	options.AllowReauth = true
	provider, err := config.NewProviderClient(t.Context(), options)
	require.NoError(t, err)
	return user{provider: provider, endpoint: endpoint}
}

func (u user) client(t *testing.T, service func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)) *gophercloud.ServiceClient {
	t.Helper()
	client, err := service(u.provider, u.endpoint)
	require.NoError(t, err)
	return client
}

func (u user) keystone(t *testing.T) *gophercloud.ServiceClient {
	return u.client(t, openstack.NewIdentityV3)
}
func (u user) neutron(t *testing.T) *gophercloud.ServiceClient {
	return u.client(t, openstack.NewNetworkV2)
}
func (u user) nova(t *testing.T) *gophercloud.ServiceClient {
	return u.client(t, openstack.NewComputeV2)
}
func (u user) heat(t *testing.T) *gophercloud.ServiceClient {
	return u.client(t, openstack.NewOrchestrationV1)
}

// caller is the user as Burano knows them once a token of theirs is validated.
func (u user) caller(t *testing.T, service *driver.Service) identity.Caller {
	require.NoError(t, u.provider.Reauthenticate(t.Context(), ""))
	caller, err := service.Validate(t.Context(), u.provider.Token())
	require.NoError(t, err)
	return caller
}

// project is the user's project as Burano reaches it: through a trust that ends with the test.
func (u user) project(t *testing.T, service *driver.Service) *driver.Project {
	project, err := service.Project(t.Context(), u.trust(t, service))
	require.NoError(t, err)
	return project
}

// projectTwice is the same project as two servers of Burano reach it, through the one trust of an environment.
func (u user) projectTwice(t *testing.T, c *cloud) (one, two *driver.Project) {
	service := c.service(t)
	trust := u.trust(t, service)
	one, err := service.Project(t.Context(), trust)
	require.NoError(t, err)
	two, err = c.service(t).Project(t.Context(), trust)
	require.NoError(t, err)
	return one, two
}

// trust is a trust that ends with the test. It must outlive every change that is requested through it: its tokens end with
// it.
func (u user) trust(t *testing.T, service *driver.Service) string {
	trust, _, err := service.CreateTrust(t.Context(), u.caller(t, service), []string{"member"}, time.Time{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, service.DeleteTrust(context.Background(), trust)) })
	return trust
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience())
	for !condition() {
		require.Truef(t, time.Now().Before(deadline), "%s: not within %s", what, patience())
		select {
		case <-t.Context().Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
