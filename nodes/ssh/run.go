package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/time/rate"

	"github.com/burano/burano/internal/door"
)

const (
	outputLimit = 1 << 20 // bytes of standard output that are kept and returned
	// mostOutput is how many bytes a script whose output is kept may write: one that writes more is ended.
	mostOutput = 64 << 20
	// longestFirst is how long the line with the number of the process group may be.
	longestFirst = 1 << 10
	// outputRate is how many bytes a second are taken of a command's output, after the first outputBurst: a server that writes without end costs a few
	// per cent of a processor.
	outputRate  = 64 << 20
	outputBurst = 16 << 20
	tailLines   = 25      // lines of all output that an error carries
	tailLimit   = 8 << 10 // and their bytes

	lostPatience = time.Second
)

// Script is a bash script and what it needs. It is sent over standard input, so its size has no limit
// and nothing of it (or of Env) is seen in the server's process list.
type Script struct {
	Name string            // for errors: "start units"
	Body string            // the script's text; a shebang line is fine
	Env  map[string]string // exported before the script runs
}

// ExitError is a script that ended with a failure. Its message carries the last lines the script wrote.
type ExitError struct {
	Script string
	Code   int // exit code, or -1 when a signal ended it
	Tail   string
}

func (e *ExitError) Error() string {
	text := fmt.Sprintf("script %q ended with exit code %d", e.Script, e.Code)
	if e.Tail != "" {
		text += ": " + e.Tail
	}
	return text
}

// Run runs a script and returns its standard output. When ctx ends the script is killed with everything it started.
// A script that failed gives an *ExitError.
func (c *Client) Run(ctx context.Context, script Script) (string, error) {
	// The braces make bash read the whole script before it runs, so no command of it can eat the rest from standard input.
	body := preamble(script.Env) + "{\n" + script.Body + "\n} </dev/null\n"
	out := newOutput(outputLimit)
	out.most = mostOutput
	if err := c.run(ctx, script.Name, []string{"bash", "-s"}, bytes.NewBufferString(body), out); err != nil {
		return out.String(), err
	}
	return out.String(), nil
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func preamble(env map[string]string) string {
	var b strings.Builder
	b.WriteString("echo $$\n")
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if variableName.MatchString(name) {
			fmt.Fprintf(&b, "export %s=%s\n", name, quote(env[name]))
		}
	}
	return b.String()
}

// quote makes one shell word of any text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// run runs a command of these words, whose first line of output is the number of its process group, with input until it ends.
func (c *Client) run(ctx context.Context, name string, command []string, input io.Reader, out *output) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	conn, err := c.connected(ctx)
	if err != nil {
		return err
	}
	if err := c.alive(); err != nil {
		return fmt.Errorf("script %q: %w", name, err)
	}
	session, err := conn.NewSession()
	if err != nil {
		return c.failed(conn, name, err)
	}
	defer session.Close()
	session.Stdout, session.Stderr = out.stdout(ctx), out.stderr(ctx)
	send := func() error { return nil }
	copied, begin := (<-chan error)(nil), func() {}
	if content, whole := input.(*bytes.Buffer); whole {
		// It goes as it is, in as few packets as can be.
		pipe, err := session.StdinPipe()
		if err != nil {
			return c.failed(conn, name, err)
		}
		send = func() error {
			_, err := content.WriteTo(pipe)
			if closed := pipe.Close(); err == nil && !errors.Is(closed, io.EOF) {
				err = closed
			}
			return err
		}
	} else if input != nil {
		if copied, begin, err = feed(session, input); err != nil {
			return c.failed(conn, name, err)
		}
	}
	if err := session.Start(c.remote(command...)); err != nil {
		return c.failed(conn, name, err)
	}
	sent, ended := make(chan error, 1), make(chan error, 1)
	go func() { sent <- send() }()
	begin()
	go func() {
		err := session.Wait()
		if unsent := <-sent; err == nil {
			err = unsent
		}
		select {
		case failed := <-copied:
			if err == nil && !errors.Is(failed, io.EOF) {
				err = failed
			}
		default: // the command has ended before its input
		}
		ended <- err
	}()
	select {
	case err = <-ended:
	case <-out.refused:
		// Nothing takes its output any more, so that it would never end.
		conn.killGroup(out, c.config.Sudo)
		session.Close()
		if ctx.Err() == nil {
			return fmt.Errorf("script %q at %s was stopped: %w", name, c.config.name(), out.refusal)
		}
		return fmt.Errorf("script %q was stopped: %w", name, context.Cause(ctx))
	case <-ctx.Done():
		conn.killGroup(out, c.config.Sudo)
		session.Close()
		return fmt.Errorf("script %q was stopped: %w", name, context.Cause(ctx))
	}
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitStatus() == fencedCode && strings.HasPrefix(out.tail(), fencedWord):
		return fmt.Errorf("script %q at %s: %w", name, c.config.Address, ErrFenced)
	case errors.As(err, &exit) && c.config.Sudo && !out.begun() && strings.Contains(out.tail(), "sudo: "):
		return &SudoError{Server: c.config.name(), User: c.config.User, Said: out.tail()}
	case errors.As(err, &exit):
		code := exit.ExitStatus()
		if exit.Signal() != "" {
			code = -1
		}
		return &ExitError{Script: name, Code: code, Tail: out.tail()}
	default:
		return c.failed(conn, name, err)
	}
}

