package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/lease"
	"github.com/flannel-io/flannel/pkg/subnet"
	etcdsubnet "github.com/flannel-io/flannel/pkg/subnet/etcd"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2"
)

const (
	// watchAgainAfter is the pause before etcd is asked again after a watch has ended.
	watchAgainAfter = time.Second
	// renewMargin is how long before its end a lease of 24 hours is renewed, renewAgainAfter the pause when that failed.
	renewMargin     = time.Hour
	renewAgainAfter = time.Minute
)

// errLost ends the program; started again, it takes a new lease.
var errLost = errors.New("the lease of this node's subnet is gone from etcd")

// manager is Flannel's manager of leases over etcd, except for its watches. Flannel's (v0.28.4) begins an ended watch at its first revision again. The API
// server compacts etcd every five minutes, so after the first loss of the leader this revision is gone, and the node would never learn of new nodes again.
type manager struct {
	subnet.Manager
	client *clientv3.Client
	prefix string        // of the leases' keys
	own    ip.IP4Net     // the node's subnet, once it has one
	lost   chan struct{} // closed when the own lease is gone
}

func newManager(local subnet.Manager, config etcdsubnet.EtcdConfig) (*manager, error) {
	tls, err := transport.TLSInfo{CertFile: config.Certfile, KeyFile: config.Keyfile, TrustedCAFile: config.CAFile}.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the certificates for etcd: %w", err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: config.Endpoints, TLS: tls})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return &manager{Manager: local, client: client, prefix: path.Join(config.Prefix, "subnets") + "/", lost: make(chan struct{})}, nil
}

func (m *manager) close() {
	if err := m.client.Close(); err != nil {
		klog.V(1).Infof("close the connection to etcd: %v", err)
	}
}

// AcquireLease is part of subnet.Manager. It comes before WatchLeases, which must know the node's own lease.
func (m *manager) AcquireLease(ctx context.Context, attributes *lease.LeaseAttrs) (*lease.Lease, error) {
	acquired, err := m.Manager.AcquireLease(ctx, attributes)
	if err == nil {
		m.own = acquired.Subnet
	}
	return acquired, err
}

// keep renews the node's lease until ctx ends or the lease is lost.
func (m *manager) keep(ctx context.Context, own *lease.Lease) error {
	for wait := time.Until(own.Expiration) - renewMargin; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-m.lost:
			return errLost
		case <-time.After(wait):
		}
		if err := m.RenewLease(ctx, own); err != nil {
			klog.Errorf("renew the lease, which ends at %s: %v", own.Expiration, err)
			wait = renewAgainAfter
			continue
		}
		wait = time.Until(own.Expiration) - renewMargin
	}
}

// WatchLeases is part of subnet.Manager. It reports the leases of all other nodes until ctx ends: as a snapshot first and
// whenever the watch had to begin anew, then of each change.
func (m *manager) WatchLeases(ctx context.Context, receiver chan []lease.LeaseWatchResult) error {
	defer close(receiver)
	for {
		err := m.watch(ctx, receiver)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errLost):
			close(m.lost)
			return err
		}
		klog.Warningf("the watch of the other nodes ended, beginning anew: %v", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watchAgainAfter):
		}
	}
}

func (m *manager) watch(ctx context.Context, receiver chan<- []lease.LeaseWatchResult) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	now, err := m.client.Get(ctx, m.prefix, clientv3.WithPrefix())
	if err != nil {
		return err
	}
	snapshot := []lease.Lease{}
	lost := true
	for _, entry := range now.Kvs {
		found, ok := parse(entry)
		switch {
		case !ok:
		case found.Subnet.Equal(m.own):
			lost = false
		default:
			snapshot = append(snapshot, found)
		}
	}
	if lost {
		return errLost
	}
	receiver <- []lease.LeaseWatchResult{{Snapshot: snapshot}}
	for response := range m.client.Watch(ctx, m.prefix, clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision+1)) {
		if err := response.Err(); err != nil {
			return err
		}
		var results []lease.LeaseWatchResult
		for _, event := range response.Events {
			kind := lease.EventAdded
			if event.Type == clientv3.EventTypeDelete {
				kind = lease.EventRemoved
			}
			found, ok := parse(event.Kv)
			switch {
			case !ok:
			case !found.Subnet.Equal(m.own):
				results = append(results, lease.LeaseWatchResult{Events: []lease.Event{{Type: kind, Lease: found}}})
			case kind == lease.EventRemoved:
				return errLost
			}
		}
		if len(results) > 0 {
			receiver <- results
		}
	}
	return errors.New("etcd closed it")
}

// parse reads a lease. A removed one has only its key.
func parse(entry *mvccpb.KeyValue) (lease.Lease, bool) {
	network, _ := subnet.ParseSubnetKey(string(entry.Key))
	if network == nil {
		klog.Warningf("%s is no key of a lease", entry.Key)
		return lease.Lease{}, false
	}
	found := lease.Lease{EnableIPv4: true, Subnet: *network, Asof: entry.ModRevision}
	if len(entry.Value) == 0 {
		return found, true
	}
	if err := json.Unmarshal(entry.Value, &found.Attrs); err != nil {
		klog.Warningf("the lease %s cannot be read: %v", entry.Key, err)
		return lease.Lease{}, false
	}
	return found, true
}
