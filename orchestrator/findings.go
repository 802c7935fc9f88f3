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
	Remedies          []Remedy // the same for clients that word them
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
		Text: row.Text, Mends: row.Mends, Remedies: RemediesOf(row.Kind, row.Subject), Since: row.Opened.Time(), Repairs: row.Tries, Deployment: row.TaskID}
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

// Remedy is one way to mend a finding. Each client words it, and leads to it.
type Remedy struct {
	Kind string // words with dashes that never change, such as reboot-node
	Node string // the name of a node; "" for none
}

// The kinds of remedies. With remedyWait nothing is to be done: Burano, Kubernetes or the node goes on by itself.
const (
	remedyWait               = "wait"
	remedySetDelegation      = "set-delegation"
	remedyDeployAgain        = "deploy-again"
	remedyUnlockNode         = "unlock-node"
	remedyRebootNode         = "reboot-node"
	remedyReplaceNode        = "replace-node"
	remedyStartNode          = "start-node"
	remedyStartServer        = "start-server"
	remedyRepairServer       = "repair-server"
	remedyScale              = "scale"
	remedyMakeRoom           = "make-room"
	remedyRotate             = "rotate-certificates"
	remedyDeleteVolumes      = "delete-volumes"
	remedyDeleteSnapshots    = "delete-snapshots"
	remedyCorrectApplication = "correct-application"
	remedyLookAtDeployments  = "look-at-deployments"
	remedyBackUp             = "back-up"
	remedyWake               = "wake"
)

// remedies are the kinds of remedies by the kinds of findings.
var remedies = map[string][]string{
	"not-looked-at": {remedyWait}, "load-unknown": {remedyWait}, "connections-unknown": {remedyWait}, "drill-passed": {remedyWait}, "backup-unfinished": {remedyWait}, "claim-backup-due": {remedyWait},
	"claim-backup-failed": {remedyWait}, "node-out-of-service": {remedyWait}, "pods-held": {remedyWait, remedyStartNode}, "volumes-held": {remedyWait, remedyStartNode}, "volume-attachment-differs": {remedyWait},
	"server-without-key": {}, "no-delegation": {remedySetDelegation}, "volumes-undelegated": {remedySetDelegation}, "node-locked": {remedyUnlockNode},
	"node-unreachable": {remedyStartNode, remedyRebootNode, remedyReplaceNode}, "node-not-ready": {remedyDeployAgain, remedyRebootNode, remedyReplaceNode}, "member-silent": {remedyDeployAgain, remedyRebootNode},
	"etcd-unanswered": {remedyStartNode}, "api-unanswered": {remedyStartNode}, "volumes-unanswered": {remedyDeployAgain}, "sign-in-unanswered": {remedyWait, remedyDeployAgain}, "server-gone": {remedyDeployAgain}, "server-stopped": {remedyStartServer, remedyDeployAgain},
	"server-failed": {remedyRepairServer, remedyDeployAgain}, "server-not-active": {remedyStartServer}, "server-changed": {remedyDeployAgain}, "group-too-small": {remedyWait, remedySetDelegation},
	"too-few-gateways": {remedyWait, remedySetDelegation}, "too-many-gateways": {remedyWait, remedySetDelegation}, "group-too-large": {remedyWait, remedySetDelegation}, "pods-without-room": {remedyScale}, "container-crashes": {remedyCorrectApplication}, "snapshot-failed": {remedyWait, remedyDeleteSnapshots},
	"backup-due": {remedyWait, remedyLookAtDeployments}, "drill-left": {remedyWait, remedyLookAtDeployments}, "drill-failed": {remedyLookAtDeployments, remedyBackUp}, "volumes-left": {remedyDeleteVolumes},
	"volume-snapshots-left": {remedyDeleteVolumes}, "shares-left": {remedyDeleteVolumes}, "claims-unused": {remedyDeleteVolumes}, "etcd-space": {remedyWait, remedyMakeRoom}, "node-pressure": {remedyMakeRoom},
	"disk-nearly-full": {remedyMakeRoom}, "authority-ends": {remedyRotate}, "rotation-unfinished": {remedyRotate}, "hibernation-unfinished": {remedyWake}, "schedule-undelegated": {remedySetDelegation},
	"sleep-due": {remedyWait, remedyLookAtDeployments}, "wake-due": {remedyWait, remedyLookAtDeployments}, "sleep-missed": {remedyWait}, "certificates-end": {remedyWait, remedyDeployAgain},
}

// RemediesOf are the remedies of a finding by its kind and subject, in the order in which to try them; none for a kind without one.
func RemediesOf(kind, subject string) []Remedy {
	list := []Remedy{}
	for _, one := range remedies[kind] {
		remedy := Remedy{Kind: one}
		switch one {
		case remedyUnlockNode, remedyRebootNode, remedyReplaceNode, remedyStartNode:
			remedy.Node = subject
		}
		list = append(list, remedy)
	}
	return list
}
