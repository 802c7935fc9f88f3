package engine_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

var (
	projectAdmin = identity.Caller{UserID: "u-boss", UserName: "boss", ProjectID: "p-demo", Roles: []string{"admin", "member"}, Admin: true}
	colleague    = identity.Caller{UserID: "u-colleague", UserName: "colleague", ProjectID: "p-demo", Roles: []string{"member"}}
	script       = identity.Caller{UserID: "u-demo", UserName: "demo", ProjectID: "p-demo", Roles: []string{"member"}, Credential: &identity.Credential{ID: "c", Name: "ci", Restricted: true}}
)

// deployAs submits a deployment of one application as a user, and returns its task.
func (h *house) deployAs(caller identity.Caller, id, name string) string {
	session, err := h.service.Sessions().Open(h.t.Context(), caller, id)
	require.NoError(h.t, err)
	require.NoError(h.t, h.service.Models().PutServices(h.t.Context(), caller, id, session.ID, nil, []any{application("of "+name, name, nil)}, false))
	require.NoError(h.t, h.service.Sessions().Deploy(h.t.Context(), caller, id, session.ID))
	tasks, err := h.service.Deployments().List(h.t.Context(), caller, id)
	require.NoError(h.t, err)
	return tasks[0].ID
}

// worksWith is the delegation that a task was submitted with.
func (h *house) worksWith(taskID string) store.Delegation {
	task, err := h.store.Tasks().Get(h.t.Context(), taskID)
	require.NoError(h.t, err)
	row, err := h.store.Delegations().Get(h.t.Context(), task.DelegationID)
	require.NoError(h.t, err)
	return row
}

// notes notes that Heat was asked to change "its stack" for a task, as native code does.
func (h *house) notes(taskID string) {
	require.NoError(h.t, h.db.Exec("INSERT INTO delegation_stacks (delegation_id, stack) VALUES (?, 'its stack')", h.worksWith(taskID).ID).Error)
}

func (h *house) trusts() int {
	there, _ := h.cloud.Trusts()
	return there
}

func (h *house) trustsBecome(count int, why string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.trusts() == count }, 10*time.Second, time.Millisecond, why)
}

func TestATaskActsWithTheRolesOfWhoSubmittedIt(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	open := h.world.Hold("deploy first")
	task := h.deployAs(projectAdmin, id, "first")
	first, there := h.cloud.Trust("trust-1")
	require.True(t, there)
	require.Equal(t, []string{"member"}, first.Roles, "an administrator delegates no more than anybody else")
	require.Equal(t, "u-boss", h.worksWith(task).UserID)
	open()
	require.Equal(t, "success", h.ended(id).State)
	h.trustsBecome(0, "it ends with its task")

	open = h.world.Hold("deploy second")
	defer open()
	task = h.deployAs(demo, id, "second")
	second, there := h.cloud.Trust("trust-2")
	require.True(t, there)
	require.Equal(t, "u-demo", second.UserID, "nobody works with another's rights")
	require.Equal(t, "u-demo", h.worksWith(task).UserID)
}

func TestWithoutARoleThatIsDelegatedNothingIsSubmitted(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	session, err := h.service.Sessions().Open(t.Context(), demo, id)
	require.NoError(t, err)
	err = h.service.Sessions().Deploy(t.Context(), identity.Caller{UserID: "u-demo", ProjectID: "p-demo", Roles: []string{"auditor"}}, id, session.ID)
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	require.ErrorContains(t, err, "trust-roles")
	require.Equal(t, "pending", h.status(id))
}

func TestATrustLastsAsLongAsHeatNeedsIt(t *testing.T) {
	h := newHouse(t)
	h.sweep = 20 * time.Millisecond
	h.stop()
	h.start()
	id := h.create("one")
	h.cloud.PassOn("trust-1", true)
	open := h.world.Hold("deploy first")
	h.notes(h.deployAs(demo, id, "first"))
	open()
	require.Equal(t, "success", h.ended(id).State)
	h.deployAs(demo, id, "second")
	require.Equal(t, "success", h.ended(id).State)
	h.trustsBecome(1, "the second one ended with its task")
	_, there := h.cloud.Trust("trust-1")
	require.True(t, there, "Heat keeps one that was made through the first")

	// Another user has changed the stack: Heat has taken one of theirs.
	h.cloud.PassOn("trust-1", false)
	h.cloud.PassOn("trust-3", true)
	open = h.world.Hold("deploy third")
	h.notes(h.deployAs(colleague, id, "third"))
	open()
	require.Equal(t, "success", h.ended(id).State)
	require.Eventually(t, func() bool {
		_, first := h.cloud.Trust("trust-1")
		_, third := h.cloud.Trust("trust-3")
		return !first && third
	}, 10*time.Second, time.Millisecond)

	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	h.gone(id)
	h.trustsBecome(0, "with the environment its stacks are gone")
}

