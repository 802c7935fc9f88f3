package clusters

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/signin"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// replaceable are the properties, as Heat calls them, for which a node gets another server in place of the one that has them otherwise.
var replaceable = []string{"flavor", "image", "key_name", "availability_zone"}

// Postpone is part of stacks.Nodes. It notes which nodes have servers that differ from the model.
func (c *Clusters) Postpone(ctx context.Context, changes []*openstack.ServerChange, active []stacks.Server) (refused []*openstack.ServerChange, err error) {
	if refused, err = c.refuseSkew(ctx, changes, active); err != nil || len(refused) > 0 {
		return refused, err
	}
	byResource := map[string][]*openstack.ServerChange{}
	for _, change := range changes {
		byResource[change.Resource] = append(byResource[change.Resource], change)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(byResource)) {
		i := slices.IndexFunc(active, func(server stacks.Server) bool { return openstack.ServerResource(server.ID()) == resource })
		other := func(change *openstack.ServerChange) bool { return !slices.Contains(replaceable, change.Property) }
		if i < 0 || slices.ContainsFunc(byResource[resource], other) {
			refused = append(refused, byResource[resource]...)
			continue
		}
		c.Templates.Restore(c.Templates.Own(), resource, byResource[resource][0].Definition)
		if c.outdated == nil {
			c.outdated = map[string][]*openstack.ServerChange{}
		}
		c.outdated[active[i].Instance.ID()] = byResource[resource]
	}
	return refused, nil
}

// Locked is part of stacks.Nodes.
func (c *Clusters) Locked(ctx context.Context, instance *muranopl.Object) (bool, error) {
	settings, err := c.NodeSettings.Of(ctx, instance)
	return settings.Locked, err
}

// ForeseeReplacements adds the nodes that a deployment replaces.
func (c *Clusters) ForeseeReplacements(ctx context.Context, foreseen *preview.Foreseen) {
	for _, object := range c.Objects.Clusters() {
		due, err := DifferencesOf(c).due(ctx, object)
		if err != nil {
			continue
		}
		if len(due) > 0 {
			why, _ := DifferencesOf(c).NoRoom(ctx, object, due[0].Instance()) // the deployment asks again
			foreseen.Effects = append(foreseen.Effects, "cluster "+object.Text("name")+": "+DescribeReplacements(due, why))
		}
		for _, one := range due {
			text := fmt.Sprintf("node %s of cluster %s is replaced", one.Server.Name(), object.Text("name"))
			foreseen.Replaced = append(foreseen.Replaced, preview.Note{ObjectID: one.object.ID(), Text: text})
			if err := DifferencesOf(c).checkSuccessor(ctx, one.Instance()); fault.KindOf(err) == fault.Invalid {
				foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: one.object.ID(), Text: err.Error()})
			}
		}
		VolumeLossesOf(c).foreseeLoss(ctx, object, due, foreseen)
		pairsOf(c).foresee(ctx, object, foreseen)
		if former, err := c.Facts(ctx, object); err == nil && former != nil {
			foreseePodsOnMasters(object, former.Nodes, foreseen)
			c.foreseeSignIn(ctx, object, foreseen)
			foreseeAPIAddress(object, former.APIAddress, foreseen)
		}
	}
}

// foreseePodsOnMasters adds that masters of a running cluster begin to run pods, or end it.
func foreseePodsOnMasters(object *muranopl.Object, former []nodes.Node, foreseen *preview.Foreseen) {
	ran := slices.ContainsFunc(former, func(node nodes.Node) bool { return node.Pods })
	switch wanted := task.Desired(object).PodsOnMasters; {
	case wanted && !ran:
		foreseen.Effects = append(foreseen.Effects, "cluster "+object.Text("name")+": its masters run pods, too, that tolerate the taint of masters")
	case !wanted && ran:
		foreseen.Effects = append(foreseen.Effects, "cluster "+object.Text("name")+": its masters run no pods any more; their pods move to other nodes, or end")
	}
}

// foreseeAPIAddress adds that the masters of a running cluster share an address from then on, or no longer.
func foreseeAPIAddress(object *muranopl.Object, former nodes.VirtualAddress, foreseen *preview.Foreseen) {
	wanted := task.Desired(object)
	switch had := former.Address.IsValid(); {
	case wanted.SharesAPI && !had:
		foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("cluster %s: its masters share an address, and new kubeconfigs have it. %s", object.Text("name"), restarts(wanted)))
	case !wanted.SharesAPI && had:
		foreseen.Effects = append(foreseen.Effects, fmt.Sprintf("cluster %s: its masters no longer share the address %s: kubeconfigs with it stop working, and are to be downloaded again. %s",
			object.Text("name"), former.Reach(), restarts(wanted)))
	}
}

// restarts is the effect of other settings of API servers on their users.
func restarts(wanted *desired.Cluster) string {
	if max(wanted.Masters, 1+wanted.MastersMade) > 1 {
		return "The API servers restart one after another, so that one always serves"
	}
	return "The API server restarts, and is away for a few seconds"
}

// foreseeSignIn adds whose users can sign in at the API from then on, or can no more.
func (c *Clusters) foreseeSignIn(ctx context.Context, object *muranopl.Object, foreseen *preview.Foreseen) {
	issuers, keystone, err := nodes.SignIn(ctx, known.Vault{Runtime: c.Runtime, Cluster: object.ID()})
	if err != nil {
		return
	}
	wanted := task.Desired(object)
	for _, effect := range append(changesOfIssuers(issuers, wanted.Issuers), changesOfKeystone(keystone, wanted)...) {
		foreseen.Effects = append(foreseen.Effects, "cluster "+object.Text("name")+": "+effect)
	}
}

