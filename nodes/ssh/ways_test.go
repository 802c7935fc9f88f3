package ssh_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/ssh/sshtest"
)

// closed is an address at which nothing listens.
func closed(t *testing.T) string { return sshtest.Prepare(t).Address }

func TestAServerIsReachedThroughAnotherWhenTheDirectWayIsClosed(t *testing.T) {
	jump, server := sshtest.New(t), sshtest.New(t)
	through := dial(t, jump)
	client, err := ssh.Dial(t.Context(), ssh.Config{
		Address: closed(t), Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey}, Patience: 20 * time.Second,
		Ways: []ssh.Way{{Name: "through jump", Address: server.Address, Dial: through.DialContext}},
	})
	require.NoError(t, err)
	defer client.Close()
	require.Equal(t, "through jump", client.Way())
	out, err := client.Run(t.Context(), ssh.Script{Name: "hello", Body: "echo hello"})
	require.NoError(t, err)
	require.Equal(t, "hello\n", out)

	// The jump goes away and comes back: so does the connection through it.
	number, lost := client.Connection()
	jump.Stop()
	select {
	case <-lost:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the loss was not seen")
	}
	jump.Start()
	out, err = client.Run(t.Context(), ssh.Script{Name: "hello", Body: "echo again"})
	require.NoError(t, err)
	require.Equal(t, "again\n", out)
	now, _ := client.Connection()
	require.Equal(t, number+1, now)
}

// The server in between waits for the stopped server, until TCP gives up after a quarter of an hour.
func TestAConnectionThroughAnotherServerEndsThoughTheServerStandsStill(t *testing.T) {
	jump, server := sshtest.New(t), sshtest.New(t)
	client, err := ssh.Dial(t.Context(), ssh.Config{
		Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey}, Patience: 20 * time.Second,
		Ways: []ssh.Way{{Name: "through jump", Address: server.Address, Dial: dial(t, jump).DialContext}},
	})
	require.NoError(t, err)
	endless := &counter{}
	ended := make(chan error, 20) // enough to fill all buffers
	for i := range cap(ended) - 1 {
		go func() { ended <- client.Send(t.Context(), endless, filepath.Join(t.TempDir(), strconv.Itoa(i))) }()
	}
	require.Eventually(t, func() bool { return endless.read.Load() > 100<<20 }, 20*time.Second, time.Millisecond)
	server.Freeze()
	before := int64(-1)
	require.Eventually(t, func() bool {
		now := endless.read.Load()
		stuck := now == before
		before = now
		return stuck
	}, 10*time.Second, 300*time.Millisecond, "nothing more is taken")

	go func() { ended <- client.Close() }()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	for range cap(ended) {
		select {
		case <-ended:
		case <-timer.C:
			require.FailNow(t, "it waits for a server that stands still")
		}
	}
}

// counter is a file without end.
type counter struct{ read atomic.Int64 }

func (c *counter) Read(p []byte) (int, error) {
	c.read.Add(int64(len(p)))
	return len(p), nil
}

func TestTheDirectWayIsTakenWhereItAnswers(t *testing.T) {
	server := sshtest.New(t)
	client, err := ssh.Dial(t.Context(), ssh.Config{
		Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey}, Patience: 20 * time.Second,
		Ways: []ssh.Way{{Name: "through jump", Address: "192.0.2.1:22", After: time.Minute, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("must not be tried")
		}}},
	})
	require.NoError(t, err)
	defer client.Close()
	require.Equal(t, ssh.Direct, client.Way())
}

// A private address may belong to another server here: a foreign host key there only rules that route out.
func TestAForeignHostKeyAtAPrivateAddressOnlyRulesThatWayOut(t *testing.T) {
	other, jump, server := sshtest.New(t), sshtest.New(t), sshtest.New(t)
	through := dial(t, jump)
	ways := []ssh.Way{{Name: ssh.Direct, Address: other.Address}, {Name: "through jump", Address: server.Address, Dial: through.DialContext}}
	client, err := ssh.Dial(t.Context(), ssh.Config{Ways: ways, Signer: server.Signer, HostKeys: []xssh.PublicKey{server.HostKey}, Patience: 20 * time.Second})
	require.NoError(t, err)
	defer client.Close()
	require.Equal(t, "through jump", client.Way())
}

func TestAChangedHostKeySaysWhatWasExpectedWhatWasShownAndWhatToDo(t *testing.T) {
	server := sshtest.New(t)
	expected := server.HostKey
	server.Stop()
	shown := server.SetHostKey()
	server.Start()
	_, err := ssh.Dial(t.Context(), ssh.Config{Address: server.Address, Signer: server.Signer, HostKeys: []xssh.PublicKey{expected}, Patience: time.Minute})
	var wrong *ssh.HostKeyError
	require.ErrorAs(t, err, &wrong)
	for _, part := range []string{"SECURITY", server.Address, xssh.FingerprintSHA256(expected), xssh.FingerprintSHA256(shown), "delete it in Nova and deploy again"} {
		require.ErrorContains(t, err, part)
	}
}

func TestWhereNothingAnswersEveryWayIsNamed(t *testing.T) {
	direct, inside := closed(t), closed(t)
	through := dial(t, sshtest.New(t))
	own, _ := sshtest.NewKey(t)
	_, err := ssh.Dial(t.Context(), ssh.Config{Address: direct, Signer: own, Patience: 400 * time.Millisecond,
		Ways: []ssh.Way{{Name: "through jump", Address: inside, Dial: through.DialContext}}})
	var unreachable *ssh.UnreachableError
	require.ErrorAs(t, err, &unreachable)
	require.ErrorContains(t, err, "within 400ms")
	require.ErrorContains(t, err, direct)
	require.ErrorContains(t, err, inside+" through jump")
}

func TestWaitingEndsWhenTheServerDoesNotRun(t *testing.T) {
	own, _ := sshtest.NewKey(t)
	says := []bool{true, false, true, true} // the first is a moment between two states
	asked := 0
	_, err := ssh.Dial(t.Context(), ssh.Config{Address: closed(t), Signer: own, Patience: time.Hour, Down: func(context.Context) bool {
		asked++
		return says[asked-1]
	}})
	var unreachable *ssh.UnreachableError
	require.ErrorAs(t, err, &unreachable)
	require.True(t, unreachable.Down)
	require.Equal(t, len(says), asked)
	require.ErrorContains(t, err, "the server does not run, and no sshd answered; tried ")
}

func TestAScriptWhoseServerGoesDownIsLostAndNotFailed(t *testing.T) {
	server := sshtest.New(t)
	client := dial(t, server)
	_, lost := client.Connection()
	timer := time.AfterFunc(500*time.Millisecond, server.Stop)
	defer timer.Stop()
	_, err := client.Run(t.Context(), ssh.Script{Name: "long", Body: "sleep 60"})
	var gone *ssh.LostError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, "long", gone.Script)
	select {
	case <-lost:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the loss was not seen")
	}
}
