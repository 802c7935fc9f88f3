package cloud

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/direct"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// The driver without Heat does what the one with Heat does: the same cases, but for those that are about Heat itself.
func TestStacksAreMadeTheSameWithoutHeat(t *testing.T) {
	c := open(t)
	c.rows = openRows(t)
	for _, try := range []struct {
		name string
		run  func(*testing.T, *cloud)
	}{
		{"a port is open when its group says so, and a server reaches the metadata address", aPortIsOpenWhenItsGroupSaysSo},
		{"a stack grows and shrinks in single updates and leaves nothing", aStackGrowsAndShrinks},
		{"a stack has parameters, files and an environment, and changes when these do", aStackHasParametersAndFiles},
		{"two who create the same stack make one", twoCreateOneStack},
		{"a stack that is being deleted is made anew", aStackThatIsBeingDeletedIsMadeAnew},
		{"a refused template says why", aRefusedTemplateSaysWhy},
		{"a server for which there is no room says why, and a stack is healed by applying it again", noRoomIsSaidAndHealed},
		{"what is missing is said before anything is made", whatIsMissingIsSaidBefore},
		{"a quota that is used up is named", aQuotaIsNamed},
		{"servers are members of their server group", serversAreMembersOfTheirGroup},
		{"a server that is off is started, one that is gone is made anew, and a rebuild is seen", missingServersAreMended},
		{"a server that is there is not rebuilt, resized or replaced by an update", serversThatAreThereAreKept},
		{"a server that was made with the value of a hidden parameter keeps it", whatHeatHidesIsComparedByHeat},
		{"a new release with other user data and another template changes no server", aNewReleaseChangesNoServer},
		{"a server's further networks come and go while it runs", heatChangesServersAsTheTableSays},
	} {
		t.Run(try.name, func(t *testing.T) {
			began := time.Now()
			try.run(t, c)
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

// countedRows count the updates of stacks.
type countedRows struct {
	*store.Store
	mutex sync.Mutex
	begun map[string]int
}

func (r *countedRows) ChangeStack(ctx context.Context, holder string, stack store.Stack) error {
	if stack.Action == "UPDATE" && stack.Status == "IN_PROGRESS" {
		r.mutex.Lock()
		r.begun[stack.ID]++
		r.mutex.Unlock()
	}
	return r.Store.ChangeStack(ctx, holder, stack)
}

func (r *countedRows) updates(id string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.begun[id]
}

func openRows(t *testing.T) *countedRows {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	rows, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
	require.NoError(t, err)
	return &countedRows{Store: rows, begun: map[string]int{}}
}

// direct is the driver without Heat in the user's project, as another server of Burano has it.
func (u user) direct(t *testing.T) driver.Stacks {
	project, err := u.provider.GetAuthResult().(tokens.CreateResult).ExtractProject()
	require.NoError(t, err)
	volume := func() (*gophercloud.ServiceClient, error) { return openstack.NewBlockStorageV3(u.provider, u.endpoint) }
	return direct.New(u.rows).In(driver.Clients{Network: u.neutron(t), Compute: u.nova(t), Image: u.client(t, openstack.NewImageV2), Volume: volume,
		ProjectID: project.ID, Region: u.endpoint.Region})
}
