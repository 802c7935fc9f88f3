package orchestrator

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/store"
)

// Session is a caller's view of a session.
type Session struct {
	ID, EnvironmentID, UserID, State string
	Version                          int64
	Created, Updated                 time.Time
}

func seenSession(row store.Session) Session {
	return Session{ID: row.ID, EnvironmentID: row.EnvironmentID, UserID: row.UserID, State: string(row.State), Version: row.Version,
		Created: row.Created.Time(), Updated: row.Updated.Time()}
}

// Sessions opens, deploys and discards drafts.
type Sessions struct{ *core }

// Sessions are the drafts of environments.
func (s *Service) Sessions() Sessions { return Sessions{s.core} }

// Open opens a session: a draft of the environment. Several can be open at once; the first that is deployed makes the
// others invalid.
func (s Sessions) Open(ctx context.Context, caller identity.Caller, environmentID string) (Session, error) {
	if _, err := s.environment(ctx, caller, environmentID); err != nil {
		return Session{}, err
	}
	row, err := s.store.Sessions().Open(ctx, environmentID, store.Holder{ID: caller.UserID, Name: caller.UserName})
	switch {
	case errors.Is(err, store.ErrBusy):
		return Session{}, errBusy(environmentID)
	case errors.Is(err, store.ErrNotFound):
		return Session{}, noEnvironment(environmentID)
	}
	return seenSession(row), err
}

// first returns the session and its environment. As in Murano, the session is checked before the environment: a session of
// another one is a fault of kind Invalid, even if there is no such environment.
func (s Sessions) first(ctx context.Context, caller identity.Caller, environmentID, id string) (store.Environment, store.Session, error) {
	session, err := s.session(ctx, environmentID, id)
	if err != nil {
		return store.Environment{}, session, err
	}
	environment, err := s.environment(ctx, caller, environmentID)
	return environment, session, err
}

// own returns the session when it belongs to the environment and the caller; even an admin may not see other users' sessions.
func (s Sessions) own(ctx context.Context, caller identity.Caller, environmentID, id string) (store.Environment, store.Session, error) {
	environment, session, err := s.first(ctx, caller, environmentID, id)
	if err != nil {
		return environment, session, err
	}
	if session.UserID != caller.UserID {
		return environment, session, fault.New(fault.Unauthorized, "User <UserId %s> is not authorized to access session <SessionId %s>.", caller.UserID, id)
	}
	return environment, session, nil
}

// Get shows a session; one that is invalid is a fault of kind Forbidden.
func (s Sessions) Get(ctx context.Context, caller identity.Caller, environmentID, id string) (Session, error) {
	environment, session, err := s.own(ctx, caller, environmentID, id)
	if err != nil {
		return Session{}, err
	}
	if err := s.checkValid(ctx, environment, session); err != nil {
		return Session{}, err
	}
	return seenSession(session), nil
}

// Draft is an open session, or one whose deployment was rejected, without the parts that other members of the project
// may not see.
type Draft struct {
	Session
	UserName string // "" where it is not known
	Own      bool   // the caller's; others' drafts have no ID here, since it would let the caller read them
	Outdated bool   // it can no longer be deployed: another draft was deployed, or is being deployed
	Rejected bool   // its deployment was rejected, before it changed anything
}

// Drafts lists the drafts of an environment, oldest first.
func (s Sessions) Drafts(ctx context.Context, caller identity.Caller, environmentID string) ([]Draft, error) {
	environment, err := s.environmentHead(ctx, caller, environmentID)
	if err != nil {
		return nil, err
	}
	sessions, err := s.store.Sessions().PeekList(ctx, environmentID)
	if err != nil {
		return nil, err
	}
	drafts := []Draft{}
	for _, row := range sessions {
		if row.State != store.Opened && (row.State != store.DeployFailure || environment.Version > row.Version) {
			continue
		}
		draft := Draft{Session: seenSession(row), UserName: row.UserName, Own: row.UserID == caller.UserID, Outdated: !valid(environment, row, sessions),
			Rejected: row.State == store.DeployFailure}
		if !draft.Own {
			draft.ID = ""
		}
		drafts = append(drafts, draft)
	}
	return drafts, nil
}

func (s Sessions) checkValid(ctx context.Context, environment store.Environment, session store.Session) error {
	sessions, err := s.store.Sessions().PeekList(ctx, environment.ID)
	if err != nil {
		return err
	}
	if !valid(environment, session, sessions) {
		return staleSession(session.ID)
	}
	return nil
}

