package ssh

import (
	"cmp"
	_ "embed"
	"errors"
	"net"
	"strconv"
	"strings"
)

// ErrFenced is the error when a later worker works on the server, so that this one must do nothing more.
var ErrFenced = errors.New("another Burano server has taken over the work on this node; this one does nothing more to it")

const (
	// fenceFolder is where a server keeps the last number that it was shown.
	fenceFolder = "/var/lib/burano/fence"
	// fencedCode is how fence.sh ends when it refuses (EX_TEMPFAIL of sysexits).
	fencedCode = 75
	// fencedWord begins the server's message then.
	fencedWord = "fenced: "
)

//go:embed scripts/fence.sh
var fenceScript string

// remote is the shell command on the server for a command of these words. Each program replaces the one before it.
func (c *Client) remote(command ...string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quote(word)
	}
	return c.before + strings.Join(words, " ")
}

// before stands before the words of each command: the server compares our number before it runs one, when we have one.
func (c Config) before() string {
	var words []string
	if c.Sudo {
		// A session of its own: sudo's command may be no leader of a process group, and sudo passes no signals on.
		words = append(words, "sudo", "-n", "--", "setsid", "-w")
	}
	if c.Fence != 0 {
		words = append(words, "bash", "-c", fenceScript, "fence", strconv.FormatUint(c.Fence, 10), cmp.Or(c.FenceFolder, fenceFolder))
	}
	line := "exec "
	for _, word := range words {
		line += quote(word) + " "
	}
	return line
}

// alive returns an error when this process may no longer act on the server.
func (c *Client) alive() error {
	if c.config.Alive == nil {
		return nil
	}
	return c.config.Alive()
}

// guardedConn is a connection that sends nothing more once this process may no longer act: its data may change the server.
type guardedConn struct {
	net.Conn
	alive func() error
}

func (c guardedConn) Write(p []byte) (int, error) {
	if err := c.alive(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
