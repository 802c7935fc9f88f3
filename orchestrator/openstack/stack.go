package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
)

// polling is how Heat's state is asked for, since it offers nothing to wait on: soon after a change, then once a second.
var polling = wait.Policy{First: 100 * time.Millisecond, Most: time.Second, Growth: 1.5}

// Stack has the known data of a Heat stack after it was applied.
type Stack struct {
	ID      string
	Outputs map[string]any
}

// Content is all that Heat is given for a stack.
type Content struct {
	Template    map[string]any // in HOT
	Parameters  map[string]any
	Files       map[string]string // by the names under which the template asks for them
	Environment string            // in YAML, "" for none
	// Nodes are resources: servers whose user data Burano writes. Existing ones keep theirs, and their names.
	Nodes []string
}

// resource is a resource's definition in the template; nil for none.
func (c Content) resource(name string) map[string]any {
	return definition{template: c.Template}.resource(name)
}

// nameOf is a resource's name for people: a server has a name of its own.
func (c Content) nameOf(resource string) string {
	one := c.resource(resource)
	properties, _ := one["properties"].(map[string]any)
	if name, ok := properties["name"].(string); ok && one["type"] == "OS::Nova::Server" {
		return "server " + name
	}
	return resource
}

// plain gives a value the types that JSON's decoding gives.
func plain(value map[string]any) (map[string]any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var made map[string]any
	err = json.Unmarshal(text, &made)
	return made, err
}

const (
	// OwnTag is on every stack that Burano makes. A stack without it is foreign, whatever its name.
	OwnTag = "burano"
	// tagPatience is for Heat, which stores a new stack's tags a moment after the stack.
	tagPatience = 3 * time.Second
)

// ApplyStack applies the template to the stack, and waits for it: a stack of that name is taken over and updated, otherwise one is created. A stack that
// matches already is left alone. The error of a failed stack names the failed resources, with the cloud's reasons; the stack stays as it is, so that
// applying it again continues from there. When ctx ends first, the error names the resources that were not ready. A change that would destroy an existing
// server is refused with ServerChanges, before anything is changed.
//
// Heat looks for stacks of that name before and right after it stores a new one, and knows their age in whole seconds. So several creators within the same
// second can all succeed: of several stacks of that name the oldest stays and the others are deleted.
func (p *Project) ApplyStack(ctx context.Context, name string, content Content) (Stack, error) {
	made, err := p.applyStack(ctx, name, content)
	if errors.Is(err, errTakenOver) {
		made, err = p.applyStack(ctx, name, content)
	}
	return made, err
}

func (p *Project) applyStack(ctx context.Context, name string, content Content) (Stack, error) {
	existing, made, err := p.adoptOrCreate(ctx, name, content)
	if err != nil {
		return Stack{}, err
	}
	if made {
		return p.result(ctx, existing, content)
	}
	same, err := p.isMadeOf(ctx, existing, content)
	if err != nil {
		return Stack{}, err
	}
	if same {
		return stackOf(existing), nil
	}
	content, states, err := p.preserve(ctx, existing, content)
	if err != nil {
		return Stack{}, err
	}
	if len(states) == 0 {
		if same, err = p.isMadeOf(ctx, existing, content); err != nil {
			return Stack{}, err
		}
		if same {
			return stackOf(existing), nil
		}
	}
	if err := p.markHealth(ctx, existing, states); err != nil {
		return Stack{}, err
	}
	return p.update(ctx, existing, content)
}

