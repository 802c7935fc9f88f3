package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/loop"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/wait"
)

// watcher keeps a picture of the routes in etcd: it reads all of them, then follows every change from that revision on. When the
// thread breaks (etcd was away too long, the revision was compacted) it reads all of them again.
type watcher struct {
	etcd    *clientv3.Client
	logger  *slog.Logger
	probe   time.Duration // how often etcd is asked whether it is there
	changed chan struct{} // receives after a change; several changes may be one receipt

	mutex   sync.Mutex
	known   bool
	picture map[string]route.Route
	bad     map[string]string // keys that are no routes, and why, so that each is logged once
}

func newWatcher(etcd *clientv3.Client, logger *slog.Logger) *watcher {
	return &watcher{etcd: etcd, logger: logger, probe: 2 * time.Second, changed: make(chan struct{}, 1), bad: make(map[string]string)}
}

// routes gives the picture, in the order of keys; known is false as long as etcd was never read.
func (w *watcher) routes() (list []route.Route, known bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, key := range slices.Sorted(maps.Keys(w.picture)) {
		list = append(list, w.picture[key])
	}
	return list, w.known
}

// run follows etcd until the context ends.
func (w *watcher) run(ctx context.Context) {
	pause, lost := loop.FirstPause, false
	for ctx.Err() == nil {
		err := w.follow(ctx, func() {
			pause = loop.FirstPause
			if lost {
				lost = false
				w.logger.Info("etcd answers again")
			}
		})
		if ctx.Err() != nil {
			return
		}
		if !lost {
			lost = true
			w.logger.Warn("lost etcd, trying again; routes stay as they are", "error", err)
		}
		if wait.Pause(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, loop.LongestPause)
	}
}

// follow reads and watches until something breaks.
func (w *watcher) follow(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	reading, stop := context.WithTimeout(ctx, 5*time.Second)
	response, err := w.etcd.Get(reading, route.RoutesPrefix, clientv3.WithPrefix())
	stop()
	if err != nil {
		return fmt.Errorf("read routes: %w", err)
	}
	connected()
	w.mutex.Lock()
	w.picture, w.known = make(map[string]route.Route, len(response.Kvs)), true
	for _, kv := range response.Kvs {
		w.put(string(kv.Key), kv.Value)
	}
	w.mutex.Unlock()
	w.wake()

	watch := w.etcd.Watch(ctx, route.RoutesPrefix, clientv3.WithPrefix(), clientv3.WithRev(response.Header.Revision+1))
	probe := time.NewTicker(w.probe)
	defer probe.Stop()
	for {
		var news clientv3.WatchResponse
		var more bool
		select {
		case news, more = <-watch:
		case <-probe.C:
			// The client takes broken watches up again by itself, silently and for ever. Somebody should know.
			if err := w.alive(ctx); err != nil {
				return err
			}
			continue
		}
		if !more {
			return fmt.Errorf("watch routes: %w", context.Cause(ctx))
		}
		if err := news.Err(); err != nil {
			return fmt.Errorf("watch routes: %w", err)
		}
		if len(news.Events) == 0 {
			continue
		}
		w.mutex.Lock()
		for _, event := range news.Events {
			key := string(event.Kv.Key)
			if event.Type == clientv3.EventTypeDelete {
				delete(w.picture, key)
				delete(w.bad, key)
				continue
			}
			w.put(key, event.Kv.Value)
		}
		w.mutex.Unlock()
		w.wake()
	}
}

// alive asks etcd for something small.
func (w *watcher) alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(w.probe, time.Second))
	defer cancel()
	if _, err := w.etcd.Get(ctx, route.RoutesPrefix, clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("probe etcd: %w", err)
	}
	return nil
}

// put takes a value into the picture; one that is no route takes its key out of it.
func (w *watcher) put(key string, value []byte) {
	r, err := route.Decode(key, value)
	if err == nil {
		w.picture[key] = r
		delete(w.bad, key)
		return
	}
	delete(w.picture, key)
	if w.bad[key] != err.Error() {
		w.bad[key] = err.Error()
		w.logger.Error("a key in etcd is no route and is left alone", "error", err)
	}
}

func (w *watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}
