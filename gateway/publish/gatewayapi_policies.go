package publish

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	api "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/burano/burano/gateway/route"
)

// maxAncestors is how many ancestors the status of a policy has, by Gateway API.
const maxAncestors = 16

// policyState is a BackendTLSPolicy.
type policyState struct {
	*api.BackendTLSPolicy
	tls                *route.BackendTLS // nil: it cannot be followed, and its targets are not asked
	accepted, resolved verdict
	conflict           verdict
	known              bool                          // it was read
	ancestors          map[types.NamespacedName]bool // Gateways whose routes lead to its targets
}

// policyTarget is a Service, or a port of one.
type policyTarget struct {
	service types.NamespacedName
	port    string
}

// takePolicies takes in the BackendTLSPolicies. Of two for the same target the older one is followed.
func (b *gatewayBuilder) takePolicies() {
	for _, object := range slices.SortedFunc(slices.Values(b.api.Policies), func(a, b *api.BackendTLSPolicy) int { return older(a, b) }) {
		p := &policyState{BackendTLSPolicy: object, ancestors: make(map[types.NamespacedName]bool)}
		b.policies = append(b.policies, p)
		for _, ref := range object.Spec.TargetRefs {
			if ref.Group != "" || ref.Kind != "Service" {
				continue
			}
			target := policyTarget{types.NamespacedName{Namespace: object.Namespace, Name: string(ref.Name)}, string(deref(ref.SectionName))}
			if list := b.targeted[target]; len(list) > 0 && list[0] != p {
				p.conflict = verdict{string(api.PolicyReasonConflicted), fmt.Sprintf("the policy %s for the Service %s is older.", list[0].Name, ref.Name)}
			}
			b.targeted[target] = append(b.targeted[target], p)
		}
	}
}

// readPolicy takes in how a policy has backends asked.
func (b *gatewayBuilder) readPolicy(p *policyState) {
	validation := p.Spec.Validation
	refuse := func(reason api.PolicyConditionReason, format string, arguments ...any) {
		p.accepted = verdict{string(reason), fmt.Sprintf(format, arguments...)}
	}
	tls := &route.BackendTLS{Host: strings.ToLower(string(validation.Hostname))}
	if err := route.ValidHost(tls.Host); err != nil || tls.Host == "" || strings.HasPrefix(tls.Host, "*") {
		refuse(api.PolicyReasonInvalid, "validation.hostname: %q is not the name of a host.", validation.Hostname)
		return
	}
	for _, name := range validation.SubjectAltNames {
		if name.Type != api.HostnameSubjectAltNameType || !strings.EqualFold(string(name.Hostname), tls.Host) {
			refuse(api.PolicyReasonInvalid, "validation.subjectAltNames: gateways compare the certificates of backends with the hostname alone.")
			return
		}
	}
	if known := deref(validation.WellKnownCACertificates); known != "" {
		if known != api.WellKnownCACertificatesSystem {
			refuse(api.PolicyReasonInvalid, "validation.wellKnownCACertificates: %s is not known; %s is.", known, api.WellKnownCACertificatesSystem)
			return
		}
		p.tls = tls
		return
	}
	problem := func(reason api.PolicyConditionReason, format string, arguments ...any) {
		if p.resolved.reason == "" {
			p.resolved = verdict{string(reason), fmt.Sprintf("validation.caCertificateRefs: "+format, arguments...)}
		}
	}
	var bundles []route.Authorities
	for _, ref := range validation.CACertificateRefs {
		if ref.Group != "" || ref.Kind != "ConfigMap" {
			problem(api.BackendTLSPolicyReasonInvalidKind, "%s %s is not a ConfigMap.", ref.Kind, ref.Name)
			continue
		}
		bundle, err := b.authoritiesIn(types.NamespacedName{Namespace: p.Namespace, Name: string(ref.Name)})
		if err != nil {
			problem(api.BackendTLSPolicyReasonInvalidCACertificateRef, "the ConfigMap %s: %v", ref.Name, err)
			continue
		}
		bundles = append(bundles, bundle)
	}
	if len(bundles) == 0 {
		refuse(api.BackendTLSPolicyReasonNoValidCACertificate, "validation names no valid certificate of an authority, and gateways ask no backends unchecked.")
		return
	}
	name, err := b.bundle(bundles)
	if err != nil {
		problem(api.BackendTLSPolicyReasonInvalidCACertificateRef, "%v", err)
		refuse(api.BackendTLSPolicyReasonNoValidCACertificate, "%v", err)
		return
	}
	tls.Authorities = name
	p.tls = tls
}

