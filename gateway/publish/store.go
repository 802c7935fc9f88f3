package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/seal"
)

// maxOperations is how many keys one transaction changes; etcd's default limit is 128, conditions counted separately.
const maxOperations = 100

// maxBytes is how much one transaction writes, if it has more than one key; etcd's default limit is 1.5 MiB.
const maxBytes = 512 << 10

// maxValue is how long one value may be: etcd takes no longer requests, and one that it refuses would keep all others from being written.
const maxValue = 1400 << 10

// transactions parts keys so that etcd takes each part at once.
func transactions(keys []string, wanted map[string]string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		begin, size := 0, 0
		for i, key := range keys {
			size += len(key) + len(wanted[key])
			if i > begin && (i-begin == maxOperations || size > maxBytes) {
				if !yield(keys[begin:i]) {
					return
				}
				begin, size = i, len(key)+len(wanted[key])
			}
		}
		if begin < len(keys) {
			yield(keys[begin:])
		}
	}
}

// prefixes are the store's prefixes.
var prefixes = []string{route.RoutesPrefix, route.UDPPrefix, route.HTTPPrefix, route.CertificatesPrefix}

// store is the routes and certificates in etcd. It remembers its reads and writes, so that it writes only changes; it notices writes of others by the
// conditions of the transaction.
type store struct {
	etcd   *clientv3.Client
	guard  func() []clientv3.Cmp
	logger *slog.Logger
	known  map[string]known // nil: to be read first
	served map[types.NamespacedName]bool
	// How routes that were wanted last are written, by their keys.
	encoded map[string]encoded
}

type encoded struct {
	route route.Route
	value string
}

// known is a key as it is in etcd.
type known struct {
	value    string
	revision int64 // of its last change
}

var errOverwritten = errors.New("somebody else changed the routes at the same time, or leads now")

// holds returns the content of etcd.
func (s *store) holds(ctx context.Context) (services map[types.NamespacedName]bool, listeners map[uint16]route.Listener, err error) {
	if s.known == nil {
		if err := s.read(ctx); err != nil {
			return nil, nil, err
		}
	}
	listeners = make(map[uint16]route.Listener)
	for key, has := range s.known {
		if !strings.HasPrefix(key, route.ListenersPrefix) && !strings.HasPrefix(key, route.CheckedPrefix) {
			continue
		}
		if part, err := route.DecodePart(key, []byte(has.value)); err == nil {
			listeners[part.Listener.Port] = *part.Listener
		}
	}
	return s.served, listeners, nil
}

// heldUDP are the UDP ports in etcd that UDPRoutes have. It is called after holds.
func (s *store) heldUDP() map[uint16]route.UDP {
	held := make(map[uint16]route.UDP)
	for key, has := range s.known {
		if !strings.HasPrefix(key, route.UDPPrefix) {
			continue
		}
		if u, err := route.DecodeUDP(key, []byte(has.value)); err == nil && len(u.Flows) > 0 && u.Flows[0].Kind == route.KindUDPRoute {
			held[u.Port] = u
		}
	}
	return held
}

func servicesOf(routes []route.Route) map[types.NamespacedName]bool {
	served := make(map[types.NamespacedName]bool, len(routes))
	for _, r := range routes {
		served[types.NamespacedName{Namespace: r.Namespace, Name: r.Service}] = true
	}
	return served
}

// write makes etcd hold exactly these routes, UDP ports, sites and certificates. Without sites (nil) the present ones stay, and so do certificates without keys (nil)
// of gateways, for which they are sealed. It is called after holds.
func (s *store) write(ctx context.Context, routes []route.Route, datagrams []route.UDP, sites *Sites, keys []route.PublicKey) error {
	wanted := make(map[string]string, len(routes))
	before := s.encoded
	s.encoded = make(map[string]encoded, len(routes))
	for _, r := range routes {
		key := route.Key(r)
		one, known := before[key]
		if !known || !one.route.Equal(r) {
			value, err := route.Encode(r)
			if err != nil {
				s.logger.Error("a route is left out", "route", r.String(), "error", err)
				continue
			}
			one = encoded{route: r, value: string(value)}
		}
		s.encoded[key], wanted[key] = one, one.value
	}
	for _, u := range datagrams {
		value, err := route.EncodeUDP(u)
		if err == nil && len(value) > maxValue {
			err = fmt.Errorf("it has %d bytes, and etcd takes %d", len(value), maxValue)
		}
		if err != nil {
			s.logger.Error("a UDP port is left out", "port", u.Port, "error", err)
			continue
		}
		wanted[route.UDPKey(u)] = string(value)
	}
	stay := func(prefix string) {
		for key, has := range s.known {
			if _, decided := wanted[key]; !decided && strings.HasPrefix(key, prefix) {
				wanted[key] = has.value
			}
		}
	}
	if sites == nil {
		stay(route.HTTPPrefix)
	} else {
		for _, part := range sites.Parts() {
			value, err := sites.encode(part)
			if err != nil {
				s.logger.Error("a site is left out", "key", route.PartKey(part), "error", err)
				continue
			}
			wanted[route.PartKey(part)] = string(value)
		}
		if sites.partial {
			s.keepKinds(stay)
			stay(route.AuthoritiesPrefix)
		}
	}
	if sites == nil || keys == nil {
		stay(route.CertificatesPrefix)
	} else if err := s.seal(wanted, sites.Certificates, keys); err != nil {
		return err
	}
	var differing []string
	for key := range s.known {
		if _, stays := wanted[key]; !stays {
			differing = append(differing, key)
		}
	}
	for key, value := range wanted {
		if has, exists := s.known[key]; !exists || has.value != value {
			differing = append(differing, key)
		}
	}
	slices.Sort(differing)
	for keys := range transactions(differing, wanted) {
		if err := s.commit(ctx, keys, wanted); err != nil {
			s.known = nil
			return err
		}
	}
	s.served = servicesOf(routes)
	return nil
}

