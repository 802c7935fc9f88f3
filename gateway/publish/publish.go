package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	networking "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/burano/burano/gateway/follow"
	"github.com/burano/burano/gateway/loop"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/wait"
)

// Config has the source of Services and the destination of routes.
//
// In Kubernetes the publisher needs: get, list, watch on services, on endpointslices.discovery.k8s.io, on ingresses.networking.k8s.io, on
// ingressclasses.networking.k8s.io and on secrets, of which it requests only the type kubernetes.io/tls; patch on services/status and on
// ingresses.networking.k8s.io/status; create and patch on events. Without the rights for Ingresses it still publishes Services. Of
// gateway.networking.k8s.io it reads gatewayclasses, gateways, listenersets, httproutes, grpcroutes, tcproutes, tlsroutes, udproutes, backendtlspolicies and referencegrants, as it does
// namespaces, and updates the statuses of all but the last; it gets, lists and watches the configmaps that these name. Without these kinds, or rights, it
// publishes Services and Ingresses. For Gateways with labels or annotations of their infrastructure it creates, updates and deletes services.
type Config struct {
	Kubernetes *rest.Config
	Etcd       *clientv3.Client
	Logger     *slog.Logger
	Coalesce   time.Duration // how long changes are gathered before they are written; 10 ms
	Resync     time.Duration // interval of reading etcd again, should routes there have been changed by others; 30 s
	// Guard gives conditions that every write depends on, such as that this publisher still leads. Nil: none.
	Guard func() []clientv3.Cmp
}

// writeTimeout is the time limit of one pass over everything, with its writes.
const writeTimeout = 10 * time.Second

// Run publishes until the context ends, which is its only reason to return nil. When Kubernetes or etcd is not there it goes on trying;
// until then the routes stay as they are.
func Run(ctx context.Context, c Config) error {
	c.Coalesce = cmp.Or(c.Coalesce, 10*time.Millisecond)
	c.Resync = cmp.Or(c.Resync, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	config := rest.CopyConfig(c.Kubernetes)
	config.QPS, config.Burst = 50, 100 // many complaints at once must not hold routes up
	config.UserAgent = component
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("publish: use the Kubernetes API: %w", err)
	}
	if !awaitKubernetes(ctx, client, c.Logger) {
		return nil
	}

	p := &publisher{
		config:     c,
		store:      &store{etcd: c.Etcd, guard: c.Guard, logger: c.Logger},
		complainer: newComplainer(client, c.Logger, time.Now),
		statuses:   &statuses{client: client, now: time.Now},
		changed:    make(chan struct{}, 1),
	}
	p.wake = loop.Waker(p.changed)
	p.gateways = follow.New(c.Etcd, route.GatewaysPrefix, route.DecodeGateway, p.wake, c.Logger)
	p.services = informerOf(client.CoreV1().RESTClient(), "services", &core.Service{}, fields.Everything())
	p.slices = informerOf(client.DiscoveryV1().RESTClient(), "endpointslices", &discovery.EndpointSlice{}, fields.Everything())
	p.ingresses = informerOf(client.NetworkingV1().RESTClient(), "ingresses", &networking.Ingress{}, fields.Everything())
	p.classes = informerOf(client.NetworkingV1().RESTClient(), "ingressclasses", &networking.IngressClass{}, fields.Everything())
	p.secrets = informerOf(client.CoreV1().RESTClient(), "secrets", &core.Secret{}, fields.OneTermEqualSelector("type", string(core.SecretTypeTLS)))
	namespaces := informerOf(client.CoreV1().RESTClient(), "namespaces", &core.Namespace{}, fields.Everything())
	if p.gatewayAPI, err = newGatewayClient(config, namespaces, time.Now); err != nil {
		return fmt.Errorf("publish: use Gateway API: %w", err)
	}
	watched := map[string]cache.SharedIndexInformer{
		"services": p.services, "endpointslices": p.slices, "ingresses": p.ingresses, "ingressclasses": p.classes, "secrets": p.secrets, "namespaces": namespaces,
	}
	maps.Copy(watched, p.gatewayAPI.informers())
	p.keys = follow.New(c.Etcd, route.KeysPrefix, route.DecodeKey, p.wake, c.Logger)
	for what, informer := range watched {
		if err := p.watch(what, informer); err != nil {
			return fmt.Errorf("publish: watch %s: %w", what, err)
		}
	}
	var followed sync.WaitGroup
	p.configMaps = &configMaps{ctx: ctx, client: client.CoreV1().RESTClient(), watch: p.watch, wake: p.wake, running: make(map[types.NamespacedName]followedMap), group: &followed}
	followed.Go(func() { p.gateways.Run(ctx) })
	followed.Go(func() { p.keys.Run(ctx) })
	defer followed.Wait()
	for _, informer := range watched {
		followed.Go(func() { informer.RunWithContext(ctx) })
	}
	// Ingresses wait for their dependencies, and Services do not wait for Ingresses.
	followed.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), p.ingresses.HasSynced, p.classes.HasSynced, p.secrets.HasSynced) {
			p.wake()
		}
	})
	followed.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), p.gatewayAPI.synced()...) {
			p.wake()
		}
	})
	// Nothing is written before both are known: with half of the picture routes would be deleted that are needed.
	if !cache.WaitForCacheSync(ctx.Done(), p.services.HasSynced, p.slices.HasSynced) {
		return nil
	}
	p.loop(ctx)
	return nil
}

