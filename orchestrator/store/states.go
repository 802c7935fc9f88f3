package store

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql/driver"
	"encoding/base64"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/door"
)

// Origin is the submitter of a task, and the file or former state that it deploys.
type Origin struct {
	UserID   string `json:"user_id,omitempty"`
	UserName string `json:"user_name,omitempty"`
	File     string `json:"file,omitempty"`   // name of the file
	Digest   string `json:"digest,omitempty"` // SHA-256 of the file, in hexadecimal
	Back
}

// Back is the state that a draft goes back to.
type Back struct {
	State int64 `json:"state,omitempty"` // number of the state; 0 for none, or where the draft was changed after that
	// Packages are the versions of packages to use first, by their names; nil for the versions that the environment was
	// deployed with.
	Packages map[string][]string `json:"packages,omitempty"`
}

// Value writes the origin as JSON (database/sql).
func (o Origin) Value() (driver.Value, error) { return encode(o) }

// Scan reads the origin from JSON (database/sql). Tasks of former versions have none.
func (o *Origin) Scan(source any) error {
	text, err := jsonColumn(source)
	if err != nil || len(text) == 0 {
		return err
	}
	return decodeNumbers(text, o)
}

// Parts are the packages and images that a state was made with.
type Parts struct {
	Packages []PackagePart `json:"packages,omitempty"`
	Images   []ImagePart   `json:"images,omitempty"`
}

// PackagePart is a version of a package.
type PackagePart struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	ID      string `json:"id,omitempty"` // in the catalog; "" where it is not known
}

// ImagePart is an image of servers.
type ImagePart struct {
	Name string `json:"name"`         // as the model has it: a name or an id
	ID   string `json:"id,omitempty"` // in Glance; "" where it is not known
}

// Value writes the parts as JSON (database/sql).
func (p Parts) Value() (driver.Value, error) { return encode(p) }

// Scan reads the parts from JSON (database/sql).
func (p *Parts) Scan(source any) error { return decode(source, p) }

// PastState is the state of an environment after a deployment or an action that succeeded.
type PastState struct {
	EnvironmentID string
	Number        int64  // from 1
	TaskID        string // the task may be gone; "" where it is not known
	ObjectID      string // the object whose method has run
	Method        string
	Origin        Origin
	Parts         Parts
	Bytes         int64 // of the model, compressed
	Created       Time
	Model         packed `gorm:"serializer:sealed"`
}

// TableName is where gorm looks.
func (PastState) TableName() string { return "states" }

// Content is the model of the state: ObjectsCopy and Packages.
func (s PastState) Content() (Model, error) {
	var model Model
	err := model.UnmarshalJSON(s.Model)
	return model, err
}

// packed is JSON whose column is compressed.
type packed []byte

// compressors are kept because each takes most of a megabyte.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Value compresses (database/sql).
func (p packed) Value() (driver.Value, error) {
	var text strings.Builder
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	writer := compressors.Get().(*gzip.Writer)
	defer compressors.Put(writer)
	writer.Reset(encoder)
	_, err := writer.Write(p)
	err = errors.Join(err, writer.Close(), encoder.Close())
	writer.Reset(nil)
	return text.String(), err
}

// Scan decompresses (database/sql).
func (p *packed) Scan(source any) error {
	text, err := jsonColumn(source)
	if err != nil {
		return err
	}
	reader, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text)))
	if err != nil {
		return err
	}
	*p, err = door.ReadAll(reader, maxColumn, "the model of a state")
	return err
}

// States reads the states of environments.
type States struct{ *handle }

// States are the former states of environments.
func (s *Store) States() States { return States{s.handle} }

// List returns the states of an environment without their models, the newest first.
func (s States) List(ctx context.Context, environmentID string) ([]PastState, error) {
	return readAll[PastState](s.reading(ctx).Omit("model").Where("environment_id = ?", environmentID).Order("number DESC"), "list states")
}

// State returns one state; ErrNotFound.
func (s States) State(ctx context.Context, environmentID string, number int64) (PastState, error) {
	return readOne[PastState](s.reading(ctx).Where("environment_id = ? AND number = ?", environmentID, number), "read a state")
}

// Discard resets the model of an environment to the last deployed one, and reports whether they differed: an edit that was refused before
// anything of it was made. ErrBusy while the environment is deploying or deleting.
func (s States) Discard(ctx context.Context, environmentID string) (discarded bool, err error) {
	err = s.transaction(ctx, "discard a refused edit", func(tx *gorm.DB) error {
		discarded = false
		environment, err := idleEnvironment(tx, environmentID)
		if err != nil || environment.Model.ObjectsCopy == nil {
			return err
		}
		deployed := ForAPI(environment.Model.ObjectsCopy)
		is, err := encode(ForAPI(ForClasses(environmentID, environment.Model.Objects)))
		if err != nil {
			return err
		}
		was, err := encode(deployed)
		if err != nil || is == was {
			return err
		}
		discarded = true
		environment.Model.Objects = withActions(deployed, environment.Model.Objects)
		if err := (Components(s)).remodelled(tx, environment, environment.Model); err != nil {
			return err
		}
		return tx.Select("model", "version", "updated").Where("id = ?", environmentID).
			Updates(&Environment{Model: environment.Model, Version: environment.Version + 1, Updated: s.clock()}).Error
	})
	return discarded, err
}

