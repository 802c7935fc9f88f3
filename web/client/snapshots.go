package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Snapshot is the state of a cluster at one moment: its objects of Kubernetes.
type Snapshot struct {
	ID              string     `json:"id" yaml:"id"`
	EnvironmentID   string     `json:"environment_id" yaml:"environment_id"`
	EnvironmentName string     `json:"environment_name" yaml:"environment_name"`
	Deleted         *time.Time `json:"environment_deleted" yaml:"environment_deleted"` // nil while it is there
	ClusterID       string     `json:"cluster_id" yaml:"cluster_id"`
	ClusterName     string     `json:"cluster_name" yaml:"cluster_name"`
	Kind            string     `json:"kind" yaml:"kind"` // requested, scheduled, change
	Reason          string     `json:"reason" yaml:"reason"`
	Created         time.Time  `json:"created" yaml:"created"`
	Verified        time.Time  `json:"verified" yaml:"verified"`   // when it was read back and could be opened
	Revision        int64      `json:"revision" yaml:"revision"`   // of etcd
	Size            int64      `json:"size" yaml:"size"`           // bytes of the snapshot
	Stored          int64      `json:"stored" yaml:"stored"`       // bytes that it takes of the quota
	Container       *string    `json:"container" yaml:"container"` // address of the object store's container that it is in; nil: in the database
	Loss            string     `json:"loss" yaml:"loss"`           // the loss by a restore, for people
}

const snapshotsPath = "/burano/v1/snapshots"

// Snapshots are the calls about snapshots of clusters.
type Snapshots struct{ client *Client }

// Snapshots returns the calls about snapshots of clusters.
func (c *Client) Snapshots() Snapshots { return Snapshots{c} }

// Take takes a snapshot of a cluster, by the ids of its environment and of its object.
func (c Snapshots) Take(ctx context.Context, environment, cluster, reason string) (Snapshot, error) {
	var taken Snapshot
	return taken, c.client.Call(ctx, http.MethodPost, clusterPath(environment, cluster)+"/snapshots", map[string]string{"reason": reason}, &taken)
}

// List lists the snapshots of the project's clusters, the newest first, or of one environment or cluster ("" for all).
func (c Snapshots) List(ctx context.Context, environment, cluster string) ([]Snapshot, error) {
	var list struct {
		Snapshots []Snapshot `json:"snapshots"`
	}
	query := url.Values{"environment": {environment}, "cluster": {cluster}}
	return list.Snapshots, c.client.Call(ctx, http.MethodGet, snapshotsPath+"?"+query.Encode(), nil, &list)
}

// Get shows one.
func (c Snapshots) Get(ctx context.Context, id string) (Snapshot, error) {
	var found Snapshot
	return found, c.client.Call(ctx, http.MethodGet, snapshotsPath+"/"+url.PathEscape(id), nil, &found)
}

// Download writes a snapshot as etcdutl takes it.
func (c Snapshots) Download(ctx context.Context, id string, to io.Writer) error {
	content, err := c.client.open(ctx, c.client.http, http.MethodGet, snapshotsPath+"/"+url.PathEscape(id)+"/content", nil)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(to, content)
	return err
}

// Delete deletes one.
func (c Snapshots) Delete(ctx context.Context, id string) error {
	return c.client.Call(ctx, http.MethodDelete, snapshotsPath+"/"+url.PathEscape(id), nil, nil)
}