// feed copies an input to a session once begin is called. An error of the input is known before the command sees its end. A command may end before its input does: the copying then ends
// with the input.
func feed(session *ssh.Session, input io.Reader) (copied <-chan error, begin func(), err error) {
	pipe, err := session.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	result := make(chan error, 1)
	return result, func() {
		go func() {
			_, err := io.Copy(pipe, input)
			result <- err
			_ = pipe.Close() // the only error is that the command has ended
		}()
	}, nil
}

// LostError is a script whose end is not known, because the connection went away: the server went down, or the network did.
type LostError struct{ Server, Script string }

func (e *LostError) Error() string {
	return fmt.Sprintf("the connection to %s was lost while script %q ran", e.Server, e.Script)
}

// SudoError is that the user whom we log in as may not become root without a password.
type SudoError struct{ Server, User, Said string }

func (e *SudoError) Error() string {
	return fmt.Sprintf("%s cannot become root on %s without a password (%s). Burano sets servers up as root: give the user a line "+
		"\"%s ALL=(ALL) NOPASSWD:ALL\" in /etc/sudoers.d, as cloud images have it, and deploy again", e.User, e.Server, e.Said, e.User)
}

// Job is a command whose output is taken as it comes.
type Job struct {
	Name           string    // for errors
	Script         string    // for bash; what it and Args hold is seen in the server's process list
	Args           []string  // $1 and so on
	Input          io.Reader // may be nil
	Stdout, Stderr io.Writer // may be nil; written to by one goroutine each; their errors end the command
}

// Stream runs a command until it ends. When ctx ends, or a writer takes no more, it is killed with everything it started. A command that failed gives an
// *ExitError, and one of which no end is known a *LostError. How much it writes is for Stdout and Stderr to bound.
func (c *Client) Stream(ctx context.Context, job Job) error {
	command := append([]string{"bash", "-c", "echo $$\n" + job.Script, job.Name}, job.Args...)
	out := newOutput(outputLimit)
	out.sink, out.errors = job.Stdout, job.Stderr
	return c.run(ctx, job.Name, command, job.Input, out)
}

// failed is the error of a script that could not be begun, or of which no end is known.
func (c *Client) failed(conn *connection, script string, err error) error {
	var missing *ssh.ExitMissingError
	var refused *ssh.OpenChannelError
	if errors.As(err, &missing) || errors.Is(err, io.EOF) {
		return &LostError{Server: c.config.name(), Script: script}
	}
	// A connection that is lost fails what goes over it a moment before its end is known.
	patience := lostPatience
	if errors.As(err, &refused) {
		patience = 0
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-conn.lost:
		return &LostError{Server: c.config.name(), Script: script}
	case <-timer.C:
	}
	return fmt.Errorf("run script %q at %s: %w", script, c.config.name(), err)
}

// killGroup ends what a cancelled script started; sshd does not do it for root (it needs privilege separation to pass signals).
func (c *connection) killGroup(out *output, sudo bool) {
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	// The script may have begun already while the line with its group is still under way.
	select {
	case <-out.known:
	case <-timer.C:
		return
	}
	if out.group <= 1 {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		session, err := c.NewSession()
		if err != nil {
			return
		}
		defer session.Close()
		command := fmt.Sprintf("kill -KILL -- -%d", out.group)
		if sudo {
			command = "exec sudo -n -- " + command
		}
		_ = session.Run(command)
	}()
	select {
	case <-done:
	case <-timer.C:
	}
}