// adoptOrCreate returns the stack of that name once nothing is in progress in it. It is made when there is none, and after an outage only when there still
// is none. made is true only if this call has created it. An earlier call whose answer was lost, or another creator, may have used another template.
func (p *Project) adoptOrCreate(ctx context.Context, name string, content Content) (existing *stacks.RetrievedStack, made bool, err error) {
	if existing, err = p.awaitIdle(ctx, name, content); err != nil || existing != nil {
		return existing, false, err
	}
	of, err := p.stacks(ctx, name)
	if err != nil {
		return nil, false, err
	}
	created, tries := "", 0
	err = Patiently(ctx, heat, func(ctx context.Context) error {
		if tries++; tries > 1 {
			if found, err := p.named(ctx, name); err != nil || len(found) > 0 {
				return err
			}
		}
		if err := p.beforeChange(ctx, name); err != nil {
			return err
		}
		var err error
		created, err = of.Create(ctx, name, content)
		if gophercloud.ResponseCodeIs(err, http.StatusConflict) {
			return p.awaitTag(ctx, name, tries)
		}
		if err != nil {
			return explain(ctx, err, "create stack "+name, content)
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	if existing, err = p.awaitIdle(ctx, name, content); err != nil {
		return nil, false, err
	}
	if existing == nil {
		return nil, false, deleted(name)
	}
	return existing, existing.ID == created, nil
}

// update makes Heat apply content to the stack, and waits for it. An update whose answer was lost, or that Heat refuses because it is at work, is sent
// again once nothing is in progress: Heat then changes nothing where nothing is left to be changed.
func (p *Project) update(ctx context.Context, existing *stacks.RetrievedStack, content Content) (Stack, error) {
	name := existing.Name
	of, err := p.stacks(ctx, name)
	if err != nil {
		return Stack{}, err
	}
	for refused := 0; ; refused++ {
		err := Patiently(ctx, heat, func(ctx context.Context) error {
			if err := p.beforeChange(ctx, name); err != nil {
				return err
			}
			return p.lostFor(ctx, existing, content, of.Update(ctx, name, existing.ID, content))
		})
		if err == nil {
			break
		}
		if errors.Is(err, errTakenOver) {
			return Stack{}, err
		}
		if !gophercloud.ResponseCodeIs(err, http.StatusConflict) || refused == conflicts {
			return Stack{}, explain(ctx, lostTrust(err), "update stack "+name, content)
		}
		if existing, err = p.awaitIdle(ctx, name, content); err != nil {
			return Stack{}, err
		}
		if existing == nil {
			return Stack{}, deleted(name)
		}
	}
	ended, err := p.awaitIdle(ctx, name, content)
	if err != nil {
		return Stack{}, err
	}
	if ended == nil {
		return Stack{}, deleted(name)
	}
	return p.result(ctx, ended, content)
}

// result is the result of a stack in which nothing is in progress, or the reason why it failed.
func (p *Project) result(ctx context.Context, ended *stacks.RetrievedStack, content Content) (Stack, error) {
	if err := p.failure(ctx, ended, content); err != nil {
		return Stack{}, err
	}
	return stackOf(ended), nil
}

// awaitTag waits until there is a stack of ours with that name, after Heat has answered for the refused-th time that there is one. When there is none at
// all, Heat was wrong and may be asked again.
func (p *Project) awaitTag(ctx context.Context, name string, refused int) error {
	foreign := fault.New(fault.Conflict, "create stack %s: the project has a stack of that name without the tag %q, so Burano has not made it. Look at what it is: "+
		"when it belongs here, as one that Murano has made does, hand it over by `openstack stack update --existing --tags %s %s`; when nothing of it is needed, delete it",
		name, OwnTag, OwnTag, name)
	err := polling.For(tagPatience).Until(ctx, func(ctx context.Context) error {
		all, err := p.withName(ctx, name)
		switch {
		case err != nil:
			return err
		case len(all) == 0 && refused <= conflicts:
			return &outage{status: http.StatusConflict, text: "409 Conflict, but there is no stack " + name}
		case !slices.ContainsFunc(all, isOurs):
			return wait.Again(foreign)
		}
		return nil
	})
	if errors.Is(err, foreign) && ctx.Err() == nil {
		return foreign
	}
	return err
}

func deleted(name string) error {
	return fmt.Errorf("stack %s was deleted while it was waited for", name)
}

// ReplaceServers makes new servers, under the same names and with the same ports, in place of the servers with these ids in the template.
func (p *Project) ReplaceServers(ctx context.Context, name string, content Content, reasons map[string]string) (Stack, error) {
	made, err := p.replaceServers(ctx, name, content, reasons)
	if errors.Is(err, errTakenOver) {
		made, err = p.replaceServers(ctx, name, content, reasons)
	}
	return made, err
}

func (p *Project) replaceServers(ctx context.Context, name string, content Content, reasons map[string]string) (Stack, error) {
	existing, err := p.awaitIdle(ctx, name, content)
	if err != nil {
		return Stack{}, err
	}
	if existing == nil {
		return Stack{}, deleted(name)
	}
	content, states, err := p.preserve(ctx, existing, content)
	if err != nil {
		return Stack{}, err
	}
	for id, reason := range reasons {
		states[ServerResource(id)] = reason
	}
	if err := p.markHealth(ctx, existing, states); err != nil {
		return Stack{}, err
	}
	return p.update(ctx, existing, content)
}

// DeleteStack deletes every stack of ours with that name and all that they made, and waits until they are gone; none is no error. Of one that was
// taken over from Heat (takeOver), Heat's goes when everything in it is gone.
func (p *Project) DeleteStack(ctx context.Context, name string) error {
	for {
		by, err := p.stacks(ctx, name)
		if err != nil {
			return err
		}
		found, err := p.named(ctx, name)
		if err != nil {
			return err
		}
		if err := p.deleteAll(ctx, name, found); err != nil || p.isHeats(by) || p.orchestration == nil {
			return err
		}
		p.makers.forget(name)
		left, err := p.byHeatOf(name).List(ctx, name)
		if err != nil {
			return fmt.Errorf("look whether Heat has made stack %s: %w", name, err)
		}
		if !slices.ContainsFunc(left, isOurs) {
			return nil
		}
	}
}

// deleteAll deletes these stacks of one name at once, and waits until the name is free of them: for a moment after DELETE_COMPLETE it
// is not.
func (p *Project) deleteAll(ctx context.Context, name string, list []stacks.ListedStack) error {
	if len(list) == 0 {
		return nil
	}
	of, err := p.stacks(ctx, name)
	if err != nil {
		return err
	}
	if err := p.beforeChange(ctx, name); err != nil {
		return err
	}
	ids := map[string]bool{}
	for _, one := range list {
		err := of.Delete(ctx, name, one.ID)
		if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return explain(ctx, err, "delete stack "+name, Content{})
		}
		ids[one.ID] = true
	}
	return poll(ctx, func() (bool, error) {
		found, err := p.named(ctx, name)
		if err != nil {
			return false, err
		}
		left := slices.DeleteFunc(found, func(one stacks.ListedStack) bool { return !ids[one.ID] })
		for _, one := range left {
			if one.Status == "DELETE_FAILED" {
				current, err := p.stack(ctx, one)
				if err == nil && current != nil {
					err = p.failure(ctx, current, Content{})
				}
				return false, err
			}
		}
		return len(left) == 0, nil
	})
}

// named lists our stacks of that name, the oldest first.
func (p *Project) named(ctx context.Context, name string) ([]stacks.ListedStack, error) {
	found, err := p.withName(ctx, name)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(one stacks.ListedStack) bool { return !isOurs(one) })
	// Heat's times are whole seconds; stacks of the same second have an order that is the same for all processes.
	slices.SortFunc(found, func(a, b stacks.ListedStack) int {
		return cmp.Or(a.CreationTime.Compare(b.CreationTime), strings.Compare(a.ID, b.ID))
	})
	return found, nil
}

func isOurs(one stacks.ListedStack) bool { return slices.Contains(one.Tags, OwnTag) }

// withName lists all stacks of that name.
func (p *Project) withName(ctx context.Context, name string) ([]stacks.ListedStack, error) {
	of, err := p.stacks(ctx, name)
	if err != nil {
		return nil, err
	}
	found, err := of.List(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("look for stack %s: %w", name, err)
	}
	return found, nil
}

// stack returns one stack as it is now, or nil when it is gone.
func (p *Project) stack(ctx context.Context, one stacks.ListedStack) (*stacks.RetrievedStack, error) {
	of, err := p.stacks(ctx, one.Name)
	if err != nil {
		return nil, err
	}
	current, err := of.Get(ctx, one.Name, one.ID)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at stack %s: %w", one.Name, err)
	}
	if current.Status == "DELETE_COMPLETE" {
		return nil, nil
	}
	return current, nil
}

