package orchestrator

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/burano/burano/internal/envelope"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// Export is an environment in the form of a file for burano deploy. Objects keep their ids. Computed properties are left out.
type Export struct {
	Name, Region    string
	Description     string
	Metadata        map[string]any // of the environment itself, which its resources in the cloud get; nil for none
	State           int64          // the exported state; 0: the deployed one
	DefaultNetworks map[string]any // nil for the default ones
	Applications    []any
	Packages        []store.PackagePart
}

// Export describes the deployed state of an environment, or a former state when number is not 0. Secrets are replaced by secret.Mark. With a recipient they
// are sealed for that public key.
func (h History) Export(ctx context.Context, caller identity.Caller, environmentID string, number int64, recipient *string) (Export, error) {
	environment, err := h.service.environment(ctx, caller, environmentID)
	if err != nil {
		return Export{}, err
	}
	row, model := store.PastState{}, environment.Model
	switch {
	case number != 0:
		if row, model, err = h.content(ctx, environment, number); err != nil {
			return Export{}, err
		}
	case model.ObjectsCopy != nil:
		model.Objects = store.ForAPI(model.ObjectsCopy)
	}
	sealing, err := sealingFor(recipient)
	if err != nil {
		return Export{}, err
	}
	model.Objects = h.written(ctx, environment, model)
	objects := h.masked(ctx, environment, model, sealing.value, sealing.text)
	if sealing.err != nil {
		return Export{}, sealing.err
	}
	export := Export{Name: environment.Name, Description: environment.DescriptionText, State: row.Number, Packages: row.Parts.Packages}
	if header, is := objects["?"].(map[string]any); is {
		export.Metadata, _ = header["metadata"].(map[string]any)
	}
	export.Region, _ = objects["region"].(string)
	if networks, is := objects["defaultNetworks"].(map[string]any); is && !h.usualNetworks(ctx, environment, networks) {
		export.DefaultNetworks = networks
	}
	export.Applications, _ = objects["services"].([]any)
	if row.Number == 0 {
		export.Packages, _, err = h.service.engine.Packages(ctx, environment.ProjectID, model.Packages)
	}
	several := map[string]bool{}
	for i, one := range export.Packages {
		several[one.Name] = several[one.Name] || slices.ContainsFunc(export.Packages[:i], func(other store.PackagePart) bool { return other.Name == one.Name })
	}
	store.EachObject(export.Applications, func(_ string, object map[string]any) {
		object["?"] = plainHeader(object["?"].(map[string]any), several)
	})
	store.EachObject(export.DefaultNetworks, func(_ string, object map[string]any) {
		object["?"] = plainHeader(object["?"].(map[string]any), several)
	})
	return export, err
}

// sealing replaces secrets.
type sealing struct {
	recipient *envelope.Recipient // nil: by secret.Mark
	err       error
}

func sealingFor(recipient *string) (*sealing, error) {
	if recipient == nil {
		return &sealing{}, nil
	}
	parsed, err := envelope.ParseRecipient(*recipient)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	return &sealing{recipient: &parsed}, nil
}

func (s *sealing) value(value any) any {
	if s.recipient == nil || value == nil || value == "" {
		return secret.Masked(value)
	}
	sealed, err := s.recipient.Seal(value)
	if err != nil {
		s.err = err
	}
	return sealed
}

func (s *sealing) text(text string) string {
	if envelope.Is(text) { // class secrets, which were replaced first
		return text
	}
	sealed, _ := s.value(text).(string)
	return sealed
}

// written is a model as a user would write it: without computed properties, and without values of null where these mean the same as
// none.
func (h History) written(ctx context.Context, environment store.Environment, model store.Model) map[string]any {
	objects := store.Copy(model.Objects)
	loaded, computed, problems := h.service.engine.Check(ctx, environment.ProjectID, model.Packages, store.ForClasses(environment.ID, store.Copy(objects)))
	without := func(objects map[string]any, leftOut func(id, name string, value any) bool) map[string]any {
		objects = store.Copy(objects)
		store.EachObject(objects, func(id string, object map[string]any) {
			maps.DeleteFunc(object, func(name string, value any) bool { return name != "?" && leftOut(id, name, value) })
		})
		return objects
	}
	objects = without(objects, func(id, name string, _ any) bool { return slices.Contains(computed[id], name) })
	short := without(objects, func(_, _ string, value any) bool { return value == nil })
	if len(problems) > 0 {
		return objects
	}
	loadedShort, _, problems := h.service.engine.Check(ctx, environment.ProjectID, model.Packages, store.ForClasses(environment.ID, store.Copy(short)))
	same := func(id, name string, _ any) bool { return slices.Contains(computed[id], name) }
	if len(problems) > 0 || !reflect.DeepEqual(without(loaded, same), without(loadedShort, same)) {
		return objects
	}
	return short
}

// usualNetworks reports whether the networks of an environment are the default ones.
func (h History) usualNetworks(ctx context.Context, environment store.Environment, networks map[string]any) bool {
	usual, err := newEnvironment(identity.Caller{ProjectID: environment.ProjectID}, map[string]any{"name": environment.Name})
	if err != nil {
		return false
	}
	loaded, _, problems := h.service.engine.Check(ctx, environment.ProjectID, environment.Model.Packages, store.ForClasses(environment.ID, usual.Model.Objects))
	if len(problems) > 0 {
		return false
	}
	usual.Model.Objects = h.written(ctx, environment, store.Model{Objects: store.ForAPI(loaded), Packages: environment.Model.Packages})
	plain := func(value any) map[string]any {
		object, _ := value.(map[string]any)
		inner, _ := object["environment"].(map[string]any)
		inner = maps.Clone(inner)
		header, _ := inner["?"].(map[string]any)
		name, _ := header["type"].(string)
		name, _, _ = strings.Cut(name, "/")
		inner["?"] = name
		return map[string]any{"environment": inner, "flat": object["flat"]}
	}
	inner, _ := networks["environment"].(map[string]any)
	return inner != nil && reflect.DeepEqual(plain(networks), plain(usual.Model.Objects["defaultNetworks"]))
}

// plainHeader is the header of an object without Burano's additions. Its type has no version, unless the environment uses several of the package.
func plainHeader(header map[string]any, several map[string]bool) map[string]any {
	plain := maps.Clone(header)
	maps.DeleteFunc(plain, func(name string, value any) bool {
		empty, is := value.(map[string]any)
		return strings.HasPrefix(name, "_") || value == nil || is && len(empty) == 0
	})
	full, _ := plain["type"].(string)
	class, rest, _ := strings.Cut(full, "/")
	if _, name, _ := strings.Cut(rest, "@"); !several[name] {
		plain["type"] = class
	}
	return plain
}
