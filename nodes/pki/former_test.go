package pki_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/pki"
)

func TestKeysOfAnotherClusterAreReadAndNotWrittenWith(t *testing.T) {
	v, other := &access.Memory{}, &access.Memory{}
	own, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	foreign, err := pki.Open(t.Context(), other, now)
	require.NoError(t, err)
	keys, err := pki.Keys(t.Context(), other)
	require.NoError(t, err)
	mine, err := pki.Keys(t.Context(), v)
	require.NoError(t, err)
	require.NoError(t, pki.Adopt(t.Context(), v, mine, now))
	unchanged, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	require.Equal(t, own, unchanged, "its own keys are no former ones")
	for range 2 {
		require.NoError(t, pki.Adopt(t.Context(), v, keys, now))
	}
	adopted, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	require.Equal(t, own.Encryption, adopted.Encryption)
	require.Equal(t, own.ServiceAccount, adopted.ServiceAccount)
	require.Equal(t, own.Kubernetes, adopted.Kubernetes)
	require.Equal(t, [][]byte{foreign.Encryption}, adopted.FormerEncryption)
	require.Equal(t, [][]byte{foreign.ServiceAccount}, adopted.FormerServiceAccounts)

	// A snapshot that is taken after that needs both, wherever it is restored.
	both, err := pki.Keys(t.Context(), v)
	require.NoError(t, err)
	third := &access.Memory{}
	require.NoError(t, pki.Adopt(t.Context(), third, both, now), "also where there are none yet")
	last, err := pki.Open(t.Context(), third, now)
	require.NoError(t, err)
	require.Equal(t, [][]byte{own.Encryption, foreign.Encryption}, last.FormerEncryption)
}

func TestItIsToldWhenCertificatesEndAndTheyAreRenewedBefore(t *testing.T) {
	v := &access.Memory{}
	cluster, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	orders := map[string]pki.Order{"client": {Authority: cluster.Etcd, Request: pki.Request{CommonName: "calico", Usage: pki.Client}}}
	for _, at := range []time.Time{now, now.Add(pki.CertificateLifetime - pki.RenewBefore + time.Hour)} { // the clock runs ahead
		_, err = pki.Bundle(t.Context(), v, "nodes/m1", orders, at)
		require.NoError(t, err)
		ends, err := pki.Expiries(t.Context(), v, "nodes/m1")
		require.NoError(t, err)
		require.Equal(t, map[string]time.Time{"client": at.Add(pki.CertificateLifetime)}, ends)
	}
	none, err := pki.Expiries(t.Context(), v, "nodes/m2")
	require.NoError(t, err)
	require.Empty(t, none)
	require.Equal(t, now.Add(pki.AuthorityLifetime), cluster.EtcdPeers.NotAfter())
}

func TestPortableKeysReadASnapshotAndSignNothing(t *testing.T) {
	v := &access.Memory{}
	own, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	require.NoError(t, pki.BeginRotation(t.Context(), v, "run", []pki.Part{pki.EncryptionKey, pki.ServiceAccountKey}, now))
	rotating, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	keys, err := pki.Keys(t.Context(), v)
	require.NoError(t, err)
	portable, err := pki.Portable(keys)
	require.NoError(t, err)
	again, err := pki.Portable(portable)
	require.NoError(t, err)
	require.JSONEq(t, string(portable), string(again))
	var fields map[string][][]byte
	require.NoError(t, json.Unmarshal(portable, &fields))
	require.Len(t, fields, 2, "no authority is in it")
	for _, key := range fields["formerServiceAccounts"] {
		require.Contains(t, string(key), "BEGIN PUBLIC KEY")
	}

	other := &access.Memory{}
	require.NoError(t, pki.Adopt(t.Context(), other, portable, now))
	adopted, err := pki.Open(t.Context(), other, now)
	require.NoError(t, err)
	require.Equal(t, [][]byte{own.Encryption, rotating.NextEncryption}, adopted.FormerEncryption)
	for i, key := range [][]byte{own.ServiceAccount, rotating.NextServiceAccount} {
		wanted, err := pki.TokenKeyID(key)
		require.NoError(t, err)
		got, err := pki.TokenKeyID(adopted.FormerServiceAccounts[i])
		require.NoError(t, err)
		require.Equal(t, wanted, got)
		public, err := pki.PublicKey(key)
		require.NoError(t, err)
		adoptedPublic, err := pki.PublicKey(adopted.FormerServiceAccounts[i])
		require.NoError(t, err)
		require.Equal(t, public, adoptedPublic)
	}

	for _, wrong := range []string{"", "[]", `{"formerEncryption": ["c2hvcnQ="]}`, `{"formerServiceAccounts": ["c2hvcnQ="]}`} {
		_, err := pki.Portable([]byte(wrong))
		require.Error(t, err, wrong)
	}
}
