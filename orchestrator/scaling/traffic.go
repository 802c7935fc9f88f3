package scaling

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
)

const (
	// trafficAge is how old a sample for another reader may be: with any number of readers, a gateway is asked once in that time.
	trafficAge = time.Second
	// trafficPatience is how long a gateway may take to answer.
	trafficPatience = 5 * time.Second
	// trafficIdle is how long the connections to gateways are kept without a reader.
	trafficIdle = 30 * time.Second
)

type (
	// Traffic has the counts of a cluster's gateways at one moment.
	Traffic struct {
		Sampled  time.Time        `json:"sampled"`
		Gateways []GatewayTraffic `json:"gateways"`
	}
	// GatewayTraffic has the counts of one gateway.
	GatewayTraffic struct {
		Name      string             `json:"name"`
		Problem   string             `json:"problem"`   // why it does not answer, "" when it does
		Listeners []traffic.Listener `json:"listeners"` // by port; none when it does not answer
	}
)

// Meters sample the counts of clusters' gateways for readers: without a reader there are no requests and no connections.
type Meters struct {
	// known lists the nodes of a cluster, and open makes the cluster of them.
	known func(ctx context.Context, environmentID, objectID string) ([]nodes.Node, error)
	open  func(ctx context.Context, environmentID, objectID string) (countedCluster, error)

	mu     sync.Mutex
	meters map[[2]string]*meter // by environment and object
}

// countedCluster is a cluster whose gateways can be asked.
type countedCluster interface {
	GatewayTraffic(ctx context.Context, node nodes.Node) ([]traffic.Listener, error)
	Close() error
}

// NewMeters returns meters of the clusters whose keys these secrets have.
func NewMeters(secrets known.Secrets, config known.Reach) *Meters {
	return &Meters{
		known: func(ctx context.Context, environmentID, objectID string) ([]nodes.Node, error) {
			known, err := known.FactsOf(ctx, known.EnvironmentVault{Secrets: secrets, Environment: environmentID, Cluster: objectID})
			return known.Nodes, err
		},
		open: func(ctx context.Context, environmentID, objectID string) (countedCluster, error) {
			_, cluster, err := known.Open(ctx, secrets, environmentID, objectID, nodes.Config{Logger: config.Logger, Connected: config.Connected, Patience: known.ReachPatience})
			return cluster, err
		},
		meters: map[[2]string]*meter{},
	}
}

// Traffic samples the gateways of the cluster that this object of the environment is, or returns a recent sample of another reader. A gateway that does
// not answer is described as such, and waited for only the first time. A cluster that was never up is a fault of kind NotFound.
func (m *Meters) Traffic(ctx context.Context, environmentID, objectID string) (Traffic, error) {
	one := m.use([2]string{environmentID, objectID})
	shared := one.asking.DoChan("", func() (any, error) {
		var sample Traffic
		err := panics.Run(func() (err error) {
			// Others wait for it too: it goes on when the first reader leaves.
			sample, err = one.sample(context.WithoutCancel(ctx))
			return err
		})
		return sample, err
	})
	select {
	case <-ctx.Done():
		return Traffic{}, context.Cause(ctx)
	case result := <-shared:
		sample, _ := result.Val.(Traffic)
		return sample, result.Err
	}
}

// use returns the meter of a cluster, which stays for a while from now on.
func (m *Meters) use(key [2]string) *meter {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := m.meters[key]
	if one == nil {
		one = &meter{meters: m, key: key}
		m.meters[key] = one
		one.idle = time.AfterFunc(trafficIdle, func() { m.leave(one) })
	}
	one.used = time.Now()
	one.idle.Reset(trafficIdle)
	return one
}

// leave ends a meter that was not used for a while.
func (m *Meters) leave(one *meter) {
	m.mu.Lock()
	unused := time.Since(one.used) >= trafficIdle
	if unused {
		delete(m.meters, one.key)
	}
	m.mu.Unlock()
	if unused {
		one.close()
	}
}

