package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/sensitive"
)

// History is an environment's former states.
type History struct {
	States []State `json:"states" yaml:"states"` // the newest first
	// Present is the number of the state that the environment is in; 0 while it is being changed, and after a deployment or an action that failed.
	Present int64 `json:"present" yaml:"present"`
}

// State is the result of a successful deployment or action.
type State struct {
	Number     int64       `json:"number" yaml:"number"`
	Deployment string      `json:"deployment" yaml:"deployment"` // its id; it may be gone
	Method     string      `json:"method" yaml:"method"`         // deploy, or that of an action
	UserID     string      `json:"user_id" yaml:"user_id"`
	UserName   string      `json:"user_name" yaml:"user_name"`
	File       string      `json:"file" yaml:"file"`
	Digest     string      `json:"digest" yaml:"digest"` // SHA-256 of the file
	Back       int64       `json:"back" yaml:"back"`     // the state that it went back to
	Packages   []StatePart `json:"packages" yaml:"packages"`
	Images     []StatePart `json:"images" yaml:"images"`
	Created    string      `json:"created" yaml:"created"`
}

// StatePart is a package or an image that a state was made with.
type StatePart struct {
	Name    string `json:"name" yaml:"name"`
	Version string `json:"version,omitempty" yaml:"version,omitempty"` // of a package
	ID      string `json:"id" yaml:"id"`
}

// Difference is the differences between two states.
type Difference struct {
	Changes  []Change     `json:"changes" yaml:"changes"`
	Packages []PartChange `json:"packages" yaml:"packages"`
	Images   []PartChange `json:"images" yaml:"images"`
}

// PartChange is a different package or image; "" is an absent one.
type PartChange struct {
	Name   string `json:"name" yaml:"name"`
	Before string `json:"before" yaml:"before"`
	After  string `json:"after" yaml:"after"`
}

// States are the calls about the former states of an environment.
type States struct{ client *Client }

// States returns the calls about the former states of an environment.
func (c *Client) States() States { return States{c} }

// History lists the states of an environment.
func (c States) History(ctx context.Context, environment string) (History, error) {
	var found History
	return found, c.client.Call(ctx, http.MethodGet, "/burano/v1/environments/"+environment+"/history", nil, &found)
}

func statePath(environment string, state int64) string {
	return "/burano/v1/environments/" + environment + "/history/" + strconv.FormatInt(state, 10)
}

// Get shows a state with its model, secrets masked, as JSON.
func (c States) Get(ctx context.Context, environment string, state int64) (json.RawMessage, error) {
	var found json.RawMessage
	return found, c.client.Call(ctx, http.MethodGet, statePath(environment, state), nil, &found)
}

// Difference compares two states of an environment; to is 0 for the environment as it is now.
func (c States) Difference(ctx context.Context, environment string, from, to int64) (Difference, error) {
	query := ""
	if to != 0 {
		query = "?to=" + strconv.FormatInt(to, 10)
	}
	var found Difference
	return found, c.client.Call(ctx, http.MethodGet, statePath(environment, from)+"/changes"+query, nil, &found)
}

// Back opens a session with the model of a former state. Secrets are the present ones, or the former ones. Notes describe possible differences.
func (c States) Back(ctx context.Context, environment string, state int64, then bool) (session Session, notes []string, err error) {
	body := map[string]string{"secrets": "now"}
	if then {
		body["secrets"] = "then"
	}
	var opened struct {
		Session
		Notes []string `json:"notes"`
	}
	err = c.client.Call(ctx, http.MethodPost, statePath(environment, state)+"/session", body, &opened)
	return opened.Session, opened.Notes, err
}

// PreviewBack previews the deployment of a former state by a draft that is deleted again.
func (c States) PreviewBack(ctx context.Context, environment string, state int64, then bool) (preview Preview, notes []string, err error) {
	session, notes, err := c.Back(ctx, environment, state, then)
	if err != nil {
		return Preview{}, nil, err
	}
	preview, err = c.client.Sessions().Preview(ctx, environment, session.ID)
	return preview, notes, errors.Join(err, c.client.Sessions().dropDraft(ctx, environment, session.ID))
}

