package stacks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

// heatStackClass is io.murano.system.HeatStack.
type heatStackClass struct {
	runtime interface {
		Model() *muranopl.Object
		Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	}
	stacks   *Templates
	own      *OwnStacks
	patience time.Duration
}

func (h heatStackClass) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		"current": h.on(currentTemplate), "parameters": h.on(currentParameters), "reload": h.reload,
		"setTemplate": h.on(setTemplate), "updateTemplate": h.on(updateTemplate), "replaceInTemplate": h.on(h.replaceInTemplate),
		"setParameters": h.on(setParameters), "setFiles": h.on(setFiles), "setHotEnvironment": h.on(setHotEnvironment),
		"push": h.push, "output": h.output, "delete": h.delete,
	}
}

// stackMethod works on the task's data of a stack, and holds its mutex.
type stackMethod func(ctx context.Context, s *Stack, call muranopl.Call) (any, error)

func (h heatStackClass) on(do stackMethod) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		s := h.stack(call)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if err := h.stacks.learn(ctx, s); err != nil {
			return nil, err
		}
		return do(ctx, s, call)
	}
}

func (h heatStackClass) stack(call muranopl.Call) *Stack {
	return h.stacks.stack(h.stacks.Regions.short(call.Object.Text(propertyRegionName), call.Object), call.Object.Text("name"))
}

func currentTemplate(_ context.Context, s *Stack, _ muranopl.Call) (any, error) {
	return s.content.Template, nil
}

func currentParameters(_ context.Context, s *Stack, _ muranopl.Call) (any, error) {
	if s.content.Parameters == nil {
		return map[string]any{}, nil
	}
	return s.content.Parameters, nil
}

func setTemplate(_ context.Context, s *Stack, call muranopl.Call) (any, error) {
	s.content.Template = task.MapArgument(call, "template")
	return nil, nil
}

func updateTemplate(_ context.Context, s *Stack, call muranopl.Call) (any, error) {
	s.content.Template = core.MergeTemplates(s.content.Template, task.MapArgument(call, "template"))
	return nil, nil
}

// replaceInTemplate removes parts before it merges. The removal is stored at once: a destroyed object does not come back to it. New parts are stored
// before they are made, and asked for again until then.
func (h heatStackClass) replaceInTemplate(ctx context.Context, s *Stack, call muranopl.Call) (any, error) {
	before := s.content.Template
	if !s.replace(core.ReplacementOf(call.Args)) {
		return nil, nil
	}
	if s.isOwn {
		h.own.in(s.region).tidyAtEnd(call.Interpreter)
	}
	if !takesOut(before, s.content.Template) {
		return nil, nil
	}
	return nil, h.stacks.keep(ctx, s)
}

// takesOut is true if resources or outputs of a template are missing in another one.
func takesOut(before, after map[string]any) bool {
	for _, section := range []string{"resources", "outputs"} {
		was, _ := before[section].(map[string]any)
		is, _ := after[section].(map[string]any)
		for name := range was {
			if _, stays := is[name]; !stays {
				return true
			}
		}
	}
	return false
}

// replace replaces a part of the template, and returns whether anything changed.
func (s *Stack) replace(part core.Replacement) (changed bool) {
	made := part.In(s.content.Template)
	if reflect.DeepEqual(made, s.content.Template) {
		return false
	}
	s.content.Template = made
	return true
}

func setParameters(_ context.Context, s *Stack, call muranopl.Call) (any, error) {
	s.content.Parameters = given(task.MapArgument(call, "parameters"))
	return nil, nil
}

// given leaves out parameters that are null, for which Heat takes the template's default.
func given(parameters map[string]any) map[string]any {
	made := maps.Clone(parameters)
	maps.DeleteFunc(made, func(_ string, value any) bool { return value == nil })
	return made
}

func setFiles(_ context.Context, s *Stack, call muranopl.Call) (any, error) {
	s.content.Files = map[string]string{}
	for name, value := range task.MapArgument(call, "files") {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("the file %s of stack %s is no text", name, s.Name)
		}
		s.content.Files[name] = text
	}
	return nil, nil
}

