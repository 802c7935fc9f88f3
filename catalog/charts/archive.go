// Package charts reads Helm charts: out of packages, and out of the registries and repositories that an operator admits. It renders no template.
package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/internal/door"
)

// Helm keeps chart and values of each revision in a Secret, which has one MiB of room.
const (
	MaxArchive  = 700 << 10 // bytes of the archive
	maxFile     = 5 << 20   // bytes of a file in it, Helm's own limit
	maxUnpacked = 50 << 20
	maxFiles    = 5000
)

// Resources is the folder of a package that its charts are in.
const Resources = "Resources"

// Files are the files of a package.
type Files interface {
	File(name string) ([]byte, error) // fails with fs.ErrNotExist
	FileNames() []string
}

// Archive makes the archive (.tgz) of a chart from a folder below Resources, or returns an existing archive. The same files give the same bytes.
func Archive(files Files, chart string) ([]byte, error) {
	place := path.Join(Resources, chart)
	if !strings.HasPrefix(place, Resources+"/") {
		return nil, fmt.Errorf("%q is no place in the package's folder %s", chart, Resources)
	}
	if strings.HasSuffix(place, ".tgz") {
		archive, err := files.File(place)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the package has no file %s", place)
		}
		if err != nil {
			return nil, err
		}
		return archive, fits(place, archive)
	}
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	writer := tar.NewWriter(compressed)
	found := false
	for _, file := range slices.Sorted(slices.Values(files.FileNames())) {
		inside, ok := strings.CutPrefix(file, place+"/")
		if !ok || strings.HasSuffix(file, "/") {
			continue
		}
		content, err := files.File(file)
		if err != nil {
			return nil, err
		}
		if len(content) > maxFile {
			return nil, fmt.Errorf("%s has %d bytes, more than the %d that Helm takes", file, len(content), maxFile)
		}
		found = found || inside == chartFile
		header := &tar.Header{Typeflag: tar.TypeReg, Name: "chart/" + inside, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
		if err := writer.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if _, err := writer.Write(content); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, fmt.Errorf("the package has no file %s/%s: put the chart's folder there, or say where it is", place, chartFile)
	}
	if err := errors.Join(writer.Close(), compressed.Close()); err != nil {
		return nil, err
	}
	return archive.Bytes(), fits(place, archive.Bytes())
}

func fits(place string, archive []byte) error {
	if len(archive) > MaxArchive {
		return fmt.Errorf("%s has %d bytes as an archive, more than the %d for which Kubernetes has room: leave out what its templates do not read", place, len(archive), MaxArchive)
	}
	return nil
}

// unpack reads the files of an archive, by their paths in the chart's folder.
func unpack(archive []byte) (map[string][]byte, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("it is no archive (.tgz): %w", err)
	}
	files, total := map[string][]byte{}, 0
	reader := tar.NewReader(compressed)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is no archive (.tgz): %w", err)
		}
		_, name, below := strings.Cut(path.Clean(header.Name), "/")
		switch {
		case header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeXGlobalHeader || !below:
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%s is no plain file; links are not allowed", header.Name)
		case strings.Contains("/"+header.Name+"/", "/../") || path.IsAbs(header.Name):
			return nil, fmt.Errorf("%s leads outside of the chart", header.Name)
		case len(files) == maxFiles:
			return nil, fmt.Errorf("it has more than %d files", maxFiles)
		}
		content, err := door.ReadAll(reader, maxFile, header.Name)
		if total += len(content); door.IsExceeded(err) || total > maxUnpacked {
			return nil, fmt.Errorf("it unpacks to too much (at %s): a file may have %d MiB, all together %d MiB", header.Name, maxFile>>20, maxUnpacked>>20)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", header.Name, err)
		}
		files[name] = content
	}
}
