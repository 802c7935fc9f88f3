package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// clockVariable lets a test set the machine's clock. `make test-clock` sets it, in a guest that has one of its own.
const clockVariable = "BURANO_CLOCK"

// TestAGatewayServesOnWhenTheClockJumps sets the clock of the machine, which the daemon, HAProxy, etcd and clients share, an hour and a year forward and
// back. The clients' own notion of time is steady.
func TestAGatewayServesOnWhenTheClockJumps(t *testing.T) {
	if os.Getenv(clockVariable) == "" {
		t.Skip("`make test-clock` runs this: it sets the clock")
	}
	start := time.Now()
	truth := func() time.Time { return start.Round(0).Add(time.Since(start)) } // by the monotonic clock, which does not jump
	jump := func(by time.Duration) {
		t.Helper()
		at := unix.NsecToTimeval(truth().Add(by).UnixNano())
		require.NoError(t, unix.Settimeofday(&at))
		require.WithinDuration(t, truth().Add(by), time.Now().Round(0), time.Minute)
	}
	t.Cleanup(func() { jump(0) })
	const year = 365 * 24 * time.Hour

	n := newNode(t)
	n.resync = time.Second
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, safe := haproxytest.FreePort(t), haproxytest.FreePort(t)
	jump(year) // the gateway makes its certificate while its clock is wrong
	stop := n.run(t)
	n.put(t, web(port, a.Ready()))
	value, err := route.EncodePart(route.Part{Listener: &route.Listener{Port: safe, TLS: true}})
	require.NoError(t, err)
	_, err = n.etcd.Put(t.Context(), route.ListenersPrefix+fmt.Sprint(safe), string(value))
	require.NoError(t, err)
	serves := func(name string) { // an emulated machine is slow
		t.Helper()
		await(t, name, func() error {
			answer, err := haproxytest.Get(t.Context(), port)
			if err == nil && answer != name {
				err = fmt.Errorf("answer from %s", answer)
			}
			return err
		})
	}
	serves("a")
	await(t, "the port for TLS", func() error { return greet(safe, truth()) })
	jump(0)
	require.NoError(t, greet(safe, truth()), "a client whose clock is right, a year before that of the gateway")
	require.NoError(t, greet(safe, truth().Add(-5*year)))
	require.NoError(t, greet(safe, truth().Add(50*year)))

	lease, err := n.etcd.Grant(t.Context(), 60)
	require.NoError(t, err)
	kept, err := n.etcd.KeepAlive(t.Context(), lease.ID)
	require.NoError(t, err)
	go func() {
		for range kept {
		}
	}()
	leased := func() {
		t.Helper()
		left, err := n.etcd.TimeToLive(t.Context(), lease.ID)
		require.NoError(t, err)
		require.Positive(t, left.TTL, "a lease that is kept")
	}
	silent, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err)
	defer silent.Close()
	speaks := func() {
		t.Helper()
		_ = silent.SetDeadline(time.Now().Add(time.Minute))
		_, err := silent.Write([]byte("GET / HTTP/1.1\r\nHost: test\r\n\r\n"))
		require.NoError(t, err)
		answer := make([]byte, 4096)
		read, err := silent.Read(answer)
		require.NoError(t, err)
		require.Contains(t, string(answer[:read]), "HTTP/1.1 200")
		_ = silent.SetDeadline(time.Time{})
	}
	speaks()
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 5)
	backends := []*haproxytest.Backend{a, b}
	for i, by := range []time.Duration{time.Hour, -time.Hour, year, -year, 0} {
		short, err := n.etcd.Grant(t.Context(), 2)
		require.NoError(t, err)
		jump(by)
		next := backends[(i+1)%2]
		n.put(t, web(port, next.Ready()))
		serves(next.Name)
		load.WaitFor(t, 5)
		if i%2 != 0 {
			other := haproxytest.FreePort(t)
			n.put(t, web(other, a.Ready()))
			await(t, "a port that came", func() error { _, err := haproxytest.Get(t.Context(), other); return err })
		}
		require.NoError(t, greet(safe, truth()))
		leased()
		await(t, "the end of a lease that is not kept", func() error {
			left, err := n.etcd.TimeToLive(t.Context(), short.ID)
			if err == nil && left.TTL > 0 {
				err = fmt.Errorf("%d s left", left.TTL)
			}
			return err
		})
		if i == 2 { // a daemon that starts while the clock is wrong takes the present state over
			stop()
			stop = n.run(t)
		}
	}
	speaks() // on a connection that was silent over all jumps
	unharmed(t, load)
}

// greet opens a TLS session with a port as a client that trusts its certificate and has the time now.
func greet(port uint16, now time.Time) error {
	trusted := x509.NewCertPool()
	config := &tls.Config{ServerName: "this-host-has-no-certificate.invalid", RootCAs: trusted, Time: func() time.Time { return now }}
	config.InsecureSkipVerify = true // it is verified here
	config.VerifyConnection = func(s tls.ConnectionState) error {
		trusted.AddCert(s.PeerCertificates[0])
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: now, DNSName: config.ServerName})
		return err
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: config}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, err := dialer.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	return connection.Close()
}
