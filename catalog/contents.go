package catalog

import (
	"archive/zip"
	"fmt"
	"io/fs"
)

// contents are the files of a package, by their paths in it, '/'-separated. They do not change, and the slices that are read are not to
// be written.
type contents interface {
	names() []string // in no order
	// length is the number of a file's bytes; false when there is no such file.
	length(name string) (int64, bool)
	// read fails with fs.ErrNotExist when there is no such file.
	read(name string) ([]byte, error)
	// held is how many bytes of memory they take.
	held() int
}

// ofFile is about the memory of a file's record besides its bytes.
const ofFile = 400

// unpacked are files in memory.
type unpacked map[string][]byte

func (u unpacked) names() []string {
	names := make([]string, 0, len(u))
	for name := range u {
		names = append(names, name)
	}
	return names
}

func (u unpacked) length(name string) (int64, bool) {
	content, there := u[name]
	return int64(len(content)), there
}

func (u unpacked) read(name string) ([]byte, error) {
	content, there := u[name]
	if !there {
		return nil, noFile(name)
	}
	return content, nil
}

func (u unpacked) held() int {
	bytes := 0
	for name, content := range u {
		bytes += ofFile + len(name) + len(content)
	}
	return bytes
}

// packed are the files of an archive in memory. Each is unpacked when it is read.
type packed struct {
	size    int // of the archive
	entries map[string]*zip.File
}

func (p *packed) names() []string {
	names := make([]string, 0, len(p.entries))
	for name := range p.entries {
		names = append(names, name)
	}
	return names
}

func (p *packed) length(name string) (int64, bool) {
	entry, there := p.entries[name]
	if !there {
		return 0, false
	}
	return int64(entry.UncompressedSize64), true
}

func (p *packed) read(name string) ([]byte, error) {
	entry, there := p.entries[name]
	if !there {
		return nil, noFile(name)
	}
	return readEntry(entry)
}

func (p *packed) held() int {
	bytes := p.size
	for name := range p.entries {
		bytes += ofFile + 2*len(name) // the entry has its name, too
	}
	return bytes
}

func noFile(name string) error {
	return fmt.Errorf("the package has no file %s: %w", name, fs.ErrNotExist)
}
