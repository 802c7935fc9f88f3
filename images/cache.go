package images

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// key is the hash of everything that goes into a piece. Each part is written with its length before it, so that no two lists
// of parts give the same hash.
type key struct{ hash hash.Hash }

// newKey starts with the version of the build code: raise it when the code changes its output.
func newKey() key {
	k := key{sha256.New()}
	k.add("recipe 1")
	return k
}

func (k key) add(parts ...string) {
	for _, part := range parts {
		fmt.Fprintf(k.hash, "%d:%s", len(part), part)
	}
}

// addTree adds the names, modes and contents of the files below a folder for which want is true; nil is all.
func (k key) addTree(folder string, want func(name string) bool) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || (want != nil && !want(entry.Name())) {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(path)
			k.add(name, "link", target)
			if err == nil && !filepath.IsAbs(target) { // such as a file of another module; a link within a node's files leads nowhere here
				if content, err := os.ReadFile(filepath.Join(filepath.Dir(path), target)); err == nil {
					k.add(string(content))
				}
			}
			return err
		}
		content, err := os.ReadFile(path)
		// Git keeps no more of a mode than whether a file can be executed.
		k.add(name, fmt.Sprint(info.Mode()&0o100 != 0), string(content))
		return err
	})
}

func (k key) String() string { return hex.EncodeToString(k.hash.Sum(nil)) }

// piece is a finished folder in the cache.
type piece struct {
	folder string
	key    string
}

// cache is a folder with pieces, <name>-<key>, of which each is complete: a piece gets its name when it is finished. One
// process uses it at a time.
type cache struct {
	folder string
	lock   *os.File
	now    func() time.Time
}

// shortKey is enough of a hash to distinguish pieces of one name.
const shortKey = 24

func openCache(ctx context.Context, folder string, progress *progress) (*cache, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := acquire(ctx, lock, progress); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the cache %s: %w", folder, err), lock.Close())
	}
	c := &cache{folder: folder, lock: lock, now: time.Now}
	return c, c.clear()
}

// acquire waits for another build to end.
func acquire(ctx context.Context, lock *os.File, progress *progress) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for said := false; ; said = true {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if !said {
			progress.say("another build uses the cache: waiting for it")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// clear removes the remains of an interrupted build.
func (c *cache) clear() error {
	left, err := filepath.Glob(filepath.Join(c.folder, "making-*"))
	if err != nil {
		return err
	}
	for _, folder := range left {
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("remove what an interrupted build has left: %w", err)
		}
	}
	return nil
}

func (c *cache) close() { c.lock.Close() }

// find gives the piece with this name and key, if it is there.
func (c *cache) find(name, key string) (piece, bool) {
	folder := filepath.Join(c.folder, name+"-"+key[:shortKey])
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return piece{}, false
	}
	return piece{folder: folder, key: key}, true
}

// make has a piece made in an empty folder and puts it in its place.
func (c *cache) make(name, key string, work func(folder string) error) (piece, error) {
	making, err := os.MkdirTemp(c.folder, "making-"+name+"-")
	if err != nil {
		return piece{}, err
	}
	defer os.RemoveAll(making)
	if err := errors.Join(os.Chmod(making, 0o755), work(making)); err != nil {
		return piece{}, err
	}
	folder := filepath.Join(c.folder, name+"-"+key[:shortKey])
	if err := os.Rename(making, folder); err != nil {
		return piece{}, err
	}
	return piece{folder: folder, key: key}, nil
}

// piece finds or makes a piece, as one step of the build.
func (c *cache) piece(p *progress, name, key, doing string, work func(folder string, output io.Writer) error) (piece, error) {
	step := p.step(name)
	if found, ok := c.find(name, key); ok {
		step.keep()
		// So that sweep knows the pieces in use.
		now := c.now()
		return found, os.Chtimes(found.folder, now, now)
	}
	var made piece
	err := step.run(doing, func(output io.Writer) (err error) {
		made, err = c.make(name, key, func(folder string) error { return work(folder, output) })
		return err
	})
	return made, err
}

// generations is the number of cached pieces of one name: the present one, and one to return to with a branch.
const generations = 2

// sweep removes old generations; that it cannot is no reason to fail.
func (c *cache) sweep() {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return
	}
	byName := map[string][]fs.FileInfo{}
	for _, entry := range entries {
		info, err := entry.Info()
		cut := strings.LastIndex(entry.Name(), "-")
		if err != nil || cut < 0 || !entry.IsDir() {
			continue
		}
		byName[entry.Name()[:cut]] = append(byName[entry.Name()[:cut]], info)
	}
	for _, pieces := range byName {
		slices.SortFunc(pieces, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
		for _, old := range pieces[min(generations, len(pieces)):] {
			_ = os.RemoveAll(filepath.Join(c.folder, old.Name()))
		}
	}
}
