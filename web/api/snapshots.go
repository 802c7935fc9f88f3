package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// SnapshotStore stores snapshots of clusters (snapshot.Archive).
type SnapshotStore interface {
	Snapshots(ctx context.Context, filter store.SnapshotFilter) ([]store.Snapshot, error)
	Snapshot(ctx context.Context, id string) (store.Snapshot, error)
	Open(ctx context.Context, id string) (io.ReadCloser, error)
	DeleteSnapshot(ctx context.Context, id string) error
}

// snapshotHandlers answer about snapshots of clusters, also of environments that were deleted.
type snapshotHandlers struct {
	orchestrator *orchestrator.Service
	kept         SnapshotStore
	clusters     Clusters
	loss         func(store.Snapshot) string
}

func (h snapshotHandlers) register(v1 *echo.Group) {
	v1.POST("/environments/:environment/clusters/:cluster/snapshots", h.create)
	v1.GET("/snapshots", h.list)
	v1.GET("/snapshots/:snapshot", h.show)
	v1.GET("/snapshots/:snapshot/content", h.download)
	v1.DELETE("/snapshots/:snapshot", h.remove)
}

// snapshotJSON is a snapshot without its keys.
type snapshotJSON struct {
	ID              string     `json:"id"`
	EnvironmentID   string     `json:"environment_id"`
	EnvironmentName string     `json:"environment_name"`
	Deleted         *time.Time `json:"environment_deleted"` // null while the environment exists
	ClusterID       string     `json:"cluster_id"`
	ClusterName     string     `json:"cluster_name"`
	Kind            string     `json:"kind"`
	Reason          string     `json:"reason"`
	Created         time.Time  `json:"created"`
	Verified        time.Time  `json:"verified"` // when it was read back and could be opened
	Revision        int64      `json:"revision"`
	Size            int64      `json:"size"`      // bytes of the snapshot
	Stored          int64      `json:"stored"`    // bytes that count for the quota
	Container       *string    `json:"container"` // address of its container of the object store; null: in the database
	Loss            string     `json:"loss"`      // the loss by a restore, for a person
}

func (h snapshotHandlers) fields(s store.Snapshot) snapshotJSON {
	fields := snapshotJSON{ID: s.ID, EnvironmentID: s.EnvironmentID, EnvironmentName: s.EnvironmentName, ClusterID: s.ClusterID, ClusterName: s.ClusterName,
		Kind: string(s.Kind), Reason: s.Reason, Created: s.Created.Time(), Verified: s.Verified.Time(), Revision: s.Revision, Size: s.Size, Stored: s.Stored}
	if s.Orphaned != 0 {
		deleted := s.Orphaned.Time()
		fields.Deleted = &deleted
	}
	if s.Container != "" {
		fields.Container = &s.Container
	}
	if h.loss != nil {
		fields.Loss = h.loss(s)
	}
	return fields
}

var noSnapshots = fault.New(fault.NotFound, "This Burano keeps no snapshots")

func (h snapshotHandlers) create(c echo.Context) error {
	var given struct {
		Reason string `json:"reason"`
	}
	environmentID, clusterID := c.Param("environment"), c.Param("cluster")
	ctx, caller := calling(c)
	if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	if c.Request().ContentLength != 0 {
		if err := decode(c, &given); err != nil {
			return err
		}
	}
	if h.kept == nil || h.clusters == nil {
		return noSnapshots
	}
	taken, err := h.clusters.TakeSnapshot(ctx, environmentID, clusterID, given.Reason)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, h.fields(taken))
}

func (h snapshotHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	if h.kept == nil {
		return noSnapshots
	}
	found, err := h.kept.Snapshots(ctx, store.SnapshotFilter{ProjectID: caller.ProjectID, EnvironmentID: c.QueryParam("environment"), ClusterID: c.QueryParam("cluster")})
	if err != nil {
		return err
	}
	list := []snapshotJSON{}
	for _, one := range found {
		list = append(list, h.fields(one))
	}
	return c.JSON(http.StatusOK, map[string]any{"snapshots": list})
}

// find returns a snapshot that the caller may see: one of their project's.
func (h snapshotHandlers) find(ctx context.Context, caller identity.Caller, id string) (store.Snapshot, error) {
	if h.kept == nil {
		return store.Snapshot{}, noSnapshots
	}
	found, err := h.kept.Snapshot(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && found.ProjectID != caller.ProjectID {
		return found, fault.New(fault.NotFound, "There is no snapshot %s", id)
	}
	return found, err
}

func (h snapshotHandlers) show(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.find(ctx, caller, c.Param("snapshot"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, h.fields(found))
}

// download streams a snapshot for etcdutl. It has all objects of Kubernetes; its Secrets are sealed, and the keys stay here.
func (h snapshotHandlers) download(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.find(ctx, caller, c.Param("snapshot"))
	if err != nil {
		return err
	}
	content, err := h.kept.Open(ctx, found.ID)
	if err != nil {
		return err
	}
	defer content.Close()
	c.Response().Header().Set(echo.HeaderContentDisposition, fmt.Sprintf("attachment; filename=%q", found.ClusterName+"-"+found.ID+".db"))
	return c.Stream(http.StatusOK, echo.MIMEOctetStream, content)
}

func (h snapshotHandlers) remove(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.find(ctx, caller, c.Param("snapshot"))
	if err != nil {
		return err
	}
	if err := h.kept.DeleteSnapshot(ctx, found.ID); err != nil {
		return err
	}
	return empty(c)
}
