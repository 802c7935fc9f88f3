package glance

import (
	"context"
	"crypto/md5" // Glance's "checksum" is MD5; os_hash_value is the one to trust
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
)

// dataPath is where an image's data lies as it was uploaded; ids are UUIDs (isUUID).
func (s *Service) dataPath(id string) string { return filepath.Join(s.dir, id) }

// upload takes an image's data: to the file, to the checksums and to the hypervisor, all in one pass. Unless all of it comes
// through the image waits for data again and nothing of it is left.
func (s *Service) upload(w http.ResponseWriter, r *http.Request) error {
	image, err := s.owned(r)
	if err != nil {
		return err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind != "application/octet-stream":
		return failure{http.StatusUnsupportedMediaType, "The media type of the request must be application/octet-stream."}
	case image.ContainerFormat == "" || image.DiskFormat == "":
		return invalid("Properties disk_format, container_format must be set prior to saving data.")
	case image.ContainerFormat == formatDocker && image.DiskFormat == "raw": // of containers: no server is made of it
	case !slices.Contains(s.formats, image.DiskFormat) || image.ContainerFormat != "bare":
		return invalid("This cloud runs images of disk_format raw and container_format bare only, with a tar of the root file "+
			"system as data: image %s is %s in %s.", image.ID, image.DiskFormat, image.ContainerFormat)
	}
	if err := s.beginUpload(image.ID); err != nil {
		return err
	}
	done, err := s.receive(r.Context(), image, r.Body)
	if err != nil {
		s.log.WarnContext(r.Context(), "image upload failed", "image", image.ID, "error", err)
		// The request may be broken: the undoing must not end with it.
		if undone := s.undoUpload(context.WithoutCancel(r.Context()), image.ID); undone != nil {
			return errors.Join(err, undone)
		}
		return invalid("The data of image %s cannot be used: %v", image.ID, err)
	}
	found, err := s.images.Update(image.ID, func(i *Image) {
		i.Status, i.Size, i.Checksum, i.Hash, i.UpdatedAt = StatusActive, done.size, done.md5, done.sha512, s.now()
	})
	if err != nil {
		return err
	}
	if !found {
		return noImage(image.ID)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Service) beginUpload(id string) error {
	s.uploads.Lock()
	defer s.uploads.Unlock()
	busy := ""
	found, err := s.images.Update(id, func(i *Image) {
		if busy = i.Status; busy == StatusQueued {
			i.Status = StatusSaving
		}
	})
	switch {
	case err != nil:
		return err
	case !found:
		return noImage(id)
	case busy != StatusQueued:
		return failure{http.StatusConflict, fmt.Sprintf("Image status transition from %s to saving is not allowed", busy)}
	}
	return nil
}

type received struct {
	size        int64
	md5, sha512 string
}

func (s *Service) receive(ctx context.Context, image Image, body io.Reader) (received, error) {
	file, err := os.OpenFile(s.dataPath(image.ID), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return received{}, err
	}
	defer file.Close()
	short, long, size := md5.New(), sha512.New(), counter(0)
	everything := io.TeeReader(body, io.MultiWriter(file, short, long, &size))
	if image.ContainerFormat != formatDocker {
		if err := s.store.ImportImage(ctx, image.ID, everything); err != nil {
			return received{}, fmt.Errorf("import: %w", err)
		}
	}
	// The reader of a tar stops at its end mark; the rest is still part of the data.
	if _, err := io.Copy(io.Discard, everything); err != nil {
		return received{}, fmt.Errorf("receive: %w", err)
	}
	if err := file.Close(); err != nil {
		return received{}, err
	}
	return received{int64(size), hex.EncodeToString(short.Sum(nil)), hex.EncodeToString(long.Sum(nil))}, nil
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func (s *Service) undoUpload(ctx context.Context, id string) error {
	if err := s.dropData(ctx, id); err != nil {
		return err
	}
	_, err := s.images.Update(id, func(i *Image) { i.Status, i.UpdatedAt = StatusQueued, s.now() })
	return err
}

// Restore gives the hypervisor active images that it has lost.
func (s *Service) Restore(ctx context.Context) error {
	for _, image := range s.images.All() {
		if image.Status != StatusActive || image.ContainerFormat == formatDocker || s.store.HasImage(image.ID) {
			continue
		}
		if err := s.importAgain(ctx, image.ID); err != nil {
			return fmt.Errorf("restore image %s: %w", image.ID, err)
		}
	}
	return nil
}

func (s *Service) importAgain(ctx context.Context, id string) error {
	file, err := os.Open(s.dataPath(id))
	if err != nil {
		return err
	}
	defer file.Close()
	return s.store.ImportImage(ctx, id, file)
}

func (s *Service) dropData(ctx context.Context, id string) error {
	if err := s.store.DeleteImage(ctx, id); err != nil {
		return fmt.Errorf("delete the data of image %s: %w", id, err)
	}
	if err := os.Remove(s.dataPath(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the data of image %s: %w", id, err)
	}
	return nil
}

func (s *Service) download(w http.ResponseWriter, r *http.Request) error {
	image, err := s.visible(r)
	if err != nil {
		return err
	}
	if image.Status != StatusActive {
		w.WriteHeader(http.StatusNoContent) // Glance's answer for an image without data
		return nil
	}
	file, err := os.Open(s.dataPath(image.ID))
	if err != nil {
		return err
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Md5", image.Checksum)
	w.Header().Set("Content-Length", fmt.Sprint(image.Size))
	w.WriteHeader(http.StatusOK)
	_, _ = io.Copy(w, file) // the status is sent: the client compares length and checksum
	return nil
}