func TestATrustOutlivesWhatHeatIsDoingThroughIt(t *testing.T) {
	for _, abandoned := range []bool{false, true} {
		h := newHouse(t)
		h.sweep = 20 * time.Millisecond
		h.stop()
		h.start()
		id := h.create("one")
		open := h.world.Hold("deploy first")
		defer open()
		task := h.deployAs(demo, id, "first")
		h.notes(task)
		h.cloud.Change("its stack", true)
		if abandoned {
			require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, true))
		} else {
			open()
			require.Equal(t, "success", h.ended(id).State)
		}
		other := h.create("other")
		h.deployAs(demo, other, "second")
		require.Equal(t, "success", h.ended(other).State)
		h.trustsBecome(1, "that of the other environment is gone")
		_, there := h.cloud.Trust("trust-1")
		require.True(t, there)
		h.cloud.Change("its stack", false)
		h.trustsBecome(0, "Heat is done")
	}
}

func TestATrustThatWentWithItsUserIsRememberedAsLongAsItsEnvironment(t *testing.T) {
	h := newHouse(t)
	h.sweep = 20 * time.Millisecond
	h.stop()
	h.start()
	id := h.create("one")
	open := h.world.Hold("deploy first")
	h.notes(h.deployAs(demo, id, "first"))
	require.NoError(t, h.cloud.DeleteTrust(t.Context(), "trust-1"))
	open()
	require.Equal(t, "success", h.ended(id).State)
	other := h.create("other")
	h.deployAs(demo, other, "second")
	require.Equal(t, "success", h.ended(other).State)
	h.trustsBecome(0, "orphaned trusts were looked for")
	rows, err := h.store.Delegations().TrustsOfStack(t.Context(), id, "its stack")
	require.NoError(t, err)
	require.Len(t, rows, 1, "it says why Heat can change the stack no more")

	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	h.gone(id)
	require.Eventually(t, func() bool { return h.count("delegations") == 0 }, 10*time.Second, time.Millisecond)
}

func TestAnOrphanedTrustIsRevokedWhileTheServerRuns(t *testing.T) {
	h := newHouse(t)
	h.sweep = 20 * time.Millisecond
	h.stop()
	h.start()
	id := h.create("one")
	open := h.world.Hold("deploy first")
	h.deployAs(demo, id, "first")
	h.cloud.Break(errors.New("Keystone is away"))
	open()
	require.Equal(t, "success", h.ended(id).State)
	require.Eventually(t, func() bool {
		var tries int64
		require.NoError(t, h.db.Raw("SELECT COALESCE(MAX(tries), 0) FROM delegations").Scan(&tries).Error)
		return tries > 0
	}, 10*time.Second, time.Millisecond)
	require.Equal(t, 1, h.trusts())
	h.cloud.Break(nil)
	h.trustsBecome(0, "it is tried again")
	require.Eventually(t, func() bool { return h.count("delegations") == 0 }, 10*time.Second, time.Millisecond)
}

func TestAScriptDeploysWithTheStandingDelegationOfItsUser(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	session, err := h.service.Sessions().Open(t.Context(), script, id)
	require.NoError(t, err)
	refused := func() {
		err := h.service.Sessions().Deploy(t.Context(), script, id, session.ID)
		require.Equal(t, fault.Forbidden, fault.KindOf(err))
		require.ErrorContains(t, err, "burano environment delegation set")
		require.Equal(t, "pending", h.status(id), "nothing is queued")
	}
	refused()
	_, err = h.service.Delegations().Set(t.Context(), colleague, id, orchestrator.Delegate{})
	require.NoError(t, err)
	refused() // with another's nothing is done

	_, err = h.service.Delegations().Set(t.Context(), demo, id, orchestrator.Delegate{})
	require.Equal(t, fault.Forbidden, fault.KindOf(err), "only its owner replaces it")
	require.Equal(t, fault.Forbidden, fault.KindOf(h.service.Delegations().Revoke(t.Context(), demo, id)))
	h.deployAs(demo, id, "first")
	require.Equal(t, "success", h.ended(id).State)
	shown, _, err := h.service.Delegations().Get(t.Context(), demo, id)
	require.NoError(t, err)
	require.Equal(t, "u-colleague", shown.UserID, "a deployment replaces it neither")
	require.NoError(t, h.service.Delegations().Revoke(t.Context(), projectAdmin, id), "an administrator may")
	_, found, err := h.service.Delegations().Get(t.Context(), demo, id)
	require.NoError(t, err)
	require.False(t, found)
	h.trustsBecome(0, "its trust is gone")

	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	shown, err = h.service.Delegations().Set(t.Context(), demo, id, orchestrator.Delegate{Expires: until})
	require.NoError(t, err)
	require.Equal(t, until, *shown.Expires)
	require.Equal(t, []string{"member"}, shown.Roles)
	open := h.world.Hold("deploy second")
	task := h.deployAs(script, id, "second")
	require.True(t, h.worksWith(task).Standing)
	open()
	require.Equal(t, "success", h.ended(id).State)
	require.NoError(t, h.service.Environments().Delete(t.Context(), script, id, false))
	h.gone(id)
	h.trustsBecome(0, "it ends with its environment")
}

