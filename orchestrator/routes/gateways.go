package routes

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// publishOwn has gateways of their own serve the route.
func (r Routes) publishOwn(ctx context.Context, call muranopl.Call, own *muranopl.Object) error {
	wanted, err := publicationOf(call, own)
	if err != nil {
		return err
	}
	live, err := r.Clusters.Live(own)
	if err != nil {
		return err
	}
	err = r.Runtime.Step(ctx, call.Object, "publish the servers", func(ctx context.Context) error { return live.Publish(ctx, call.Object.ID(), &wanted) })
	if err != nil {
		return err
	}
	var endpoints []any
	for _, endpoint := range endpointsOf(wanted, r.Clusters.GatewayAddresses(own)) {
		endpoints = append(endpoints, endpoint)
		r.Reports.Inform(ctx, call.Object, "%s is available at %s", wanted.Name, endpoint)
	}
	return call.Object.Set("endpoints", endpoints)
}

// withdrawElsewhere takes the route out of gateways of their own that it has named before.
func (r Routes) withdrawElsewhere(ctx context.Context, call muranopl.Call) error {
	for _, other := range r.Objects.All(task.ClassGateways) {
		if other == call.Object.Object("gateways") {
			continue
		}
		published, err := nodes.Published(ctx, known.Vault{Runtime: r.Runtime, Cluster: other.ID()}, call.Object.ID())
		if err == nil && published != nil {
			err = r.withdrawFrom(ctx, call, other)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withdrawFrom takes the route out of gateways of their own, unless these go as well.
func (r Routes) withdrawFrom(ctx context.Context, call muranopl.Call, own *muranopl.Object) error {
	there, err := r.Clusters.StillThere(ctx, call.Interpreter, own)
	if err != nil || there == nil {
		return err
	}
	live, err := r.Clusters.Live(there)
	if err != nil {
		return err
	}
	return r.Runtime.Step(ctx, call.Object, "take the servers from the gateways", func(ctx context.Context) error { return live.Publish(ctx, call.Object.ID(), nil) })
}

// publicationOf is the route's publication on gateways of their own.
func publicationOf(call muranopl.Call, own *muranopl.Object) (nodes.Publication, error) {
	object := call.Object
	wanted := nodes.Publication{Name: object.Text("name"), Host: object.Text("host"), TLS: nodes.TLS(object.Text("tls")), Chain: []byte(object.Text("certificateChain")), Key: []byte(object.Text("certificateKey"))}
	refuse := func(format string, args ...any) (nodes.Publication, error) {
		return wanted, fault.New(fault.Invalid, format, append([]any{object}, args...)...)
	}
	port := object.Int("port")
	switch {
	case object.Text("certificate") != "":
		return refuse("%s names a Secret with a certificate, which gateways without a Kubernetes do not have: set tls to %s, and give certificateChain and certificateKey", nodes.OpensTLS)
	case wanted.Host != "" && object.Int("gatewayPort") != 0:
		return refuse("%s has a host and a gatewayPort: hosts are published at port 80, and at 443 with TLS. Leave gatewayPort out")
	case wanted.Host == "" && (wanted.TLS != nodes.NoTLS || object.Text("path") != "/"):
		return refuse("%s has a path or tls, which are for hosts: name a host, or leave them out")
	case wanted.TLS != nodes.OpensTLS && len(wanted.Chain)+len(wanted.Key) > 0:
		return refuse("%s has a certificate for TLS that the gateways do not open: set tls to %s, or leave certificateChain and certificateKey out", nodes.OpensTLS)
	case len(wanted.Chain) == 0 && len(wanted.Key) > 0 || len(wanted.Chain) > 0 && len(wanted.Key) == 0:
		return refuse("%s has a certificateChain or a certificateKey, and not the other one: give both, or none for a certificate that each gateway signs itself")
	case wanted.TLS == nodes.PassTLS && object.Text("path") != "/":
		return refuse("%s has a path, and passes TLS through, in which nobody sees paths: leave the path out, or set tls to %s", nodes.OpensTLS)
	case wanted.Host == "":
		wanted.Port = uint16(cmp.Or(object.Int("gatewayPort"), port))
	case wanted.TLS != nodes.PassTLS:
		wanted.Path = object.Text("path")
	}
	addresses, err := serverAddresses(call, own)
	for _, address := range addresses {
		wanted.Backends = append(wanted.Backends, route.Backend{Address: address, Port: uint16(port), Ready: true})
	}
	return wanted, err
}

// UpdateEndpoints updates the endpoints of the routes that gateways without a cluster publish at these addresses.
func UpdateEndpoints(ctx context.Context, runtime vaultSecrets, objects task.Objects, own *muranopl.Object, addresses []string) error {
	for _, object := range objects.All(task.ClassRoute) {
		if object.Object("gateways") != own {
			continue
		}
		published, err := nodes.Published(ctx, known.Vault{Runtime: runtime, Cluster: own.ID()}, object.ID())
		if err != nil || published == nil {
			return err
		}
		endpoints := []any{}
		for _, endpoint := range endpointsOf(*published, addresses) {
			endpoints = append(endpoints, endpoint)
		}
		if err := object.Set("endpoints", endpoints); err != nil {
			return err
		}
	}
	return nil
}

// endpointsOf are where gateways serve it.
func endpointsOf(published nodes.Publication, gateways []string) (endpoints []string) {
	if published.Host == "" {
		for _, address := range gateways {
			endpoints = append(endpoints, net.JoinHostPort(address, strconv.Itoa(int(published.Port))))
		}
		return endpoints
	}
	scheme := "http"
	if published.TLS != nodes.NoTLS {
		scheme = "https"
	}
	return []string{scheme + "://" + published.Host + "/" + strings.TrimPrefix(published.Path, "/")}
}
