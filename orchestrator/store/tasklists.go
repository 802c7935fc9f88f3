package store

import (
	"context"
	"slices"

	"gorm.io/gorm"
)

// Counts are the numbers of a task's reports by level, also of deleted ones.
type Counts struct{ Errors, Warnings int64 }

// TaskState is a task for lists and followers, which is read without its model.
type TaskState struct {
	ID            string
	EnvironmentID string
	Created       Time
	Updated       Time
	Started       Time
	Finished      *Time
	Action        Action // in a Page only
	Counts        Counts
}

// taskState are the columns of a TaskState, all of them in the index tasks_listed.
const taskState = "id, environment_id, created, updated, started, finished, gone_errors, gone_warnings"

func (t *TaskState) places() []any {
	return []any{&t.ID, &t.EnvironmentID, &t.Created, &t.Updated, &t.Started, &t.Finished, &t.Counts.Errors, &t.Counts.Warnings}
}

// of are the tasks of an environment, or of all environments of a project (the other argument is "").
func (s Tasks) of(ctx context.Context, environmentID, projectID string) *gorm.DB {
	query := s.reading(ctx).Model(&Task{})
	if projectID != "" {
		return query.Where("environment_id IN (?)", s.reading(ctx).Model(&Environment{}).Select("id").Where("project_id = ?", projectID))
	}
	return query.Where("environment_id = ?", environmentID)
}

// taskOrder is the order of lists of tasks: newest first.
const taskOrder = "started DESC, created DESC, id"

// List returns the tasks of an environment, or of all environments of a project (the other argument is ""), newest first,
// with the numbers of their reports. Models are many: they are opened when they have all been read.
func (s Tasks) List(ctx context.Context, environmentID, projectID string) ([]Task, map[string]Counts, error) {
	tasks, err := s.list(ctx, environmentID, projectID)
	if err != nil {
		return nil, nil, wrap(err, "list tasks")
	}
	counts := make(map[string]Counts, len(tasks))
	for _, task := range tasks {
		counts[task.ID] = Counts{Errors: task.GoneErrors, Warnings: task.GoneWarnings}
	}
	err = countReports(s.reading(ctx), s.of(ctx, environmentID, projectID).Select("id"), counts)
	return tasks, counts, wrap(err, "list tasks")
}

func (s Tasks) list(ctx context.Context, environmentID, projectID string) ([]Task, error) {
	type sealed struct{ action, objects, result string }
	var tasks []Task
	var columns []sealed
	var task Task
	var column sealed
	query := s.of(ctx, environmentID, projectID).Order(taskOrder).Select("id, environment_id, session_id, worker, fence, lease_until, deaths, " +
		"cancelled_by, created, updated, started, finished, gone_errors, gone_warnings, gone_reports, action, objects, result")
	err := each(query, func() { tasks, columns = append(tasks, task), append(columns, column) },
		&task.ID, &task.EnvironmentID, &task.SessionID, &task.Worker, &task.Fence, &task.LeaseUntil, &task.Deaths, &task.CancelledBy, &task.Created, &task.Updated,
		&task.Started, &task.Finished, &task.GoneErrors, &task.GoneWarnings, &task.GoneReports, &column.action, &column.objects, &column.result)
	if err != nil {
		return nil, err
	}
	for i := range tasks {
		for _, one := range []struct {
			name, stored string
			into         interface{ Scan(source any) error }
		}{{"action", columns[i].action, &tasks[i].Action}, {"objects", columns[i].objects, &tasks[i].Objects}, {"result", columns[i].result, &tasks[i].Result}} {
			if err := s.unseal("tasks", one.name, one.stored, one.into); err != nil {
				return nil, err
			}
		}
		columns[i] = sealed{} // it is as large as the model
	}
	return tasks, nil
}

// taskPages are the lists of Page.
var taskPages = list{
	keys: map[string]string{"id": "id", "created": "created", "updated": "updated", "started": "started", "finished": "COALESCE(finished, 9223372036854775807)"},
	own:  []Sort{{Key: "started", Descending: true}, {Key: "created", Descending: true}},
}

