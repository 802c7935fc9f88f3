package core

import (
	"context"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
)

// localStacks are the stacks of tools without a cloud. They store, by name, the template that code sets, and create nothing. Pushing a stack needs a
// cloud.
type localStacks struct {
	mutex  sync.Mutex
	stacks map[string]*localStack
}

type localStack struct {
	template, parameters map[string]any
}

func (l *localStacks) methods() map[string]muranopl.NativeMethod {
	on := func(do func(s *localStack, call muranopl.Call) any) muranopl.NativeMethod {
		return func(_ context.Context, call muranopl.Call) (any, error) {
			l.mutex.Lock()
			defer l.mutex.Unlock()
			name := call.Object.Text("name")
			if l.stacks[name] == nil {
				l.stacks[name] = &localStack{map[string]any{}, map[string]any{}}
			}
			return do(l.stacks[name], call), nil
		}
	}
	given := func(call muranopl.Call, argument string) map[string]any {
		value, _ := call.Args[argument].(map[string]any)
		return value
	}
	return map[string]muranopl.NativeMethod{
		"current":    on(func(s *localStack, _ muranopl.Call) any { return s.template }),
		"parameters": on(func(s *localStack, _ muranopl.Call) any { return s.parameters }),
		"reload": on(func(s *localStack, _ muranopl.Call) any {
			*s = localStack{map[string]any{}, map[string]any{}}
			return nil
		}),
		"setTemplate": on(func(s *localStack, call muranopl.Call) any {
			s.template = MergeTemplates(map[string]any{}, given(call, "template"))
			return nil
		}),
		"updateTemplate": on(func(s *localStack, call muranopl.Call) any {
			s.template = MergeTemplates(s.template, given(call, "template"))
			return nil
		}),
		"replaceInTemplate": on(func(s *localStack, call muranopl.Call) any {
			s.template = ReplacementOf(call.Args).In(s.template)
			return nil
		}),
		"setParameters": on(func(s *localStack, call muranopl.Call) any {
			s.parameters = MergeTemplates(map[string]any{}, given(call, "parameters"))
			return nil
		}),
		"setFiles":          on(func(*localStack, muranopl.Call) any { return nil }),
		"setHotEnvironment": on(func(*localStack, muranopl.Call) any { return nil }),
	}
}
