package clusters

import (
	"context"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// nodeSettings keeps them.
type nodeSettings struct {
	runtime interface {
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
		SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
	}
}

func (n nodeSettings) Of(ctx context.Context, instance *muranopl.Object) (settings kube.Settings, err error) {
	err = n.Read(ctx, instance, attributeSettings, &settings)
	return settings, err
}

// whole are the settings of a node with its group's, of which its own come first.
func (n nodeSettings) whole(ctx context.Context, instance *muranopl.Object) (kube.Settings, error) {
	own, err := n.Of(ctx, instance)
	return WholeSettings(instance, own), err
}

// WholeSettings are a node's own settings with the settings of its group. Its own come first.
func WholeSettings(instance *muranopl.Object, own kube.Settings) kube.Settings {
	if instance.Class().IsEmbedded(ClassExternalNode) {
		whole := kube.Settings{Labels: map[string]string{nodes.LabelExternal: "true"}}.With(own.Labels, nil, own.Taints, nil)
		whole.Cordoned, whole.Locked, whole.Assigned = own.Cordoned, own.Locked, own.Assigned
		return whole
	}
	group := instance.FindEmbedded(task.ClassMinionGroup)
	if group == nil {
		return own
	}
	of := desired.ReadGroup(group)
	whole := of.Settings.With(own.Labels, nil, own.Taints, nil)
	whole.Labels[known.LabelGroup] = of.Name
	whole.Cordoned, whole.Locked, whole.Assigned = own.Cordoned, own.Locked, own.Assigned
	return whole
}

func (n nodeSettings) Keep(ctx context.Context, instance *muranopl.Object, settings kube.Settings) error {
	if settings.IsZero() {
		return n.runtime.SetAttribute(ctx, instance, attributeSettings, nil)
	}
	return n.Write(ctx, instance, attributeSettings, settings)
}

// forget is for a node that is none any more.
func (n nodeSettings) forget(ctx context.Context, instance *muranopl.Object) error {
	if settings, err := n.Of(ctx, instance); err != nil || settings.IsZero() {
		return err
	}
	return n.Keep(ctx, instance, kube.Settings{})
}

// Read reads an attribute of an object into a value, which does not change without the attribute.
func (n nodeSettings) Read(ctx context.Context, object *muranopl.Object, name string, into any) error {
	value, found, err := n.runtime.Attribute(ctx, object, name)
	if err != nil || !found || value == nil {
		return err
	}
	if err := known.Convert(value, into); err != nil {
		return fmt.Errorf("read the attribute %s of %s: %w", name, object, err)
	}
	return nil
}

func (n nodeSettings) Write(ctx context.Context, instance *muranopl.Object, name string, value any) error {
	plain := map[string]any{}
	if err := known.Convert(value, &plain); err != nil {
		return err
	}
	return n.runtime.SetAttribute(ctx, instance, name, plain)
}

// Attributes of instances: the node's settings, and its reboot that has begun.
const (
	attributeSettings = "nodeSettings"
	AttributeReboot   = "nodeReboot"
)

// GroupKeeps finds labels and taints that a node cannot lose, because its group has them and not it alone.
func GroupKeeps(instance *muranopl.Object, name string, own kube.Settings, remove []string) error {
	group := instance.FindEmbedded(task.ClassMinionGroup)
	if group == nil {
		return nil
	}
	of := desired.ReadGroup(group)
	has := func(settings kube.Settings, key string) bool {
		_, labelled := settings.Labels[key]
		return labelled || slices.ContainsFunc(settings.Taints, func(taint kube.Taint) bool { return key == taint.Key || key == taint.Key+":"+taint.Effect })
	}
	for _, key := range remove {
		if has(of.Settings, key) && !has(own, key) {
			return fault.New(fault.Invalid, "%s cannot lose %s: all nodes of group %s have it. Change the group", name, key, of.Name)
		}
	}
	return nil
}
