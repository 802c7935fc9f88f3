package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/sensitive"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// History shows the states of an environment after its deployments and actions, compares them, and goes back to one.
type History struct {
	service *Service
	states  store.States
}

// History returns the history of environments.
func (s *Service) History() History { return History{s, s.store.States()} }

// State is a caller's view of a state.
type State struct {
	Number     int64
	Deployment string // id of the task, which may be gone; "" where it is not known
	ObjectID   string // the object whose method has run
	Method     string // deploy, or an action's method; "" where it is not known
	UserID     string
	UserName   string
	File       File
	Back       int64 // the state that it went back to; 0 for none
	Parts      store.Parts
	Bytes      int64
	Created    time.Time
}

func seenState(row store.PastState) State {
	return State{Number: row.Number, Deployment: row.TaskID, ObjectID: row.ObjectID, Method: row.Method, UserID: row.Origin.UserID, UserName: row.Origin.UserName,
		File: File{row.Origin.File, row.Origin.Digest}, Back: row.Origin.State, Parts: row.Parts, Bytes: row.Bytes, Created: row.Created.Time()}
}

func submitter(caller identity.Caller) store.Origin {
	return store.Origin{UserID: caller.UserID, UserName: caller.UserName}
}

// States lists the states of an environment, the newest first. present is the number of its present state; 0 during a change, and after a deployment or
// an action that failed.
func (h History) States(ctx context.Context, caller identity.Caller, environmentID string) (list []State, present int64, err error) {
	_, sessions, err := h.service.withSessions(ctx, caller, environmentID)
	if err != nil {
		return nil, 0, err
	}
	rows, err := h.states.List(ctx, environmentID)
	if err != nil {
		return nil, 0, err
	}
	list = make([]State, len(rows))
	for i, row := range rows {
		list[i] = seenState(row)
	}
	if now, _ := status(sessions); len(list) > 0 && (now == "ready" || now == "pending") {
		present = list[0].Number
	}
	return list, present, nil
}

// State shows a state with its model; secrets are masked.
func (h History) State(ctx context.Context, caller identity.Caller, environmentID string, number int64) (State, map[string]any, error) {
	environment, err := h.service.environment(ctx, caller, environmentID)
	if err != nil {
		return State{}, nil, err
	}
	row, model, err := h.content(ctx, environment, number)
	if err != nil {
		return State{}, nil, err
	}
	return seenState(row), h.masked(ctx, environment, model, secret.Masked, mark), nil
}

func mark(string) string { return secret.Mark }

// content reads a state and its model. The objects of the model have the API's form.
func (h History) content(ctx context.Context, environment store.Environment, number int64) (store.PastState, store.Model, error) {
	row, err := h.states.State(ctx, environment.ID, number)
	if errors.Is(err, store.ErrNotFound) {
		return row, store.Model{}, fault.New(fault.NotFound, "Environment %s has no state %d, or has it no longer: `burano environment history` lists its states", environment.Name, number)
	}
	if err != nil {
		return row, store.Model{}, err
	}
	model, err := row.Content()
	model.Objects = store.ForAPI(model.ObjectsCopy)
	return row, model, err
}

// masked is a model in which hide has replaced the values that its classes declare as secrets, and found the texts that are secrets by
// their names.
func (h History) masked(ctx context.Context, environment store.Environment, model store.Model, hide func(any) any, found func(string) string) map[string]any {
	environment.Model.Packages = model.Packages
	shown, _ := h.service.hidden(ctx, environment, model.Objects, hide).(map[string]any)
	answer, _ := sensitive.Texts("", shown, found).(map[string]any)
	return answer
}

// PartChange is a package or an image that differs between two states; "" where it is missing.
type PartChange struct{ Name, Before, After string }

// Difference is the difference between two states.
type Difference struct {
	Changes  []preview.Change
	Packages []PartChange // by versions
	Images   []PartChange // by ids
}

// Diff compares two states of an environment; 0 is the environment as it is now. Secrets are masked.
func (h History) Diff(ctx context.Context, caller identity.Caller, environmentID string, from, to int64) (Difference, error) {
	environment, err := h.service.environment(ctx, caller, environmentID)
	if err != nil {
		return Difference{}, err
	}
	var sides [2]store.Model
	var rows [2]store.PastState
	for i, number := range []int64{from, to} {
		if number == 0 {
			list, err := h.states.List(ctx, environmentID)
			if err != nil {
				return Difference{}, err
			}
			sides[i] = environment.Model
			if len(list) > 0 {
				rows[i].Parts = list[0].Parts
			}
		} else if rows[i], sides[i], err = h.content(ctx, environment, number); err != nil {
			return Difference{}, err
		}
	}
	environment.Model.Packages = sides[1].Packages
	computed := h.computed(ctx, environment, sides[1])
	difference := Difference{Changes: preview.Changes(sides[0].Objects, sides[1].Objects, computed)}
	h.service.Previews().maskChanges(ctx, environment, difference.Changes, sides[0].Objects, sides[1].Objects)
	difference.Packages = differ(packageTexts(rows[0].Parts), packageTexts(rows[1].Parts))
	difference.Images = differ(imageTexts(rows[0].Parts), imageTexts(rows[1].Parts))
	return difference, nil
}

