// Package webhook carries tokens of Keystone from a cluster's API server to a Burano server, which knows Keystone. On each master a program is the API server's
// webhook for tokens. A Burano server comes to the program's socket over its SSH connection to the master, and answers questions on that connection. The cluster
// needs no address and no credential of Burano or the cloud.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Socket is where a Burano server comes to. Only root reaches it.
	Socket = "/run/burano-sign-in/server.sock"
	// Serves and Held are the first line to a server that comes: its answers are used from then on, or another server has its place.
	Serves = "burano-sign-in 1 serve"
	Held   = "burano-sign-in 1 held"
)

// Bounds of what strangers send: whoever reaches an API server may send it tokens.
const (
	mostToken     = 4096     // bytes
	mostReview    = 16 << 10 // bytes of the API server's question
	mostAnswer    = 64 << 10 // bytes of the Burano server's answer
	mostAtOnce    = 16       // questions
	mostPerSecond = 10       // questions; mostBurst after a pause
	mostBurst     = 50
	mostGroups    = 256
	// patience is how long the answer to a question may take, also Keystone's.
	patience = 10 * time.Second
	// silence is how long the other end may be silent until it is asked whether it is there, and how long that answer may take.
	silence = 5 * time.Second
)

// Person is a user with a token.
type Person struct {
	User   string   `json:"user"`
	UID    string   `json:"uid"`
	Groups []string `json:"groups"`
}

// Refused is the error of a token that signs no user in. Other errors are about the question.
type Refused struct{ Reason string }

func (r *Refused) Error() string { return r.Reason }

// question is the request to a Burano server, whose answer is a Person, or a text with the status 401 or another one.
type question struct {
	Token string `json:"token"`
}

// Config is the configuration of a master's program.
type Config struct {
	Listener net.Listener // for the API server; closed when Run returns
	// TLS has the certificate that is shown, and the authorities of clients' certificates.
	TLS *tls.Config
	// Client is the common name of the API server's certificate.
	Client string
	Socket string
	Logger *slog.Logger
}

// Run answers an API server until ctx ends.
func Run(ctx context.Context, config Config) error {
	trust := config.TLS.Clone()
	trust.ClientAuth, trust.MinVersion = tls.RequireAndVerifyClientCert, tls.VersionTLS12
	trust.VerifyConnection = func(state tls.ConnectionState) error {
		if name := state.PeerCertificates[0].Subject.CommonName; name != config.Client {
			return fmt.Errorf("certificates of %s are not admitted", name)
		}
		return nil
	}
	p := newProgram(config.Logger)
	socket, err := listen(ctx, config.Socket)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	server := &http.Server{Handler: p, TLSConfig: trust, ReadHeaderTimeout: patience, ReadTimeout: 2 * patience, WriteTimeout: 3 * patience, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(config.Logger.Handler(), slog.LevelInfo)}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	ended := make(chan error, 2)
	go func() { ended <- server.ServeTLS(config.Listener, "", "") }()
	go func() { ended <- p.welcome(socket) }()
	err = <-ended
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// listen makes the socket, in a folder of root's alone.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the socket: %w", err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return (&net.ListenConfig{}).Listen(ctx, "unix", socket)
}

// program is the program of a master.
type program struct {
	logger *slog.Logger
	places chan struct{}
	pace   *rate.Limiter

	mutex sync.Mutex
	line  *http.ClientConn // of the Burano server; nil while none is there
	conn  net.Conn
}

func newProgram(logger *slog.Logger) *program {
	return &program{logger: logger, places: make(chan struct{}, mostAtOnce), pace: rate.NewLimiter(mostPerSecond, mostBurst)}
}

// welcome lets Burano servers come.
func (p *program) welcome(socket net.Listener) error {
	for {
		conn, err := socket.Accept()
		if err != nil {
			return err
		}
		if err := p.take(conn); err != nil {
			p.logger.Info("a Burano server came in vain", "reason", err)
		}
	}
}

// lineConn is the connection of a Burano server, which reports its end.
type lineConn struct {
	net.Conn
	end func()
}

func (l *lineConn) Close() error {
	defer l.end()
	return l.Conn.Close()
}

