package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
)

// Taker makes stacks without Heat and can go on with one of Heat's.
type Taker interface {
	// TakeOver continues with a stack that Heat has made: its physical resources are the new stack's from then on. It changes nothing in the cloud, and
	// does all or nothing. A fault of kind Invalid names the part of the stack that only Heat supports.
	TakeOver(ctx context.Context, former Former) error
}

// Former is a stack of Heat's that Heat can change no more.
type Former struct {
	Name      string
	Content   Content // of its last update
	Failed    bool    // that change failed
	Resources []FormerResource
}

// FormerResource is one resource of it.
type FormerResource struct {
	Name, Type string
	PhysicalID string // "" when there is nothing
	Status     string // in Heat's words, such as CREATE_COMPLETE
	Attributes map[string]any
}

// errTakenOver is the error when another maker makes a stack from now on: the operation begins again.
var errTakenOver = errors.New("the stack was taken over")

// takeOver makes Burano itself continue with a stack that Heat refuses to change for good. Heat's own stack stays as it is until the stack is deleted:
// Heat deletes no stack without its resources.
func (p *Project) takeOver(ctx context.Context, existing *stacks.RetrievedStack, wanted Content) error {
	name := existing.Name
	of, err := p.stacks(ctx, name)
	if err != nil {
		return err
	}
	taker, able := p.taker()
	if !able || !p.isHeats(of) {
		return errors.New("this Burano makes no stacks without Heat")
	}
	former := Former{Name: name, Failed: !strings.HasSuffix(existing.Status, "_COMPLETE"), Content: Content{Parameters: map[string]any{}}}
	if former.Content.Template, err = p.template(ctx, existing); err != nil {
		return err
	}
	for parameter, value := range existing.Parameters {
		switch {
		case strings.HasPrefix(parameter, "OS::"):
		case value != hiddenParameter && !former.Content.hides(parameter):
			former.Content.Parameters[parameter] = value
		default: // Heat does not return it; it counts as unchanged
			if given, there := wanted.Parameters[parameter]; there {
				former.Content.Parameters[parameter] = given
			}
		}
	}
	var registry map[string]any
	if former.Content.Files, registry, err = of.Extensions(ctx, name, existing.ID); err != nil {
		return fmt.Errorf("read the files of stack %s: %w", name, err)
	}
	if mapped := slices.DeleteFunc(keysOf(registry), func(key string) bool { return key == "resources" }); len(mapped) > 0 {
		return fmt.Errorf("its environment maps types of resources (%s), which works only with Heat", strings.Join(mapped, ", "))
	}
	resources, err := p.resources(ctx, name, existing.ID)
	if err != nil {
		return err
	}
	for _, one := range resources {
		made := FormerResource{Name: one.LogicalID, Type: one.Type, PhysicalID: one.PhysicalID, Status: one.Status}
		if slices.Contains(kept, one.Type) && one.PhysicalID != "" {
			shown, err := stackresources.Get(ctx, p.orchestration, p.heatsName(name, existing), existing.ID, one.Name).Extract()
			if err != nil {
				return fmt.Errorf("look at resource %s of stack %s: %w", one.Name, name, err)
			}
			made.Attributes = shown.Attributes
		}
		former.Resources = append(former.Resources, made)
	}
	if err := taker.TakeOver(ctx, former); err != nil {
		return err
	}
	p.makers.forget(name)
	return nil
}

// kept are the types whose value only Heat has.
var kept = []string{"OS::Heat::RandomString", "OS::Nova::KeyPair"}

func keysOf(values map[string]any) (keys []string) {
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// heatsName is how Heat calls a stack.
func (p *Project) heatsName(name string, existing *stacks.RetrievedStack) string {
	if from := p.adopted[name].Stack; from != "" && existing.Name == name {
		return from
	}
	return name
}

// lostFor handles a change that Heat refuses for good: the stack is taken over, or the error is the reason why not.
func (p *Project) lostFor(ctx context.Context, existing *stacks.RetrievedStack, content Content, refused error) error {
	if p.lost == nil || !gophercloud.ResponseCodeIs(refused, http.StatusInternalServerError) {
		return refused
	}
	lost := p.lost(ctx, p.noted(existing.Name))
	if lost == nil {
		return refused
	}
	if err := p.takeOver(ctx, existing, content); err != nil {
		return fmt.Errorf("%w. Burano cannot go on without Heat: %w", lost, err)
	}
	if err := p.taken(ctx, existing.Name, lost); err != nil {
		return err
	}
	return errTakenOver
}