// encode returns the value of a part. A site of an Ingress with rules, which cannot be written, is closed: without it, other paths would get its requests.
func (s *Sites) encode(part route.Part) ([]byte, error) {
	value, err := fitting(part)
	if err == nil || part.Site == nil || part.Site.Kind != "" || !slices.ContainsFunc(part.Site.Paths, func(p route.Path) bool { return len(p.Rules) > 0 }) {
		return value, err
	}
	closed := *part.Site
	closed.Paths = slices.Clone(part.Site.Paths)
	for i, p := range closed.Paths {
		rule := route.Rule{Targets: []route.Target{{Weight: 1, Filters: &route.Filters{Status: http.StatusServiceUnavailable}}}}
		if len(p.Rules) > 0 && p.Rules[0].Match != nil && p.Rules[0].Match.Regex != "" {
			rule.Match = &route.Match{Regex: p.Rules[0].Match.Regex}
		}
		closed.Paths[i].Rules = []route.Rule{rule}
	}
	for _, ingress := range s.ours {
		if ingress.Namespace == closed.Namespace && ingress.Name == closed.Ingress {
			s.Complaints = append(s.Complaints, ingressComplaint(ingress, ReasonRefused, "requests are answered with 503, because gateways cannot read the rules of all paths: %v. Make several Ingresses of it.", err))
		}
	}
	part.Site = &closed
	return fitting(part)
}

// fitting is the value of a part that etcd takes.
func fitting(part route.Part) ([]byte, error) {
	value, err := route.EncodePart(part)
	if err == nil && len(value) > maxValue {
		err = fmt.Errorf("it has %d bytes, and etcd takes %d", len(value), maxValue)
	}
	return value, err
}

// keepKinds keeps the sites of Gateway API, with their references.
func (s *store) keepKinds(stay func(prefix string)) {
	for key, has := range s.known {
		if !strings.HasPrefix(key, route.KindsPrefix) {
			continue
		}
		stay(key)
		part, err := route.DecodePart(key, []byte(has.value))
		if err != nil {
			continue
		}
		for name := range poolsOf([]route.Site{*part.Site}) {
			stay(route.PoolsPrefix + name)
		}
		for name := range part.Site.Secrets() {
			for sealed := range s.known {
				if strings.HasPrefix(sealed, route.CertificatesPrefix) && strings.HasSuffix(sealed, "/"+name) {
					stay(sealed)
				}
			}
		}
	}
}

// seal seals each certificate for each gateway. Certificates in etcd are not sealed anew.
func (s *store) seal(wanted map[string]string, certificates map[types.NamespacedName][]byte, keys []route.PublicKey) error {
	for _, gateway := range keys {
		for name, content := range certificates {
			sum := sha256.Sum256(append(gateway.Public[:], content...))
			one := route.Sealed{Gateway: gateway.Gateway, Namespace: name.Namespace, Secret: name.Name, Digest: hex.EncodeToString(sum[:])}
			key := route.SealedKey(one)
			if has, err := route.DecodeSealed(key, []byte(s.known[key].value)); err == nil && has.Digest == one.Digest {
				wanted[key] = s.known[key].value
				continue
			}
			var err error
			if one.Box, err = seal.Close(gateway.Public, content); err != nil {
				return fmt.Errorf("seal a certificate for %s: %w", gateway.Gateway, err)
			}
			value, err := route.EncodeSealed(one)
			if err != nil {
				return err
			}
			wanted[key] = string(value)
		}
	}
	return nil
}

func (s *store) read(ctx context.Context) error {
	all := make(map[string]known)
	var routes []route.Route
	for _, prefix := range prefixes {
		response, err := s.etcd.Get(ctx, prefix, clientv3.WithPrefix())
		if err != nil {
			return fmt.Errorf("read routes from etcd: %w", err)
		}
		for _, kv := range response.Kvs {
			if r, err := route.Decode(string(kv.Key), kv.Value); err == nil {
				routes = append(routes, r)
			}
			all[string(kv.Key)] = known{value: string(kv.Value), revision: kv.ModRevision}
		}
	}
	s.known, s.served = all, servicesOf(routes)
	return nil
}

// commit changes some keys in one transaction, if they are still as known.
func (s *store) commit(ctx context.Context, keys []string, wanted map[string]string) error {
	var conditions []clientv3.Cmp
	if s.guard != nil {
		conditions = s.guard()
	}
	var operations []clientv3.Op
	after := maps.Clone(s.known)
	for _, key := range keys {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", s.known[key].revision))
		if value, stays := wanted[key]; stays {
			operations = append(operations, clientv3.OpPut(key, value))
		} else {
			operations = append(operations, clientv3.OpDelete(key))
			delete(after, key)
		}
	}
	response, err := s.etcd.Txn(ctx).If(conditions...).Then(operations...).Commit()
	if err != nil {
		return fmt.Errorf("write routes to etcd: %w", err)
	}
	if !response.Succeeded {
		return fmt.Errorf("write routes to etcd: %w", errOverwritten)
	}
	for _, key := range keys {
		value, stays := wanted[key]
		if stays {
			after[key] = known{value: value, revision: response.Header.Revision}
		}
		s.logger.Info("route written", "key", strings.TrimPrefix(key, route.Prefix), "published", stays)
	}
	s.known = after
	return nil
}
