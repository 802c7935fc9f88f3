package orchestrator

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// Causes of faults about a change of the object model.
var (
	ErrEmptyPatch  = errors.New("Request body is empty: please, provide environment object model patch")
	ErrPatchMisses = errors.New("the patch does not fit the model")
)

// Models reads and edits the models of environments and of drafts.
type Models struct{ *core }

// Models are the models of environments and of drafts.
func (s *Service) Models() Models { return Models{s.core} }

// Get returns the value at the path below the object model (keys of objects, ids or indexes of list elements).
func (s Models) Get(ctx context.Context, caller identity.Caller, id, sessionID string, path []string) (any, error) {
	row, err := s.environment(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	objects, err := s.draft(ctx, row, sessionID)
	if err != nil {
		return nil, err
	}
	value, found := lookUp(s.shown(ctx, row, objects), path)
	if !found {
		return nil, fault.New(fault.NotFound, "The resource could not be found: the model has nothing at %q", strings.Join(path, "/"))
	}
	return value, nil
}

// Deployed is Get for the last deployed model: a refused deployment is not in it. It is the present model of an environment that was never deployed.
func (s Models) Deployed(ctx context.Context, caller identity.Caller, id string, path []string) (any, error) {
	row, err := s.environment(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	if row.Model.ObjectsCopy == nil {
		return s.Get(ctx, caller, id, "", path)
	}
	value, found := lookUp(s.shown(ctx, row, store.ForAPI(row.Model.ObjectsCopy)), path)
	if !found {
		return nil, fault.New(fault.NotFound, "The resource could not be found: the deployed model has nothing at %q", strings.Join(path, "/"))
	}
	return value, nil
}

// Patch changes the object model of a session's draft by a JSON patch (RFC 6902: add, replace and remove; each with a value, as Murano demands) and
// returns the whole new model. The environment's own fields can only be replaced, its ids not at all.
func (s Models) Patch(ctx context.Context, caller identity.Caller, id, sessionID string, patch any) (map[string]any, error) {
	// Unlike changes of applications, Murano looks at the environment first.
	if _, err := s.environment(ctx, caller, id); err != nil {
		return nil, err
	}
	environment, session, err := s.mayEdit(ctx, caller, id, sessionID)
	if err != nil {
		return nil, err
	}
	operations, err := readPatch(patch)
	if err != nil {
		return nil, err
	}
	var changed map[string]any
	err = s.store.Sessions().Edit(ctx, sessionID, func(model *store.Model) error {
		if model.Objects == nil {
			return staleSession(sessionID)
		}
		if changed, err = patched(model.Objects, operations); err != nil {
			return err
		}
		if err := secret.Unmask(changed, session.Model.Objects, environment.Model.Objects, environment.Model.ObjectsCopy); err != nil {
			return err
		}
		before := sizeOf(model.Objects)
		model.Objects = changed
		return s.bounded(before, changed)
	})
	return s.shown(ctx, environment, changed), editedSession(err, sessionID)
}

// restricted are the parts of the model, by their paths, that allow only some operations.
var restricted = map[string][]string{
	"":                                 nil,
	"?/id":                             nil,
	"defaultNetworks/environment/?/id": nil,
	"?/type":                           {"replace"},
	"name":                             {"replace"},
	"region":                           {"replace"},
	"defaultNetworks":                  {"replace"},
	"defaultNetworks/environment":      {"replace"},
	"defaultNetworks/flat":             {"replace"},
}

// unrestricted are the operations on all other parts.
var unrestricted = []string{"add", "replace", "remove"}

// readPatch checks the form of a patch, its operations and their paths.
func readPatch(patch any) (jsonpatch.Patch, error) {
	list, ok := patch.([]any)
	switch {
	case patch != nil && !ok:
		return nil, fault.New(fault.Invalid, "JSON-patch must be a list.")
	case len(list) == 0:
		return nil, fault.New(fault.Invalid, "%w", ErrEmptyPatch)
	}
	for i, element := range list {
		operation, ok := element.(map[string]any)
		if !ok {
			return nil, fault.New(fault.Invalid, "Operations must be JSON objects: number %d of the patch is none", i)
		}
		name, ok := operation["op"].(string)
		if !ok {
			return nil, fault.New(fault.Invalid, `Operation %d of the patch requires a member named "op".`, i)
		}
		path, ok := operation["path"].(string)
		if !ok {
			return nil, fault.New(fault.Invalid, `Operation %q requires a member named "path".`, name)
		}
		if _, ok := operation["value"]; !ok {
			return nil, fault.New(fault.Invalid, `Operation %q requires a member named "value".`, name)
		}
		place, err := pointer(path)
		if err != nil {
			return nil, err
		}
		allowed, known := restricted[place]
		if !known {
			allowed = unrestricted
		}
		if !slices.Contains(allowed, name) {
			said := strings.Join(allowed, ", ")
			if said == "" {
				said = "no operations"
			}
			return nil, fault.New(fault.Forbidden, "Method '%s' is not allowed for a path with name '%s'. Allowed operations are: %s", name, place, said)
		}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("write a patch: %w", err)
	}
	return jsonpatch.DecodePatch(text)
}

// pointer turns a JSON pointer (RFC 6901), within Murano's narrower rules, into a path of plain keys.
func pointer(text string) (string, error) {
	path, ok := strings.CutPrefix(text, "/")
	switch {
	case text == "":
		return "", nil
	case !ok:
		return "", fault.New(fault.Invalid, "Pointer `%s` does not start with \"/\".", text)
	case strings.Contains(path, "//"), strings.HasPrefix(path, "/"):
		return "", fault.New(fault.Invalid, "Pointer `%s` contains adjacent \"/\".", text)
	case strings.HasSuffix(path, "/"):
		return "", fault.New(fault.Invalid, "Pointer `%s` end with \"/\".", text)
	}
	rest := strings.NewReplacer("~0", "", "~1", "").Replace(path)
	if strings.Contains(rest, "~") {
		return "", fault.New(fault.Invalid, "Pointer `%s` contains \"~\" which is not part of a recognized escape sequence.", text)
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(path), nil
}

// patched applies the patch to a copy of the model and checks the result.
func patched(objects map[string]any, patch jsonpatch.Patch) (map[string]any, error) {
	text, err := json.Marshal(objects)
	if err != nil {
		return nil, fmt.Errorf("write an object model: %w", err)
	}
	if text, err = patch.Apply(text); err != nil {
		return nil, &fault.Error{Kind: fault.NotFound, Message: ErrPatchMisses.Error() + ": " + err.Error(), Err: ErrPatchMisses}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var changed map[string]any
	if err := decoder.Decode(&changed); err != nil {
		return nil, fmt.Errorf("read a changed object model: %w", err)
	}
	if err := modelSchema.Validate(changed); err != nil {
		return nil, fault.New(fault.Invalid, "%s", brokenRule(err))
	}
	return yaql.FromJSON(changed).(map[string]any), nil
}

//go:embed model_schema.json
var modelSchemaText []byte

// modelSchema is the schema of every object model.
var modelSchema = compileModelSchema()

func compileModelSchema() *jsonschema.Schema {
	const name = "model_schema.json"
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(modelSchemaText))
	if err != nil {
		panic(err) // it is embedded
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(name, document); err != nil {
		panic(err)
	}
	return compiler.MustCompile(name)
}

// brokenRule describes the place and the reason of a model's schema error.
func brokenRule(err error) string {
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return err.Error()
	}
	for len(broken.Causes) > 0 {
		broken = broken.Causes[0]
	}
	return fmt.Sprintf("/%s: %s", strings.Join(broken.InstanceLocation, "/"), broken.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
}

// Object is an object of an environment, or of a draft of it.
type Object struct {
	ID, Type string // the type without version and package
	Name     string // its property "name", else that of its header; "" when it has neither
	Path     string // where it is in the model, like "services[0].nodes[1]"; "" is the environment itself
}

// Objects lists the objects of an environment, or of a session's draft, that are of a class or of one that extends it, in the order of their
// paths; all objects when class is "".
func (s Models) Objects(ctx context.Context, caller identity.Caller, environmentID, sessionID, class string) ([]Object, error) {
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return nil, err
	}
	model, err := s.draft(ctx, environment, sessionID)
	if err != nil {
		return nil, err
	}
	found := preview.Objects(model)
	wanted := map[string]bool{}
	if class != "" {
		types := []string{}
		for _, one := range found {
			if !slices.Contains(types, one.FullType) {
				types = append(types, one.FullType)
			}
		}
		if wanted, err = s.engine.Extending(ctx, environment.ProjectID, environment.Model.Packages, types, class); err != nil {
			return nil, err
		}
	}
	objects := []Object{}
	for _, one := range found {
		if class == "" || wanted[one.FullType] {
			objects = append(objects, Object{ID: one.ID, Type: one.Type, Name: cmp.Or(one.Name, one.HeadName), Path: one.Path})
		}
	}
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.ID, b.ID)) })
	return objects, nil
}

