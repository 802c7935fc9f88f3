package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
)

// draft returns the session of the environment's only draft.
func (h *house) draft(id string) string {
	h.t.Helper()
	drafts, err := h.service.Sessions().Drafts(h.t.Context(), demo, id)
	require.NoError(h.t, err)
	require.Len(h.t, drafts, 1)
	require.True(h.t, drafts[0].Rejected)
	require.False(h.t, drafts[0].Outdated)
	return drafts[0].ID
}

func TestARejectedDeploymentLeavesTheEnvironmentAsItWasAndADraft(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	good := application("a1", "good", nil)
	h.deploy(id, good)
	require.Equal(t, "success", h.ended(id).State)
	before, err := h.store.Environments().Get(t.Context(), id)
	require.NoError(t, err)
	unchanged := func() {
		t.Helper()
		now, err := h.store.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, before.Model, now.Model)
		require.Equal(t, before.Version, now.Version)
	}

	h.deploy(id, good, application("a2", "bad", map[string]any{"count": -1}))
	rejected := h.ended(id)
	require.Equal(t, "completed_w_errors", rejected.State)
	require.Contains(t, texts(h.reports(id, rejected)), "Nothing was changed, and the environment is as it was before. The change stays as a draft: correct it and deploy it again, or discard it (burano environment discard)")
	unchanged()
	require.Equal(t, "deploy failure", h.status(id))
	session := h.draft(id)
	services, err := h.service.Models().Services(t.Context(), demo, id, session, nil)
	require.NoError(t, err)
	require.Len(t, services.(orchestrator.Applications).List, 2, "the draft has the change")

	// Tried again it is the draft that is tried.
	_, err = h.service.Deployments().Retry(t.Context(), demo, rejected.ID)
	require.NoError(t, err)
	require.Equal(t, "completed_w_errors", h.ended(id).State)
	unchanged()

	// It can be corrected and deployed.
	require.NoError(t, h.service.Models().PutServices(t.Context(), demo, id, session, nil, []any{good, application("a2", "better", nil)}, false))
	require.NoError(t, h.service.Sessions().Deploy(t.Context(), demo, id, session))
	require.Equal(t, "success", h.ended(id).State)
	require.Equal(t, "ready", h.status(id))
	drafts, err := h.service.Sessions().Drafts(t.Context(), demo, id)
	require.NoError(t, err)
	require.Empty(t, drafts)
}

func TestADiscardedRejectionLeavesNothing(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "good", nil))
	require.Equal(t, "success", h.ended(id).State)
	h.deploy(id, application("a1", "good", map[string]any{"count": -1}))
	rejected := h.ended(id)
	require.NoError(t, h.service.Sessions().Delete(t.Context(), demo, id, h.draft(id)))
	require.Equal(t, "ready", h.status(id))
	_, err := h.service.Deployments().Retry(t.Context(), demo, rejected.ID)
	require.Equal(t, fault.Conflict, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "its draft was discarded")
}

func TestAnActionActsOnWhatCameUpAndNotOnWhatWasRejected(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "good", nil))
	require.Equal(t, "success", h.ended(id).State)
	h.deploy(id, application("a1", "good", map[string]any{"count": -1}))
	require.Equal(t, "completed_w_errors", h.ended(id).State)
	_, err := h.service.Actions().Call(t.Context(), demo, id, "a1_shout", nil)
	require.NoError(t, err)
	require.Equal(t, "success", h.ended(id).State)
	require.Equal(t, "ready", h.status(id))
}

func TestWhatHasBegunIsNotRejected(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "good", nil))
	require.Equal(t, "success", h.ended(id).State)
	before, err := h.store.Environments().Get(t.Context(), id)
	require.NoError(t, err)
	h.deploy(id, application("a1", "good", nil), application("a2", "late", map[string]any{"fail": true}))
	require.Equal(t, "completed_w_errors", h.ended(id).State)
	now, err := h.store.Environments().Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, before.Version+1, now.Version)
	require.Contains(t, objectIDs(now.Model.Objects), "a2", "some of it may be there")
	drafts, err := h.service.Sessions().Drafts(t.Context(), demo, id)
	require.NoError(t, err)
	require.Empty(t, drafts)
}

func objectIDs(model map[string]any) (ids []string) {
	services, _ := model["services"].([]any)
	for _, one := range services {
		ids = append(ids, one.(map[string]any)["?"].(map[string]any)["id"].(string))
	}
	return ids
}
