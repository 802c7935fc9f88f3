package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/plan"
)

// Pods of a cluster that has storage classes have volumes. A program on masters makes and removes them, and one on minions has pods use them; both come with
// the image. They stay as long as there is a volume of their back-end, also when no class asks for it any more.

const vaultStorage = "storage" // storageRecord as JSON

// storageRecord has the known facts about a cluster's volumes.
type storageRecord struct {
	// Backends are the back-ends that the cluster has, or has had and may have volumes of.
	Backends []kube.Storage `json:"backends"`
	// Newer is true if classes need, or have needed, parts that nodes of older images do not have.
	Newer bool `json:"newer,omitempty"`
}

func loadStorage(ctx context.Context, vault Vault) (record storageRecord, err error) {
	text, found, err := vault.Load(ctx, vaultStorage)
	if err == nil && found {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return record, fmt.Errorf("read what is known of volumes: %w", err)
	}
	return record, nil
}

func (c *kubernetesAPI) saveStorage(ctx context.Context, record storageRecord) error {
	text, err := json.Marshal(record)
	if err == nil {
		err = c.config.Vault.Store(ctx, vaultStorage, text)
	}
	if err != nil {
		return fmt.Errorf("store what is known of volumes: %w", err)
	}
	return nil
}

// backends are the back-ends of the classes.
func (c Config) backends() (list []kube.Storage) {
	for _, backend := range kube.Storages() {
		if slices.ContainsFunc(c.StorageClasses, func(class kube.StorageClass) bool { return class.Backend == backend }) {
			list = append(list, backend)
		}
	}
	return list
}

// newerStorage is true if a class needs parts that nodes of older images do not have.
func (c Config) newerStorage() bool {
	return slices.ContainsFunc(c.StorageClasses, kube.StorageClass.Newer)
}

// storageSteps give pods volumes.
type storageSteps struct{ *deployment }

func (d storageSteps) steps() []step {
	none, minions := len(d.design.storage) == 0, only(d.present(), Node.RunsPods)
	return []step{
		{name: stepStorageNode, on: minions, skipIf: none, after: here(stepFiles), run: d.storageNode},
		{name: stepStorage, on: d.leads(), skipIf: none, after: here(stepAPIReady, stepAccess),
			soft: []soft{{name: stepAPIServes, nodes: d.besidesLead(), limit: joinGrace}, {name: stepStorageNode, nodes: minions, limit: joinGrace}},
			runKnowing: func(ctx context.Context, node Node, done plan.Progress) error {
				return d.storage(ctx, node, through(done, serving(d.deployment, Master), stepAPIServes))
			}},
	}
}

// chooseStorage finds out which back-ends the nodes are to serve, and notes it before any of them does.
func (d storageSteps) chooseStorage(ctx context.Context) error {
	record, err := loadStorage(ctx, d.cluster.config.Vault)
	if err != nil {
		return err
	}
	former := len(record.Backends)
	newer := record.Newer || d.cluster.config.newerStorage()
	changed := newer != record.Newer
	record.Newer = newer
	for _, backend := range d.cluster.config.backends() {
		if !slices.Contains(record.Backends, backend) {
			record.Backends = append(record.Backends, backend)
		}
	}
	slices.Sort(record.Backends)
	d.design.storage = record.Backends
	if former == len(record.Backends) && !changed {
		return nil
	}
	return d.cluster.saveStorage(ctx, record)
}

// storageOrders are the certificates that a node needs for volumes.
func (d design) storageOrders(node Node) map[string]pki.Order {
	orders := map[string]pki.Order{}
	if len(d.storage) > 0 && node.Role == Master {
		maps.Copy(orders, d.kube().StorageOrders())
	}
	if len(d.storage) > 0 && node.RunsPods() {
		maps.Copy(orders, d.kube().StorageNodeOrders(kubeNode(node)))
	}
	return orders
}

