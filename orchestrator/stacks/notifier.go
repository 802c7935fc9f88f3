package stacks

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
)

// notifier is io.murano.system.InstanceNotifier, which feeds the statistics of instances.
type notifier struct {
	runtime interface {
		TrackApplication(ctx context.Context, object *muranopl.Object, title string, units int64) error
		TrackServer(ctx context.Context, object *muranopl.Object, title string, units int64) error
		Untrack(ctx context.Context, object *muranopl.Object) error
	}
}

func (n notifier) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		"trackApplication": n.trackApplication, "untrackApplication": n.untrack,
		"trackCloudInstance": n.trackServer, "untrackCloudInstance": n.untrack,
	}
}

// trackApplication begins to count an application.
func (n notifier) trackApplication(ctx context.Context, call muranopl.Call) (any, error) {
	object, _ := call.Args["instance"].(*muranopl.Object)
	title, _ := call.Args["title"].(string)
	units, _ := call.Args["unitCount"].(int64)
	return nil, n.runtime.TrackApplication(ctx, object, title, units)
}

// trackServer begins to count a server.
func (n notifier) trackServer(ctx context.Context, call muranopl.Call) (any, error) {
	object, _ := call.Args["instance"].(*muranopl.Object)
	return nil, n.runtime.TrackServer(ctx, object, "", 1)
}

// untrack ends the count of either.
func (n notifier) untrack(ctx context.Context, call muranopl.Call) (any, error) {
	object, _ := call.Args["instance"].(*muranopl.Object)
	return nil, n.runtime.Untrack(ctx, object)
}
