package route

import (
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// KeysPrefix has the public keys of gateways for the sealing of certificates.
	KeysPrefix = Prefix + "keys/"
	// CertificatesPrefix is where certificates are, sealed for one gateway each.
	CertificatesPrefix = Prefix + "certificates/"
)

// PublicKey is the key for which a gateway's certificates are sealed. Its private half is in that gateway's file system only.
type PublicKey struct {
	Gateway string   // name of its node
	Public  [32]byte // X25519
}

type keyDocument struct {
	Version int    `json:"version"`
	Public  []byte `json:"public"`
}

// KeyOf is the key of a gateway's PublicKey in etcd.
func KeyOf(gateway string) string { return KeysPrefix + gateway }

// EncodeKey gives a PublicKey's value in etcd.
func EncodeKey(k PublicKey) ([]byte, error) {
	if !nameForm.MatchString(k.Gateway) {
		return nil, fmt.Errorf("encode the key of a gateway: %q is not a name", k.Gateway)
	}
	return json.Marshal(keyDocument{Version: Version, Public: k.Public[:]})
}

// DecodeKey reads a gateway's PublicKey back.
func DecodeKey(key string, value []byte) (PublicKey, error) {
	name, ours := strings.CutPrefix(key, KeysPrefix)
	if !ours || !nameForm.MatchString(name) {
		return PublicKey{}, fmt.Errorf("decode %q: not the key of a gateway's key, which is %s and its name", key, KeysPrefix)
	}
	if err := decodeVersion(key, value); err != nil {
		return PublicKey{}, err
	}
	var d keyDocument
	if err := json.Unmarshal(value, &d); err != nil {
		return PublicKey{}, fmt.Errorf("decode %q: %w", key, err)
	}
	if len(d.Public) != 32 {
		return PublicKey{}, fmt.Errorf("decode %q: the key has %d bytes and not 32", key, len(d.Public))
	}
	return PublicKey{Gateway: name, Public: [32]byte(d.Public)}, nil
}

// Sealed is a certificate with its private key for one gateway.
type Sealed struct {
	Gateway, Namespace, Secret string
	// Digest identifies the content and the key of a box; it does not reveal the content.
	Digest string
	Box    []byte // see package seal
}

type sealedDocument struct {
	Version int    `json:"version"`
	Digest  string `json:"digest"`
	Box     []byte `json:"box"`
}

// SealedKey is the key of a sealed certificate in etcd.
func SealedKey(s Sealed) string {
	return CertificatesPrefix + s.Gateway + "/" + s.Namespace + "/" + s.Secret
}

// EncodeSealed gives its value in etcd.
func EncodeSealed(s Sealed) ([]byte, error) {
	for _, name := range []string{s.Gateway, s.Namespace, s.Secret} {
		if !nameForm.MatchString(name) {
			return nil, fmt.Errorf("encode a sealed certificate: %q is not a name", name)
		}
	}
	return json.Marshal(sealedDocument{Version: Version, Digest: s.Digest, Box: s.Box})
}

// DecodeSealed reads a sealed certificate back.
func DecodeSealed(key string, value []byte) (Sealed, error) {
	path, ours := strings.CutPrefix(key, CertificatesPrefix)
	names := strings.Split(path, "/")
	if !ours || len(names) != 3 {
		return Sealed{}, fmt.Errorf("decode %q: not the key of a certificate, which is %s<gateway>/<namespace>/<secret>", key, CertificatesPrefix)
	}
	if err := decodeVersion(key, value); err != nil {
		return Sealed{}, err
	}
	var d sealedDocument
	if err := json.Unmarshal(value, &d); err != nil {
		return Sealed{}, fmt.Errorf("decode %q: %w", key, err)
	}
	return Sealed{Gateway: names[0], Namespace: names[1], Secret: names[2], Digest: d.Digest, Box: d.Box}, nil
}
