package ssh

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// File is one file (or, with Link, one symbolic link) on a server. Owner is root.
type File struct {
	Path    string      // absolute
	Mode    fs.FileMode // permission bits; 0644 when 0
	Content []byte
	Link    string // target; Content and Mode mean nothing then
}

// Digest is the sha256 of the content in hexadecimal, as sha256sum prints it.
func (f File) Digest() string {
	sum := sha256.Sum256(f.Content)
	return hex.EncodeToString(sum[:])
}

//go:embed scripts/unpack.sh
var unpackScript string

// Upload puts files in place. They travel as one tar stream, are unpacked beside each other, and are renamed into
// place when all have arrived: a reader sees an old or a new file, never half of one.
func (c *Client) Upload(ctx context.Context, files []File) error {
	if len(files) == 0 {
		return nil
	}
	stream, err := archive(files)
	if err != nil {
		return err
	}
	if err := c.run(ctx, "unpack files", []string{"bash", "-c", unpackScript}, stream, newOutput(outputLimit)); err != nil {
		return fmt.Errorf("upload %d files: %w", len(files), err)
	}
	return nil
}

func archive(files []File) (*bytes.Buffer, error) {
	buffer := &bytes.Buffer{}
	length := 1024 // the end
	for _, file := range files {
		length += 512 + (len(file.Content)+511)/512*512
	}
	buffer.Grow(length)
	writer := tar.NewWriter(buffer)
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for _, file := range sorted {
		if !path.IsAbs(file.Path) || path.Clean(file.Path) != file.Path {
			return nil, fmt.Errorf("path %q of a file to upload is not absolute and clean", file.Path)
		}
		header := &tar.Header{Name: strings.TrimPrefix(file.Path, "/"), Mode: 0o644, Size: int64(len(file.Content)), Typeflag: tar.TypeReg, Uname: "root", Gname: "root"}
		if file.Mode != 0 {
			header.Mode = int64(file.Mode.Perm())
		}
		if file.Link != "" {
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, file.Link, 0
		}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", file.Path, err)
		}
		if header.Size > 0 {
			if _, err := writer.Write(file.Content); err != nil {
				return nil, fmt.Errorf("pack %s: %w", file.Path, err)
			}
		}
	}
	return buffer, writer.Close()
}

// Copy streams one local file to a path on the server (mode 0755), renamed into place when it is complete.
func (c *Client) Copy(ctx context.Context, local, remote string) error {
	file, err := os.Open(local)
	if err != nil {
		return fmt.Errorf("copy %s: %w", local, err)
	}
	defer file.Close()
	command := fmt.Sprintf(`echo $$; set -e; mkdir -p %[2]s; cat > %[1]s.new; chmod 0755 %[1]s.new; mv -fT %[1]s.new %[1]s`, quote(remote), quote(path.Dir(remote)))
	if err := c.run(ctx, "copy "+path.Base(remote), []string{"bash", "-c", command}, io.Reader(file), newOutput(outputLimit)); err != nil {
		return fmt.Errorf("copy %s to %s: %w", local, remote, err)
	}
	return nil
}