func changesOfIssuers(former, wanted []signin.Issuer) (effects []string) {
	foresee := func(format string, arguments ...any) { effects = append(effects, fmt.Sprintf(format, arguments...)) }
	for _, one := range wanted {
		switch i := slices.IndexFunc(former, func(other signin.Issuer) bool { return other.URL == one.URL }); {
		case i < 0:
			foresee("users of the issuer %s can sign in at its API, as %sNAME and in the groups %sNAME; nothing restarts", one.URL, one.UsernamePrefix, one.GroupsPrefix)
		case !one.SameNames(former[i]):
			foresee("users of the issuer %s, or their groups, have other names from then on, so that bindings of the former names do not hold for them any more", one.URL)
		case !one.Same(former[i]):
			foresee("the settings of the issuer %s change; nothing restarts", one.URL)
		}
	}
	for _, one := range former {
		if !slices.ContainsFunc(wanted, func(other signin.Issuer) bool { return other.URL == one.URL }) {
			foresee("users of the issuer %s can no longer sign in at its API", one.URL)
		}
	}
	return effects
}

func changesOfKeystone(former bool, wanted *desired.Cluster) []string {
	if former == wanted.KeystoneSignIn {
		return nil
	}
	how := "can sign in at its API with their tokens"
	if former {
		how = "can no longer sign in at its API with tokens"
	}
	return []string{fmt.Sprintf("users of Keystone %s. %s", how, restarts(wanted))}
}

// Differences finds the servers that must be replaced.
type Differences struct{ *Clusters }

// DifferencesOf returns the differences between servers and the model.
func DifferencesOf(c *Clusters) Differences { return Differences{c} }

// checkSuccessor refuses another server of an instance if its flavor, image, zone or networks are missing in the cloud.
func (c Differences) checkSuccessor(ctx context.Context, instance *muranopl.Object) error {
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	return project.CheckServers(ctx, false, stacks.NewServer(instance))
}

// NoRoom is the reason why a node's server must go before another takes its place, "" for none.
func (c Differences) NoRoom(ctx context.Context, object, instance *muranopl.Object) (why string, err error) {
	if task.Desired(object).Surge == 0 {
		return "because surge is 0", nil
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return "", err
	}
	missing, err := project.RoomFor(ctx, instance.Text("flavor"))
	if err != nil || len(missing) == 0 {
		return "", err
	}
	return "because there is no room for one server more: " + strings.Join(missing, ", "), nil
}

// due lists the nodes that get other servers, in the order in which they do.
func (c Differences) due(ctx context.Context, object *muranopl.Object) ([]Member, error) {
	list, err := c.Clusters.Members(ctx, object)
	if err != nil {
		return nil, err
	}
	order := []nodes.Role{nodes.Minion, nodes.Gateway, nodes.Master}
	if VersionSkewOf(c.Clusters).raised(object) {
		order = UpgradeOrder
	}
	c.Clusters.mutex.Lock()
	defer c.Clusters.mutex.Unlock()
	list = slices.DeleteFunc(list, func(one Member) bool {
		return one.Leaving || !one.Replacing && !one.misnamed() && !one.moves && len(c.Clusters.outdated[one.Instance().ID()]) == 0
	})
	slices.SortStableFunc(list, func(a, b Member) int {
		if a.Replacing != b.Replacing { // what was begun is ended first
			if a.Replacing {
				return -1
			}
			return 1
		}
		return slices.Index(order, a.Role) - slices.Index(order, b.Role)
	})
	return list, nil
}

// DescribeReplacements describes the effect of the replacement of these nodes; why is the reason that there is no room for one more server, "" if there is.
func DescribeReplacements(due []Member, why string) string {
	names := make([]string, len(due))
	for i, one := range due {
		if names[i] = one.Server.Name(); one.misnamed() && !one.Replacing {
			names[i] += ", then called " + stacks.Server{Instance: one.Instance(), Number: one.Server.Number + 1}.Name()
		}
		if one.moves && !one.Replacing {
			names[i] += ", then in " + cmp.Or(one.wished, "the environment's network")
		}
	}
	text := fmt.Sprintf("%d nodes are replaced one after another", len(due))
	if len(due) == 1 {
		text = "1 node is replaced"
	}
	order, away := "a new one joins before the former one goes", "When the new master takes over, connections to the API end, and are made anew; the API itself is away for a second or two"
	if why != "" {
		order, away = "the former one goes before a new one is made, "+why, "The API is away until the new master is up, about half a minute and what the cloud takes for a server"
	}
	text += " (" + order + "): " + strings.Join(names, ", ")
	if i := slices.IndexFunc(due, func(one Member) bool { return one.Role == nodes.Master }); i >= 0 {
		if due[i].object.FindEmbedded(task.ClassCluster).Int(Masters.CountProperty) > 1 {
			away = "The other masters serve meanwhile"
		}
		text += ". " + away
	}
	return text
}

// UpgradeOrder is the order in which nodes get a newer Kubernetes.
var UpgradeOrder = []nodes.Role{nodes.Master, nodes.Minion, nodes.Gateway}
