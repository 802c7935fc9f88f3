package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// speaker is a router outside of the cloud. It learns the routes that nodes announce by BGP (RFC 4271).
type speaker struct {
	as       uint16
	mutex    sync.Mutex
	sessions map[net.Conn]map[netip.Prefix]bool
	wrong    error
}

// Types of messages.
const (
	bgpOpen      = 1
	bgpUpdate    = 2
	bgpKeepalive = 4
)

func startSpeaker(t *testing.T, as uint16) *speaker {
	t.Helper()
	listener, err := net.Listen("tcp", outside("1")+":179")
	require.NoError(t, err)
	s := &speaker{as: as, sessions: map[net.Conn]map[netip.Prefix]bool{}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		s.mutex.Lock()
		defer s.mutex.Unlock()
		for conn := range s.sessions {
			_ = conn.Close()
		}
	})
	return s
}

// knows returns an error unless at least so many nodes announce routes to it, together for at least so many blocks of
// pods.
func (s *speaker) knows(nodes, blocks int) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	told := map[netip.Prefix]bool{}
	for _, routes := range s.sessions {
		for route := range routes {
			if route.Bits() != 26 || !netip.MustParsePrefix("10.244.0.0/16").Contains(route.Addr()) {
				return fmt.Errorf("it heard of %s, which is no block of pods", route)
			}
			told[route] = true
		}
	}
	if s.wrong != nil || len(s.sessions) != nodes || len(told) < blocks {
		return fmt.Errorf("%d nodes announce %v: %w", len(s.sessions), told, s.wrong)
	}
	return nil
}

func (s *speaker) serve(conn net.Conn) {
	s.mutex.Lock()
	s.sessions[conn] = map[netip.Prefix]bool{}
	s.mutex.Unlock()
	err := s.listen(conn)
	_ = conn.Close()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.sessions, conn)
	if err != nil && !errors.Is(err, io.EOF) {
		var opError *net.OpError // a node that died without a message
		if !errors.As(err, &opError) {
			s.wrong = err
		}
	}
}

func (s *speaker) listen(conn net.Conn) error {
	send := func(kind byte, body []byte) error {
		message := make([]byte, 19, 19+len(body))
		for i := range 16 {
			message[i] = 0xff
		}
		binary.BigEndian.PutUint16(message[16:], uint16(19+len(body)))
		message[18] = kind
		_, err := conn.Write(append(message, body...))
		return err
	}
	header := make([]byte, 19)
	for {
		if _, err := io.ReadFull(conn, header); err != nil {
			return err
		}
		length := int(binary.BigEndian.Uint16(header[16:]))
		if length < len(header) || length > 4096 {
			return fmt.Errorf("a message of %d bytes", length)
		}
		body := make([]byte, length-len(header))
		if _, err := io.ReadFull(conn, body); err != nil {
			return err
		}
		switch header[18] {
		case bgpOpen:
			if as := binary.BigEndian.Uint16(body[1:]); as != 64512 {
				return fmt.Errorf("a node of AS %d", as)
			}
			open := []byte{4, byte(s.as >> 8), byte(s.as), 0, 90, 192, 0, 2, 1, 0} // version 4, 90 s, no options
			if err := errors.Join(send(bgpOpen, open), send(bgpKeepalive, nil)); err != nil {
				return err
			}
		case bgpKeepalive:
			if err := send(bgpKeepalive, nil); err != nil {
				return err
			}
		case bgpUpdate:
			withdrawn, rest, err := cut(body)
			if err != nil {
				return err
			}
			_, routes, err := cut(rest)
			if err != nil {
				return err
			}
			s.mutex.Lock()
			err = errors.Join(note(withdrawn, func(route netip.Prefix) { delete(s.sessions[conn], route) }), note(routes, func(route netip.Prefix) { s.sessions[conn][route] = true }))
			s.mutex.Unlock()
			if err != nil {
				return err
			}
		default: // a notification ends the session
			return io.EOF
		}
	}
}

// cut splits bytes by the length in front of them.
func cut(b []byte) (first, rest []byte, err error) {
	if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
		return nil, nil, fmt.Errorf("an update of %d bytes ends too soon", len(b))
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	return b[2:n], b[n:], nil
}

// note reads prefixes: the number of bits, and as many bytes as these need.
func note(b []byte, found func(netip.Prefix)) error {
	for len(b) > 0 {
		bits := int(b[0])
		n := 1 + (bits+7)/8
		if bits > 32 || len(b) < n {
			return fmt.Errorf("a prefix of %d bits in %d bytes", bits, len(b))
		}
		var address [4]byte
		copy(address[:], b[1:n])
		found(netip.PrefixFrom(netip.AddrFrom4(address), bits))
		b = b[n:]
	}
	return nil
}