// Delete throws a draft away.
func (s Sessions) Delete(ctx context.Context, caller identity.Caller, environmentID, id string) error {
	if _, _, err := s.own(ctx, caller, environmentID, id); err != nil {
		return err
	}
	err := s.store.Sessions().Delete(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noSession(id)
	case errors.Is(err, store.ErrBusy):
		return fault.New(fault.Forbidden, "Session <SessionId %s> is in deploying state and could not be deleted", id)
	}
	return err
}

// Confirmed is the plan that the caller of a deployment has seen, and the losses that it allows.
type Confirmed struct {
	// MayDestroy are ids and names of clusters that may go, and of pods and claims whose data may lose its application.
	MayDestroy []string
	// Plan is the token of the plan that was shown; "" when none was.
	Plan string
}

// Deploy deploys the session's model. It answers when the task is written; the engine runs it. Losses must be allowed, or their objects were removed from the
// draft one by one. Where a plan was shown, the deployment does nothing else.
func (s Sessions) Deploy(ctx context.Context, caller identity.Caller, environmentID, sessionID string, confirmed ...Confirmed) error {
	return s.DeployFile(ctx, caller, environmentID, sessionID, File{}, confirmed...)
}

// File is the file from which a session's draft was made; the zero File for none.
type File struct {
	Name   string
	Digest string // SHA-256, in hexadecimal
}

// maxFileName is the longest name of a file, in characters.
const maxFileName = 255

var digestForm = regexp.MustCompile(`^([0-9a-f]{64})?$`)

// DeployFile is Deploy of a draft that was made from a file, which the history names.
func (s Sessions) DeployFile(ctx context.Context, caller identity.Caller, environmentID, sessionID string, file File, options ...Confirmed) error {
	if utf8.RuneCountInString(file.Name) > maxFileName || !digestForm.MatchString(file.Digest) {
		return fault.New(fault.Invalid, "The name of a file has at most %d characters, and its digest is a SHA-256 of 64 hexadecimal digits", maxFileName)
	}
	var confirmed Confirmed
	if len(options) > 0 {
		confirmed = options[0]
	}
	environment, session, err := s.first(ctx, caller, environmentID, sessionID)
	if err != nil {
		return err
	}
	if err := s.checkValid(ctx, environment, session); err != nil {
		return err
	}
	if !session.IsDraft() {
		return fault.New(fault.Forbidden, "Session <SessionId %s> is already deployed or deployment is in progress", sessionID)
	}
	allowed := slices.Concat(session.Model.MayDestroy, confirmed.MayDestroy)
	destroyed := preview.DestroyedClusters(store.ForAPI(environment.Model.ObjectsCopy), session.Model.Objects)
	destroyed = slices.DeleteFunc(destroyed, func(one preview.Object) bool {
		return slices.Contains(allowed, one.ID) || one.Name != "" && slices.Contains(allowed, one.Name)
	})
	if len(destroyed) > 0 {
		return destroys(destroyed)
	}
	if err := s.confirm(ctx, caller, environment, session, allowed, confirmed.Plan); err != nil {
		return err
	}
	delegation, err := Delegations(s).delegate(ctx, caller, environment)
	if err != nil {
		return err
	}
	_, err = s.store.Tasks().Submit(ctx, store.Submission{
		SessionID: sessionID,
		Action:    store.Action{ObjectID: environmentID, Method: "deploy", Args: map[string]any{}, Allowed: allowed, Plan: confirmed.Plan},
		Text:      "Action deploy is scheduled",
		Origin:    store.Origin{UserID: caller.UserID, UserName: caller.UserName, File: file.Name, Digest: file.Digest},

		DelegationID: delegation.ID,
	})
	if err != nil {
		Delegations(s).giveBack(ctx, delegation)
		return editedSession(revoked(err), sessionID)
	}
	s.engine.Wake()
	return nil
}

// confirm refuses a deployment with losses that are not allowed, or with more effects than the plan that was shown. Its task checks again: here the answer comes at
// once. Errors in the model, and open questions, are left to the task, as in Murano.
func (s Sessions) confirm(ctx context.Context, caller identity.Caller, environment store.Environment, session store.Session, allowed []string, token string) error {
	after := store.ForClasses(environment.ID, store.Copy(session.Model.Objects))
	plan, err := s.engine.Plan(ctx, environment.Back(session.Model), after, s.taskProject(caller, environment), false)
	if err != nil {
		return nil
	}
	return plan.Unconfirmed(allowed, token)
}
