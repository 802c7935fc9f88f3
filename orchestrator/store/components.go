package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// ComponentState is the state of a component as its runs have left it.
type ComponentState string

// The states, the worst first.
const (
	ComponentFailed       ComponentState = "failed"        // the last deployment that reached it, or its deletion
	ComponentActionFailed ComponentState = "action failed" // and neither the same action nor a deployment has succeeded since
	ComponentNotDeployed  ComponentState = "not deployed"
	ComponentUnknown      ComponentState = "unknown" // a former version has deployed it
	ComponentChanged      ComponentState = "changed" // it is deployed, and the environment's model has a change of it that is not
	ComponentReady        ComponentState = "ready"
)

// Outcomes of a component's last deployment.
const (
	OutcomeNone     = "" // no deployment has reached it
	OutcomeDeployed = "deployed"
	OutcomeFailed   = "failed"
	OutcomeUnknown  = "unknown"
)

const (
	// maxFailures is how many failed actions of a component are stored: the oldest go first.
	maxFailures = 16
	// maxFailureText is how many bytes of an error are stored with a component.
	maxFailureText = 2048
	// maxErrors is how many errors of a task are looked through for the failed components.
	maxErrors = 1000
	// componentsTogether is how many components a statement writes.
	componentsTogether = 200
	// replayed is how many of the last tasks are looked through for the last deployment of an environment without records.
	replayed = 64
)

// Component is the record of the runs over a component: an application of an environment, with all that it holds.
type Component struct {
	EnvironmentID string
	ObjectID      string // "" for the environment itself: what failed and belongs to no component
	State         ComponentState
	Outcome       string
	Kind          string // of the task that has this outcome: deployment or deletion
	TaskID        string // "" where it is not known
	Text          string // its first error about the component
	Ended         Time
	Failures      FailedActions // the oldest first
	Version       int64         // of the environment, in its own record
	Checksum      string        `gorm:"serializer:sealed"` // of its model as it is deployed; "" where none is known
}

// FailedAction is an action that failed, and has not succeeded since.
type FailedAction struct {
	ObjectID string `json:"object_id"`
	Method   string `json:"method"`
	TaskID   string `json:"task_id"`
	Text     string `json:"text"`
	Ended    Time   `json:"ended"`
}

// FailedActions are a column of failed actions.
type FailedActions []FailedAction

// Value writes the actions as JSON (database/sql).
func (f FailedActions) Value() (driver.Value, error) { return encode(append([]FailedAction{}, f...)) }

// Scan reads the actions from JSON (database/sql).
func (f *FailedActions) Scan(source any) error {
	text, err := jsonColumn(source)
	if err != nil {
		return err
	}
	*f = nil // the row may be another one's
	return json.Unmarshal(text, (*[]FailedAction)(f))
}

// without are the actions without an object's method.
func (f FailedActions) without(objectID, method string) FailedActions {
	rest := slices.DeleteFunc(slices.Clone(f), func(one FailedAction) bool { return one.ObjectID == objectID && one.Method == method })
	if len(rest) == 0 {
		return nil
	}
	return rest
}

// Reached is how far a task has come with the components of its environment.
type Reached struct {
	Deployed  map[string]bool   // the components whose deployment succeeded, by their ids; nil where that is not known
	Destroyed map[string]bool   // the components that are destroyed
	Owners    map[string]string // the components of objects that errors are about, by the objects' ids
}

// Components reads the records of components.
type Components struct{ *handle }

// Components are the records of the components of environments.
func (s *Store) Components() Components { return Components{s.handle} }

// Of returns the records of an environment by the components' ids; nil when there are none for this version of it. The record with the id "" is the environment's own.
func (s Components) Of(ctx context.Context, environment Environment) (map[string]Component, error) {
	rows, err := componentRows(s.reading(ctx), environment.ID)
	return recordsOf(rows, environment.Version), wrap(err, "read the records of components")
}

// componentRows are the records of an environment, whatever its version was.
func componentRows(tx *gorm.DB, environmentID string) (rows []Component, err error) {
	return rows, tx.Where("environment_id = ?", environmentID).Find(&rows).Error
}

