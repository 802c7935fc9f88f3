package store

import (
	"context"
	"reflect"

	"gorm.io/gorm"
)

// Holder is the user whose draft a session is.
type Holder struct{ ID, Name string }

// Sessions reads and edits sessions.
type Sessions struct{ *handle }

// Sessions are the sessions of environments.
func (s *Store) Sessions() Sessions { return Sessions{s.handle} }

// Open makes a session with a copy of the environment's model, which is shared and must not be changed. ErrBusy while the environment is
// deploying or deleting, and a fault when the project has as many open ones as it may.
func (s Sessions) Open(ctx context.Context, environmentID string, holder Holder) (Session, error) {
	var session Session
	err := s.transaction(s.peeking(ctx), "open a session", func(tx *gorm.DB) error {
		var err error
		session, err = s.openDraft(tx, environmentID, holder)
		return err
	})
	return session, err
}

// openDraft opens a session for a user, unless the project has as many as it may. Sessions of actions and deletions do not count.
func (s Sessions) openDraft(tx *gorm.DB, environmentID string, holder Holder) (Session, error) {
	environment, err := idleEnvironment(tx, environmentID)
	if err == nil {
		err = s.quotas.Admit(tx, environment.ProjectID, QuotaSessions, 1)
	}
	if err != nil {
		return Session{}, err
	}
	return s.begin(tx, environment, holder)
}

func (s Sessions) open(tx *gorm.DB, environmentID, userID string) (Session, error) {
	environment, err := idleEnvironment(tx, environmentID)
	if err != nil {
		return Session{}, err
	}
	return s.begin(tx, environment, Holder{ID: userID})
}

// idleEnvironment returns an environment in which nothing runs, locked.
func idleEnvironment(tx *gorm.DB, environmentID string) (Environment, error) {
	var environment Environment
	if err := locked(tx).Where("id = ?", environmentID).Take(&environment).Error; err != nil {
		return environment, err
	}
	busy, err := isBusy(tx, environmentID)
	if err == nil && busy {
		err = ErrBusy
	}
	return environment, err
}

// begin makes a session with the environment's model.
func (s Sessions) begin(tx *gorm.DB, environment Environment, holder Holder) (Session, error) {
	now, edited := s.clock(), false
	session := Session{ID: NewID(), EnvironmentID: environment.ID, UserID: holder.ID, UserName: holder.Name, State: Opened, Version: environment.Version, Edited: &edited,
		Model: environment.Model, Created: now, Updated: now}
	return session, tx.Create(&session).Error
}

// isBusy reports whether a session of the environment is deploying or deleting.
func isBusy(tx *gorm.DB, environmentID string) (bool, error) {
	var count int64
	err := tx.Model(&Session{}).Where("environment_id = ? AND state IN ?", environmentID, []State{Deploying, Deleting}).Count(&count).Error
	return count > 0, err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Get returns the session, or ErrNotFound.
func (s Sessions) Get(ctx context.Context, id string) (Session, error) {
	return readOne[Session](s.reading(ctx).Where("id = ?", id), "read a session")
}

// List returns the environment's sessions without their models, oldest first.
func (s Sessions) List(ctx context.Context, environmentID string) ([]Session, error) {
	return readAll[Session](s.reading(ctx).Omit("model").Where("environment_id = ?", environmentID).Order("created, id"), "list sessions")
}

// Peek is Get for readers only: the result is shared, and must not be changed.
func (s Sessions) Peek(ctx context.Context, id string) (Session, error) {
	return s.remembered.sessions.Read(id, func() (Session, error) { return s.Get(s.peeking(ctx), id) })
}

// PeekList is List for readers only: the result is shared, and must not be changed.
func (s Sessions) PeekList(ctx context.Context, environmentID string) ([]Session, error) {
	return s.remembered.drafts.Read(environmentID, func() ([]Session, error) { return s.List(ctx, environmentID) })
}

// Delete removes the session; ErrBusy when it is deploying.
func (s Sessions) Delete(ctx context.Context, id string) error {
	return s.transaction(ctx, "delete a session", func(tx *gorm.DB) error {
		var session Session
		if err := locked(tx).Omit("model").Where("id = ?", id).Take(&session).Error; err != nil {
			return err
		}
		if session.State == Deploying || session.State == Deleting {
			return ErrBusy
		}
		return tx.Where("id = ?", id).Delete(&Session{}).Error
	})
}

// Edit lets edit change the session's model and stores it, unless edit returns an error, which it returns unchanged.
// ErrStale when the session is not open or older than the environment, or another session is deploying.
func (s Sessions) Edit(ctx context.Context, id string, edit func(model *Model) error) error {
	var edited error
	err := s.transaction(ctx, "edit a session", func(tx *gorm.DB) error {
		session, err := s.editable(tx, id)
		if err != nil {
			return err
		}
		if session.Model.Back != nil {
			session.Model.Back = &Back{Packages: session.Model.Back.Packages}
		}
		if edited = edit(&session.Model); edited != nil {
			return edited
		}
		var environment Environment
		if err := tx.WithContext(s.peeking(tx.Statement.Context)).Select("id", "model").Where("id = ?", session.EnvironmentID).Take(&environment).Error; err != nil {
			return err
		}
		edited := !reflect.DeepEqual(session.Model.Objects, environment.Model.Objects)
		return tx.Select("model", "edited", "updated").Where("id = ?", id).Updates(&Session{Model: session.Model, Edited: &edited, Updated: s.clock()}).Error
	})
	return firstError(edited, err)
}

// editable returns the session when it is a draft and up to date, else ErrStale.
func (s Sessions) editable(tx *gorm.DB, id string) (Session, error) {
	var session Session
	if err := tx.Select("id", "environment_id").Where("id = ?", id).Take(&session).Error; err != nil {
		return Session{}, err
	}
	var environment Environment
	if err := locked(tx).Select("id", "version").Where("id = ?", session.EnvironmentID).Take(&environment).Error; err != nil {
		return Session{}, err
	}
	// Read only now that no other process can change it.
	if err := locked(tx).Where("id = ?", id).Take(&session).Error; err != nil {
		return Session{}, err
	}
	busy, err := isBusy(tx, session.EnvironmentID)
	if err != nil {
		return Session{}, err
	}
	if !session.IsDraft() || environment.Version > session.Version || busy {
		return Session{}, ErrStale
	}
	return session, nil
}
