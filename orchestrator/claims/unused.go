package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
)

const (
	// argumentVolumes names claims, and ids of volumes, snapshots and shares.
	argumentVolumes = "names"
)

// unusedVolume is a claim that no application uses, or something in the cloud that was made for a cluster and that it does not know.
type unusedVolume struct {
	kind   string // claim, volume, snapshot or share
	name   string // of a claim; of the others their ids
	called string // what the cloud calls it; "" for a claim
	size   string
	made   time.Time
	delete func(ctx context.Context) error
}

// unusedOf lists the unused claims and volumes of a cluster. Objects younger than storage.LeftAge may be about to be used.
func (c Claims) unusedOf(ctx context.Context, object *muranopl.Object, api *rest.Config) (list []unusedVolume, err error) {
	claims, err := kube.UnusedClaims(ctx, api)
	if err != nil {
		return nil, err
	}
	for _, claim := range claims {
		size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		list = append(list, unusedVolume{kind: "claim", name: storage.PlaceOf(claim), size: size.String(), made: claim.CreationTimestamp.Time,
			delete: func(ctx context.Context) error { return kube.DeleteUnusedClaim(ctx, api, claim) }})
	}
	tag := c.tag(object)
	cinder, err := c.uses(ctx, object, kube.Cinder)
	if err != nil {
		return nil, err
	}
	manila, err := c.uses(ctx, object, kube.Manila)
	if err != nil {
		return nil, err
	}
	if cinder {
		blocks, err := c.cinder(ctx)
		if err != nil {
			return nil, err
		}
		found, err := storage.TaggedVolumes(ctx, blocks, tag)
		if err == nil {
			found, err = found.WithoutKnown(ctx, api)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, unusedInCinder(blocks, found)...)
	}
	if !manila {
		return list, nil
	}
	shares, err := c.manila(ctx)
	if err != nil {
		return nil, err
	}
	all, err := shares.Tagged(ctx, "", tag)
	if err == nil {
		all, err = storage.WithoutKnownShares(ctx, api, all)
	}
	for _, one := range all {
		list = append(list, unusedVolume{kind: "share", name: one.ID, called: one.Name, size: fmt.Sprintf("%dGi", one.GiB), made: one.Made,
			delete: func(ctx context.Context) error { return shares.Delete(ctx, one.ID) }})
	}
	return list, err
}

func unusedInCinder(cinder *openstack.BlockStorage, found storage.Left) (list []unusedVolume) {
	for _, one := range found.Snapshots { // Cinder deletes no volume that has some
		list = append(list, unusedVolume{kind: "snapshot", name: one.ID, called: one.Name, size: fmt.Sprintf("%dGi", one.GiB), made: one.Made,
			delete: func(ctx context.Context) error { return storage.DeleteSnapshot(ctx, cinder, one.ID) }})
	}
	for _, one := range found.Volumes {
		list = append(list, unusedVolume{kind: "volume", name: one.ID, called: one.Name, size: fmt.Sprintf("%dGi", one.GiB), made: one.Made,
			delete: func(ctx context.Context) error {
				if len(one.Servers) > 0 {
					return fault.New(fault.Conflict, "server %s has it", strings.Join(one.Servers, ", "))
				}
				return storage.DeleteReleased(ctx, cinder, one.ID)
			}})
	}
	return list
}

// withUnused gives work the unused objects of a cluster.
func (c Claims) withUnused(ctx context.Context, object *muranopl.Object, work func(list []unusedVolume) error) error {
	return c.withAPI(ctx, object, func(api *rest.Config) error {
		list, err := c.unusedOf(ctx, object, api)
		if err != nil {
			return err
		}
		return work(list)
	})
}

// listUnusedVolumes is the action that returns claims that no application uses, and volumes, snapshots and shares in the cloud that the cluster does not know.
func (c Claims) listUnusedVolumes(ctx context.Context, call muranopl.Call) (any, error) {
	shown := []any{}
	err := c.withUnused(ctx, call.Object, func(list []unusedVolume) error {
		for _, one := range list {
			shown = append(shown, map[string]any{"kind": one.kind, "name": one.name, "called": one.called, "size": one.size, "made": one.made.UTC().Format(time.RFC3339)})
		}
		return nil
	})
	return shown, err
}

// deleteUnusedVolumes is the action that deletes the named volumes. A used volume is never deleted.
func (c Claims) deleteUnusedVolumes(ctx context.Context, call muranopl.Call) (any, error) {
	named, _ := call.Args[argumentVolumes].([]any)
	return nil, c.withUnused(ctx, call.Object, func(list []unusedVolume) error {
		var chosen []unusedVolume
		for _, one := range named {
			i := slices.IndexFunc(list, func(unused unusedVolume) bool { return unused.name == one })
			if i < 0 {
				return fault.New(fault.Invalid, "Nothing unused in cluster %s is called %v: it is used, younger than an hour, or not there. Nothing was deleted", call.Object.Text("name"), one)
			}
			chosen = append(chosen, list[i])
		}
		slices.SortStableFunc(chosen, func(a, b unusedVolume) int { return slices.Index(order, a.kind) - slices.Index(order, b.kind) })
		var failures []error
		for _, one := range chosen {
			if err := one.delete(ctx); err != nil {
				failures = append(failures, fmt.Errorf("delete %s %s: %w", one.kind, one.name, err))
				continue
			}
			c.of.Reports.Inform(ctx, call.Object, "Cluster %s: %s %s (%s, made %s) is deleted", call.Object.Text("name"), one.kind, one.name, one.size, one.made.UTC().Format("2 January 2006"))
		}
		return errors.Join(failures...)
	})
}

// order is in which unused things are deleted: Cinder deletes no volume that has snapshots.
var order = []string{"claim", "share", "snapshot", "volume"}
