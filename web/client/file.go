package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// EnvironmentFile describes an environment with its applications, as `burano deploy` reads it: ids may be any readable names, by which
// applications refer to each other.
type EnvironmentFile struct {
	Kind string `yaml:"kind"` // Environment, or ""
	Name string `yaml:"name"`
	// Description, Region and DefaultNetworks count for a new environment; an existing one keeps its own.
	Description     string         `yaml:"description"`
	Region          string         `yaml:"region"`
	DefaultNetworks map[string]any `yaml:"defaultNetworks"`
	// Metadata is of the environment itself; its resources in the cloud get it. nil leaves the present one.
	Metadata     map[string]any   `yaml:"metadata"`
	Applications []map[string]any `yaml:"applications"`
	// Packages are those that the applications need, as an export names them. The catalog must have the names.
	Packages []FilePackage `yaml:"packages"`

	source source
}

// FilePackage is a package that the applications of a file need.
type FilePackage struct {
	Name    string `json:"name" yaml:"name"`
	Version string `json:"version" yaml:"version"` // with which the environment was deployed that was exported
}

// source is the file that a description was read from.
type source struct{ name, digest string }

// maxSource is the longest name of a file that is sent, in characters.
const maxSource = 255

func sourceOf(file string, text []byte) source {
	name := []rune(filepath.Base(file))
	return source{string(name[:min(len(name), maxSource)]), fmt.Sprintf("%x", sha256.Sum256(text))}
}

// ReadEnvironmentFile reads a file in YAML. Of a file with several documents it takes the first.
func ReadEnvironmentFile(path string) (EnvironmentFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return EnvironmentFile{}, err
	}
	all, err := parseDocuments(path, filepath.Dir(path), text)
	if err != nil {
		return EnvironmentFile{}, err
	}
	if len(all) == 0 {
		return EnvironmentFile{}, fmt.Errorf("%s: no name: give the environment one with a top-level `name:`", path)
	}
	if first := all[0]; first.Environment == nil {
		return EnvironmentFile{}, fmt.Errorf("%s: it describes a %s and no environment: `burano apply -f %s` takes it", path, first.Kind, path)
	}
	return *all[0].Environment, nil
}

// options are the properties that a new environment gets at its creation.
func (f EnvironmentFile) options() EnvironmentOptions {
	return EnvironmentOptions{Name: f.Name, Description: f.Description, Region: f.Region, DefaultNetworks: f.DefaultNetworks}
}

// draftMetadata gives the environment of a draft metadata; nil leaves it as it is.
func draftMetadata(ctx context.Context, c *Client, environment, session string, metadata map[string]any) error {
	if metadata == nil {
		return nil
	}
	if err := unsealed([]map[string]any{metadata}); err != nil {
		return err
	}
	patch, err := json.Marshal([]any{map[string]any{"op": "add", "path": "/?/metadata", "value": metadata}})
	if err == nil {
		_, err = c.Environments().PatchModel(ctx, environment, session, bytes.NewReader(patch))
	}
	if err != nil {
		return fmt.Errorf("set the metadata of the environment: %w", err)
	}
	return nil
}

// untyped is the index of the first application that does not say its class, -1 when all do.
func untyped(applications []map[string]any) int {
	return slices.IndexFunc(applications, func(application map[string]any) bool {
		header, ok := application["?"].(map[string]any)
		return !ok || header["type"] == nil
	})
}

// Files are the calls about environments as files: deployments, previews and exports.
type Files struct{ client *Client }

// Files returns the calls about environments as files.
func (c *Client) Files() Files { return Files{c} }

// Deploy makes an environment match the file: it makes the environment when the project has none of that name, replaces its
// applications, and begins to deploy them. An unchanged file changes nothing that runs. allowDestroy is as for Sessions.Deploy. It returns the
// environment's id.
func (c Files) Deploy(ctx context.Context, file EnvironmentFile, allowDestroy ...string) (id string, err error) {
	existing, err := c.client.Environments().Get(ctx, file.Name)
	if IsStatus(err, http.StatusNotFound) {
		return c.DeployNew(ctx, file)
	}
	if err != nil {
		return "", err
	}
	return existing.ID, c.DeployInto(ctx, existing.ID, file, allowDestroy...)
}

// DeployNew makes an environment and begins to deploy its applications. An environment of that name is a Refusal with the status 409. When it
// fails and nothing was begun, the environment goes again; an id beside an error is that of one that stays.
func (c Files) DeployNew(ctx context.Context, file EnvironmentFile) (id string, err error) {
	return c.inNew(ctx, file, func(ctx context.Context, id string) error { return c.DeployInto(ctx, id, file) })
}

