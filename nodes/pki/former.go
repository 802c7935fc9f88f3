package pki

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Keys returns the keys without which a snapshot of a cluster's etcd is useless, for Adopt: their holder owns the cluster.
func Keys(ctx context.Context, vault Vault) ([]byte, error) {
	text, found, err := vault.Load(ctx, vaultName)
	if err == nil && !found {
		err = fmt.Errorf("there are none")
	}
	if err != nil {
		return nil, fmt.Errorf("load the cluster's keys: %w", err)
	}
	return text, nil
}

// Adopt makes the cluster read data that were sealed and signed under keys of another time, or of another cluster, as Keys returned them. New data are
// sealed and signed under its own keys, and its authorities stay.
func Adopt(ctx context.Context, vault Vault, keys []byte, now time.Time) error {
	if _, err := Open(ctx, vault, now); err != nil { // which makes them where there are none
		return err
	}
	var former stored
	if err := json.Unmarshal(keys, &former); err != nil {
		return fmt.Errorf("read the keys of a snapshot: %w", err)
	}
	own, _, err := load(ctx, vault)
	if err != nil {
		return err
	}
	encryption, accounts := append([][]byte{former.Encryption}, former.FormerEncryption...), append([][]byte{former.ServiceAccount}, former.FormerServiceAccounts...)
	if rotation := former.Rotation; rotation != nil { // which may have gone on while the snapshot was taken
		encryption, accounts = append(encryption, rotation.Next[EncryptionKey].Key), append(accounts, rotation.Next[ServiceAccountKey].Key)
	}
	own.FormerEncryption = others(own.Encryption, append(own.FormerEncryption, encryption...))
	own.FormerServiceAccounts = others(own.ServiceAccount, append(own.FormerServiceAccounts, accounts...))
	return own.save(ctx, vault)
}

// Portable reduces the result of Keys to the keys that Adopt needs, so that who has them reads the snapshot and nothing more: authorities stay out, and of keys that sign tokens only
// the public halves are in it. It refuses keys that no cluster can use.
func Portable(keys []byte) ([]byte, error) {
	var all stored
	if err := json.Unmarshal(keys, &all); err != nil {
		return nil, fmt.Errorf("read the keys of a snapshot: %w", err)
	}
	encryption, accounts := append([][]byte{all.Encryption}, all.FormerEncryption...), append([][]byte{all.ServiceAccount}, all.FormerServiceAccounts...)
	if all.Rotation != nil {
		encryption, accounts = append(encryption, all.Rotation.Next[EncryptionKey].Key), append(accounts, all.Rotation.Next[ServiceAccountKey].Key)
	}
	portable := struct {
		FormerServiceAccounts [][]byte `json:"formerServiceAccounts,omitempty"`
		FormerEncryption      [][]byte `json:"formerEncryption,omitempty"`
	}{FormerEncryption: others(nil, encryption)}
	for _, key := range portable.FormerEncryption {
		if len(key) != encryptionKeySize {
			return nil, fmt.Errorf("a key of the snapshot that seals Secrets has %d bytes, not %d", len(key), encryptionKeySize)
		}
	}
	for _, key := range others(nil, accounts) {
		public, err := PublicKey(key)
		if err != nil {
			return nil, fmt.Errorf("read a key of the snapshot that signs tokens: %w", err)
		}
		portable.FormerServiceAccounts = append(portable.FormerServiceAccounts, public)
	}
	return json.Marshal(portable)
}

// others are the keys but for own, each once.
func others(own []byte, keys [][]byte) [][]byte {
	var list [][]byte
	for _, key := range keys {
		if len(key) > 0 && !bytes.Equal(key, own) && !slices.ContainsFunc(list, func(other []byte) bool { return bytes.Equal(key, other) }) {
			list = append(list, key)
		}
	}
	return list
}
