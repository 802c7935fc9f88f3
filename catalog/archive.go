package catalog

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

// What a package may unpack to. An upload itself is limited before it is read.
const (
	maxEntries  = 4096
	maxPath     = 512       // bytes
	maxFile     = 32 << 20  // bytes
	maxUnpacked = 128 << 20 // bytes, all files together
	maxRatio    = 200       // unpacked to packed, for what is larger than freeRatio; deflate's own limit is about 1030
	freeRatio   = 1 << 20   // bytes
)

// ReadZip reads a package as a Reader without children does.
func ReadZip(r io.ReaderAt, size int64) (*Package, error) {
	return Reader{}.Zip(context.Background(), r, size)
}

// Reader reads packages, and their charts in children. Without children (nil) this process reads the charts, which must be of somebody whom it trusts.
type Reader struct{ Children *door.Children }

// Zip reads a package from a zip archive, and checks all of it. Nothing is written to disk. What is wrong with the archive or the
// manifest is a fault of kind Invalid or, for what is beyond a limit, of kind TooLarge; it names the entry or the key.
func (of Reader) Zip(ctx context.Context, r io.ReaderAt, size int64) (*Package, error) {
	entries, err := readEntries(r, size)
	if err != nil {
		return nil, err
	}
	files := make(unpacked, len(entries))
	for name, entry := range entries {
		if files[name], err = readEntry(entry); err != nil {
			return nil, err
		}
	}
	return readPackage(ctx, files, chartWork{children: of.Children})
}

// openZip makes a package of an archive that checkZip took before. Its files are unpacked when they are read.
func openZip(ctx context.Context, archive []byte, work chartWork) (*Package, error) {
	entries, err := readEntries(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	return readPackage(ctx, &packed{size: len(archive), entries: entries}, work)
}

// checkZip makes a package of an archive as ReadZip does, but keeps the archive and not the files, of which none is in memory longer than
// it takes to read it through.
func checkZip(ctx context.Context, archive []byte, work chartWork) (*Package, error) {
	entries, err := readEntries(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if err := copyEntry(entry, io.Discard); err != nil {
			return nil, err
		}
	}
	return readPackage(ctx, &packed{size: len(archive), entries: entries}, work)
}

// readEntries reads what is in an archive, and refuses what is no package's or would unpack to too much: no more of a file is unpacked
// than the archive claims that it has.
func readEntries(r io.ReaderAt, size int64) (map[string]*zip.File, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fault.New(fault.Invalid, "Incorrect package format: Uploaded file is not a zip archive (%w)", err)
	}
	if len(archive.File) > maxEntries {
		return nil, fault.New(fault.TooLarge, "The archive has %d entries, more than the %d allowed", len(archive.File), maxEntries)
	}
	entries := make(map[string]*zip.File, len(archive.File))
	var unpacked int64
	for _, entry := range archive.File {
		name, isFile, err := checkEntry(entry)
		if err != nil {
			return nil, err
		}
		if !isFile {
			continue
		}
		if _, twice := entries[name]; twice {
			return nil, incorrect("archive entry %s is there twice", quoteShort(name))
		}
		if total := unpacked + int64(min(entry.UncompressedSize64, maxUnpacked)); total > freeRatio && total/maxRatio > size {
			return nil, fault.New(fault.TooLarge, "The archive unpacks to more than %d times its size (at entry %s)", maxRatio, quoteShort(name))
		}
		if entry.UncompressedSize64 > uint64(min(maxFile, maxUnpacked-unpacked)) {
			return nil, fault.New(fault.TooLarge, "The archive unpacks to too much (at entry %s): one file may have %d MiB, all together %d MiB",
				quoteShort(entry.Name), maxFile>>20, maxUnpacked>>20)
		}
		unpacked += int64(entry.UncompressedSize64)
		entries[name] = entry
	}
	return entries, nil
}

// checkEntry returns the cleaned name of an entry and whether it is a file; it refuses everything that could reach outside of
// the package or is no plain file.
func checkEntry(entry *zip.File) (name string, isFile bool, err error) {
	name = entry.Name
	// The file mode's kind bits tell links and devices; a name that ends in '/' is a folder.
	mode := entry.Mode()
	if err := checkName(strings.TrimSuffix(name, "/")); err != nil {
		return "", false, err
	}
	if strings.HasSuffix(name, "/") || mode.IsDir() {
		return "", false, nil
	}
	switch {
	case mode&fs.ModeSymlink != 0:
		return "", false, incorrect("archive entry %s is a link; links are not allowed", quoteShort(name))
	case !mode.IsRegular():
		return "", false, incorrect("archive entry %s is no plain file", quoteShort(name))
	case entry.Flags&1 != 0:
		return "", false, incorrect("archive entry %s is encrypted", quoteShort(name))
	}
	return path.Clean(name), true, nil
}

