package localcloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
)

// ownership holds a state folder for one process, and the names on this machine for one state folder.
type ownership struct{ lock *os.File }

// ownerPath is the file that names the state folder of the objects with a prefix. It is gone after a reboot, as they are.
func ownerPath(prefix string) string { return filepath.Join("/run", prefix+"localcloud.json") }

type owner struct{ StateDir, ExternalCIDR string }

// PrepareState makes the state folder of a cloud that is going to be started by another process, so that its log can be opened.
func PrepareState(config Config) error {
	held, err := takeOwnership(config.withDefaults())
	if err != nil {
		return err
	}
	held.release()
	return nil
}

// takeOwnership makes the state folder, locks it and records the data for Down.
func takeOwnership(config Config) (*ownership, error) {
	if !filepath.IsAbs(config.StateDir) {
		return nil, fmt.Errorf("state folder %q: an absolute path is wanted", config.StateDir)
	}
	if err := checkOwner(config.Prefix, config.StateDir); err != nil {
		return nil, err
	}
	_, err := os.Stat(config.StateDir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(config.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	held, err := lockState(config.StateDir)
	if err != nil {
		return nil, err
	}
	known, err := readConfig(config.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		held.release()
		return nil, err
	}
	err = writeJSONFile(configPath(config.StateDir), stored{
		Listen: config.Listen, ExternalCIDR: config.ExternalCIDR.String(), SecondCIDR: secondText(config.SecondCIDR), Prefix: config.Prefix, MadeDir: made || known.MadeDir,
	})
	if err == nil {
		err = writeJSONFile(ownerPath(config.Prefix), owner{config.StateDir, config.ExternalCIDR.String()})
	}
	if err != nil {
		held.release()
		return nil, fmt.Errorf("write the configuration down: %w", err)
	}
	return held, nil
}

// secondText is how the external network of a second region is written down, "" for none.
func secondText(network netip.Prefix) string {
	if !network.IsValid() {
		return ""
	}
	return network.String()
}

// readOwner returns the owner of the objects with a prefix; they have none when the state folder is "".
func readOwner(prefix string) (found owner, err error) {
	data, err := os.ReadFile(ownerPath(prefix))
	if errors.Is(err, fs.ErrNotExist) {
		return owner{}, nil
	}
	if err != nil {
		return owner{}, fmt.Errorf("read who has a local cloud on this machine: %w", err)
	}
	if err := json.Unmarshal(data, &found); err != nil {
		return owner{}, fmt.Errorf("read %s: %w", ownerPath(prefix), err)
	}
	return found, nil
}

// checkOwner refuses another state folder than the owner of the objects with this prefix.
func checkOwner(prefix, stateDir string) error {
	found, err := readOwner(prefix)
	if err != nil || found.StateDir == "" || found.StateDir == stateDir {
		return err
	}
	return fmt.Errorf("there is a local cloud on this machine already, with its state in %s: use --state %s, or take it down "+
		"first with: localcloud down --state %s", found.StateDir, found.StateDir, found.StateDir)
}

func lockState(stateDir string) (*ownership, error) {
	path := filepath.Join(stateDir, "lock")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the state folder: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("state folder %s is used by another process: is its local cloud running? (%w)", stateDir, err)
	}
	return &ownership{lock: file}, nil
}

func (o *ownership) release() { _ = o.lock.Close() }