// recordsOf are records by the components' ids; nil when they are not of this version of the environment.
func recordsOf(rows []Component, version int64) map[string]Component {
	records := map[string]Component{}
	for _, row := range rows {
		records[row.ObjectID] = row
	}
	if own, there := records[""]; !there || own.Version != version {
		return nil
	}
	return records
}

// ComponentCount is how many components of an environment have a state.
type ComponentCount struct {
	EnvironmentID string
	State         ComponentState
	Own           bool  // the environment's own record
	Version       int64 // of the environment, in its own record
	Number        int
}

// Part selects an environment, or the environments of a project; all environments where it is zero.
type Part struct{ EnvironmentID, ProjectID string }

// of are the rows of a table that belong to the environments.
func (p Part) of(ctx context.Context, s *handle, table any) *gorm.DB {
	query := s.reading(ctx).Model(table)
	if p.EnvironmentID != "" {
		return query.Where("environment_id = ?", p.EnvironmentID)
	}
	return query.Where("environment_id IN (?)", Environments{s}.of(ctx, p.ProjectID).Select("id"))
}

// Counts counts the components of environments.
func (s Components) Counts(ctx context.Context, part Part) (counts []ComponentCount, err error) {
	var c ComponentCount
	query := part.of(ctx, s.handle, &Component{}).
		Select("environment_id, state, object_id = '' AS own, version, COUNT(*)").Group("environment_id, state, object_id = '', version")
	err = each(query, func() { counts = append(counts, c) }, &c.EnvironmentID, &c.State, &c.Own, &c.Version, &c.Number)
	return counts, wrap(err, "count components")
}

// ended updates the records of the components at the end of a task. environment has the version before the task, model is the environment's model after it.
func (s Components) ended(tx *gorm.DB, task Task, environment Environment, model Model, failed bool, reached Reached) error {
	rows, err := componentRows(tx, task.EnvironmentID)
	if err != nil {
		return err
	}
	former, version := recordsOf(rows, environment.Version), environment.Version+1
	unversioned := task.Repair || task.Sleeps()
	if unversioned {
		version--
	}
	if former == nil && unversioned {
		return nil
	}
	if former == nil && environment.Version > 0 {
		if former, err = s.replay(tx, task.EnvironmentID, task.ID); err != nil {
			return err
		}
	}
	r := run{task: task, failed: failed, reached: reached, ended: s.clock(), after: modelled(model.Objects)}
	if r.reached.Deployed == nil {
		r.reached.Deployed = map[string]bool{}
	}
	if failed {
		if r.errors, err = errorsOf(tx, task.ID); err != nil {
			return err
		}
	}
	return replaceComponents(tx, task.EnvironmentID, version, rows, r.settle(former))
}

// remodelled updates the records after the environment got another model, and another version, without a task.
func (s Components) remodelled(tx *gorm.DB, environment Environment, model Model) error {
	rows, err := componentRows(tx, environment.ID)
	former := recordsOf(rows, environment.Version)
	if err != nil || former == nil {
		return err
	}
	return replaceComponents(tx, environment.ID, environment.Version+1, rows, described(former, modelled(model.Objects).sums))
}

// replaceComponents replaces the records of an environment, which are rows.
func replaceComponents(tx *gorm.DB, environmentID string, version int64, rows []Component, records map[string]Component) error {
	var gone []string
	changed := map[string]Component{}
	for id, record := range records {
		record.EnvironmentID, record.ObjectID = environmentID, id
		if id == "" {
			record.Version = version
		}
		changed[id] = record
	}
	for _, row := range rows {
		if is, there := changed[row.ObjectID]; !there {
			gone = append(gone, row.ObjectID)
		} else if reflect.DeepEqual(is, row) {
			delete(changed, row.ObjectID)
		}
	}
	for part := range slices.Chunk(gone, componentsTogether) {
		if err := tx.Where("environment_id = ? AND object_id IN ?", environmentID, part).Delete(&Component{}).Error; err != nil {
			return err
		}
	}
	for part := range slices.Chunk(slices.Collect(maps.Values(changed)), componentsTogether) {
		once := clause.OnConflict{UpdateAll: true, Columns: []clause.Column{{Name: "environment_id"}, {Name: "object_id"}}}
		if err := tx.Clauses(once).Create(&part).Error; err != nil {
			return err
		}
	}
	return nil
}

