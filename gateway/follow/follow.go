// Package follow keeps a picture of a part of etcd: it reads all of it, then follows every change from that revision on. When the thread
// breaks (etcd was away too long, the revision was compacted) it reads all of it again.
package follow

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
	"github.com/burano/burano/internal/wait"
)

// Folder is the picture of the keys that begin with a prefix.
type Folder[T any] struct {
	etcd   *clientv3.Client
	prefix string
	decode func(key string, value []byte) (T, error)
	tell   func()
	logger *slog.Logger
	probe  time.Duration // how often etcd is asked whether it is there

	mutex   sync.Mutex
	known   bool
	answers bool // etcd did when it was asked last
	picture map[string]T
	changed map[string]bool   // keys with another value than when it was asked last
	whole   bool              // more than these has changed since then
	at      int64             // the revision of etcd of the last change of the picture
	bad     map[string]string // keys that decode refused, and why, so that each is logged once
}

// New follows nothing yet. Values that decode refuses are logged and left out; tell is called after a change, from another goroutine.
func New[T any](etcd *clientv3.Client, prefix string, decode func(key string, value []byte) (T, error), tell func(), logger *slog.Logger) *Folder[T] {
	return &Folder[T]{
		etcd: etcd, prefix: prefix, decode: decode, tell: tell, logger: logger, probe: 2 * time.Second,
		changed: make(map[string]bool), bad: make(map[string]string),
	}
}

// Changed returns the values that have changed, or are new, since its last call. whole means that this is not all: keys went, or everything was read anew.
// A picture that is taken afterwards has at least these.
func (f *Folder[T]) Changed() (list []T, whole bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for key := range f.changed {
		list = append(list, f.picture[key])
	}
	whole, f.whole = f.whole, false
	clear(f.changed)
	return list, whole
}

// Values gives the picture, in the order of keys; known is false as long as etcd was never read.
func (f *Folder[T]) Values() (list []T, known bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, key := range slices.Sorted(maps.Keys(f.picture)) {
		list = append(list, f.picture[key])
	}
	return list, f.known
}

// Revision is that of etcd when the picture changed last; Values that are asked for afterwards have this change.
func (f *Folder[T]) Revision() int64 {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.at
}

// Answers reports whether etcd answered the last request.
func (f *Folder[T]) Answers() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.answers
}

func (f *Folder[T]) note(answers bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.answers = answers
}

// Run follows etcd until the context ends.
func (f *Folder[T]) Run(ctx context.Context) {
	pause, lost := loop.FirstPause, false
	for ctx.Err() == nil {
		err := f.follow(ctx, func() {
			pause = loop.FirstPause
			f.note(true)
			if lost {
				lost = false
				f.logger.Info("etcd answers again", "following", f.prefix)
			}
		})
		if ctx.Err() != nil {
			return
		}
		f.note(false)
		if !lost {
			lost = true
			f.logger.Warn("lost etcd, trying again; everything stays as it is", "following", f.prefix, "error", err)
		}
		if wait.Pause(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, loop.LongestPause)
	}
}

// follow reads and watches until something breaks.
func (f *Folder[T]) follow(ctx context.Context, connected func()) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	reading, stop := context.WithTimeout(ctx, 5*time.Second)
	response, err := f.etcd.Get(reading, f.prefix, clientv3.WithPrefix())
	stop()
	if err != nil {
		return fmt.Errorf("read %s: %w", f.prefix, err)
	}
	connected()
	f.mutex.Lock()
	f.picture, f.known, f.at = make(map[string]T, len(response.Kvs)), true, response.Header.Revision
	f.whole = true
	for _, kv := range response.Kvs {
		f.put(string(kv.Key), kv.Value)
	}
	f.mutex.Unlock()
	f.tell()

	watch := f.etcd.Watch(ctx, f.prefix, clientv3.WithPrefix(), clientv3.WithRev(response.Header.Revision+1))
	probe := time.NewTicker(f.probe)
	defer probe.Stop()
	for {
		var news clientv3.WatchResponse
		var more bool
		select {
		case news, more = <-watch:
		case <-probe.C:
			// The client silently resumes broken watches by itself, for ever. This makes it visible.
			if err := f.alive(ctx); err != nil {
				return err
			}
			continue
		}
		if !more {
			return fmt.Errorf("watch %s: %w", f.prefix, context.Cause(ctx))
		}
		if err := news.Err(); err != nil {
			return fmt.Errorf("watch %s: %w", f.prefix, err)
		}
		if len(news.Events) == 0 {
			continue
		}
		f.mutex.Lock()
		f.at = news.Header.Revision
		for _, event := range news.Events {
			key := string(event.Kv.Key)
			if event.Type == clientv3.EventTypeDelete {
				f.drop(key)
				delete(f.bad, key)
				continue
			}
			f.put(key, event.Kv.Value)
		}
		f.mutex.Unlock()
		f.tell()
	}
}

// alive asks etcd for something small.
func (f *Folder[T]) alive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(f.probe, time.Second))
	defer cancel()
	if _, err := f.etcd.Get(ctx, f.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly()); err != nil {
		return fmt.Errorf("probe etcd: %w", err)
	}
	return nil
}

// put takes a value into the picture; one that is refused takes its key out of it.
func (f *Folder[T]) put(key string, value []byte) {
	decoded, err := f.decode(key, value)
	if err == nil {
		f.picture[key], f.changed[key] = decoded, true
		delete(f.bad, key)
		return
	}
	f.drop(key)
	if f.bad[key] != err.Error() {
		f.bad[key] = err.Error()
		f.logger.Error("a key in etcd is left alone, as it cannot be understood", "error", err)
	}
}

// drop takes a key out of the picture.
func (f *Folder[T]) drop(key string) {
	delete(f.picture, key)
	delete(f.changed, key)
	f.whole = true
}
