package publish_test

import (
	"bytes"
	"crypto/tls"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/nginx"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/seal"
)

func ingressClass(name, controller string) *networking.IngressClass {
	return &networking.IngressClass{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: networking.IngressClassSpec{Controller: controller}}
}

// to is a path of an Ingress that leads to port 80 of a Service.
func to(path string, kind networking.PathType, service string) networking.HTTPIngressPath {
	return networking.HTTPIngressPath{Path: path, PathType: &kind, Backend: backendOf(service)}
}

func backendOf(service string) networking.IngressBackend {
	return networking.IngressBackend{Service: &networking.IngressServiceBackend{Name: service, Port: networking.ServiceBackendPort{Number: 80}}}
}

func ingressOf(name string, age time.Duration, host string, paths ...networking.HTTPIngressPath) *networking.Ingress {
	class := "burano"
	return &networking.Ingress{
		ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: meta.NewTime(morning.Add(age)), Annotations: map[string]string{}},
		Spec: networking.IngressSpec{IngressClassName: &class, Rules: []networking.IngressRule{{
			Host: host, IngressRuleValue: networking.IngressRuleValue{HTTP: &networking.HTTPIngressRuleValue{Paths: paths}},
		}}},
	}
}

func tlsSecret(name string, certificate, key []byte) *core.Secret {
	return &core.Secret{ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: name}, Type: core.SecretTypeTLS, Data: map[string][]byte{core.TLSCertKey: certificate, core.TLSPrivateKeyKey: key}}
}

func world(ingresses ...*networking.Ingress) publish.World {
	return publish.World{
		Ingresses: ingresses, Classes: []*networking.IngressClass{ingressClass("burano", publish.Controller), ingressClass("nginx", "k8s.io/ingress-nginx")},
		Services:       []*core.Service{service("a", port("http", 80)), service("b", port("http", 80))},
		EndpointSlices: []*discovery.EndpointSlice{slice("a", "http", 8080, at("10.244.0.1", true, true, false))},
	}
}

