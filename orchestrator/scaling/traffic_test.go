package scaling

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
)

// countedGateways are gateways in memory: the answers of real ones are tested in nodes and test/e2e.
type countedGateways struct {
	asked  atomic.Int64
	opened atomic.Int64
	closed atomic.Int64

	mu     sync.Mutex
	nodes  []nodes.Node
	silent map[string]bool
}

func (c *countedGateways) meters() *Meters {
	return &Meters{
		known: func(context.Context, string, string) ([]nodes.Node, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.nodes, nil
		},
		open: func(context.Context, string, string) (countedCluster, error) {
			c.opened.Add(1)
			return c, nil
		},
		meters: map[[2]string]*meter{},
	}
}

func (c *countedGateways) GatewayTraffic(ctx context.Context, node nodes.Node) ([]traffic.Listener, error) {
	n := c.asked.Add(1)
	c.mu.Lock()
	silent := c.silent[node.Name]
	c.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, errors.New("nobody answers")
	}
	time.Sleep(10 * time.Millisecond) // of synctest's clock
	return []traffic.Listener{{Port: 80, Counters: traffic.Counters{ConnectionsTotal: n}}}, nil
}

func (c *countedGateways) Close() error {
	c.closed.Add(1)
	return nil
}

func (c *countedGateways) have(silent string, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = map[string]bool{silent: true}
	c.nodes = []nodes.Node{{Name: "master", Role: nodes.Master}}
	for _, name := range names {
		c.nodes = append(c.nodes, nodes.Node{Name: name, Role: nodes.Gateway})
	}
}

func sampled(t *testing.T, m *Meters) Traffic {
	t.Helper()
	found, err := m.Traffic(t.Context(), "e", "c")
	require.NoError(t, err)
	return found
}

func TestAHundredViewersCostOneSampleASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countedGateways{}
		c.have("", "g1", "g2")
		m := c.meters()
		defer m.Close()
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if found := sampled(t, m); len(found.Gateways) != 2 || found.Gateways[0].Name != "g1" || len(found.Gateways[0].Listeners) != 1 {
					t.Errorf("found %+v", found)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 2, c.asked.Load(), "each gateway once")
		time.Sleep(trafficAge / 2)
		sampled(t, m)
		require.EqualValues(t, 2, c.asked.Load())
		time.Sleep(trafficAge)
		sampled(t, m)
		require.EqualValues(t, 4, c.asked.Load())
		require.EqualValues(t, 1, c.opened.Load(), "connections are kept")
	})
}

func TestNothingIsKeptWhenNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countedGateways{}
		c.have("", "g1")
		m := c.meters()
		for range 3 {
			sampled(t, m)
			time.Sleep(trafficIdle / 2)
		}
		require.Zero(t, c.closed.Load())
		time.Sleep(trafficIdle)
		synctest.Wait()
		require.EqualValues(t, 1, c.closed.Load())
		require.EqualValues(t, 3, c.asked.Load(), "nobody asks by himself")
		require.Empty(t, m.meters)
		sampled(t, m)
		require.EqualValues(t, 2, c.opened.Load())
		m.Close()
		require.EqualValues(t, 2, c.closed.Load())
	})
}

func TestAGatewayThatDoesNotAnswerSpoilsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countedGateways{}
		c.have("g1", "g1", "g2")
		m := c.meters()
		defer m.Close()
		first := sampled(t, m)
		require.Equal(t, "nobody answers", first.Gateways[0].Problem)
		require.Empty(t, first.Gateways[0].Listeners)
		require.Empty(t, first.Gateways[1].Problem)
		require.Len(t, first.Gateways[1].Listeners, 1)
		for range 20 {
			time.Sleep(2 * trafficAge)
			before := time.Now()
			found := sampled(t, m)
			require.Less(t, time.Since(before), time.Second, "it is not waited for again")
			require.Equal(t, "nobody answers", found.Gateways[0].Problem)
			require.NotEqual(t, first.Gateways[1].Listeners, found.Gateways[1].Listeners)
		}
		c.have("", "g1", "g2") // it is back
		require.Eventually(t, func() bool { return sampled(t, m).Gateways[0].Problem == "" }, time.Minute, trafficAge)
	})
}

func TestGatewaysThatComeAndGoAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countedGateways{}
		c.have("", "g1")
		m := c.meters()
		defer m.Close()
		require.Len(t, sampled(t, m).Gateways, 1)
		c.have("", "g1", "g2")
		time.Sleep(2 * trafficAge)
		require.Len(t, sampled(t, m).Gateways, 2)
		require.EqualValues(t, 1, c.closed.Load())
	})
}

func TestAViewerWhoLeavesDoesNotSpoilItForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &countedGateways{}
		c.have("", "g1")
		m := c.meters()
		defer m.Close()
		ctx, leave := context.WithCancel(t.Context())
		go func() { _, _ = m.Traffic(ctx, "e", "c") }()
		synctest.Wait()
		leave()
		require.Empty(t, sampled(t, m).Gateways[0].Problem)
		require.EqualValues(t, 1, c.asked.Load())
	})
}

func TestTrafficOfWhatWasNeverUpIsNotFound(t *testing.T) {
	m := NewMeters(neverUp{}, known.Reach{})
	defer m.Close()
	_, err := m.Traffic(t.Context(), "e", "o")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
}

// neverUp has no secret of any cluster.
type neverUp struct{}

func (neverUp) Secret(context.Context, string, string) ([]byte, bool, error) { return nil, false, nil }

func (neverUp) SetSecret(context.Context, string, string, []byte) error { return nil }
