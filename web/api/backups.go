package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// backupHandlers answer about backups of environments, also of deleted ones.
type backupHandlers struct {
	backups *orchestrator.Backups
	limits  Limits
	logger  *slog.Logger
}

func (h backupHandlers) register(v1 *echo.Group) {
	kept := func(handler echo.HandlerFunc) echo.HandlerFunc {
		if h.backups == nil {
			return func(echo.Context) error { return fault.New(fault.NotFound, "This Burano keeps no backups") }
		}
		return handler
	}
	v1.POST("/environments/:environment/backups", kept(h.create))
	v1.GET("/environments/:environment/backups/preview", kept(h.preview))
	v1.GET("/environments/:environment/backups/schedule", kept(h.schedule))
	v1.PUT("/environments/:environment/backups/schedule", kept(h.setSchedule))
	v1.DELETE("/environments/:environment/backups/schedule", kept(h.dropSchedule))
	v1.GET("/environments/:environment/backups/drills", kept(h.drills))
	v1.POST("/backups/:backup/drill", kept(h.drill))
	v1.GET("/backups", kept(h.list))
	v1.GET("/backups/:backup", kept(h.show))
	v1.DELETE("/backups/:backup", kept(h.remove))
	v1.POST("/backups/:backup/restore", kept(h.restore))
	v1.POST("/backups/:backup/file", kept(h.download))
	v1.POST("/backups/file", kept(h.upload))
}

// backupJSON is a backup without the model and its secrets.
type backupJSON struct {
	ID              string              `json:"id"`
	EnvironmentID   string              `json:"environment_id"`
	EnvironmentName string              `json:"environment_name"`
	Kind            string              `json:"kind"`
	Reason          string              `json:"reason"`
	Created         time.Time           `json:"created"`
	Whole           time.Time           `json:"whole"` // when all of it was stored and read back
	Held            float64             `json:"held"`  // for how many seconds pods were frozen
	Bytes           int64               `json:"bytes"` // of the files of claims
	Clusters        []backupClusterJSON `json:"clusters"`
	Missing         map[string]string   `json:"missing"` // absent claims, with the reasons
	Warnings        []string            `json:"warnings"`
}

type backupClusterJSON struct {
	ObjectID string            `json:"object_id"`
	Name     string            `json:"name"`
	Snapshot string            `json:"snapshot"` // of the state of Kubernetes
	Claims   []backupClaimJSON `json:"claims"`
}

type backupClaimJSON struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Class     string `json:"class"`
	Size      string `json:"size"`
	Bytes     int64  `json:"bytes"`
	Checksum  string `json:"checksum"`
}

func backupFields(b store.Backup) backupJSON {
	fields := backupJSON{ID: b.ID, EnvironmentID: b.EnvironmentID, EnvironmentName: b.EnvironmentName, Kind: string(b.Kind), Reason: b.Reason, Created: b.Created.Time(), Whole: b.Whole.Time(),
		Held: float64(b.Held) / 1000, Clusters: []backupClusterJSON{}, Missing: b.Parts.Missing, Warnings: append([]string{}, b.Parts.Warnings...)}
	if fields.Missing == nil {
		fields.Missing = map[string]string{}
	}
	for _, cluster := range b.Parts.Clusters {
		one := backupClusterJSON{ObjectID: cluster.ObjectID, Name: cluster.Name, Snapshot: cluster.Snapshot, Claims: []backupClaimJSON{}}
		for _, claim := range cluster.Claims {
			fields.Bytes += claim.Bytes
			one.Claims = append(one.Claims, backupClaimJSON{Namespace: claim.Namespace, Name: claim.Name, Class: claim.Class, Size: claim.Size, Bytes: claim.Bytes, Checksum: claim.Checksum})
		}
		fields.Clusters = append(fields.Clusters, one)
	}
	return fields
}