func reasons(complaints []publish.Complaint) (list []string) {
	for _, c := range complaints {
		list = append(list, c.Name+" "+c.Reason)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func pathsOf(sites publish.Sites) (list []string) {
	for _, site := range sites.HTTP.Sites {
		for _, p := range site.Paths {
			text := p.Host + p.Path + " " + p.Pool
			if p.Exact {
				text += " exact"
			}
			if p.Redirect {
				text += " redirect"
			}
			list = append(list, text)
		}
	}
	return list
}

func TestWhichIngressesAreServed(t *testing.T) {
	none := func(i *networking.Ingress) *networking.Ingress { i.Spec.IngressClassName = nil; return i }
	plain := func() *networking.Ingress {
		return ingressOf("web", 0, "a.org", to("/", networking.PathTypePrefix, "a"))
	}
	w := world(plain())
	require.Equal(t, []string{"a.org/ default/a/http"}, pathsOf(publish.SitesOf(w)))
	require.Equal(t, []route.Pool{{Namespace: "default", Service: "a", Port: "http", Backends: []route.Backend{{Address: "10.244.0.1", Port: 8080, Node: "node", Ready: true}}}}, publish.SitesOf(w).Pools)

	other := "nginx"
	w = world(plain(), none(plain()))
	w.Ingresses[0].Spec.IngressClassName = &other
	require.Empty(t, publish.SitesOf(w).HTTP.Sites, "another class, and none")
	w.Classes[0].Annotations = map[string]string{"ingressclass.kubernetes.io/is-default-class": "true"}
	require.Len(t, publish.SitesOf(w).HTTP.Sites, 1, "ours is the default class")
	w = world(none(plain()))
	w.Ingresses[0].Annotations["kubernetes.io/ingress.class"] = "burano"
	require.Len(t, publish.SitesOf(w).HTTP.Sites, 1)
	w.Classes = nil
	require.Empty(t, publish.SitesOf(w).HTTP.Sites, "a class that is not there")
}

func TestWhatAClassSaysCountsForAllPorts(t *testing.T) {
	w := world(ingressOf("web", 0, "a.org", to("/", networking.PathTypePrefix, "a")))
	w.Classes[1].Annotations = map[string]string{publish.AnnotationCompression: "gzip"} // of another controller
	options := func() (list []route.HTTPOptions) {
		for _, l := range publish.Wanted(publish.SitesOf(w)) {
			list = append(list, l.HTTPOptions)
		}
		return list
	}
	require.Equal(t, []route.HTTPOptions{{}}, options())
	w.Ingresses[0].Spec.TLS = []networking.IngressTLS{{Hosts: []string{"a.org"}}}
	w.Classes[0].Annotations = map[string]string{publish.AnnotationProxy: "accept", publish.AnnotationAccessLog: "json", publish.AnnotationCompression: "gzip"}
	all := route.HTTPOptions{AcceptProxy: true, AccessLog: true, Compress: true}
	require.Equal(t, []route.HTTPOptions{all, all}, options())
	for _, l := range publish.Wanted(publish.SitesOf(w)) {
		value, err := route.EncodePart(route.Part{Listener: &l})
		require.NoError(t, err)
		back, err := route.DecodePart(route.PartKey(route.Part{Listener: &l}), value)
		require.NoError(t, err)
		require.Equal(t, all, back.Listener.HTTPOptions)
	}
	w.Classes[0].Annotations = map[string]string{publish.AnnotationProxy: "send", publish.AnnotationAccessLog: "true", publish.AnnotationCompression: ""}
	require.Equal(t, []route.HTTPOptions{{}, {}}, options())
	var said []string
	for _, one := range publish.SitesOf(w).Complaints {
		if one.Kind == "IngressClass" {
			said = append(said, one.Name+": "+one.Message)
		}
	}
	require.Len(t, said, 3)
	require.Equal(t, `burano: the annotation burano.io/proxy-protocol of an IngressClass must be "accept", not "send"; it is not heeded`, said[0])
}

func TestPathsAndTheirConflicts(t *testing.T) {
	exact, prefix, own := networking.PathTypeExact, networking.PathTypePrefix, networking.PathTypeImplementationSpecific
	old := ingressOf("old", 0, "a.org", to("/x", exact, "a"), to("/x", prefix, "a"), to("", own, "b"))
	young := ingressOf("young", time.Hour, "a.org", to("/x/", prefix, "b"), to("/y", prefix, "b"), to("/bad path", own, "b"), to("/a\n  server evil", own, "b"))
	young.Spec.Rules[0].HTTP.Paths = append(young.Spec.Rules[0].HTTP.Paths, to("/gone", prefix, "gone"))
	fallback := backendOf("b")
	young.Spec.DefaultBackend = &fallback
	sites := publish.SitesOf(world(young, old))
	require.Equal(t, []string{
		"a.org/x default/a/http exact", "a.org/x default/a/http", "a.org/ default/b/http",
		"a.org/y default/b/http", "a.org/gone default/gone/80", "/ default/b/http",
	}, pathsOf(sites))
	require.Equal(t, []string{"young BackendNotFound", "young HostOrPathInvalid", "young HostPathConflict"}, reasons(sites.Complaints))

	alone := ingressOf("alone", 0, "")
	alone.Spec.Rules, alone.Spec.DefaultBackend = nil, &fallback
	require.Equal(t, []string{"/ default/b/http"}, pathsOf(publish.SitesOf(world(alone))))
}

func TestCertificatesOfHosts(t *testing.T) {
	certificate, key := haproxytest.Certificate(t, "a.org", 0)
	weakCertificate, weakKey := haproxytest.Certificate(t, "a.org", 1024)
	secure := func(secret string, note string) publish.World {
		i := ingressOf("web", 0, "a.org", to("/", networking.PathTypePrefix, "a"))
		i.Spec.TLS = []networking.IngressTLS{{Hosts: []string{"a.org"}, SecretName: secret}}
		if note != "" {
			i.Annotations[publish.AnnotationRedirect] = note
		}
		w := world(i)
		w.Secrets = []*core.Secret{tlsSecret("good", certificate, key), tlsSecret("weak", weakCertificate, weakKey), tlsSecret("mixed", certificate, weakKey)}
		return w
	}
	sites := publish.SitesOf(secure("good", ""))
	require.Empty(t, sites.Complaints)
	require.Equal(t, []string{"a.org/ default/a/http redirect"}, pathsOf(sites))
	require.Equal(t, []route.Certificate{{Host: "a.org", Secret: "good"}}, sites.HTTP.Sites[0].Certificates)
	content := sites.Certificates[types.NamespacedName{Namespace: "default", Name: "good"}]
	_, err := tls.X509KeyPair(content, content)
	require.NoError(t, err)
	require.Equal(t, []string{"a.org/ default/a/http"}, pathsOf(publish.SitesOf(secure("good", "false"))))
	sites = publish.SitesOf(secure("good", "maybe"))
	require.Equal(t, []string{"a.org/ default/a/http redirect"}, pathsOf(sites), "it is not heeded")
	require.Equal(t, []string{"web InvalidGatewayAnnotation"}, reasons(sites.Complaints))
	for secret, why := range map[string]string{"missing": "there is none", "weak": "1024 bits", "mixed": "no certificate and its key"} {
		sites := publish.SitesOf(secure(secret, ""))
		require.Equal(t, []string{"a.org/ default/a/http"}, pathsOf(sites), "it is served, and not redirected to what nobody trusts")
		require.Len(t, sites.Complaints, 1)
		require.Equal(t, publish.ReasonCertificate, sites.Complaints[0].Reason)
		require.Contains(t, sites.Complaints[0].Message, why)
		require.Empty(t, sites.Certificates)
	}
}

// TestSitesAreValidWhateverIsWritten checks that values in etcd are valid, do not depend on the order of Kubernetes' objects, and have no path of a host
// twice.
func TestSitesAreValidWhateverIsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		host := rapid.OneOf(rapid.SampledFrom([]string{"", "a.org", "*.a.org", "b.org"}), rapid.String())
		path := rapid.Custom(func(t *rapid.T) networking.HTTPIngressPath {
			kind := rapid.SampledFrom([]networking.PathType{networking.PathTypeExact, networking.PathTypePrefix, networking.PathTypeImplementationSpecific}).Draw(t, "type")
			return to(rapid.OneOf(rapid.SampledFrom([]string{"", "/", "/x", "/x/"}), rapid.String()).Draw(t, "path"), kind, rapid.OneOf(rapid.SampledFrom([]string{"a", "b"}), rapid.String()).Draw(t, "service"))
		})
		number := 0
		ingresses := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *networking.Ingress {
			number++
			i := ingressOf("i"+strings.Repeat("i", number), time.Duration(rapid.IntRange(0, 2).Draw(t, "age"))*time.Second, host.Draw(t, "host"), rapid.SliceOfN(path, 0, 4).Draw(t, "paths")...)
			i.Annotations[publish.AnnotationRedirect] = rapid.OneOf(rapid.Just("true"), rapid.String()).Draw(t, "redirect")
			i.Spec.TLS = []networking.IngressTLS{{Hosts: rapid.SliceOfN(host, 0, 2).Draw(t, "hosts"), SecretName: rapid.OneOf(rapid.Just("good"), rapid.String()).Draw(t, "secret")}}
			return i
		}), 0, 5).Draw(t, "ingresses")
		sites := publish.SitesOf(world(ingresses...))
		seen := map[string]bool{}
		for _, part := range sites.Parts() {
			value, err := route.EncodePart(part)
			require.NoError(t, err)
			back, err := route.DecodePart(route.PartKey(part), value)
			require.NoError(t, err)
			again, err := route.EncodePart(back)
			require.NoError(t, err)
			require.Equal(t, string(value), string(again))
		}
		for _, site := range sites.HTTP.Sites {
			for _, p := range site.Paths {
				key := p.Host + strings.TrimRight(p.Path, "/") + "/"
				if p.Exact {
					key = p.Host + p.Path + " exact"
				}
				require.False(t, seen[key], key)
				seen[key] = true
			}
		}
		slices.Reverse(ingresses)
		again := publish.SitesOf(world(ingresses...))
		require.Equal(t, pathsOf(sites), pathsOf(again))
		require.ElementsMatch(t, sites.Complaints, again.Complaints)
	})
}

