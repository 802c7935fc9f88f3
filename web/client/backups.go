package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/burano/burano/internal/door"
)

// Backup is a copy of an environment at one moment.
type Backup struct {
	ID              string            `json:"id" yaml:"id"`
	EnvironmentID   string            `json:"environment_id" yaml:"environment_id"`
	EnvironmentName string            `json:"environment_name" yaml:"environment_name"`
	Kind            string            `json:"kind" yaml:"kind"` // requested, scheduled
	Reason          string            `json:"reason" yaml:"reason"`
	Created         time.Time         `json:"created" yaml:"created"`
	Whole           time.Time         `json:"whole" yaml:"whole"` // when all of it was kept and read back
	Held            float64           `json:"held" yaml:"held"`   // for how many seconds pods were frozen
	Bytes           int64             `json:"bytes" yaml:"bytes"` // of the files of claims
	Clusters        []BackupCluster   `json:"clusters" yaml:"clusters"`
	Missing         map[string]string `json:"missing" yaml:"missing"` // claims that it does not have, with the reasons
	Warnings        []string          `json:"warnings" yaml:"warnings"`
}

// BackupCluster is a cluster in a backup.
type BackupCluster struct {
	ObjectID string        `json:"object_id" yaml:"object_id"`
	Name     string        `json:"name" yaml:"name"`
	Snapshot string        `json:"snapshot" yaml:"snapshot"` // of the state of Kubernetes
	Claims   []BackupClaim `json:"claims" yaml:"claims"`
}

// BackupClaim is a claim in a backup.
type BackupClaim struct {
	Namespace string `json:"namespace" yaml:"namespace"`
	Name      string `json:"name" yaml:"name"`
	Class     string `json:"class" yaml:"class"`
	Size      string `json:"size" yaml:"size"`
	Bytes     int64  `json:"bytes" yaml:"bytes"`
	Checksum  string `json:"checksum" yaml:"checksum"`
}

// Backups are the calls about backups of environments.
type Backups struct{ client *Client }

// Backups returns the calls about backups.
func (c *Client) Backups() Backups { return Backups{c} }

const backupsPath = "/burano/v1/backups"

// BackupOptions are a backup that is asked for.
type BackupOptions struct {
	Reason     string `json:"reason"`
	Incomplete bool   `json:"incomplete"` // allows claims that cannot be backed up, and applications that do not take part
	Passing    bool   `json:"passing"`    // it is of a clone, and goes when that has its files
}

// Preview lists the claims that a backup of an environment would have now, by cluster.
func (b Backups) Preview(ctx context.Context, environment string) ([]BackupPreview, error) {
	var list struct {
		Clusters []BackupPreview `json:"clusters"`
	}
	return list.Clusters, b.client.Call(ctx, http.MethodGet, "/burano/v1/environments/"+url.PathEscape(environment)+"/backups/preview", nil, &list)
}

// BackupPreview is a cluster in the preview of a backup.
type BackupPreview struct {
	BackupCluster
	Missing map[string]string `json:"missing" yaml:"missing"` // claims that it cannot have, with the reasons
}

// Make has a backup of an environment made, and returns the id of the task.
func (b Backups) Make(ctx context.Context, environment string, options BackupOptions) (task string, err error) {
	var made struct {
		Task string `json:"task_id"`
	}
	err = b.client.Call(ctx, http.MethodPost, "/burano/v1/environments/"+url.PathEscape(environment)+"/backups", options, &made)
	return made.Task, err
}

// List lists the backups of the project's environments, the newest first, or those of one ("" for all).
func (b Backups) List(ctx context.Context, environment string) ([]Backup, error) {
	var list struct {
		Backups []Backup `json:"backups"`
	}
	return list.Backups, b.client.Call(ctx, http.MethodGet, backupsPath+"?"+url.Values{"environment": {environment}}.Encode(), nil, &list)
}

// Show shows one.
func (b Backups) Show(ctx context.Context, id string) (Backup, error) {
	var found Backup
	return found, b.client.Call(ctx, http.MethodGet, backupsPath+"/"+url.PathEscape(id), nil, &found)
}

// Delete deletes one with all that it has.
func (b Backups) Delete(ctx context.Context, id string) error {
	return b.client.Call(ctx, http.MethodDelete, backupsPath+"/"+url.PathEscape(id), nil, nil)
}

// Restore makes an environment of that name of a backup, has it deployed, and returns its id. region is that of the cloud, "" for the backup's.
func (b Backups) Restore(ctx context.Context, id, name, region string) (environment string, err error) {
	var made struct {
		ID string `json:"id"`
	}
	err = b.client.Call(ctx, http.MethodPost, backupsPath+"/"+url.PathEscape(id)+"/restore", map[string]string{"name": name, "region": region}, &made)
	return made.ID, err
}

