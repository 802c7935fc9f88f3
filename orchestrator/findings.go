package orchestrator

import (
	"context"
	"time"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/store"
)

// Finding is a problem in an environment.
type Finding struct {
	ID, EnvironmentID string
	Duty              string // the duty that found it
	ObjectID          string // of the model; "" for the environment
	Kind              string // words with dashes
	Subject           string // within the object, such as a node; "" for the object itself
	Severity          string // critical, warning, info
	Text, Mends       string
	Since             time.Time
	Closed            *time.Time // nil while it is open
	// Repairs is how many repairs were started, the last one by this deployment ("" for none); the next one is not
	// before NextRepair.
	Repairs    int64
	Deployment string
	NextRepair *time.Time
}

func seenFinding(row store.Finding) Finding {
	seen := Finding{ID: row.ID, EnvironmentID: row.EnvironmentID, Duty: row.Duty, ObjectID: row.ObjectID, Kind: row.Kind, Subject: row.Subject, Severity: row.Severity,
		Text: row.Text, Mends: row.Mends, Since: row.Opened.Time(), Repairs: row.Tries, Deployment: row.TaskID}
	if row.Closed != nil {
		closed := row.Closed.Time()
		seen.Closed = &closed
	}
	if row.NextTry != 0 && row.Closed == nil {
		next := row.NextTry.Time()
		seen.NextRepair = &next
	}
	return seen
}

// Findings lists the findings of the keeper.
type Findings struct{ *core }

// Findings are the findings of the keeper.
func (s *Service) Findings() Findings { return Findings{s.core} }

// Page is a part of an environment's findings, the worst first; with closed also former ones that are still stored. next is the marker of the
// next page, "" after the last one.
func (s Findings) Page(ctx context.Context, caller identity.Caller, environmentID string, closed bool, page store.Page) (list []Finding, next string, err error) {
	if _, err := s.environmentHead(ctx, caller, environmentID); err != nil {
		return nil, "", err
	}
	return s.page(ctx, store.FindingsOf{EnvironmentID: environmentID, Closed: closed}, page)
}

// ProjectPage is Page for all environments of the caller's project.
func (s Findings) ProjectPage(ctx context.Context, caller identity.Caller, closed bool, page store.Page) (list []Finding, next string, err error) {
	if caller.ProjectID == "" {
		return nil, "", errNoProject()
	}
	return s.page(ctx, store.FindingsOf{ProjectID: caller.ProjectID, Closed: closed}, page)
}

func (s Findings) page(ctx context.Context, of store.FindingsOf, page store.Page) (list []Finding, next string, err error) {
	rows, err := s.store.Findings().List(ctx, of, oneMore(page))
	if err != nil {
		return nil, "", pageFault(err, page)
	}
	rows, next = cut(rows, page, func(row store.Finding) string { return row.ID })
	list = make([]Finding, len(rows))
	for i, row := range rows {
		list[i] = seenFinding(row)
	}
	return list, next, nil
}