// TestIngressesOfARealCluster goes through the life of an Ingress in a real Kubernetes API over a real etcd, with the rights of the publisher only.
func TestIngressesOfARealCluster(t *testing.T) {
	c := newCluster(t)
	etcd, admin := c.etcd, c.admin
	c.start(t, publish.Run)
	key, err := seal.Load(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	put := func(key string, value []byte, err error) {
		t.Helper()
		require.NoError(t, err)
		_, err = etcd.Put(t.Context(), key, string(value))
		require.NoError(t, err)
	}
	gateway := route.Gateway{Name: "murano-gateway-1", Address: netip.MustParseAddr("203.0.113.1")}
	value, err := route.EncodeGateway(gateway)
	put(route.GatewayKey(gateway), value, err)
	value, err = route.EncodeKey(route.PublicKey{Gateway: gateway.Name, Public: key.Public()})
	put(route.KeyOf(gateway.Name), value, err)

	_, err = admin.NetworkingV1().IngressClasses().Create(t.Context(), ingressClass("burano", publish.Controller), meta.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.CoreV1().Services("default").Create(t.Context(), newService("a", 8080), meta.CreateOptions{})
	require.NoError(t, err)
	prefix := networking.PathTypePrefix
	wanted := ingressOf("web", 0, "a.org", networking.HTTPIngressPath{Path: "/", PathType: &prefix, Backend: networking.IngressBackend{
		Service: &networking.IngressServiceBackend{Name: "a", Port: networking.ServiceBackendPort{Name: "http"}},
	}})
	wanted.UID, wanted.CreationTimestamp = "", meta.Time{}
	wanted.Spec.TLS = []networking.IngressTLS{{Hosts: []string{"a.org"}, SecretName: "good"}}
	_, err = admin.NetworkingV1().Ingresses("default").Create(t.Context(), wanted, meta.CreateOptions{})
	require.NoError(t, err)
	parts := func() (h route.HTTP, sealed []route.Sealed) {
		found, err := etcd.Get(t.Context(), route.HTTPPrefix, clientv3.WithPrefix())
		require.NoError(t, err)
		var list []route.Part
		for _, kv := range found.Kvs {
			part, err := route.DecodePart(string(kv.Key), kv.Value)
			require.NoError(t, err)
			list = append(list, part)
		}
		found, err = etcd.Get(t.Context(), route.CertificatesPrefix, clientv3.WithPrefix())
		require.NoError(t, err)
		for _, kv := range found.Kvs {
			one, err := route.DecodeSealed(string(kv.Key), kv.Value)
			require.NoError(t, err)
			sealed = append(sealed, one)
		}
		return route.Assemble(list), sealed
	}
	eventually := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, 20*time.Second, 10*time.Millisecond, what)
	}
	eventually("the Ingress is served without its certificate", func() bool {
		h, sealed := parts()
		return len(h.Sites) == 1 && len(h.Listeners) == 2 && len(h.Pools) == 1 && !h.Sites[0].Paths[0].Redirect && len(sealed) == 0
	})
	event := func(reason string) func() bool {
		return func() bool {
			events, err := admin.CoreV1().Events("default").List(t.Context(), meta.ListOptions{FieldSelector: "involvedObject.kind=Ingress,involvedObject.name=web,reason=" + reason})
			return err == nil && len(events.Items) == 1
		}
	}
	eventually("an Event says that the Secret is missing", event(publish.ReasonCertificate))
	status := func(ports ...networking.IngressPortStatus) func() bool {
		return func() bool {
			found, err := admin.NetworkingV1().Ingresses("default").Get(t.Context(), "web", meta.GetOptions{})
			require.NoError(t, err)
			return equality.Semantic.DeepEqual([]networking.IngressLoadBalancerIngress{{IP: "203.0.113.1", Ports: ports}}, found.Status.LoadBalancer.Ingress)
		}
	}
	logs := func(said string) func() bool {
		class, err := admin.NetworkingV1().IngressClasses().Get(t.Context(), "burano", meta.GetOptions{})
		require.NoError(t, err)
		class.Annotations = map[string]string{publish.AnnotationAccessLog: said}
		_, err = admin.NetworkingV1().IngressClasses().Update(t.Context(), class, meta.UpdateOptions{})
		require.NoError(t, err)
		return func() bool {
			h, _ := parts()
			return len(h.Listeners) == 2 && h.Listeners[0].AccessLog == (said == "json") && h.Listeners[1].AccessLog == (said == "json")
		}
	}
	eventually("its class has both ports log", logs("json"))
	eventually("no more", logs("xml"))
	eventually("an Event of the class says why", func() bool {
		events, err := admin.CoreV1().Events("default").List(t.Context(), meta.ListOptions{FieldSelector: "involvedObject.kind=IngressClass,involvedObject.name=burano,reason=" + publish.ReasonAnnotation})
		return err == nil && len(events.Items) == 1 && strings.Contains(events.Items[0].Message, `must be "json", not "xml"`)
	})
	plain, safe := networking.IngressPortStatus{Port: 80, Protocol: core.ProtocolTCP}, networking.IngressPortStatus{Port: 443, Protocol: core.ProtocolTCP}
	eventually("its status has the gateway's address", status(plain, safe))

	// The certificate comes, sealed, and is renewed.
	opened := func(content []byte) func() bool {
		return func() bool {
			h, sealed := parts()
			if len(sealed) != 1 || len(h.Sites) != 1 || !h.Sites[0].Paths[0].Redirect {
				return false
			}
			require.NotContains(t, string(sealed[0].Box), "PRIVATE KEY")
			plain, err := key.Open(sealed[0].Box)
			require.NoError(t, err)
			return bytes.Contains(plain, content)
		}
	}
	certificate, private := haproxytest.Certificate(t, "a.org", 0)
	secret, err := admin.CoreV1().Secrets("default").Create(t.Context(), tlsSecret("good", certificate, private), meta.CreateOptions{})
	require.NoError(t, err)
	eventually("the certificate is sealed for the gateway", opened(certificate))
	certificate, private = haproxytest.Certificate(t, "a.org", 2048)
	secret.Data = tlsSecret("good", certificate, private).Data
	_, err = admin.CoreV1().Secrets("default").Update(t.Context(), secret, meta.UpdateOptions{})
	require.NoError(t, err)
	eventually("the renewed certificate is sealed for the gateway", opened(certificate))
	key, err = seal.Load(filepath.Join(t.TempDir(), "key")) // the gateway was replaced
	require.NoError(t, err)
	value, err = route.EncodeKey(route.PublicKey{Gateway: gateway.Name, Public: key.Public()})
	put(route.KeyOf(gateway.Name), value, err)
	eventually("the certificate is sealed for the gateway's new key", func() bool {
		_, sealed := parts()
		if len(sealed) != 1 {
			return false
		}
		_, err := key.Open(sealed[0].Box)
		return err == nil
	})

	// A Service cannot have a port of the Ingresses; one that has it keeps it.
	_, err = admin.CoreV1().Services("default").Create(t.Context(), newService("late", 443), meta.CreateOptions{})
	require.NoError(t, err)
	awaitEvents(t, admin, "late", publish.ReasonConflict, 1)
	require.NoError(t, admin.NetworkingV1().Ingresses("default").Delete(t.Context(), "web", meta.DeleteOptions{}))
	awaitRoute(t, etcd, 443, anything)
	eventually("nothing is left", func() bool {
		h, sealed := parts()
		return len(h.Parts()) == 0 && len(sealed) == 0
	})
	require.Eventually(t, func() bool { return time.Since(awaitRoute(t, etcd, 443, anything).Since) > time.Second }, 20*time.Second, 50*time.Millisecond)
	_, err = admin.NetworkingV1().Ingresses("default").Create(t.Context(), wanted, meta.CreateOptions{})
	require.NoError(t, err)
	why := "burano.io/" + publish.ReasonConflict
	safe.Error = &why
	eventually("its status says that port 443 is another's", status(plain, safe))
	eventually("and so does an Event", event(publish.ReasonConflict))
	require.Equal(t, "late", awaitRoute(t, etcd, 443, anything).Service)

	// An annotation of ingress-nginx about access that is not served closes the Ingress.
	closed, err := admin.NetworkingV1().Ingresses("default").Get(t.Context(), "web", meta.GetOptions{})
	require.NoError(t, err)
	closed.Annotations = map[string]string{nginx.Prefix + "auth-url": "https://auth.example.org"}
	_, err = admin.NetworkingV1().Ingresses("default").Update(t.Context(), closed, meta.UpdateOptions{})
	require.NoError(t, err)
	eventually("an Event has the refused annotation", event(publish.ReasonRefused))
	eventually("its requests get 503", func() bool {
		h, _ := parts()
		return len(h.Sites) == 1 && len(h.Sites[0].Paths) > 0 && len(h.Sites[0].Paths[0].Rules) == 1 && h.Sites[0].Paths[0].Rules[0].Targets[0].Filters.Status == 503
	})
	require.NotContains(t, c.log.String(), "forbidden", "the documented rights suffice")
}

