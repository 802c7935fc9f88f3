package pki

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"
)

// Vault keeps secrets: durable when Store returns, and sealed.
type Vault interface {
	Load(ctx context.Context, name string) ([]byte, bool, error)
	Store(ctx context.Context, name string, value []byte) error
}

// Cluster holds what a cluster's trust hangs on. All of it lives in the Vault; of the private parts only the
// Kubernetes authority's key (the controller-manager signs with it), the service account key and the encryption key
// are ever put on a node, and on masters only.
type Cluster struct {
	Etcd       *Authority // members as their clients see them, and the clients of etcd by user name
	EtcdPeers  *Authority // members as they see each other
	Kubernetes *Authority // API server, kubelets, and the users of Kubernetes
	FrontProxy *Authority // the API server's own calls to extension API servers

	KubernetesKey  []byte // PEM key of the Kubernetes authority
	ServiceAccount []byte // PEM key that signs service account tokens (ES256)
	Encryption     []byte // 32 bytes: secrets are sealed in etcd under it

	FormerServiceAccounts [][]byte // whose tokens are still taken
	FormerEncryption      [][]byte // under which secrets may still be sealed
}

const vaultName = "pki/cluster"

// stored is the form in the Vault.
type stored struct {
	Etcd           Pair   `json:"etcd"`
	EtcdPeers      Pair   `json:"etcdPeers"`
	Kubernetes     Pair   `json:"kubernetes"`
	FrontProxy     Pair   `json:"frontProxy"`
	ServiceAccount []byte `json:"serviceAccount"`
	Encryption     []byte `json:"encryption"`

	FormerServiceAccounts [][]byte `json:"formerServiceAccounts,omitempty"`
	FormerEncryption      [][]byte `json:"formerEncryption,omitempty"`
}

// Open loads a cluster's authorities and keys, and makes and stores them when there are none.
func Open(ctx context.Context, vault Vault, now time.Time) (*Cluster, error) {
	text, found, err := vault.Load(ctx, vaultName)
	if err != nil {
		return nil, fmt.Errorf("load the cluster's authorities: %w", err)
	}
	var s stored
	if found {
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("read the cluster's authorities: %w", err)
		}
	} else if s, err = makeStored(now); err != nil {
		return nil, err
	}
	if !found || s.EtcdPeers.Certificate == nil { // clusters of former versions have none
		if _, s.EtcdPeers, err = NewAuthority("burano-etcd-peers", now); err != nil {
			return nil, err
		}
		if text, err = json.Marshal(s); err != nil {
			return nil, fmt.Errorf("encode the cluster's authorities: %w", err)
		}
		if err := vault.Store(ctx, vaultName, text); err != nil {
			return nil, fmt.Errorf("store the cluster's authorities: %w", err)
		}
	}
	cluster := &Cluster{KubernetesKey: s.Kubernetes.Key, ServiceAccount: s.ServiceAccount, Encryption: s.Encryption,
		FormerServiceAccounts: s.FormerServiceAccounts, FormerEncryption: s.FormerEncryption}
	for _, part := range []struct {
		authority **Authority
		pair      Pair
	}{{&cluster.Etcd, s.Etcd}, {&cluster.EtcdPeers, s.EtcdPeers}, {&cluster.Kubernetes, s.Kubernetes}, {&cluster.FrontProxy, s.FrontProxy}} {
		if *part.authority, err = LoadAuthority(part.pair); err != nil {
			return nil, err
		}
	}
	return cluster, nil
}

func makeStored(now time.Time) (stored, error) {
	s := stored{Encryption: make([]byte, 32)}
	for _, part := range []struct {
		name string
		pair *Pair
	}{{"burano-etcd", &s.Etcd}, {"burano-kubernetes", &s.Kubernetes}, {"burano-front-proxy", &s.FrontProxy}} {
		var err error
		if _, *part.pair, err = NewAuthority(part.name, now); err != nil {
			return stored{}, err
		}
	}
	var err error
	if _, s.ServiceAccount, err = NewKey(); err != nil {
		return stored{}, err
	}
	if _, err := rand.Read(s.Encryption); err != nil {
		return stored{}, fmt.Errorf("draw the encryption key: %w", err)
	}
	return s, nil
}

// Order is a certificate that some node needs.
type Order struct {
	Authority *Authority
	Request   Request
}

// Bundle returns the pairs for orders by their names. Pairs that the Vault has under name and that still fit stay as
// they are; the others are issued, and the whole is stored.
func Bundle(ctx context.Context, vault Vault, name string, orders map[string]Order, now time.Time) (map[string]Pair, error) {
	text, found, err := vault.Load(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("load certificates %s: %w", name, err)
	}
	var before map[string]Pair
	if found {
		if err := json.Unmarshal(text, &before); err != nil {
			return nil, fmt.Errorf("read certificates %s: %w", name, err)
		}
	}
	pairs := make(map[string]Pair, len(orders))
	changed := false
	for key, order := range orders {
		if pair, there := before[key]; there && order.Authority.Fits(pair, order.Request, now) {
			pairs[key] = pair
			continue
		}
		if pairs[key], err = order.Authority.Issue(order.Request, now); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return pairs, nil
	}
	if text, err = json.Marshal(pairs); err != nil {
		return nil, fmt.Errorf("encode certificates %s: %w", name, err)
	}
	if err := vault.Store(ctx, name, text); err != nil {
		return nil, fmt.Errorf("store certificates %s: %w", name, err)
	}
	return pairs, nil
}
