package stacks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sync"

	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
)

// stacksRuntime is the part of a task that stacks and regions use.
type stacksRuntime interface {
	regionsRuntime
	Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, name string, value []byte) error
}

// Templates are the stacks that a task works with, by their regions and names.
type Templates struct {
	runtime stacksRuntime
	Regions regions
	mutex   sync.Mutex
	named   map[[2]string]*Stack
}

// NewTemplates returns the stacks of a task, whose objects without a region stand in the home region.
func NewTemplates(runtime stacksRuntime, home string) *Templates {
	return &Templates{runtime: runtime, Regions: regions{runtime, home}}
}

// Adopted reports whether the environment was taken over from Murano.
func (h *Templates) Adopted(ctx context.Context) (bool, error) {
	root := h.runtime.Model()
	if root == nil {
		return false, nil
	}
	_, adopted, err := h.runtime.Attribute(ctx, root, engine.AttributeAdopted)
	return adopted, err
}

// Stack is a stack as the code of this task knows it.
type Stack struct {
	Name   string
	region string // "" for the environment's own
	isOwn  bool   // it is the environment's own

	mutex   sync.Mutex
	known   bool              // content was set, or read from the store or from Heat
	content openstack.Content // its template is never changed in place
	// Of the environment's own: the text that is stored, and the template that it was made of; nil when that is not known.
	kept   []byte
	keptOf map[string]any
	// last is the content that this task pushed last; nil when it pushed none.
	last    *openstack.Content
	outputs map[string]any
}

// stack returns the task's one stack of the name in a region.
func (h *Templates) stack(region, name string) *Stack {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	key := [2]string{region, name}
	known := h.named[key]
	if known == nil {
		known = &Stack{Name: name, region: region, isOwn: name == h.Regions.stackName(region)}
		if h.named == nil {
			h.named = map[[2]string]*Stack{}
		}
		h.named[key] = known
	}
	return known
}

// Own returns the environment's stack in its own region.
func (h *Templates) Own() *Stack { return h.OwnIn("") }

// OwnIn returns the environment's stack in a region.
func (h *Templates) OwnIn(region string) *Stack {
	return h.stack(region, h.Regions.stackName(region))
}

// learn fills in the stack's content: the environment's own from the store, any other from Heat. The caller holds its mutex.
func (h *Templates) learn(ctx context.Context, s *Stack) error {
	if s.known {
		return nil
	}
	s.content = openstack.Content{Template: map[string]any{}}
	if s.isOwn {
		text, found, err := h.runtime.Secret(ctx, known.InRegion(known.SecretTemplate, s.region))
		switch {
		case err == nil && found:
			err = json.Unmarshal(text, &s.content.Template)
		case err == nil:
			err = h.adopt(ctx, s)
		}
		if err != nil {
			return fmt.Errorf("read what is kept of stack %s: %w", s.Name, err)
		}
		whole(s.content.Template)
		s.known, s.kept = true, text
		return nil
	}
	project, err := h.Regions.Project(ctx, s.region)
	if err != nil {
		return err
	}
	found, content, err := project.FindStack(ctx, s.Name)
	if err != nil {
		return err
	}
	if found != nil {
		whole(content.Template)
		s.content, s.outputs = content, found.Outputs
	}
	s.known = true
	return nil
}

// adopt begins with the content that Murano gave the environment's stack, if there is one: classes do not deploy deployed parts again, so that parts that
// they do not ask for have to stay.
func (h *Templates) adopt(ctx context.Context, s *Stack) error {
	if is, err := h.Adopted(ctx); err != nil || !is {
		return err
	}
	project, err := h.Regions.Project(ctx, s.region)
	if err != nil {
		return err
	}
	found, content, err := project.FindStack(ctx, s.Name)
	if err == nil && found != nil {
		s.content.Template = content.Template
	}
	return err
}

// keep stores the wanted content of the environment's own stack. The caller holds its mutex.
func (h *Templates) keep(ctx context.Context, s *Stack) error {
	if !s.isOwn {
		return nil
	}
	if s.keptOf != nil && reflect.ValueOf(s.keptOf).UnsafePointer() == reflect.ValueOf(s.content.Template).UnsafePointer() {
		return nil
	}
	text, err := json.Marshal(s.content.Template)
	if err != nil {
		return fmt.Errorf("the template of stack %s cannot be written as JSON: %w", s.Name, err)
	}
	if !bytes.Equal(text, s.kept) {
		if err := h.runtime.SetSecret(ctx, known.InRegion(known.SecretTemplate, s.region), text); err != nil {
			return err
		}
	}
	s.kept, s.keptOf = text, s.content.Template
	return nil
}

// Template is the wanted template of a stack.
func (h *Templates) Template(ctx context.Context, s *Stack) (map[string]any, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	err := h.learn(ctx, s)
	return s.content.Template, err
}

// KeptTemplate is template, once it is durable.
func (h *Templates) KeptTemplate(ctx context.Context, s *Stack) (map[string]any, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := h.learn(ctx, s); err != nil {
		return nil, err
	}
	return s.content.Template, h.keep(ctx, s)
}

// amend replaces the resources of a stack's template by change's result on a copy, in one turn, without storing it.
func (h *Templates) amend(ctx context.Context, s *Stack, change func(resources map[string]any)) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := h.learn(ctx, s); err != nil {
		return err
	}
	made := maps.Clone(s.content.Template)
	resources, _ := made["resources"].(map[string]any)
	if resources = maps.Clone(resources); resources == nil {
		resources = map[string]any{}
	}
	change(resources)
	if made == nil {
		made = map[string]any{}
	}
	made["resources"] = resources
	s.content.Template = made
	return nil
}

// Replace replaces the parts with the prefix in a stack's template, without storing it, and returns whether anything changed.
func (h *Templates) Replace(ctx context.Context, s *Stack, prefix string, template map[string]any) (changed bool, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := h.learn(ctx, s); err != nil {
		return false, err
	}
	return s.replace(core.Replacement{Prefixes: []string{prefix}, With: template}), nil
}

// Restore gives a resource of a stack's template its former definition.
func (h *Templates) Restore(s *Stack, resource string, definition map[string]any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	made := maps.Clone(s.content.Template)
	resources, _ := made["resources"].(map[string]any)
	resources = maps.Clone(resources)
	resources[resource] = whole(core.MergeTemplates(map[string]any{}, definition))
	made["resources"] = resources
	s.content.Template = made
}