// informerOf watches a kind in all namespaces. The factory of client-go would bring informers of all kinds into the program.
func informerOf(client rest.Interface, resource string, one runtime.Object, which fields.Selector) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(cache.NewListWatchFromClient(client, resource, meta.NamespaceAll, which), one, 0, nil)
}

type publisher struct {
	config     Config
	services   cache.SharedIndexInformer
	slices     cache.SharedIndexInformer
	ingresses  cache.SharedIndexInformer
	classes    cache.SharedIndexInformer
	secrets    cache.SharedIndexInformer
	store      *store
	complainer *complainer
	statuses   *statuses
	gatewayAPI *gatewayClient
	configMaps *configMaps
	gateways   *follow.Folder[route.Gateway]
	keys       *follow.Folder[route.PublicKey]
	changed    chan struct{}
	wake       func() // lets the loop reconcile
	memory     memory
	state      string // the last logged state
}

// watch has changes wake the loop, and failures logged.
func (p *publisher) watch(what string, informer cache.SharedIndexInformer) error {
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { p.wake() },
		UpdateFunc: func(any, any) { p.wake() },
		DeleteFunc: func(any) { p.wake() },
	}); err != nil {
		return err
	}
	return informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			return // a kind of Gateway API that is not there
		}
		p.config.Logger.Warn("lost the Kubernetes API, trying again; routes stay as they are", "watching", what, "error", err)
	})
}

// loop writes changes.
func (p *publisher) loop(ctx context.Context) {
	p.wake()
	loop.Run(ctx, loop.Config{Changed: p.changed, Coalesce: p.config.Coalesce, Resync: p.config.Resync}, func(ctx context.Context, resync bool) bool {
		if resync {
			p.store.known = nil
		}
		err := p.publish(ctx)
		if err != nil && ctx.Err() == nil {
			p.report(err)
		}
		return err == nil
	})
}

// publish applies the present state of Kubernetes to etcd, Events and statuses. Complaints and statuses wait behind the routes.
func (p *publisher) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	services, endpoints := objects[*core.Service](p.services), objects[*discovery.EndpointSlice](p.slices)
	published, held, err := p.store.holds(ctx)
	if err != nil {
		return err
	}
	sites := p.sites(services, endpoints, held)
	wanted := sorted(held) // as long as Ingresses are not known, their ports stay
	if sites != nil {
		wanted = sites.wanted
	}
	var datagrams map[uint16]route.UDP
	if sites != nil && !sites.partial {
		datagrams = sites.udp
	} else {
		datagrams = p.store.heldUDP() // so do UDP ports as long as Gateways are not known
	}
	given := share(services, endpoints, published, wishes{listeners: wanted, udp: datagrams}, p.memory)
	p.memory = given.memory
	routes, complaints := given.routes, given.complaints
	if sites != nil {
		sites.assignPorts(given.listeners, given.conflicts)
		sites.udpConflicts = given.udpConflicts
	}
	keys, known := p.keys.Values()
	if known && keys == nil {
		keys = []route.PublicKey{}
	}
	if err := p.store.write(ctx, routes, udpPorts(given.udp, datagrams, given.udpWon), sites, keys); err != nil {
		return err
	}
	if sites != nil {
		complaints = append(complaints, sites.Complaints...)
	}
	routes = slices.Concat(routes, given.udp)
	if p.state != "publishing" {
		p.state = "publishing"
		p.config.Logger.Info("publishing", "services", len(services), "routes", len(routes))
	}
	more, err := p.complainer.report(ctx, complaints)
	if more && err == nil {
		p.wake()
	}
	if gateways, known := p.gateways.Values(); known {
		err = errors.Join(err, p.statuses.write(ctx, services, routes, complaints, gateways))
		if sites != nil {
			err = errors.Join(err, p.statuses.writeIngresses(ctx, objects[*networking.Ingress](p.ingresses), sites, gateways))
			if !sites.partial {
				err = errors.Join(err, p.gatewayAPI.write(ctx, sites, gateways), p.statuses.writeInfrastructure(ctx, sites, services, addressesOf(gateways), time.Now()))
			}
		}
	}
	return err
}