// GoBack begins to deploy a former state. plan is the Plan of a preview that was shown, "" for none, and allowDestroy is as for Sessions.Deploy.
func (c States) GoBack(ctx context.Context, environment string, state int64, then bool, plan string, allowDestroy ...string) error {
	session, _, err := c.Back(ctx, environment, state, then)
	if err != nil {
		return err
	}
	if err := c.client.Sessions().deployShown(ctx, environment, session.ID, plan, source{}, allowDestroy); err != nil {
		return errors.Join(err, c.client.Sessions().dropDraft(ctx, environment, session.ID))
	}
	return nil
}

// Discard takes back an edit whose deployment was refused before anything of it was made, and deletes the caller's drafts. It returns how many of both there
// were.
func (c States) Discard(ctx context.Context, environment string) (edits, drafts int, err error) {
	own, err := c.client.Sessions().Drafts(ctx, environment)
	if err != nil {
		return 0, 0, err
	}
	for _, one := range own {
		if !one.Own {
			continue
		}
		if err := c.client.Sessions().Delete(ctx, environment, one.ID); err != nil {
			return 0, drafts, err
		}
		drafts++
	}
	var answer struct {
		Discarded bool `json:"discarded"`
	}
	if err := c.client.Call(ctx, http.MethodPost, "/burano/v1/environments/"+environment+"/discard", nil, &answer); err != nil {
		return 0, drafts, err
	}
	if answer.Discarded {
		edits = 1
	}
	return edits, drafts, nil
}

// Export describes the deployed state of an environment, or a former state when state is not 0. Secrets are replaced by a mark; with a recipient, a public
// key of age, they are sealed for it.
func (c Files) Export(ctx context.Context, environment string, state int64, recipient string) (EnvironmentFile, error) {
	path := "/burano/v1/environments/" + environment + "/export"
	if state != 0 {
		path += "?state=" + strconv.FormatInt(state, 10)
	}
	var found json.RawMessage
	var err error
	if recipient == "" {
		err = c.client.Call(ctx, http.MethodGet, path, nil, &found)
	} else {
		err = c.client.Call(ctx, http.MethodPost, path, map[string]string{"recipient": recipient}, &found)
	}
	if err != nil {
		return EnvironmentFile{}, err
	}
	var export struct {
		Name            string           `json:"name"`
		Description     string           `json:"description"`
		Region          string           `json:"region"`
		Metadata        map[string]any   `json:"metadata"`
		DefaultNetworks map[string]any   `json:"defaultNetworks"`
		Applications    []map[string]any `json:"applications"`
		Packages        []FilePackage    `json:"packages"`
	}
	decoder := json.NewDecoder(bytes.NewReader(found))
	decoder.UseNumber()
	if err := decoder.Decode(&export); err != nil {
		return EnvironmentFile{}, fmt.Errorf("read the export of the environment: %w", err)
	}
	return EnvironmentFile{Name: export.Name, Description: export.Description, Region: export.Region, Metadata: export.Metadata, DefaultNetworks: export.DefaultNetworks,
		Applications: export.Applications, Packages: export.Packages}, nil
}

