package localcloud

import (
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
)

// setting is a kernel setting that must be at least Minimum while the cloud runs.
type setting struct {
	Path    string
	Minimum int
}

// hostSettings: each server's systemd and kubelet hold a dozen inotify instances of root, and 128 end at about nine servers.
func hostSettings() []setting {
	return []setting{{Path: "/proc/sys/fs/inotify/max_user_instances", Minimum: 1024}}
}

// settingsPath is the file in which all local clouds of this machine record their changes for each other.
const settingsPath = "/run/burano-localcloud-settings.json"

// change is a raised setting: its former value, its present value, and the clouds (by their prefixes) that need it.
type change struct {
	Path, Before, After string
	For                 []string
}

// raiseSettings raises settings that are too low for the cloud with this prefix. Each change is recorded before it is made.
func raiseSettings(path, prefix string, settings []setting) error {
	return withChanges(path, func(changes []change) ([]change, error) {
		for _, s := range settings {
			now, err := readSetting(s.Path)
			if err != nil {
				return nil, err
			}
			value, err := strconv.Atoi(now)
			if err != nil {
				return nil, fmt.Errorf("setting %s is %q: a number was expected", s.Path, now)
			}
			known := slices.IndexFunc(changes, func(c change) bool { return c.Path == s.Path })
			switch {
			case value < s.Minimum && known >= 0: // the machine was started again
				changes[known].Before = now
			case value < s.Minimum:
				known = len(changes)
				changes = append(changes, change{Path: s.Path, Before: now, After: strconv.Itoa(s.Minimum)})
			case known < 0:
				continue // it was enough before there was a cloud
			}
			if c := &changes[known]; !slices.Contains(c.For, prefix) {
				c.For = append(c.For, prefix)
			}
			if err := writeJSONFile(path, changes); err != nil {
				return nil, fmt.Errorf("note a change of %s: %w", s.Path, err)
			}
			if value < s.Minimum {
				if err := os.WriteFile(s.Path, []byte(changes[known].After), 0); err != nil {
					return nil, fmt.Errorf("raise %s from %s to %s: %w", s.Path, now, changes[known].After, err)
				}
			}
		}
		return changes, nil
	})
}

// restoreSettings restores the changes of raiseSettings, once no other cloud needs them; later changes of others stay.
func restoreSettings(path, prefix string) error {
	return withChanges(path, func(changes []change) (left []change, problems error) {
		for _, c := range changes {
			c.For = slices.DeleteFunc(c.For, func(one string) bool { return one == prefix })
			if len(c.For) > 0 {
				left = append(left, c)
				continue
			}
			now, err := readSetting(c.Path)
			if err == nil && now == c.After {
				err = os.WriteFile(c.Path, []byte(c.Before), 0)
			}
			if err != nil {
				problems = errors.Join(problems, fmt.Errorf("put %s back to %s: %w", c.Path, c.Before, err))
			}
		}
		return left, problems
	})
}

// withChanges lets one process at a time work on the recorded changes, and stores the result.
func withChanges(path string, work func([]change) ([]change, error)) error {
	lock, err := os.Open(filepath.Dir(path)) // the folder, so that no file has to stay for it
	if err != nil {
		return fmt.Errorf("lock the host's settings: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the host's settings: %w", err)
	}
	var changes []change
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &changes)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	changes, err = work(changes)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		return writeJSONFile(path, changes)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func readSetting(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read setting: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
