package store

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// RequestStatistics is one API server's last report of its requests.
type RequestStatistics struct {
	ID          int64
	Host        string
	Requests    int64
	Errors      int64
	Seconds     float64  // on the average of all requests
	Projects    Document // requests by project
	RequestRate float64  // a second, since the row was written before
	ErrorRate   float64
	CPUs        int64 `gorm:"column:cpus"`
	CPUPercent  float64
	Created     Time
	Updated     Time
}

// TableName is the table of RequestStatistics (gorm).
func (RequestStatistics) TableName() string { return "request_statistics" }

// Statistics counts requests, and applications and servers.
type Statistics struct{ *handle }

// Statistics are the counts of requests, and of applications and servers.
func (s *Store) Statistics() Statistics { return Statistics{s.handle} }

// SaveRequests writes the row of the statistics' host, in the place of the one before; its id and times are set here.
func (s Statistics) SaveRequests(ctx context.Context, row RequestStatistics) error {
	return s.transaction(ctx, "write statistics of requests", func(tx *gorm.DB) error {
		row.Updated = s.clock()
		var former RequestStatistics
		err := locked(tx).Where("host = ?", row.Host).Take(&former).Error
		switch {
		case err == nil:
			row.ID, row.Created = former.ID, former.Created
			return tx.Select("*").Where("id = ?", row.ID).Updates(&row).Error
		case err != gorm.ErrRecordNotFound:
			return err
		}
		var last int64
		if err := tx.Model(&RequestStatistics{}).Select("COALESCE(MAX(id), 0)").Scan(&last).Error; err != nil {
			return err
		}
		row.ID, row.Created = last+1, row.Updated
		return tx.Create(&row).Error
	})
}

// Requests lists the API servers' last reports, by their ids.
func (s Statistics) Requests(ctx context.Context) ([]RequestStatistics, error) {
	return readAll[RequestStatistics](s.reading(ctx).Order("id"), "list statistics of requests")
}

// The types of counted objects.
const (
	ApplicationInstance = 100
	ServerInstance      = 200
)

// InstanceStatistics is since when an application or a server of an environment is there, and until when it was.
type InstanceStatistics struct {
	EnvironmentID string
	InstanceID    string
	Type          int64 // ApplicationInstance or ServerInstance
	TypeName      string
	TypeTitle     *string
	UnitCount     *int64
	Created       Time
	Destroyed     *Time
}

// TableName is the table of InstanceStatistics (gorm).
func (InstanceStatistics) TableName() string { return "instance_statistics" }

// TrackInstance begins to count an application or a server of the task's environment, or goes on when it is counted already; its
// environment and times are set here.
func (h *Hold) TrackInstance(ctx context.Context, row InstanceStatistics) error {
	row.EnvironmentID, row.Created, row.Destroyed = h.task.EnvironmentID, h.store.clock(), nil
	return h.holding(ctx, "count an instance", func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "environment_id"}, {Name: "instance_id"}},
			DoUpdates: clause.AssignmentColumns([]string{"type", "type_name", "type_title", "unit_count"}),
		}).Create(&row).Error
	})
}

// UntrackInstance notes that an application or a server is there no more.
func (h *Hold) UntrackInstance(ctx context.Context, instanceID string) error {
	return h.holding(ctx, "end counting an instance", func(tx *gorm.DB) error {
		return tx.Model(&InstanceStatistics{}).Where("environment_id = ? AND instance_id = ? AND destroyed IS NULL", h.task.EnvironmentID, instanceID).
			Update("destroyed", h.store.clock()).Error
	})
}

// Instances lists the counted objects of the environment, oldest first.
func (s Statistics) Instances(ctx context.Context, environmentID string) ([]InstanceStatistics, error) {
	return readAll[InstanceStatistics](s.reading(ctx).Where("environment_id = ?", environmentID).Order("created, instance_id"), "list statistics of instances")
}
