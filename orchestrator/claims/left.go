package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/volumes"
)

// Leave plans the end of a cluster's volumes in Cinder, and of its shares in Manila, for when its servers are gone.
func (c Claims) Leave(ctx context.Context, object *muranopl.Object) error {
	ends := map[kube.Storage]func(context.Context, *muranopl.Object) error{kube.Cinder: c.endVolumes, kube.Manila: c.endShares}
	for backend := range ends {
		has, err := c.uses(ctx, object, backend)
		if err != nil {
			return err
		}
		if !has {
			delete(ends, backend)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	decide := func(ctx context.Context) error {
		var failures []error
		for _, end := range ends {
			failures = append(failures, end(ctx, object))
		}
		return errors.Join(failures...)
	}
	if c.of.Objects.Model() != nil {
		c.of.Runtime.AtEnd(decide)
		return nil
	}
	c.of.AfterServers(decide)
	return nil
}

// endVolumes deletes the volumes of a destroyed cluster, with their snapshots, if keepVolumes allows it, except the ones of classes that keep theirs. It
// names the remaining ones. Cinder deletes no volume that has snapshots, so a remaining snapshot, also a foreign one, keeps its volume.
func (c Claims) endVolumes(ctx context.Context, object *muranopl.Object) error {
	cinder, err := c.cinder(ctx)
	if err != nil {
		return err
	}
	all, err := cinder.Tagged(ctx, "", c.tag(object))
	if err != nil {
		return err
	}
	var snapshots []openstack.Snapshot
	if len(all) > 0 {
		if snapshots, err = cinder.TaggedSnapshots(ctx, "", nil); err != nil {
			return err
		}
	}
	keep := task.Desired(object).KeepVolumes
	var kept []string
	deleted := 0
	for _, volume := range slices.Backward(all) { // the youngest first: back-ends keep the sources of others
		of := slices.DeleteFunc(slices.Clone(snapshots), func(one openstack.Snapshot) bool { return one.Volume != volume.ID })
		stays := func(one openstack.Snapshot) bool {
			return storage.Retained(one.Metadata) || one.Metadata[volumes.ClusterMetadata] != volume.Metadata[volumes.ClusterMetadata]
		}
		if keep || storage.Retained(volume.Metadata) || slices.ContainsFunc(of, stays) {
			with := ""
			if len(of) > 0 {
				with = fmt.Sprintf(", with snapshots: %d", len(of))
			}
			kept = append(kept, fmt.Sprintf("%s (%s, %d GiB%s)", volume.ID, volume.Name, volume.GiB, with))
			continue
		}
		for _, one := range of {
			if err := storage.DeleteSnapshot(ctx, cinder, one.ID); err != nil {
				return fmt.Errorf("delete snapshot %s of volume %s of cluster %s: %w", one.ID, volume.ID, object.Text("name"), err)
			}
		}
		if err := storage.DeleteReleased(ctx, cinder, volume.ID); err != nil {
			return fmt.Errorf("delete volume %s of cluster %s: %w", volume.ID, object.Text("name"), err)
		}
		deleted++
	}
	c.reportEnd(ctx, object, "volumes in Cinder", deleted, kept)
	return nil
}

// reportEnd reports how many volumes or shares of a destroyed cluster were deleted, and which ones stay.
func (c Claims) reportEnd(ctx context.Context, object *muranopl.Object, things string, deleted int, kept []string) {
	if deleted > 0 {
		c.of.Reports.Inform(ctx, object, "Cluster %s: %d of its %s were deleted, as keepVolumes says", object.Text("name"), deleted, things)
	}
	if len(kept) > 0 {
		c.of.Reports.Inform(ctx, object, "Cluster %s: these of its %s stay, and are yours to delete: %s", object.Text("name"), things, strings.Join(kept, ", "))
	}
}

// endShares deletes the shares of a destroyed cluster where keepVolumes allows it, except the shares of classes with the policy Retain, and names the
// shares that stay.
func (c Claims) endShares(ctx context.Context, object *muranopl.Object) error {
	shares, err := c.manila(ctx)
	if err != nil {
		return err
	}
	all, err := shares.Tagged(ctx, "", c.tag(object))
	if err != nil {
		return err
	}
	var kept []string
	deleted := 0
	for _, share := range all {
		switch {
		case task.Desired(object).KeepVolumes || storage.Retained(share.Metadata):
			if err := volumes.TakeBack(ctx, shares, share); err != nil {
				return fmt.Errorf("take back the access to share %s of cluster %s: %w", share.ID, object.Text("name"), err)
			}
			kept = append(kept, fmt.Sprintf("%s (%s, %d GiB)", share.ID, share.Name, share.GiB))
		case share.Status != openstack.ShareDeleting:
			if err := shares.Delete(ctx, share.ID); err != nil {
				return fmt.Errorf("delete share %s of cluster %s: %w", share.ID, object.Text("name"), err)
			}
			deleted++
		}
	}
	c.reportEnd(ctx, object, "shares in Manila", deleted, kept)
	return nil
}

// Leaving adds the claims in a cluster, which go with it, and its volumes in Cinder that stay.
func (c Claims) Leaving(ctx context.Context, cluster *muranopl.Object, answer *preview.Deletion) {
	name := cluster.Text("name")
	in := c.of.Previews().Observe(ctx, cluster)
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
func (c Claims) volumesOf(ctx context.Context, cluster *muranopl.Object) ([]openstack.Volume, error) {
	if !task.Desired(cluster).HasStorage(kube.Cinder) {
		return nil, nil
	}
	cinder, err := c.cinder(ctx)
	if err != nil {
		return nil, err
	}
	return cinder.Tagged(ctx, "", c.tag(cluster))
}
