package clusters

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// A node is replaced by giving its instance another server: the object stays, its servers are numbered from 1. While a node is replaced
// two of them are there.

// attributeServers is the attribute of io.murano.resources.LinuxMuranoInstance with its succession.
const attributeServers = "servers"

// Succession is the record of the servers of a node. It is durable before anything is made or removed for it.
type Succession struct {
	Current int64 `json:"current"` // the node's server, or the one that it is to be
	// Former is the one whose place it takes, as long as that is there; 0 for none.
	Former int64 `json:"former,omitempty"`
	// FormerName is the name of the former server: the model can name its successor otherwise. "" in a record of a former version.
	FormerName string `json:"formerName,omitempty"`
	// Moved is true if the current server has the floating address already.
	Moved bool `json:"moved,omitempty"`
	// First is true if the former server goes before the current one is made, because there is no room for both; Gone is true if it is gone, or is
	// about to be.
	First bool `json:"first,omitempty"`
	Gone  bool `json:"gone,omitempty"`
	// Leaves is true if the former server, whose place the current one has taken, has begun to leave.
	Leaves bool `json:"leaves,omitempty"`
	// Task ordered the current one: when it is taken over, it orders no other.
	Task string `json:"task,omitempty"`
	// Edit is true if the model ordered it by another description of the server, and not a person who wants another server.
	Edit bool `json:"edit,omitempty"`
}

// Replacing is true if there are two servers.
func (s Succession) Replacing() bool { return s.Former != 0 }

// successions keeps them with the instances of nodes.
type successions struct {
	runtime interface {
		TaskID() string
		CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error)
		SetCodeAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error
	}
}

func (s successions) Of(ctx context.Context, instance *muranopl.Object) (Succession, error) {
	facts := Succession{Current: 1}
	value, found, err := s.runtime.CodeAttribute(ctx, instance, task.ClassNodeServer, attributeServers)
	if err != nil || !found || value == nil {
		return facts, err
	}
	if err := known.Convert(value, &facts); err != nil {
		return facts, fmt.Errorf("read which servers %s has: %w", instance.Text("name"), err)
	}
	return facts, nil
}

func (s successions) Keep(ctx context.Context, instance *muranopl.Object, known Succession) error {
	value := map[string]any{"current": known.Current, "former": known.Former, "formerName": known.FormerName, "moved": known.Moved, "first": known.First, "gone": known.Gone, "leaves": known.Leaves, "task": known.Task, "edit": known.Edit}
	return s.runtime.SetCodeAttribute(ctx, instance, task.ClassNodeServer, attributeServers, value)
}

// ordered is true if a node will get another server, or has got one in this task.
func (s successions) ordered(ctx context.Context, instance *muranopl.Object) (bool, error) {
	known, err := s.Of(ctx, instance)
	return known.Replacing() || known.Task == s.runtime.TaskID(), err
}

// order gives a node another server in the place of the one that is called so. edit is succession.Edit.
func (s successions) order(ctx context.Context, instance *muranopl.Object, former string, first, edit bool) error {
	known, err := s.Of(ctx, instance)
	if err != nil {
		return err
	}
	return s.Keep(ctx, instance, Succession{Current: known.Current + 1, Former: known.Current, FormerName: former, First: first, Task: s.runtime.TaskID(), Edit: edit})
}

// nodeNames are the names of nodes, of which each server gets one.
type nodeNames struct{ *Clusters }

// NodeNamesOf returns the names of the nodes of a task's clusters.
func NodeNamesOf(c *Clusters) nodeNames { return nodeNames{c} }

// withdraw cancels orders of former tasks that came from the model and for which nothing was made or removed yet: this task compares the model anew,
// so an edit that was undone replaces nothing.
func (c nodeNames) withdraw(ctx context.Context, cluster *muranopl.Object) error {
	for _, node := range ActiveNodes(cluster) {
		instance := node.Object.Object("instance")
		known, err := c.Successions.Of(ctx, instance)
		if err != nil {
			return err
		}
		if !known.Edit || !known.Replacing() || known.Moved || known.Gone || known.Leaves || known.Task == c.Runtime.TaskID() {
			continue
		}
		names, err := c.Names(ctx)
		if err != nil {
			return err
		}
		if _, made := names[openstack.ServerResource(stacks.Server{Instance: instance, Number: known.Current}.ID())]; made {
			continue
		}
		if err := c.Successions.Keep(ctx, instance, Succession{Current: known.Former}); err != nil {
			return err
		}
	}
	return nil
}

