package stacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/core"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

const (
	attributeRegion = engine.AttributeRegion
	attributeStacks = engine.AttributeStacks

	propertyRegion     = "region"
	propertyRegionName = "regionName"
	classRegion        = "io.murano.CloudRegion"
)

// regionsRuntime is the part of a task that regions use.
type regionsRuntime interface {
	Model() *muranopl.Object
	EnvironmentID() string
	Project(ctx context.Context) (*openstack.Project, error)
}

// regions knows the region of each object. The environment's own region is the one in its model; elsewhere in this package it is called "", and
// objects that name no other are in it.
type regions struct {
	runtime regionsRuntime
	home    string // of environments whose model names none; "" for core.DefaultRegion
}

// own is the name of the own region of an object's environment.
func (r regions) own(object *muranopl.Object) string {
	named, environment := "", r.runtime.Model()
	if environment == nil { // it is deleted
		environment = object.FindEmbedded(task.ClassEnvironment)
	}
	if environment != nil {
		named = environment.Text(propertyRegion)
	}
	return cmp.Or(named, r.home, core.DefaultRegion)
}

// short is a region that an object names, "" for the environment's own.
func (r regions) short(name string, object *muranopl.Object) string {
	if name == r.own(object) {
		return ""
	}
	return name
}

// Of is the region of an object: that which it names, or else who owns it.
func (r regions) Of(object *muranopl.Object) string {
	for at := object; at != nil; at = at.Owner() {
		named := at.Text(propertyRegionName)
		if at.Class().IsEmbedded(classRegion) {
			named = at.Text("name")
		}
		if named != "" {
			return r.short(named, object)
		}
	}
	return ""
}

// Project is the environment's project in a region.
func (r regions) Project(ctx context.Context, region string) (*openstack.Project, error) {
	project, err := r.runtime.Project(ctx)
	if err != nil || region == "" {
		return project, err
	}
	return project.In(ctx, region)
}

// stackName is the name of an environment's stack in a region.
func (r regions) stackName(region string) string {
	return engine.StackName(r.runtime.EnvironmentID(), region)
}

// check refuses a model whose objects are in unknown or forbidden regions, before anything is made.
func (r regions) check(ctx context.Context, environment *muranopl.Object, made string) error {
	own := r.own(environment)
	if made != "" && made != own {
		return fault.New(fault.Conflict, "the environment stands in region %s and cannot move to %s, because its servers would be lost: set its region to %s again, "+
			"and put what is to stand elsewhere there by regionName, or make another environment", made, own, made)
	}
	elsewhere := map[string]*muranopl.Object{} // by region
	var problems []error
	for _, application := range environment.Objects(task.PropertyApplications) {
		application.Walk(func(object *muranopl.Object) bool {
			region := r.short(object.Text(propertyRegionName), environment)
			if region == "" {
				return true
			}
			elsewhere[region] = object
			if object.Class().IsEmbedded(task.ClassInstance) && task.ClusterOf(object) != nil {
				problems = append(problems, fault.New(fault.Invalid, "node %s is to stand in region %s: all nodes of a cluster stand in the environment's region, which is %s. "+
					"Leave regionName out, or make an environment there", object.Text("name"), region, own))
			}
			return true
		})
	}
	for _, region := range slices.Sorted(maps.Keys(elsewhere)) {
		if _, err := r.Project(ctx, region); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", elsewhere[region], err))
		}
	}
	return errors.Join(problems...)
}

// OwnStacks are the stacks of an environment, one in each region with an object of it.
type OwnStacks struct {
	First     *OwnStack
	Regions   regions
	Templates *Templates
	runtime   task.Runtime
	settings  Settings

	mutex  sync.Mutex
	others map[string]*OwnStack
	noting sync.Mutex
}

