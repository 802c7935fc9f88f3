package haproxy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// told is a backend that expects the PROXY protocol, version 2, and answers each connection with its name and the client in the header.
func told(t *testing.T, name string) route.Backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				_ = connection.SetDeadline(time.Now().Add(30 * time.Second))
				if client, err := proxied(connection); err == nil {
					_, _ = fmt.Fprint(connection, name, " ", client)
				} else if !errors.Is(err, errCheck) {
					_, _ = fmt.Fprint(connection, name, " ", err)
				}
			}()
		}
	}()
	return backendAt(listener)
}

var errCheck = errors.New("a check of HAProxy's own")

// proxied reads the header of the PROXY protocol: https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt, section 2.2.
func proxied(connection io.Reader) (client netip.Addr, err error) {
	head := make([]byte, 16)
	if _, err := io.ReadFull(connection, head); err != nil {
		return client, errCheck // or nothing: one that asks whether the port is open
	}
	if !bytes.HasPrefix(head, []byte("\r\n\r\n\x00\r\nQUIT\n")) {
		return client, fmt.Errorf("the connection begins with %q", head)
	}
	rest := make([]byte, binary.BigEndian.Uint16(head[14:]))
	if _, err := io.ReadFull(connection, rest); err != nil {
		return client, err
	}
	if head[12] == 0x20 { // LOCAL
		return client, errCheck
	}
	if head[12] != 0x21 || head[13] != 0x11 || len(rest) < 12 {
		return client, fmt.Errorf("it is no connection by TCP over IPv4: %x", head[12:])
	}
	return netip.AddrFrom4([4]byte(rest[:4])), nil
}

// from returns a port's answer to a client with an address that sends a text first.
func from(t *testing.T, port uint16, local, says string) string {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(local)}}
	connection, err := dialer.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.ECONNRESET) {
		return "" // it is rejected at once
	}
	require.NoError(t, err)
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(connection, says)
	answer, err := io.ReadAll(connection)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	return string(answer)
}

func TestServersAreToldWhoseConnectionsAre(t *testing.T) {
	process := haproxytest.New(t)
	p := open(t, process.Config())
	port := haproxytest.FreePort(t)
	r := web(port, told(t, "a"))
	apply(t, p, r)
	require.Contains(t, from(t, port, "127.0.0.7", "GET / HTTP/1.1\r\n\r\n"), "begins with", "nobody is told who has not asked for it")
	r.SendProxy = true
	require.True(t, apply(t, p, r).Reloaded)
	require.Equal(t, "a 127.0.0.7", from(t, port, "127.0.0.7", "hello"))

	// One that comes at run time, too, also after the daemon has begun anew; the file has it.
	r.Backends = []route.Backend{told(t, "b")}
	_, done := p.Change([]route.Route{r}, nil)
	require.True(t, done)
	require.Equal(t, "b 127.0.0.8", from(t, port, "127.0.0.8", "hello"))
	require.NoError(t, p.Close())
	p = open(t, process.Config())
	require.False(t, apply(t, p, r).Reloaded)
	r.Backends = []route.Backend{told(t, "c")}
	require.False(t, apply(t, p, r).Reloaded)
	require.Equal(t, "c 127.0.0.7", from(t, port, "127.0.0.7", "hello"))
	process.Stop()
	require.NoError(t, process.Reload(t.Context()))
	haproxytest.Wait(t, "HAProxy", func() error { _, err := p.Worker(); return err })
	require.Equal(t, "c 127.0.0.7", from(t, port, "127.0.0.7", "hello"), "the file has it")
	r.SendProxy = false
	require.True(t, apply(t, p, r).Reloaded)
	require.Contains(t, from(t, port, "127.0.0.7", "GET / HTTP/1.1\r\n\r\n"), "begins with")
}

func TestABalancerInFrontSaysWhoseConnectionsAre(t *testing.T) {
	p := open(t, haproxytest.New(t).Config())
	port := haproxytest.FreePort(t)
	r := web(port, told(t, "a"))
	r.SendProxy = true
	const claim = "PROXY TCP4 192.0.2.9 192.0.2.1 40000 80\r\nhello"
	apply(t, p, r)
	require.Equal(t, "a 127.0.0.7", from(t, port, "127.0.0.7", claim), "nobody is believed who need not be")
	r.AcceptProxy = true
	require.True(t, apply(t, p, r).Reloaded)
	require.Equal(t, "a 192.0.2.9", from(t, port, "127.0.0.7", claim))
	require.Empty(t, from(t, port, "127.0.0.7", "GET / HTTP/1.1\r\nHost: any\r\n\r\n"), "who does not say it is not served")

	r.Sources = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	require.True(t, apply(t, p, r).Reloaded)
	require.Empty(t, from(t, port, "127.0.0.7", claim), "what is claimed opens nothing")
	r.Sources = []netip.Prefix{netip.MustParsePrefix("127.0.0.7/32")}
	require.True(t, apply(t, p, r).Reloaded)
	require.Equal(t, "a 192.0.2.9", from(t, port, "127.0.0.7", claim), "balancers are let in by their own addresses")
	require.Empty(t, from(t, port, "127.0.0.8", claim))
}