// Download writes a backup as a file that is sealed for the recipient, a public key of age.
func (b Backups) Download(ctx context.Context, id, recipient string, to io.Writer) error {
	order, err := json.Marshal(map[string]string{"recipient": recipient})
	if err != nil {
		return err
	}
	path := backupsPath + "/" + url.PathEscape(id) + "/file"
	content, err := b.client.open(ctx, untimed(b.client), http.MethodPost, path, bytes.NewReader(order), "Content-Type", "application/json")
	if err != nil {
		return err
	}
	defer content.Close()
	if _, err := io.Copy(to, content); err != nil {
		return fmt.Errorf("read the file of backup %s: %w", id, err)
	}
	return nil
}

// Upload stores a backup in the project. from is its file, opened with its key. passing is as in BackupOptions.
func (b Backups) Upload(ctx context.Context, from io.Reader, passing bool) (made Backup, err error) {
	path := backupsPath + "/file"
	if passing {
		path += "?passing=true"
	}
	content, err := b.client.open(ctx, untimed(b.client), http.MethodPost, path, from, "Content-Type", "application/octet-stream")
	if err != nil {
		return made, err
	}
	defer content.Close()
	if err := json.NewDecoder(door.Reader(content, mostRefusal, "the answer")).Decode(&made); err != nil {
		return made, fmt.Errorf("store the backup: the answer is not what was expected: %w", err)
	}
	return made, nil
}

// BackupSchedule is how often backups of an environment are made by themselves.
type BackupSchedule struct {
	Hours      int64     `json:"hours" yaml:"hours"` // between two backups
	Kept       int64     `json:"kept" yaml:"kept"`   // how many of them stay
	Incomplete bool      `json:"incomplete" yaml:"incomplete"`
	DrillHours int64     `json:"drill_hours" yaml:"drill_hours"` // between two drills, 0 for none
	UserName   string    `json:"user_name" yaml:"user_name"`     // who has set it
	Updated    time.Time `json:"updated" yaml:"updated"`
}

func schedulePath(environment string) string {
	return "/burano/v1/environments/" + url.PathEscape(environment) + "/backups/schedule"
}

// Schedule shows the schedule of an environment; the status is 404 when it has none.
func (b Backups) Schedule(ctx context.Context, environment string) (BackupSchedule, error) {
	var found BackupSchedule
	return found, b.client.Call(ctx, http.MethodGet, schedulePath(environment), nil, &found)
}

// SetSchedule has backups of an environment be made by themselves.
func (b Backups) SetSchedule(ctx context.Context, environment string, wanted BackupSchedule) (BackupSchedule, error) {
	var set BackupSchedule
	return set, b.client.Call(ctx, http.MethodPut, schedulePath(environment), map[string]any{"hours": wanted.Hours, "kept": wanted.Kept, "incomplete": wanted.Incomplete, "drill_hours": wanted.DrillHours}, &set)
}

// DropSchedule has backups of an environment be made when they are asked for only.
func (b Backups) DropSchedule(ctx context.Context, environment string) error {
	return b.client.Call(ctx, http.MethodDelete, schedulePath(environment), nil, nil)
}

// BackupDrill is a try whether a backup can be restored.
type BackupDrill struct {
	ID          string     `json:"id" yaml:"id"`
	BackupID    string     `json:"backup_id" yaml:"backup_id"`
	Environment string     `json:"environment" yaml:"environment"` // name of the one beside
	UserName    string     `json:"user_name" yaml:"user_name"`
	State       string     `json:"state" yaml:"state"` // restoring, removing, answered, failed
	Failure     string     `json:"failure" yaml:"failure"`
	Began       time.Time  `json:"began" yaml:"began"`
	Answered    *time.Time `json:"answered" yaml:"answered"` // nil: it did not, or not yet
	Ended       *time.Time `json:"ended" yaml:"ended"`       // when the environment beside was gone; nil before
}

// Drill begins to try whether a backup can be restored.
func (b Backups) Drill(ctx context.Context, id string) (BackupDrill, error) {
	var begun BackupDrill
	return begun, b.client.Call(ctx, http.MethodPost, backupsPath+"/"+url.PathEscape(id)+"/drill", nil, &begun)
}

// Drills lists the last drills of an environment's backups, the newest first.
func (b Backups) Drills(ctx context.Context, environment string) ([]BackupDrill, error) {
	var list struct {
		Drills []BackupDrill `json:"drills"`
	}
	return list.Drills, b.client.Call(ctx, http.MethodGet, "/burano/v1/environments/"+url.PathEscape(environment)+"/backups/drills", nil, &list)
}
