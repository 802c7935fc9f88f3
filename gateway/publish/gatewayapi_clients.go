package publish

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// authoritiesKey is where a ConfigMap has certificates of authorities, by Gateway API.
const authoritiesKey = "ca.crt"

// maxBundles is how many bundles of authorities the gateways of a cluster have, and how many ConfigMaps the publisher follows.
const maxBundles = 128

// validationOf is the check of clients that a Gateway wants on a port; nil: none.
func validationOf(gateway *api.Gateway, port api.PortNumber) *api.FrontendTLSValidation {
	if gateway.Spec.TLS == nil || gateway.Spec.TLS.Frontend == nil {
		return nil
	}
	frontend := gateway.Spec.TLS.Frontend
	for _, one := range frontend.PerPort {
		if one.Port == port {
			return one.TLS.Validation
		}
	}
	return frontend.Default.Validation
}

// validationsOf are all checks of clients that a Gateway names.
func validationsOf(gateway *api.Gateway) (list []*api.FrontendTLSValidation) {
	if gateway.Spec.TLS == nil || gateway.Spec.TLS.Frontend == nil {
		return nil
	}
	all := []*api.FrontendTLSValidation{gateway.Spec.TLS.Frontend.Default.Validation}
	for _, one := range gateway.Spec.TLS.Frontend.PerPort {
		all = append(all, one.TLS.Validation)
	}
	return slices.DeleteFunc(all, func(one *api.FrontendTLSValidation) bool { return one == nil })
}

// insecure reports whether a Gateway serves clients without a valid certificate, though it asks for one.
func insecure(gateway *api.Gateway) bool {
	return slices.ContainsFunc(validationsOf(gateway), func(one *api.FrontendTLSValidation) bool { return one.Mode == api.AllowInsecureFallback })
}

// clients takes in the check of the clients of a listener. A listener whose check cannot be made is not served.
func (b *gatewayBuilder) clients(group *listenerGroup, l *listenerState) {
	gateway := group.gateway.Gateway
	if l.Protocol != api.HTTPSProtocolType {
		return
	}
	validation := validationOf(gateway, l.Port)
	if validation == nil {
		return
	}
	var bundles []route.Authorities
	for _, ref := range validation.CACertificateRefs {
		name := referred(gateway.Namespace, ref.Namespace, ref.Name)
		if ref.Group != "" || ref.Kind != "ConfigMap" {
			l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidCACertificateKind, "tls.frontend: %s %s is not a ConfigMap.", ref.Kind, ref.Name)
			continue
		}
		if !b.granted(route.KindGateway, gateway.Namespace, "ConfigMap", name) {
			l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonRefNotPermitted, "tls.frontend: no ReferenceGrant lets Gateways of the namespace %s use the ConfigMap %s.", gateway.Namespace, name)
			continue
		}
		bundle, err := b.authoritiesIn(name)
		if err != nil {
			l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidCACertificateRef, "tls.frontend: the ConfigMap %s: %v", name, err)
			continue
		}
		bundles = append(bundles, bundle)
	}
	if len(bundles) == 0 {
		l.problem(api.ListenerConditionAccepted, api.ListenerReasonNoValidCACertificate, "tls.frontend names no valid certificate of an authority, and gateways serve no clients unchecked.")
		return
	}
	bundle, err := b.bundle(bundles)
	if err != nil {
		l.problem(api.ListenerConditionResolvedRefs, api.ListenerReasonInvalidCACertificateRef, "tls.frontend: %v", err)
		return
	}
	l.check = &route.Check{Authorities: bundle, Optional: validation.Mode == api.AllowInsecureFallback, Gateways: group.gateway.on}
}

// authoritiesIn are the authorities in a ConfigMap.
func (b *builder) authoritiesIn(name types.NamespacedName) (route.Authorities, error) {
	object, there := b.configMaps[name]
	if !there {
		return route.Authorities{}, errors.New("there is none")
	}
	text, there := object.Data[authoritiesKey]
	if !there {
		return route.Authorities{}, fmt.Errorf("it has no %s", authoritiesKey)
	}
	bundle, err := route.ReadAuthorities(text)
	if err != nil {
		return route.Authorities{}, fmt.Errorf("%s: %w", authoritiesKey, err)
	}
	return bundle, nil
}