// sites returns the sites of Ingresses, nil while they are unknown. Their port stays theirs as long as one of them wants it.
func (p *publisher) sites(services []*core.Service, endpoints []*discovery.EndpointSlice, held map[uint16]route.Listener) *Sites {
	gateways, known := p.gateways.Values()
	if !known || !p.ingresses.HasSynced() || !p.classes.HasSynced() || !p.secrets.HasSynced() {
		return nil
	}
	w := World{
		Ingresses: objects[*networking.Ingress](p.ingresses), Classes: objects[*networking.IngressClass](p.classes), Services: services, EndpointSlices: endpoints,
		Secrets: objects[*core.Secret](p.secrets), GatewayAPI: p.gatewayAPI.world(), Gateways: gateways,
	}
	if w.GatewayAPI != nil {
		var known bool
		if w.ConfigMaps, known = p.configMaps.of(authoritiesOf(w.GatewayAPI)); !known {
			w.GatewayAPI = nil // until they are read, the served state stays
		}
	}
	sites := SitesOf(w)
	if sites.partial {
		sites.keep(held)
	}
	for i, l := range sites.wanted {
		if has, before := held[l.Port]; before && has.Since.Before(l.Since) {
			sites.wanted[i].Since = has.Since
		}
	}
	return &sites
}

// keep lets Gateways keep their ports while their listeners are unknown.
func (s *Sites) keep(held map[uint16]route.Listener) {
	for _, l := range sorted(held) {
		switch i := slices.IndexFunc(s.wanted, func(w route.Listener) bool { return w.Port == l.Port }); {
		case i >= 0 && s.wanted[i].TLS == l.TLS:
			s.wanted[i].Passes, s.wanted[i].Names, s.wanted[i].Gateways, s.wanted[i].Checks = l.Passes, l.Names, l.Gateways, l.Checks
		case i < 0 && l.NoIngress:
			s.wanted = append(s.wanted, l)
		}
	}
}

func sorted(listeners map[uint16]route.Listener) []route.Listener {
	list := make([]route.Listener, 0, len(listeners))
	for _, port := range slices.Sorted(maps.Keys(listeners)) {
		list = append(list, listeners[port])
	}
	return list
}

// objects lists the objects of an informer.
func objects[T any](informer cache.SharedIndexInformer) []T {
	stored := informer.GetStore().List()
	list := make([]T, 0, len(stored))
	for _, object := range stored {
		if o, ok := object.(T); ok {
			list = append(list, o)
		}
	}
	return list
}

// report logs a failure when it is another one than before.
func (p *publisher) report(err error) {
	if p.state == err.Error() {
		return
	}
	p.state = err.Error()
	p.config.Logger.Warn("cannot publish, trying again", "error", err)
}

// awaitKubernetes asks until the API answers. Informers would find that out too, but at the start of a cluster with pauses that grow too long.
func awaitKubernetes(ctx context.Context, client kubernetes.Interface, logger *slog.Logger) bool {
	logged := false
	for {
		_, err := client.Discovery().ServerVersion()
		if err == nil {
			return true
		}
		if !logged {
			logged = true
			logger.Info("waiting for the Kubernetes API", "error", err)
		}
		if wait.Pause(ctx, loop.FirstPause) != nil {
			return false
		}
	}
}