// problem is an error of a task.
type problem struct{ objectID, text string }

// errorsOf are the errors of a task, the oldest first.
func errorsOf(tx *gorm.DB, taskID string) (list []problem, err error) {
	var objectID *string
	var text string
	query := tx.Model(&Report{}).Select("entity_id, text").Where("task_id = ? AND level = 'error'", taskID).Order("number").Limit(maxErrors)
	err = each(query, func() {
		one := problem{text: text}
		if objectID != nil {
			one.objectID = *objectID
		}
		list = append(list, one)
	}, &objectID, &text)
	return list, err
}

// run is a task that has ended, for the records of components.
type run struct {
	task    Task
	failed  bool
	errors  []problem
	reached Reached
	ended   Time
	after   componentModels // the model after it
}

// componentModels are the components of a model, in the API's form, and their checksums, both by their ids.
type componentModels struct {
	components map[string]map[string]any
	sums       map[string]string
	places     map[string]string // the components of all objects, by the objects' ids
}

func modelled(objects map[string]any) componentModels {
	m := componentModels{ComponentsOf(objects), map[string]string{}, map[string]string{}}
	for id, component := range m.components {
		m.sums[id] = checksum(component)
		EachObject(component, func(object string, _ map[string]any) { m.places[object] = id })
	}
	return m
}

// settle returns the records after the run.
func (r run) settle(former map[string]Component) map[string]Component {
	kind := r.task.Kind()
	failed := r.failedOf(kind)
	before := map[string]map[string]any{} // what was run
	if kind != "deletion" {
		before = ComponentsOf(ForAPI(r.task.Objects))
	}
	records := map[string]Component{"": former[""]}
	for id, sum := range r.after.sums {
		record := former[id]
		if value, was := before[id]; was && record.Checksum != "" && record.Checksum == checksum(value) {
			record.Checksum = sum // the run itself has changed the model
		}
		records[id] = record
	}
	for id, record := range records {
		text, isFailed := failed[id]
		switch kind {
		case "deployment", "deletion":
			isReached := !r.failed || r.reached.Deployed[id] || id == "" && kind == "deployment"
			switch {
			case isFailed:
				record.Outcome, record.Kind, record.TaskID, record.Text, record.Ended = OutcomeFailed, kind, r.task.ID, text, r.ended
			case kind == "deletion":
				if r.reached.Destroyed[id] {
					record = Component{}
				}
			case isReached:
				record = Component{Outcome: OutcomeDeployed, Kind: kind, TaskID: r.task.ID, Ended: r.ended}
				if id != "" {
					record.Checksum = r.after.sums[id]
				}
			case r.reached.Deployed == nil:
				record.Outcome, record.Checksum = OutcomeUnknown, ""
			}
		case "repair": // one that sleeps or wakes by a schedule settles as if a user had begun it; its own failure is a finding
			if !r.task.Sleeps() || r.failed {
				break
			}
			for _, method := range r.task.settles() {
				record.Failures = record.Failures.without(r.task.Action.ObjectID, method)
			}
		case "action":
			for _, method := range r.task.settles() {
				record.Failures = record.Failures.without(r.task.Action.ObjectID, method)
			}
			if isFailed {
				record.Failures = append(record.Failures, FailedAction{ObjectID: r.task.Action.ObjectID, Method: r.task.Action.Method, TaskID: r.task.ID, Text: text, Ended: r.ended})
				record.Failures = record.Failures[max(0, len(record.Failures)-maxFailures):]
			}
		}
		records[id] = record
	}
	return described(records, r.after.sums)
}

// settles are the methods whose earlier failures an action settles: its own; waking also settles a hibernation that failed, and the other way round.
func (t Task) settles() []string {
	if t.Sleeps() {
		return []string{MethodHibernate, MethodWake}
	}
	return []string{t.Action.Method}
}