// hidden is a model, or a list of applications, in which hide has replaced the secrets of its objects' classes. Most models have none, and no class is
// read for them.
func (s *core) hidden(ctx context.Context, environment store.Environment, model any, hide func(any) any) any {
	if !muranopl.MayHide(model) {
		return model
	}
	return s.engine.Hidden(ctx, environment.ProjectID, environment.Model.Packages, model, hide)
}

// shown is a model of an environment for readers: its classes' secrets are masked.
func (s *core) shown(ctx context.Context, environment store.Environment, model map[string]any) map[string]any {
	objects, _ := s.hidden(ctx, environment, model, secret.Masked).(map[string]any)
	return objects
}

// shownTemplate is a template as readers see it.
func (s Templates) shownTemplate(ctx context.Context, row store.Template) Template {
	template := seenTemplate(row)
	template.Services, _ = s.hidden(ctx, store.Environment{ProjectID: row.ProjectID}, template.Services, secret.Masked).([]any)
	return template
}

// copied is a copy of posted data. Secrets are put back into the copy, and the answer repeats the posted data.
func copied(body any) any { return store.Copy(map[string]any{"": body})[""] }

const (
	// MaxDepth is how deep lists and objects may be nested in a model. JSON that is nested much deeper can be written but not read.
	MaxDepth = 100
	// DefaultValues is how many values a model may have, names of members among them, without a setting.
	DefaultValues = 200_000
)

