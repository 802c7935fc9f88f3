package durability

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
)

// world simulates the effects of deployments outside of Burano, in a cloud and on nodes: things, which are there once or not at
// all, and a log. Like a node it remembers the highest fencing number it has seen of an environment, and refuses lower ones. It is
// a folder, for several processes.
type world struct{ folder string }

// line is one line of the world's log.
type line struct {
	What        string // begin, made, found (the thing was there), note, removed, refused
	Environment string
	Fence       uint64
	Object      string
	Name        string
	PID         int
}

// change changes the world and logs it, one change at a time, unless a later worker was here.
func (w world) change(entry line, do func() (what string, err error)) error {
	lock, err := os.OpenFile(filepath.Join(w.folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	seen := filepath.Join(w.folder, "fence-"+entry.Environment)
	text, err := os.ReadFile(seen)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	last, _ := strconv.ParseUint(string(text), 10, 64)
	if entry.Fence < last {
		entry.What = "refused"
		return errors.Join(w.write(entry), fmt.Errorf("a worker with fencing number %d was here, this one has %d", last, entry.Fence))
	}
	// A rename: a process that is killed leaves the old number or the new one.
	if err := os.WriteFile(seen+".new", []byte(strconv.FormatUint(entry.Fence, 10)), 0o600); err != nil {
		return err
	}
	if err := os.Rename(seen+".new", seen); err != nil {
		return err
	}
	if entry.What, err = do(); err != nil {
		return err
	}
	return w.write(entry)
}

func (w world) write(entry line) error {
	log, err := os.OpenFile(filepath.Join(w.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	entry.PID = os.Getpid()
	text, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	// In front, too: a server that is killed in the middle of a write leaves half a line.
	_, err = log.Write(slices.Concat([]byte("\n"), text, []byte("\n")))
	return errors.Join(err, log.Close())
}

// log returns the lines so far.
func (w world) log() ([]line, error) {
	file, err := os.Open(filepath.Join(w.folder, "log"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var lines []line
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		var one line
		if len(scanner.Bytes()) == 0 {
			continue
		}
		err := json.Unmarshal(scanner.Bytes(), &one)
		if half := (*json.SyntaxError)(nil); errors.As(err, &half) && half.Offset == int64(len(scanner.Bytes())) {
			continue // a truncated line: an event that was not logged
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the world's log: %w", len(lines)+1, err)
		}
		lines = append(lines, one)
	}
	return lines, scanner.Err()
}

func (w world) thing(environment, object, name string) string {
	return filepath.Join(w.folder, "thing "+environment+" "+object+" "+name)
}

// things are the names of an environment's things.
func (w world) things(environment string) ([]string, error) {
	entries, err := os.ReadDir(w.folder)
	var names []string
	for _, entry := range entries {
		if rest, ok := strings.CutPrefix(entry.Name(), "thing "+environment+" "); ok {
			_, name, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return names, err
}

// natives are the Go bodies of org.durability.Recorder.
func (w world) natives(r *engine.Runtime) map[string]map[string]muranopl.NativeMethod {
	entry := func(call muranopl.Call, name string) line {
		return line{Environment: r.EnvironmentID(), Fence: r.Fence(), Object: call.Object.ID(), Name: name}
	}
	change := func(entry line, do func() (string, error)) error {
		if err := r.Alive(); err != nil {
			return err
		}
		return w.change(entry, do)
	}
	return map[string]map[string]muranopl.NativeMethod{"org.durability.Recorder": {
		"note": func(_ context.Context, call muranopl.Call) (any, error) {
			return nil, change(entry(call, call.Args["text"].(string)), func() (string, error) { return "note", nil })
		},
		"step": func(ctx context.Context, call muranopl.Call) (any, error) {
			name := call.Args["name"].(string)
			if _, done, err := r.Attribute(ctx, call.Object, name); err != nil || done {
				return nil, err
			}
			return nil, r.Step(ctx, call.Object, name, func(ctx context.Context) error {
				if err := change(entry(call, name), func() (string, error) { return "begin", nil }); err != nil {
					return err
				}
				err := change(entry(call, name), func() (string, error) {
					file, err := os.OpenFile(w.thing(r.EnvironmentID(), call.Object.ID(), name), os.O_CREATE|os.O_EXCL, 0o600)
					if errors.Is(err, fs.ErrExist) {
						return "found", nil
					}
					if err != nil {
						return "", err
					}
					return "made", file.Close()
				})
				if err != nil {
					return err
				}
				return r.SetAttribute(ctx, call.Object, name, true)
			})
		},
		"die": func(_ context.Context, call muranopl.Call) (any, error) {
			if err := change(entry(call, "die"), func() (string, error) { return "note", nil }); err != nil {
				return nil, err
			}
			return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL)
		},
		".destroy": func(_ context.Context, call muranopl.Call) (any, error) {
			return nil, change(entry(call, ""), func() (string, error) {
				found, err := filepath.Glob(w.thing(r.EnvironmentID(), call.Object.ID(), "*"))
				for _, path := range found {
					err = errors.Join(err, os.Remove(path))
				}
				return "removed", err
			})
		},
	}}
}
