package access

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	buranossh "github.com/burano/burano/nodes/ssh"
)

// Names in the vault.
const (
	vaultOwnKey    = "ssh/key"         // Burano's private key, OpenSSH PEM
	vaultFirstHost = "ssh/first-host/" // + Server.Key: the private host key of its first connection, OpenSSH PEM
	vaultHost      = "ssh/host/"       // + Server.Key: hostKey as JSON
)

// Vault keeps keys: durable when Store returns, and sealed.
type Vault interface {
	Load(ctx context.Context, name string) ([]byte, bool, error)
	Store(ctx context.Context, name string, value []byte) error
}

// Keys are Burano's own, and those by which servers are known.
type Keys struct {
	vault Vault
	mutex sync.Mutex // makes "load, or make and store" one thing
	own   ssh.Signer // nil before it was asked for
}

// NewKeys are those in a vault.
func NewKeys(vault Vault) *Keys { return &Keys{vault: vault} }

// Own is the key with which Burano logs in. It is made at first use.
func (k *Keys) Own(ctx context.Context) (own ssh.Signer, err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.own == nil {
		k.own, _, err = k.key(ctx, vaultOwnKey)
	}
	return k.own, err
}

// First is the host key of a server's first connection, with its private half as OpenSSH PEM. It is made at first use.
func (k *Keys) First(ctx context.Context, server string) (ssh.Signer, []byte, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.key(ctx, vaultFirstHost+server)
}

// Authorized is a line of authorized_keys.
func Authorized(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " burano"
}

// key loads an ed25519 key, and makes it when it is not there. The caller holds the mutex.
func (k *Keys) key(ctx context.Context, name string) (ssh.Signer, []byte, error) {
	text, found, err := k.vault.Load(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("load key %s: %w", name, err)
	}
	if !found {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, nil, fmt.Errorf("make key %s: %w", name, err)
		}
		block, err := ssh.MarshalPrivateKey(private, "burano")
		if err != nil {
			return nil, nil, fmt.Errorf("encode key %s: %w", name, err)
		}
		text = pem.EncodeToMemory(block)
		if err := k.vault.Store(ctx, name, text); err != nil {
			return nil, nil, fmt.Errorf("store key %s: %w", name, err)
		}
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, nil, fmt.Errorf("read key %s: %w", name, err)
	}
	return signer, text, nil
}

// hostKey is the key that a server made for itself. Until the server is known to present it, both it and the first key are accepted: we may
// have been interrupted on either side of the change.
type hostKey struct {
	Public    string `json:"public"` // authorized_keys format
	Confirmed bool   `json:"confirmed"`
	Server    string `json:"server,omitempty"`   // Server.ID of whom it is
	Launched  string `json:"launched,omitempty"` // and its Server.Launched
}

// Met tells whether the server, and not another one of its name, was ever connected to.
func (k *Keys) Met(ctx context.Context, server Server) (bool, error) {
	known, err := k.loadHostKey(ctx, server.Key)
	return known != nil && (known.Server == "" || known.Server == server.ID), err
}

// Unconfirm accepts a server's first host key again: what has the server's name may be set up anew.
func (k *Keys) Unconfirm(ctx context.Context, server string) error {
	known, err := k.loadHostKey(ctx, server)
	if err != nil || known == nil || !known.Confirmed {
		return err
	}
	known.Confirmed = false
	return k.storeHostKey(ctx, server, *known)
}

func (k *Keys) loadHostKey(ctx context.Context, server string) (*hostKey, error) {
	text, found, err := k.vault.Load(ctx, vaultHost+server)
	if err != nil {
		return nil, fmt.Errorf("load its host key: %w", err)
	}
	if !found {
		return nil, nil
	}
	var known hostKey
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("read its host key: %w", err)
	}
	return &known, nil
}

func (k *Keys) storeHostKey(ctx context.Context, server string, known hostKey) error {
	text, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("encode its host key: %w", err)
	}
	if err := k.vault.Store(ctx, vaultHost+server, text); err != nil {
		return fmt.Errorf("store its host key: %w", err)
	}
	return nil
}

//go:embed scripts/host-key.sh
var hostKeyScript string

// renewHostKey has the server make its own host key, stores the public half, and only then has the server present it.
// Interrupted after the storing, both keys are accepted and the rest is done at the next connection.
func (c *Connections) renewHostKey(ctx context.Context, server Server, client *buranossh.Client, itsOwn ssh.PublicKey) error {
	script := func(name, action string) buranossh.Script {
		env := map[string]string{"ACTION": action}
		if c.config.KeyFile != "" {
			env["KEY_FILE"] = c.config.KeyFile
		}
		return buranossh.Script{Name: name, Body: hostKeyScript, Env: env}
	}
	if itsOwn == nil || string(client.HostKey().Marshal()) != string(itsOwn.Marshal()) {
		out, err := client.Run(ctx, script("make a host key", "make"))
		if err != nil {
			return err
		}
		if itsOwn, err = ParseHostKey(out); err != nil {
			return fmt.Errorf("the server's answer with its host key: %w", err)
		}
		public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(itsOwn)))
		if err := c.storeHostKey(ctx, server.Key, hostKey{Public: public, Server: server.ID, Launched: server.Launched}); err != nil {
			return err
		}
		if _, err := client.Run(ctx, script("present the host key", "present")); err != nil {
			return err
		}
	}
	client.Demand(itsOwn)
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(itsOwn)))
	return c.storeHostKey(ctx, server.Key, hostKey{Public: public, Confirmed: true, Server: server.ID, Launched: server.Launched})
}