// past writes the states of an environment.
type past struct {
	tx            *gorm.DB
	environmentID string
}

// newest returns the newest state; the zero PastState when there is none.
func (p past) newest() (PastState, error) {
	var state PastState
	err := p.tx.Where("environment_id = ?", p.environmentID).Order("number DESC").Take(&state).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return PastState{}, nil
	}
	return state, err
}

// begin stores the state before a task as the first one, where a former version, which stored none, has deployed the environment. Objects are the
// environment's own.
func (p past) begin(task Task) (PastState, error) {
	newest, err := p.newest()
	if err != nil || newest.Number > 0 {
		return newest, err
	}
	var former Session
	err = p.tx.Omit("model").Where("environment_id = ? AND id <> ? AND state IN ?", p.environmentID, task.SessionID, []State{Deployed, DeployFailure, DeleteFailure}).
		Order("version DESC, updated DESC").Take(&former).Error
	if errors.Is(err, gorm.ErrRecordNotFound) || err == nil && former.State != Deployed {
		return PastState{}, nil
	}
	if err != nil {
		return PastState{}, err
	}
	var environment Environment
	if err := p.tx.Select("id", "model").Where("id = ?", p.environmentID).Take(&environment).Error; err != nil {
		return PastState{}, err
	}
	if environment.Model.Objects == nil {
		return PastState{}, nil
	}
	return p.add(PastState{Origin: Origin{UserID: former.UserID, UserName: former.UserName}, Created: former.Updated},
		Model{ObjectsCopy: ForClasses(environment.ID, environment.Model.Objects), Packages: environment.Model.Packages})
}

// add keeps a state with its model after the newest one, unless that has the same model. It returns the newest one.
func (p past) add(state PastState, model Model) (PastState, error) {
	newest, err := p.newest()
	if err != nil {
		return PastState{}, err
	}
	text, err := encode(model)
	if err != nil {
		return PastState{}, err
	}
	if state.Model = packed(text.(string)); bytes.Equal(state.Model, newest.Model) {
		return newest, nil
	}
	compressed, err := state.Model.Value()
	if err != nil {
		return PastState{}, err
	}
	state.EnvironmentID, state.Number, state.Bytes = p.environmentID, newest.Number+1, int64(len(compressed.(string)))
	if state.Parts.Packages == nil {
		state.Parts.Packages = packageParts(model.Packages)
	}
	return state, p.tx.Create(&state).Error
}

// packageParts lists versions of packages, by their names.
func packageParts(versions map[string][]string) []PackagePart {
	var list []PackagePart
	for name, all := range versions {
		for _, version := range all {
			list = append(list, PackagePart{Name: name, Version: version})
		}
	}
	slices.SortFunc(list, func(a, b PackagePart) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return list
}

// keep keeps the state that a task has come to. It is called with the environment's model as it was before the task.
func (p past) keep(task Task, failed bool, outcome Outcome, now Time) error {
	if _, err := p.begin(task); err != nil || failed || outcome.Objects == nil {
		return err
	}
	_, err := p.add(PastState{TaskID: task.ID, ObjectID: task.Action.ObjectID, Method: task.Action.Method, Origin: task.Origin, Parts: outcome.Parts, Created: now},
		Model{ObjectsCopy: outcome.ObjectsCopy, Packages: outcome.Packages})
	return err
}

// sweepStates removes the oldest states of the environments that have more than the limits. The newest state of each
// stays.
func (s Expired) sweepStates(ctx context.Context, keep Retention, swept *Swept) error {
	const unlimited = math.MaxInt64
	most, bytes := cmp.Or(keep.States, unlimited), cmp.Or(keep.StateBytes, unlimited)
	if most == unlimited && bytes == unlimited {
		return nil
	}
	ordered := "SELECT environment_id, number, ROW_NUMBER() OVER newest AS place, SUM(bytes) OVER newest AS total FROM states WINDOW newest AS (PARTITION BY environment_id ORDER BY number DESC)"
	for more := true; more; {
		var rows []PastState
		err := s.reading(ctx).Raw("SELECT environment_id, number FROM ("+ordered+") AS ordered WHERE place > 1 AND (place > ? OR total > ?) ORDER BY environment_id, number LIMIT ?",
			most, bytes, sweptTogether).Scan(&rows).Error
		if err != nil || len(rows) == 0 {
			return wrap(err, "look for old states")
		}
		more = len(rows) == sweptTogether
		err = s.sweeping(ctx, "remove old states", func(tx *gorm.DB) error {
			for _, row := range rows {
				if err := tx.Where("environment_id = ? AND number = ?", row.EnvironmentID, row.Number).Delete(&PastState{}).Error; err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		swept.States += int64(len(rows))
	}
	return nil
}
