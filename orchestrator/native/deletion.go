package native

import (
	"context"
	"fmt"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/volumes"
)

// Leaving computes which claims and volumes of an environment's clusters go when it is deleted. Its answer is a preview.Deletion.
func Leaving(config Config) engine.Question {
	return func(stage *engine.Stage) (muranopl.Natives, func(context.Context, *muranopl.Interpreter, *muranopl.Object) (any, error)) {
		config := config
		config.Logger = slog.New(slog.DiscardHandler)
		r := task.NewRehearsal(stage)
		bodies := assemble(r, config, true)
		return bodies.natives, func(ctx context.Context, _ *muranopl.Interpreter, root *muranopl.Object) (any, error) {
			r.SetModel(root)
			var answer preview.Deletion
			for _, cluster := range bodies.clusters.Objects.All(task.ClassCluster) {
				clusterDeletionOf(bodies.clusters).leaving(ctx, cluster, &answer)
			}
			return answer, nil
		}
	}
}

// clusterDeletion foresees the loss of data when a cluster is deleted.
type clusterDeletion struct{ *clusters.Clusters }

func clusterDeletionOf(c *clusters.Clusters) clusterDeletion { return clusterDeletion{c} }

// leaving adds the claims in a cluster, which go with it, and its volumes in Cinder that stay.
func (c clusterDeletion) leaving(ctx context.Context, cluster *muranopl.Object, answer *preview.Deletion) {
	name := cluster.Text("name")
	in := c.Previews().Observe(ctx, cluster)
	if in.Live == nil && in.Why == nil {
		return // it was never up
	}
	if in.Client != nil && in.Why == nil {
		claims, err := in.Client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		in.Why = err
		for _, claim := range claims.Items {
			answer.Goes = append(answer.Goes, fmt.Sprintf("%s in namespace %s of cluster %s", storage.DescribeClaim(claim), claim.Namespace, name))
		}
	}
	if in.Why != nil {
		answer.Goes = append(answer.Goes, fmt.Sprintf("the claims of cluster %s, which cannot be listed: %v", name, in.Why))
	}
	if in.Live != nil {
		_ = in.Live.Close() // nothing was changed through it
	}
	if task.Desired(cluster).KeepVolumes {
		stay, err := c.volumesOf(ctx, cluster)
		for _, one := range stay {
			answer.Stays = append(answer.Stays, fmt.Sprintf("volume %s (%s, %d GiB) of cluster %s in Cinder (keepVolumes)", one.ID, one.Name, one.GiB, name))
		}
		if err != nil {
			answer.Stays = append(answer.Stays, fmt.Sprintf("the volumes of cluster %s in Cinder (keepVolumes), which cannot be listed: %v", name, err))
		}
	}
}

// volumesOf are the volumes that a cluster has in Cinder; none where the cloud has no Cinder.
func (c clusterDeletion) volumesOf(ctx context.Context, cluster *muranopl.Object) ([]openstack.Volume, error) {
	if !task.Desired(cluster).HasStorage(kube.Cinder) {
		return nil, nil
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	storage, err := project.BlockStorage()
	if err != nil {
		return nil, err
	}
	return storage.Tagged(ctx, "", map[string]string{volumes.ClusterMetadata: volumes.ClusterID(c.Runtime.EnvironmentID(), cluster.ID())})
}