// checkName refuses names that are absolute, lead outside, or mean something else on another system.
func checkName(name string) error {
	clean := path.Clean(name)
	switch {
	case !utf8.ValidString(name):
		return incorrect("the name of archive entry %s is not in UTF-8", quoteShort(name))
	case name == "" || strings.ContainsRune(name, 0):
		return incorrect("archive entry %s has no proper name", quoteShort(name))
	case len(name) > maxPath:
		return incorrect("the name of archive entry %s is longer than %d bytes", quoteShort(name), maxPath)
	case strings.HasPrefix(name, "/") || strings.Contains(name, `\`) || len(name) > 1 && name[1] == ':':
		return incorrect("archive entry %s has an absolute name or one of another system; names should be relative, with '/'", quoteShort(name))
	case clean == ".." || strings.HasPrefix(clean, "../"):
		return incorrect("archive entry %s leads outside of the package", quoteShort(name))
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return incorrect("archive entry %s has '..' in its name", quoteShort(name))
		}
	}
	return nil
}

// readEntry unpacks one file.
func readEntry(entry *zip.File) ([]byte, error) {
	content := bytes.NewBuffer(make([]byte, 0, entry.UncompressedSize64))
	err := copyEntry(entry, content)
	return content.Bytes(), err
}

// copyEntry unpacks one file into a writer, no more of it than the archive claims that it has.
func copyEntry(entry *zip.File, to io.Writer) error {
	reader, err := entry.Open()
	if err != nil {
		return incorrect("archive entry %s cannot be read: %w", quoteShort(entry.Name), err)
	}
	defer reader.Close()
	if _, err = io.CopyN(to, reader, int64(entry.UncompressedSize64)); err == nil {
		// At the end, and only there, the checksum is compared.
		if _, err = io.ReadFull(reader, make([]byte, 1)); errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = errors.New("it has more than the archive claims")
		}
	}
	return incorrect("archive entry %s cannot be read: %w", quoteShort(entry.Name), err)
}

// ReadFolder reads a package from a folder. Links in it are not followed but refused.
func ReadFolder(fsys fs.FS) (*Package, error) {
	return Reader{}.Folder(context.Background(), fsys)
}

// Folder is ReadFolder with the reader's children.
func (of Reader) Folder(ctx context.Context, fsys fs.FS) (*Package, error) {
	files, err := readFiles(fsys)
	if err != nil {
		return nil, err
	}
	return readPackage(ctx, unpacked(files), chartWork{children: of.Children})
}

// ReadFiles reads a package that is made of these files, by their paths inside the package.
func ReadFiles(files map[string][]byte) (*Package, error) {
	return Reader{}.Files(context.Background(), files)
}

// Files is ReadFiles with the reader's children.
func (of Reader) Files(ctx context.Context, files map[string][]byte) (*Package, error) {
	for name := range files {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	return readPackage(ctx, unpacked(maps.Clone(files)), chartWork{children: of.Children})
}

// ReadEmbedded reads a package that comes with Burano; only such a package's classes can have native methods.
func ReadEmbedded(fsys fs.FS) (*Package, error) {
	p, err := ReadFolder(fsys)
	if err != nil {
		return nil, err
	}
	p.embedded = true
	return p, nil
}

func readFiles(fsys fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	var total int64
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir // version control and editors
			}
			return nil
		}
		if strings.HasPrefix(entry.Name(), ".") {
			return nil
		}
		if !entry.Type().IsRegular() {
			return incorrect("%s is no plain file; links are not allowed", quoteShort(name))
		}
		if err := checkName(name); err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		total += info.Size()
		if info.Size() > maxFile || total > maxUnpacked || len(files) >= maxEntries {
			return fault.New(fault.TooLarge, "The folder holds too much (at %s): a package may have %d files, %d MiB each, %d MiB together",
				quoteShort(name), maxEntries, maxFile>>20, maxUnpacked>>20)
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		files[name] = content
		return nil
	})
	if err != nil {
		return nil, readingFolder(err)
	}
	return files, nil
}

func readingFolder(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fmt.Errorf("read the package folder: %w", err)
}

// WriteZip writes the folder as a package zip: the same folder gives the same bytes everywhere. Names that begin with a dot
// are left out. It does not check that the folder is a package; ReadFolder does.
func WriteZip(w io.Writer, fsys fs.FS) error {
	files, err := readFiles(fsys)
	if err != nil {
		return err
	}
	return writeZip(w, unpacked(files))
}

// WriteZip writes the package as a zip, with the same bytes each time.
func (p *Package) WriteZip(w io.Writer) error { return writeZip(w, p.files) }

func writeZip(w io.Writer, files contents) error {
	names := files.names()
	sort.Strings(names)
	archive := zip.NewWriter(w)
	for _, name := range names {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		header.SetMode(0o644)
		content, err := files.read(name)
		if err != nil {
			return fmt.Errorf("write package zip: %w", err)
		}
		entry, err := archive.CreateHeader(header)
		if err == nil {
			_, err = entry.Write(content)
		}
		if err != nil {
			return fmt.Errorf("write package zip: %s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write package zip: %w", err)
	}
	return nil
}