// inNew makes an environment and begins to deploy something in it; its results are those of DeployNew.
func (c Files) inNew(ctx context.Context, file EnvironmentFile, deploy func(ctx context.Context, id string) error) (id string, err error) {
	made, err := c.client.Environments().Create(ctx, file.options())
	if err != nil {
		return "", err
	}
	err = deploy(ctx, made.ID)
	if err == nil {
		return made.ID, nil
	}
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	begun, lookErr := c.client.Deployments().List(cleanup, made.ID, 1)
	if lookErr != nil || len(begun) > 0 { // the answer that it was begun may be what was lost
		return made.ID, errors.Join(err, lookErr)
	}
	if deleteErr := c.client.Environments().Delete(cleanup, made.ID, false); deleteErr != nil {
		return made.ID, errors.Join(err, deleteErr)
	}
	return "", err
}

// DeployInto replaces the applications of an environment by those of the file, and begins to deploy them.
func (c Files) DeployInto(ctx context.Context, environment string, file EnvironmentFile, allowDestroy ...string) error {
	return c.DeployIntoShown(ctx, environment, file, "", allowDestroy...)
}

// DeployIntoShown is DeployInto after a Preview of the same file, whose Plan it is: the deployment is refused if it would do more than that showed.
func (c Files) DeployIntoShown(ctx context.Context, environment string, file EnvironmentFile, plan string, allowDestroy ...string) error {
	return c.deployInto(ctx, environment, file, func(context.Context, string) (string, error) { return plan, nil }, allowDestroy)
}

// deployInto is DeployInto where shown gives the Plan of a preview that was shown of a session.
func (c Files) deployInto(ctx context.Context, environment string, file EnvironmentFile, shown func(ctx context.Context, session string) (plan string, err error),
	allowDestroy []string) error {
	applications, err := c.StableIDs(ctx, environment, file.Applications)
	if err != nil {
		return err
	}
	session, err := c.client.Sessions().draft(ctx, environment, applications, true)
	if err != nil {
		return err
	}
	plan, err := "", draftMetadata(ctx, c.client, environment, session, file.Metadata)
	if err == nil {
		plan, err = shown(ctx, session)
	}
	if err == nil {
		err = c.client.Sessions().deployShown(ctx, environment, session, plan, file.source, allowDestroy)
	}
	if err != nil {
		return errors.Join(err, c.client.Sessions().dropDraft(ctx, environment, session))
	}
	return nil
}

// DeployShown is Deploy that shows its preview before, and does nothing when the deployment would be refused. The deployment does no more than the
// preview.
func (c Files) DeployShown(ctx context.Context, file EnvironmentFile, show func(Preview) error, allowDestroy ...string) (id string, err error) {
	look := func(answer Preview, err error) (string, error) {
		if err == nil {
			err = show(answer)
		}
		if err == nil {
			err = answer.Err(allowDestroy...)
		}
		return answer.Plan, err
	}
	existing, err := c.client.Environments().Get(ctx, file.Name)
	if IsStatus(err, http.StatusNotFound) {
		if _, err := look(c.PreviewNew(ctx, file)); err != nil {
			return "", err
		}
		return c.DeployNew(ctx, file)
	}
	if err != nil {
		return "", err
	}
	return existing.ID, c.deployInto(ctx, existing.ID, file, func(ctx context.Context, session string) (string, error) {
		answer, err := c.client.Sessions().Preview(ctx, existing.ID, session)
		if err == nil {
			err = c.fixed(ctx, existing.ID, file, &answer)
		}
		return look(answer, err)
	}, allowDestroy)
}

// fixed adds to a preview the fields of a file that count only when its environment is made.
func (c Files) fixed(ctx context.Context, environment string, file EnvironmentFile, answer *Preview) error {
	for _, one := range []struct {
		key    string
		wanted any
		is     bool
	}{{"region", file.Region, file.Region != ""}, {"defaultNetworks", file.DefaultNetworks, file.DefaultNetworks != nil}} {
		if !one.is {
			continue
		}
		text, err := c.client.Environments().Model(ctx, environment, "", one.key)
		if err != nil && !IsStatus(err, http.StatusNotFound) {
			return fmt.Errorf("read %s of the environment: %w", one.key, err)
		}
		var present, wanted any
		if len(text) > 0 {
			if err := json.Unmarshal(text, &present); err != nil {
				return fmt.Errorf("read %s of the environment: %w", one.key, err)
			}
		}
		said, err := json.Marshal(one.wanted) // as the server reads it: numbers are of the same types then
		if err == nil {
			err = json.Unmarshal(said, &wanted)
		}
		if err != nil {
			return err
		}
		if !within(wanted, present) {
			answer.Problems = append(answer.Problems, Problem{Path: one.key, Message: "an environment keeps the " + one.key + " that it was made with: put back what it has (burano environment model " +
				file.Name + " --path " + one.key + "), or make another environment"})
		}
	}
	return nil
}

