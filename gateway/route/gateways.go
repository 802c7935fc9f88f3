package route

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
)

// GatewaysPrefix has the gateways of the cluster, one key each, written by the deployer of the cluster.
const GatewaysPrefix = Prefix + "gateways/"

// Gateway is a node that serves routes.
type Gateway struct {
	Name    string
	Address netip.Addr // where clients reach it: its floating address, or its own where it has none
}

type gatewayDocument struct {
	Version int        `json:"version"`
	Address netip.Addr `json:"address"`
}

// GatewayKey is the key of a gateway in etcd.
func GatewayKey(g Gateway) string { return GatewaysPrefix + g.Name }

// EncodeGateway gives a gateway's value in etcd.
func EncodeGateway(g Gateway) ([]byte, error) {
	if g.Name == "" || !g.Address.IsValid() {
		return nil, fmt.Errorf("encode gateway %q: its name and its address must be said", g.Name)
	}
	return json.Marshal(gatewayDocument{Version: Version, Address: g.Address})
}

// DecodeGateway reads a gateway's key and value back. An invalid one is an error that names the key.
func DecodeGateway(key string, value []byte) (Gateway, error) {
	name, ours := strings.CutPrefix(key, GatewaysPrefix)
	if !ours || name == "" {
		return Gateway{}, fmt.Errorf("decode %q: not a gateway's key, which begins with %s", key, GatewaysPrefix)
	}
	var d gatewayDocument
	if err := json.Unmarshal(value, &d); err != nil {
		return Gateway{}, fmt.Errorf("decode %q: %w", key, err)
	}
	if d.Version != Version || !d.Address.IsValid() {
		return Gateway{}, fmt.Errorf("decode %q: it has no address, or another version than %d", key, Version)
	}
	return Gateway{Name: name, Address: d.Address}, nil
}
