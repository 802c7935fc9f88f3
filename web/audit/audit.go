// Package audit records the actions of users: CADF events (DMTF DSP0262), as lines of a file and as rows that can be listed.
package audit

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/gate"
)

// Event is a CADF event (https://www.dmtf.org/standards/cadf). It contains nothing of request or answer bodies.
type Event struct {
	TypeURI   string    `json:"typeURI"`
	ID        string    `json:"id"`
	EventType string    `json:"eventType"`
	EventTime string    `json:"eventTime"`
	Action    string    `json:"action"`
	Outcome   string    `json:"outcome"`
	Reason    Reason    `json:"reason"`
	Initiator Initiator `json:"initiator"`
	Target    Resource  `json:"target"`
	Observer  Resource  `json:"observer"`
	Request   string    `json:"requestPath"` // method and path
	RequestID string    `json:"requestId"`

	Attachments []Attachment `json:"attachments,omitempty"`
}

// Attachment has data without a field in CADF: the number of calls of an event.
type Attachment struct {
	TypeURI string `json:"typeURI"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

// Reason is how the call was answered.
type Reason struct {
	Type string `json:"reasonType"`
	Code string `json:"reasonCode"`
}

// Initiator is the caller. Without an id the caller is unknown.
type Initiator struct {
	TypeURI   string `json:"typeURI"`
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	ProjectID string `json:"project_id,omitempty"`
	// Credential is the id of an application credential.
	Credential string `json:"credential,omitempty"`
	Host       Host   `json:"host"`
}

// Host is where a call came from.
type Host struct {
	Address string `json:"address"`
	Agent   string `json:"agent,omitempty"`
}

// Resource is the target of a call, or its observer.
type Resource struct {
	TypeURI string `json:"typeURI"`
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
}

// The words of CADF that Burano uses.
const (
	eventTypeURI  = "http://schemas.dmtf.org/cloud/audit/1.0/event"
	activity      = "activity"
	UserTypeURI   = "service/security/account/user"
	ServiceURI    = "service/application-catalog"
	Success       = "success"
	Failure       = "failure"
	timeForm      = "2006-01-02T15:04:05.000000-0700"
	reasonForHTTP = "HTTP"
)

// Rows keep events (store.Audit).
type Rows interface {
	AddAuditEvents(ctx context.Context, events []store.AuditEvent) error
	RemoveAuditEvents(ctx context.Context, before store.Time, atMost int) (int64, error)
	RemoveFurtherAuditEvents(ctx context.Context, keep, atMost int) (int64, error)
}

// Config has the targets of a Log.
type Config struct {
	Lines    io.Writer // nil: none are written
	Rows     Rows
	Keep     time.Duration // how long rows stay; 0 writes none
	Most     int           // stored rows of a project, and of unknown callers; 0: any number
	Observer string        // the name of this server
	Now      func() time.Time
	Logger   *slog.Logger
}

const (
	// often is how long rows wait to be written together.
	often = 200 * time.Millisecond
	// most is how many rows wait at most while the database is away; later ones are in the lines only.
	most = 10_000
	// sweepEvery is how often old rows are removed, sweepBatch at a time.
	sweepEvery = time.Hour
	sweepBatch = 500
	// lastPatience is how long the rows that wait may take to be written when the server ends.
	lastPatience = 5 * time.Second
)

// Log is the audit log. It is safe for concurrent use.
type Log struct {
	Config

	strangers *gate.Sample

	lines   sync.Mutex
	mutex   sync.Mutex
	waiting []store.AuditEvent
	lost    int64
}

// ofStrangers are the calls of unknown callers that have an event each. Further ones are counted, and have one event for each address.
var ofStrangers = gate.SampleOf{Each: 20, All: 200, Span: 5 * time.Minute}

// Maximum bytes of an event's texts from the caller.
const (
	maxWord = 256
	maxPath = 512
)

// New makes a Log.
func New(config Config) *Log {
	return &Log{Config: config, strangers: gate.NewSample(ofStrangers, config.Now)}
}

// Record adds an event. Its line is written at once, its row soon. The caller's texts are cut, and of many calls of unknown callers only some have an
// event.
func (l *Log) Record(ctx context.Context, event Event, statusCode string) {
	if event.Initiator.ID == "" && !l.strangers.Let(event.Initiator.Host.Address) {
		return
	}
	for _, word := range []*string{&event.Action, &event.Initiator.Name, &event.Initiator.Host.Address, &event.Initiator.Host.Agent, &event.Target.ID, &event.Target.Name} {
		*word = door.Cut(*word, maxWord)
	}
	event.Request = door.Cut(event.Request, maxPath)
	l.record(ctx, event, statusCode)
}

// recordLeft adds the events of calls that had none.
func (l *Log) recordLeft(ctx context.Context, all bool) {
	for _, left := range l.strangers.Left(all) {
		l.record(ctx, Event{Action: "read", Outcome: Failure, Initiator: Initiator{TypeURI: UserTypeURI, Host: Host{Address: left.Address}}, Target: Resource{TypeURI: ServiceURI},
			Attachments: []Attachment{{TypeURI: "xs:integer", Name: "further calls since " + left.Since.UTC().Format(time.RFC3339), Content: strconv.FormatInt(left.Events, 10)}}}, "")
	}
}

func (l *Log) record(ctx context.Context, event Event, statusCode string) {
	now := l.Now().UTC()
	event.TypeURI, event.EventType, event.EventTime = eventTypeURI, activity, now.Format(timeForm)
	event.ID = store.NewID()
	event.Reason = Reason{Type: reasonForHTTP, Code: statusCode}
	event.Observer = Resource{TypeURI: ServiceURI, ID: l.Observer, Name: "burano"}
	text, err := json.Marshal(event)
	if err != nil {
		l.Logger.ErrorContext(ctx, "an audit event cannot be written", "error", err) // texts can be
		return
	}
	if l.Lines != nil {
		l.lines.Lock()
		_, err := l.Lines.Write(append(text, '\n'))
		l.lines.Unlock()
		if err != nil {
			l.Logger.ErrorContext(ctx, "a line of the audit log was not written", "error", err, "event", string(text))
		}
	}
	if l.Keep <= 0 {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if len(l.waiting) >= most {
		l.lost++
		return
	}
	l.waiting = append(l.waiting, store.AuditEvent{ID: event.ID, ProjectID: event.Initiator.ProjectID, UserID: event.Initiator.ID, Action: event.Action,
		TargetID: event.Target.ID, Outcome: event.Outcome, RequestID: event.RequestID, Event: string(text), Created: store.Time(now.UnixMicro())})
}

// Start begins to write rows, and to remove old ones. stop writes the waiting ones.
func (l *Log) Start() (stop func()) {
	if l.Keep <= 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (l *Log) run(ctx context.Context) {
	write, sweep := time.NewTicker(often), time.NewTicker(sweepEvery)
	defer write.Stop()
	defer sweep.Stop()
	l.sweep(ctx)
	for {
		select {
		case <-ctx.Done():
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastPatience)
			defer cancel()
			l.recordLeft(ending, true)
			l.write(ending)
			return
		case <-write.C:
			l.recordLeft(ctx, false)
			l.write(ctx)
		case <-sweep.C:
			l.sweep(ctx)
		}
	}
}

func (l *Log) write(ctx context.Context) {
	l.mutex.Lock()
	events, lost := l.waiting, l.lost
	l.waiting, l.lost = nil, 0
	l.mutex.Unlock()
	if lost > 0 {
		l.Logger.ErrorContext(ctx, "audit events were not kept in the database, which did not take them", "events", lost)
	}
	if err := l.Rows.AddAuditEvents(ctx, events); err != nil {
		l.Logger.WarnContext(ctx, "audit events wait for the database", "events", len(events), "error", err)
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.waiting = append(events, l.waiting...)
	}
}

func (l *Log) sweep(ctx context.Context) {
	before := store.Time(l.Now().Add(-l.Keep).UTC().UnixMicro())
	l.remove(ctx, func() (int64, error) { return l.Rows.RemoveAuditEvents(ctx, before, sweepBatch) })
	if l.Most > 0 {
		l.remove(ctx, func() (int64, error) { return l.Rows.RemoveFurtherAuditEvents(ctx, l.Most, sweepBatch) })
	}
}

// remove removes events, a batch at a time.
func (l *Log) remove(ctx context.Context, batch func() (int64, error)) {
	for {
		removed, err := batch()
		if err != nil && ctx.Err() == nil {
			l.Logger.WarnContext(ctx, "old audit events stay for now", "error", err)
		}
		if err != nil || removed < sweepBatch {
			return
		}
	}
}
