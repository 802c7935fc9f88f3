package nodes

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/nodes/network"
)

// answerName answers one question over TCP (RFC 1035, sections 4.1 and 4.2.2): with an address, or with the code of an error.
func answerName(conn net.Conn, code byte) {
	defer conn.Close()
	var length uint16
	if binary.Read(conn, binary.BigEndian, &length) != nil {
		return
	}
	message := make([]byte, length)
	if _, err := io.ReadFull(conn, message); err != nil {
		return
	}
	end := 12
	for message[end] != 0 {
		end += int(message[end]) + 1
	}
	message = message[:end+5]
	message[2], message[3] = 0x84, code                           // a response, with authority
	message[6], message[7], message[10], message[11] = 0, 0, 0, 0 // without answers, and without additional records
	if code == 0 {
		message[7] = 1
		message = append(message, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 96, 0, 1)
	}
	_ = binary.Write(conn, binary.BigEndian, uint16(len(message)))
	_, _ = conn.Write(message)
}

func TestAMinionIsAskedWhatItsPodsWouldBeAnswered(t *testing.T) {
	refused := errors.New("connection refused")
	for name, try := range map[string]struct {
		api, dns error
		code     byte // of names
		names    bool
		wanted   string
	}{
		"all answers":              {names: true},
		"the API server does not":  {api: refused, names: true, wanted: "pods do not reach the API server: connection refused"},
		"the DNS does not":         {dns: refused, names: true, wanted: "pods do not resolve names"},
		"the DNS does not know it": {code: 3, names: true, wanted: "pods do not resolve names"},
		"a cluster without a DNS":  {dns: refused},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			dial := func(_ context.Context, _, address string) (net.Conn, error) {
				asked = append(asked, address)
				err := try.dns
				if address == "10.96.0.1:443" {
					err = try.api
				}
				if err != nil {
					return nil, err
				}
				ours, theirs := net.Pipe()
				if address == "10.96.0.10:53" {
					go answerName(theirs, try.code)
				}
				return ours, nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := answeredInside(ctx, dial, network.DefaultAddressing(), try.names)
			if try.wanted == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, try.wanted)
			}
			require.Equal(t, "10.96.0.1:443", asked[0])
		})
	}
}

// A cluster's DNS is its owner's: each of its answers has 64 KiB at most, as a message of DNS over TCP has (RFC 1035, 4.2.2).
func TestADNSThatAnswersWithoutEndIsLeft(t *testing.T) {
	var taken atomic.Int64
	flood := func(conn net.Conn) {
		defer conn.Close()
		var length uint16
		if binary.Read(conn, binary.BigEndian, &length) != nil {
			return
		}
		message := make([]byte, length)
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
		message[2], message[6], message[7] = 0x84, 0xff, 0xff // a response with 65,535 answers
		for more := append([]byte{0xff, 0xff}, message...); ; more = bytes.Repeat([]byte{0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 96, 0, 1}, 1<<10) {
			n, err := conn.Write(more)
			taken.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	dial := func(_ context.Context, _, address string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		if address == "10.96.0.10:53" {
			go flood(theirs)
		}
		return ours, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_ = answeredInside(ctx, dial, network.DefaultAddressing(), true) // the first answer is one
	require.NoError(t, ctx.Err(), "it ends by itself")
	require.Less(t, taken.Load(), int64(1<<20))
}

func TestAGatewayServesAPortWhenItHasReachedAPod(t *testing.T) {
	listener := func(backends ...traffic.Server) []traffic.Listener {
		return []traffic.Listener{{Port: 80, Backends: backends}, {Port: 81}}
	}
	const passed = "Layer4 check passed"
	for name, try := range map[string]struct {
		listeners []traffic.Listener
		wanted    string
	}{
		"one pod of two answers":      {listener(traffic.Server{Address: "10.1.0.1:80", State: traffic.Down, Check: "Layer4 timeout"}, traffic.Server{Address: "10.1.0.2:80", State: traffic.Up, Check: passed}), ""},
		"too many pods to ask":        {listener(traffic.Server{Address: "10.1.0.1:80", State: traffic.Unchecked}), ""},
		"HAProxy does not listen":     {nil, "port 80: HAProxy does not listen there"},
		"no pod":                      {listener(), "port 80: no pod is ready"},
		"a pod that was not asked":    {listener(traffic.Server{Address: "10.1.0.1:80", State: traffic.Up, Check: "Initializing"}), "port 80: 10.1.0.1:80 is up Initializing"},
		"a pod to which no way leads": {listener(traffic.Server{Address: "10.1.0.1:80", State: traffic.Down, Check: "Layer4 timeout"}), "port 80: 10.1.0.1:80 is down Layer4 timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			err := servesAll(try.listeners, []uint16{80})
			if try.wanted == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, try.wanted)
			}
		})
	}
}
