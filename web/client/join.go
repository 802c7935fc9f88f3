package client

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// JoinToken lets one machine become a node of a cluster.
type JoinToken struct {
	ID      string    `json:"id" yaml:"id"`
	Token   string    `json:"token" yaml:"token,omitempty"` // the machine's token; only of a new one
	State   string    `json:"state" yaml:"state"`           // open, redeemed, joined or expired
	Owner   string    `json:"user_name" yaml:"user_name"`
	Created time.Time `json:"created" yaml:"created"`
	Expires time.Time `json:"expires_at" yaml:"expires_at"`
	Node    string    `json:"node" yaml:"node"`       // of the machine that has redeemed it
	Address string    `json:"address" yaml:"address"` // of that machine
	TaskID  string    `json:"task_id" yaml:"task_id"` // by which it joins
}

// CreateJoinToken makes a token with which one machine joins the cluster, within a time.
func (c Clusters) CreateJoinToken(ctx context.Context, environment, cluster string, life time.Duration) (made JoinToken, err error) {
	return made, c.client.Call(ctx, http.MethodPost, clusterPath(environment, cluster)+"/join-tokens", map[string]string{"lifetime": life.String()}, &made)
}

// JoinTokens lists the tokens of a cluster, oldest first.
func (c Clusters) JoinTokens(ctx context.Context, environment, cluster string) ([]JoinToken, error) {
	var found struct {
		Tokens []JoinToken `json:"join_tokens"`
	}
	return found.Tokens, c.client.Call(ctx, http.MethodGet, clusterPath(environment, cluster)+"/join-tokens", nil, &found)
}

// DeleteJoinToken revokes a token.
func (c Clusters) DeleteJoinToken(ctx context.Context, environment, cluster, id string) error {
	return c.client.Call(ctx, http.MethodDelete, clusterPath(environment, cluster)+"/join-tokens/"+url.PathEscape(id), nil, nil)
}

// URL is where the server is.
func (c *Client) URL() string { return c.url }

// Pin is the pin for a client that trusts no authority of the server's certificate at an address (Pinned); "" where this machine's own authorities have
// signed it, or the address is not of https.
func (c *Client) Pin(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/healthz", nil)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("look at the certificate of %s: %w", address, err)
	}
	defer response.Body.Close()
	if response.TLS == nil {
		return "", nil
	}
	chain := response.TLS.PeerCertificates
	options := x509.VerifyOptions{DNSName: request.URL.Hostname(), Intermediates: x509.NewCertPool()}
	for _, one := range chain[1:] {
		options.Intermediates.AddCert(one)
	}
	if _, err := chain[0].Verify(options); err == nil {
		return "", nil
	}
	return pinOf(chain[0]), nil
}

const pinPrefix = "sha256:"

// pinOf is the SHA-256 of a certificate's public key, which a renewed certificate may keep.
func pinOf(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return pinPrefix + hex.EncodeToString(sum[:])
}

// Pinned is a transport that accepts only servers with a certificate of this pin, by any signer; "" is one that trusts this machine's authorities.
func Pinned(pin string) (*http.Transport, error) {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the default transport of HTTP was replaced")
	}
	transport = transport.Clone()
	if pin == "" {
		return transport, nil
	}
	if sum, err := hex.DecodeString(strings.TrimPrefix(pin, pinPrefix)); err != nil || len(sum) != sha256.Size || !strings.HasPrefix(pin, pinPrefix) {
		return nil, fmt.Errorf("the pin %q is none: it is %s and 64 hexadecimal digits", pin, pinPrefix)
	}
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		shown := pinOf(state.PeerCertificates[0])
		if subtle.ConstantTimeCompare([]byte(shown), []byte(strings.ToLower(pin))) != 1 {
			return fmt.Errorf("the server shows a certificate with the pin %s, and not %s: somebody else may be answering, or its certificate is another one by now", shown, pin)
		}
		return nil
	}}
	return transport, nil
}

// Machine is a machine that is to become a node.
type Machine struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Port    int    `json:"port"`
	User    string `json:"user"`     // that Burano logs in as
	HostKey string `json:"host_key"` // of its sshd, as authorized_keys has keys
}

// Joining is the answer to a machine that redeems a token.
type Joining struct {
	Node      string `json:"node"`
	Cluster   string `json:"cluster"`
	PublicKey string `json:"public_key"` // that it is to let in
	Owner     string `json:"owner"`      // how it notes whose node it is
}

// JoinProgress is how far it has come.
type JoinProgress struct {
	State   string   `json:"state"` // waiting, joining, joined or failed
	Reports []Report `json:"reports"`
	Last    int64    `json:"last"` // the number of the last line, to ask for the following ones
}

// Joiner is a machine that has a join token, and nothing else.
type Joiner struct {
	client *Client
	token  string
}

// nobody signs in: the token of the machine is no token of Keystone.
type nobody struct{}

func (nobody) Token() string                                { return "" }
func (nobody) Reauthenticate(context.Context, string) error { return nil }

// NewJoiner calls the server at a URL with a join token.
func NewJoiner(url, token string, transport http.RoundTripper) *Joiner {
	joiner := &Joiner{client: New(url, nobody{}, transport), token: token}
	joiner.client.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // the token is for this server
	return joiner
}

func (j *Joiner) call(ctx context.Context, method, path string, body, result any) error {
	return j.client.Call(ctx, method, "/burano/v1/join"+path, body, result, "X-Join-Token", j.token)
}

// Redeem binds the token to this machine. It begins nothing.
func (j *Joiner) Redeem(ctx context.Context, machine Machine) (answer Joining, err error) {
	return answer, j.call(ctx, http.MethodPost, "", machine, &answer)
}

// Start starts the join of the bound machine. A Refusal with the status 409 means that another task runs in the environment at the moment.
func (j *Joiner) Start(ctx context.Context) error {
	return j.call(ctx, http.MethodPost, "/deployment", nil, nil)
}

// Progress is how far it has come, with the lines after that number.
func (j *Joiner) Progress(ctx context.Context, after int64) (answer JoinProgress, err error) {
	return answer, j.call(ctx, http.MethodGet, "?after="+strconv.FormatInt(after, 10), nil, &answer)
}
