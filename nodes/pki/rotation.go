package pki

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Part is something of a cluster's trust that can be rotated by itself.
type Part string

// The parts.
const (
	EtcdAuthority       Part = "etcd"
	EtcdPeersAuthority  Part = "etcd-peers"
	KubernetesAuthority Part = "kubernetes"
	FrontProxyAuthority Part = "front-proxy"
	ServiceAccountKey   Part = "service-account"
	EncryptionKey       Part = "encryption"
)

// AuthorityParts are the authorities.
func AuthorityParts() []Part {
	return []Part{EtcdAuthority, EtcdPeersAuthority, KubernetesAuthority, FrontProxyAuthority}
}

// KeyParts are the keys.
func KeyParts() []Part { return []Part{ServiceAccountKey, EncryptionKey} }

var authorityNames = map[Part]string{
	EtcdAuthority: "burano-etcd", EtcdPeersAuthority: "burano-etcd-peers", KubernetesAuthority: "burano-kubernetes", FrontProxyAuthority: "burano-front-proxy",
}

// Stage is the progress of a rotation. Nodes of a stage and of the next one understand each other. So a cluster moves all nodes, one after another, to the
// next stage before it goes on.
type Stage string

// The stages, in their order.
const (
	AcceptBoth Stage = "accept both" // the new ones are accepted beside the used ones
	UseNew     Stage = "use new"     // and the former ones are still accepted
	AcceptNew  Stage = "accept new"  // and nothing else
)

// Rotation is a rotation that is under way.
type Rotation struct {
	Run   string    `json:"run"` // the run that began it
	Parts []Part    `json:"parts"`
	Stage Stage     `json:"stage"`
	Began time.Time `json:"began"`
}

// Of is true if a part is rotated.
func (r Rotation) Of(part Part) bool { return slices.Contains(r.Parts, part) }

// storedRotation is the form in the Vault.
type storedRotation struct {
	Rotation
	Next   map[Part]Pair `json:"next,omitempty"`   // until they are used; keys are pairs without a certificate
	Former map[Part]Pair `json:"former,omitempty"` // authorities, without their keys, as long as they are accepted
}

// trusted is the authority that is trusted beside the present one; nil for none.
func (r *storedRotation) trusted(part Part) []byte {
	if r == nil {
		return nil
	}
	return slices.Concat(r.Next[part].Certificate, r.Former[part].Certificate)
}

// ErrRotating is the error when a rotation is under way already.
var ErrRotating = errors.New("a rotation is under way")

// BeginRotation makes the successors of parts, which are accepted from now on. Run names the rotation.
func BeginRotation(ctx context.Context, vault Vault, run string, parts []Part, now time.Time) error {
	s, found, err := load(ctx, vault)
	switch {
	case err != nil:
		return err
	case !found:
		return errors.New("the cluster has no authorities yet")
	case s.Rotation != nil:
		return ErrRotating
	}
	rotation := &storedRotation{Rotation: Rotation{Run: run, Parts: parts, Stage: AcceptBoth, Began: now}, Next: map[Part]Pair{}}
	for _, part := range parts {
		var next Pair
		switch part {
		case ServiceAccountKey:
			_, next.Key, err = NewKey()
		case EncryptionKey:
			next.Key, err = newEncryptionKey()
		default:
			name, known := authorityNames[part]
			if !known {
				return fmt.Errorf("a cluster has no %q that could be rotated", part)
			}
			_, next, err = NewAuthority(name+" "+now.UTC().Format(time.DateTime), now) // a person can distinguish it from the former one
		}
		if err != nil {
			return err
		}
		rotation.Next[part] = next
	}
	s.Rotation = rotation
	return s.save(ctx, vault)
}

// AdvanceRotation takes the rotation to the stage after from, or ends it. It changes nothing where it is not at from, so that it may be repeated.
func AdvanceRotation(ctx context.Context, vault Vault, from Stage) error {
	s, _, err := load(ctx, vault)
	if err != nil || s.Rotation == nil || s.Rotation.Stage != from {
		return err
	}
	r := s.Rotation
	switch from {
	case AcceptBoth:
		r.Stage, r.Former = UseNew, map[Part]Pair{}
		for part, pair := range s.authorities() {
			if r.Of(part) {
				r.Former[part], *pair = Pair{Certificate: pair.Certificate}, r.Next[part]
			}
		}
		if r.Of(ServiceAccountKey) {
			former := append([][]byte{s.ServiceAccount}, s.FormerServiceAccounts...)
			s.ServiceAccount = r.Next[ServiceAccountKey].Key
			s.FormerServiceAccounts = others(s.ServiceAccount, former)
		}
		if r.Of(EncryptionKey) {
			former := append([][]byte{s.Encryption}, s.FormerEncryption...)
			s.Encryption = r.Next[EncryptionKey].Key
			s.EncryptionName, s.FormerEncryption = NameOfEncryptionKey(s.Encryption), others(s.Encryption, former)
		}
		r.Next = nil
	case UseNew:
		r.Stage, r.Former = AcceptNew, nil
		if r.Of(ServiceAccountKey) {
			s.FormerServiceAccounts = nil
		}
		if r.Of(EncryptionKey) {
			s.FormerEncryption = nil
		}
	default:
		s.Rotation, s.Rotated = nil, r.Run
	}
	return s.save(ctx, vault)
}

// AdoptRotation gives the rotation that is under way to another run, with whose name it ends.
func AdoptRotation(ctx context.Context, vault Vault, run string) error {
	s, _, err := load(ctx, vault)
	if err != nil || s.Rotation == nil {
		return err
	}
	s.Rotation.Run = run
	return s.save(ctx, vault)
}

// firstEncryptionName is the name of the encryption key of a new cluster.
const firstEncryptionName = "key1"

// encryptionKeySize is the size in bytes of a key of secretbox.
const encryptionKeySize = 32

func newEncryptionKey() ([]byte, error) {
	key := make([]byte, encryptionKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("draw the encryption key: %w", err)
	}
	return key, nil
}

// NameOfEncryptionKey is the name of a later key of a cluster. Sealed data begin with the name.
func NameOfEncryptionKey(key []byte) string {
	sum := sha256.Sum256(key)
	return "key-" + hex.EncodeToString(sum[:4])
}

// NamesOfEncryptionKey are the possible names of a key in data that were sealed under it.
func NamesOfEncryptionKey(key []byte) []string {
	return []string{firstEncryptionName, NameOfEncryptionKey(key)}
}

// AcceptedServiceAccounts are the keys whose tokens are accepted, the signing key first.
func (c *Cluster) AcceptedServiceAccounts() [][]byte {
	return append([][]byte{c.ServiceAccount}, others(c.ServiceAccount, append(slices.Clone(c.FormerServiceAccounts), c.NextServiceAccount))...)
}

// AcceptedEncryption are the keys beside Encryption that open sealed data.
func (c *Cluster) AcceptedEncryption() [][]byte {
	return others(c.Encryption, append(slices.Clone(c.FormerEncryption), c.NextEncryption))
}

// TokenKeyID is how a token of Kubernetes names the key that signed it (kid, RFC 7515 4.1.4): the API server takes the SHA-256 of the public key.
func TokenKeyID(keyPEM []byte) (string, error) {
	der, err := publicKey(keyPEM)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

func (c *Cluster) parts() map[Part]**Authority {
	return map[Part]**Authority{EtcdAuthority: &c.Etcd, EtcdPeersAuthority: &c.EtcdPeers, KubernetesAuthority: &c.Kubernetes, FrontProxyAuthority: &c.FrontProxy}
}
