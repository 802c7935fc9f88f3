package publish

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/burano/burano/gateway/route"
)

// maxOperations is how many keys one transaction changes; etcd's default limit is 128, conditions counted separately.
const maxOperations = 100

// store is the routes in etcd. It remembers what it read and wrote, so that only what changed is written; somebody else's write is
// noticed by the conditions of the transaction.
type store struct {
	etcd   *clientv3.Client
	guard  func() []clientv3.Cmp
	logger *slog.Logger
	known  map[string]known // nil: to be read first
	served map[types.NamespacedName]bool
}

// known is a key as it is in etcd.
type known struct {
	value    string
	revision int64 // of its last change
}

var errOverwritten = errors.New("somebody else changed the routes at the same time, or leads now")

// services are those of which etcd holds routes.
func (s *store) services(ctx context.Context) (map[types.NamespacedName]bool, error) {
	if s.known == nil {
		if err := s.read(ctx); err != nil {
			return nil, err
		}
	}
	return s.served, nil
}

func servicesOf(routes []route.Route) map[types.NamespacedName]bool {
	served := make(map[types.NamespacedName]bool, len(routes))
	for _, r := range routes {
		served[types.NamespacedName{Namespace: r.Namespace, Name: r.Service}] = true
	}
	return served
}

// write makes etcd hold exactly these routes.
func (s *store) write(ctx context.Context, routes []route.Route) error {
	if s.known == nil {
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	wanted := make(map[string]string, len(routes))
	for _, r := range routes {
		value, err := route.Encode(r)
		if err != nil {
			s.logger.Error("a route is left out", "route", r.String(), "error", err)
			continue
		}
		wanted[route.Key(r)] = string(value)
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
	for keys := range slices.Chunk(differing, maxOperations) {
		if err := s.commit(ctx, keys, wanted); err != nil {
			s.known = nil
			return err
		}
	}
	s.served = servicesOf(routes)
	return nil
}

func (s *store) read(ctx context.Context) error {
	response, err := s.etcd.Get(ctx, route.RoutesPrefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read routes from etcd: %w", err)
	}
	s.known = make(map[string]known, len(response.Kvs))
	var routes []route.Route
	for _, kv := range response.Kvs {
		if r, err := route.Decode(string(kv.Key), kv.Value); err == nil {
			routes = append(routes, r)
		}
		s.known[string(kv.Key)] = known{value: string(kv.Value), revision: kv.ModRevision}
	}
	s.served = servicesOf(routes)
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
		s.logger.Info("route written", "port", strings.TrimPrefix(key, route.RoutesPrefix), "published", stays)
	}
	s.known = after
	return nil
}