// failedOf returns the errors of the components that failed, by their ids: the ones that hold the objects of the errors, and the one whose action failed. An error about none of
// them belongs to the environment ("").
func (r run) failedOf(kind string) map[string]string {
	failed := map[string]string{}
	if !r.failed || kind == "repair" { // whose failures are findings
		return failed
	}
	placeOf := func(objectID string) string {
		if id := cmp.Or(r.after.places[objectID], r.reached.Owners[objectID]); r.after.components[id] != nil {
			return id
		}
		return ""
	}
	add := func(place, text string) {
		if _, known := failed[place]; !known {
			failed[place] = brief(text)
		}
	}
	general := ""
	for _, one := range r.errors {
		if place := placeOf(one.objectID); place == "" && kind == "action" {
			general = cmp.Or(general, one.text)
		} else {
			add(place, one.text)
		}
	}
	if own := r.after.places[r.task.Action.ObjectID]; kind == "action" && failed[own] == "" && (own != "" || len(failed) == 0) {
		text := general
		for _, one := range failed {
			text = cmp.Or(text, one)
		}
		add(placeOf(r.task.Action.ObjectID), text)
	}
	if len(failed) == 0 {
		failed[""] = ""
	}
	return failed
}

// brief is the beginning of an error.
func brief(text string) string {
	if len(text) <= maxFailureText {
		return text
	}
	return strings.ToValidUTF8(text[:maxFailureText], "") + "…"
}

// described gives the records their states with the components of a model, by their checksums. Components without a record were not deployed.
func described(records map[string]Component, sums map[string]string) map[string]Component {
	list := map[string]Component{"": records[""]}
	for id := range sums {
		list[id] = records[id]
	}
	for id, record := range list {
		record.ObjectID = id
		record.State = record.state(id != "" && record.Checksum != sums[id])
		list[id] = record
	}
	return list
}

// state is the state of a component whose model is changed, or not.
func (c Component) state(changed bool) ComponentState {
	switch {
	case c.Outcome == OutcomeFailed:
		return ComponentFailed
	case len(c.Failures) > 0:
		return ComponentActionFailed
	case c.Outcome == OutcomeUnknown:
		return ComponentUnknown
	case c.Outcome == OutcomeNone && c.ObjectID != "":
		return ComponentNotDeployed
	case changed:
		return ComponentChanged
	}
	return ComponentReady
}

// Differs reports whether a component, as a draft has it, differs from its deployed model, where that is known.
func (c Component) Differs(component any) bool {
	return c.Checksum != "" && c.Checksum != checksum(component)
}

// In is the state of a component as a draft has it.
func (c Component) In(component any) ComponentState { return c.state(c.Differs(component)) }

// SameComponent reports whether two models of a component mean the same.
func SameComponent(a, b any) bool { return checksum(a) == checksum(b) }

// ComponentsOf are the components of a model, in the API's form, by their ids.
func ComponentsOf(objects map[string]any) map[string]map[string]any {
	components := map[string]map[string]any{}
	list, _ := objects["services"].([]any)
	for _, one := range list {
		component, _ := one.(map[string]any)
		header, _ := component["?"].(map[string]any)
		if id, _ := header["id"].(string); id != "" {
			components[id] = component
		}
	}
	return components
}

// EachObject calls do for each object in a value, each before the objects in it.
func EachObject(value any, do func(id string, object map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		if header, is := v["?"].(map[string]any); is {
			id, _ := header["id"].(string)
			do(id, v)
		}
		for key, inner := range v {
			if key != "?" {
				EachObject(inner, do)
			}
		}
	case []any:
		for _, inner := range v {
			EachObject(inner, do)
		}
	}
}

