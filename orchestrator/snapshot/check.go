package snapshot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/scratch"
)

// checkLimit is how long the opening of a snapshot may take: a snapshot before a change must not wait for ever.
const checkLimit = 10 * time.Minute

// Checker opens snapshots with the burano program, in processes of its own: a damaged file may end one. A process opens one snapshot after
// another, because its start takes longer than most snapshots do. It is safe for concurrent use; as many processes run as snapshots are opened
// at the same time.
type Checker struct {
	program string
	scratch *scratch.Budget
	idle    time.Duration

	closing context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // a part for each process

	mutex   sync.Mutex
	waiting []*process // open nothing
}

// NewChecker makes a checker. Its processes write below the budget's folder, up to twice the size of a snapshot, for which its caller has room, and end when
// they have had nothing to open for the time idle. Close ends the checker.
func NewChecker(program string, budget *scratch.Budget, idle time.Duration) *Checker {
	c := &Checker{program: program, scratch: budget, idle: idle}
	c.closing, c.end = context.WithCancel(context.Background())
	return c
}

// Check opens the snapshot in a file. Its error is from a process that has opened no other snapshot: an error of a used process may have an earlier cause,
// so it is not believed.
func (c *Checker) Check(ctx context.Context, file string) (Checked, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, checkLimit, fmt.Errorf("it took longer than %s", checkLimit))
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()
	if used := c.take(); used != nil {
		if checked, err := c.open(ctx, used, file); err == nil || ctx.Err() != nil {
			return checked, err
		}
	}
	begun, err := c.start()
	if err != nil {
		return Checked{}, err
	}
	return c.open(ctx, begun, file)
}

// open has a process open a snapshot, and puts the process back if it succeeded.
func (c *Checker) open(ctx context.Context, p *process, file string) (Checked, error) {
	checked, err := p.check(ctx, file)
	if err != nil {
		c.running.Done()
		return Checked{}, err
	}
	c.put(p)
	return checked, nil
}

// Close ends all processes, also busy ones, and waits until they are gone.
func (c *Checker) Close() {
	c.mutex.Lock()
	c.end()
	waiting := c.waiting
	c.waiting = nil
	c.mutex.Unlock()
	for _, one := range waiting {
		c.retire(one)
	}
	c.running.Wait()
}

// start begins a process.
func (c *Checker) start() (*process, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.closing.Err() != nil {
		return nil, errors.New("the server ends")
	}
	folder, err := c.scratch.Folder("check-")
	if err != nil {
		return nil, err
	}
	p, err := begin(exec.Command(c.program, "etcd", "check", "--scratch", folder), folder)
	if err != nil {
		return nil, errors.Join(err, os.Remove(folder))
	}
	c.running.Add(1)
	return p, nil
}

// take returns an idle process, or nil.
func (c *Checker) take() *process {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	last := c.waiting[len(c.waiting)-1]
	c.waiting = c.waiting[:len(c.waiting)-1]
	last.expiry.Stop()
	return last
}

// put keeps a process for the next snapshot.
func (c *Checker) put(p *process) {
	c.mutex.Lock()
	closing := c.closing.Err() != nil
	if !closing {
		p.expiry = time.AfterFunc(c.idle, func() { c.expire(p) })
		c.waiting = append(c.waiting, p)
	}
	c.mutex.Unlock()
	if closing {
		c.retire(p)
	}
}

// expire ends a process, unless it was taken.
func (c *Checker) expire(p *process) {
	c.mutex.Lock()
	i := slices.Index(c.waiting, p)
	if i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
	}
	c.mutex.Unlock()
	if i >= 0 {
		c.retire(p)
	}
}

// retire ends an idle process. Its exit error does not matter, and it has left no files.
func (c *Checker) retire(p *process) {
	_, _ = p.kill()
	c.running.Done()
}

// process is a run of the program. It answers each name of a file with a line of JSON, and ends when it cannot open one.
type process struct {
	command *exec.Cmd
	folder  string // its files are in it
	files   io.Writer
	answers *json.Decoder
	said    *door.Buffer // the beginning of its standard error, to be read when it is gone
	expiry  *time.Timer  // set while it is idle
}

// saidLimit is how many bytes a process may write about the reason of its end.
const saidLimit = 64 << 10

func begin(command *exec.Cmd, folder string) (*process, error) {
	p := &process{command: command, folder: folder, said: &door.Buffer{Limit: saidLimit, What: "its standard error"}}
	command.Stderr = p.said
	files, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.files, p.answers = files, json.NewDecoder(answers)
	return p, command.Start()
}

// check has the process open a snapshot. After an error, or the end of the context, the process is gone.
func (p *process) check(ctx context.Context, file string) (checked Checked, err error) {
	stop := context.AfterFunc(ctx, func() { _ = p.command.Process.Kill() })
	_, err = fmt.Fprintln(p.files, file)
	if err == nil {
		err = p.answers.Decode(&checked)
	}
	if stop() && err == nil {
		return checked, nil
	}
	ended, left := p.kill()
	if ctx.Err() != nil {
		return Checked{}, errors.Join(context.Cause(ctx), left)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(p.said.String()), "\n")
	first = cmp.Or(strings.TrimPrefix(first, "burano: "), "the process that opened it has ended")
	return Checked{}, errors.Join(fmt.Errorf("%s (%w)", first, cmp.Or(ended, err)), left)
}

// kill ends a process that may have ended by itself, and removes its files. ended is its exit error, nil when there was none.
func (p *process) kill() (ended, left error) {
	_ = p.command.Process.Kill() // the only error is that it has ended
	ended = p.command.Wait()
	return ended, os.RemoveAll(p.folder)
}
