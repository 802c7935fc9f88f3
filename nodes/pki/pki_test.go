package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/pki"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestAClusterIsMadeOnceAndThenLoaded(t *testing.T) {
	v := &access.Memory{}
	first, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	second, err := pki.Open(t.Context(), v, now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, 1, v.Stores())
	require.NotEqual(t, first.Etcd.Certificate, first.Kubernetes.Certificate)
	require.Len(t, first.Encryption, 32)
}

func TestABundleKeepsWhatFitsAndReissuesWhatDoesNot(t *testing.T) {
	v := &access.Memory{}
	cluster, err := pki.Open(t.Context(), v, now)
	require.NoError(t, err)
	orders := func(ip string) map[string]pki.Order {
		return map[string]pki.Order{
			"member": {Authority: cluster.Etcd, Request: pki.Request{CommonName: "etcd-m1", IP: []netip.Addr{netip.MustParseAddr(ip)}, DNS: []string{"m1"}, Usage: pki.Server | pki.Client}},
			"client": {Authority: cluster.Etcd, Request: pki.Request{CommonName: "calico", Usage: pki.Client}},
		}
	}
	first, err := pki.Bundle(t.Context(), v, "nodes/m1", orders("10.0.0.1"), now)
	require.NoError(t, err)
	stores := v.Stores()
	again, err := pki.Bundle(t.Context(), v, "nodes/m1", orders("10.0.0.1"), now)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, stores, v.Stores())

	moved, err := pki.Bundle(t.Context(), v, "nodes/m1", orders("10.0.0.2"), now)
	require.NoError(t, err)
	require.NotEqual(t, first["member"], moved["member"])
	require.Equal(t, first["client"], moved["client"])

	old, err := pki.Bundle(t.Context(), v, "nodes/m1", orders("10.0.0.2"), now.Add(pki.CertificateLifetime-pki.RenewBefore+time.Minute))
	require.NoError(t, err)
	require.NotEqual(t, moved["client"], old["client"])
}

func TestACertificateOfAnotherAuthorityIsRefusedAtTheHandshake(t *testing.T) {
	cluster, err := pki.Open(t.Context(), &access.Memory{}, time.Now())
	require.NoError(t, err)
	server, err := cluster.Etcd.Issue(pki.Request{CommonName: "etcd-m1", IP: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Usage: pki.Server}, time.Now())
	require.NoError(t, err)
	own, err := cluster.Etcd.Issue(pki.Request{CommonName: "calico", Usage: pki.Client}, time.Now())
	require.NoError(t, err)
	foreign, err := cluster.Kubernetes.Issue(pki.Request{CommonName: "calico", Usage: pki.Client}, time.Now())
	require.NoError(t, err)

	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(cluster.Etcd.Certificate))
	serverKeys, err := tls.X509KeyPair(server.Certificate, server.Key)
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{serverKeys}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool})
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func(conn net.Conn) {
				defer conn.Close()
				if conn.(*tls.Conn).Handshake() == nil {
					_, _ = conn.Write([]byte("ok"))
				}
			}(conn)
		}
	}()
	answer := func(pair pki.Pair) error {
		keys, err := tls.X509KeyPair(pair.Certificate, pair.Key)
		require.NoError(t, err)
		conn, err := tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{keys}})
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Read(make([]byte, 2))
		return err
	}
	require.NoError(t, answer(own))
	require.Error(t, answer(foreign))
}

func TestCertificatesBearNamesGroupsUsageAndLifetime(t *testing.T) {
	cluster, err := pki.Open(t.Context(), &access.Memory{}, now)
	require.NoError(t, err)
	pair, err := cluster.Kubernetes.Issue(pki.Request{CommonName: "burano:admin", Organization: []string{"burano:admins"}, Usage: pki.Client, Lifetime: 24 * time.Hour}, now)
	require.NoError(t, err)
	block, _ := pem.Decode(pair.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.Equal(t, "burano:admin", certificate.Subject.CommonName)
	require.Equal(t, []string{"burano:admins"}, certificate.Subject.Organization)
	require.Equal(t, now.Add(24*time.Hour), certificate.NotAfter)
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, certificate.ExtKeyUsage)
	require.False(t, certificate.IsCA)
}