func TestATLSWithoutHostsIsForHostsWithoutACertificate(t *testing.T) {
	certificate, key := haproxytest.Certificate(t, "any.org", 0)
	nohost := func(name string, age time.Duration, secret string) *networking.Ingress {
		i := ingressOf(name, age, "", to("/"+name, networking.PathTypePrefix, "a"))
		i.Spec.TLS = []networking.IngressTLS{{SecretName: secret}}
		return i
	}
	w := world(nohost("case", 0, "case-cert"), nohost("same", time.Minute, "case-cert"), nohost("younger", time.Hour, "other-cert"))
	w.Secrets = []*core.Secret{tlsSecret("case-cert", certificate, key), tlsSecret("other-cert", certificate, key)}
	sites := publish.SitesOf(w)
	require.Equal(t, []string{"case-cert", "", ""}, []string{sites.HTTP.Sites[0].Default, sites.HTTP.Sites[1].Default, sites.HTTP.Sites[2].Default})
	require.Contains(t, sites.Certificates, types.NamespacedName{Namespace: "default", Name: "case-cert"})
	require.NotContains(t, sites.Certificates, types.NamespacedName{Namespace: "default", Name: "other-cert"})
	require.Equal(t, []string{"younger " + publish.ReasonPathConflict}, reasons(sites.Complaints))
	require.Equal(t, []string{"/case default/a/http", "/same default/a/http", "/younger default/a/http"}, pathsOf(sites), "nobody is redirected")

	// One with a default backend alone, and one whose Secret is missing.
	alone := nohost("alone", 0, "case-cert")
	backend := backendOf("a")
	alone.Spec.Rules, alone.Spec.DefaultBackend = nil, &backend
	w.Ingresses = []*networking.Ingress{alone, nohost("missing", time.Hour, "none")}
	sites = publish.SitesOf(w)
	require.Equal(t, "case-cert", sites.HTTP.Sites[0].Default)
	require.Equal(t, []string{"missing " + publish.ReasonCertificate}, reasons(sites.Complaints))

	// Hosts of rules have it as before, beside it.
	named := nohost("named", 0, "case-cert")
	named.Spec.Rules = append(named.Spec.Rules, networking.IngressRule{Host: "b.org", IngressRuleValue: named.Spec.Rules[0].IngressRuleValue})
	w.Ingresses = []*networking.Ingress{named}
	sites = publish.SitesOf(w)
	require.Equal(t, []route.Certificate{{Host: "b.org", Secret: "case-cert"}}, sites.HTTP.Sites[0].Certificates)
	require.Equal(t, "case-cert", sites.HTTP.Sites[0].Default)
}