func (h backupHandlers) create(c echo.Context) error {
	var given struct {
		Reason     string `json:"reason"`
		Incomplete bool   `json:"incomplete"`
		Passing    bool   `json:"passing"`
	}
	ctx, caller := calling(c)
	if err := h.backups.Reach(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	if c.Request().ContentLength != 0 {
		if err := decode(c, &given); err != nil {
			return err
		}
	}
	task, err := h.backups.Make(ctx, caller, c.Param("environment"), orchestrator.Order(given))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"task_id": task})
}

// preview answers with the claims that a backup would have now.
func (h backupHandlers) preview(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.backups.Preview(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	type previewJSON struct {
		backupClusterJSON
		Missing map[string]string `json:"missing"`
	}
	list := []previewJSON{}
	for _, one := range found {
		shown := previewJSON{backupClusterJSON{ObjectID: one.Cluster.ID, Name: one.Cluster.Name, Claims: []backupClaimJSON{}}, one.Missing}
		for _, claim := range one.Claims {
			shown.Claims = append(shown.Claims, backupClaimJSON{Namespace: claim.Namespace, Name: claim.Name, Class: claim.Class, Size: claim.Size})
		}
		list = append(list, shown)
	}
	return c.JSON(http.StatusOK, map[string]any{"clusters": list})
}

func (h backupHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.backups.List(ctx, caller, c.QueryParam("environment"))
	if err != nil {
		return err
	}
	list := []backupJSON{}
	for _, one := range found {
		list = append(list, backupFields(one))
	}
	return c.JSON(http.StatusOK, map[string]any{"backups": list})
}

func (h backupHandlers) show(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.backups.Show(ctx, caller, c.Param("backup"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, backupFields(found))
}

func (h backupHandlers) remove(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.backups.Delete(ctx, caller, c.Param("backup")); err != nil {
		return err
	}
	return empty(c)
}

func (h backupHandlers) restore(c echo.Context) error {
	var given struct {
		Name   string `json:"name"`
		Region string `json:"region"`
	}
	ctx, caller := calling(c)
	if _, err := h.backups.Show(ctx, caller, c.Param("backup")); err != nil {
		return err
	}
	if err := decode(c, &given); err != nil {
		return err
	}
	made, err := h.backups.Restore(ctx, caller, c.Param("backup"), orchestrator.Restoration{Name: given.Name, Region: given.Region})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"id": made.ID, "name": made.Name})
}

// download answers with a backup as a file, sealed for a recipient. If the file cannot be written to its end, the
// connection is broken off.
func (h backupHandlers) download(c echo.Context) error {
	var given struct {
		Recipient string `json:"recipient"`
	}
	ctx, caller := calling(c)
	if _, err := h.backups.Show(ctx, caller, c.Param("backup")); err != nil {
		return err
	}
	if err := decode(c, &given); err != nil {
		return err
	}
	write, err := h.backups.Sealed(ctx, caller, c.Param("backup"), given.Recipient)
	if err != nil {
		return err
	}
	response := c.Response()
	response.Header().Set(echo.HeaderContentType, echo.MIMEOctetStream)
	response.Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+c.Param("backup")+`.backup"`)
	response.Header().Set(echo.HeaderCacheControl, "no-store")
	buffered := bufio.NewWriterSize(response, 64<<10) // an error that comes early has its status
	if err = write(ctx, buffered); err == nil {
		err = buffered.Flush()
	}
	if err != nil && response.Committed {
		h.logger.WarnContext(ctx, "the file of a backup broke off", "backup", c.Param("backup"), "error", err)
		panic(http.ErrAbortHandler) // a broken-off answer must not look whole
	}
	return err
}

