// Package stacks holds the Heat stacks of an environment during one task, and the Go bodies of the core library's classes about stacks, networks and users.
package stacks

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/burano/burano/catalog/core"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/task"
)

// Settings are the server's settings for stacks and networks.
type Settings struct {
	// Region is the region of environments that name none.
	Region string
	// Networks is the range from which environments get a /24 of their own.
	Networks netip.Prefix
	// DNSServers are those of new networks that name none.
	DNSServers []string
	// ExternalNetwork is the name or id of the external network of environments that name none; "" for the first of the cloud.
	ExternalNetwork string
	// Patience is how long a change of servers may take until all of them run.
	Patience time.Duration
}

// New returns the stacks of a task's environment. Their first one needs its Nodes.
func New(runtime task.Runtime, objects task.Objects, reports task.Reports, settings Settings, rehearsal bool) *OwnStacks {
	stacks := NewTemplates(runtime, settings.Region)
	first := &OwnStack{runtime: runtime, objects: objects, reports: reports, stacks: stacks, Nodes: noNodes{},
		patience: settings.Patience, rehearsal: rehearsal, refused: &refusals{}, deploying: &atomic.Bool{}}
	first.all = &OwnStacks{First: first, Regions: stacks.Regions, Templates: stacks, runtime: runtime, settings: settings}
	return first.all
}

// Methods are the bodies of the core library's classes except those of environments and servers.
func (o *OwnStacks) Methods() map[string]map[string]muranopl.NativeMethod {
	first, runtime := o.First, o.runtime
	language := core.Methods(host{runtime, o.Regions}, first.reports.Logger)
	explorer := &explorer{runtime: runtime, regions: o.Regions, objects: first.objects, reports: first.reports, stacks: o.Templates, networks: o.settings.Networks, dns: o.settings.DNSServers,
		external: o.settings.ExternalNetwork}
	maps.Copy(language, map[string]map[string]muranopl.NativeMethod{
		task.ClassHeatStack:        heatStackClass{runtime, o.Templates, o, first.patience}.methods(),
		task.ClassNetworkExplorer:  explorer.methods(),
		task.ClassInstanceNotifier: notifier{runtime}.methods(),
		task.ClassMetadefBrowser:   (&definitions{regions: o.Regions}).methods(),
		task.ClassUser:             {"describeCurrent": identities{runtime}.user},
		task.ClassProject:          {"describeCurrent": identities{runtime}.project},
	})
	return language
}

// host lets the language's own classes keep attributes, report, and know where they are.
type host struct {
	task.Runtime
	regions regions
}

// Home is the region of environments that name none.
func (h host) Home() string { return cmp.Or(h.regions.home, core.DefaultRegion) }

// StackIn is the name of the environment's stack in a region, which is an object of it.
func (h host) StackIn(region *muranopl.Object) string {
	return h.regions.stackName(h.regions.Of(region))
}

// Attribute returns a value that code stored.
func (h host) Attribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	return h.CodeAttribute(ctx, object, class, name)
}

// SetAttribute stores a value of code.
func (h host) SetAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error {
	return h.SetCodeAttribute(ctx, object, class, name, value)
}

// Report adds a line to the deployment's log.
func (h host) Report(ctx context.Context, object *muranopl.Object, failed bool, text string) error {
	level := engine.LevelInfo
	if failed {
		level = engine.LevelError
	}
	return h.Runtime.Report(ctx, object, level, text, "")
}
