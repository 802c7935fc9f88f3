package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authentication "k8s.io/api/authentication/v1"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/pki"
)

// world is a master's program with a socket to which servers come.
type world struct {
	*program
	socket string
	asked  atomic.Int32 // questions that reached a server
}

func newWorld(t *testing.T) *world {
	w := &world{program: newProgram(slog.New(slog.DiscardHandler)), socket: filepath.Join(t.TempDir(), "folder", "server.sock")}
	socket, err := listen(t.Context(), w.socket)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.welcome(socket) }()
	t.Cleanup(func() { require.NoError(t, socket.Close()); <-ended })
	return w
}

// come is a Burano server that comes, which knows one token; held is true if another one is there. leave ends it.
func (w *world) come(t *testing.T) (held bool, leave func()) {
	t.Helper()
	line, err := net.Dial("unix", w.socket)
	require.NoError(t, err)
	if firstLine(t, line) == Held {
		return true, func() {}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Answer(ctx, line, func(_ context.Context, token string) (Person, error) {
			w.asked.Add(1)
			switch token {
			case "anna":
				return Person{"keystone:anna@Default", "1234", []string{"burano:readers", "keystone:role:reader"}}, nil
			case "away":
				return Person{}, errors.New("Keystone does not answer")
			}
			return Person{}, &Refused{"nobody has this token"}
		})
	}()
	leave = func() { cancel(); <-ended }
	t.Cleanup(leave)
	return false, leave
}

// firstLine reads a line, and not a byte more.
func firstLine(t *testing.T, conn net.Conn) (line string) {
	t.Helper()
	for letter := make([]byte, 1); ; line += string(letter) {
		_, err := io.ReadFull(conn, letter)
		require.NoError(t, err)
		if letter[0] == '\n' {
			return line
		}
	}
}

// review is the program's answer to an API server.
func (w *world) review(t *testing.T, token string) authentication.TokenReviewStatus {
	t.Helper()
	body, err := json.Marshal(authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}})
	require.NoError(t, err)
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body)))
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	var review authentication.TokenReview
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &review))
	require.Equal(t, "authentication.k8s.io/v1", review.APIVersion)
	return review.Status
}

func TestAServerThatCameAnswersWhoseATokenIs(t *testing.T) {
	w := newWorld(t)
	status := w.review(t, "anna")
	require.False(t, status.Authenticated)
	require.Contains(t, status.Error, "no Burano server is connected")

	held, leave := w.come(t)
	require.False(t, held)
	status = w.review(t, "anna")
	require.Equal(t, authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{Username: "keystone:anna@Default", UID: "1234", Groups: []string{"burano:readers", "keystone:role:reader"}}}, status)
	require.Equal(t, authentication.TokenReviewStatus{}, w.review(t, "bob"), "no error: the API server asks others, and refuses")
	require.Contains(t, w.review(t, "away").Error, "Keystone does not answer")

	held, _ = w.come(t)
	require.True(t, held, "one server at a time answers")
	leave()
	require.NoError(t, wait.Every(10*time.Millisecond).For(20*time.Second).Until(t.Context(), func(context.Context) error {
		if status := w.review(t, "anna"); !strings.Contains(status.Error, "no Burano server") {
			return wait.Again(errors.New(status.Error))
		}
		return nil
	}))
	held, _ = w.come(t)
	require.False(t, held, "another one takes its place")
	require.True(t, w.review(t, "anna").Authenticated)
}

func TestTokensOfOthersLeaveTheMasterNot(t *testing.T) {
	w := newWorld(t)
	w.come(t)
	of := func(claims string) string {
		return "eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
	}
	for _, token := range []string{"", "with space", strings.Repeat("a", mostToken+1), "line\nline", of(`{"iss": "https://kubernetes.default.svc.cluster.local", "sub": "system:serviceaccount:default:default"}`)} {
		require.Equal(t, authentication.TokenReviewStatus{}, w.review(t, token))
	}
	require.Zero(t, w.asked.Load())
	w.review(t, of(`{"sub": "1234", "openstack_methods": ["password"]}`))
	require.EqualValues(t, 1, w.asked.Load(), "Keystone's own JWS name no issuer")
}

func TestTokensAreTriedAtALimitedPace(t *testing.T) {
	w := newWorld(t)
	w.come(t)
	refused := 0
	for range 4 * mostBurst {
		if strings.Contains(w.review(t, "bob").Error, "too many tokens are tried") {
			refused++
		}
	}
	require.Positive(t, refused)
	require.EqualValues(t, 4*mostBurst, int(w.asked.Load())+refused)
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"spec": {"token": "`+strings.Repeat("a", mostReview)+`"}}`)))
	require.Equal(t, http.StatusBadRequest, answer.Code)
}

// TestOnlyTheAPIServerAsks runs the program with certificates.
func TestOnlyTheAPIServerAsks(t *testing.T) {
	now := time.Now()
	authority, _, err := pki.NewAuthority("kubernetes", now)
	require.NoError(t, err)
	certificate := func(name string, usage pki.Usage) tls.Certificate {
		pair, err := authority.Issue(pki.Request{CommonName: name, IP: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Usage: usage}, now)
		require.NoError(t, err)
		made, err := tls.X509KeyPair(pair.Certificate, pair.Key)
		require.NoError(t, err)
		return made
	}
	trusted := x509.NewCertPool()
	require.True(t, trusted.AppendCertsFromPEM(authority.Trusted()))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{certificate("sign-in", pki.Server)}, ClientCAs: trusted}, Client: "burano:apiserver-sign-in",
			Socket: filepath.Join(t.TempDir(), "server.sock"), Logger: slog.New(slog.DiscardHandler)})
	}()
	ask := func(certificates ...tls.Certificate) error {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, Certificates: certificates}}}
		defer client.CloseIdleConnections()
		answer, err := client.Post("https://"+listener.Addr().String()+"/", "application/json", strings.NewReader(`{"spec": {"token": "anna"}}`))
		if err != nil {
			return err
		}
		require.Equal(t, http.StatusOK, answer.StatusCode)
		return answer.Body.Close()
	}
	require.Error(t, ask())
	require.Error(t, ask(certificate("system:node:murano-kube-2", pki.Client)))
	require.NoError(t, ask(certificate("burano:apiserver-sign-in", pki.Client)))
	cancel()
	require.NoError(t, <-ended)
}