// in is the environment's stack in a region.
func (o *OwnStacks) in(region string) *OwnStack {
	if region == "" {
		return o.First
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.others == nil {
		o.others = map[string]*OwnStack{}
	}
	if o.others[region] == nil {
		first := o.First
		o.others[region] = &OwnStack{runtime: first.runtime, objects: first.objects, reports: first.reports, stacks: first.stacks,
			Nodes: noNodes{}, patience: first.patience, rehearsal: first.rehearsal, refused: first.refused, deploying: first.deploying, all: o, region: region}
	}
	return o.others[region]
}

// Begin begins the environment's deploy, if its region is the region of its existing stacks.
func (o *OwnStacks) Begin(ctx context.Context, environment *muranopl.Object) error {
	o.First.deploying.Store(true)
	made, err := o.region(ctx, environment)
	if err != nil {
		return err
	}
	return o.Regions.check(ctx, environment, made)
}

// Tidy gives all stacks exactly the resources of the model.
func (o *OwnStacks) Tidy(ctx context.Context, interpreter *muranopl.Interpreter, environment *muranopl.Object) error {
	return o.each(ctx, environment, func(s *OwnStack) error { return s.tidy(ctx, interpreter, environment) })
}

// Remove deletes all stacks.
func (o *OwnStacks) Remove(ctx context.Context, environment *muranopl.Object) error {
	return o.each(ctx, environment, func(s *OwnStack) error { return s.remove(ctx, environment) })
}

// each calls do for all that may be there at once, the first in any case.
func (o *OwnStacks) each(ctx context.Context, environment *muranopl.Object, do func(*OwnStack) error) error {
	made, err := o.made(ctx, environment)
	if err != nil {
		return err
	}
	o.mutex.Lock()
	for region := range o.others {
		made[region] = true
	}
	o.mutex.Unlock()
	list := []*OwnStack{o.First}
	for _, region := range slices.Sorted(maps.Keys(made)) {
		list = append(list, o.in(region))
	}
	errs := make([]error, len(list))
	var group sync.WaitGroup
	for i, one := range list {
		group.Go(func() { errs[i] = panics.Run(func() error { return do(one) }) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// made are the regions other than the first where a stack is or may be.
func (o *OwnStacks) made(ctx context.Context, environment *muranopl.Object) (map[string]any, error) {
	value, _, err := o.First.runtime.Attribute(ctx, environment, attributeStacks)
	known, _ := value.(map[string]any)
	made := map[string]any{}
	maps.Copy(made, known)
	return made, err
}

// note keeps that there is, or may be, a stack in a region, or none any more.
func (o *OwnStacks) note(ctx context.Context, environment *muranopl.Object, region string, there bool) error {
	set := o.First.runtime.SetAttribute
	if there {
		if err := set(ctx, environment, attributeRegion, o.Regions.own(environment)); err != nil {
			return err
		}
	}
	if region == "" && there {
		return set(ctx, environment, attributeStack, true)
	}
	if region == "" {
		return set(ctx, environment, attributeStack, nil)
	}
	o.noting.Lock()
	defer o.noting.Unlock()
	made, err := o.made(ctx, environment)
	if err != nil {
		return err
	}
	if made[region] = true; !there {
		delete(made, region)
	}
	if len(made) == 0 {
		return set(ctx, environment, attributeStacks, nil)
	}
	return set(ctx, environment, attributeStacks, made)
}

// noted is true if there is, or may be, a stack in a region.
func (o *OwnStacks) noted(ctx context.Context, environment *muranopl.Object, region string) (bool, error) {
	if region == "" {
		made, _, err := o.First.runtime.Attribute(ctx, environment, attributeStack)
		return made != nil, err
	}
	made, err := o.made(ctx, environment)
	return made[region] != nil, err
}

// region is the environment's own region when its stacks were made, "" where there are none.
func (o *OwnStacks) region(ctx context.Context, environment *muranopl.Object) (string, error) {
	there, err := o.noted(ctx, environment, "")
	if err != nil {
		return "", err
	}
	if made, err := o.made(ctx, environment); err != nil || !there && len(made) == 0 {
		return "", err
	}
	kept, _, err := o.First.runtime.Attribute(ctx, environment, attributeRegion)
	named, _ := kept.(string)
	return cmp.Or(named, o.Regions.home, core.DefaultRegion), err
}

// noNodes replaces the clusters of a region that can have none.
type noNodes struct{}

func (noNodes) Prepare(context.Context, *muranopl.Interpreter) ([]Server, []*muranopl.Object, error) {
	return nil, nil, nil
}

func (noNodes) Postpone(_ context.Context, changes []*openstack.ServerChange, _ []Server) ([]*openstack.ServerChange, error) {
	return changes, nil
}

func (noNodes) Shrink(context.Context) error { return nil }

func (noNodes) Locked(context.Context, *muranopl.Object) (bool, error) { return false, nil }
