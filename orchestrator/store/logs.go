package store

import (
	"context"
	"fmt"
	"sync"
	"unicode/utf8"

	"gorm.io/gorm"
)

// LogLimits bound the log of one task. Errors may take a tenth more than other lines, so that the log of a task with many lines still has the reason of
// its failure.
type LogLimits struct{ Lines, Bytes int64 }

// DefaultLogLimits are the limits of a store without a setting.
var DefaultLogLimits = LogLimits{Lines: 10000, Bytes: 16 << 20}

// maxLine is how many bytes the text and the details of a line may have, each.
const maxLine = 256 << 10

// LimitLogs gives the logs of tasks other limits.
func LimitLogs(limits LogLimits) Option { return func(s *Store) { s.logs = limits } }

// taskLog is a hold's state of its task's log.
type taskLog struct {
	mutex sync.Mutex
	fill  *fill // nil: not counted yet
	left  gone  // lines that were left out, and are not yet recorded
}

// fill is how full a log is.
type fill struct {
	lines, bytes int64
	told         bool // that lines are left out
}

// exclude is true if a line of that size must be left out.
func (l LogLimits) exclude(fill fill, level string, size int64) bool {
	lines, bytes := l.Lines, l.Bytes
	if level == "error" {
		lines, bytes = lines+lines/10+1, bytes+bytes/10
	}
	return fill.lines >= lines || fill.bytes+size > bytes
}

// gone counts reports that are not there (any more).
type gone struct{ reports, errors, warnings int64 }

func (g *gone) add(level string) {
	g.reports++
	switch level {
	case "error":
		g.errors++
	case "warning":
		g.warnings++
	}
}

// note adds them to the task's row.
func (g gone) note(tx *gorm.DB, taskID string) error {
	if g == (gone{}) {
		return nil
	}
	return tx.Model(&Task{}).Where("id = ?", taskID).Updates(map[string]any{"gone_reports": gorm.Expr("gone_reports + ?", g.reports),
		"gone_errors": gorm.Expr("gone_errors + ?", g.errors), "gone_warnings": gorm.Expr("gone_warnings + ?", g.warnings)}).Error
}

// leftTogether is how many left-out lines are recorded together, since that writes the task's row.
const leftTogether = 1000

// AddReport adds a line to the task's log. When the log is full, it leaves the line out, and the log's last line counts it. The line's task, id, number
// and time are set here.
func (h *Hold) AddReport(ctx context.Context, report Report) error {
	report.Text = shortened(report.Text)
	size := int64(len(report.Text))
	if report.Details != nil {
		details := shortened(*report.Details)
		report.Details = &details
		size += int64(len(details))
	}
	l := &h.log
	l.mutex.Lock()
	defer l.mutex.Unlock()
	limits := h.store.logs
	if l.fill != nil && l.fill.told && limits.exclude(*l.fill, report.Level, size) && !l.left.decides(report.Level) && l.left.reports+1 < leftTogether {
		l.left.add(report.Level)
		return nil
	}
	var now fill
	var left gone
	err := h.noting(ctx, "write a report", func(tx *gorm.DB) (err error) {
		left = l.left
		if l.fill != nil {
			now = *l.fill
		} else if now, err = countLog(tx, h.task.ID); err != nil {
			return err
		}
		if !limits.exclude(now, report.Level, size) {
			now.lines, now.bytes = now.lines+1, now.bytes+size
			return h.report(tx, report)
		}
		if !now.told {
			now.told = true
			text := fmt.Sprintf("This log is full: it has %d lines and %d bytes, of at most %d and %d. Further lines are left out, but for some errors and the end.",
				now.lines, now.bytes, limits.Lines, limits.Bytes)
			if err := h.report(tx, Report{Level: "info", Text: text}); err != nil {
				return err
			}
		}
		left.add(report.Level)
		err = left.note(tx, h.task.ID)
		left = gone{}
		return err
	})
	if err == nil {
		l.fill, l.left = &now, left
	}
	h.store.changed(h.task.ID)
	return err
}

// decides is true if the left-out line would be the first one of its level, on which the task's state depends.
func (g gone) decides(level string) bool {
	return level == "error" && g.errors == 0 || level == "warning" && g.warnings == 0
}

// noteLeft stores the number of lines that were left out, when the hold ends.
func (h *Hold) noteLeft(tx *gorm.DB) error {
	h.log.mutex.Lock()
	defer h.log.mutex.Unlock()
	return h.log.left.note(tx, h.task.ID)
}

// countLog reads the size of a task's log, which another hold may have begun.
func countLog(tx *gorm.DB, taskID string) (now fill, err error) {
	var task Task
	if err := tx.Select("id", "gone_reports").Where("id = ?", taskID).Take(&task).Error; err != nil {
		return now, err
	}
	now.told = task.GoneReports > 0
	return now, each(tx.Model(&Report{}).Select("COUNT(*), COALESCE(SUM(LENGTH(text) + LENGTH(COALESCE(details, ''))), 0)").Where("task_id = ?", taskID),
		func() {}, &now.lines, &now.bytes)
}

// shortened is the text, without its end when it is too long.
func shortened(text string) string {
	if len(text) <= maxLine {
		return text
	}
	end := maxLine
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d bytes more are left out)", text[:end], len(text)-end)
}