// serving are the back-ends that a node serves, as far as its image can. Cinder attaches nothing to a machine that is none of the cloud's.
func (d design) serving(node Node) []kube.Storage {
	if !d.serves {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(d.storage), func(backend kube.Storage) bool {
		return backend == kube.Cinder && (!d.attaches || node.Machine != nil) || backend == kube.Manila && !d.mounts
	})
}

// storageUnits adds the units of a node whose image can serve volumes.
func (d design) storageUnits(l layout, node Node, pairs map[string]pki.Pair) error {
	backends := d.serving(node)
	if len(backends) == 0 {
		return nil
	}
	if node.Role == Master {
		name := ""
		if d.elect {
			name = node.Name
		}
		unit, err := d.kube().StorageControllers(backends, name, pairs)
		if err != nil {
			return err
		}
		l.add(unit)
	}
	if node.RunsPods() {
		zone := ""
		if d.zoned {
			zone = zoneLabel(node)
		}
		l.add(d.kube().StorageNode(kubeNode(node), zone, backends, pairs))
	}
	return nil
}

// zoneLabel is a node's zone as its label; "" for a zone that cannot be a label.
func zoneLabel(node Node) string {
	if len(validation.IsValidLabelValue(node.Zone)) > 0 {
		return ""
	}
	return node.Zone
}

// served are the back-ends that a node serves.
func (d storageSteps) served(node Node) []kube.Storage {
	found, design := d.found(node).facts, d.design
	design.serves, design.attaches, design.mounts = found.storage, found.cinder, found.manila
	return design.serving(node)
}

// storageNode has a minion serve volumes.
func (d storageSteps) storageNode(ctx context.Context, node Node) error {
	served := d.served(node)
	for _, backend := range d.design.storage {
		switch {
		case slices.Contains(served, backend):
		case backend == kube.Cinder && node.Machine != nil:
			d.report(ctx, node, "pods with volumes of Cinder do not run here: it is a machine that is no server of the cloud")
		default:
			d.report(ctx, node, fmt.Sprintf("pods with volumes of the back-end %s cannot run here: its image has nothing that serves them. A node of the present image has it", backend))
		}
	}
	if len(served) == 0 {
		return nil
	}
	return d.start(ctx, node, false, kube.StorageNodeUnit)
}

// storage makes masters serve volumes, and applies the cluster's classes. A back-end without a class ends when its last volume is gone.
func (d storageSteps) storage(ctx context.Context, lead Node, serving []Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	wanted := d.cluster.config.backends()
	documents := [][]byte{kube.StorageRights()}
	for _, backend := range wanted {
		documents = append(documents, backend.Manifests())
	}
	if err := d.apply(ctx, lead, config, documents...); err != nil {
		return err
	}
	var began []kube.Storage
	for _, master := range serving {
		served := d.served(master)
		if len(served) == 0 {
			continue
		}
		if err := d.start(ctx, master, true, kube.StorageUnit); err != nil {
			return err
		}
		began = append(began, served...)
	}
	for _, backend := range wanted {
		if !slices.Contains(began, backend) {
			return fmt.Errorf("the image of the masters has no %s for the back-end %s, without which nobody makes volumes: upgrade the cluster to the present image, or leave its storageClasses out",
				kube.StorageUnit, backend)
		}
	}
	if d.cluster.config.Storing != nil && (slices.Contains(began, kube.Cinder) || slices.Contains(began, kube.Manila)) {
		d.cluster.config.Storing()
	}
	if slices.Contains(wanted, kube.Cinder) { // before its classes, so that the first claim may be of a snapshot; an older image has none of it
		refused, err := controlSteps(d).definitions(ctx, lead, "VolumeSnapshots", kube.SnapshotsFile, kube.EnsureSnapshots)
		if err := errors.Join(refused, err); err != nil {
			return err
		}
	}
	zones := map[string]string{}
	for _, node := range d.present() {
		zones[node.Name] = zoneLabel(node)
	}
	moved, err := kube.MoveZones(ctx, config, zones)
	if err != nil {
		return err
	}
	if len(moved) > 0 {
		d.report(ctx, lead, "servers are in other zones than before, and so are the volumes that their pods can use: "+strings.Join(moved, ", "))
	}
	if err := d.storageClasses(ctx, lead, config); err != nil {
		return err
	}
	left := slices.Clone(wanted)
	for _, backend := range d.design.storage { // after the classes are gone, so that nothing new is made
		if slices.Contains(wanted, backend) {
			continue
		}
		held, err := heldBy(ctx, config, backend)
		if err != nil {
			return err
		}
		if len(held) > 0 {
			left = append(left, backend)
			d.report(ctx, lead, fmt.Sprintf("no storage class has the back-end %s any more, and these volumes of it stay: %s", backend, some(held)))
		}
	}
	if len(left) == len(d.design.storage) {
		return nil
	}
	return d.endStorage(ctx, config, left)
}

