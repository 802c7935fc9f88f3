package native

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
)

// A node is replaced by giving its instance another server: the object stays, its servers are numbered from 1. While a node is replaced
// two of them are there.

// The name under which io.murano.resources.LinuxMuranoInstance keeps which servers it has, and that class.
const (
	attributeServers = "servers"
	classNodeServer  = "io.murano.resources.LinuxMuranoInstance"
)

// succession says which servers a node has. It is durable before anything is made or removed for it.
type succession struct {
	Current int64 `json:"current"` // the node's server, or the one that it is to be
	// Former is the one whose place it takes, as long as that is there; 0 for none.
	Former int64 `json:"former,omitempty"`
	// Moved says that the floating address is at the current one already.
	Moved bool `json:"moved,omitempty"`
	// First says that the former one goes before the current one is made, because there is no room for both; and Gone, that it is, or is
	// about to be.
	First bool `json:"first,omitempty"`
	Gone  bool `json:"gone,omitempty"`
	// Task ordered the current one: when it is taken over, it orders no other.
	Task string `json:"task,omitempty"`
}

// replacing tells whether two servers are there.
func (s succession) replacing() bool { return s.Former != 0 }

// successions keeps them with the instances of nodes.
type successions struct {
	runtime interface {
		TaskID() string
		CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error)
		SetCodeAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error
	}
}

func (s successions) of(ctx context.Context, instance *muranopl.Object) (succession, error) {
	known := succession{Current: 1}
	value, found, err := s.runtime.CodeAttribute(ctx, instance, classNodeServer, attributeServers)
	if err != nil || !found || value == nil {
		return known, err
	}
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return known, fmt.Errorf("read which servers %s has: %w", instance.Text("name"), err)
	}
	return known, nil
}

func (s successions) keep(ctx context.Context, instance *muranopl.Object, known succession) error {
	value := map[string]any{"current": known.Current, "former": known.Former, "moved": known.Moved, "first": known.First, "gone": known.Gone, "task": known.Task}
	return s.runtime.SetCodeAttribute(ctx, instance, classNodeServer, attributeServers, value)
}

// ordered tells whether a node gets another server already, or has got one from this task.
func (s successions) ordered(ctx context.Context, instance *muranopl.Object) (bool, error) {
	known, err := s.of(ctx, instance)
	return known.replacing() || known.Task == s.runtime.TaskID(), err
}

// order gives a node another server.
func (s successions) order(ctx context.Context, instance *muranopl.Object, first bool) error {
	known, err := s.of(ctx, instance)
	if err != nil {
		return err
	}
	return s.keep(ctx, instance, succession{Current: known.Current + 1, Former: known.Current, First: first, Task: s.runtime.TaskID()})
}

// nodeServer is a server of an instance. Those that are no nodes have one.
type nodeServer struct {
	instance *muranopl.Object
	number   int64
}

// id begins the names of what the stack has of the server, as io.murano.resources.LinuxMuranoInstance.resourceId says.
func (s nodeServer) id() string {
	if s.number == 1 {
		return s.instance.ID()
	}
	return fmt.Sprintf("%s_%d", s.instance.ID(), s.number)
}

// prefix is what those names begin with.
func (s nodeServer) prefix() string { return s.id() + "-" }

// name is what the server is called, as io.murano.resources.LinuxMuranoInstance.serverName says.
func (s nodeServer) name() string {
	if s.number == 1 {
		return s.instance.Text("name")
	}
	return fmt.Sprintf("%s-r%d", s.instance.Text("name"), s.number)
}

// member is a node of a cluster that is to run, or that another server of the same object takes the place of.
type member struct {
	object  *muranopl.Object // the node
	role    nodes.Role
	server  nodeServer
	leaving bool
	// holds says that the floating address of the object is the server's, and replacing that the object has two servers.
	holds, replacing bool
	// waits says that another server takes its place only when it is gone: until then the stack has it as it is.
	waits bool
	// absent says that the stack is not to have the server: it is gone, or is made when the former one is.
	absent bool
}

func (m member) instance() *muranopl.Object { return m.server.instance }

// members lists a cluster's nodes that are there or are to be, the master first and those that leave last.
func (c *clusters) members(ctx context.Context, cluster *muranopl.Object) (list []member, err error) {
	var leaving []member
	for _, node := range activeNodes(cluster) {
		instance := node.object.Object("instance")
		known, err := c.successions.of(ctx, instance)
		if err != nil {
			return nil, err
		}
		one := member{object: node.object, role: node.role, server: nodeServer{instance, known.Current}, holds: !known.replacing() || known.Moved, replacing: known.replacing()}
		switch {
		case known.First && !known.Gone:
			one.server.number, one.holds, one.waits = known.Former, true, true
			list = append(list, one)
		case known.First:
			one.absent = true
			list = append(list, one)
		case known.replacing():
			list = append(list, one)
			one.server.number, one.holds, one.leaving, one.absent = known.Former, !known.Moved, true, known.Gone
			leaving = append(leaving, one)
		default:
			list = append(list, one)
		}
	}
	return append(list, leaving...), nil
}

// nameOf is what the server of a cluster's node is called.
func (c *clusters) nameOf(ctx context.Context, node *muranopl.Object) (string, error) {
	instance := node.Object("instance")
	known, err := c.successions.of(ctx, instance)
	return nodeServer{instance, known.Current}.name(), err
}

// named finds the node whose server, or instance, is called so.
func (c *clusters) named(ctx context.Context, list []*muranopl.Object, name string) (int, error) {
	var names []string
	for i, node := range list {
		current, err := c.nameOf(ctx, node)
		if err != nil {
			return 0, err
		}
		if current == name || node.Object("instance").Text("name") == name {
			return i, nil
		}
		names = append(names, current)
	}
	return 0, fmt.Errorf("there are %s", strings.Join(names, ", "))
}
