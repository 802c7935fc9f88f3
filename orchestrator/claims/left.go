package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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
	if task.Desired(object).KeepVolumes {
		if err := c.noteReleased(ctx, object); err != nil {
			return err
		}
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

// releasedPatience is how long a cluster that is about to be destroyed may take to list its volumes.
const releasedPatience = 20 * time.Second

// released are the volumes, or shares, whose claims were deleted. The cluster's own controllers may have no time left to delete them.
func (c Claims) released(ctx context.Context, object *muranopl.Object, of kube.Storage) (handles []string, err error) {
	limited, cancel := context.WithTimeout(ctx, releasedPatience)
	defer cancel()
	err = c.withAPI(limited, object, func(api *rest.Config) error {
		handles, err = kube.Released(limited, api, of)
		return err
	})
	return handles, err
}

// noteReleased marks the volumes and shares of deleted claims in the cloud, so that they end with the cluster although it keeps the others. A cluster that does
// not answer keeps all.
func (c Claims) noteReleased(ctx context.Context, object *muranopl.Object) error {
	for _, backend := range []kube.Storage{kube.Cinder, kube.Manila} {
		has, err := c.uses(ctx, object, backend)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		handles, err := c.released(ctx, object, backend)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			c.of.Reports.Warn(ctx, object, fmt.Sprintf("Cluster %s does not list its volumes, so that volumes of claims that were deleted just now stay, too", object.Text("name")), err.Error())
			return nil
		}
		if len(handles) == 0 {
			continue
		}
		note, err := c.noter(ctx, object, backend)
		if err != nil {
			return err
		}
		for _, handle := range handles {
			if err := note(handle); err != nil {
				return err
			}
		}
	}
	return nil
}

// noter returns the function that marks a volume or share of a cluster as released; it passes over others.
func (c Claims) noter(ctx context.Context, object *muranopl.Object, of kube.Storage) (func(id string) error, error) {
	own, mark := map[string]bool{}, map[string]string{volumes.ReleasedMetadata: "true"}
	var note func(ctx context.Context, id string, metadata map[string]string) error
	if of == kube.Manila {
		shares, err := c.manila(ctx)
		if err != nil {
			return nil, err
		}
		all, err := shares.Tagged(ctx, "", c.tag(object))
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			own[one.ID] = true
		}
		note = shares.Note
	} else {
		cinder, err := c.cinder(ctx)
		if err != nil {
			return nil, err
		}
		all, err := cinder.Tagged(ctx, "", c.tag(object))
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			own[one.ID] = true
		}
		note = cinder.Note
	}
	return func(id string) error {
		if !own[id] {
			return nil
		}
		return note(ctx, id, mark)
	}, nil
}

// stays reports whether a volume or share with this metadata is kept.
func stays(keep bool, metadata map[string]string) bool {
	return storage.Retained(metadata) || keep && metadata[volumes.ReleasedMetadata] == ""
}

// endVolumes deletes the volumes of a destroyed cluster, with their snapshots, if keepVolumes allows it, or if their claims were deleted before, except the ones of classes that keep theirs. It
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
		holds := func(one openstack.Snapshot) bool {
			return storage.Retained(one.Metadata) || one.Metadata[volumes.ClusterMetadata] != volume.Metadata[volumes.ClusterMetadata]
		}
		if stays(keep, volume.Metadata) || slices.ContainsFunc(of, holds) {
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
		c.of.Reports.Inform(ctx, object, "Cluster %s: %d of its %s were deleted, as keepVolumes says, or with their claims", object.Text("name"), deleted, things)
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
		case stays(task.Desired(object).KeepVolumes, share.Metadata):
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
		var released []string
		if len(stay) > 0 && in.Why == nil {
			released, _ = c.released(ctx, cluster, kube.Cinder) // the deletion reports why not
		}
		for _, one := range stay {
			if slices.Contains(released, one.ID) {
				answer.Goes = append(answer.Goes, fmt.Sprintf("volume %s (%s, %d GiB) of cluster %s in Cinder, whose claim was deleted", one.ID, one.Name, one.GiB, name))
				continue
			}
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
