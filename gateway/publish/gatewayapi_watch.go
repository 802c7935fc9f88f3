package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// gatewayClient watches the objects of Gateway API and writes statuses. The module's own client would be larger than all of this program's others.
type gatewayClient struct {
	rest       rest.Interface
	parameters runtime.ParameterCodec
	now        func() time.Time
	classes, gateways, sets, httpRoutes, grpcRoutes, tcpRoutes, tlsRoutes, udpRoutes, policies, grants,
	namespaces cache.SharedIndexInformer
}

func newGatewayClient(config *rest.Config, namespaces cache.SharedIndexInformer, now func() time.Time) (*gatewayClient, error) {
	scheme := runtime.NewScheme()
	if err := api.Install(scheme); err != nil {
		return nil, err
	}
	version := schema.GroupVersion(api.GroupVersion)
	meta.AddToGroupVersion(scheme, version)
	of := rest.CopyConfig(config)
	of.APIPath, of.GroupVersion, of.NegotiatedSerializer = "/apis", &version, serializer.NewCodecFactory(scheme).WithoutConversion()
	of.ContentType, of.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := rest.RESTClientFor(of)
	if err != nil {
		return nil, err
	}
	c := &gatewayClient{rest: client, parameters: runtime.NewParameterCodec(scheme), now: now, namespaces: namespaces}
	c.classes = c.informer("gatewayclasses", &api.GatewayClass{}, &api.GatewayClassList{})
	c.gateways = c.informer("gateways", &api.Gateway{}, &api.GatewayList{})
	c.sets = c.informer("listenersets", &api.ListenerSet{}, &api.ListenerSetList{})
	c.httpRoutes = c.informer("httproutes", &api.HTTPRoute{}, &api.HTTPRouteList{})
	c.grpcRoutes = c.informer("grpcroutes", &api.GRPCRoute{}, &api.GRPCRouteList{})
	c.tcpRoutes = c.informer("tcproutes", &api.TCPRoute{}, &api.TCPRouteList{})
	c.tlsRoutes = c.informer("tlsroutes", &api.TLSRoute{}, &api.TLSRouteList{})
	c.udpRoutes = c.informer("udproutes", &api.UDPRoute{}, &api.UDPRouteList{})
	c.policies = c.informer("backendtlspolicies", &api.BackendTLSPolicy{}, &api.BackendTLSPolicyList{})
	c.grants = c.informer("referencegrants", &api.ReferenceGrant{}, &api.ReferenceGrantList{})
	return c, nil
}

// informer watches a kind. One that the API server does not know has no objects, until it does.
func (c *gatewayClient) informer(resource string, one, list runtime.Object) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
			found := list.DeepCopyObject()
			err := c.rest.Get().Resource(resource).VersionedParams(&options, c.parameters).Do(ctx).Into(found)
			if apierrors.IsNotFound(err) {
				return list.DeepCopyObject(), nil
			}
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, options meta.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return c.rest.Get().Resource(resource).VersionedParams(&options, c.parameters).Watch(ctx)
		},
	}, one, 0, cache.Indexers{})
}

// informers are all that are to run.
func (c *gatewayClient) informers() map[string]cache.SharedIndexInformer {
	return map[string]cache.SharedIndexInformer{
		"gatewayclasses": c.classes, "gateways": c.gateways, "listenersets": c.sets, "httproutes": c.httpRoutes, "grpcroutes": c.grpcRoutes, "tcproutes": c.tcpRoutes, "tlsroutes": c.tlsRoutes, "udproutes": c.udpRoutes,
		"backendtlspolicies": c.policies, "referencegrants": c.grants,
	}
}

func (c *gatewayClient) synced() []cache.InformerSynced {
	all := []cache.InformerSynced{c.namespaces.HasSynced}
	for _, informer := range c.informers() {
		all = append(all, informer.HasSynced)
	}
	return all
}

