package native

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/openstack"
)

// secretTemplate keeps the environment's template: what code in MuranoPL wants of the environment's stack. It may hold user data, and is
// therefore kept among the secrets.
const secretTemplate = "template of the stack"

// heatStack is a stack as the code of this task knows it.
type heatStack struct {
	name string
	own  bool // it is the environment's own

	mutex   sync.Mutex
	known   bool // content is what was set, or what is kept or in Heat
	content openstack.Content
	// pushed is what this task made the stack of last; nil when it did not.
	pushed  *openstack.Content
	outputs map[string]any
}

// heatStack returns the task's one stack of the name that the object has.
func (t *task) heatStack(object *muranopl.Object) *heatStack {
	return t.stackNamed(object.Text("name"))
}

func (t *task) stackNamed(name string) *heatStack {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	known := t.stacks[name]
	if known == nil {
		known = &heatStack{name: name, own: name == stackName(t.EnvironmentID())}
		t.stacks[name] = known
	}
	return known
}

// heatMethod is a method of HeatStack that works on what the task knows of the stack.
func (t *task) heatMethod(do func(ctx context.Context, s *heatStack, call muranopl.Call) (any, error)) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		s := t.heatStack(call.Object)
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if err := t.learn(ctx, s); err != nil {
			return nil, err
		}
		return do(ctx, s, call)
	}
}

// learn fills in what is known of the stack: the environment's own from what was kept, any other from Heat.
func (t *task) learn(ctx context.Context, s *heatStack) error {
	if s.known {
		return nil
	}
	s.content = openstack.Content{Template: map[string]any{}}
	if s.own {
		text, found, err := t.Secret(ctx, secretTemplate)
		if err == nil && found {
			err = json.Unmarshal(text, &s.content.Template)
		}
		if err != nil {
			return fmt.Errorf("read what is kept of stack %s: %w", s.name, err)
		}
		whole(s.content.Template)
		s.known = true
		return nil
	}
	project, err := t.Project(ctx)
	if err != nil {
		return err
	}
	found, content, err := project.FindStack(ctx, s.name)
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

// keep makes what is wanted of the environment's own stack durable.
func (t *task) keep(ctx context.Context, s *heatStack) error {
	if !s.own {
		return nil
	}
	text, err := json.Marshal(s.content.Template)
	if err != nil {
		return fmt.Errorf("the template of stack %s cannot be written as JSON: %w", s.name, err)
	}
	return t.SetSecret(ctx, secretTemplate, text)
}

func dict(call muranopl.Call, argument string) map[string]any {
	value, _ := call.Args[argument].(map[string]any)
	if value == nil {
		value = map[string]any{}
	}
	return value
}

func currentTemplate(_ context.Context, s *heatStack, _ muranopl.Call) (any, error) {
	return s.content.Template, nil
}

func currentParameters(_ context.Context, s *heatStack, _ muranopl.Call) (any, error) {
	if s.content.Parameters == nil {
		return map[string]any{}, nil
	}
	return s.content.Parameters, nil
}

func setTemplate(_ context.Context, s *heatStack, call muranopl.Call) (any, error) {
	s.content.Template = dict(call, "template")
	return nil, nil
}

func updateTemplate(_ context.Context, s *heatStack, call muranopl.Call) (any, error) {
	s.content.Template = mergeTemplates(s.content.Template, dict(call, "template"))
	return nil, nil
}

// replaceInTemplate takes out what begins with the prefix before it merges. Kept at once: who is destroyed does not come back to it.
func (t *task) replaceInTemplate(ctx context.Context, s *heatStack, call muranopl.Call) (any, error) {
	prefix, _ := call.Args["prefix"].(string)
	without := maps.Clone(s.content.Template)
	for _, section := range []string{"resources", "outputs"} {
		entries, ok := without[section].(map[string]any)
		if !ok {
			continue
		}
		entries = maps.Clone(entries)
		maps.DeleteFunc(entries, func(name string, _ any) bool { return strings.HasPrefix(name, prefix) })
		without[section] = entries
	}
	made := mergeTemplates(without, dict(call, "template"))
	if reflect.DeepEqual(made, s.content.Template) {
		return nil, nil
	}
	s.content.Template = made
	if root := t.Model(); s.own && root != nil {
		t.settling.Do(func() {
			t.AtEnd(func(ctx context.Context) error { return t.settleStack(ctx, call.Interpreter, root) })
		})
	}
	return nil, t.keep(ctx, s)
}

func setParameters(_ context.Context, s *heatStack, call muranopl.Call) (any, error) {
	s.content.Parameters = dict(call, "parameters")
	return nil, nil
}

func setFiles(_ context.Context, s *heatStack, call muranopl.Call) (any, error) {
	s.content.Files = map[string]string{}
	for name, value := range dict(call, "files") {
		text, ok := value.(string)
		if !ok {
			return nil, fmt.Errorf("the file %s of stack %s is no text", name, s.name)
		}
		s.content.Files[name] = text
	}
	return nil, nil
}

func setHotEnvironment(_ context.Context, s *heatStack, call muranopl.Call) (any, error) {
	s.content.Environment, _ = call.Args["hotEnvironment"].(string)
	return nil, nil
}

// reloadStack forgets what was not pushed.
func (t *task) reloadStack(_ context.Context, call muranopl.Call) (any, error) {
	s := t.heatStack(call.Object)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.known = false
	return nil, nil
}

// pushStack makes the stack what is wanted of it.
func (t *task) pushStack(ctx context.Context, call muranopl.Call) (any, error) {
	s := t.heatStack(call.Object)
	if s.own {
		return nil, t.pushOwn(ctx, call.Interpreter)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if err := t.learn(ctx, s); err != nil {
		return nil, err
	}
	if s.pushed != nil && reflect.DeepEqual(*s.pushed, s.content) {
		return nil, nil
	}
	project, err := t.Project(ctx)
	if err != nil {
		return nil, err
	}
	wanted := s.content
	wanted.Template = versioned(wanted.Template)
	if description := call.Object.Text("description"); description != "" {
		wanted.Template["description"] = description
	}
	err = t.Step(ctx, t.about(call.Object), "push stack "+s.name, func(ctx context.Context) error {
		limited, cancel := t.patient(ctx)
		defer cancel()
		made, err := project.ApplyStack(limited, s.name, wanted)
		s.outputs = made.Outputs
		return err
	})
	if err != nil {
		s.outputs = nil
		return nil, err
	}
	pushed := s.content
	s.pushed = &pushed
	return nil, nil
}

// pushOwn pushes the environment's own stack. When the environment is deleted its stack is, too, and what is destroyed before a
// deployment goes with that deployment's updates.
func (t *task) pushOwn(ctx context.Context, interpreter *muranopl.Interpreter) error {
	if t.Model() == nil || t.Deploys() && !t.deploying.Load() {
		return nil
	}
	_, err := t.servers(ctx, interpreter)
	return err
}

// stackOutput returns the outputs of the stack as it was pushed last.
func (t *task) stackOutput(ctx context.Context, call muranopl.Call) (any, error) {
	s := t.heatStack(call.Object)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.outputs == nil {
		project, err := t.Project(ctx)
		if err != nil {
			return nil, err
		}
		found, _, err := project.FindStack(ctx, s.name)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return map[string]any{}, nil
		}
		s.outputs = found.Outputs
	}
	return s.outputs, nil
}

// tell notes the outputs of the environment's own stack.
func (s *heatStack) tell(outputs map[string]any) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.outputs = outputs
}

