package gateway_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/internal/wait"
)

const (
	pollEvery   = 15 * time.Second
	pollPrefix  = "/baseline/"
	pollClients = 20                     // of each kind, beside each other
	pollAsks    = 100 * time.Millisecond // how often each asks whether its change is visible
)

// baseline works like confd with a template: every 15 seconds it reads all keys, writes HAProxy's configuration and restarts HAProxy if it
// differs. Its keys are: tcp/PORT, whose value is the address of the backend, and host/HOST, all at the port http.
type baseline struct {
	etcd     *clientv3.Client
	process  *haproxytest.Process
	http     uint16
	one, two *haproxytest.Backend

	mutex sync.Mutex
	took  map[string][]time.Duration
}

func startBaseline(b *testing.B, etcd *clientv3.Client) *baseline {
	s := &baseline{
		etcd: etcd, process: haproxytest.New(b), http: haproxytest.FreePort(b), one: haproxytest.NewBackend(b, "one"), two: haproxytest.NewBackend(b, "two"),
		took: map[string][]time.Duration{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	b.Cleanup(func() { cancel(); require.NoError(b, <-ended) })
	return s
}

func (s *baseline) run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	file, former := s.process.Config().ConfigFile, ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		found, err := s.etcd.Get(ctx, pollPrefix, clientv3.WithPrefix())
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		keys := make(map[string]string)
		for _, kv := range found.Kvs {
			keys[strings.TrimPrefix(string(kv.Key), pollPrefix)] = string(kv.Value)
		}
		text := s.render(keys)
		if text == former {
			continue
		}
		former = text
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		s.process.Stop()
		if err := s.process.Reload(ctx); err != nil {
			return err
		}
	}
}

func (s *baseline) render(keys map[string]string) string {
	var http, sections strings.Builder
	fmt.Fprintf(&http, "frontend http\n  mode http\n  bind 127.0.0.1:%d\n", s.http)
	for i, key := range slices.Sorted(maps.Keys(keys)) {
		if port, tcp := strings.CutPrefix(key, "tcp/"); tcp {
			fmt.Fprintf(&sections, "listen tcp-%s\n  bind 127.0.0.1:%s\n  server one %s check\n", port, port, keys[key])
			continue
		}
		fmt.Fprintf(&http, "  use_backend host-%d if { hdr(host) -i %s }\n", i, strings.TrimPrefix(key, "host/"))
		fmt.Fprintf(&sections, "backend host-%d\n  mode http\n  server one %s check\n", i, keys[key])
	}
	return "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n" + http.String() + sections.String()
}

// measure makes the given number of changes of each kind.
func (s *baseline) measure(b *testing.B, changes int) {
	var all sync.WaitGroup
	for _, kind := range []string{"backend", "host", "listener"} {
		for client := range pollClients {
			port := haproxytest.FreePort(b)
			all.Go(func() {
				for number := client; number < changes; number += pollClients {
					if err := s.change(b.Context(), kind, port, number, number/pollClients%2 != 0); err != nil {
						b.Errorf("the baseline's %s: %v", kind, err)
						return
					}
				}
			})
		}
	}
	all.Wait()
}

// change makes one change at a random instant between two polls, and waits until a request sees it. Every second change of a port undoes the one before.
func (s *baseline) change(ctx context.Context, kind string, port uint16, number int, back bool) error {
	if err := wait.Pause(ctx, rand.N(pollEvery)); err != nil {
		return err
	}
	key, backend, host, gone := fmt.Sprintf("%stcp/%d", pollPrefix, port), s.one, "", false
	switch kind {
	case "backend":
		if back {
			backend = s.two
		}
	case "host":
		port, host = s.http, fmt.Sprintf("host-%d.example.org", number)
		key = pollPrefix + "host/" + host
	case "listener":
		gone = back
	}
	var err error
	if gone {
		_, err = s.etcd.Delete(ctx, key)
	} else {
		_, err = s.etcd.Put(ctx, key, backend.Address.String())
	}
	if err != nil {
		return err
	}
	start := time.Now()
	err = wait.Every(pollAsks).For(5*pollEvery).Until(ctx, func(context.Context) error {
		if ask(port, host, backend.Name) == gone {
			return wait.Again(fmt.Errorf("%s is not seen", key))
		}
		return nil
	})
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.took[kind] = append(s.took[kind], time.Since(start))
	return err
}
