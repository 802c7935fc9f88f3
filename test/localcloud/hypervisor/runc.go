package hypervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// runc is the container runtime, with the folder in which it keeps its own state.
type runc struct{ program, root string }

// container is runc's record of a container.
type container struct {
	Status string `json:"status"`
	PID    int    `json:"pid"`
}

func (c container) alive() bool { return c.Status != "" && c.Status != "stopped" }

func (r runc) command(ctx context.Context, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, r.program, append([]string{"--root", r.root}, arguments...)...)
}

// call returns runc's output.
func (r runc) call(ctx context.Context, arguments ...string) (string, error) {
	var output, said bytes.Buffer
	command := r.command(ctx, arguments...)
	command.Stdout, command.Stderr = &output, &said
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("runc %s: %w: %s", arguments[0], err, lastLine(said.String()))
	}
	return output.String(), nil
}

// start runs the bundle in the background; output gets the output of its first process.
func (r runc) start(ctx context.Context, id, bundle string, output *os.File) error {
	log := filepath.Join(bundle, "runc.log")
	if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	command := exec.CommandContext(ctx, r.program, "--root", r.root, "--log", log, "run", "--detach", "--bundle", bundle, id)
	command.Stdout, command.Stderr = output, output
	if err := command.Run(); err != nil {
		said, _ := os.ReadFile(log)
		return fmt.Errorf("runc run: %w: %s", err, lastLine(string(said)))
	}
	return nil
}

// state of a container; the zero value when there is none.
func (r runc) state(ctx context.Context, id string) (container, error) {
	if _, err := os.Stat(filepath.Join(r.root, id)); errors.Is(err, os.ErrNotExist) {
		return container{}, nil
	}
	output, err := r.call(ctx, "state", id)
	if err != nil {
		// It may have gone meanwhile.
		if _, gone := os.Stat(filepath.Join(r.root, id)); errors.Is(gone, os.ErrNotExist) {
			return container{}, nil
		}
		return container{}, err
	}
	var state container
	if err := json.Unmarshal([]byte(output), &state); err != nil {
		return container{}, fmt.Errorf("read what runc says: %w", err)
	}
	return state, nil
}

// delete kills a container and all processes of its cgroup when it runs, and removes it. A container that runc has half made is
// removed as well.
func (r runc) delete(ctx context.Context, id, cgroup string) error {
	if _, err := os.Stat(filepath.Join(r.root, id)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if state, err := r.state(ctx, id); err == nil && state.alive() {
		ended, err := watchProcess(state.PID)
		if err != nil {
			return err
		}
		defer ended.close()
		if _, err := r.call(ctx, "kill", id, "KILL"); err != nil {
			if now, wrong := r.state(ctx, id); wrong != nil || now.alive() {
				return err
			}
		}
		for deadline := time.Now().Add(killPatience); ; {
			err := ended.wait(ctx, killAgain)
			if err == nil {
				break
			}
			if !errors.Is(err, errStillRuns) || time.Now().After(deadline) {
				return fmt.Errorf("wait for the end of container %s: %w", id, err)
			}
			if err := killCgroups(cgroup); err != nil {
				return err
			}
		}
	}
	_, err := r.call(ctx, "delete", "--force", id)
	if err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(r.root, id))
}

const (
	killPatience = 30 * time.Second // for the kernel to end all processes of a container
	killAgain    = time.Second      // until the processes that survive the end of the first one are killed one by one
)

func (r runc) list(ctx context.Context) ([]string, error) {
	entries, err := os.ReadDir(r.root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, entry := range entries {
		ids = append(ids, entry.Name())
	}
	return ids, errors.Join(err, ctx.Err())
}

// process is a handle on a process that stays its own when the number is given to another.
type process struct{ fd int }

// watchProcess must be called while the process surely lives, or shortly after its end.
func watchProcess(pid int) (process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return process{fd: -1}, nil
	} else if err != nil {
		return process{}, fmt.Errorf("watch process %d: %w", pid, err)
	}
	return process{fd: fd}, nil
}

func (p process) close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd)
	}
}

var errStillRuns = errors.New("it still runs")

// wait returns when the process has ended, or with errStillRuns after the patience, or with the context's error.
func (p process) wait(ctx context.Context, patience time.Duration) error {
	if p.fd < 0 {
		return nil
	}
	for deadline := time.Now().Add(patience); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return errStillRuns
		}
		// The kernel cannot wait for a context too, so it is looked at now and then.
		slice := min(left, 50*time.Millisecond)
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, int(slice.Milliseconds())+1)
		switch {
		case ready > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

// lastLine is the relevant part of a program's messages.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}