// Close ends all connections.
func (m *Meters) Close() {
	m.mu.Lock()
	all := m.meters
	m.meters = map[[2]string]*meter{}
	m.mu.Unlock()
	for _, one := range all {
		one.idle.Stop()
		one.close()
	}
}

// meter samples one cluster.
type meter struct {
	meters *Meters
	key    [2]string
	used   time.Time // under the lock of meters
	idle   *time.Timer
	asking singleflight.Group

	mu       sync.Mutex
	nodes    []nodes.Node
	cluster  countedCluster // of nodes; nil before the first sample
	gateways []*gatewayMeter
	last     Traffic
	closed   bool
}

// gatewayMeter is a gateway with its last answer.
type gatewayMeter struct {
	node    nodes.Node
	answer  GatewayTraffic
	asked   time.Time
	pending chan struct{} // closed when the present answer is there; nil when there is none
}

// sample asks all gateways, unless that was done just now. It is called by one at a time.
func (m *meter) sample(ctx context.Context) (Traffic, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.last.Sampled) < trafficAge {
		return m.last, nil
	}
	if err := m.follow(ctx); err != nil {
		return Traffic{}, err
	}
	var awaited []chan struct{}
	for _, gateway := range m.gateways {
		failed := gateway.answer.Problem != ""
		if gateway.pending == nil && (!failed || time.Since(gateway.asked) >= trafficPatience) {
			m.ask(gateway)
		}
		if gateway.pending != nil && !failed {
			awaited = append(awaited, gateway.pending)
		}
	}
	m.mu.Unlock()
	for _, pending := range awaited {
		<-pending // no longer than trafficPatience
	}
	m.mu.Lock()
	m.last = Traffic{Sampled: time.Now().UTC(), Gateways: []GatewayTraffic{}}
	for _, gateway := range m.gateways {
		m.last.Gateways = append(m.last.Gateways, gateway.answer)
	}
	return m.last, nil
}

// sameServer is true if a node is reached as before.
func sameServer(a, b nodes.Node) bool {
	return a.Name == b.Name && a.Role == b.Role && a.Address == b.Address && a.Access == b.Access && a.Server == b.Server && a.Launched == b.Launched && a.Leaving == b.Leaving
}

// follow opens the cluster, anew when it has other nodes than before.
func (m *meter) follow(ctx context.Context) error {
	if m.closed {
		return errors.New("the connections to the gateways were closed")
	}
	list, err := m.meters.known(ctx, m.key[0], m.key[1])
	if err != nil || m.cluster != nil && slices.EqualFunc(list, m.nodes, sameServer) {
		return err
	}
	cluster, err := m.meters.open(ctx, m.key[0], m.key[1])
	if err != nil {
		return err
	}
	if m.cluster != nil {
		_ = m.cluster.Close() // pending requests through it fail, and nothing waits for them
	}
	m.nodes, m.cluster, m.gateways = list, cluster, nil
	for _, node := range list {
		if node.Role == nodes.Gateway && !node.Leaving && !node.Settings.Locked {
			m.gateways = append(m.gateways, &gatewayMeter{node: node})
		}
	}
	return nil
}

// ask has a gateway asked.
func (m *meter) ask(gateway *gatewayMeter) {
	pending, cluster := make(chan struct{}), m.cluster
	gateway.pending, gateway.asked = pending, time.Now()
	go func() {
		defer close(pending)
		answer := GatewayTraffic{Name: gateway.node.Name, Listeners: []traffic.Listener{}}
		err := panics.Run(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), trafficPatience)
			defer cancel()
			found, err := cluster.GatewayTraffic(ctx, gateway.node)
			if err == nil {
				answer.Listeners = found
			}
			return err
		})
		if err != nil {
			answer.Problem = cmp.Or(err.Error(), "it does not answer")
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		gateway.answer, gateway.pending = answer, nil
	}()
}

func (m *meter) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.cluster != nil {
		_ = m.cluster.Close()
	}
}
