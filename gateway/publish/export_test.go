package publish

import (
	"context"
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/gateway/route"
)

// Wanted are the ports that Ingresses and Gateways want.
func Wanted(s Sites) []route.Listener { return s.wanted }

// UDPPorts are the UDP ports that Gateways want.
func (s Sites) UDPPorts() map[uint16]route.UDP { return s.udp }

// ShareUDP gives UDP ports to Services and Gateways, and names the flows that are written.
func ShareUDP(services []*core.Service, gateways map[uint16]route.UDP) (flows []string, complaints []Complaint) {
	given := share(services, nil, nil, wishes{udp: gateways}, nil)
	for _, u := range udpPorts(given.udp, gateways, given.udpWon) {
		for _, f := range u.Flows {
			flows = append(flows, f.String())
		}
	}
	return flows, given.complaints
}

// Reporter makes the Events of a pass.
func Reporter(client kubernetes.Interface) func(ctx context.Context, complaints []Complaint) (more bool, failed error) {
	return newComplainer(client, slog.New(slog.DiscardHandler), time.Now).report
}

// Encode returns the value of a part.
func (s *Sites) Encode(part route.Part) ([]byte, error) { return s.encode(part) }