// maxBytes is how many bytes of texts and names a model may have: several times a request's body.
const maxBytes = 32 << 20

// size is the size of a value: the depth of its lists and objects, the number of its values, names of members among them, and the bytes of texts and
// names.
type size struct{ depth, values, bytes int }

func sizeOf(value any) size {
	whole := size{values: 1}
	add := func(element any) {
		inner := sizeOf(element)
		whole.depth = max(whole.depth, inner.depth)
		whole.values += inner.values
		whole.bytes += inner.bytes
	}
	switch v := value.(type) {
	case string:
		whole.bytes = len(v)
		return whole
	case map[string]any:
		whole.values += len(v)
		for name, element := range v {
			whole.bytes += len(name)
			add(element)
		}
	case []any:
		for _, element := range v {
			add(element)
		}
	default:
		return whole
	}
	whole.depth++
	return whole
}

// bounded refuses a change that makes a model larger than it may be. A model that is too large from former times can be
// made smaller.
func (s *core) bounded(before size, model any) error {
	switch after := sizeOf(model); {
	case after.depth > MaxDepth && after.depth > before.depth:
		return fault.New(fault.Invalid, "The model would be nested %d levels deep; %d are allowed", after.depth, MaxDepth)
	case after.values > s.values && after.values > before.values:
		return fault.New(fault.TooLarge, "The model would have %d values, names of members among them; %d are allowed", after.values, s.values)
	case after.bytes > maxBytes && after.bytes > before.bytes:
		return fault.New(fault.TooLarge, "The model would have %d bytes of texts; %d are allowed", after.bytes, maxBytes)
	}
	return nil
}