func setHotEnvironment(_ context.Context, s *Stack, call muranopl.Call) (any, error) {
	s.content.Environment, _ = call.Args["hotEnvironment"].(string)
	return nil, nil
}

// reload drops changes that were not pushed.
func (h heatStackClass) reload(_ context.Context, call muranopl.Call) (any, error) {
	s := h.stack(call)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.known = false
	return nil, nil
}

// push applies the wanted template to the stack.
func (h heatStackClass) push(ctx context.Context, call muranopl.Call) (any, error) {
	s := h.stack(call)
	if s.isOwn {
		own := h.own.in(s.region)
		if own.busy() {
			return nil, nil
		}
		return nil, own.Push(ctx, call.Interpreter)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := h.stacks.learn(ctx, s); err != nil {
		return nil, err
	}
	if s.last != nil && reflect.DeepEqual(*s.last, s.content) {
		return nil, nil
	}
	project, err := h.stacks.Regions.Project(ctx, s.region)
	if err != nil {
		return nil, err
	}
	wanted := s.content
	wanted.Template = versioned(wanted.Template)
	if description := call.Object.Text("description"); description != "" {
		wanted.Template["description"] = description
	}
	coming, lacking := project.CheckRoom(ctx, s.Name, wanted)
	if h.own.First.rehearsal {
		h.own.First.refused.lack(coming, lacking)
		return nil, h.own.First.refused.note(project.CheckStack(ctx, s.Name, wanted))
	}
	if lacking != nil {
		return nil, lacking
	}
	err = h.runtime.Step(ctx, h.about(call.Object), known.InRegion("push stack "+s.Name, s.region), func(ctx context.Context) error {
		limited, cancel := Limit(ctx, h.patience)
		defer cancel()
		made, err := project.ApplyStack(limited, s.Name, wanted)
		s.outputs = made.Outputs
		return err
	})
	if err != nil {
		s.outputs = nil
		return nil, err
	}
	last := s.content
	s.last = &last
	return nil, nil
}

// output returns the outputs of the stack as it was pushed last.
func (h heatStackClass) output(ctx context.Context, call muranopl.Call) (any, error) {
	s := h.stack(call)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.outputs == nil {
		project, err := h.stacks.Regions.Project(ctx, s.region)
		if err != nil {
			return nil, err
		}
		found, _, err := project.FindStack(ctx, s.Name)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return map[string]any{}, nil
		}
		s.outputs = found.Outputs
	}
	whole(s.outputs)
	return s.outputs, nil
}

// SetOutputs notes the outputs of the environment's own stack.
func (s *Stack) SetOutputs(outputs map[string]any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.outputs = outputs
}

// KnownOutputs are the outputs that this task knows.
func (s *Stack) KnownOutputs() map[string]any {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.outputs
}

// delete deletes the stack. The environment's own also holds the servers of clusters, which stay.
func (h heatStackClass) delete(ctx context.Context, call muranopl.Call) (any, error) {
	s := h.stack(call)
	s.mutex.Lock()
	s.content, s.known = openstack.Content{Template: map[string]any{}}, true
	s.last, s.outputs = nil, nil
	err := h.stacks.keep(ctx, s)
	s.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	if h.own.First.rehearsal {
		return nil, nil
	}
	if s.isOwn {
		own := h.own.in(s.region)
		if own.busy() {
			return nil, nil
		}
		return nil, own.tidy(ctx, call.Interpreter, h.runtime.Model())
	}
	project, err := h.stacks.Regions.Project(ctx, s.region)
	if err != nil {
		return nil, err
	}
	return nil, h.runtime.Step(ctx, h.about(call.Object), known.InRegion("delete stack "+s.Name, s.region), func(ctx context.Context) error {
		return project.DeleteStack(ctx, s.Name)
	})
}

// about is the environment where there is one, as the owner of steps: objects of HeatStack are made again each time.
func (h heatStackClass) about(object *muranopl.Object) *muranopl.Object {
	return cmp.Or(h.runtime.Model(), object.FindEmbedded(task.ClassEnvironment), object)
}
