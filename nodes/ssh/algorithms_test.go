package ssh_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

func TestWeakAlgorithmsAreRefusedAtOnce(t *testing.T) {
	for name, settings := range map[string]string{
		"a key exchange of finite fields":           "KexAlgorithms diffie-hellman-group14-sha256\n",
		"a cipher without authentication and SHA1":  "Ciphers aes128-ctr\nMACs hmac-sha1\n",
		"a sum over the text instead of the cipher": "Ciphers aes256-ctr\nMACs hmac-sha2-256\n",
	} {
		server := sshtest.Prepare(t)
		server.Settings = settings
		server.Start()
		_, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey}, Patience: time.Minute})
		var refused *ssh.AlgorithmsError
		require.ErrorAs(t, err, &refused, name)
	}
}

func TestServersThatHaveOnlyStrictAlgorithmsAreReached(t *testing.T) {
	server := sshtest.Prepare(t)
	server.Settings = "KexAlgorithms curve25519-sha256@libssh.org\nCiphers aes256-ctr\nMACs hmac-sha2-512-etm@openssh.com\n"
	server.Start()
	dial(t, server)
}
