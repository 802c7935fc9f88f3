package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/network"
)

const (
	// insidePatience is how long a cluster whose deployment has ended may take until pods find each other and gateways find pods. It takes a second or
	// two where nodes are new, and no time where they are not.
	insidePatience = 30 * time.Second
	insideLook     = 200 * time.Millisecond
	// insideAnswer is how long one answer may take.
	insideAnswer = 3 * time.Second
	// insideAtOnce is how many nodes are asked at the same time.
	insideAtOnce = 32
)

// AwaitInside waits until pods on each node that runs pods reach the API server and, in a cluster with a DNS, resolve names. The check runs on the node, and gets the
// same answers as a pod. The errors, by node, describe the checks that still fail at the end of the patience.
func (c *gateways) AwaitInside(ctx context.Context) map[string]error {
	var minions []Node
	for _, node := range c.config.staying() {
		if node.RunsPods() && !node.Settings.Locked {
			minions = append(minions, node)
		}
	}
	return c.awaitEach(ctx, minions, c.findsInside)
}

// AwaitServing waits until each gateway has pods that answer behind each of these ports. The errors have the form of AwaitInside.
func (c *gateways) AwaitServing(ctx context.Context, ports ...uint16) map[string]error {
	if len(ports) == 0 {
		return nil
	}
	gateways := only(c.config.gateways(), func(node Node) bool { return !node.Settings.Locked })
	return c.awaitEach(ctx, gateways, func(ctx context.Context, node Node) error {
		listeners, err := c.GatewayTraffic(ctx, node)
		if err != nil {
			return err
		}
		return servesAll(listeners, ports)
	})
}

// awaitEach asks nodes until each has answered without an error.
func (c *gateways) awaitEach(ctx context.Context, asked []Node, ask func(context.Context, Node) error) map[string]error {
	missing := map[string]error{}
	var mutex sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, insideAtOnce)
	limited, cancel := context.WithTimeout(ctx, insidePatience)
	defer cancel()
	for _, node := range asked {
		all.Go(func() {
			var last error
			err := panics.Run(func() error {
				return wait.Every(insideLook).Until(limited, func(ctx context.Context) error {
					select {
					case places <- struct{}{}:
					case <-ctx.Done():
						return wait.Again(last)
					}
					defer func() { <-places }()
					ctx, cancel := context.WithTimeout(ctx, insideAnswer)
					defer cancel()
					if err := ask(ctx, node); err != nil {
						last = err
						return wait.Again(err)
					}
					return nil
				})
			})
			if err == nil {
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			if missing[node.Name] = last; last == nil {
				missing[node.Name] = err
			}
		})
	}
	all.Wait()
	return missing
}

// findsInside makes the checks of a pod on a minion: the node's own connections to addresses of Services take the same route as its pods'.
func (c *gateways) findsInside(ctx context.Context, node Node) error {
	client, err := c.connect(ctx, node)
	if err != nil {
		return err
	}
	return answeredInside(ctx, client.DialContext, c.config.Addressing, c.config.DNS)
}

// answeredInside makes connections as pods do, by dial.
func answeredInside(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), addressing network.Addressing, names bool) error {
	api, err := dial(ctx, "tcp", net.JoinHostPort(addressing.API().String(), "443"))
	if err != nil {
		return fmt.Errorf("pods do not reach the API server: %w", err)
	}
	_ = api.Close()
	if !names {
		return nil
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, "tcp", net.JoinHostPort(addressing.DNS().String(), "53"))
	}}
	version := "ip4"
	if !addressing.Four() {
		version = "ip6"
	}
	if _, err := resolver.LookupNetIP(ctx, version, "kubernetes.default.svc."+addressing.Domain+"."); err != nil {
		return fmt.Errorf("pods do not resolve names: %w", err)
	}
	return nil
}

// notChecked is how HAProxy calls a check that it has not made yet: such a server counts as up.
const notChecked = "Initializing"

// servesAll is true if HAProxy has reached a server behind each port.
func servesAll(listeners []traffic.Listener, ports []uint16) error {
	missing := map[uint16]string{}
	for _, port := range ports {
		missing[port] = "HAProxy does not listen there"
	}
	for _, listener := range listeners {
		if _, asked := missing[listener.Port]; !asked {
			continue
		}
		missing[listener.Port] = "no pod is ready"
		for _, server := range listener.Backends {
			if server.State == traffic.Up && server.Check != notChecked || server.State == traffic.Unchecked {
				delete(missing, listener.Port)
				break
			}
			missing[listener.Port] = strings.TrimSpace(fmt.Sprintf("%s is %s %s", server.Address, server.State, server.Check))
		}
	}
	var problems []error
	for _, port := range slices.Sorted(maps.Keys(missing)) {
		problems = append(problems, fmt.Errorf("port %d: %s", port, missing[port]))
	}
	return errors.Join(problems...)
}
