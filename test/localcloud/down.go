package localcloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/burano/burano/test/localcloud/fabric"
	"github.com/burano/burano/test/localcloud/hypervisor"
	"github.com/burano/burano/test/localcloud/keystone"
)

// parts are the entries of a local cloud in its state folder.
var parts = []string{
	"keystone", "glance", "nova", "neutron", "cinder", "manila", "heat", "swift", "hypervisor", keystone.SecondRegion, "clouds.yaml", "localcloud.log", "process.json",
	"lock", "config.json",
}

// Down ends the process of the cloud with this state folder and removes exactly the cloud's objects: servers, networks, images, state; host settings are
// restored. It works also when the process was killed and when half of it is gone already.
func Down(ctx context.Context, stateDir string) error {
	known, err := readConfig(stateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known.Prefix = cmp.Or(known.Prefix, fabric.Prefix)
	if err := checkOwner(known.Prefix, stateDir); err != nil {
		return err
	}
	return down(ctx, stateDir, known)
}

// Reclaim takes down the cloud that has the names with a prefix, wherever its state is or was, if nothing serves it any more. It is
// for tests, whose predecessors may have been killed at any moment.
func Reclaim(ctx context.Context, prefix string) error {
	prefix = cmp.Or(prefix, fabric.Prefix)
	last, err := readOwner(prefix)
	if err != nil || last.StateDir == "" {
		return err
	}
	if process, alive, err := FindProcess(last.StateDir); err != nil || alive {
		return errors.Join(err, fmt.Errorf("process %d serves the local cloud in %s: it is not taken away", process.PID, last.StateDir))
	}
	known, err := readConfig(last.StateDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	known.Prefix, known.ExternalCIDR = prefix, cmp.Or(known.ExternalCIDR, last.ExternalCIDR)
	return down(ctx, last.StateDir, known)
}

func down(ctx context.Context, stateDir string, known stored) error {
	prefix := known.Prefix
	if _, err := os.Stat(stateDir); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(ownerPath(prefix)); errors.Is(err, fs.ErrNotExist) {
			return nil // there is nothing
		}
	}
	if err := stopProcess(ctx, stateDir, 20*time.Second); err != nil {
		return err
	}
	if _, err := os.Stat(stateDir); err == nil {
		held, err := lockState(stateDir)
		if err != nil {
			return err
		}
		defer held.release()
	}
	external, err := netip.ParsePrefix(cmp.Or(known.ExternalCIDR, DefaultExternal))
	if err != nil {
		return fmt.Errorf("read %s: %w", configPath(stateDir), err)
	}
	config := Config{StateDir: stateDir, Prefix: prefix, ExternalCIDR: external, SecondCIDR: external, Logger: slog.New(slog.DiscardHandler)}
	if known.SecondCIDR != "" {
		if config.SecondCIDR, err = netip.ParsePrefix(known.SecondCIDR); err != nil {
			return fmt.Errorf("read %s: %w", configPath(stateDir), err)
		}
	}
	err = removeServersAndNetworks(ctx, config)
	if err == nil { // there may be a second region that the configuration does not know any more
		err = removeServersAndNetworks(ctx, config.second())
	}
	if err != nil {
		return fmt.Errorf("take the local cloud down: %w; the rest of it is still there: try again", err)
	}
	if err := restoreSettings(settingsPath, prefix); err != nil {
		return err
	}
	for _, part := range parts {
		if err := os.RemoveAll(filepath.Join(stateDir, part)); err != nil {
			return fmt.Errorf("remove the state: %w", err)
		}
	}
	if known.MadeDir {
		// Files of others there stay, and the folder with them.
		_ = os.Remove(stateDir)
	}
	if err := os.Remove(ownerPath(prefix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeServersAndNetworks works from the state of the machine, not from the tables, so that it needs none of them. Servers go first: a namespace with a
// process in it would live on.
func removeServersAndNetworks(ctx context.Context, config Config) error {
	machines, err := hypervisor.New(config.hypervisor())
	if err != nil {
		return err
	}
	if err := machines.DeleteAll(ctx); err != nil {
		return err
	}
	folder, err := filepath.Abs(filepath.Join(config.StateDir, "cinder"))
	if err != nil {
		return err
	}
	if err := hypervisor.CloseLoops(ctx, folder); err != nil {
		return err
	}
	// The folder is Neutron's, in which its data plane has recorded its changes beside its own objects.
	plane, err := fabric.New(fabric.Config{
		StateDir: filepath.Join(config.StateDir, "neutron"), Prefix: config.Prefix, External: config.ExternalCIDR, Logger: config.Logger,
	})
	if err != nil {
		return err
	}
	return plane.DeleteAll(ctx)
}
