package pki

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Vault keeps secrets: durable when Store returns, and sealed.
type Vault interface {
	Load(ctx context.Context, name string) ([]byte, bool, error)
	Store(ctx context.Context, name string, value []byte) error
}

// Cluster holds the secrets on which a cluster's trust rests. All of them are in the Vault. Of the private parts, only the Kubernetes authority's key (the
// controller-manager signs with it), the service account key and the encryption key are ever on a node, and on masters only.
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
	NextServiceAccount    []byte   // that signs soon, and whose tokens are taken already; nil for none
	NextEncryption        []byte   // under which secrets are sealed soon; nil for none
	EncryptionName        string   // the name of Encryption in data that are sealed under it

	Rotation *Rotation // the rotation that is under way; nil for none
	Rotated  string    // Rotation.Run of the last one that ended
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
	EncryptionName        string   `json:"encryptionName,omitempty"`

	Rotation *storedRotation `json:"rotation,omitempty"`
	Rotated  string          `json:"rotated,omitempty"`
}

// authorities are the pairs of s by their parts.
func (s *stored) authorities() map[Part]*Pair {
	return map[Part]*Pair{EtcdAuthority: &s.Etcd, EtcdPeersAuthority: &s.EtcdPeers, KubernetesAuthority: &s.Kubernetes, FrontProxyAuthority: &s.FrontProxy}
}

func load(ctx context.Context, vault Vault) (s stored, found bool, err error) {
	text, found, err := vault.Load(ctx, vaultName)
	if err != nil {
		return s, false, fmt.Errorf("load the cluster's authorities: %w", err)
	}
	if found {
		if err := json.Unmarshal(text, &s); err != nil {
			return s, false, fmt.Errorf("read the cluster's authorities: %w", err)
		}
	}
	return s, found, nil
}

func (s *stored) save(ctx context.Context, vault Vault) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the cluster's authorities: %w", err)
	}
	if err := vault.Store(ctx, vaultName, text); err != nil {
		return fmt.Errorf("store the cluster's authorities: %w", err)
	}
	return nil
}

// Open loads a cluster's authorities and keys, and makes and stores them when there are none.
func Open(ctx context.Context, vault Vault, now time.Time) (*Cluster, error) {
	s, found, err := load(ctx, vault)
	if err != nil {
		return nil, err
	}
	if !found {
		if s, err = makeStored(now); err != nil {
			return nil, err
		}
	}
	if !found || s.EtcdPeers.Certificate == nil { // clusters of former versions have none
		if _, s.EtcdPeers, err = NewAuthority(authorityNames[EtcdPeersAuthority], now); err != nil {
			return nil, err
		}
		if err := s.save(ctx, vault); err != nil {
			return nil, err
		}
	}
	cluster := &Cluster{KubernetesKey: s.Kubernetes.Key, ServiceAccount: s.ServiceAccount, Encryption: s.Encryption,
		FormerServiceAccounts: s.FormerServiceAccounts, FormerEncryption: s.FormerEncryption, EncryptionName: cmp.Or(s.EncryptionName, firstEncryptionName), Rotated: s.Rotated}
	authorities := cluster.parts()
	for part, pair := range s.authorities() {
		authority, err := LoadAuthority(*pair)
		if err != nil {
			return nil, err
		}
		authority.others = s.Rotation.trusted(part)
		*authorities[part] = authority
	}
	if s.Rotation != nil {
		cluster.Rotation = &s.Rotation.Rotation
		cluster.NextServiceAccount, cluster.NextEncryption = s.Rotation.Next[ServiceAccountKey].Key, s.Rotation.Next[EncryptionKey].Key
	}
	return cluster, nil
}

func makeStored(now time.Time) (stored, error) {
	var s stored
	for part, pair := range s.authorities() {
		if part == EtcdPeersAuthority {
			continue // made where there is none
		}
		var err error
		if _, *pair, err = NewAuthority(authorityNames[part], now); err != nil {
			return stored{}, err
		}
	}
	var err error
	if _, s.ServiceAccount, err = NewKey(); err != nil {
		return stored{}, err
	}
	s.Encryption, err = newEncryptionKey()
	return s, err
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
