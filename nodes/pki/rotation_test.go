package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/pki"
)

// everyPart are all parts of a cluster's trust.
func everyPart() []pki.Part { return append(pki.AuthorityParts(), pki.KeyParts()...) }

func authorityOf(c *pki.Cluster, part pki.Part) *pki.Authority {
	return map[pki.Part]*pki.Authority{pki.EtcdAuthority: c.Etcd, pki.EtcdPeersAuthority: c.EtcdPeers, pki.KubernetesAuthority: c.Kubernetes, pki.FrontProxyAuthority: c.FrontProxy}[part]
}

// understands checks that a node of one stage accepts the certificates, signatures and sealed data of a node of another one.
func understands(t *testing.T, one, other *pki.Cluster) error {
	for _, part := range pki.AuthorityParts() {
		pair, err := authorityOf(other, part).Issue(pki.Request{CommonName: "client", Usage: pki.Client}, now)
		require.NoError(t, err)
		block, _ := pem.Decode(pair.Certificate)
		certificate, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		pool := x509.NewCertPool()
		require.True(t, pool.AppendCertsFromPEM(authorityOf(one, part).Trusted()))
		if _, err := certificate.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	holds := func(keys [][]byte, key []byte) bool {
		return slices.ContainsFunc(keys, func(one []byte) bool { return string(one) == string(key) })
	}
	if !holds(one.AcceptedServiceAccounts(), other.ServiceAccount) {
		return fmt.Errorf("%s", pki.ServiceAccountKey)
	}
	if string(one.Encryption) != string(other.Encryption) && !holds(one.AcceptedEncryption(), other.Encryption) {
		return fmt.Errorf("%s", pki.EncryptionKey)
	}
	return nil
}

// Whichever nodes have come to the next stage already: all of them understand each other. Nodes of the first and the last stage do not.
func TestNodesOfAStageOfARotationUnderstandThoseOfTheNextOne(t *testing.T) {
	for _, parts := range [][]pki.Part{pki.AuthorityParts(), pki.KeyParts(), everyPart(), {pki.EtcdAuthority}, {pki.EncryptionKey}} {
		v := &access.Memory{}
		before, err := pki.Open(t.Context(), v, now)
		require.NoError(t, err)
		require.NoError(t, pki.BeginRotation(t.Context(), v, "run", parts, now))
		require.ErrorIs(t, pki.BeginRotation(t.Context(), v, "another run", parts, now), pki.ErrRotating)
		stages := []*pki.Cluster{before}
		for {
			known, err := pki.Open(t.Context(), v, now)
			require.NoError(t, err)
			stages = append(stages, known)
			if known.Rotation == nil {
				require.Equal(t, "run", known.Rotated)
				break
			}
			stage := known.Rotation.Stage
			require.NoError(t, pki.AdvanceRotation(t.Context(), v, stage))
			require.NoError(t, pki.AdvanceRotation(t.Context(), v, stage), "done already")
		}
		require.Len(t, stages, 5)
		for i := range stages[1:] {
			require.NoError(t, understands(t, stages[i], stages[i+1]), "%v: %d of %d", parts, i, i+1)
			require.NoError(t, understands(t, stages[i+1], stages[i]), "%v: %d of %d", parts, i+1, i)
		}
		require.ErrorContains(t, understands(t, stages[4], before), string(parts[0]))
		for _, part := range pki.AuthorityParts() {
			if !slices.Contains(parts, part) {
				require.Equal(t, authorityOf(before, part), authorityOf(stages[4], part), "what is not rotated stays")
			}
		}
		require.Equal(t, slices.Contains(parts, pki.EncryptionKey), stages[4].EncryptionName != before.EncryptionName, "it can be told what was sealed before")
		text, _, err := v.Load(t.Context(), "pki/cluster")
		require.NoError(t, err)
		require.NotContains(t, string(text), `"former"`, "nothing former is kept")
	}
}

// A snapshot may be of any moment, and is restored at any other.
func TestASnapshotOfAnyStageIsReadAtAnyOtherAndAfterTheRotation(t *testing.T) {
	v := &access.Memory{}
	_, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	type taken struct {
		keys   []byte
		sealed [][]byte // the keys under which Secrets in it may be sealed
		signed [][]byte
	}
	var all []taken
	take := func() {
		keys, err := pki.Keys(t.Context(), v)
		require.NoError(t, err)
		known, err := pki.Open(t.Context(), v, now)
		require.NoError(t, err)
		all = append(all, taken{keys, append([][]byte{known.Encryption}, known.AcceptedEncryption()...), known.AcceptedServiceAccounts()})
	}
	take()
	require.NoError(t, pki.BeginRotation(t.Context(), v, "run", everyPart(), now))
	for _, stage := range []pki.Stage{pki.AcceptBoth, pki.UseNew, pki.AcceptNew} {
		take()
		require.NoError(t, pki.AdvanceRotation(t.Context(), v, stage))
	}
	take()
	for _, one := range all {
		for _, own := range all {
			restored := &access.Memory{}
			require.NoError(t, restored.Store(t.Context(), "pki/cluster", own.keys))
			require.NoError(t, pki.Adopt(t.Context(), restored, one.keys, now))
			known, err := pki.Open(t.Context(), restored, now)
			require.NoError(t, err)
			for _, key := range one.sealed {
				require.Contains(t, append(known.AcceptedEncryption(), known.Encryption), key)
			}
			for _, key := range one.signed {
				require.Contains(t, known.AcceptedServiceAccounts(), key)
			}
		}
	}
}

func TestCertificatesAreIssuedAnewWhenTheNewAuthorityIsUsedAndNotBefore(t *testing.T) {
	v := &access.Memory{}
	issue := func() pki.Pair {
		known, err := pki.Open(t.Context(), v, now)
		require.NoError(t, err)
		pairs, err := pki.Bundle(t.Context(), v, "nodes/m1", map[string]pki.Order{"client": {Authority: known.Etcd, Request: pki.Request{CommonName: "calico", Usage: pki.Client}}}, now)
		require.NoError(t, err)
		return pairs["client"]
	}
	before := issue()
	require.NoError(t, pki.BeginRotation(t.Context(), v, "run", pki.AuthorityParts(), now.Add(time.Hour)))
	require.Equal(t, before, issue())
	require.NoError(t, pki.AdvanceRotation(t.Context(), v, pki.AcceptBoth))
	after := issue()
	require.NotEqual(t, before, after)
	require.NoError(t, pki.AdvanceRotation(t.Context(), v, pki.UseNew))
	require.NoError(t, pki.AdvanceRotation(t.Context(), v, pki.AcceptNew))
	require.Equal(t, after, issue())
}
