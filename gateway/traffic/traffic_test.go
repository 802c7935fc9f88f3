package traffic_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
)

// ask asks a real HAProxy.
func ask(t *testing.T, socket string) []traffic.Listener {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	require.NoError(t, err)
	defer conn.Close()
	found, err := traffic.Ask(conn)
	require.NoError(t, err)
	return found
}

// until asks until the one listener is as it should be.
func until(t *testing.T, socket, what string, as func(traffic.Listener) bool) (found traffic.Listener) {
	t.Helper()
	haproxytest.Wait(t, what, func() error {
		list := ask(t, socket)
		if len(list) != 1 || !as(list[0]) {
			return fmt.Errorf("found %+v", list)
		}
		found = list[0]
		return nil
	})
	return found
}

func TestWhatPassesThroughARealHAProxyIsCounted(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	proxy, err := haproxy.Open(t.Context(), config)
	require.NoError(t, err)
	one, two := haproxytest.NewBackend(t, "one"), haproxytest.NewBackend(t, "two")
	web := route.Route{Namespace: "default", Service: "web", Port: "80", GatewayPort: haproxytest.FreePort(t), Protocol: route.TCP,
		Backends: []route.Backend{one.Ready(), two.Ready()}}
	apply := func() {
		t.Helper()
		_, err := proxy.Apply(t.Context(), []route.Route{web}, haproxy.Web{})
		require.NoError(t, err)
	}
	apply()

	load := haproxytest.StartLoad(t, web.GatewayPort)
	load.WaitFor(t, 50)
	found := until(t, config.Socket, "a rate", func(l traffic.Listener) bool { return l.ConnectionsPerSecond > 0 })
	total, failed, _ := load.Stop()
	require.Empty(t, failed)
	found = until(t, config.Socket, "everything counted", func(l traffic.Listener) bool { return l.ConnectionsTotal == int64(total) })
	require.Equal(t, web.GatewayPort, found.Port)
	require.Positive(t, found.BytesIn)
	require.Greater(t, found.BytesOut, int64(total)) // each answer is some letters with headers
	require.Zero(t, found.ConnectionErrors)
	require.Len(t, found.Backends, 2, "free slots are none")
	sum := int64(0)
	for _, server := range found.Backends {
		require.Contains(t, []string{one.Address.String(), two.Address.String()}, server.Address)
		require.Equal(t, traffic.Up, server.State)
		require.Positive(t, server.ConnectionsTotal)
		sum += server.ConnectionsTotal
	}
	require.Equal(t, found.ConnectionsTotal, sum)

	// A terminating server, and one that does not answer any more.
	web.Backends = []route.Backend{one.Draining(), two.Ready()}
	apply()
	two.Stop(t)
	for range 3 { // one that is tried before HAProxy notices is tried again, and fails in the end
		_, err := haproxytest.Get(t.Context(), web.GatewayPort)
		require.Error(t, err)
	}
	found = until(t, config.Socket, "the states", func(l traffic.Listener) bool {
		states := map[string]string{}
		for _, server := range l.Backends {
			states[server.Address] = server.State
		}
		return states[one.Address.String()] == traffic.Draining && states[two.Address.String()] == traffic.Down
	})
	require.Positive(t, found.ConnectionErrors)
	for _, server := range found.Backends {
		if server.Address == two.Address.String() {
			require.NotEmpty(t, server.Check)
		}
	}
}

// answer is a socket that answers always the same.
type answer struct{ *strings.Reader }

func (answer) Write(p []byte) (int, error) { return len(p), nil }

func TestWhatIsNoTableOfHAProxyIsAnErrorAndNoCounters(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":          "",
		"a refusal":        "Permission denied\n",
		"another table":    "# pxname,svname\nport-80,FRONTEND\n",
		"no number":        "# pxname,svname,status,stot,addr\nport-80,FRONTEND,OPEN,many,\n",
		"a broken quoting": "# pxname,svname,status,stot,addr\nport-80,\"FRONTEND\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := traffic.Ask(answer{strings.NewReader(text)})
			require.ErrorContains(t, err, "ask HAProxy what it counts")
		})
	}
}

func TestSectionsOfOthersAreLeftAlone(t *testing.T) {
	found, err := traffic.Ask(answer{strings.NewReader("# pxname,svname,status,stot,addr,\nstats,FRONTEND,OPEN,7,,\nport-http,BACKEND,UP,7,,\nport-80,FRONTEND,OPEN,7,,\n\n")})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.EqualValues(t, 7, found[0].ConnectionsTotal)
}

func FuzzAsk(f *testing.F) {
	f.Add("# pxname,svname,status,stot,addr,\nport-80,FRONTEND,OPEN,7,,\nport-80,a,UP 1/2,7,10.0.0.1:80,\n")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := traffic.Ask(answer{strings.NewReader(text)})
		if err != nil && found != nil {
			t.Fatal(errors.Join(errors.New("an answer and an error"), err))
		}
	})
}