// storageClasses has the cluster have its classes.
func (d storageSteps) storageClasses(ctx context.Context, lead Node, config *rest.Config) error {
	var changed, left []string
	err := wait.Every(pollEvery).For(time.Minute).Until(ctx, func(ctx context.Context) (err error) {
		if changed, left, err = kube.EnsureStorageClasses(ctx, config, d.cluster.config.StorageClasses); err != nil {
			return wait.Again(err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		d.report(ctx, lead, "storage classes: "+strings.Join(changed, ", "))
	}
	if len(left) > 0 {
		d.report(ctx, lead, "storage classes of these names were made by somebody else and stay as they are: "+strings.Join(left, ", "))
	}
	return nil
}

// endStorage reduces the record to these back-ends. The next deployment makes nodes serve them alone; where there are none, programs end now. After that
// it looks for volumes that were being made when the classes went. If there is one, the record does not change, and the next deployment starts it all.
func (d storageSteps) endStorage(ctx context.Context, config *rest.Config, left []kube.Storage) error {
	if len(left) == 0 {
		for _, node := range d.present() {
			if len(d.served(node)) == 0 {
				continue
			}
			for unit, runs := range map[string]bool{kube.StorageUnit: node.Role == Master, kube.StorageNodeUnit: node.RunsPods()} {
				if !runs {
					continue
				}
				out, err := d.script(ctx, node, "end "+unit, endUnitScript, map[string]string{"UNIT": unit})
				if err != nil {
					return err
				}
				if strings.TrimSpace(out) == "ended" {
					d.report(ctx, node, unit+" ended")
				}
			}
		}
	}
	for _, backend := range d.design.storage {
		if slices.Contains(left, backend) {
			continue
		}
		held, err := heldBy(ctx, config, backend)
		if err != nil {
			return err
		}
		if len(held) > 0 {
			return fmt.Errorf("volumes of the back-end %s were made while its last class was removed: %s. Deploy again", backend, some(held))
		}
	}
	return d.cluster.saveStorage(ctx, storageRecord{Backends: left})
}

// optional is true if a unit may end while a cluster is deployed.
func (d storageSteps) optional(unit string) bool {
	switch unit {
	case kube.MetricsUnit: // it runs only where there is no other metrics server
		return true
	case kube.StorageUnit, kube.StorageNodeUnit:
		return len(d.cluster.config.backends()) == 0
	}
	return false
}

// heldBy names the volumes of a back-end that a cluster has, and the snapshots of such volumes.
func heldBy(ctx context.Context, config *rest.Config, backend kube.Storage) (names []string, err error) {
	volumes, err := kube.Volumes(ctx, config, backend)
	if err != nil {
		return nil, err
	}
	snapshots, err := kube.VolumeSnapshots(ctx, config, backend)
	if err != nil {
		return nil, err
	}
	names = named(volumes)
	for _, one := range snapshots {
		names = append(names, "snapshot "+one)
	}
	return names, nil
}

func named(volumes []kube.Volume) (names []string) {
	for _, volume := range volumes {
		names = append(names, volume.String())
	}
	return names
}

// VolumesLost is the error of nodes that are not removed, because claims would lose the data in their volumes.
type VolumesLost struct{ Volumes []kube.Volume }

func (v *VolumesLost) Error() string {
	return fmt.Sprintf("what these claims have would be lost, because it is on the disk of a node that would go: %s. Nothing was changed. Move the data to another node and delete the claims, "+
		"or say that they may be lost (loseVolumes of the actions that remove or replace nodes)", describeVolumes(v.Volumes))
}

// describeVolumes names claims by the nodes that have them.
func describeVolumes(volumes []kube.Volume) string {
	var parts []string
	for len(volumes) > 0 {
		node := volumes[0].Node
		end := slices.IndexFunc(volumes, func(volume kube.Volume) bool { return volume.Node != node })
		if end < 0 {
			end = len(volumes)
		}
		parts = append(parts, node+": "+some(named(volumes[:end])))
		volumes = volumes[end:]
	}
	return strings.Join(parts, "; ")
}

// VolumesLost are the volumes that would be lost with nodes. Volumes of a server that the cloud does not know any more are lost already.
func (c *kubernetesAPI) VolumesLost(ctx context.Context, names ...string) ([]kube.Volume, error) {
	record, err := loadStorage(ctx, c.config.Vault)
	if err != nil || !slices.Contains(record.Backends, kube.Local) {
		return nil, err
	}
	var there []string
	for _, name := range names {
		node, err := c.node(name)
		if err == nil && node.RunsPods() && !c.config.Server(ctx, name).Gone {
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return nil, nil
	}
	api, err := c.bootstrap(ctx)
	if err != nil {
		return nil, err
	}
	volumes, err := kube.Volumes(ctx, api, kube.Local)
	return slices.DeleteFunc(volumes, func(volume kube.Volume) bool { return !slices.Contains(there, volume.Node) }), err
}

// keepVolumes refuses to remove nodes with which volumes would be lost, unless the user allowed it.
func (c *kubernetesAPI) keepVolumes(ctx context.Context, leaving []string) error {
	volumes, err := c.VolumesLost(ctx, leaving...)
	if err != nil || len(volumes) == 0 {
		return err
	}
	if !c.config.LoseVolumes {
		return &VolumesLost{volumes}
	}
	c.config.Report(ctx, "", "what these claims have goes with the nodes, as was said: "+describeVolumes(volumes))
	return nil
}

// WithoutStorage are the masters and minions that answer and cannot serve the volumes of back-ends or kinds that are new to the cluster, because their
// image lacks the programs.
func (c *Cluster) WithoutStorage(ctx context.Context) (lacking []string, err error) {
	record, err := loadStorage(ctx, c.config.Vault)
	if err != nil {
		return nil, err
	}
	added := slices.DeleteFunc(c.config.backends(), func(backend kube.Storage) bool { return slices.Contains(record.Backends, backend) })
	newer := c.config.newerStorage() && !record.Newer
	if len(added) == 0 && !newer {
		return nil, nil
	}
	look := "test -x " + kube.StorageProgram
	knows := func(flag string) { look += " && [[ $(" + kube.StorageProgram + " -help 2>&1) == *" + flag + "* ]]" }
	if slices.Contains(added, kube.Cinder) {
		knows("-cinder")
	}
	if slices.Contains(added, kube.Manila) {
		knows("-manila")
		look += " && test -x /sbin/mount.nfs"
	}
	if newer {
		knows("-zone")
		look += " && command -v mkfs.xfs >/dev/null"
	}
	all := slices.DeleteFunc(c.config.staying(), func(node Node) bool { return node.Role == Gateway || node.Machine != nil })
	return c.without(ctx, all, kube.StorageNodeUnit, look), nil
}