// policyOf is how a port of a Service is asked over TLS by a Gateway, nil without a policy about it. good is false when it must not be asked.
func (b *gatewayBuilder) policyOf(service types.NamespacedName, port string, via *gatewayState) (tls *route.BackendTLS, good bool) {
	var first *policyState
	for _, target := range []policyTarget{{service, port}, {service, ""}} {
		for i, p := range b.targeted[target] {
			if via != nil {
				p.ancestors[types.NamespacedName{Namespace: via.Namespace, Name: via.Name}] = true
			}
			if i > 0 {
				continue
			}
			if !p.known {
				p.known = true
				b.readPolicy(p)
			}
			if first == nil {
				first = p
			}
		}
	}
	if first == nil || first.tls == nil {
		return nil, first == nil
	}
	own := *first.tls
	if via != nil {
		own.Certificate = via.shows
		if via.unresolved.reason != "" {
			return nil, false
		}
	}
	return &own, true
}

// shows takes in the certificate that a Gateway shows to backends with TLS.
func (b *gatewayBuilder) shows(g *gatewayState) {
	if g.Spec.TLS == nil || g.Spec.TLS.Backend == nil || g.Spec.TLS.Backend.ClientCertificateRef == nil {
		return
	}
	g.refers = true
	ref := *g.Spec.TLS.Backend.ClientCertificateRef
	name := referred(g.Namespace, ref.Namespace, ref.Name)
	switch {
	case deref(ref.Group) != "" || ref.Kind != nil && *ref.Kind != "Secret":
		g.unresolved = verdict{string(api.GatewayReasonInvalidClientCertificateRef), fmt.Sprintf("tls.backend: %s %s is not a Secret.", deref(ref.Kind), ref.Name)}
	case !b.granted(route.KindGateway, g.Namespace, "Secret", name):
		g.unresolved = verdict{string(api.GatewayReasonRefNotPermitted), fmt.Sprintf("tls.backend: no ReferenceGrant lets Gateways of the namespace %s use the Secret %s.", g.Namespace, name)}
	default:
		content, err := b.certificate(name)
		if err != nil {
			g.unresolved = verdict{string(api.GatewayReasonInvalidClientCertificateRef), fmt.Sprintf("tls.backend: the Secret %s: %v", name, err)}
			return
		}
		g.shows, b.Certificates[name] = name.String(), content
	}
}

// policyStatus is the desired status of a policy: other controllers' entries stay.
func (p *policyState) policyStatus(now time.Time) api.PolicyStatus {
	status := api.PolicyStatus{Ancestors: []api.PolicyAncestorStatus{}}
	former := make(map[types.NamespacedName]api.PolicyAncestorStatus)
	for _, one := range p.Status.Ancestors {
		if one.ControllerName != Controller {
			status.Ancestors = append(status.Ancestors, one)
			continue
		}
		former[types.NamespacedName{Namespace: string(deref(one.AncestorRef.Namespace)), Name: string(one.AncestorRef.Name)}] = *one.DeepCopy()
	}
	accepted := p.accepted
	if accepted.reason == "" {
		accepted = p.conflict
	}
	names := slices.SortedFunc(maps.Keys(p.ancestors), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, name := range names[:min(len(names), max(0, maxAncestors-len(status.Ancestors)))] {
		group, kind, namespace := api.Group(api.GroupName), api.Kind(route.KindGateway), api.Namespace(name.Namespace)
		c := conditions{list: former[name].Conditions, generation: p.Generation, now: now}
		if accepted.reason == "" && len(p.Spec.Options) > 0 {
			c.set(string(api.PolicyConditionAccepted), true, string(api.PolicyReasonAccepted), "options: gateways of Burano have none, and ignore these.")
		} else {
			c.verdict(string(api.PolicyConditionAccepted), accepted)
		}
		c.verdict(string(api.BackendTLSPolicyConditionResolvedRefs), p.resolved)
		status.Ancestors = append(status.Ancestors, api.PolicyAncestorStatus{
			AncestorRef: api.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: api.ObjectName(name.Name)}, ControllerName: Controller, Conditions: c.list,
		})
	}
	return status
}
