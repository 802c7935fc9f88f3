package hypervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// deletedMark lies beside an image that is deleted but still under the disks of servers.
const deletedMark = ".deleted"

func (h *Hypervisor) imageFolder(id string) string { return filepath.Join(h.imagesFolder(), id) }

// ImportImage unpacks a tar of a root file system, once: an image that is there is not read again. It is there completely or
// not at all.
func (h *Hypervisor) ImportImage(ctx context.Context, imageID string, tar io.Reader) error {
	if err := checkID("an image", imageID); err != nil {
		return err
	}
	defer h.lock("image " + imageID)()
	if h.HasImage(imageID) {
		return nil
	}
	if _, err := os.Stat(h.imageFolder(imageID)); err == nil {
		return fmt.Errorf("import image %s: it was deleted, and servers still run from it", imageID)
	}
	began := time.Now()
	// The remains of an interrupted import go first.
	importing := filepath.Join(h.imagesFolder(), ".importing-"+imageID)
	if err := os.RemoveAll(importing); err != nil {
		return fmt.Errorf("import image %s: %w", imageID, err)
	}
	if err := unpack(ctx, importing, tar); err != nil {
		return errors.Join(fmt.Errorf("import image %s: %w", imageID, err), os.RemoveAll(importing))
	}
	if err := os.Rename(importing, h.imageFolder(imageID)); err != nil {
		return fmt.Errorf("import image %s: %w", imageID, err)
	}
	h.log.Info("image imported", "image", imageID, "seconds", time.Since(began).Seconds())
	return nil
}

func unpack(ctx context.Context, folder string, archive io.Reader) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "tar", "--extract", "--numeric-owner", "--same-permissions", "--xattrs", "--xattrs-include=*",
		"--directory", folder, "--file", "-")
	var said bytes.Buffer
	command.Stdin, command.Stderr = archive, &said
	if err := command.Run(); err != nil {
		return fmt.Errorf("unpack it (a tar of a root file system is wanted): %w: %s", err, lastLine(said.String()))
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat("sbin/init"); err != nil {
		return fmt.Errorf("it is no root file system that can boot: it has no /sbin/init")
	}
	return nil
}

// HasImage is true for an image that servers can be started from.
func (h *Hypervisor) HasImage(imageID string) bool {
	if checkID("an image", imageID) != nil {
		return false
	}
	if _, err := os.Stat(h.imageFolder(imageID) + deletedMark); err == nil {
		return false
	}
	info, err := os.Stat(h.imageFolder(imageID))
	return err == nil && info.IsDir()
}

// DeleteImage removes an image, at once or, while there are servers whose disks build on it, with the last of them.
func (h *Hypervisor) DeleteImage(_ context.Context, imageID string) error {
	if err := checkID("an image", imageID); err != nil {
		return err
	}
	defer h.lock("image " + imageID)()
	if _, err := os.Stat(h.imageFolder(imageID)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.WriteFile(h.imageFolder(imageID)+deletedMark, nil, 0o600); err != nil {
		return fmt.Errorf("delete image %s: %w", imageID, err)
	}
	return h.removeUnused(imageID)
}

// releaseImage removes an image that a server has used, when it is deleted and the server was the last.
func (h *Hypervisor) releaseImage(imageID string) error {
	if imageID == "" {
		return nil
	}
	defer h.lock("image " + imageID)()
	return h.removeUnused(imageID)
}

// removeUnused removes an image that is marked as deleted when no server needs it any more. Its lock is held.
func (h *Hypervisor) removeUnused(imageID string) error {
	mark := h.imageFolder(imageID) + deletedMark
	if _, err := os.Stat(mark); err != nil {
		return nil
	}
	servers, err := h.serverIDs()
	if err != nil {
		return err
	}
	for _, id := range servers {
		if server, err := h.load(id); err == nil && slices.Contains(server.images(), imageID) {
			return nil
		}
	}
	// A folder that is half removed must not look like an image.
	removing := filepath.Join(h.imagesFolder(), ".importing-"+imageID)
	err = errors.Join(os.RemoveAll(removing), os.Rename(h.imageFolder(imageID), removing), os.Remove(mark), os.RemoveAll(removing))
	if err != nil {
		return fmt.Errorf("delete image %s: %w", imageID, err)
	}
	return nil
}
