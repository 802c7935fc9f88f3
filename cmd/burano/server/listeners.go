package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/cmd/burano/process"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/gate"
)

const (
	// headerTime is how long the first lines of a request may take.
	headerTime = 10 * time.Second
	// idleTime is how long a connection may be without a request.
	idleTime = 2 * time.Minute
	// maxHeader is how many bytes the headers of a request have: a token of Keystone, cookies and a path are some kilobytes.
	maxHeader = 64 << 10
	// readTime is how long a client may read nothing of an answer.
	readTime = 30 * time.Second
	// metricsConnections are enough for programs that collect metrics.
	metricsConnections = 64
)

// listeners are the addresses that the server answers at.
type listeners struct {
	servers   []*http.Server
	listen    []net.Listener
	delay     time.Duration // how long the server takes requests after it was told to stop
	patience  time.Duration
	stop      func() // ends the streams; nil: there are none
	handler   *exchangeable
	begun     atomic.Bool
	encrypted bool
	log       *slog.Logger
}

// exchangeable is a handler in whose place another one can be put while it answers.
type exchangeable struct{ current atomic.Pointer[http.Handler] }

func (e *exchangeable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	(*e.current.Load()).ServeHTTP(w, r)
}

// open takes the addresses, so that one that is taken, or a bad certificate, is known before anything else begins.
func (o *Options) open(handler http.Handler, registry *prometheus.Registry, stop func(), logger *slog.Logger) (l *listeners, err error) {
	l = &listeners{delay: o.stopDelay, patience: o.stopPatience, stop: stop, handler: &exchangeable{}, log: logger}
	l.handler.current.Store(&handler)
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	encryption, err := encryptionOf(o.TLSCert, o.TLSKey, logger)
	if err != nil {
		return l, err
	}
	if err := l.add("listen", o.Listen, l.handler, encryption, gate.NewConnections(mostConnections(os.DirFS("/")))); err != nil {
		return l, err
	}
	if o.metricsListen != "" {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", api.MetricsHandler(registry))
		return l, l.add("metrics-listen", o.metricsListen, mux, nil, gate.NewConnections(metricsConnections))
	}
	return l, nil
}

// mostConnections follows from memory: a connection with half of its headers takes up to 1 MiB, and most take some kilobytes.
func mostConnections(root fs.FS) int {
	const each, least, most = 2 << 20, 2048, 8192
	return int(min(max(process.UsableMemory(root)/each, least), most))
}

// encryptionOf is how a server with this certificate encrypts; nil without one.
func encryptionOf(cert, key string, logger *slog.Logger) (*tls.Config, error) {
	if cert == "" {
		return nil, nil
	}
	certificate := &certificate{cert: cert, key: key, log: logger}
	if err := certificate.load(); err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.get, NextProtos: []string{"h2", "http/1.1"}}, nil
}

func (l *listeners) add(setting, address string, handler http.Handler, encryption *tls.Config, connections *gate.Connections) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w (the setting %s chooses another address)", address, err, setting)
	}
	listener = connections.Listen(listener)
	if encryption != nil {
		listener = tls.NewListener(listener, encryption)
	}
	l.listen = append(l.listen, listener)
	l.servers = append(l.servers, &http.Server{Handler: gate.Paced(readTime, handler), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, TLSConfig: encryption,
		ConnContext: gate.Context,
		ErrorLog:    slog.NewLogLogger(l.log.Handler(), slog.LevelDebug)}) // errors of clients before they have sent a request
	return nil
}

// begin answers with this handler from now on: the server has started.
func (l *listeners) begin(handler http.Handler) {
	l.handler.current.Store(&handler)
	l.begun.Store(true)
	l.log.Info("Burano answers", "version", version.Version, "commit", version.Commit(), "address", l.listen[0].Addr().String(), "tls", l.encrypted)
}

// leave keeps a stopping server open for the delay, while it reports that it is not ready. So balancers send no more requests before the server closes.
func (l *listeners) leave(ctx context.Context) {
	if l.delay == 0 || !l.begun.Load() {
		return
	}
	l.log.Info("the server stops; it still takes requests for a while", "for", l.delay)
	handler := api.Leaving(*l.handler.current.Load())
	l.handler.current.Store(&handler)
	_ = wait.Pause(ctx, l.delay) // whatever ends it, the server ends
}

// serve answers requests until told ends and the server has left; then it lets requests and tasks end. The context of work ends when no more requests are
// taken.
func (l *listeners) serve(told context.Context, work func(context.Context) error) error {
	l.encrypted = l.servers[0].TLSConfig != nil // a server that serves changes its own
	answering, end := context.WithCancel(context.WithoutCancel(told))
	defer end()
	group, ctx := errgroup.WithContext(answering)
	defer context.AfterFunc(told, func() {
		l.leave(ctx)
		end()
	})()
	group.Go(func() error { return work(ctx) })
	if l.stop != nil {
		defer context.AfterFunc(ctx, l.stop)()
	}
	for i, server := range l.servers {
		group.Go(func() error {
			if err := server.Serve(l.listen[i]); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done()
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.patience)
			defer cancel()
			if err := server.Shutdown(ending); err != nil {
				l.log.Warn("requests were cut off, because they had not ended when the server was to stop", "after", l.patience)
				return server.Close()
			}
			return nil
		})
	}
	return group.Wait()
}

func (l *listeners) close() error {
	var errs []error
	for _, listener := range l.listen {
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}

// certificate is a certificate in files, which are read again when they have changed: certificates are renewed while servers run.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mutex   sync.Mutex
	current *tls.Certificate
	changed time.Time // of the newer file
	looked  time.Time
}

// lookAgain is how often at most the files are looked at.
const lookAgain = time.Second

func (c *certificate) load() error {
	changed, err := c.change()
	if err != nil {
		return err
	}
	loaded, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read the certificate %s with the key %s: %w", c.cert, c.key, err)
	}
	c.current, c.changed = &loaded, changed
	return nil
}

func (c *certificate) change() (newest time.Time, err error) {
	for _, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return newest, fmt.Errorf("read the certificate: %w", err)
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest, nil
}

// get is for tls.Config. Files that cannot be used leave the former certificate in use: one of the two may be written just now.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if time.Since(c.looked) < lookAgain {
		return c.current, nil
	}
	c.looked = time.Now()
	if changed, err := c.change(); err == nil && changed.Equal(c.changed) {
		return c.current, nil
	}
	if err := c.load(); err != nil {
		c.log.Warn("the renewed certificate cannot be used; the former one stays in use", "error", err)
	} else {
		c.log.Info("the certificate was renewed", "file", c.cert)
	}
	return c.current, nil
}
