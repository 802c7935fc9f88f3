package publish

import (
	"cmp"
	"fmt"
	"slices"

	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// ofGRPCRoute gives a GRPCRoute the form of an HTTPRoute: a call of gRPC is a request whose path is /SERVICE/METHOD.
func ofGRPCRoute(object *api.GRPCRoute) *requestRoute {
	r := &requestRoute{routeState: routeState{
		kind: route.KindGRPCRoute, object: object, generation: object.Generation, parents: object.Spec.ParentRefs, hostnames: object.Spec.Hostnames, status: object.Status.RouteStatus,
	}}
	for i, rule := range object.Spec.Rules {
		own := api.HTTPRouteRule{Name: rule.Name, SessionPersistence: rule.SessionPersistence, Filters: ofGRPCFilters(rule.Filters)}
		if slices.ContainsFunc(rule.Filters, func(f api.GRPCRouteFilter) bool { return f.RequestMirror != nil }) && r.fault == nil {
			r.fault = fmt.Errorf("rules[%d]: calls are not copied: their content has no stated length", i)
		}
		for _, match := range rule.Matches {
			path, err := ofGRPCMethod(match.Method)
			if err != nil && r.fault == nil {
				r.fault = fmt.Errorf("rules[%d]: %w", i, err)
			}
			request := api.HTTPRouteMatch{Path: path}
			for _, header := range match.Headers {
				kind := api.HeaderMatchType(cmp.Or(deref(header.Type), api.GRPCHeaderMatchExact))
				request.Headers = append(request.Headers, api.HTTPHeaderMatch{Type: &kind, Name: api.HTTPHeaderName(header.Name), Value: header.Value})
			}
			own.Matches = append(own.Matches, request)
		}
		for _, ref := range rule.BackendRefs {
			own.BackendRefs = append(own.BackendRefs, api.HTTPBackendRef{BackendRef: ref.BackendRef, Filters: ofGRPCFilters(ref.Filters)})
		}
		r.rules = append(r.rules, own)
	}
	return r
}

// ofGRPCMethod is the path of a method, or of all methods of a service.
func ofGRPCMethod(method *api.GRPCMethodMatch) (*api.HTTPPathMatch, error) {
	if method == nil {
		return nil, nil
	}
	if kind := cmp.Or(deref(method.Type), api.GRPCMethodMatchExact); kind != api.GRPCMethodMatchExact {
		return nil, fmt.Errorf("methods are matched exactly, and not by %s", kind)
	}
	if deref(method.Service) == "" {
		return nil, fmt.Errorf("the method %q is matched only together with its service", deref(method.Method))
	}
	path, kind := "/"+*method.Service, api.PathMatchPathPrefix
	if deref(method.Method) != "" {
		path, kind = path+"/"+*method.Method, api.PathMatchExact
	}
	return &api.HTTPPathMatch{Type: &kind, Value: &path}, nil
}

func ofGRPCFilters(filters []api.GRPCRouteFilter) (list []api.HTTPRouteFilter) {
	for _, one := range filters {
		list = append(list, api.HTTPRouteFilter{
			Type: api.HTTPRouteFilterType(one.Type), RequestHeaderModifier: one.RequestHeaderModifier, ResponseHeaderModifier: one.ResponseHeaderModifier,
			RequestMirror: one.RequestMirror, ExtensionRef: one.ExtensionRef,
		})
	}
	return list
}