// isMadeOf is true if the stack is complete and was made of exactly this. Heat returns parameters as texts, and no hidden ones: a stack that has any is
// updated again, in which Heat changes nothing where nothing differs.
func (p *Project) isMadeOf(ctx context.Context, stack *stacks.RetrievedStack, content Content) (bool, error) {
	if !strings.HasSuffix(stack.Status, "_COMPLETE") || len(content.Parameters) > 0 || len(content.Files) > 0 || content.Environment != "" {
		return false, nil
	}
	current, err := p.template(ctx, stack)
	if err != nil {
		return false, err
	}
	want, err := plain(content.Template)
	return err == nil && reflect.DeepEqual(current, want), err
}

func (p *Project) template(ctx context.Context, stack *stacks.RetrievedStack) (map[string]any, error) {
	of, err := p.stacks(ctx, stack.Name)
	if err != nil {
		return nil, err
	}
	template, err := of.Template(ctx, stack.Name, stack.ID)
	if err != nil {
		return nil, fmt.Errorf("read the template of stack %s: %w", stack.Name, err)
	}
	return template, nil
}

// resources lists the resources of a stack.
func (p *Project) resources(ctx context.Context, name, id string) ([]stackresources.Resource, error) {
	of, err := p.stacks(ctx, name)
	if err != nil {
		return nil, err
	}
	resources, err := of.Resources(ctx, name, id)
	if err != nil {
		return nil, fmt.Errorf("look at the resources of stack %s: %w", name, err)
	}
	return resources, nil
}

