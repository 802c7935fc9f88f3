package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// etcdLearners removes dead members and adds all new ones that can be reached as learners, before the first of them is
// promoted. A learner that is added but not there yet must at least refuse connections: an address that does not answer at
// all holds the next member up. So a node that cannot be reached is not added; it joins by itself when it comes.
func (d etcdSteps) etcdLearners(ctx context.Context, reached []Node) error {
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	var nodes []etcd.Node
	for _, node := range reached {
		nodes = append(nodes, etcdNode(node))
	}
	if d.again {
		if err := d.removeAllDeadMembers(ctx, client, reached); err != nil {
			return err
		}
	}
	_, err = etcd.AddLearners(ctx, client, nodes)
	return err
}

// removeAllDeadMembers removes the dead members: etcd takes no new one beside them.
func (d etcdSteps) removeAllDeadMembers(ctx context.Context, client *clientv3.Client, nodes []Node) error {
	for _, node := range nodes {
		if err := d.removeDeadMember(ctx, client, node); err != nil {
			return err
		}
	}
	return d.removeDeadMembers(ctx, client)
}

// removeDeadMembers removes the dead members of nodes that must not vote any more. Living members leave when no forwarder points to them any more, see
// Remove.
func (d etcdSteps) removeDeadMembers(ctx context.Context, client *clientv3.Client) error {
	formerMembers, err := d.formerMembers(ctx, client)
	if err != nil {
		return err
	}
	for _, member := range formerMembers {
		if !etcd.Answers(ctx, client, member) {
			if err := d.dismiss(ctx, client, member, "which is dead"); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeDeadMember removes the node's member when its data are gone, and the node's data when their member is: after it the
// node either has a member with its data or neither.
func (d etcdSteps) removeDeadMember(ctx context.Context, client *clientv3.Client, node Node) error {
	found, err := d.etcdData(ctx, node)
	if err != nil {
		return err
	}
	members, err := etcd.Members(ctx, client)
	if err != nil {
		return err
	}
	member := members.Of(etcdNode(node))
	switch {
	case member != nil && !found.there && (etcd.Started(member) || !member.IsLearner):
		return d.dismiss(ctx, client, member, "whose data are gone")
	case found.there && (member == nil || found.member != fmt.Sprintf("%x", member.ID) && (found.member != "" || !etcd.Started(member))):
		d.report(ctx, node, "the data of its former etcd member are removed")
		return d.forgetEtcd(ctx, node)
	}
	return nil
}

func (d etcdSteps) dismiss(ctx context.Context, client *clientv3.Client, member *etcdserverpb.Member, why string) error {
	if err := etcd.Remove(ctx, client, member.ID); err != nil {
		return err
	}
	name := member.Name
	if name == "" {
		name = fmt.Sprintf("%x", member.ID)
	}
	d.cluster.config.Report(ctx, "", fmt.Sprintf("etcd member %s, %s, was removed", name, why))
	return nil
}

// formerMembers are the members of nodes that are not to vote (any more).
func (d etcdSteps) formerMembers(ctx context.Context, client *clientv3.Client) (etcd.Membership, error) {
	members, err := etcd.Members(ctx, client)
	if err != nil {
		return nil, err
	}
	voters := d.design.etcdNodes()
	return slices.DeleteFunc(members, func(member *etcdserverpb.Member) bool {
		return slices.ContainsFunc(voters, func(node etcd.Node) bool { return slices.Contains(member.PeerURLs, node.PeerURL()) })
	}), nil
}

// etcdJoin starts a node's member, which was added as a learner, and makes it a voter. It does not wait for the unit: after a snapshot a member reports
// late that it is ready.
func (d etcdSteps) etcdJoin(ctx context.Context, node Node) error {
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	return d.join(ctx, client, node)
}

func (d etcdSteps) join(ctx context.Context, client *clientv3.Client, node Node) error {
	if d.again {
		if err := d.removeDeadMember(ctx, client, node); err != nil {
			return err
		}
	}
	members, err := etcd.AddLearners(ctx, client, []etcd.Node{etcdNode(node)})
	if err != nil {
		return err
	}
	found, err := d.etcdData(ctx, node)
	if err != nil {
		return err
	}
	if !found.there {
		join := etcd.Join(members.PeerURLs(d.design.etcdNodes()), "existing", members.Of(etcdNode(node)).ID)
		if err := d.upload(ctx, node, join); err != nil {
			return err
		}
	}
	if err := d.start(ctx, node, false, "etcd"); err != nil {
		return err
	}
	started := time.Now()
	err = d.guarded(ctx, node, []string{"etcd"}, func(ctx context.Context) error {
		if err := etcd.Promote(ctx, client, etcdNode(node)); err != nil || !found.there {
			return err
		}
		return etcd.AwaitAnswer(ctx, client, etcdNode(node)) // it may have been restarted, and the next one is only after it
	})
	if err == nil && !found.there {
		d.report(ctx, node, fmt.Sprintf("votes in etcd (caught up in %s)", time.Since(started).Round(10*time.Millisecond)))
	}
	return err
}

// etcdRejoin takes in a master without data: it lost them or replaces another one. This goes through members with data whose nodes are reached.
func (d etcdSteps) etcdRejoin(ctx context.Context, node Node, reached []Node) error {
	others := 0
	for _, other := range d.cluster.config.Nodes {
		if other.Name != node.Name && slices.Contains(d.record.Members, other.Name) {
			others++
		}
	}
	gone := fmt.Errorf("the etcd data of this cluster are not on %s (%s)", node.Name, etcd.DataDir)
	if others < len(d.record.Members)/2+1 {
		return fmt.Errorf("%w, and no majority of members is left: restore a snapshot (action restore; burano cluster snapshot restore), or recover the best member that is left (action recoverQuorum); Burano does not begin an empty store", gone)
	}
	if len(reached) == 0 {
		return fmt.Errorf("%w, and none of the other members' nodes can be reached", gone)
	}
	client, err := d.cluster.etcdAt(ctx, d.design.authorities, etcd.Root, reached...)
	if err != nil {
		return errors.Join(gone, err)
	}
	defer client.Close()
	if err := d.removeDeadMembers(ctx, client); err != nil { // a former master's: etcd takes no new one beside it
		return errors.Join(gone, err)
	}
	if err := d.join(ctx, client, node); err != nil {
		return fmt.Errorf("%w; it joins the other members again: %w", gone, err)
	}
	return nil
}

// etcdVoters removes the dead members of nodes that are gone, and notes who votes now.
func (d etcdSteps) etcdVoters(ctx context.Context, _ Node) error {
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	if err := d.removeDeadMembers(ctx, client); err != nil {
		return err
	}
	members, err := etcd.Members(ctx, client)
	if err != nil {
		return err
	}
	d.voters = members.Voters(d.design.etcdNodes())
	var names []string
	for _, voter := range d.voters {
		names = append(names, voter.Name)
	}
	if slices.Equal(names, d.record.Members) {
		return nil
	}
	d.record.Members = names
	return d.saveRecord(ctx)
}

// retire removes the members of nodes that must not vote any more: by now masters, or masters alone, vote in their place, and no forwarder points to them.
func (d etcdSteps) retire(ctx context.Context, nodes []Node) error {
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	return d.leave(ctx, client, func(member *etcdserverpb.Member) bool {
		return slices.ContainsFunc(nodes, func(node Node) bool {
			return slices.Contains(member.PeerURLs, etcdNode(node).PeerURL()) && !slices.Contains(d.design.voters, node.Name)
		})
	})
}

// leave removes members, one after another, and their data from nodes that stay.
func (d etcdSteps) leave(ctx context.Context, client *clientv3.Client, which func(*etcdserverpb.Member) bool) error {
	members, err := etcd.Members(ctx, client)
	if err != nil {
		return err
	}
	for _, member := range members {
		if !which(member) {
			continue
		}
		if err := etcd.Remove(ctx, client, member.ID); err != nil {
			return err
		}
		d.cluster.config.Report(ctx, member.Name, "votes no more in etcd")
		i := slices.IndexFunc(d.cluster.config.Nodes, func(node Node) bool { return slices.Contains(member.PeerURLs, etcdNode(node).PeerURL()) })
		if i < 0 {
			continue
		}
		_, err := d.script(ctx, d.cluster.config.Nodes[i], "remove etcd data", etcdForgetScript, map[string]string{"DATA": etcd.DataDir, "JOIN": etcd.JoinFile})
		if err != nil {
			return err
		}
	}
	return nil
}

// forwarder starts a node's forwarder with the present voters: a member that could not join is no endpoint of clients.
func (d etcdSteps) forwarder(ctx context.Context, node Node) error {
	unit := etcd.Forwarder(d.voters)
	d.mu.Lock()
	planned := d.installed[node.Name].units[unit.Name]
	d.installed[node.Name].units[unit.Name] = unit
	d.mu.Unlock()
	if unit.Fingerprint() != planned.Fingerprint() {
		if err := d.upload(ctx, node, slices.DeleteFunc(unit.Install(), func(file ssh.File) bool { return file.Path != systemd.Folder+"/"+unit.Name+".service" })...); err != nil {
			return err
		}
		if _, err := d.script(ctx, node, "read units again", "systemctl daemon-reload", nil); err != nil {
			return err
		}
	}
	return d.start(ctx, node, true, unit.Name)
}

// desiredVoters are the nodes that are to vote in etcd; current are the present ones.
func (c Config) desiredVoters(current []string) []string {
	var candidates []etcd.Candidate
	for _, node := range c.staying() {
		if !node.Elastic && node.Machine == nil {
			candidates = append(candidates, etcd.Candidate{Name: node.Name, Rank: slices.Index([]Role{Master, Minion, Gateway}, node.Role), Locked: node.Settings.Locked})
		}
	}
	most := etcd.MaxVoters
	if masters := len(c.masters()); c.EtcdOnMasters && masters > 1 {
		most = masters | 1 // with two masters a third node votes
	}
	return etcd.Voters(candidates, current, most)
}

// Voters are the nodes that a deployment of the cluster lets vote in etcd, and the ones that it let vote last, none for a new cluster. It needs no more of config than its
// Nodes, EtcdOnMasters and Vault.
func Voters(ctx context.Context, config Config) (desired, last []string, err error) {
	record, err := (&servers{config: config}).loadRecord(ctx)
	if err != nil {
		return nil, nil, err
	}
	return config.desiredVoters(record.Voters), record.Voters, nil
}