// Page is a part of List without models and results. An error is a *SortError or ErrMarker where the page is wrong.
func (s Tasks) Page(ctx context.Context, environmentID, projectID string, page Page) ([]TaskState, error) {
	query, err := taskPages.page(page, func() *gorm.DB { return s.of(ctx, environmentID, projectID) })
	if err != nil {
		return nil, wrap(err, "list tasks")
	}
	var tasks []TaskState
	var task TaskState
	if err := each(query.Select(taskState), func() { tasks = append(tasks, task) }, task.places()...); err != nil {
		return nil, wrap(err, "list tasks")
	}
	for part := range slices.Chunk(tasks, maxListedIDs) {
		if err := s.complete(ctx, part); err != nil {
			return nil, wrap(err, "list tasks")
		}
	}
	return tasks, nil
}

// maxListedIDs is how many ids a statement is given at a time.
const maxListedIDs = 500

// complete adds actions and numbers of reports.
func (s Tasks) complete(ctx context.Context, tasks []TaskState) error {
	ids := make([]string, len(tasks))
	places := make(map[string]*TaskState, len(tasks))
	counts := make(map[string]Counts, len(tasks))
	for i := range tasks {
		ids[i], places[tasks[i].ID], counts[tasks[i].ID] = tasks[i].ID, &tasks[i], tasks[i].Counts
	}
	var id, sealed string
	actions := make(map[string]string, len(tasks))
	if err := each(s.reading(ctx).Model(&Task{}).Select("id, action").Where("id IN ?", ids), func() { actions[id] = sealed }, &id, &sealed); err != nil {
		return err
	}
	if err := countReports(s.reading(ctx), ids, counts); err != nil {
		return err
	}
	for id, task := range places {
		task.Counts = counts[id]
		if stored, there := actions[id]; there { // else it went with its environment
			if err := s.unseal("tasks", "action", stored, &task.Action); err != nil {
				return err
			}
		}
	}
	return nil
}

// countReports adds the numbers of the reports of tasks, given as their ids or as a query for them.
func countReports(tx *gorm.DB, ids any, counts map[string]Counts) error {
	var id, level string
	var number int64
	add := func() {
		sum := counts[id]
		if level == "error" {
			sum.Errors += number
		} else {
			sum.Warnings += number
		}
		counts[id] = sum
	}
	where := "task_id IN ?"
	if _, query := ids.(*gorm.DB); query {
		where = "task_id IN (?)"
	}
	// The levels are no parameters, so that the index reports_problems, which has only these, can serve.
	return each(tx.Model(&Report{}).Select("task_id, level, COUNT(*)").Where(where+" AND level IN ('error', 'warning')", ids).Group("task_id, level"),
		add, &id, &level, &number)
}

// countsOf are the numbers of one task's reports.
func countsOf(tx *gorm.DB, taskID string) (Counts, error) {
	var task Task
	if err := tx.Select("id", "gone_errors", "gone_warnings").Where("id = ?", taskID).Take(&task).Error; err != nil {
		return Counts{}, err
	}
	counts := map[string]Counts{taskID: {Errors: task.GoneErrors, Warnings: task.GoneWarnings}}
	err := countReports(tx, []string{taskID}, counts)
	return counts[taskID], err
}

// State returns how the task is, without its model and its action, or ErrNotFound.
func (s Tasks) State(ctx context.Context, id string) (TaskState, error) {
	var task TaskState
	found := false
	if err := each(s.reading(ctx).Model(&Task{}).Select(taskState).Where("id = ?", id), func() { found = true }, task.places()...); err != nil {
		return TaskState{}, wrap(err, "read a task")
	}
	if !found {
		return TaskState{}, wrap(gorm.ErrRecordNotFound, "read a task")
	}
	counts := map[string]Counts{id: task.Counts}
	err := countReports(s.reading(ctx), []string{id}, counts)
	task.Counts = counts[id]
	return task, wrap(err, "read a task")
}

// Unfinished returns the deployments, actions and deletions, without repairs, that wait or run in environments, without their models.
func (s Tasks) Unfinished(ctx context.Context, part Part) (tasks []Task, err error) {
	var task Task
	var action string
	var actions []string
	query := part.of(ctx, s.handle, &Task{}).Select("id, environment_id, action").Where("finished IS NULL AND repair = ?", false)
	err = each(query, func() { tasks, actions = append(tasks, task), append(actions, action) }, &task.ID, &task.EnvironmentID, &action)
	for i := range tasks {
		if err == nil {
			err = s.unseal("tasks", "action", actions[i], &tasks[i].Action)
		}
	}
	return tasks, wrap(err, "list unfinished tasks")
}