// within reports whether a value of a file equals a present one. Headers of objects, and keys that the file lacks, make no difference.
func within(wanted, present any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		had, _ := present.(map[string]any)
		for key, value := range wanted {
			if key != "?" && !within(value, had[key]) {
				return false
			}
		}
		return classOf(wanted) == "" || ClassOfType(classOf(wanted)).Name == ClassOfType(classOf(had)).Name
	case []any:
		had, is := present.([]any)
		return is && len(had) == len(wanted) && !slices.ContainsFunc(wanted, func(one any) bool {
			return !slices.ContainsFunc(had, func(other any) bool { return within(one, other) })
		})
	}
	return wanted == nil && present == nil || reflect.DeepEqual(wanted, present)
}

// Preview shows the effects of Deploy on an existing environment, and does so by a draft that is dropped again.
func (c Files) Preview(ctx context.Context, environment string, file EnvironmentFile) (Preview, error) {
	applications, err := c.StableIDs(ctx, environment, file.Applications)
	if err != nil {
		return Preview{}, err
	}
	session, err := c.client.Sessions().draft(ctx, environment, applications, false)
	if err != nil {
		return Preview{}, err
	}
	var answer Preview
	if err = draftMetadata(ctx, c.client, environment, session, file.Metadata); err == nil {
		answer, err = c.client.Sessions().Preview(ctx, environment, session)
	}
	if err == nil {
		err = c.fixed(ctx, environment, file, &answer)
	}
	return answer, errors.Join(err, c.client.Sessions().dropDraft(ctx, environment, session))
}

// PreviewNew is the preview of Deploy for a new environment. Nothing is stored.
func (c Files) PreviewNew(ctx context.Context, file EnvironmentFile) (Preview, error) {
	applications, err := c.stableIDs(ctx, "new "+file.Name, file.Applications, nil)
	if err != nil {
		return Preview{}, err
	}
	body := struct {
		EnvironmentOptions
		Services []any `json:"services"`
	}{file.options(), applications}
	var answer Preview
	return answer, c.client.Call(ctx, http.MethodPost, "/burano/v1/preview", body, &answer)
}

// StableIDs replaces the readable ids of objects, and the references to them, by ids that are unique but the same each time for one environment. Objects
// that the environment's present model has keep the ids that they have there (matchObjects has the rules). A new object without an id gets one from its
// place in the file. A text is a reference where the class of its object expects an object; in objects of classes that the server does not know, wherever
// it is, except under the key "name". The applications that are given stay as they are.
func (c Files) StableIDs(ctx context.Context, environment string, applications []map[string]any) ([]any, error) {
	present, err := c.presentApplications(ctx, environment)
	if err != nil {
		return nil, err
	}
	return c.stableIDs(ctx, environment, applications, present)
}

// TemplateIDs is StableIDs for a template, or for an addition to one: nothing of it runs, so nothing is matched.
func (c Files) TemplateIDs(ctx context.Context, template string, applications []map[string]any) ([]any, error) {
	return c.stableIDs(ctx, "template "+template, applications, nil)
}

// presentApplications are the applications of an environment's last deployment, without edits that were refused since.
func (c Files) presentApplications(ctx context.Context, environment string) ([]any, error) {
	answer, err := c.client.Send(ctx, http.MethodGet, "/v1/environments/"+environment+"/model/services?deployed=true", nil)
	if IsStatus(err, http.StatusNotFound) { // a model without applications
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the present model of the environment: %w", err)
	}
	var applications []any
	if err := json.Unmarshal(answer, &applications); err != nil {
		return nil, fmt.Errorf("read the present model of the environment: %w", err)
	}
	return applications, nil
}

func (c Files) stableIDs(ctx context.Context, space string, applications []map[string]any, present []any) ([]any, error) {
	if err := unsealed(applications); err != nil {
		return nil, err
	}
	r := references{space: uuid.NewSHA1(uuid.NameSpaceURL, []byte("burano:environment:"+space)), ids: map[string]string{}, schemas: map[string]any{}}
	result := make([]any, len(applications))
	for i, application := range applications {
		result[i] = copied(application)
	}
	r.identifyAll(readObjects(result), readObjects(present))
	return r.resolved(ctx, c.client, result)
}