// computed are the computed properties of a model, by the objects' ids; nil where the model cannot be read.
func (h History) computed(ctx context.Context, environment store.Environment, model store.Model) map[string][]string {
	_, computed, _ := h.service.engine.Check(ctx, environment.ProjectID, model.Packages, store.ForClasses(environment.ID, store.Copy(model.Objects)))
	return computed
}

func packageTexts(parts store.Parts) map[string]string {
	texts := map[string]string{}
	for _, one := range parts.Packages {
		text := one.Version
		if one.ID != "" {
			text += " (" + one.ID + ")"
		}
		texts[one.Name] = strings.TrimPrefix(texts[one.Name]+", "+text, ", ")
	}
	return texts
}

func imageTexts(parts store.Parts) map[string]string {
	texts := map[string]string{}
	for _, one := range parts.Images {
		texts[one.Name] = cmp.Or(one.ID, one.Name)
	}
	return texts
}

func differ(before, after map[string]string) []PartChange {
	list := []PartChange{}
	for name, was := range before {
		if is := after[name]; is != was {
			list = append(list, PartChange{name, was, is})
		}
	}
	for name, is := range after {
		if _, had := before[name]; !had {
			list = append(list, PartChange{name, "", is})
		}
	}
	slices.SortFunc(list, func(a, b PartChange) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Back opens a session with the model of a former state, which is previewed and deployed like any session. Secrets are the present ones, and the former
// ones where there is none now or then is set. Notes are sentences for the user.
func (h History) Back(ctx context.Context, caller identity.Caller, environmentID string, number int64, then bool) (session Session, notes []string, err error) {
	s := h.service
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return Session{}, nil, err
	}
	row, model, err := h.content(ctx, environment, number)
	if err != nil {
		return Session{}, nil, err
	}
	there, missing, err := s.engine.Packages(ctx, environment.ProjectID, model.Packages)
	if err != nil {
		return Session{}, nil, err
	}
	if len(missing) > 0 {
		return Session{}, nil, fault.New(fault.Conflict, "State %d was deployed with packages that the catalog no longer has: %s. Import them again, or deploy its file with the packages of today: burano environment export --state %d",
			number, strings.Join(partTexts(missing), ", "), number)
	}
	objects := h.present(ctx, environment, model)
	if !then {
		was := store.Copy(objects)
		model.Objects = objects
		objects = h.masked(ctx, environment, model, secret.Masked, mark)
		if err := secret.Unmask(objects, environment.Model.Objects, environment.Model.ObjectsCopy, was); err != nil {
			return Session{}, nil, err
		}
	}
	if keepOrder(environment.Model.ObjectsCopy, objects); environment.Model.ObjectsCopy == nil {
		keepOrder(environment.Model.Objects, objects)
	}
	session, err = s.Sessions().Open(ctx, caller, environmentID)
	if err != nil {
		return Session{}, nil, err
	}
	err = s.store.Sessions().Edit(ctx, session.ID, func(draft *store.Model) error {
		draft.Objects, draft.Back = objects, &store.Back{State: row.Number, Packages: model.Packages}
		return nil
	})
	if err != nil {
		return Session{}, nil, errors.Join(editedSession(err, session.ID), s.Sessions().Delete(context.WithoutCancel(ctx), caller, environmentID, session.ID))
	}
	return session, uploadedAgain(row.Parts.Packages, there), nil
}

func partTexts(parts []store.PackagePart) []string {
	texts := make([]string, len(parts))
	for i, one := range parts {
		texts[i] = one.Name + " " + one.Version
	}
	return texts
}

// uploadedAgain notes packages that were uploaded again since.
func uploadedAgain(were, are []store.PackagePart) (notes []string) {
	for _, was := range were {
		for _, is := range are {
			if is.Name == was.Name && is.Version == was.Version && is.ID != was.ID && was.ID != "" {
				notes = append(notes, fmt.Sprintf("package %s %s was uploaded again since: it may do other things now", was.Name, was.Version))
			}
		}
	}
	return notes
}

// present is the model of a former state, with the properties that code has computed since for existing objects, and without computed properties of other
// objects.
func (h History) present(ctx context.Context, environment store.Environment, model store.Model) map[string]any {
	objects := store.Copy(model.Objects)
	computed := h.computed(ctx, environment, model)
	had := map[string]map[string]any{}
	store.EachObject(environment.Model.Objects, func(id string, object map[string]any) { had[id] = object })
	store.EachObject(objects, func(id string, object map[string]any) {
		for _, name := range computed[id] {
			if value, there := had[id][name]; there {
				object[name] = store.Copy(map[string]any{"": value})[""]
			} else {
				delete(object, name)
			}
		}
	})
	return objects
}

// Discard takes back an edit whose deployment was refused before anything of it was made: the environment's model is again the last deployed one.
// It reports whether there was such an edit.
func (h History) Discard(ctx context.Context, caller identity.Caller, environmentID string) (discarded bool, err error) {
	if _, err := h.service.environmentHead(ctx, caller, environmentID); err != nil {
		return false, err
	}
	discarded, err = h.states.Discard(ctx, environmentID)
	switch {
	case errors.Is(err, store.ErrBusy):
		return false, errBusy(environmentID)
	case errors.Is(err, store.ErrNotFound):
		return false, noEnvironment(environmentID)
	}
	return discarded, err
}
