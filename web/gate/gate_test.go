package gate_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/web/gate"
)

func TestAnOwnerLeavesAsManyPlacesAsItHas(t *testing.T) {
	places := gate.NewPlaces(8, 0)
	take := func(owner string) (most int) {
		for {
			if _, err := places.Take(owner); err != nil {
				return most
			}
			most++
		}
	}
	require.Equal(t, []int{4, 2, 1, 1, 0}, []int{take("a"), take("b"), take("c"), take("d"), take("e")}, "whoever comes later gets a place, too")
	require.Positive(t, places.Full())

	places = gate.NewPlaces(3, 2)
	leave, err := places.Take("a")
	require.NoError(t, err)
	_, err = places.Take("a")
	require.NoError(t, err)
	_, err = places.Take("a")
	require.Equal(t, &gate.NoPlace{Held: 2}, err)
	_, err = places.Take("b")
	require.NoError(t, err)
	_, err = places.Take("c")
	require.Equal(t, &gate.NoPlace{Others: true}, err)
	leave()
	leave()
	_, err = places.Take("c")
	require.NoError(t, err)
	_, err = places.Take("c")
	require.Error(t, err, "what is given back twice is one place")
}

// served answers at a real address, and returns it.
func served(t *testing.T, server *http.Server, connections *gate.Connections) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server.ConnContext = gate.Context
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(connections.Listen(listener)) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
	return listener.Addr().String()
}

func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	_, err = io.WriteString(connection, text)
	require.NoError(t, err)
	return connection
}

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestAFloodOfConnectionsEndsTheIdleOnesAndNotThoseInUse(t *testing.T) {
	connections := gate.NewConnections(20)
	begun, end := make(chan struct{}), make(chan struct{})
	address := served(t, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/used" {
			defer gate.Use(r.Context())()
			close(begun)
			<-end
		}
		_, _ = io.WriteString(w, "here")
	})}, connections)
	used := dial(t, address, "GET /used HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	var flood []net.Conn
	for range 200 {
		flood = append(flood, dial(t, address, "GET / HTTP/1.1\r\nHost: x\r\nX-Never"))
	}
	answer := func(connection net.Conn) string {
		require.NoError(t, connection.SetReadDeadline(time.Now().Add(20*time.Second)))
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, "here", answer(dial(t, address, get)), "one more is answered at once")
	require.LessOrEqual(t, connections.Open(), 10, "half of all are those of one address")
	require.NoError(t, flood[0].SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := flood[0].Read(make([]byte, 1))
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the oldest was ended")
	close(end)
	require.Equal(t, "here", answer(used))
}

func TestWhoDoesNotReadIsCutOffAndWhoReadsSlowlyIsNot(t *testing.T) {
	const each = 300 * time.Millisecond
	ended := make(chan error, 1)
	large := strings.Repeat("x", 32<<20)
	address := served(t, &http.Server{Handler: gate.Paced(each, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, err := io.WriteString(w, large)
			ended <- err
		case "/stream":
			for {
				if _, err := fmt.Fprintln(w, large[:1<<20]); err != nil {
					ended <- err
					return
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					ended <- err
					return
				}
			}
		default:
			_, _ = io.WriteString(w, "here")
		}
	}))}, gate.NewConnections(100))

	for _, path := range []string{"/large", "/stream"} {
		dial(t, address, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		select {
		case err := <-ended:
			require.Error(t, err, path)
		case <-time.After(30 * time.Second):
			require.Fail(t, "it is never cut off", path)
		}
	}

	// Slower than all at once, faster than the least.
	slow := dial(t, address, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReaderSize(slow, 4<<10), nil)
	require.NoError(t, err)
	defer response.Body.Close()
	began := time.Now()
	var read int64
	for ticker := time.NewTicker(each / 10); read < int64(len(large)); <-ticker.C {
		n, err := io.CopyN(io.Discard, response.Body, min(int64(len(large))-read, 2<<20))
		read += n
		require.NoError(t, err)
	}
	require.Greater(t, time.Since(began), each, "it took longer than a client may be silent")
	require.NoError(t, <-ended)

	// The next request on the same connection has its time, too.
	kept := dial(t, address, get)
	reader := bufio.NewReader(kept)
	for range 2 {
		response, err := http.ReadResponse(reader, nil)
		require.NoError(t, err)
		_, err = io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		timer := time.NewTimer(2 * each)
		<-timer.C
		_, err = io.WriteString(kept, get)
		require.NoError(t, err)
	}
}

func TestOfWhatStrangersDoSomeIsLetThroughAndTheRestCounted(t *testing.T) {
	now := time.Unix(0, 0)
	sample := gate.NewSample(gate.SampleOf{Each: 2, All: 5, Span: time.Minute}, func() time.Time { return now })
	let := func(address string, times int) (through int) {
		for range times {
			if sample.Let(address) {
				through++
			}
		}
		return through
	}
	require.Equal(t, 2, let("a", 10))
	require.Equal(t, 1, let("b", 1))
	require.Equal(t, 2, let("c", 2))
	require.Equal(t, 0, let("d", 3), "others have taken what there is")
	require.Empty(t, sample.Left(false))
	now = now.Add(time.Minute)
	require.ElementsMatch(t, []gate.Left{{"a", 8, time.Unix(0, 0)}, {"d", 3, time.Unix(0, 0)}}, sample.Left(false))
	require.Equal(t, 2, let("a", 3), "a new minute")
	require.Equal(t, []gate.Left{{"a", 1, now}}, sample.Left(true))

	for n := range 1000 {
		let(fmt.Sprint("address ", n), 100)
	}
	require.LessOrEqual(t, len(sample.Left(true)), 65, "addresses are many")
}
