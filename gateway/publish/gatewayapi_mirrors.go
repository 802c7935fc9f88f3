package publish

import (
	"fmt"

	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// mirrorsOf are the backends that get copies of the requests of a rule. A backend that is not there, or must not be asked, gets none.
func (b *gatewayBuilder) mirrorsOf(r *routeState, rule api.HTTPRouteRule, l *listenerState, resolved *verdict) *route.Mirrors {
	var mirrors route.Mirrors
	for _, filter := range rule.Filters {
		if filter.RequestMirror == nil {
			continue
		}
		target := b.target(r, api.BackendRef{BackendObjectReference: filter.RequestMirror.BackendRef}, true, l.gateway, resolved)
		part, of := fractionOf(filter.RequestMirror)
		if target.Pool != "" && part > 0 {
			mirrors.To = append(mirrors.To, route.Mirror{Target: target, Part: part, Of: of})
		}
	}
	if len(mirrors.To) == 0 {
		return nil
	}
	return &mirrors
}

// fractionOf is how many requests of how many are copied; by default all.
func fractionOf(mirror *api.HTTPRequestMirrorFilter) (part, of int) {
	switch {
	case mirror.Percent != nil:
		return int(*mirror.Percent), 100
	case mirror.Fraction != nil:
		of = 100
		if mirror.Fraction.Denominator != nil {
			of = int(*mirror.Fraction.Denominator)
		}
		return int(mirror.Fraction.Numerator), of
	}
	return 1, 1
}

// validMirror returns the fault of a filter for copies, or nil.
func validMirror(mirror *api.HTTPRequestMirrorFilter) error {
	if mirror == nil {
		return fmt.Errorf("the filter RequestMirror has no requestMirror")
	}
	if part, of := fractionOf(mirror); part < 0 || of < 1 || part > of || of > route.MaxWeight {
		return fmt.Errorf("requestMirror: %d in %d requests are no part of them, or more exact than one in %d", part, of, route.MaxWeight)
	}
	return nil
}