// output keeps standard output up to a limit, the end of everything, and takes the first line as process group.
type output struct {
	mu     sync.Mutex
	limit  int
	out    bytes.Buffer
	sink   io.Writer // gets all of standard output; nil: out does
	errors io.Writer // gets all of standard error as well; may be nil
	last   [2][]byte // the end of standard output and of standard error
	first  []byte
	most   int64 // bytes that both may have; 0: any number
	taken  int64
	rate   *rate.Limiter

	known chan struct{} // closed when group is known, which then stays as it is
	group int

	refused chan struct{} // closed when a part of the output was not taken, for refusal
	refusal error
}

func newOutput(limit int) *output {
	return &output{limit: limit, known: make(chan struct{}), refused: make(chan struct{}), rate: rate.NewLimiter(outputRate, outputBurst)}
}

// refuse notes why the output is taken no more. It is called with the lock held.
func (o *output) refuse(err error) error {
	if o.refusal == nil {
		o.refusal = err
		close(o.refused)
	}
	return o.refusal
}

// admit takes a part of the output into account, once there is time for it.
func (o *output) admit(ctx context.Context, size int) error {
	err := o.rate.WaitN(ctx, size)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken += int64(size)
	switch {
	case o.refusal != nil:
		return o.refusal
	case err != nil:
		return o.refuse(err)
	case o.most > 0 && o.taken > o.most:
		return o.refuse(&door.Exceeded{What: "its output", Bound: door.Bytes(o.most)})
	}
	return nil
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// ReadFrom is what io.Copy calls, which else makes a buffer for each of the two outputs of each script: that is more than everything else that a script takes.
func (f writerFunc) ReadFrom(from io.Reader) (int64, error) {
	buffer := buffers.Get().(*[copied]byte)
	defer buffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{f}, from, buffer[:])
}

// copied is how many bytes of output are taken at once: as many as a packet holds.
const copied = 32 << 10

var buffers = sync.Pool{New: func() any { return new([copied]byte) }}

func (o *output) stdout(ctx context.Context) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		n := len(p)
		p, err := o.takeGroup(p)
		if err != nil || len(p) == 0 {
			return n, err
		}
		if err := o.admit(ctx, len(p)); err != nil {
			return 0, err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.sink != nil {
			if _, err := o.sink.Write(p); err != nil {
				return 0, o.refuse(err)
			}
			return n, nil
		}
		if room := o.limit - o.out.Len(); room > 0 {
			o.out.Write(p[:min(room, len(p))])
		}
		o.remember(0, p)
		return n, nil
	})
}

// takeGroup reads the process group from the first line of standard output, and returns what follows. It is taken also once the context has ended: the
// group is what is killed then.
func (o *output) takeGroup(p []byte) (rest []byte, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.group != 0 {
		return p, nil
	}
	head, rest, found := bytes.Cut(p, []byte("\n"))
	if len(o.first)+len(head) > longestFirst {
		return nil, o.refuse(&door.Exceeded{What: "the first line of its output", Bound: door.Bytes(longestFirst)})
	}
	o.first = append(o.first, head...)
	if !found {
		return nil, nil
	}
	if o.group, _ = strconv.Atoi(strings.TrimSpace(string(o.first))); o.group == 0 {
		o.group = -1
	}
	close(o.known)
	return rest, nil
}

func (o *output) stderr(ctx context.Context) io.Writer {
	return writerFunc(func(p []byte) (int, error) {
		if err := o.admit(ctx, len(p)); err != nil {
			return 0, err
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.remember(1, p)
		if o.errors != nil {
			if _, err := o.errors.Write(p); err != nil {
				return 0, o.refuse(err)
			}
		}
		return len(p), nil
	})
}

// begun tells whether the script wrote its process group: nothing of it ran before.
func (o *output) begun() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.group != 0
}

func (o *output) remember(stream int, p []byte) {
	last := append(o.last[stream], p...)
	if over := len(last) - tailLimit; over > 0 {
		last = append([]byte(nil), last[over:]...)
	}
	o.last[stream] = last
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.out.String()
}

// tail is the end of standard output and then that of standard error, where reasons are written; their order
// in time is not known, since they travel apart.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []string
	for _, last := range o.last {
		if text := strings.TrimSpace(string(last)); text != "" {
			part := strings.Split(text, "\n")
			lines = append(lines, part[max(0, len(part)-tailLines):]...)
		}
	}
	return strings.Join(lines, "\n")
}
