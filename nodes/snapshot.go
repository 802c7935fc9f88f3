package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
)

// Snapshot writes the state of the cluster's etcd as it is now, with all that was acknowledged before, from a member that answers.
func (c *store) Snapshot(ctx context.Context, to io.Writer) error {
	if c.config.Alone() {
		return errAlone
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return err
	}
	record, err := c.loadRecord(ctx)
	if err != nil {
		return err
	}
	if !record.Bootstrapped {
		return fmt.Errorf("cluster %s has no etcd yet: deploy it first", c.config.Name)
	}
	var failures []error
	for i, node := range c.members(record) {
		if i < len(record.Members)-1 { // another one may be asked
			asked, cancel := context.WithTimeout(ctx, lockedReach)
			_, err := c.connect(asked, node)
			cancel()
			if err != nil {
				failures = append(failures, fmt.Errorf("on %s: %w", node.Name, err))
				continue
			}
		}
		written, err := c.snapshotOf(ctx, authorities, node, to)
		if err == nil {
			return nil
		}
		failures = append(failures, fmt.Errorf("on %s: %w", node.Name, err))
		if written {
			break // the written part is useless, and cannot be undone
		}
	}
	return fmt.Errorf("take a snapshot of cluster %s: %w", c.config.Name, errors.Join(failures...))
}

// members are the nodes that have had a member, the master first through which the cluster is worked with.
func (c *store) members(record etcdRecord) []Node {
	list := []Node{c.master()}
	for _, name := range record.Members {
		if node, err := c.node(name); err == nil && node.Name != list[0].Name {
			list = append(list, node)
		}
	}
	return list
}

func (c *store) snapshotOf(ctx context.Context, authorities *pki.Cluster, node Node, to io.Writer) (written bool, err error) {
	client, err := c.etcdAt(ctx, authorities, etcd.Root, node)
	if err != nil {
		return false, err
	}
	defer client.Close()
	err = etcd.Snapshot(ctx, client, writer(func(p []byte) (int, error) {
		written = true
		return to.Write(p)
	}))
	return written, err
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Fields in the keys of a snapshot: the ranges of the addresses of pods and Services, that packets between pods have no encapsulation, and that Calico's
// store is Kubernetes.
const (
	addressingKey = "addressing"
	unwrappedKey  = "unwrapped"
	datastoreKey  = "datastore"
)

// Keys are the keys without which a snapshot of the cluster is useless, and the ranges of its addresses; they go with it, sealed.
func (c *store) Keys(ctx context.Context) ([]byte, error) {
	keys, err := pki.Keys(ctx, c.config.Vault)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(keys, &all); err != nil {
		return nil, fmt.Errorf("read the keys of cluster %s: %w", c.config.Name, err)
	}
	if all[addressingKey], err = json.Marshal(c.config.Addressing); err != nil {
		return nil, fmt.Errorf("write what cluster %s has its addresses from: %w", c.config.Name, err)
	}
	if c.config.Encapsulation == network.Unwrapped {
		all[unwrappedKey] = json.RawMessage("true")
	}
	if c.config.Datastore == network.InKubernetes {
		if all[datastoreKey], err = json.Marshal(c.config.Datastore); err != nil {
			return nil, err
		}
	}
	return json.Marshal(all)
}

// PortableKeys reduces the keys of a snapshot, as Keys returned them, to the keys that leave Burano with the snapshot (pki.Portable). It refuses keys that no cluster can use.
func PortableKeys(keys []byte) ([]byte, error) {
	portable, err := pki.Portable(keys)
	if err != nil {
		return nil, err
	}
	given, all := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(keys, &given), json.Unmarshal(portable, &all)); err != nil {
		return nil, fmt.Errorf("read the keys of a snapshot: %w", err)
	}
	for _, name := range []string{addressingKey, unwrappedKey, datastoreKey} {
		if value, is := given[name]; is {
			all[name] = value
		}
	}
	_, addressing := AddressingOf(keys)
	_, unwrapped := UnwrappedIn(keys)
	_, datastore := DatastoreIn(keys)
	if err := errors.Join(addressing, unwrapped, datastore); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// DatastoreIn is where the pod network keeps its data in the cluster of a snapshot, by its keys.
func DatastoreIn(keys []byte) (network.Datastore, error) {
	said := struct{ Datastore network.Datastore }{network.InEtcd}
	if err := json.Unmarshal(keys, &said); err != nil {
		return "", fmt.Errorf("read where the network of pods of a snapshot has its store: %w", err)
	}
	return said.Datastore, nil
}

// UnwrappedIn is true if pods' packets have no encapsulation in the cluster of a snapshot, by its keys.
func UnwrappedIn(keys []byte) (bool, error) {
	var said struct{ Unwrapped bool }
	if err := json.Unmarshal(keys, &said); err != nil {
		return false, fmt.Errorf("read how packets went between the pods of a snapshot: %w", err)
	}
	return said.Unwrapped, nil
}

// AddressingOf are the ranges of the addresses in a snapshot, by its keys. Snapshots without them are of clusters from before the setting existed.
func AddressingOf(keys []byte) (network.Addressing, error) {
	said := struct {
		Addressing network.Addressing `json:"addressing"`
	}{network.DefaultAddressing()}
	if err := json.Unmarshal(keys, &said); err != nil {
		return said.Addressing, fmt.Errorf("read what a snapshot has its addresses from: %w", err)
	}
	return said.Addressing, nil
}