// take uses the answers of the Burano server at the other end, unless there is one.
func (p *program) take(conn net.Conn) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	_ = conn.SetWriteDeadline(time.Now().Add(silence))
	if p.conn != nil {
		_, err := io.WriteString(conn, Held+"\n")
		return errors.Join(err, conn.Close())
	}
	if _, err := io.WriteString(conn, Serves+"\n"); err != nil {
		return errors.Join(err, conn.Close())
	}
	_ = conn.SetWriteDeadline(time.Time{})
	taken := &lineConn{Conn: conn}
	taken.end = sync.OnceFunc(func() { go p.lose(taken) }) // never waits for a lock of who closes it
	transport := &http.Transport{DisableCompression: true, Protocols: plain(), HTTP2: watched(),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return taken, nil }}
	line, err := transport.NewClientConn(context.Background(), "http", "burano:80")
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	p.line, p.conn = line, taken
	p.logger.Info("a Burano server answers")
	return nil
}

// plain is HTTP/2 without TLS: the connection is SSH's.
func plain() *http.Protocols {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	return protocols
}

// watched ends a connection whose other end is silent.
func watched() *http.HTTP2Config {
	return &http.HTTP2Config{MaxConcurrentStreams: 2 * mostAtOnce, StrictMaxConcurrentRequests: true, SendPingTimeout: silence, PingTimeout: silence, WriteByteTimeout: silence}
}

// lose makes room for another Burano server.
func (p *program) lose(conn net.Conn) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.conn == conn {
		p.line, p.conn = nil, nil
		p.logger.Info("the Burano server is gone")
	}
}

// ServeHTTP answers a TokenReview.
func (p *program) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review authentication.TokenReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostReview)).Decode(&review); r.Method != http.MethodPost || err != nil {
		http.Error(w, "this answers TokenReviews of authentication.k8s.io/v1 alone", http.StatusBadRequest)
		return
	}
	answer := authentication.TokenReview{TypeMeta: metav1.TypeMeta{APIVersion: authentication.SchemeGroupVersion.String(), Kind: "TokenReview"}}
	person, err := p.who(r.Context(), review.Spec.Token)
	var refused *Refused
	switch {
	case err == nil:
		answer.Status = authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{Username: person.User, UID: person.UID, Groups: person.Groups}}
	case errors.As(err, &refused):
		p.logger.Info("a token was refused", "reason", refused.Reason)
	default:
		p.logger.Warn("nobody knows whose a token is", "reason", err)
		answer.Status.Error = err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

var errAlone = errors.New("no Burano server is connected to this master, so that tokens of Keystone are not admitted; certificates are. See the findings of the environment")

// who asks the Burano server whose a token is.
func (p *program) who(ctx context.Context, token string) (person Person, err error) {
	if why := unlikely(token); why != "" {
		return person, &Refused{why}
	}
	p.mutex.Lock()
	line := p.line
	p.mutex.Unlock()
	if line == nil {
		return person, errAlone
	}
	if !p.pace.Allow() {
		return person, errors.New("too many tokens are tried")
	}
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	default:
		return person, errors.New("too many tokens are tried at once")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(question{token})
	if err != nil {
		return person, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://burano/person", bytes.NewReader(body))
	if err != nil {
		return person, err
	}
	answer, err := line.RoundTrip(request)
	if err != nil {
		return person, fmt.Errorf("ask the Burano server: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	switch {
	case err != nil:
		return person, fmt.Errorf("ask the Burano server: %w", err)
	case answer.StatusCode == http.StatusUnauthorized:
		return person, &Refused{strings.TrimSpace(string(text))}
	case answer.StatusCode != http.StatusOK:
		return person, fmt.Errorf("the Burano server does not know: %s", strings.TrimSpace(string(text)))
	}
	if err := json.Unmarshal(text, &person); err != nil || person.User == "" {
		return person, errors.New("the Burano server gave an answer without a user")
	}
	return person, nil
}

var tokenText = regexp.MustCompile(`^[A-Za-z0-9_=.-]+$`)

// unlikely is the reason why a text is no token of Keystone's, and leaves the master to nobody; "" for none. An API server also sends tokens that were made for
// others: of ServiceAccounts that are gone, and of issuers. They name their issuer, which Keystone's do not.
func unlikely(token string) string {
	if len(token) > mostToken || !tokenText.MatchString(token) {
		return "it is no token of Keystone"
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Issuer any `json:"iss"`
	}
	if json.Unmarshal(text, &claims) == nil && claims.Issuer != nil {
		return "it is a token of another issuer"
	}
	return ""
}
