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

// change is a line of settings.json: what was there before, and what the cloud has put there.
type change struct{ Path, Before, After string }

func settingsPath(stateDir string) string { return filepath.Join(stateDir, "settings.json") }

// raiseSettings raises what is too low. Each change is written down before it is made.
func raiseSettings(stateDir string, settings []setting) error {
	changes, err := readChanges(stateDir)
	if err != nil {
		return err
	}
	for _, s := range settings {
		before, err := readSetting(s.Path)
		if err != nil {
			return err
		}
		if value, err := strconv.Atoi(before); err != nil {
			return fmt.Errorf("setting %s is %q: a number was expected", s.Path, before)
		} else if value >= s.Minimum {
			continue
		}
		after := strconv.Itoa(s.Minimum)
		// After a reboot the kernel's value is there again while the record is too: it is the same change.
		changes = slices.DeleteFunc(changes, func(c change) bool { return c.Path == s.Path })
		changes = append(changes, change{s.Path, before, after})
		if err := writeJSONFile(settingsPath(stateDir), changes); err != nil {
			return fmt.Errorf("write down a change of %s: %w", s.Path, err)
		}
		if err := os.WriteFile(s.Path, []byte(after), 0); err != nil {
			return fmt.Errorf("raise %s from %s to %s: %w", s.Path, before, after, err)
		}
	}
	return nil
}

// restoreSettings puts back what raiseSettings has changed; what somebody else has changed since stays.
func restoreSettings(stateDir string) error {
	changes, err := readChanges(stateDir)
	if err != nil {
		return err
	}
	var problems error
	for _, c := range changes {
		now, err := readSetting(c.Path)
		if err == nil && now == c.After {
			err = os.WriteFile(c.Path, []byte(c.Before), 0)
		}
		if err != nil {
			problems = errors.Join(problems, fmt.Errorf("put %s back to %s: %w", c.Path, c.Before, err))
		}
	}
	if problems != nil {
		return problems
	}
	if err := os.Remove(settingsPath(stateDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func readChanges(stateDir string) ([]change, error) {
	data, err := os.ReadFile(settingsPath(stateDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var changes []change
	if err := json.Unmarshal(data, &changes); err != nil {
		return nil, fmt.Errorf("read %s: %w", settingsPath(stateDir), err)
	}
	return changes, nil
}

func readSetting(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read setting: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}