func TestWhatAnIngressAsksForInVainIsTold(t *testing.T) {
	unnamed := ingressOf("unnamed", 0, "a.org", to("/", networking.PathTypePrefix, "a"))
	unnamed.Spec.TLS = []networking.IngressTLS{{Hosts: []string{"a.org"}}}
	pathless := ingressOf("pathless", 0, "b.org")
	pathless.Spec.Rules[0].HTTP = nil
	h2c := "kubernetes.io/h2c"
	w := world(unnamed, pathless, ingressOf("spoken", 0, "c.org", to("/", networking.PathTypePrefix, "b")))
	w.Services[1].Spec.Ports[0].AppProtocol = &h2c
	require.Equal(t, []string{"pathless " + publish.ReasonPath, "spoken " + publish.ReasonUnheeded, "unnamed " + publish.ReasonCertificate}, reasons(publish.SitesOf(w).Complaints))

	certificate, key := haproxytest.Certificate(t, "any.org", 0)
	all := ingressOf("all", 0, "", to("/all", networking.PathTypePrefix, "a"))
	all.Spec.TLS = []networking.IngressTLS{{SecretName: "any"}}
	w.Ingresses, w.Secrets = append(w.Ingresses[:1], all), []*core.Secret{tlsSecret("any", certificate, key)}
	require.Empty(t, publish.SitesOf(w).Complaints, "what has no Secret shows what all hosts without one do")
}
