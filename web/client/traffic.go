package client

import (
	"context"
	"net/http"
	"time"
)

type (
	// Traffic has the counters of a cluster's gateways at a moment.
	Traffic struct {
		Sampled  time.Time        `json:"sampled" yaml:"sampled"`
		Gateways []GatewayTraffic `json:"gateways" yaml:"gateways"`
	}
	// GatewayTraffic has the counters of one gateway.
	GatewayTraffic struct {
		Name      string            `json:"name" yaml:"name"`
		Problem   string            `json:"problem" yaml:"problem"` // why it does not answer, "" when it does
		Listeners []ListenerTraffic `json:"listeners" yaml:"listeners"`
	}
	// ListenerTraffic has a gateway's counters of a port.
	ListenerTraffic struct {
		Port            int `json:"port" yaml:"port"` // the gateway port of a route
		TrafficCounters `yaml:",inline"`
		Queued          int64 `json:"queued" yaml:"queued"` // clients that wait for a backend now
		Backends        []struct {
			Address         string `json:"address" yaml:"address"` // host:port
			State           string `json:"state" yaml:"state"`     // up, down, draining or unchecked
			Check           string `json:"check" yaml:"check"`     // how the last check ended
			Seconds         int64  `json:"seconds" yaml:"seconds"` // in this state
			TrafficCounters `yaml:",inline"`
		} `json:"backends" yaml:"backends"`
	}
	// TrafficCounters grow, but for the first two, and begin at zero when HAProxy takes a new configuration over.
	TrafficCounters struct {
		Connections          int64 `json:"connections" yaml:"connections"` // open now
		ConnectionsPerSecond int64 `json:"connections_per_second" yaml:"connections_per_second"`
		ConnectionsTotal     int64 `json:"connections_total" yaml:"connections_total"`
		BytesIn              int64 `json:"bytes_in" yaml:"bytes_in"` // from clients
		BytesOut             int64 `json:"bytes_out" yaml:"bytes_out"`
		ConnectionErrors     int64 `json:"connection_errors" yaml:"connection_errors"` // no connection to a backend came about
		ResponseErrors       int64 `json:"response_errors" yaml:"response_errors"`
		RequestErrors        int64 `json:"request_errors" yaml:"request_errors"`
		Denied               int64 `json:"denied" yaml:"denied"`
		Retries              int64 `json:"retries" yaml:"retries"`
		Redispatches         int64 `json:"redispatches" yaml:"redispatches"` // retries that went to another backend
	}
)

// Errors is the number of failed connections.
func (c TrafficCounters) Errors() int64 {
	return c.ConnectionErrors + c.ResponseErrors + c.RequestErrors + c.Denied
}

// Traffic returns the counters of a cluster's gateways, by the ids of its environment and of its object.
func (c Clusters) Traffic(ctx context.Context, environment, cluster string) (Traffic, error) {
	var found Traffic
	return found, c.client.Call(ctx, http.MethodGet, clusterPath(environment, cluster)+"/traffic", nil, &found)
}
