// Package claims has the actions on the claims of clusters and on their volumes in the cloud: backups, unused ones, and the ones that destroyed clusters leave.
package claims

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// Claims are the claims of a task's clusters, with their volumes in Cinder and shares in Manila.
type Claims struct{ of *clusters.Clusters }

// New returns the claims of clusters.
func New(of *clusters.Clusters) Claims { return Claims{of} }

// Actions are the actions of clusters on claims and volumes.
func (c Claims) Actions() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		known.BackUpClaims: c.backUpClaims, "listClaimBackups": c.listClaimBackups, "restoreClaim": c.restoreClaim, "deleteClaimBackup": c.deleteClaimBackup,
		"listUnusedVolumes": c.listUnusedVolumes, "deleteUnusedVolumes": c.deleteUnusedVolumes,
	}
}

// tag marks the volumes and shares of a cluster in the cloud.
func (c Claims) tag(object *muranopl.Object) map[string]string {
	return map[string]string{volumes.ClusterMetadata: c.clusterID(object)}
}

// clusterID is the id of a cluster in the metadata of volumes and backups.
func (c Claims) clusterID(object *muranopl.Object) string {
	return volumes.ClusterID(c.of.Runtime.EnvironmentID(), object.ID())
}

// uses reports whether a cluster has, or had, volumes of a back-end.
func (c Claims) uses(ctx context.Context, object *muranopl.Object, backend kube.Storage) (bool, error) {
	return nodes.HasStorage(ctx, known.Vault{Runtime: c.of.Runtime, Cluster: object.ID()}, backend)
}

// cinder is the block storage of the project.
func (c Claims) cinder(ctx context.Context) (*openstack.BlockStorage, error) {
	project, err := c.of.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	return project.BlockStorage()
}

// manila are the shared file systems of the project.
func (c Claims) manila(ctx context.Context) (*openstack.SharedFileSystems, error) {
	project, err := c.of.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	return project.SharedFileSystems()
}

// withAPI gives work the API server of a cluster, as it was deployed last.
func (c Claims) withAPI(ctx context.Context, object *muranopl.Object, work func(api *rest.Config) error) error {
	live, _, err := c.of.Former(ctx, object)
	if err != nil {
		return err
	}
	if live == nil {
		return fault.New(fault.Invalid, "Cluster %s was never up: deploy it first", object.Text("name"))
	}
	defer live.Close()
	api, err := live.Kubernetes(ctx)
	if err != nil {
		return err
	}
	return work(api)
}

// withCinder gives work the project's volumes too, if the cluster has claims with volumes in Cinder, or may have them.
func (c Claims) withCinder(ctx context.Context, object *muranopl.Object, work func(cinder *openstack.BlockStorage, api *rest.Config) error) error {
	has, err := c.uses(ctx, object, kube.Cinder)
	if err != nil {
		return err
	}
	if !has {
		return fault.New(fault.Invalid, "Cluster %s has no volumes in Cinder, of which backups are made: none of its storageClasses has the back-end cinder", object.Text("name"))
	}
	cinder, err := c.cinder(ctx)
	if err != nil {
		return err
	}
	return c.withAPI(ctx, object, func(api *rest.Config) error { return work(cinder, api) })
}
