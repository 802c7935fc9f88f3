package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/burano/burano/internal/door"
	buranossh "github.com/burano/burano/nodes/ssh"
)

// Machine says how to log in to a server that no cloud made for Burano: somebody has set it up and lets Burano in.
type Machine struct {
	User string `json:"user"`           // login: root, or who becomes root by sudo without a password
	Port uint16 `json:"port,omitempty"` // of its sshd; 22 when 0
	// HostKey is its public host key, in the format of known_hosts or authorized_keys without the name. Empty: that which the first connection
	// shows is kept, and demanded from then on.
	HostKey string `json:"hostKey,omitempty"`
}

// machinePatience is how long a machine may take until its sshd answers: nobody has just made it.
const machinePatience = 30 * time.Second

// vaultMachine + Server.Key is the private key for a machine that does not let Burano's own in, OpenSSH PEM.
const vaultMachine = "ssh/machine/"

// Public is the line of authorized_keys by which a machine lets Burano in.
func (k *Keys) Public(ctx context.Context) (string, error) {
	own, err := k.Own(ctx)
	if err != nil {
		return "", err
	}
	return Authorized(own.PublicKey()), nil
}

// PublicFor is the line of authorized_keys by which a machine lets in the key with which Burano logs in to it: its own, or the one that it was given.
func (k *Keys) PublicFor(ctx context.Context, server string) (string, error) {
	signer, _, err := k.keyFor(ctx, server)
	if err != nil {
		return "", err
	}
	return Authorized(signer.PublicKey()), nil
}

// GiveKey keeps the private key with which Burano is to log in to a machine in place of its own, and returns its public half; nothing for its own
// again.
func (k *Keys) GiveKey(ctx context.Context, server string, private []byte) (public string, err error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if len(private) == 0 {
		return "", k.vault.Store(ctx, vaultMachine+server, nil)
	}
	signer, err := readKey(private)
	if err != nil {
		return "", err
	}
	if err := k.vault.Store(ctx, vaultMachine+server, private); err != nil {
		return "", fmt.Errorf("store the key for %s: %w", server, err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
}

// UnreadableKey is the error of a text that is no private key which can be used.
type UnreadableKey struct{ Reason string }

func (u *UnreadableKey) Error() string { return u.Reason }

func readKey(private []byte) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(private)
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, &UnreadableKey{"it is protected by a passphrase, which nobody could type: give one without (ssh-keygen -p takes it away)"}
	case err != nil:
		return nil, &UnreadableKey{fmt.Sprintf("it is no private key in the format of OpenSSH or PEM: %v", err)}
	}
	return signer, nil
}

// keyFor is the key that a machine lets in, and given says that it is not Burano's own.
func (k *Keys) keyFor(ctx context.Context, server string) (signer ssh.Signer, given bool, err error) {
	text, found, err := k.vault.Load(ctx, vaultMachine+server)
	if err != nil {
		return nil, false, fmt.Errorf("load the key for %s: %w", server, err)
	}
	if !found || len(text) == 0 {
		signer, err = k.Own(ctx)
		return signer, false, err
	}
	signer, err = readKey(text)
	return signer, true, err
}

// longestHostKey is how many bytes a public host key has in a text, with its comment: one of type ed25519 has 68.
const longestHostKey = 2 << 10

// ParseHostKey reads a public host key, with or without the name before it that known_hosts has.
func ParseHostKey(text string) (ssh.PublicKey, error) {
	if len(text) > longestHostKey {
		return nil, &door.Exceeded{What: "the public host key", Bound: door.Bytes(longestHostKey)}
	}
	for _, line := range []string{text, afterFirstWord(text)} {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err == nil {
			if key.Type() != ssh.KeyAlgoED25519 {
				return nil, fmt.Errorf("it is of type %s: give the one of type %s (ssh-keyscan -t ed25519 ADDRESS)", key.Type(), ssh.KeyAlgoED25519)
			}
			return key, nil
		}
	}
	return nil, fmt.Errorf("%q is no public host key: write it like %s AAAA…, as ssh-keyscan -t ed25519 ADDRESS prints it", text, ssh.KeyAlgoED25519)
}

func afterFirstWord(text string) string {
	_, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	return rest
}

// dialMachine connects to a machine.
func (c *Connections) dialMachine(ctx context.Context, server Server) (*buranossh.Client, error) {
	machine := *server.Machine
	signer, given, err := c.keyFor(ctx, server.Key)
	if err != nil {
		return nil, err
	}
	config := buranossh.Config{Ways: c.ways(server), User: machine.User, Signer: signer, Patience: min(cmp.Or(c.config.Patience, machinePatience), machinePatience), Sudo: machine.User != "" && machine.User != "root",
		Logger: c.config.Logger.With("node", server.Name), Fence: c.config.Fence, Alive: c.config.Alive, Connected: c.config.Connected,
		Remedy: fmt.Sprintf("Give its new host key (hostKey of node %s)", server.Name)}
	known, err := c.loadHostKey(ctx, server.Key)
	if err != nil {
		return nil, err
	}
	first := machine.HostKey == "" && (known == nil || known.Server != server.ID)
	switch {
	case machine.HostKey != "":
		key, err := ParseHostKey(machine.HostKey)
		if err != nil {
			return nil, fmt.Errorf("its host key: %w", err)
		}
		config.HostKeys = []ssh.PublicKey{key}
	case first:
		config.FirstUse = true
	default:
		key, err := ParseHostKey(known.Public)
		if err != nil {
			return nil, fmt.Errorf("read its host key: %w", err)
		}
		config.HostKeys = []ssh.PublicKey{key}
	}
	client, err := buranossh.Dial(ctx, config)
	if err != nil {
		var login *buranossh.LoginError
		if errors.As(err, &login) {
			login.Remedy = fmt.Sprintf("Let it in: add this line to ~%s/.ssh/authorized_keys there, and do the same again: %s", login.User, Authorized(signer.PublicKey()))
			if given {
				login.Remedy = "Let this key in there, or give Burano another private key for it, and do the same again"
			}
		}
		return nil, err
	}
	if way := client.Way(); way != buranossh.Direct {
		c.config.Report(ctx, server, "reached "+way)
	}
	if first {
		key := client.HostKey()
		err = c.storeHostKey(ctx, server.Key, hostKey{Public: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), Confirmed: true, Server: server.ID})
		if err != nil {
			client.Close()
			return nil, err
		}
		client.Demand(key)
		c.config.Report(ctx, server, fmt.Sprintf("its host key %s was shown at the first connection and is trusted from now on: compare it with what "+
			"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub says there", ssh.FingerprintSHA256(key)))
	}
	return client, nil
}
