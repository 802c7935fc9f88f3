// Package scratch gives out room for temporary files, which is reserved before anything is written. It has a total, half of it for one project, and no
// more than the disk has. All code that stores tenants' files on the server's disk for a while reserves room here, so that none of them fills the disk of
// the database.
package scratch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
)

const (
	// patience is how long a reservation waits for others to end.
	patience = 5 * time.Minute
	// kept is the number of bytes of the disk that stay free, for the database and its log.
	kept = 512 << 20
	// shares is how many projects with all that they may have fit.
	shares = 2
)

var looks = wait.Policy{First: 50 * time.Millisecond, Most: time.Second, Growth: 1.5}

// Budget is the room of a server. It is safe for concurrent use.
type Budget struct {
	folder string
	limit  int64
	free   func() (int64, error) // of the disk, in bytes

	mutex sync.Mutex
	taken map[string]int64 // bytes by project
	all   int64
}

// New makes a budget of so many bytes for files below a folder.
func New(folder string, limit int64) *Budget {
	return &Budget{folder: folder, limit: limit, taken: map[string]int64{}, free: func() (int64, error) {
		var found syscall.Statfs_t
		if err := syscall.Statfs(folder, &found); err != nil {
			return 0, fmt.Errorf("look how much room is free in %s: %w", folder, err)
		}
		return int64(found.Bavail) * found.Bsize, nil
	}}
}

// Share is how many bytes a project may have at a time.
func (b *Budget) Share() int64 { return b.limit / shares }

// Folder makes a folder for files whose room is reserved each time that they are written. Its caller removes it.
func (b *Budget) Folder(pattern string) (string, error) { return os.MkdirTemp(b.folder, pattern) }

// Reserve takes room for a project and waits for it, when others have it. The room is to be released.
func (b *Budget) Reserve(ctx context.Context, project string, bytes int64) (*Room, error) {
	if bytes > b.Share() {
		return nil, fault.New(fault.TooLarge, "it needs %s for temporary files, and a project may have %s at a time: let the setting scratch-space be larger, which is twice that",
			inWords(bytes), inWords(b.Share()))
	}
	err := looks.For(patience).Until(ctx, func(context.Context) error {
		if err := b.take(project, bytes); err != nil {
			return wait.Again(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Room{budget: b, project: project, bytes: bytes}, nil
}

// Fits reports whether a reservation would have its room at once.
func (b *Budget) Fits(project string, bytes int64) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.lacks(project, bytes) == nil
}

func (b *Budget) take(project string, bytes int64) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if err := b.lacks(project, bytes); err != nil {
		return err
	}
	b.all += bytes
	b.taken[project] += bytes
	return nil
}

// lacks is why there is no room now. It is called with the lock held.
func (b *Budget) lacks(project string, bytes int64) error {
	free, err := b.free()
	switch {
	case err != nil:
		return err
	case b.taken[project]+bytes > b.Share():
		return fmt.Errorf("it needs %s for temporary files, and the project has %s of the %s that it may have: wait until what it does has ended", inWords(bytes), inWords(b.taken[project]), inWords(b.Share()))
	case b.all+bytes > b.limit:
		return fmt.Errorf("it needs %s for temporary files, and %s of the server's %s are taken: let the setting scratch-space be larger, or wait", inWords(bytes), inWords(b.all), inWords(b.limit))
	case free-b.all-bytes < kept: // reserved room may not be written yet
		return fmt.Errorf("it needs %s for temporary files, and the disk of %s has %s free, of which %s are reserved and %s stay free: make room there", inWords(bytes), b.folder, inWords(free), inWords(b.all), inWords(kept))
	}
	return nil
}

// inWords rounds up to MiB.
func inWords(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }

// Room is a reservation. It is not for use by several goroutines at once.
type Room struct {
	budget   *Budget
	project  string
	bytes    int64
	files    []string
	released bool
}

// File makes a file, which only the server's user may read, and which takes no more bytes than the room has.
func (r *Room) File(pattern string) (*File, error) {
	file, err := os.CreateTemp(r.budget.folder, pattern) // mode 0600
	if err != nil {
		return nil, err
	}
	r.files = append(r.files, file.Name())
	return &File{file, door.Writer(file, r.bytes, "the temporary file").Write}, nil
}

// Release removes the files that are still where they were made, and gives the room back.
func (r *Room) Release() (err error) {
	if r.released {
		return nil
	}
	r.released = true
	for _, name := range r.files {
		if removed := os.Remove(name); !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	r.budget.mutex.Lock()
	defer r.budget.mutex.Unlock()
	r.budget.all -= r.bytes
	if r.budget.taken[r.project] -= r.bytes; r.budget.taken[r.project] == 0 {
		delete(r.budget.taken, r.project)
	}
	return err
}

// File is a temporary file that is written from its beginning.
type File struct {
	file  *os.File
	write func([]byte) (int, error)
}

// Name is the file's path.
func (f *File) Name() string { return f.file.Name() }

// Write adds to the file.
func (f *File) Write(more []byte) (int, error) { return f.write(more) }

// Close ends the writing.
func (f *File) Close() error { return f.file.Close() }
