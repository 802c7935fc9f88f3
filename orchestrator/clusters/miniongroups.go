package clusters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// A group of minions makes its nodes whenever it is loaded: the list of nodes, in which order and zones, is an attribute of the group, and all else comes
// from the group's properties. The ids of a node and of its instance follow from the group's id and the node's number, so that a model without them is
// about the same servers.

const (
	PropertyGroups  = "minionGroups" // of a cluster
	PropertyMaximum = "maximum"
	// AttributeGroup is a group's attribute with its nodes.
	AttributeGroup = "group"

	classMinionNode = "com.mirantis.docker.kubernetes.KubernetesMinionNode"
	ArgumentGroup   = "group"
)

// minionGroups is com.mirantis.docker.kubernetes.KubernetesMinionGroup.
type minionGroups struct {
	runtime interface {
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
		SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
	}
}

func (g minionGroups) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{".init": g.init}
}

// keptGroup has a group's present and former nodes: former ones come back first.
type keptGroup struct {
	Nodes []keptMember `json:"nodes"`
	Count int          `json:"count"` // when its cluster was deployed last
	// Held is true if nodes have the images that are stored with them, and not the group's: they are upgraded one after another.
	Held bool `json:"held,omitempty"`
}

// keptMember is a node of a group.
type keptMember struct {
	Number int    `json:"number"`
	Zone   string `json:"zone"`
	Image  string `json:"image,omitempty"` // while the group is held
}

// memberID is the id of a node of a group, and instanceID that of its instance.
func memberID(group string, number int) string { return DerivedID(group, strconv.Itoa(number)) }

func instanceID(group string, number int) string {
	return DerivedID(group, strconv.Itoa(number), "instance")
}

// DerivedID has the form of other ids.
func DerivedID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return hex.EncodeToString(sum[:16])
}

// init makes the nodes that the group has.
func (g minionGroups) init(ctx context.Context, call muranopl.Call) (any, error) {
	group := call.Object
	if group.FindEmbedded(task.ClassCluster) == nil {
		return nil, fault.New(fault.Invalid, "group %s stands in no cluster: put it into the minionGroups of one", group.Text("name"))
	}
	known, found, err := g.known(ctx, group)
	if err != nil {
		return nil, err
	}
	wanted := desired.ReadGroup(group)
	if !found {
		known.Count = 1
		if wanted.Elastic() {
			known.Count = wanted.Fewest()
		}
	}
	count, _ := group.Get(Grouped.CountProperty)
	switch {
	case wanted.Elastic() && (found || count == nil): // the model's number is as old as the model
		count = int64(wanted.Between(known.Count))
	case wanted.Elastic():
		count = int64(wanted.Between(wanted.Count))
	case count == nil:
		count = int64(known.Count)
	}
	if err := group.Set(Grouped.CountProperty, count); err != nil {
		return nil, err
	}
	return nil, g.make(ctx, call.Interpreter, group, known.Nodes, group.Int(Grouped.CountProperty))
}

// Fill makes nodes until there are so many.
func (g minionGroups) Fill(ctx context.Context, interpreter *muranopl.Interpreter, group *muranopl.Object, count int) error {
	known, _, err := g.known(ctx, group)
	if err != nil {
		return err
	}
	return g.make(ctx, interpreter, group, membersOf(group, known.Held), count)
}

// make gives the group these nodes, and more until there are so many, all of them with the group's properties.
func (g minionGroups) make(ctx context.Context, interpreter *muranopl.Interpreter, group *muranopl.Object, members []keptMember, count int) error {
	members = slices.Clone(members)
	for number := len(members) + 1; number <= count; number++ {
		members = append(members, keptMember{Number: number})
	}
	like, wanted := group.FindEmbedded(task.ClassCluster).Objects(Minions.Property)[0].Object("instance"), desired.ReadGroup(group)
	zones := wanted.Zones
	if len(zones) == 0 {
		zones = []string{like.Text("availabilityZone")}
	}
	assignZones(members, zones)
	property := func(name string) any {
		if own, _ := group.Get(name); own != nil {
			return own
		}
		value, _ := like.Get(name)
		return value
	}
	made := make([]*muranopl.Object, len(members))
	for i, one := range members {
		values := map[string]any{"name": memberName(wanted, one.Number), "flavor": property("flavor"), "image": property("image"), "keyname": property("keyname"),
			"availabilityZone": one.Zone, "assignFloatingIp": wanted.Floating}
		if one.Image != "" {
			values["image"] = one.Image
		}
		node, err := ensureNode(ctx, interpreter, List{Grouped, group}, classMinionNode, memberID(group.ID(), one.Number), instanceID(group.ID(), one.Number), values)
		if err != nil {
			return err
		}
		made[i] = node
	}
	return group.SetObjects(Grouped.Property, made)
}