func TestAScriptWithFewerRolesIsNotLentThoseOfItsUsersDelegation(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	_, err := h.service.Delegations().Set(t.Context(), projectAdmin, id, orchestrator.Delegate{Roles: []string{"admin", "member"}})
	require.NoError(t, err)
	narrow := projectAdmin
	narrow.Roles, narrow.Admin, narrow.Credential = []string{"member"}, false, script.Credential
	session, err := h.service.Sessions().Open(t.Context(), narrow, id)
	require.NoError(t, err)
	err = h.service.Sessions().Deploy(t.Context(), narrow, id, session.ID)
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	require.ErrorContains(t, err, "grants the role admin, which this token has not (it has member)")
	require.Equal(t, "pending", h.status(id), "nothing is queued")
	_, err = h.service.Delegations().Set(t.Context(), projectAdmin, id, orchestrator.Delegate{Roles: []string{"member"}})
	require.NoError(t, err)
	require.True(t, h.worksWith(h.deployAs(narrow, id, "first")).Standing)
	require.Equal(t, "success", h.ended(id).State)
}

func TestAnApplicationCredentialIsKeptSealedAndForItsOwnerOnly(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	for _, given := range []struct {
		caller identity.Caller
		secret string
	}{{demo, "wrong"}, {colleague, "shh"}} {
		_, err := h.service.Delegations().Set(t.Context(), given.caller, id, orchestrator.Delegate{CredentialID: "mine", CredentialSecret: given.secret})
		require.Equal(t, fault.Invalid, fault.KindOf(err), "%v", err)
	}
	shown, err := h.service.Delegations().Set(t.Context(), demo, id, orchestrator.Delegate{CredentialID: "mine", CredentialSecret: "shh"})
	require.NoError(t, err)
	require.Equal(t, store.ApplicationCredential, shown.Kind)
	var sealed string
	require.NoError(t, h.db.Raw("SELECT sealed FROM delegations").Scan(&sealed).Error)
	require.NotContains(t, sealed, "shh")
	open := h.world.Hold("deploy first")
	task := h.deployAs(script, id, "first")
	require.Equal(t, store.ApplicationCredential, h.worksWith(task).Kind)
	require.NoError(t, h.service.Delegations().Revoke(t.Context(), demo, id))
	require.Equal(t, store.ApplicationCredential, h.worksWith(task).Kind, "a task that works with it goes on")
	open()
	require.Equal(t, "success", h.ended(id).State)
	require.Eventually(t, func() bool { return h.count("delegations") == 0 }, 10*time.Second, time.Millisecond)
}

// TestWhatAFormerVersionLeftGoesOn has a task and trusts as a former version wrote them.
func TestWhatAFormerVersionLeftGoesOn(t *testing.T) {
	h := newHouse(t)
	id, gone := h.create("one"), store.NewID()
	made := func(environmentID string) (sealed string) {
		trust, _, err := h.cloud.CreateTrust(t.Context(), projectAdmin, []string{"admin"}, time.Time{})
		require.NoError(t, err)
		return h.sealer.Seal(store.TrustOwner(environmentID), []byte(trust))
	}
	open := h.world.Hold("deploy first")
	h.deployAs(demo, id, "first") // trust-1
	require.Eventually(t, func() bool { return slices.Contains(h.world.Log(), "begin deploy first") }, 10*time.Second, time.Millisecond)
	h.stop()
	require.NoError(t, h.db.Exec("UPDATE tasks SET delegation_id = ''").Error)
	require.NoError(t, h.db.Exec("DELETE FROM delegations").Error)
	require.NoError(t, h.cloud.DeleteTrust(t.Context(), "trust-1"))
	require.NoError(t, h.db.Exec("UPDATE environments SET trust = ? WHERE id = ?", made(id), id).Error)
	require.NoError(t, h.db.Exec("INSERT INTO doomed_trusts (id, environment_id, trust, created) VALUES (?, ?, ?, 0)", store.NewID(), gone, made(gone)).Error)
	h.sweep = 20 * time.Millisecond
	h.cloud.PassOn("trust-2", true)
	h.start()
	require.Eventually(t, func() bool { _, there := h.cloud.Trust("trust-3"); return !there }, 10*time.Second, time.Millisecond, "what is noted to be revoked is revoked")
	open()
	require.Equal(t, "success", h.ended(id).State)
	_, there := h.cloud.Trust("trust-2")
	require.True(t, there, "Heat works with what the stack was made through")

	h.cloud.PassOn("trust-2", false)
	h.deployAs(demo, id, "second")
	require.Equal(t, "success", h.ended(id).State)
	h.trustsBecome(0, "it was replaced")
	row, err := h.store.Environments().Get(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, row.Trust)
}
