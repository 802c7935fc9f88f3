package orchestrator

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

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