// checksum is a checksum of a component's model, with all that it holds. The methods that headers list, and all else that begins with "_" there, make no difference.
func checksum(component any) string {
	text, err := json.Marshal(essential(component))
	if err != nil {
		return "" // what cannot be written as JSON was never read from it
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func essential(value any) any {
	switch v := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, inner := range v {
			if header, is := inner.(map[string]any); key == "?" && is {
				kept := maps.Clone(header)
				maps.DeleteFunc(kept, func(name string, value any) bool { return strings.HasPrefix(name, "_") || value == nil })
				made[key] = kept
				continue
			}
			made[key] = essential(inner)
		}
		return made
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = essential(inner)
		}
		return list
	}
	return value
}

// replay makes the records of an environment that has none from the tasks that are stored: the last deployment, and the actions since. except is the id of a task that is left
// out, "" for none. What the tasks do not show is unknown.
func (s Components) replay(tx *gorm.DB, environmentID, except string) (map[string]Component, error) {
	var environment Environment
	if err := tx.WithContext(s.peeking(tx.Statement.Context)).Select("id", "version", "model").Where("id = ?", environmentID).Take(&environment).Error; err != nil {
		return nil, err
	}
	records := map[string]Component{}
	if environment.Version == 0 || environment.Model.ObjectsCopy == nil {
		return described(records, modelled(environment.Model.Objects).sums), nil
	}
	deployed := ForAPI(environment.Model.ObjectsCopy)
	if except != "" { // which has written its own model there
		deployed = environment.Model.Objects
	}
	var tasks []Task
	query := tx.Select("id", "environment_id", "action", "repair", "stage", "finished", "gone_errors").Order(taskOrder).Limit(replayed).
		Where("environment_id = ? AND id <> ? AND repair = ? AND finished IS NOT NULL AND stage <> ?", environmentID, except, false, Rejected)
	if err := query.Find(&tasks).Error; err != nil {
		return nil, err
	}
	after := modelled(deployed)
	last := slices.IndexFunc(tasks, func(task Task) bool { return task.Action.Method != "" && task.Action.ObjectID == environmentID })
	if last < 0 {
		last = len(tasks) - 1
		for id := range after.components {
			records[id] = Component{Outcome: OutcomeUnknown}
		}
		records[""] = Component{Outcome: OutcomeUnknown}
	}
	for _, task := range slices.Backward(tasks[:last+1]) {
		if task.Action.Method != "" {
			task.Objects = Document{} // else it would be a deletion
		}
		counts, err := countsOf(tx, task.ID)
		if err != nil {
			return nil, err
		}
		r := run{task: task, failed: counts.Errors > 0, ended: *task.Finished, after: after}
		if r.errors, err = errorsOf(tx, task.ID); err != nil {
			return nil, err
		}
		records = r.settle(records)
	}
	return described(records, modelled(environment.Model.Objects).sums), nil
}

// Complete makes the records of environments that have none, or that a server of a former version has changed since. It returns how many there were.
func (s Components) Complete(ctx context.Context) (completed int, err error) {
	var ids []string
	err = s.reading(ctx).Model(&Environment{}).Where("environments.version > 0").
		Where("NOT EXISTS (SELECT 1 FROM components WHERE components.environment_id = environments.id AND components.object_id = '' AND components.version = environments.version)").
		Where("NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.environment_id = environments.id AND tasks.finished IS NULL)"). // at whose end they are made
		Order("environments.id").Pluck("environments.id", &ids).Error
	errs := []error{err}
	for _, id := range ids { // one that cannot be read does not keep it from the others
		err := s.complete(ctx, id)
		if errs = append(errs, err); err == nil {
			completed++
		}
	}
	return completed, wrap(errors.Join(errs...), "record the states of components")
}

func (s Components) complete(ctx context.Context, id string) error {
	return s.transaction(ctx, "record the states of components", func(tx *gorm.DB) error {
		environment, err := idleEnvironment(tx, id)
		if errors.Is(err, gorm.ErrRecordNotFound) || errors.Is(err, ErrBusy) {
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := componentRows(tx, id)
		if err != nil || recordsOf(rows, environment.Version) != nil {
			return err
		}
		records, err := s.replay(tx, id, "")
		if err != nil {
			return err
		}
		return replaceComponents(tx, id, environment.Version, rows, records)
	})
}
