// Package outward lets nodes without access to the outside reach some hosts through a master: it is a proxy for HTTP, by CONNECT and by whole URLs, over
// TLS, for clients that show a certificate.
package outward

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	dialPatience   = 15 * time.Second
	headerPatience = 30 * time.Second
)

// Config has the allowed clients and hosts.
type Config struct {
	Listener net.Listener // of TCP; closed when Run returns
	// TLS has the certificate that is shown, and the authorities of clients' certificates.
	TLS *tls.Config
	// Client is the common name of the certificates that clients show.
	Client string
	// Hosts are the allowed destinations: names, domains with a dot in front for all names below them, and addresses, each with a port (host:443) or for
	// all ports.
	Hosts []string
	// Closed are addresses that no client reaches, whatever name they have.
	Closed []netip.Prefix
	Logger *slog.Logger
}

// Own returns the addresses of the machine itself, and of services for it only, such as the cloud's metadata.
func Own() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
		netip.MustParsePrefix("::/127"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
	}
}

// Run serves until ctx ends; connections that are open then are closed.
func Run(ctx context.Context, config Config) error {
	trust := config.TLS.Clone()
	trust.ClientAuth, trust.MinVersion, trust.NextProtos = tls.RequireAndVerifyClientCert, tls.VersionTLS12, []string{"http/1.1"}
	trust.VerifyConnection = func(state tls.ConnectionState) error {
		if name := state.PeerCertificates[0].Subject.CommonName; name != config.Client {
			return fmt.Errorf("certificates of %s are not let through", name)
		}
		return nil
	}
	p := &proxy{Config: config, dialer: net.Dialer{Timeout: dialPatience}, ctx: ctx}
	p.dialer.ControlContext = p.open
	p.plain = &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.Host = r.In.Host },
		Transport:    &http.Transport{DialContext: p.dialer.DialContext, ResponseHeaderTimeout: headerPatience, DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.failed(w, r, err) },
		ErrorLog:     slog.NewLogLogger(config.Logger.Handler(), slog.LevelWarn),
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: headerPatience, IdleTimeout: 5 * time.Minute, ErrorLog: slog.NewLogLogger(config.Logger.Handler(), slog.LevelInfo)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.Serve(tls.NewListener(config.Listener, trust))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", config.Listener.Addr(), err)
}

type proxy struct {
	Config
	ctx    context.Context // of Run
	dialer net.Dialer
	plain  *httputil.ReverseProxy
}

// ServeHTTP is http.Handler's.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host := r.Host
	if r.Method != http.MethodConnect {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			http.Error(w, "this is a proxy: ask it for a whole URL of http, or by CONNECT", http.StatusBadRequest)
			return
		}
		if host = r.URL.Host; r.URL.Port() == "" {
			host = net.JoinHostPort(r.URL.Hostname(), "80")
		}
	}
	if !admits(p.Hosts, host) {
		p.Logger.InfoContext(r.Context(), "a host was asked for that nodes do not reach through masters", "host", host)
		http.Error(w, host+" is not among the hosts that this cluster's nodes reach through its masters (registriesThroughMasters)", http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, host)
		return
	}
	p.plain.ServeHTTP(w, r)
}

// admits reports whether a host and port are among hosts.
func admits(hosts []string, hostPort string) bool {
	name, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	return slices.ContainsFunc(hosts, func(admitted string) bool {
		wanted, only, err := net.SplitHostPort(admitted)
		if err != nil {
			wanted, only = strings.Trim(admitted, "[]"), ""
		}
		wanted = strings.ToLower(wanted)
		return (only == "" || only == port) && (name == wanted || strings.HasPrefix(wanted, ".") && strings.HasSuffix(name, wanted))
	})
}

// open refuses to connect to an address that is closed: only here it is known which one a name has.
func (p *proxy) open(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(p.Closed, func(closed netip.Prefix) bool { return closed.Contains(to.Addr().Unmap()) }) {
		return fmt.Errorf("%s is no address of a registry", to.Addr())
	}
	return nil
}

func (p *proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	p.Logger.WarnContext(r.Context(), "a host could not be reached", "host", r.Host, "error", err)
	http.Error(w, fmt.Sprintf("the master could not reach %s: %v", r.Host, err), http.StatusBadGateway)
}

func (p *proxy) tunnel(w http.ResponseWriter, r *http.Request, host string) {
	there, err := p.dialer.DialContext(r.Context(), "tcp", host)
	if err != nil {
		p.failed(w, r, err)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.failed(w, r, err)
		return
	}
	defer here.Close()
	defer context.AfterFunc(p.ctx, func() { here.Close(); there.Close() })()
	if _, err := here.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		pass(here, there)
	}()
	pass(there, buffered)
	<-back
}

// pass copies until the end, and forwards the end.
func pass(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, able := to.(interface{ CloseWrite() error }); err == nil && able {
		_ = half.CloseWrite()
		return
	}
	_ = to.Close()
}
