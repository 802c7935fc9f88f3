package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/store"
)

// Deletion lists the effects of an environment's deletion, without doing anything. leaving asks its clusters and the cloud (native.Leaving); nil: they are not asked.
func (s Environments) Deletion(ctx context.Context, caller identity.Caller, environmentID string, leaving engine.Question) (preview.Deletion, error) {
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return preview.Deletion{}, err
	}
	deletion := preview.OfDeletion(store.ForAPI(environment.Model.ObjectsCopy))
	if len(deletion.Consents) > 0 && leaving != nil && s.project != nil {
		answer, err := s.engine.Ask(ctx, environment, s.projectFor(caller), leaving)
		if err != nil {
			deletion.Goes = append(deletion.Goes, fmt.Sprintf("the claims of its clusters, which cannot be listed: %v", err))
		}
		inside, _ := answer.(preview.Deletion)
		deletion.Goes, deletion.Stays = append(deletion.Goes, inside.Goes...), append(deletion.Stays, inside.Stays...)
	}
	snapshots, err := s.store.Snapshots().Snapshots(ctx, store.SnapshotFilter{EnvironmentID: environmentID})
	if err != nil {
		return deletion, err
	}
	if len(snapshots) > 0 {
		deletion.Stays = append(deletion.Stays, fmt.Sprintf("%d snapshots of its clusters, the newest of %s (burano snapshot list)", len(snapshots), snapshots[0].Created.Time().Format("2 January 2006 15:04")))
	}
	deletion.Busy, err = s.busy(ctx, environmentID)
	return deletion, err
}

// busy is the running user's task of an environment; nil for none.
func (s Environments) busy(ctx context.Context, environmentID string) (*preview.Busy, error) {
	sessions, err := s.store.Sessions().PeekList(ctx, environmentID)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(sessions, func(one store.Session) bool { return one.State == store.Deploying || one.State == store.Deleting })
	if at < 0 {
		return nil, nil
	}
	busy := &preview.Busy{Kind: "deployment", UserID: sessions[at].UserID, UserName: sessions[at].UserName, Since: sessions[at].Updated.Time()}
	if sessions[at].State == store.Deleting {
		busy.Kind = "deletion"
	}
	newest, _, err := Deployments(s).page(ctx, environmentID, "", store.Page{Limit: 1})
	if err == nil && len(newest) > 0 && newest[0].Finished == nil {
		busy.DeploymentID = newest[0].ID
		if action := newest[0].Action; action != nil && action.ObjectID != environmentID {
			busy.Kind = "action " + action.Method
		}
	}
	return busy, err
}

// destroys is the fault of a deployment that would destroy clusters without the user's consent.
func destroys(clusters []preview.Object) error {
	texts := make([]string, len(clusters))
	for i, one := range clusters {
		texts[i] = fmt.Sprintf("%s (%s)", one.Name, one.ID)
	}
	return fault.New(fault.Conflict, "The model does not have cluster %s any more, and with its servers everything in it would be lost. Nothing was done. "+
		"Put it back with the id that it had, or say that it is to be destroyed: burano deploy --allow-destroy %s, or allow_destroy=%s in the API",
		strings.Join(texts, ", "), cmp.Or(clusters[0].Name, clusters[0].ID), clusters[0].ID)
}
