package scaling

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
)

// GatewayRecordName is the secret of a cluster with its GatewayRecord.
const GatewayRecordName = "gateway-scaling"

// GatewayRecord is the stored state of a cluster whose gateways follow their connections.
type GatewayRecord struct {
	// Task is the last task that decided, and Count its decision: another worker continues with them.
	Task  string    `json:"task,omitempty"`
	Count int       `json:"count,omitempty"`
	Last  *Decision `json:"last,omitempty"`
}

// LoadGatewayRecord is an empty record where none was stored.
func LoadGatewayRecord(ctx context.Context, load func(ctx context.Context, name string) ([]byte, bool, error)) (record GatewayRecord, err error) {
	text, found, err := load(ctx, GatewayRecordName)
	if err == nil && found {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return record, fmt.Errorf("read what is known of gateways that follow their connections: %w", err)
	}
	return record, nil
}

// Sizes decides on the number of gateways by their counts. A gateway that does not answer may have connections: none goes then.
func Sizes(limits desired.GatewayLimits, counted Traffic) (now, wanted int, reason string) {
	var open int64
	silent := false
	for _, gateway := range counted.Gateways {
		silent = silent || gateway.Problem != ""
		for _, listener := range gateway.Listeners {
			open += listener.Connections
		}
	}
	now = len(counted.Gateways)
	wanted = limits.Needed(open, now)
	if silent && wanted < now {
		wanted = now
	}
	change := "grows"
	if wanted < now {
		change = "shrinks"
	}
	return now, wanted, fmt.Sprintf("The cluster %s from %d to %d gateways, because they have %d connections open and are to have %d each", change, now, wanted, open, limits.Sessions)
}

// CountGateways reads the counts of all gateways among nodes, except leaving ones.
func CountGateways(ctx context.Context, cluster countedCluster, list []nodes.Node) Traffic {
	counted := Traffic{Sampled: time.Now().UTC()}
	for _, node := range list {
		if node.Role != nodes.Gateway || node.Leaving || node.Settings.Locked {
			continue
		}
		one := GatewayTraffic{Name: node.Name}
		asked, cancel := context.WithTimeout(ctx, trafficPatience)
		listeners, err := cluster.GatewayTraffic(asked, node)
		cancel()
		if one.Listeners = listeners; err != nil {
			one.Problem = err.Error()
		}
		counted.Gateways = append(counted.Gateways, one)
	}
	return counted
}

type (
	// GatewayScaling is how many gateways there may be.
	GatewayScaling struct {
		desired.GatewayLimits
		// Last is how connections changed their number last; nil for never.
		Last *Decision `json:"last_decision"`
	}
)
