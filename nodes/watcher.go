package nodes

import (
	"context"
	"net/netip"
	"slices"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/pki"
)

// watcherEtcd is no user of etcd: its certificate opens only the data that a member gives to every client that may connect, and no key.
const watcherEtcd = "burano-metrics"

// Watcher is the access of a program that collects the metrics of a cluster, and may do nothing else.
type Watcher struct {
	Kubernetes, Etcd                       pki.Pair // certificates for kubelets and API servers, and for members of etcd
	KubernetesAuthorities, EtcdAuthorities []byte   // PEM, of their servers
	Masters, Members, Gateways             []netip.Addr
}

// Watcher gives access to the metrics of a deployed cluster, as a user of Kubernetes. Parts of former that stay good for a while are kept.
func (c *kubernetesAPI) Watcher(ctx context.Context, user string, former Watcher) (Watcher, error) {
	authorities, err := c.authorities(ctx)
	if err != nil {
		return Watcher{}, err
	}
	record, err := c.loadRecord(ctx)
	if err != nil {
		return Watcher{}, err
	}
	w := Watcher{Kubernetes: former.Kubernetes, Etcd: former.Etcd, KubernetesAuthorities: authorities.Kubernetes.Trusted(), EtcdAuthorities: authorities.Etcd.Trusted()}
	for _, one := range []struct {
		pair      *pki.Pair
		authority *pki.Authority
		request   pki.Request
	}{
		{&w.Kubernetes, authorities.Kubernetes, pki.Request{CommonName: user, Usage: pki.Client}},
		{&w.Etcd, authorities.Etcd, etcd.ClientRequest(watcherEtcd)},
	} {
		if one.authority.Fits(*one.pair, one.request, c.now()) {
			continue
		}
		if *one.pair, err = one.authority.Issue(one.request, c.now()); err != nil {
			return Watcher{}, err
		}
	}
	for _, node := range c.config.Nodes {
		if node.Leaving || !node.Address.IsValid() {
			continue
		}
		if slices.Contains(record.Members, node.Name) {
			w.Members = append(w.Members, node.Address)
		}
		switch node.Role {
		case Master:
			w.Masters = append(w.Masters, node.Address)
		case Gateway:
			w.Gateways = append(w.Gateways, node.Address)
		}
	}
	return w, nil
}
