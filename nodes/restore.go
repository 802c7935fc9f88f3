package nodes

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/plan"
)

// Names of the steps of a restore, stable like the steps of Deploy.
const (
	stepHalt     = "halt"
	stepRestore  = "restore snapshot"
	stepPosition = "etcd position"
	stepExport   = "export etcd"
)

//go:embed scripts/etcd-halt.sh
var etcdHaltScript string

//go:embed scripts/etcd-restore.sh
var etcdRestoreScript string

//go:embed scripts/etcd-export.sh
var etcdExportScript string

// snapshotFile is where a snapshot lies on a node while it is needed there.
const snapshotFile = "/var/lib/etcd/snapshot"

// Restoration is the snapshot with which a cluster must begin again.
type Restoration struct {
	// Run names this restore: with the same name it goes on where it was, also in another process.
	Run      string
	Snapshot string // its name, for messages
	Keys     []byte // the keys of the snapshot (Cluster.Keys)
	// Open begins to read the snapshot, and may be called again.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// restoreSteps put a snapshot in the place of a cluster's store.
type restoreSteps struct{ *deployment }

// Restore returns the cluster to the state of a snapshot, whatever is left of it: changes in Kubernetes since then are lost. The master begins a new etcd
// with the snapshot, and the others join it as they join a new cluster. Its authorities stay; it reads data that were sealed and signed under the keys of
// the snapshot.
func (c *Cluster) Restore(ctx context.Context, from Restoration) error {
	if c.config.Binary == "" {
		return errors.New("a snapshot cannot be restored without the burano program for the master")
	}
	c.deploying.Lock()
	defer c.deploying.Unlock()
	if err := pki.Adopt(ctx, c.config.Vault, from.Keys, c.now()); err != nil {
		return err
	}
	made, err := c.newDeployment(ctx)
	if err != nil {
		return err
	}
	d := restoreSteps{made}
	if err := d.placeSnapshot(ctx, from); err != nil {
		return fmt.Errorf("restore cluster %s from snapshot %s: %w", c.config.Name, from.Snapshot, err)
	}
	defer d.etcd.close()
	if err := c.deploy(ctx); err != nil {
		return err
	}
	return d.forgetOthers(ctx)
}

// Restoring names the snapshot of a restore that was begun, and whose snapshot is not in place yet; "" when there is none.
func (c *store) Restoring(ctx context.Context) (string, error) {
	record, err := c.loadRecord(ctx)
	if err != nil || record.Restoring == nil {
		return "", err
	}
	return record.Restoring.Snapshot, nil
}

// placeSnapshot ends all programs that use the store on reachable nodes, and puts the snapshot in place on the master. It happens only once: later writes
// stay.
func (d restoreSteps) placeSnapshot(ctx context.Context, from Restoration) error {
	c, master := d.cluster, d.lead
	placed := false
	p := &plan.Plan{}
	add := func(step plan.Step, node Node, run func(context.Context) error) string {
		return c.addStep(p, step, node, c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error { return run(ctx) })
	}
	for _, node := range c.config.Nodes {
		add(plan.Step{Name: stepConnect}, node, func(ctx context.Context) error { return d.connect(ctx, node) })
	}
	look := add(plan.Step{Name: stepEtcdData, After: []string{plan.ID(master.Name, stepConnect)}}, master, func(ctx context.Context) (err error) {
		placed, err = d.isRestored(ctx, master, from.Run)
		return err
	})
	begin := add(plan.Step{Name: stepBinary, After: []string{look}}, master, func(ctx context.Context) error {
		if placed {
			return nil
		}
		d.record.Restoring = &restoring{Snapshot: from.Snapshot}
		if err := d.saveRecord(ctx); err != nil {
			return err
		}
		return fileSteps(d).copyBinary(ctx, master)
	})
	place := plan.Step{Name: stepRestore}
	for _, node := range c.config.Nodes {
		id := add(plan.Step{Name: stepHalt, After: []string{begin, plan.ID(node.Name, stepConnect)}}, node, func(ctx context.Context) error {
			if placed {
				return nil
			}
			return d.halt(ctx, node)
		})
		if node.Name == master.Name || node.Role == Master && node.Leaving {
			place.After = append(place.After, id)
			continue
		}
		// One that is not reached is of another cluster when it comes back, and is taken in as a new one.
		place.Soft = append(place.Soft, plan.Soft{ID: id, For: joinGrace})
	}
	placing := add(place, master, func(ctx context.Context) error {
		if !placed {
			if err := d.restore(ctx, master, from); err != nil {
				return err
			}
			c.config.Report(ctx, master.Name, "begins etcd with the snapshot "+from.Snapshot)
		}
		d.record.Bootstrapped, d.record.Members, d.record.Restoring = true, []string{master.Name}, nil
		d.record.Peers = etcd.TrustPeers // no member of before is left
		return d.saveRecord(ctx)
	})
	records, err := p.Run(ctx)
	if slices.ContainsFunc(records, func(record plan.Record) bool { return record.ID() == placing && record.Outcome == plan.Done }) && ctx.Err() == nil {
		return nil // the others' steps report their problems
	}
	return failures(records, err)
}

func (d restoreSteps) isRestored(ctx context.Context, node Node, run string) (bool, error) {
	out, err := d.script(ctx, node, "look for a restore", `[ ! -d "$DATA/member" ] || cat "$JOIN" 2>/dev/null || true`, map[string]string{"DATA": etcd.DataDir, "JOIN": etcd.JoinFile})
	return etcd.RestoredBy(out, run), err
}

// halt ends the node's member, and the programs that must restart with another store.
func (d restoreSteps) halt(ctx context.Context, node Node) error {
	units := []string{"etcd"}
	// A kubelet registers its node when it starts, and not again when the store knows nothing of it.
	restart := append(slices.Clone(d.design.driver.Units().Daemons), "burano-gateway", "kubelet", "kube-proxy", kube.LeaseUnit)
	if node.Role == Master {
		units = append(units, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "burano-publish")
		units = append(units, d.design.driver.Units().Controllers...)
	}
	_, err := d.script(ctx, node, "halt", etcdHaltScript, map[string]string{
		"UNITS": strings.Join(units, "\n"), "RESTART": strings.Join(restart, "\n"), "DATA": etcd.DataDir, "JOIN": etcd.JoinFile})
	return err
}

func (d restoreSteps) restore(ctx context.Context, node Node, from Restoration) (err error) {
	client, err := d.cluster.connect(ctx, node)
	if err != nil {
		return err
	}
	content, err := from.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	if err := client.Send(ctx, content, snapshotFile); err != nil {
		return err
	}
	_, err = d.script(ctx, node, "restore snapshot", etcdRestoreScript, map[string]string{
		"PROGRAM": remoteBinary, "NAME": node.Name, "ADDRESS": node.Address.String(), "TOKEN": "burano-" + from.Run, "SNAPSHOT": snapshotFile,
		"DATA": etcd.DataDir, "JOIN": etcd.JoinFile})
	if err != nil {
		return err
	}
	return d.upload(ctx, node, etcd.Restored(etcdNode(node), from.Run)) // without it the member does not start
}

// forgetOthers deletes the snapshot's data about nodes that the cluster does not have. Kubernetes has the ones with a kubelet, and the network has all.
func (d restoreSteps) forgetOthers(ctx context.Context) error {
	c := d.cluster
	api, err := c.bootstrap(ctx)
	if err != nil {
		return err
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return err
	}
	registered, err := (&asking{cluster: c}).kubelets(ctx, authorities)
	if err != nil {
		return err
	}
	access := network.Access{Endpoint: etcd.LocalEndpoint, AuthorityFile: etcd.AuthorityFile}
	for _, one := range registered {
		known, err := c.node(one.Name)
		if err == nil && (known.RunsPods() || c.config.podless(known)) {
			continue
		}
		if err := kube.Delete(ctx, api, kube.NodeRef(one.Name)); err != nil {
			return err
		}
		if known.Name != "" { // a master that ran pods then
			continue
		}
		former := network.Node{Name: one.Name}
		for _, address := range one.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				_ = former.Address.UnmarshalText([]byte(address.Address))
			}
		}
		if !c.config.registers() {
			if _, err := c.script(ctx, c.master().Name, c.driver.Forget(former, access)); err != nil {
				return err
			}
		}
		c.config.Report(ctx, "", "node "+one.Name+" of the snapshot is no node of the cluster: it was removed")
	}
	if c.config.registers() {
		return nil // the network knows no others
	}
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	registry := c.driver.Registry()
	var kept *clientv3.GetResponse
	err = wait.Every(pollEvery).For(joinGrace).Until(ctx, func(ctx context.Context) (err error) {
		if kept, err = client.Get(ctx, registry.Prefix, clientv3.WithPrefix()); err != nil {
			return wait.Again(err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look at the nodes that the network of pods knows: %w", err)
	}
	for _, former := range orphaned(registry, kept.Kvs, c.config.Nodes) {
		if _, err := c.script(ctx, c.master().Name, c.driver.Forget(former, access)); err != nil {
			return err
		}
		if former.Name != "" { // a lease may be of a former server of a node
			c.config.Report(ctx, "", "node "+former.Name+" of the snapshot is no node of the cluster: it was removed from the network of pods")
		}
	}
	return nil
}

// orphaned are the nodes that a network knows and the cluster has not.
func orphaned(registry network.Registry, kept []*mvccpb.KeyValue, nodes []Node) (list []network.Node) {
	for _, pair := range kept {
		found, is := registry.Node(string(pair.Key), pair.Value)
		own := slices.ContainsFunc(nodes, func(node Node) bool {
			return found.Name != "" && node.Name == found.Name || found.Name == "" && node.Address == found.Address
		})
		if is && !own {
			list = append(list, found)
		}
	}
	return list
}

// ErrMajority is the error when a cluster's etcd has its majority, so that there is nothing to recover.
var ErrMajority = errors.New("a majority of the etcd members answers")

// Left is the best of the etcd members that are left.
type Left struct {
	Node  Node
	Write func(ctx context.Context, to io.Writer) error // of a snapshot of it; may be called again
}

// BestLeft finds, of the reachable nodes, the one whose etcd member was ahead when the majority was lost, and stops that member. The error is ErrMajority
// if the majority was not lost.
func (c *Cluster) BestLeft(ctx context.Context) (Left, error) {
	c.deploying.Lock()
	defer c.deploying.Unlock()
	made, err := c.newDeployment(ctx)
	if err != nil {
		return Left{}, err
	}
	d := restoreSteps{made}
	defer d.etcd.close()
	positions := make([]*etcd.Position, len(c.config.Nodes))
	p := &plan.Plan{}
	for i, node := range c.config.Nodes {
		id := c.addStep(p, plan.Step{Name: stepConnect}, node, c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error { return d.connect(ctx, node) })
		c.addStep(p, plan.Step{Name: stepPosition, After: []string{id}}, node, c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error {
			position, err := d.position(ctx, node)
			positions[i] = position
			return err
		})
	}
	_, failed := p.Run(ctx)
	if ctx.Err() != nil {
		return Left{}, failed
	}
	best := -1
	for i, position := range positions {
		if position != nil && (best < 0 || position.Compare(*positions[best]) > 0) {
			best = i
		}
	}
	if best < 0 {
		return Left{}, errors.Join(fmt.Errorf("no node of cluster %s that can be reached has data of an etcd member: restore the cluster from a snapshot", c.config.Name), failed)
	}
	node := c.config.Nodes[best]
	if client, err := c.etcdAt(ctx, d.design.authorities, etcd.Root, node); err == nil {
		_, err = etcd.Members(ctx, client)
		if err := errors.Join(err, client.Close()); err == nil {
			return Left{}, ErrMajority
		}
	}
	err = c.config.Step(ctx, node.Name, stepExport, func(ctx context.Context) error {
		_, err := d.script(ctx, node, "export etcd", etcdExportScript, map[string]string{"PROGRAM": remoteBinary, "SNAPSHOT": snapshotFile, "DATA": etcd.DataDir})
		return err
	})
	if err != nil {
		return Left{}, fmt.Errorf("export the etcd member of %s: %w", node.Name, err)
	}
	c.config.Report(ctx, node.Name, fmt.Sprintf("its etcd member is the best that is left (entry %d)", positions[best].Index))
	return Left{Node: node, Write: func(ctx context.Context, to io.Writer) error {
		client, err := c.connect(ctx, node)
		if err != nil {
			return err
		}
		return client.Receive(ctx, snapshotFile, to, etcd.MostSnapshot)
	}}, nil
}

// position is how far the node's member has come; nil where the node has none.
func (d restoreSteps) position(ctx context.Context, node Node) (*etcd.Position, error) {
	found, err := etcdSteps(d).etcdData(ctx, node)
	if err != nil || !found.there {
		return nil, err
	}
	if err := fileSteps(d).copyBinary(ctx, node); err != nil {
		return nil, err
	}
	out, err := d.script(ctx, node, "look how far etcd has come", remoteBinary+` etcd position "$DATA"`, map[string]string{"DATA": etcd.DataDir})
	if err != nil {
		return nil, err
	}
	position := &etcd.Position{}
	if err := json.Unmarshal([]byte(out), position); err != nil {
		return nil, fmt.Errorf("read the position of etcd on %s: %w", node.Name, err)
	}
	return position, nil
}
