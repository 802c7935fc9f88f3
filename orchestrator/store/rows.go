package store

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/door"
)

// Time is a row's time: microseconds since 1970, UTC.
type Time int64

// Time returns it as the standard library has it.
func (t Time) Time() time.Time { return time.UnixMicro(int64(t)).UTC() }

// Model is the stored state of an environment, or of a session's draft of it.
type Model struct {
	// Objects is the object model; nil in a session deletes the environment. Its applications are under the key "services",
	// as in the API.
	Objects map[string]any `json:"Objects"`
	// ObjectsCopy is the model that the engine last began to make: objects that are in it and no longer in Objects are
	// destroyed by the next deployment. nil when nothing was ever deployed.
	ObjectsCopy map[string]any `json:"ObjectsCopy,omitempty"`
	// Packages are the versions of packages, by their names, that the environment was deployed with.
	Packages map[string][]string `json:"Packages,omitempty"`
	// Back is, in a session, the state that it goes back to; nil for none.
	Back *Back `json:"Back,omitempty"`
	// MayDestroy are, in a session, the ids of objects that its user has removed one by one: the loss of their data is
	// intended.
	MayDestroy []string `json:"MayDestroy,omitempty"`
}

// Value writes the model as JSON (database/sql).
func (m Model) Value() (driver.Value, error) { return encode(m) }

// Scan reads the model from JSON (database/sql).
func (m *Model) Scan(source any) error {
	text, err := jsonColumn(source)
	if err != nil {
		return err
	}
	return m.UnmarshalJSON(text) // a decoder would read the text twice
}

// UnmarshalJSON keeps integers integers (int64): an object model distinguishes 1 from 1.0.
func (m *Model) UnmarshalJSON(text []byte) error {
	type plain Model
	var p plain
	if err := decodeNumbers(text, &p); err != nil {
		return err
	}
	m.Objects, _ = yaql.FromJSON(p.Objects).(map[string]any)
	m.ObjectsCopy, _ = yaql.FromJSON(p.ObjectsCopy).(map[string]any)
	m.Packages, m.MayDestroy, m.Back = p.Packages, p.MayDestroy, p.Back
	return nil
}

// ResultListed is the key in a task's result for the version that others than its caller see, where that differs.
const ResultListed = "listed"

// Document is one JSON object in a column; nil is null.
type Document map[string]any

// Value writes the document as JSON (database/sql).
func (d Document) Value() (driver.Value, error) { return encode(map[string]any(d)) }

// Scan reads the document from JSON (database/sql).
func (d *Document) Scan(source any) error {
	var m map[string]any
	if err := decode(source, &m); err != nil {
		return err
	}
	m, _ = yaql.FromJSON(m).(map[string]any)
	*d = m
	return nil
}

// Action is the method of an object that a task runs; the zero Action, null in the column, deletes the environment.
type Action struct {
	ObjectID string         `json:"object_id"`
	Method   string         `json:"method"`
	Args     map[string]any `json:"args"`
	// Allowed are the ids and names of objects whose loss the caller of a deployment allowed.
	Allowed []string `json:"allowed,omitempty"`
	// Plan is the token of the plan that its caller saw (preview.Plan); "" when there was none.
	Plan string `json:"plan,omitempty"`
}

// Value writes the action as JSON (database/sql).
func (a Action) Value() (driver.Value, error) {
	if a.Method == "" {
		return "null", nil
	}
	return encode(a)
}

// Scan reads the action from JSON (database/sql).
func (a *Action) Scan(source any) error { return decode(source, a) }

// Environment is a row of the table of that name.
type Environment struct {
	ID              string
	ProjectID       string
	Name            string
	DescriptionText string
	Version         int64
	Model           Model  `gorm:"serializer:sealed"`
	Trust           string // sealed; of a former version, see Delegation
	Fence           int64  // of the last taking of one of its tasks
	Created         Time
	Updated         Time
	Deleted         deletedAt // 0 while it is there
}

// Back is the environment with the versions of packages that a draft goes back to, if it does.
func (e Environment) Back(draft Model) Environment {
	if draft.Back != nil && draft.Back.Packages != nil {
		e.Model.Packages = draft.Back.Packages
	}
	return e
}

// State is the state of a session.
type State string

// The states, as Murano calls them.
const (
	Opened        State = "opened"
	Deploying     State = "deploying"
	Deployed      State = "deployed"
	DeployFailure State = "deploy failure"
	Deleting      State = "deleting"
	DeleteFailure State = "delete failure"
)

