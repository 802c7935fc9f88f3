package localcloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Process is a process that serves a local cloud. A pid alone may belong to another process by now: the command line and the time of the start identify
// it.
type Process struct {
	PID         int
	CommandLine string // /proc/PID/cmdline, words divided by spaces
	Started     string // field 22 of /proc/PID/stat: clock ticks since the machine's start
}

func processPath(stateDir string) string { return filepath.Join(stateDir, "process.json") }

// RecordProcess writes down that this process serves the cloud of a state folder.
func RecordProcess(stateDir string) error {
	self, ok := processOf(os.Getpid())
	if !ok {
		return errors.New("this process is not in /proc: is it mounted?")
	}
	if err := writeJSONFile(processPath(stateDir), self); err != nil {
		return fmt.Errorf("write down which process serves the cloud: %w", err)
	}
	return nil
}

// FindProcess returns the process that serves the cloud of a state folder, if it is alive.
func FindProcess(stateDir string) (Process, bool, error) {
	data, err := os.ReadFile(processPath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return Process{}, false, nil
	}
	if err != nil {
		return Process{}, false, err
	}
	var known Process
	if err := json.Unmarshal(data, &known); err != nil {
		return Process{}, false, fmt.Errorf("read %s: %w", processPath(stateDir), err)
	}
	now, ok := processOf(known.PID)
	return known, ok && now.is(known), nil
}

// is reports whether p, seen now, is the known process. An ending one has no command line any more, but still its locks.
func (p Process) is(known Process) bool {
	return p.Started == known.Started && (p.CommandLine == known.CommandLine || p.CommandLine == "")
}

func processOf(pid int) (Process, bool) {
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return Process{}, false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Process{}, false
	}
	// The name in parentheses may contain spaces; the text behind the last one begins with field 3 (proc(5)).
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	// A zombie whose other threads have not ended yet holds its locks too.
	if len(fields) < 20 || fields[0] == "Z" && fields[17] <= "1" {
		return Process{}, false
	}
	words := strings.Join(strings.Split(strings.TrimRight(string(command), "\x00"), "\x00"), " ")
	return Process{PID: pid, CommandLine: words, Started: fields[19]}, true
}

// stopProcess ends the process that serves the cloud, if there is one: it is asked to, and killed when it does not end within the
// given time.
func stopProcess(ctx context.Context, stateDir string, patience time.Duration) error {
	found, alive, err := FindProcess(stateDir)
	if err != nil || !alive || found.PID == os.Getpid() {
		return err
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(found.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end process %d of the local cloud: %w", found.PID, err)
		}
		ended, err := found.waitForEnd(ctx, patience)
		if ended || err != nil {
			return err
		}
	}
	return fmt.Errorf("process %d of the local cloud does not end, not even when killed", found.PID)
}

func (p Process) waitForEnd(ctx context.Context, patience time.Duration) (bool, error) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		if now, ok := processOf(p.PID); !ok || !now.is(p) {
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("wait for the end of process %d: %w", p.PID, ctx.Err())
		case <-deadline.C:
			return false, nil
		case <-look.C:
		}
	}
}