// hiddenParameter is Heat's text in place of a hidden parameter.
const hiddenParameter = "******"

// FindStack returns the stack of ours with that name and its content, once nothing is in progress in it; nil when there is none. The content has only the
// template and the parameters, these as texts, and no hidden ones.
func (p *Project) FindStack(ctx context.Context, name string) (*Stack, Content, error) {
	existing, err := p.awaitIdle(ctx, name, Content{})
	if err != nil || existing == nil {
		return nil, Content{}, err
	}
	content := Content{Parameters: map[string]any{}}
	if content.Template, err = p.template(ctx, existing); err != nil {
		return nil, Content{}, err
	}
	for name, value := range existing.Parameters {
		if !strings.HasPrefix(name, "OS::") && value != hiddenParameter && !content.hides(name) { // Heat has some of its own
			content.Parameters[name] = value
		}
	}
	found := stackOf(existing)
	return &found, content, nil
}

// hides is true if the template hides a parameter's value.
func (c Content) hides(parameter string) bool {
	declared, _ := c.Template["parameters"].(map[string]any)
	one, _ := declared[parameter].(map[string]any)
	return one["hidden"] == true
}

func stackOf(retrieved *stacks.RetrievedStack) Stack {
	stack := Stack{ID: retrieved.ID, Outputs: map[string]any{}}
	for _, output := range retrieved.Outputs {
		if key, ok := output["output_key"].(string); ok {
			stack.Outputs[key] = output["output_value"]
		}
	}
	return stack
}

// poll asks until done returns true or an error, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	return polling.Until(ctx, func(context.Context) error {
		ok, err := done()
		if err == nil && !ok {
			return wait.Again(nil)
		}
		return err
	})
}