// YAML writes the file, with a comment before it.
func (f EnvironmentFile) YAML(comment string) ([]byte, error) {
	var text bytes.Buffer
	for line := range strings.Lines(comment) {
		text.WriteString("# " + strings.TrimRight(line, "\n") + "\n")
	}
	written := struct {
		Name            string         `yaml:"name"`
		Description     string         `yaml:"description,omitempty"`
		Region          string         `yaml:"region,omitempty"`
		Metadata        map[string]any `yaml:"metadata,omitempty"`
		DefaultNetworks map[string]any `yaml:"defaultNetworks,omitempty"`
		Packages        []FilePackage  `yaml:"packages,omitempty"`
		Applications    []any          `yaml:"applications"`
	}{Name: f.Name, Description: f.Description, Region: f.Region, Packages: f.Packages, Applications: []any{}}
	written.Metadata, _ = numbers(f.Metadata).(map[string]any)
	written.DefaultNetworks, _ = numbers(f.DefaultNetworks).(map[string]any)
	for _, one := range f.Applications {
		written.Applications = append(written.Applications, numbers(one))
	}
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(written); err != nil {
		return nil, err
	}
	return text.Bytes(), encoder.Close()
}

// numbers is a value with Go's numbers, which YAML writes as numbers.
func numbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		fraction, _ := v.Float64()
		return fraction
	case map[string]any:
		fields := make(map[string]any, len(v))
		for key, inner := range v {
			fields[key] = numbers(inner)
		}
		return fields
	case []any:
		list := make([]any, len(v))
		for i, inner := range v {
			list[i] = numbers(inner)
		}
		return list
	}
	return value
}

// Unread are the places of a file without a secret: the ones that an export has left out, and the sealed ones.
func (f EnvironmentFile) Unread() (leftOut, sealed []string) {
	eachText("applications", f.plain(), func(path, text string) {
		switch {
		case strings.Contains(text, sensitive.SealedPrefix):
			sealed = append(sealed, path)
		case strings.Contains(text, sensitive.Mark):
			leftOut = append(leftOut, path)
		}
	})
	return leftOut, sealed
}

func (f EnvironmentFile) plain() []any {
	list := make([]any, len(f.Applications))
	for i, one := range f.Applications {
		list[i] = one
	}
	return list
}

// eachText calls do for each text in a value, with its path.
func eachText(path string, value any, do func(path, text string)) {
	switch v := value.(type) {
	case string:
		do(path, v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			eachText(path+"."+key, v[key], do)
		}
	case []any:
		for i, inner := range v {
			eachText(fmt.Sprintf("%s[%d]", path, i), inner, do)
		}
	}
}

// unsealed is an error where applications have sealed secrets.
func unsealed(applications []map[string]any) error {
	_, sealed := EnvironmentFile{Applications: applications}.Unread()
	if len(sealed) == 0 {
		return nil
	}
	return fmt.Errorf("%s is sealed for the key of a recipient: `burano environment import FILE --key KEYFILE` opens it", sealed[0])
}

// Missing lists the packages of a file that the catalog does not have.
func (c Files) Missing(ctx context.Context, file EnvironmentFile) ([]string, error) {
	var missing []string
	for _, one := range file.Packages {
		has, err := c.client.Packages().Has(ctx, one.Name)
		if err != nil {
			return nil, err
		}
		if text := strings.TrimSpace(one.Name + " " + one.Version); !has && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	return missing, nil
}

// Renewed is a file for another environment: each object has a new id, and references follow.
func (c Files) Renewed(ctx context.Context, file EnvironmentFile) (EnvironmentFile, error) {
	r := references{space: uuid.New(), ids: map[string]string{}, schemas: map[string]any{}}
	applications, _ := copied(file.plain()).([]any)
	objects := readObjects(applications).all()
	if file.DefaultNetworks != nil {
		file.DefaultNetworks, _ = copied(file.DefaultNetworks).(map[string]any)
		objects = append(objects, readObjects([]any{file.DefaultNetworks}).all()...)
	}
	for _, one := range objects {
		id := strings.ReplaceAll(uuid.NewString(), "-", "")
		if one.id != "" {
			r.ids[one.id] = id
		}
		one.header["id"] = id
	}
	applications, err := r.resolved(ctx, c.client, applications)
	if err != nil {
		return EnvironmentFile{}, err
	}
	file.Applications = make([]map[string]any, len(applications))
	for i, one := range applications {
		file.Applications[i], _ = one.(map[string]any)
	}
	return file, nil
}