// upload stores the backup of a file, which the client has opened with its key.
func (h backupHandlers) upload(c echo.Context) error {
	ctx, caller := calling(c)
	made, err := h.backups.Upload(ctx, caller, h.paced(c), c.QueryParam("passing") == "true", func(head []byte) error {
		count, err := checkJSON(head, h.limits.Values)
		if err == nil {
			err = holds(c, int64(len(head))+int64(count)*valueBytes)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, backupFields(made))
}

// paced is the body of an upload. Its reader waits for the next bytes as long as for a client that does not read its answer, and not longer than the request's context.
func (h backupHandlers) paced(c echo.Context) io.Reader {
	controller := http.NewResponseController(c.Response())
	return reader(func(into []byte) (int, error) {
		ctx := c.Request().Context()
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		// Tests' recorders know no deadline.
		if err := controller.SetReadDeadline(time.Now().Add(h.limits.Unread)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return 0, err
		}
		return c.Request().Body.Read(into)
	})
}

type reader func(into []byte) (int, error)

func (r reader) Read(into []byte) (int, error) { return r(into) }

// scheduleJSON is the schedule of an environment's backups.
type scheduleJSON struct {
	Hours      int64     `json:"hours"`
	Kept       int64     `json:"kept"`
	Incomplete bool      `json:"incomplete"`
	DrillHours int64     `json:"drill_hours"` // 0: none
	UserName   string    `json:"user_name"`
	Updated    time.Time `json:"updated"`
}

func scheduleFields(s store.BackupSchedule) scheduleJSON {
	return scheduleJSON{Hours: s.Hours, Kept: s.Kept, Incomplete: s.Incomplete, DrillHours: s.DrillHours, UserName: s.UserName, Updated: s.Updated.Time()}
}

func (h backupHandlers) schedule(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.backups.Schedule(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, scheduleFields(found))
}

func (h backupHandlers) setSchedule(c echo.Context) error {
	var given struct {
		Hours      int64 `json:"hours"`
		Kept       int64 `json:"kept"`
		Incomplete bool  `json:"incomplete"`
		DrillHours int64 `json:"drill_hours"`
	}
	ctx, caller := calling(c)
	if err := h.backups.Reach(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	if err := decode(c, &given); err != nil {
		return err
	}
	set, err := h.backups.SetSchedule(ctx, caller, store.BackupSchedule{EnvironmentID: c.Param("environment"), Hours: given.Hours, Kept: given.Kept, Incomplete: given.Incomplete, DrillHours: given.DrillHours})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, scheduleFields(set))
}

func (h backupHandlers) dropSchedule(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.backups.DropSchedule(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	return empty(c)
}

// drillJSON is a test whether a backup can be restored.
type drillJSON struct {
	ID          string     `json:"id"`
	BackupID    string     `json:"backup_id"`
	Environment string     `json:"environment"` // name of the second environment
	UserName    string     `json:"user_name"`
	State       string     `json:"state"` // restoring, removing, answered, failed
	Failure     string     `json:"failure"`
	Began       time.Time  `json:"began"`
	Answered    *time.Time `json:"answered"` // null: it did not, or not yet
	Ended       *time.Time `json:"ended"`    // when the second environment was gone; null before
}

func drillFields(d store.BackupDrill) drillJSON {
	fields := drillJSON{ID: d.ID, BackupID: d.BackupID, Environment: d.CloneName, UserName: d.UserName, Failure: d.Failure, Began: d.Began.Time(), State: "restoring"}
	if d.Answered != 0 {
		at := d.Answered.Time()
		fields.Answered = &at
	}
	if d.Ended != 0 {
		at := d.Ended.Time()
		fields.Ended = &at
	}
	switch {
	case d.Ended == 0 && (d.Answered != 0 || d.Failure != ""):
		fields.State = "removing"
	case d.Failure != "":
		fields.State = "failed"
	case d.Ended != 0:
		fields.State = "answered"
	}
	return fields
}

func (h backupHandlers) drill(c echo.Context) error {
	ctx, caller := calling(c)
	begun, err := h.backups.Drill(ctx, caller, c.Param("backup"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, drillFields(begun))
}

func (h backupHandlers) drills(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.backups.Drills(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	list := []drillJSON{}
	for _, one := range found {
		list = append(list, drillFields(one))
	}
	return c.JSON(http.StatusOK, map[string]any{"drills": list})
}
