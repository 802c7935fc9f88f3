package store

import (
	"context"
)

// AuditEvent is a line of the audit log.
type AuditEvent struct {
	ID        string
	ProjectID string
	UserID    string
	Action    string
	TargetID  string
	Outcome   string
	RequestID string
	Event     string // CADF, as JSON
	Created   Time
}

// AuditFilter selects events; "" and 0 select all.
type AuditFilter struct {
	ProjectID, UserID, Action, TargetID, Outcome, RequestID string
	Since, Until                                            Time
	Marker                                                  string // the last event of the page before
	Limit                                                   int
}

// Audit keeps the rows of audit events.
type Audit struct{ *handle }

// Audit returns the rows of audit events.
func (s *Store) Audit() Audit { return Audit{s.handle} }

// AddAuditEvents writes events.
func (s Audit) AddAuditEvents(ctx context.Context, events []AuditEvent) error {
	if len(events) == 0 {
		return nil
	}
	return wrap(s.rows(ctx).CreateInBatches(events, 100).Error, "write audit events")
}

// AuditEvents lists events, newest first. ErrNotFound when the marker's event does not exist.
func (s Audit) AuditEvents(ctx context.Context, filter AuditFilter) ([]AuditEvent, error) {
	query := s.rows(ctx).Order("created DESC, id DESC").Limit(filter.Limit)
	query = matching(query, map[string]string{"project_id": filter.ProjectID, "user_id": filter.UserID, "action": filter.Action,
		"target_id": filter.TargetID, "outcome": filter.Outcome, "request_id": filter.RequestID})
	if filter.Since != 0 {
		query = query.Where("created >= ?", filter.Since)
	}
	if filter.Until != 0 {
		query = query.Where("created < ?", filter.Until)
	}
	if filter.Marker != "" {
		var last AuditEvent
		if err := s.rows(ctx).Select("id", "created").Where("id = ?", filter.Marker).Take(&last).Error; err != nil {
			return nil, wrap(err, "find the marker of audit events")
		}
		query = query.Where("(created, id) < (?, ?)", last.Created, last.ID)
	}
	return readAll[AuditEvent](query, "list audit events")
}

// RemoveAuditEvents removes at most so many events that are older, and returns their number.
func (s Audit) RemoveAuditEvents(ctx context.Context, before Time, atMost int) (removed int64, err error) {
	old := s.db.Model(&AuditEvent{}).Select("id").Where("created < ?", before).Order("created").Limit(atMost)
	result := s.rows(ctx).Where("id IN (?)", old).Delete(&AuditEvent{})
	return result.RowsAffected, wrap(result.Error, "remove old audit events")
}

// RemoveFurtherAuditEvents removes the oldest events of a project, or of unknown callers, with more events than keep. It removes at most so many, and
// returns their number.
func (s Audit) RemoveFurtherAuditEvents(ctx context.Context, keep, atMost int) (removed int64, err error) {
	var of []struct {
		ProjectID string
		Events    int
	}
	err = s.reading(ctx).Model(&AuditEvent{}).Select("project_id, COUNT(*) AS events").Group("project_id").Having("COUNT(*) > ?", keep).Limit(1).Scan(&of).Error
	if err != nil || len(of) == 0 {
		return 0, wrap(err, "count audit events")
	}
	old := s.db.Model(&AuditEvent{}).Select("id").Where("project_id = ?", of[0].ProjectID).Order("created, id").Limit(min(of[0].Events-keep, atMost))
	result := s.rows(ctx).Where("id IN (?)", old).Delete(&AuditEvent{})
	if result.RowsAffected > 0 {
		removed = int64(atMost) // there may be more, of this project or another
	}
	return removed, wrap(result.Error, "remove further audit events")
}