// removeStack deletes the stack. The environment's own also holds the servers of clusters: of it only goes what code put there.
func (t *task) removeStack(ctx context.Context, call muranopl.Call) (any, error) {
	s := t.heatStack(call.Object)
	s.mutex.Lock()
	s.content, s.known = openstack.Content{Template: map[string]any{}}, true
	s.pushed, s.outputs = nil, nil
	err := t.keep(ctx, s)
	s.mutex.Unlock()
	if err != nil {
		return nil, err
	}
	if s.own {
		if t.Model() == nil || t.Deploys() && !t.deploying.Load() {
			return nil, nil
		}
		return nil, t.settleStack(ctx, call.Interpreter, t.Model())
	}
	project, err := t.Project(ctx)
	if err != nil {
		return nil, err
	}
	return nil, t.Step(ctx, t.about(call.Object), "delete stack "+s.name, func(ctx context.Context) error {
		return project.DeleteStack(ctx, s.name)
	})
}

// about is the environment where there is one, as what steps belong to: objects of HeatStack are made anew each time.
func (t *task) about(object *muranopl.Object) *muranopl.Object {
	return cmp.Or(t.Model(), object.Find(classEnvironment), object)
}

// patient limits how long a stack may take; outages of the cloud, which have a patience of their own, do not count.
func (t *task) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return openstack.Limit(ctx, t.config.ServerPatience,
		fmt.Errorf("the servers were not ready within %s (burano serve --server-patience)", t.config.ServerPatience))
}

const keyVersion = "heat_template_version"

// whole makes whole numbers of those that JSON gives, as code has them.
func whole(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for n := range v {
			v[n] = whole(v[n])
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return value
}

// versioned copies a template, and gives it the version that Burano's own have when it says none.
func versioned(template map[string]any) map[string]any {
	made := map[string]any{keyVersion: openstack.NewTemplate().Version}
	maps.Copy(made, template)
	return made
}

// mergeTemplates merges the second into the first; of two versions of the language the newer one counts. Nothing given is changed.
func mergeTemplates(one, other map[string]any) map[string]any {
	made, _ := mergeValues(one, other).(map[string]any)
	if a, _ := one[keyVersion].(string); a != "" {
		if b, _ := other[keyVersion].(string); b != "" {
			made[keyVersion] = max(a, b) // dates, and after them names
		}
	}
	return made
}

func mergeValues(one, other any) any {
	switch a := one.(type) {
	case map[string]any:
		if b, ok := other.(map[string]any); ok {
			made := maps.Clone(a)
			if made == nil {
				made = map[string]any{}
			}
			for key, value := range b {
				if before, there := made[key]; there {
					value = mergeValues(before, value)
				}
				made[key] = value
			}
			return made
		}
	case []any:
		if b, ok := other.([]any); ok {
			made := slices.Clone(a)
			for _, item := range b {
				if !slices.ContainsFunc(made, func(there any) bool { return reflect.DeepEqual(there, item) }) {
					made = append(made, item)
				}
			}
			return made
		}
	}
	return other
}

// trackApplication counts an application in the statistics of instances.
func (t *task) trackApplication(ctx context.Context, call muranopl.Call) (any, error) {
	object, _ := call.Args["instance"].(*muranopl.Object)
	title, _ := call.Args["title"].(string)
	units, _ := call.Args["unitCount"].(int64)
	return nil, t.TrackApplication(ctx, object, title, units)
}

// trackServer counts a server.
func (t *task) trackServer(ctx context.Context, call muranopl.Call) (any, error) {
	object, _ := call.Args["instance"].(*muranopl.Object)
	return nil, t.TrackServer(ctx, object, "", 1)
}

// untrack ends the count of either.
func (t *task) untrack(ctx context.Context, call muranopl.Call) (any, error) {
	object, _ := call.Args["instance"].(*muranopl.Object)
	return nil, t.Untrack(ctx, object)
}