// world is the state in Kubernetes, nil while it is unknown.
func (c *gatewayClient) world() *GatewayAPI {
	for _, synced := range c.synced() {
		if !synced() {
			return nil
		}
	}
	return &GatewayAPI{
		Classes: objects[*api.GatewayClass](c.classes), Gateways: objects[*api.Gateway](c.gateways), Sets: objects[*api.ListenerSet](c.sets), HTTPRoutes: objects[*api.HTTPRoute](c.httpRoutes),
		GRPCRoutes: objects[*api.GRPCRoute](c.grpcRoutes), TCPRoutes: objects[*api.TCPRoute](c.tcpRoutes), TLSRoutes: objects[*api.TLSRoute](c.tlsRoutes), UDPRoutes: objects[*api.UDPRoute](c.udpRoutes),
		Policies: objects[*api.BackendTLSPolicy](c.policies), Grants: objects[*api.ReferenceGrant](c.grants), Namespaces: objects[*core.Namespace](c.namespaces),
	}
}

// write updates the statuses of the gateways' objects.
func (c *gatewayClient) write(ctx context.Context, sites *Sites, gateways []route.Gateway) error {
	var failed []error
	put := func(resource string, object interface {
		meta.Object
		runtime.Object
	}, same bool) {
		if same {
			return
		}
		err := c.rest.Put().NamespaceIfScoped(object.GetNamespace(), object.GetNamespace() != "").Resource(resource).Name(object.GetName()).SubResource("status").
			VersionedParams(&meta.UpdateOptions{FieldManager: component}, c.parameters).Body(object).Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // its change wakes us
			failed = append(failed, fmt.Errorf("write the status of %s %s/%s: %w", resource, object.GetNamespace(), object.GetName(), err))
		}
	}
	now := c.now()
	for _, class := range objects[*api.GatewayClass](c.classes) {
		if status, ours := ClassStatus(class, now); ours {
			wanted := class.DeepCopy()
			wanted.Status = status
			put("gatewayclasses", wanted, equality.Semantic.DeepEqual(class.Status, status))
		}
	}
	addresses := addressesOf(gateways)
	for _, g := range sites.gateways {
		wanted := g.Gateway.DeepCopy()
		wanted.Status = sites.gatewayStatus(g, addresses, now)
		put("gateways", wanted, equality.Semantic.DeepEqual(g.Status, wanted.Status))
	}
	for _, group := range sites.sets {
		set := group.object.(*api.ListenerSet)
		wanted := set.DeepCopy()
		wanted.Status = sites.listenerSetStatus(group, addresses, now)
		put("listenersets", wanted, equality.Semantic.DeepEqual(set.Status, wanted.Status))
	}
	for _, r := range sites.routes {
		if len(r.verdicts) == 0 && !slices.ContainsFunc(r.status.Parents, func(p api.RouteParentStatus) bool { return p.ControllerName == Controller }) {
			continue
		}
		status := r.routeStatus(now)
		same := equality.Semantic.DeepEqual(r.status, status)
		switch object := r.object.(type) {
		case *api.HTTPRoute:
			wanted := object.DeepCopy()
			wanted.Status.RouteStatus = status
			put("httproutes", wanted, same)
		case *api.GRPCRoute:
			wanted := object.DeepCopy()
			wanted.Status.RouteStatus = status
			put("grpcroutes", wanted, same)
		case *api.TCPRoute:
			wanted := object.DeepCopy()
			wanted.Status.RouteStatus = status
			put("tcproutes", wanted, same)
		case *api.TLSRoute:
			wanted := object.DeepCopy()
			wanted.Status.RouteStatus = status
			put("tlsroutes", wanted, same)
		case *api.UDPRoute:
			wanted := object.DeepCopy()
			wanted.Status.RouteStatus = status
			put("udproutes", wanted, same)
		}
	}
	for _, p := range sites.policies {
		if len(p.ancestors) == 0 && !slices.ContainsFunc(p.Status.Ancestors, func(one api.PolicyAncestorStatus) bool { return one.ControllerName == Controller }) {
			continue
		}
		wanted := p.BackendTLSPolicy.DeepCopy()
		wanted.Status = p.policyStatus(now)
		put("backendtlspolicies", wanted, equality.Semantic.DeepEqual(p.Status, wanted.Status))
	}
	return errors.Join(failed...)
}
