package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/store"
)

// classCluster is the class of objects whose servers hold what nobody can make again.
const classCluster = "com.mirantis.docker.kubernetes.KubernetesCluster"

// destroyedClusters are the clusters that were deployed and that a model does not have any more.
func destroyedClusters(before, after map[string]any) (list []placed) {
	had, has := map[string]placed{}, map[string]placed{}
	place(had, "", store.ForAPI(before))
	place(has, "", after)
	for id, one := range had {
		if _, there := has[id]; !there && one.Type == classCluster {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b placed) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// destroyed says what the loss of a cluster costs.
func (p placed) destroyed() string {
	return fmt.Sprintf("cluster %s (%s) is destroyed, with everything that is in it%s", p.Name, p.ID, p.volumes())
}

// Deletion says in sentences, without doing anything, what the deletion of an environment costs besides the servers, networks and stacks that it has: a cluster with
// what is in it, and what becomes of its volumes and shares. The list is empty for an environment without clusters.
func (s *Service) Deletion(ctx context.Context, caller identity.Caller, environmentID string) ([]string, error) {
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return nil, err
	}
	means := []string{}
	for _, one := range destroyedClusters(environment.Model.ObjectsCopy, nil) {
		means = append(means, one.destroyed())
	}
	return means, nil
}

// volumes says what becomes of the volumes that a cluster has; "" where its classes make none, and nothing says that those of former classes go.
func (p placed) volumes() string {
	classes, _ := p.properties["storageClasses"].([]any)
	of := func(backend string) bool {
		return slices.ContainsFunc(classes, func(class any) bool {
			fields, _ := class.(map[string]any)
			return fields["backend"] == backend
		})
	}
	text := ""
	if of("local") {
		text = "; its local volumes go with its servers"
	}
	switch {
	case p.properties["keepVolumes"] == false:
		return text + "; its volumes in Cinder and shares in Manila, where it has any, are deleted (keepVolumes: false), but for those of classes whose reclaimPolicy is Retain"
	case of("cinder") && of("manila"):
		return text + "; its volumes in Cinder and shares in Manila stay (keepVolumes), and are yours to delete"
	case of("manila"):
		return text + "; its shares in Manila stay (keepVolumes), and are yours to delete"
	case of("cinder"):
		return text + "; its volumes in Cinder stay (keepVolumes), and are yours to delete"
	}
	return text
}

// destroys is the fault that a deployment would destroy clusters that nobody named.
func destroys(clusters []placed) error {
	texts := make([]string, len(clusters))
	for i, one := range clusters {
		texts[i] = fmt.Sprintf("%s (%s)", one.Name, one.ID)
	}
	return fault.New(fault.Conflict, "The model does not have cluster %s any more, and with its servers everything in it would be lost. Nothing was done. "+
		"Put it back with the id that it had, or say that it is to be destroyed: burano deploy --allow-destroy %s, or allow_destroy=%s in the API",
		strings.Join(texts, ", "), cmp.Or(clusters[0].Name, clusters[0].ID), clusters[0].ID)
}