// ensureNode gives the node of an id in a list its values, and makes the node if the list has none.
func ensureNode(ctx context.Context, interpreter *muranopl.Interpreter, list List, class, id, instanceID string, values map[string]any) (node *muranopl.Object, err error) {
	there := list.All()
	if i := slices.IndexFunc(there, func(one *muranopl.Object) bool { return one.ID() == id }); i >= 0 {
		node = there[i]
	} else {
		instance := maps.Clone(values)
		instance["?"] = map[string]any{"type": task.ClassNodeServer, "id": instanceID}
		if node, err = interpreter.New(ctx, class, list.Of, map[string]any{"?": map[string]any{"type": class, "id": id}, "instance": instance}); err != nil {
			return nil, fmt.Errorf("make node %s of %s: %w", values["name"], list.Of.Text("name"), err)
		}
	}
	for name, value := range values {
		if err := node.Object("instance").Initialise(name, value); err != nil {
			return nil, err
		}
	}
	return node, nil
}

// assignZones gives nodes zones that have none, or none of these: the one with the fewest of them.
func assignZones(members []keptMember, zones []string) {
	in := map[string]int{}
	for i := range members {
		if !slices.Contains(zones, members[i].Zone) {
			members[i].Zone = ""
		}
		in[members[i].Zone]++
	}
	for i := range members {
		if members[i].Zone != "" {
			continue
		}
		members[i].Zone = slices.MinFunc(zones, func(a, b string) int { return in[a] - in[b] })
		in[members[i].Zone]++
	}
}

// memberName is the name of a node's first server.
func memberName(group desired.Group, number int) string {
	return strings.ReplaceAll(group.NamingPattern, "#", strconv.Itoa(number))
}

// membersOf are the nodes that a group has now, with their images when it is held.
func membersOf(group *muranopl.Object, held bool) []keptMember {
	list := group.Objects(Grouped.Property)
	members := make([]keptMember, 0, len(list))
	for _, node := range list {
		for number := 1; number <= len(list); number++ {
			if node.ID() == memberID(group.ID(), number) {
				one := keptMember{Number: number, Zone: node.Object("instance").Text("availabilityZone")}
				if held {
					one.Image = node.Object("instance").Text("image")
				}
				members = append(members, one)
			}
		}
	}
	return members
}

func (g minionGroups) known(ctx context.Context, group *muranopl.Object) (facts keptGroup, found bool, err error) {
	value, found, err := g.runtime.Attribute(ctx, group, AttributeGroup)
	if err != nil || !found || value == nil {
		return facts, false, err
	}
	if err := known.Convert(value, &facts); err != nil {
		return facts, false, fmt.Errorf("read which nodes group %s has: %w", group.Text("name"), err)
	}
	return facts, true, nil
}

// keep keeps which nodes a group has before anything is made of them.
func (g minionGroups) keep(ctx context.Context, group *muranopl.Object) error {
	known, found, err := g.known(ctx, group)
	if err != nil {
		return err
	}
	if !found {
		known.Count = group.Int(Grouped.CountProperty)
	}
	return g.store(ctx, group, known, found, keptGroup{membersOf(group, known.Held), known.Count, known.Held})
}

// keepCount stores how many nodes of a group run, for models without a number.
func (g minionGroups) keepCount(ctx context.Context, group *muranopl.Object) error {
	known, found, err := g.known(ctx, group)
	if err != nil {
		return err
	}
	return g.store(ctx, group, known, found, keptGroup{membersOf(group, known.Held), group.Int(Grouped.CountProperty), known.Held})
}

// Hold keeps with a group which images its nodes have, or lets them have the group's again.
func (g minionGroups) Hold(ctx context.Context, group *muranopl.Object, held bool) error {
	known, found, err := g.known(ctx, group)
	if err != nil {
		return err
	}
	if !found {
		known.Count = group.Int(Grouped.CountProperty)
	}
	return g.store(ctx, group, known, found, keptGroup{membersOf(group, held), known.Count, held})
}

func (g minionGroups) store(ctx context.Context, group *muranopl.Object, facts keptGroup, found bool, now keptGroup) error {
	if found && facts.Count == now.Count && facts.Held == now.Held && slices.Equal(facts.Nodes, now.Nodes) {
		return nil
	}
	return nodeSettings(g).Write(ctx, group, AttributeGroup, now)
}

// TaintsOf are the taints of a list of their fields.
func TaintsOf(list []any) (taints []kube.Taint) {
	for _, entry := range list {
		fields, _ := entry.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		taints = append(taints, kube.Taint{Key: text("key"), Value: text("value"), Effect: text("effect")})
	}
	return taints
}