// resolved replaces the references in applications.
func (r *references) resolved(ctx context.Context, c *Client, result []any) ([]any, error) {
	for class := range r.naming(result, "") {
		answer, err := c.Classes().Schemas(ctx, ClassOfType(class))
		if IsStatus(err, http.StatusNotFound) || IsStatus(err, http.StatusBadRequest) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("ask what class %s expects: %w", class, err)
		}
		var schemas map[string]any
		if err := json.Unmarshal(answer, &schemas); err != nil {
			return nil, fmt.Errorf("read the schema of class %s: %w", class, err)
		}
		r.schemas[class] = schemas[""]
	}
	return r.refer(result, anywhere{}).([]any), nil
}

// copied is a value with maps and lists of its own.
func copied(value any) any {
	switch value := value.(type) {
	case map[string]any:
		inner := make(map[string]any, len(value))
		for key, one := range value {
			inner[key] = copied(one)
		}
		return inner
	case []any:
		list := make([]any, len(value))
		for i, one := range value {
			list[i] = copied(one)
		}
		return list
	}
	return value
}

// references are the readable ids of a file.
type references struct {
	space   uuid.UUID
	ids     map[string]string
	schemas map[string]any // by class, as far as they are known
}

// anywhere replaces the schema of an unknown class.
type anywhere struct{}

// made is the id that a name gives to a new object.
func (r *references) made(name string) string {
	if _, err := uuid.Parse(name); err == nil {
		return name
	}
	return strings.ReplaceAll(uuid.NewSHA1(r.space, []byte(name)).String(), "-", "")
}

// identifyAll gives each object of a file its id.
func (r *references) identifyAll(file, present *modelObject) {
	matchObjects(file, present, r.made)
	taken := map[string]bool{}
	for _, one := range present.all() {
		taken[one.id] = true
	}
	for _, one := range file.all() {
		if one.id != "" && one.match == nil {
			taken[r.made(one.id)] = true
		}
	}
	for _, one := range file.all() {
		var id string
		switch {
		case r.ids[one.id] != "": // two objects of one id, which the server refuses
			id = r.ids[one.id]
		case one.match != nil:
			id = one.match.id
		case one.id != "":
			id = r.made(one.id)
		default:
			// A place may be one where another object was when it got its id.
			name := one.path
			for id = r.made(name); taken[id]; id = r.made(name) {
				name += "+"
			}
			taken[id] = true
		}
		if one.id != "" && uuid.Validate(one.id) != nil {
			r.ids[one.id] = id
		}
		one.header["id"] = id
	}
}

// classOf is the class of an object, as its header has it; "" for any other value.
func classOf(value map[string]any) string {
	header, _ := value["?"].(map[string]any)
	class, _ := header["type"].(string)
	return class
}

// naming are the classes of objects with texts that may be references.
func (r *references) naming(value any, class string) map[string]bool {
	classes := map[string]bool{}
	switch value := value.(type) {
	case map[string]any:
		if own := classOf(value); own != "" {
			class = own
		}
		for key, inner := range value {
			if key != "?" {
				maps.Copy(classes, r.naming(inner, class))
			}
		}
	case []any:
		for _, inner := range value {
			maps.Copy(classes, r.naming(inner, class))
		}
	case string:
		if _, is := r.ids[value]; is && class != "" {
			classes[class] = true
		}
	}
	return classes
}

// refer replaces the references in a value of which a class has this schema.
func (r *references) refer(value, schema any) any {
	switch value := value.(type) {
	case map[string]any:
		if class := classOf(value); class != "" {
			if schema = r.schemas[class]; schema == nil {
				schema = anywhere{}
			}
		}
		for key, inner := range value {
			if key != "?" {
				value[key] = r.refer(inner, below(schema, key))
			}
		}
	case []any:
		for i, inner := range value {
			value[i] = r.refer(inner, item(schema, i))
		}
	case string:
		if id, is := r.ids[value]; is && expectsObject(schema) {
			return id
		}
	}
	return value
}

// below is the schema of the value of a key.
func below(schema any, key string) any {
	if _, unknown := schema.(anywhere); unknown {
		if key == "name" {
			return nil
		}
		return schema
	}
	of, _ := schema.(map[string]any)
	properties, _ := of["properties"].(map[string]any)
	if inner, has := properties[key]; has {
		return inner
	}
	return of["additionalProperties"]
}

// item is the schema of an item of a list.
func item(schema any, i int) any {
	if _, unknown := schema.(anywhere); unknown {
		return schema
	}
	of, _ := schema.(map[string]any)
	if items, several := of["items"].([]any); several {
		if i < len(items) {
			return items[i]
		}
		return of["additionalItems"]
	}
	return of["items"]
}

// expectsObject tells whether a schema, as Murano writes them, is that of an object of a class.
func expectsObject(schema any) bool {
	if _, unknown := schema.(anywhere); unknown {
		return true
	}
	of, _ := schema.(map[string]any)
	return of["muranoType"] != nil
}