// bundle has the gateways get some authorities as one bundle, and returns its name.
func (b *builder) bundle(some []route.Authorities) (name string, err error) {
	whole := some[0]
	if len(some) > 1 {
		texts := make([]string, len(some))
		for i, one := range some {
			texts[i] = one.PEM
		}
		if whole, err = route.ReadAuthorities(texts...); err != nil {
			return "", err
		}
	}
	name = whole.Name()
	if _, there := b.bundles[name]; !there && len(b.bundles) == maxBundles {
		return "", fmt.Errorf("older objects use other authorities already, %d bundles of them, which is all that gateways take", maxBundles)
	}
	b.bundles[name] = whole
	return name, nil
}

// authorities are the bundles in use.
func (b *builder) authorities() (list []route.Authorities) {
	for _, name := range slices.Sorted(maps.Keys(b.bundles)) {
		list = append(list, b.bundles[name])
	}
	return list
}

// use is how some gateways open sessions of HTTPS on a port.
type use struct {
	gateways []string
	check    *route.Check
}

// claims gives a port to a listener of HTTPS, unless an Ingress or an older listener on the same gateways checks its clients differently: a session is
// opened before its request is known.
func (b *gatewayBuilder) claims(l *listenerState, gateways []string) bool {
	for _, has := range b.uses[l.port()] {
		if route.Overlap(has.gateways, gateways) && !has.check.Same(l.check) {
			return false
		}
	}
	b.uses[l.port()] = append(b.uses[l.port()], use{gateways, l.check})
	return true
}

// check adds the check of a listener to its port.
func (b *gatewayBuilder) check(l *listenerState) {
	port := b.ports[l.port()]
	if l.check == nil || slices.ContainsFunc(port.Checks, func(has route.Check) bool { return has.Same(l.check) && slices.Equal(has.Gateways, l.check.Gateways) }) {
		return
	}
	port.Checks = append(port.Checks, *l.check)
}

// authoritiesOf names the ConfigMaps with authorities to which the objects of Gateway API refer, of the oldest objects first.
func authoritiesOf(g *GatewayAPI) (names []types.NamespacedName) {
	add := func(namespace, kind string, name types.NamespacedName) {
		if namespace == "" && kind == "ConfigMap" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	ours := classesOf(g)
	for _, gateway := range slices.SortedFunc(slices.Values(g.Gateways), func(a, b *api.Gateway) int { return older(a, b) }) {
		if !ours[gateway.Spec.GatewayClassName] {
			continue
		}
		for _, validation := range validationsOf(gateway) {
			for _, ref := range validation.CACertificateRefs {
				add(string(ref.Group), string(ref.Kind), referred(gateway.Namespace, ref.Namespace, ref.Name))
			}
		}
	}
	for _, policy := range slices.SortedFunc(slices.Values(g.Policies), func(a, b *api.BackendTLSPolicy) int { return older(a, b) }) {
		for _, ref := range policy.Spec.Validation.CACertificateRefs {
			add(string(ref.Group), string(ref.Kind), types.NamespacedName{Namespace: policy.Namespace, Name: string(ref.Name)})
		}
	}
	return names[:min(len(names), maxBundles)]
}

// classesOf reports which classes the gateways serve.
func classesOf(g *GatewayAPI) map[api.ObjectName]bool {
	classes := make(map[api.ObjectName]bool)
	for _, class := range g.Classes {
		classes[api.ObjectName(class.Name)] = class.Spec.ControllerName == Controller && class.Spec.ParametersRef == nil
	}
	return classes
}

func configMapsByName(list []*core.ConfigMap) map[types.NamespacedName]*core.ConfigMap {
	named := make(map[types.NamespacedName]*core.ConfigMap, len(list))
	for _, one := range list {
		named[types.NamespacedName{Namespace: one.Namespace, Name: one.Name}] = one
	}
	return named
}
