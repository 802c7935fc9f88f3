package nodes

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/plan"
)

//go:embed scripts/etcd-data.sh
var etcdDataScript string

// etcdSteps run the members of etcd: the lead's member begins, and all others are added as learners before they join one after the other. No step waits
// for a node that does not come.
type etcdSteps struct{ *deployment }

func (d etcdSteps) steps() []step {
	lead, nodes := d.leads(), d.present()
	others := only(nodes, func(node Node) bool { return node.Name != d.lead.Name })
	joiners := only(others, func(node Node) bool { return slices.Contains(d.design.voters, node.Name) })
	members := only(others, func(node Node) bool { return slices.Contains(d.record.Members, node.Name) })
	one := ""
	if d.again {
		// Where forwarders run, one after another is restarted, so that clients on only one node at a time have to connect again.
		one = mutexForwarder
	}
	return []step{
		{name: stepEtcdData, on: lead, skipIf: !d.again, after: here(stepFiles), run: d.lookForEtcdData},
		{name: stepEtcdMember, on: lead, after: needs(here(stepFiles), ifPlanned(here(stepEtcdData))),
			soft: []soft{{name: stepConnect, nodes: members, limit: joinGrace, when: func(Node, plan.Progress) bool { return d.etcdLost }}},
			runKnowing: func(ctx context.Context, node Node, done plan.Progress) error {
				return d.etcdMember(ctx, node, append(through(done, members, stepConnect), d.former...))
			}},
		{name: stepEtcdUsers, on: lead, after: here(stepEtcdMember), run: d.etcdUsers},
		{name: stepEtcdLearners, on: lead, skipIf: len(joiners) == 0, after: here(stepEtcdUsers), soft: []soft{{name: stepConnect, nodes: joiners, limit: joinGrace}},
			runKnowing: func(ctx context.Context, _ Node, done plan.Progress) error {
				return d.etcdLearners(ctx, through(done, joiners, stepConnect))
			}},
		{name: stepEtcdJoin, on: joiners, after: needs(at(lead, stepEtcdLearners), here(stepFiles)), mutex: mutexJoin, run: d.etcdJoin},
		{name: stepEtcdVoters, on: lead, after: needs(here(stepEtcdUsers), ifPlanned(here(stepEtcdLearners))),
			// one that has not come yet joins by itself later
			soft: []soft{{name: stepEtcdJoin, nodes: joiners, limit: d.cluster.config.StepPatience, when: whereConnected}}, run: d.etcdVoters},
		{name: stepForwarder, on: nodes, after: needs(at(lead, stepEtcdVoters), here(stepFiles)), mutex: one, run: d.forwarder},
		// Else there is no member too many, or it leaves together with its node.
		{name: stepEtcdRetire, on: lead, skipIf: !d.again || !d.record.Elects || d.cluster.shrinking, after: at(nodes, stepForwarder), run: func(ctx context.Context, _ Node) error {
			return d.retire(ctx, nodes)
		}},
	}
}

// data is a member's data on a node.
type data struct {
	there  bool
	member string // id of the member in hexadecimal, "" when not known
}

func (d etcdSteps) etcdData(ctx context.Context, node Node) (data, error) {
	out, err := d.script(ctx, node, "look for etcd data", etcdDataScript, map[string]string{"DATA": etcd.DataDir, "JOIN": etcd.JoinFile})
	word, member, _ := strings.Cut(strings.TrimSpace(out), " ")
	return data{there: word == "yes", member: member}, err
}

// forgetEtcd ends a node's member and removes its data; the node is about to get a new one.
func (d etcdSteps) forgetEtcd(ctx context.Context, node Node) error {
	env := map[string]string{"DATA": etcd.DataDir, "JOIN": etcd.JoinFile, "KEEP_UNIT": "yes"}
	_, err := d.script(ctx, node, "remove etcd data", etcdForgetScript, env)
	return err
}

// lookForEtcdData finds out whether the master of a cluster that was begun has no data, or only data that were never relied on.
func (d etcdSteps) lookForEtcdData(ctx context.Context, node Node) error {
	found, err := d.etcdData(ctx, node)
	d.etcdLost = err == nil && (!found.there || d.newcomer(node))
	return err
}

// newcomer is true if the node replaces the master that had a member at the end of the last deployment.
func (d etcdSteps) newcomer(node Node) bool {
	return len(d.record.Members) > 0 && !slices.Contains(d.record.Members, node.Name)
}

// etcdMember runs the master's member. A new cluster is begun only once. A master that lost its data joins members with data on reachable nodes; where
// there are none, it must not begin an empty store.
func (d etcdSteps) etcdMember(ctx context.Context, node Node, reached []Node) error {
	found, err := d.etcdData(ctx, node)
	if err != nil {
		return err
	}
	switch {
	case d.record.Bootstrapped && (!found.there || d.newcomer(node)):
		return d.etcdRejoin(ctx, node, reached)
	case !found.there:
		first := etcdNode(node)
		if err := d.upload(ctx, node, etcd.Join(map[string]string{first.Name: first.PeerURL()}, "new", 0)); err != nil {
			return err
		}
	}
	if err := d.start(ctx, node, true, "etcd"); err != nil {
		return err
	}
	if d.record.Bootstrapped {
		return nil
	}
	d.record.Bootstrapped = true
	return d.saveRecord(ctx)
}

func (d etcdSteps) etcdUsers(ctx context.Context, node Node) error {
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	return d.guarded(ctx, node, []string{"etcd"}, func(ctx context.Context) error {
		if err := etcd.Authorize(ctx, client); err != nil {
			return err
		}
		return etcd.PutOnce(ctx, client, d.design.driver.Settings())
	})
}
