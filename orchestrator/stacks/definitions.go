package stacks

import (
	"context"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/openstack"
)

// definitions is io.murano.system.MetadefBrowser: questions about Glance's catalog of metadata definitions. An answer is kept for the task, since each
// server and volume with inherited metadata asks the same.
type definitions struct {
	regions regions
	mutex   sync.Mutex
	known   map[question][]any
}

type question struct{ region, argument, about string }

func (d *definitions) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{
		"getNamespaces": d.list("resourceType", (*openstack.Project).MetadataNamespaces),
		"getObjects":    d.list("namespace", (*openstack.Project).MetadataObjects),
	}
}

// list returns Glance's definitions for an argument.
func (d *definitions) list(argument string, ask func(project *openstack.Project, ctx context.Context, about string) ([]any, error)) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		about, _ := call.Args[argument].(string)
		asked := question{d.regions.Of(call.Object), argument, about}
		d.mutex.Lock()
		defer d.mutex.Unlock()
		if answer, known := d.known[asked]; known {
			return answer, nil
		}
		project, err := d.regions.Project(ctx, asked.region)
		if err != nil {
			return nil, err
		}
		answer, err := ask(project, ctx, about)
		if err != nil {
			return nil, err
		}
		if d.known == nil {
			d.known = map[question][]any{}
		}
		d.known[asked] = answer
		return answer, nil
	}
}