// Session is a draft of an environment's model.
type Session struct {
	ID            string
	EnvironmentID string
	UserID        string
	UserName      string // "" in sessions of former versions, and in sessions of actions
	State         State
	Version       int64 // the environment's when the session was opened
	Edited        *bool // whether its model differs from the environment's; nil in sessions of former versions
	Model         Model `gorm:"serializer:sealed"`
	Created       Time
	Updated       Time
}

// IsDraft reports whether the session can be edited and deployed, unless it is older than its environment. A session whose deployment was
// rejected can; every other failed one is older.
func (s Session) IsDraft() bool { return s.State == Opened || s.State == DeployFailure }

// MayDiffer reports whether the session is a draft of an environment with the version whose model may differ from the environment's.
func (s Session) MayDiffer(version int64) bool {
	return s.IsDraft() && s.Version >= version && (s.Edited == nil || *s.Edited)
}

// Task is one run of the engine over an environment: a deployment.
type Task struct {
	ID            string
	EnvironmentID string
	SessionID     string
	DelegationID  string // the delegation for its work; "" is its environment's Trust
	Worker        string // the process that holds it; "" when none does
	Fence         int64  // of the last taking; 0 when it was never taken
	LeaseUntil    Time   // by the database's clock
	Deaths        int64  // workers whose lease ran out since the last new step was done
	Alone         bool   // whether the worker runs nothing beside it
	AloneDeaths   int64  // how many of Deaths fell while it ran alone
	CancelledBy   string // the user who cancelled it; "" for none
	RequestID     string // of the call that submitted it; "" in tasks of versions without ids
	Repair        bool   // a keeper has started it: it has no session, and leaves version and drafts alone
	Origin        Origin // of a repair and a deletion the zero Origin
	Stage         Stage
	Action        Action   `gorm:"serializer:sealed"`
	Objects       Document `gorm:"serializer:sealed"` // with the applications under "applications", as the classes have them; nil for a deletion
	Result        Document `gorm:"serializer:sealed"`
	Created       Time
	Updated       Time
	Started       Time
	Finished      *Time
	GoneErrors    int64 // reports of that level that were left out or removed
	GoneWarnings  int64
	GoneReports   int64 // of all levels
}

// Stage is how far a task has come.
type Stage string

// The stages. A task of a former version, or an imported one, has begun.
const (
	Planned  Stage = "planned"  // nothing was touched yet
	Begun    Stage = "begun"    // the cloud or a node was changed, or is about to be
	Rejected Stage = "rejected" // it ended while it was planned: the environment is unchanged, and its session is a draft again
)

// Kind is the task's kind in a user's words: a deployment, an action, a deletion or a repair.
func (t Task) Kind() string {
	switch {
	case t.Objects == nil:
		return "deletion"
	case t.Repair:
		return "repair"
	case t.Action.ObjectID != t.EnvironmentID, t.Sleeps():
		return "action"
	}
	return "deployment"
}

// Report is one line of a task's log.
type Report struct {
	ID       string
	TaskID   string
	Number   int64
	EntityID *string // the object of the report; nil for the whole deployment
	Entity   *string // that object's class
	Level    string  // info, warning, error
	Text     string
	Details  *string
	Created  Time
}

// Step is one native step of a task.
type Step struct {
	ID       string
	TaskID   string
	ObjectID string
	Class    string
	Name     string
	Started  Time
	Finished *Time
	Error    string
	WaitsFor Names // steps of the same object
}

// Attribute is a value that a class keeps with one of its objects.
type Attribute struct {
	EnvironmentID string
	ObjectID      string
	Class         string
	Name          string
	Value         string `gorm:"serializer:sealed"` // JSON
}

// maxColumn is how many bytes a JSON column has, before it is sealed. Most stored values have bounds of their own with clear errors; this one is
// for the rest.
const maxColumn = 256 << 20

func encode(value any) (driver.Value, error) {
	if err := door.Written(value, maxColumn, "what is to be stored"); err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return string(text), nil
}

func decode(source, value any) error {
	text, err := jsonColumn(source)
	if err != nil {
		return err
	}
	return decodeNumbers(text, value)
}

func jsonColumn(source any) ([]byte, error) {
	switch text := source.(type) {
	case string:
		return []byte(text), nil
	case []byte:
		return text, nil
	}
	return nil, fmt.Errorf("a JSON column holds %T", source)
}

func decodeNumbers(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(value)
}
