package store

import (
	"context"
	"errors"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/memory"
)

// Reports lists the reports of tasks.
type Reports struct{ *handle }

// Reports are the reports of tasks.
func (s *Store) Reports() Reports { return Reports{s.handle} }

// add adds a line to a task's log; its id, number and time are set here.
func (s Reports) add(tx *gorm.DB, report Report) error {
	// The task's row is locked first where rows can be (PostgreSQL), so that two reports never get one number.
	var task Task
	if err := locked(tx).Select("id").Where("id = ?", report.TaskID).Take(&task).Error; err != nil {
		return err
	}
	return s.number(tx, report)
}

// number adds a report with the next number of its task, whose row is locked.
func (s Reports) number(tx *gorm.DB, report Report) error {
	return tx.Exec(`INSERT INTO reports (id, task_id, number, entity_id, entity, level, text, details, created)
		VALUES (?, ?, (SELECT COALESCE(MAX(number), 0) + 1 FROM reports WHERE task_id = ?), ?, ?, ?, ?, ?, ?)`,
		NewID(), report.TaskID, report.TaskID, report.EntityID, report.Entity, report.Level, report.Text, report.Details, s.clock()).Error
}

// List returns the task's log, oldest first: the lines whose number is above after, of these at most limit where that is not 0.
func (s Reports) List(ctx context.Context, taskID string, after int64, limit int) ([]Report, error) {
	query := s.reading(ctx).Where("task_id = ? AND number > ?", taskID, after).Order("number")
	if limit > 0 {
		query = query.Limit(limit)
	}
	return readAll[Report](query, "list reports")
}

// LastNumber returns the number of the newest line of the task's log; 0 when there is none.
func (s Reports) LastNumber(ctx context.Context, taskID string) (number int64, err error) {
	err = s.reading(ctx).Model(&Report{}).Select("COALESCE(MAX(number), 0)").Where("task_id = ?", taskID).Scan(&number).Error
	return number, wrap(err, "look up the last report")
}

// reportPages are the lists of Page. Reports are numbered in the order in which they are made.
var reportPages = list{
	keys: map[string]string{"id": "id", "created": "number"},
	own:  []Sort{{Key: "created"}},
}

// Page is a part of the task's log: of the lines about these objects, or of all when entities is nil. An error is a *SortError or
// ErrMarker where the page is wrong.
func (s Reports) Page(ctx context.Context, taskID string, entities []string, page Page) ([]Report, error) {
	query, err := reportPages.page(page, func() *gorm.DB {
		query := s.reading(ctx).Model(&Report{}).Where("task_id = ?", taskID)
		if entities != nil {
			query = query.Where("entity_id IN ?", entities)
		}
		return query
	})
	if err != nil {
		return nil, wrap(err, "list reports")
	}
	reports, err := readReports(ctx, query)
	return reports, wrap(err, "list reports")
}

// maxRead is how many bytes of texts and details a list of reports has at most.
const maxRead = 64 << 20

// readReports reads the reports of a query, one after another: the memory of each is taken of the context's account before the next one is read.
func readReports(ctx context.Context, query *gorm.DB) (reports []Report, err error) {
	rows, err := query.Rows()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var read, counted int64
	for rows.Next() {
		var report Report
		if err := query.ScanRows(rows, &report); err != nil {
			return nil, err
		}
		reports = append(reports, report)
		read += report.bytes()
		if read > maxRead {
			return nil, &door.Exceeded{What: "the list of reports", Bound: door.Bytes(maxRead)}
		}
		if read-counted > uncounted {
			if err := memory.Of(ctx).Take(read - counted); err != nil {
				return nil, err
			}
			counted = read
		}
	}
	return reports, rows.Err()
}

// uncounted is how many bytes of a list are too few to be counted.
const uncounted = 64 << 10

// bytes is the size of the report.
func (r Report) bytes() int64 {
	const rest = 512 // everything but its texts
	size := rest + len(r.Text)
	if r.Details != nil {
		size += len(*r.Details)
	}
	return int64(size)
}

// objectReportPages are the lists of ObjectPage.
var objectReportPages = list{
	keys: map[string]string{"id": "id", "created": "created"},
	own:  []Sort{{Key: "created", Descending: true}},
}

// ObjectPage is a part of the reports about objects in all of an environment's tasks, the newest first. An error is a *SortError or
// ErrMarker where the page is wrong.
func (s Reports) ObjectPage(ctx context.Context, environmentID string, objects []string, page Page) ([]Report, error) {
	query, err := objectReportPages.page(page, func() *gorm.DB {
		tasks := s.reading(ctx).Model(&Task{}).Select("id").Where("environment_id = ?", environmentID)
		return s.reading(ctx).Model(&Report{}).Where("entity_id IN ? AND task_id IN (?)", objects, tasks)
	})
	if err != nil {
		return nil, wrap(err, "list the reports of objects")
	}
	reports, err := readReports(ctx, query)
	return reports, wrap(err, "list the reports of objects")
}

// Newest returns, by object id, the newest report about each of the objects in the environment's tasks.
func (s Reports) Newest(ctx context.Context, environmentID string) (map[string]Report, error) {
	tasks := s.reading(ctx).Model(&Task{}).Select("id").Where("environment_id = ?", environmentID)
	ranked := s.reading(ctx).Model(&Report{}).Select("reports.*, ROW_NUMBER() OVER (PARTITION BY entity_id ORDER BY created DESC, number DESC) AS place").
		Where("entity_id IS NOT NULL AND task_id IN (?)", tasks)
	reports, err := readReports(ctx, s.reading(ctx).Table("(?) AS ranked", ranked).Where("place = 1"))
	last := map[string]Report{}
	for _, report := range reports {
		last[*report.EntityID] = report
	}
	return last, wrap(err, "list reports")
}