// Member is a node of a cluster that is to run, or that another server of the same object takes the place of.
type Member struct {
	object  *muranopl.Object // the node
	Role    nodes.Role
	Server  stacks.Server
	known   Succession
	Leaving bool
	// holds is true if the floating address of the object is the server's, and replacing if the object has two servers.
	holds, Replacing bool
	// waits is true if another server takes its place only when it is gone: until then it stays unchanged in the stack.
	waits bool
	// place is the server's present or desired place; otherwise is true if the model has another network by now, and moves if that network differs
	// by more than its name.
	place            place
	otherwise, moves bool
	wished           string // where to, as the model says it
	// absent is true if the stack has no such server: it is lost, or is made when the former one is gone.
	absent bool
}

// misnamed is true if the model has another name for the server.
func (m Member) misnamed() bool { return m.Server.Name() != m.Server.ModelName() }

// Instance is the object of the node's server.
func (m Member) Instance() *muranopl.Object { return m.Server.Instance }

// Members lists the present and desired nodes of a cluster, the master first and the nodes that leave last.
func (c *Clusters) Members(ctx context.Context, cluster *muranopl.Object) (list []Member, err error) {
	names, err := NodeNamesOf(c).Names(ctx)
	if err != nil {
		return nil, err
	}
	var leaving []Member
	for _, node := range ActiveNodes(cluster) {
		instance := node.Object.Object("instance")
		known, err := c.Successions.Of(ctx, instance)
		if err != nil {
			return nil, err
		}
		one := Member{object: node.Object, Role: node.Role, known: known, Server: names.Server(instance, known, known.Current), holds: !known.Replacing() || known.Moved, Replacing: known.Replacing()}
		switch {
		case known.First && !known.Gone:
			one.Server, one.holds, one.waits = names.Server(instance, known, known.Former), true, true
			list = append(list, one)
		case known.First:
			one.absent = true
			list = append(list, one)
		case known.Replacing():
			list = append(list, one)
			one.Server, one.holds, one.Leaving, one.absent = names.Server(instance, known, known.Former), !known.Moved, true, known.Gone
			leaving = append(leaving, one)
		default:
			list = append(list, one)
		}
	}
	list = append(list, leaving...)
	return list, nodePlacesOf(c).locate(ctx, list, names)
}

// NameOf is the name of the server of a cluster's node.
func (c nodeNames) NameOf(ctx context.Context, node *muranopl.Object) (string, error) {
	instance := node.Object("instance")
	known, err := c.Successions.Of(ctx, instance)
	if err != nil {
		return "", err
	}
	names, err := c.Names(ctx)
	return names.Server(instance, known, known.Current).Name(), err
}

// serverNames are the names of present servers of the stack, by the names of their resources.
type serverNames map[string]string

// Names are the names of the servers that were there at the first request. Until a server is replaced the model's name of it is a wish.
func (c nodeNames) Names(ctx context.Context) (serverNames, error) {
	c.Clusters.naming.Lock()
	defer c.Clusters.naming.Unlock()
	if c.Clusters.called != nil {
		return c.Clusters.called, nil
	}
	template, err := c.Templates.Template(ctx, c.Templates.Own())
	if err != nil {
		return nil, err
	}
	found := serverNames{}
	resources, _ := template["resources"].(map[string]any)
	for resource, one := range resources {
		described, _ := one.(map[string]any)
		properties, _ := described["properties"].(map[string]any)
		if name, ok := properties["name"].(string); ok && described["type"] == "OS::Nova::Server" {
			found[resource] = name
		}
	}
	if len(found) > 0 {
		project, err := c.Runtime.Project(ctx)
		if err != nil {
			return nil, err
		}
		made, err := project.Made(ctx, c.Templates.Own().Name)
		if err != nil {
			return nil, err
		}
		maps.DeleteFunc(found, func(resource, _ string) bool { return !made[resource] })
	}
	c.Clusters.called = found
	return found, nil
}

// Server is one of an instance.
func (n serverNames) Server(instance *muranopl.Object, known Succession, number int64) stacks.Server {
	server := stacks.Server{Instance: instance, Number: number}
	server.Called = n[openstack.ServerResource(server.ID())]
	if number == known.Former && known.FormerName != "" {
		server.Called = known.FormerName
	}
	return server
}

// Named finds the node whose server, or instance, is called so.
func (c nodeNames) Named(ctx context.Context, list []*muranopl.Object, name string) (int, error) {
	var names []string
	for i, node := range list {
		current, err := c.NameOf(ctx, node)
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
