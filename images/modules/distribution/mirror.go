package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
)

const (
	// lookEvery is how often the room of a mirror is looked at, and whether the registry that it has its images from answers.
	lookEvery = 10 * time.Second
	// keep is how long a mirror caches an image.
	keep = 7 * 24 * time.Hour
	// A mirror leaves a tenth of the volume, at most this many bytes, to users' images.
	spare = 2 << 30
)

// mirrorOptions describe a mirror: a registry to read from, which fetches its images from another one, and caches them for a week.
type mirrorOptions struct {
	Of      string `json:"of"`      // URL of the other one, without /v2
	Address string `json:"address"` // where it listens
	Folder  string `json:"folder"`  // of its cache, and of nothing else
	Bytes   int64  `json:"bytes"`   // how many it keeps at most
}

// mirror is the served mirror: distribution's proxy, which starts only when the other registry answers. When its cache is too large, it restarts empty.
// Requests meanwhile are refused, so that clients ask another mirror.
type mirror struct {
	options mirrorOptions
	keep    time.Duration
	proxy   atomic.Pointer[handlers.App] // nil: there is none now
	why     string                       // the last logged reason why it does not serve
}

// serve listens with this certificate until something fails.
func (o mirrorOptions) serve(ctx context.Context, certificate, key string) error {
	transport, is := http.DefaultTransport.(*http.Transport) // of distribution's proxy
	if !is {
		return fmt.Errorf("requests go by a %T", http.DefaultTransport)
	}
	transport.DialContext = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	transport.ResponseHeaderTimeout = 20 * time.Second
	m := &mirror{options: o, keep: keep}
	go func() {
		for ok := true; ok; ok = pause(ctx, lookEvery) {
			m.look(ctx)
		}
	}()
	server := &http.Server{Addr: o.Address, Handler: m, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ReadHeaderTimeout: time.Minute, IdleTimeout: 5 * time.Minute}
	return fmt.Errorf("serve the mirror: %w", server.ListenAndServeTLS(certificate, key))
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	proxy := m.proxy.Load()
	if proxy == nil {
		http.Error(w, "the mirror of "+m.options.Of+" does not serve at the moment", http.StatusServiceUnavailable)
		return
	}
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		http.Error(w, "a mirror can be read only", http.StatusMethodNotAllowed)
		return
	}
	proxy.ServeHTTP(w, request)
}

// look starts the mirror when possible, and restarts it empty when its cache is too large.
func (m *mirror) look(ctx context.Context) {
	full, err := m.full()
	if err != nil {
		log.Printf("the room of the mirror: %v", err)
		return
	}
	if full {
		if proxy := m.proxy.Swap(nil); proxy != nil {
			log.Printf("the mirror begins anew: it had more than its room")
			_ = proxy.Shutdown()
		}
		if err := os.RemoveAll(m.options.Folder); err != nil {
			log.Printf("empty the mirror: %v", err)
			return
		}
		if full, err = m.full(); full || err != nil {
			return // others need the volume
		}
	}
	if m.proxy.Load() == nil {
		why := ""
		if err := m.begin(ctx); err != nil {
			why = err.Error()
		}
		if why != m.why && why != "" {
			log.Printf("the mirror does not serve yet: %s", why)
		}
		m.why = why
	}
}

// full reports whether the cache is too large.
func (m *mirror) full() (bool, error) {
	if err := os.MkdirAll(m.options.Folder, 0o700); err != nil {
		return false, err
	}
	var volume syscall.Statfs_t
	if err := syscall.Statfs(m.options.Folder, &volume); err != nil {
		return false, err
	}
	size := uint64(volume.Bsize)
	if volume.Bavail*size < min(volume.Blocks*size/10, spare) {
		return true, nil
	}
	var kept int64
	err := filepath.WalkDir(m.options.Folder, func(_ string, entry fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && entry.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		if file, err := entry.Info(); err == nil {
			kept += file.Size()
		}
		return nil
	})
	return kept > m.options.Bytes, err
}

// begin has distribution's proxy serve. It asks the other registry when it begins, and panics where that does not answer.
func (m *mirror) begin(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		if failure := recover(); failure != nil {
			cancel()
			err = fmt.Errorf("%v", failure)
		}
	}()
	config := &configuration.Configuration{
		Storage: configuration.Storage{"filesystem": {"rootdirectory": m.options.Folder}, "delete": {"enabled": true}},
		Proxy:   configuration.Proxy{RemoteURL: m.options.Of, TTL: &m.keep},
	}
	m.proxy.Store(handlers.NewApp(ctx, config))
	return nil
}
