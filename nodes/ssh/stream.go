package ssh

import (
	"context"
	"fmt"
	"io"
	"path"

	"github.com/burano/burano/internal/door"
)

// Send streams a file to a path on the server (mode 0600), renamed into place when it is complete. It does not close from.
func (c *Client) Send(ctx context.Context, from io.Reader, remote string) error {
	command := fmt.Sprintf(`echo $$; set -e; umask 077; mkdir -p %[2]s; cat > %[1]s.new; mv -fT %[1]s.new %[1]s`, quote(remote), quote(path.Dir(remote)))
	if err := c.run(ctx, "send "+path.Base(remote), []string{"bash", "-c", command}, from, newOutput(outputLimit)); err != nil {
		return fmt.Errorf("send %s: %w", remote, err)
	}
	return nil
}

// Receive streams a file of the server, of at most limit bytes. When it fails, some of the file may have been written already.
func (c *Client) Receive(ctx context.Context, remote string, to io.Writer, limit int64) error {
	out := newOutput(0)
	out.sink = door.Writer(to, limit, "the file "+remote)
	if err := c.run(ctx, "receive "+path.Base(remote), []string{"bash", "-c", "echo $$; exec cat " + quote(remote)}, nil, out); err != nil {
		return fmt.Errorf("receive %s: %w", remote, err)
	}
	return nil
}
