package clusters

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
)

// A cluster makes the nodes of its further masters whenever it is loaded. Their number, now and at most, is an attribute of the cluster, and all else is a
// copy of its first master, except their images during an upgrade. Their ids follow from the cluster's, so that a model without them is about the same
// servers.

const (
	// attributeMasters is stored with a cluster that has, or has had, several masters.
	attributeMasters = "masters"
	classMasterNode  = "com.mirantis.docker.kubernetes.KubernetesMasterNode"
)

// furtherMasters makes and keeps them.
type furtherMasters struct {
	runtime interface {
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
		SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
	}
}

// keptMasters is how many masters a cluster had at its last deployment, and how many it had at most: the difference is the number of removed ones.
type keptMasters struct {
	Count int `json:"count"`
	Made  int `json:"made"`
	// Images are the images of the further masters, from the second one on, while they are upgraded one after another; nil: they have the first one's.
	Images []string `json:"images,omitempty"`
}

// init makes the masters that the cluster has.
func (m furtherMasters) init(ctx context.Context, call muranopl.Call) error {
	known, err := m.Known(ctx, call.Object)
	if err != nil {
		return err
	}
	if count, _ := call.Object.Get(Masters.CountProperty); count == nil {
		if err := call.Object.Set(Masters.CountProperty, int64(known.Count)); err != nil {
			return err
		}
	}
	return m.Make(ctx, call.Interpreter, call.Object, known, max(known.Made, call.Object.Int(Masters.CountProperty)))
}

// Make gives the cluster nodes for so many masters, all of them like the first one except the stored images.
func (m furtherMasters) Make(ctx context.Context, interpreter *muranopl.Interpreter, cluster *muranopl.Object, known keptMasters, count int) error {
	like, zones := cluster.Object("masterNode").Object("instance"), cluster.Texts("masterZones")
	made := make([]*muranopl.Object, 0, count)
	for number := 2; number <= count; number++ {
		values := map[string]any{"name": fmt.Sprintf("%s-m%d", like.Text("name"), number)}
		for _, property := range []string{"flavor", "image", "keyname", "availabilityZone", "assignFloatingIp"} {
			values[property], _ = like.Get(property)
		}
		if len(zones) > 0 {
			values["availabilityZone"] = zones[(number-1)%len(zones)]
		}
		if number-2 < len(known.Images) {
			values["image"] = known.Images[number-2]
		}
		id := func(parts ...string) string {
			return DerivedID(append([]string{cluster.ID(), "master", strconv.Itoa(number)}, parts...)...)
		}
		node, err := ensureNode(ctx, interpreter, List{Masters, cluster}, classMasterNode, id(), id("instance"), values)
		if err != nil {
			return err
		}
		made = append(made, node)
	}
	return cluster.SetObjects(Masters.Property, made)
}

func (m furtherMasters) Known(ctx context.Context, cluster *muranopl.Object) (keptMasters, error) {
	facts := keptMasters{Count: 1, Made: 1}
	err := nodeSettings(m).Read(ctx, cluster, attributeMasters, &facts)
	return facts, err
}

// keep keeps how many masters there are before anything is made of them; deployed, that the cluster has as many as it is to have.
func (m furtherMasters) keep(ctx context.Context, cluster *muranopl.Object, deployed bool) error {
	if task.OnlyGateways(cluster) {
		return nil
	}
	known, err := m.Known(ctx, cluster)
	if err != nil {
		return err
	}
	count := cluster.Int(Masters.CountProperty)
	now := known
	now.Made = max(known.Made, count)
	if deployed {
		now.Count = count
	}
	return m.store(ctx, cluster, known, now)
}

// Hold keeps which images the further masters have, or lets them have that of the first again.
func (m furtherMasters) Hold(ctx context.Context, cluster *muranopl.Object, held bool) error {
	known, err := m.Known(ctx, cluster)
	if err != nil {
		return err
	}
	now := known
	now.Images = nil
	for _, node := range cluster.Objects(Masters.Property) {
		if held {
			now.Images = append(now.Images, node.Object("instance").Text("image"))
		}
	}
	return m.store(ctx, cluster, known, now)
}

