package store

import (
	"context"
	"database/sql/driver"
	"encoding/json"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
)

// Methods of environments that stop their servers, and start them again.
const (
	MethodHibernate = "hibernate"
	MethodWake      = "wake"
)

// HibernationState is how far an environment has come on its way to sleep, or back.
type HibernationState string

// The states. Hibernating and Waking remain after a task that failed: then some servers may be off. Such an environment can be woken or hibernated.
const (
	Awake       HibernationState = ""
	Hibernating HibernationState = "hibernating"
	Asleep      HibernationState = "asleep"
	Waking      HibernationState = "waking"
)

// Hibernation is the sleep of an environment; the zero value is awake and without a schedule.
type Hibernation struct {
	EnvironmentID string `gorm:"primaryKey"`
	State         HibernationState
	TaskID        string // of the task that changed the state last
	Changed       Time
	// Servers are the servers that ran before, and are started when it wakes.
	Servers StoppedServers
	// Schedule is the JSON of its times, "" for none. Scheduled is when UserName has set it.
	Schedule  string
	Scheduled Time
	UserName  string
	// ScheduledTask is the last task that the schedule has started; "" for none.
	ScheduledTask string
}

// StoppedServer is a server that a hibernation stops.
type StoppedServer struct {
	ID      string `json:"id"` // in Nova
	Name    string `json:"name"`
	Region  string `json:"region,omitempty"`  // "" for the environment's own
	Role    string `json:"role,omitempty"`    // of a node of a cluster: master, minion or gateway
	Cluster string `json:"cluster,omitempty"` // the name of its cluster
}

// StoppedServers is a list of servers in a column.
type StoppedServers []StoppedServer

// Value writes the list as JSON (database/sql).
func (s StoppedServers) Value() (driver.Value, error) {
	if s == nil {
		s = StoppedServers{}
	}
	return encode([]StoppedServer(s))
}

// Scan reads the list from JSON (database/sql).
func (s *StoppedServers) Scan(source any) error {
	text, err := jsonColumn(source)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, (*[]StoppedServer)(s))
}

// Sleeps reports whether the task is a hibernation or its end. Such a task changes neither the model, the version nor the drafts of its environment.
func (t Task) Sleeps() bool {
	return t.Action.ObjectID == t.EnvironmentID && (t.Action.Method == MethodHibernate || t.Action.Method == MethodWake)
}

// Hibernations reads and writes which environments sleep.
type Hibernations struct{ *handle }

// Hibernations are the hibernations of environments.
func (s *Store) Hibernations() Hibernations { return Hibernations{s.handle} }

// Of returns the hibernation of an environment.
func (s Hibernations) Of(ctx context.Context, environmentID string) (Hibernation, error) {
	row, err := hibernationOf(s.reading(ctx), environmentID)
	return row, wrap(err, "read whether an environment sleeps")
}

func hibernationOf(tx *gorm.DB, environmentID string) (row Hibernation, err error) {
	err = tx.Where("environment_id = ?", environmentID).Limit(1).Find(&row).Error
	row.EnvironmentID = environmentID
	return row, err
}

// SetSchedule sets the times at which an environment sleeps and wakes by itself; "" for none. Its state stays. The error is ErrNotFound without the environment.
func (s Hibernations) SetSchedule(ctx context.Context, environmentID, schedule, userName string) error {
	return s.transaction(ctx, "set the schedule of a hibernation", func(tx *gorm.DB) error {
		if err := locked(tx).Select("id").Where("id = ? AND deleted = 0", environmentID).Take(&Environment{}).Error; err != nil {
			return err
		}
		row := Hibernation{EnvironmentID: environmentID, Schedule: schedule, Scheduled: s.clock(), UserName: userName}
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "environment_id"}}, DoUpdates: clause.AssignmentColumns([]string{"schedule", "scheduled", "user_name"})}).Create(&row).Error
	})
}

// Settled is the state of an environment's schedule.
type Settled struct {
	// At is the last of these times: a user set the schedule, or submitted a task in the environment; a task of the schedule began that succeeded, or that a user cancelled.
	At     Time
	Failed string // the last task of the schedule, if it failed; else ""
	Tried  Time   // when that was begun
	// Delegated is true if the role of the project or a standing delegation allows the schedule's tasks.
	Delegated bool
}

// Settled returns the state of an environment's schedule.
func (s Hibernations) Settled(ctx context.Context, row Hibernation) (Settled, error) {
	const reading = "read the state of a schedule"
	settled := Settled{At: row.Scheduled}
	var byUser []Time
	if err := s.reading(ctx).Model(&Task{}).Where("environment_id = ? AND repair = ?", row.EnvironmentID, false).Order("created DESC").Limit(1).Pluck("created", &byUser).Error; err != nil {
		return settled, wrap(err, reading)
	}
	if len(byUser) > 0 {
		settled.At = max(settled.At, byUser[0])
	}
	var delegated int64
	mayAct := s.reading(ctx).Model(&Environment{}).Where("id = ?", row.EnvironmentID).Where("EXISTS (SELECT 1 FROM project_roles WHERE project_roles.project_id = environments.project_id AND disabled IS NULL) OR "+
		"EXISTS (SELECT 1 FROM delegations WHERE delegations.environment_id = environments.id AND standing = ?)", true)
	if err := mayAct.Count(&delegated).Error; err != nil {
		return settled, wrap(err, reading)
	}
	settled.Delegated = delegated > 0
	if row.ScheduledTask == "" {
		return settled, nil
	}
	var last Task
	if err := s.reading(ctx).Select("id", "created", "finished", "result", "cancelled_by").Where("id = ?", row.ScheduledTask).Limit(1).Find(&last).Error; err != nil {
		return settled, wrap(err, reading)
	}
	failed := last.Finished != nil && last.Result["isException"] == true
	switch {
	case last.CancelledBy != "", last.Finished != nil && !failed: // by another server's clock it may be an earlier time
		settled.At = max(settled.At, last.Created)
	case failed:
		settled.Failed, settled.Tried = last.ID, last.Created
	}
	return settled, nil
}