func (m furtherMasters) store(ctx context.Context, cluster *muranopl.Object, facts, now keptMasters) error {
	if now.Count == facts.Count && now.Made == facts.Made && slices.Equal(now.Images, facts.Images) {
		return nil
	}
	return nodeSettings(m).Write(ctx, cluster, attributeMasters, now)
}

// pairs are clusters with two masters: further nodes vote in etcd with them, so that a majority is left when one master is lost.
type pairs struct{ *Clusters }

func pairsOf(c *Clusters) pairs { return pairs{c} }

// voting has the nodes that vote in etcd beside two masters, as a deployment decides it.
type voting struct {
	masters, voters []string
	// locked are the locked ones among voters that do not vote yet.
	locked []string
	// change is true if others voted before, or none.
	change bool
}

// voters returns nil for a cluster that does not have two masters.
func (c pairs) voters(ctx context.Context, object *muranopl.Object) (*voting, error) {
	wanted := task.Desired(object)
	if wanted.Masters != 2 {
		return nil, nil
	}
	members, err := c.Clusters.Members(ctx, object)
	if err != nil {
		return nil, err
	}
	config := nodes.Config{EtcdOnMasters: wanted.EtcdOnMasters, Vault: known.Vault{Runtime: c.Runtime, Cluster: object.ID()}}
	for _, one := range members {
		if one.Leaving {
			continue
		}
		node := nodes.Node{Name: one.Server.Name(), Role: one.Role, Elastic: elastic(object, one)}
		if node.Settings, err = c.Clusters.NodeSettings.whole(ctx, one.Instance()); err != nil {
			return nil, err
		}
		config.Nodes = append(config.Nodes, node)
	}
	desired, last, err := nodes.Voters(ctx, config)
	if err != nil {
		return nil, err
	}
	found := &voting{change: !slices.Equal(slices.Sorted(slices.Values(desired)), slices.Sorted(slices.Values(last)))}
	for _, node := range config.Nodes {
		switch {
		case node.Role == nodes.Master:
			found.masters = append(found.masters, node.Name)
		case slices.Contains(desired, node.Name):
			found.voters = append(found.voters, node.Name)
			if node.Settings.Locked && !slices.Contains(last, node.Name) {
				found.locked = append(found.locked, node.Name)
			}
		}
	}
	return found, nil
}

// check refuses two masters where no third node in service can vote with them.
func (c pairs) check(ctx context.Context, object *muranopl.Object) ([]error, error) {
	found, err := c.voters(ctx, object)
	if err != nil || found == nil {
		return nil, err
	}
	if len(found.voters) > len(found.locked) {
		return nil, nil
	}
	why := "it has no other node that stays whatever its load: add a minion or a gateway"
	if len(found.locked) > 0 {
		why = fmt.Sprintf("all others are locked: unlock %s, or add a minion or a gateway", strings.Join(found.locked, " or "))
	}
	return []error{fmt.Errorf("cluster %s has two masters, %s, so a third node has to vote in etcd, or the loss of one master would stop the cluster, and %s. Or have 1, 3 or 5 masters",
		object.Text("name"), strings.Join(found.masters, " and "), why)}, nil
}

// foresee adds the nodes that vote in etcd beside two masters from then on.
func (c pairs) foresee(ctx context.Context, object *muranopl.Object, foreseen *preview.Foreseen) {
	found, err := c.voters(ctx, object)
	if err != nil || found == nil || !found.change || len(found.voters) == 0 {
		return
	}
	verb := "votes"
	if len(found.voters) > 1 {
		verb = "vote"
	}
	foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("cluster %s: %s %s in etcd beside its two masters, so that the loss of one master loses nothing",
		object.Text("name"), strings.Join(found.voters, ", "), verb))
}