// bySchedule is the condition that a task was started by a schedule.
const bySchedule = "EXISTS (SELECT 1 FROM hibernations WHERE hibernations.environment_id = tasks.environment_id AND hibernations.scheduled_task = tasks.id)"

// scheduleLock is PostgreSQL's advisory lock of the transaction that starts a task of a schedule: at the same minute many servers start many of them, and their number is bounded.
const scheduleLock = 0x627572616e6f0002

// startScheduled notes that a schedule starts a task. The error is ErrBusy while that many of them run or wait on all servers.
func startScheduled(tx *gorm.DB, environmentID, taskID string, most int) error {
	if tx.Name() == database.Postgres {
		if err := tx.Exec("SELECT pg_advisory_xact_lock(?)", int64(scheduleLock)).Error; err != nil {
			return err
		}
	}
	var running int64
	if err := tx.Model(&Task{}).Where("repair = ? AND finished IS NULL AND "+bySchedule, true).Count(&running).Error; err != nil {
		return err
	}
	if running >= int64(most) {
		return ErrBusy
	}
	return affected(tx.Model(&Hibernation{}).Where("environment_id = ? AND schedule <> ''", environmentID).Update("scheduled_task", taskID))
}

// States returns the states of environments that are not awake, by the environments' ids.
func (s Hibernations) States(ctx context.Context, part Part) (map[string]HibernationState, error) {
	states := map[string]HibernationState{}
	var row Hibernation
	query := part.of(ctx, s.handle, &Hibernation{}).Select("environment_id", "state").Where("state <> ''")
	err := each(query, func() { states[row.EnvironmentID] = row.State }, &row.EnvironmentID, &row.State)
	return states, wrap(err, "list environments that sleep")
}

// admitAwake refuses a task in an environment that sleeps, unless it deletes the environment, or the task hibernates or wakes it. The environment is locked.
func admitAwake(tx *gorm.DB, environmentID string, sleeps bool) error {
	if sleeps {
		return nil
	}
	row, err := hibernationOf(tx, environmentID)
	if err != nil {
		return err
	}
	return row.Refusal()
}

// Refusal is the fault with which an environment that sleeps refuses a task; nil for one that is awake.
func (h Hibernation) Refusal() error {
	switch h.State {
	case Awake:
		return nil
	case Asleep:
		return fault.New(fault.Conflict, "Environment %[1]s is asleep, and its servers are off: wake it first (burano environment wake %[1]s)", h.EnvironmentID)
	}
	return fault.New(fault.Conflict, "Environment %[1]s is %[2]s, and some of its servers may be off: wake it first (burano environment wake %[1]s)", h.EnvironmentID, h.State)
}

// SetHibernation writes the state of the environment's hibernation, and, unless they are nil, its servers. It is durable on return. The error is ErrBusy in a task of the keeper
// that makes way for a user's.
func (h *Hold) SetHibernation(ctx context.Context, state HibernationState, servers []StoppedServer) error {
	return h.holding(ctx, "note a hibernation", func(tx *gorm.DB) error {
		if err := locked(tx).Select("id").Where("id = ?", h.task.EnvironmentID).Take(&Environment{}).Error; err != nil {
			return err
		}
		if h.task.Repair {
			var waiting int64
			if err := tx.Model(&Task{}).Where("environment_id = ? AND finished IS NULL AND repair = ?", h.task.EnvironmentID, false).Count(&waiting).Error; err != nil {
				return err
			}
			if waiting > 0 {
				return ErrBusy
			}
		}
		columns := []string{"state", "task_id", "changed"}
		if servers != nil {
			columns = append(columns, "servers")
		}
		row := Hibernation{EnvironmentID: h.task.EnvironmentID, State: state, TaskID: h.task.ID, Changed: h.store.clock(), Servers: servers}
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "environment_id"}}, DoUpdates: clause.AssignmentColumns(columns)}).Create(&row).Error
	})
}

// slept writes the end of a task that hibernates an environment or wakes it: its session goes, so that status and drafts are as they were.
func (h *Hold) slept(tx *gorm.DB, failed bool, reached Reached) error {
	task := h.task
	var environment Environment
	if err := locked(tx).Where("id = ?", task.EnvironmentID).Take(&environment).Error; err != nil {
		return err
	}
	if err := (Components{h.store}).ended(tx, task, environment, environment.Model, failed, reached); err != nil {
		return err
	}
	return tx.Where("id = ?", task.SessionID).Delete(&Session{}).Error
}
