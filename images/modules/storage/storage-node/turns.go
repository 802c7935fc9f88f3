package main

import (
	"sync"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// turns allows one call at a time for each key: the id of a volume, or a path.
type turns struct {
	refusal string // of a second call, with %s for the key

	mutex sync.Mutex
	busy  map[string]bool
}

// alone takes the turn of a key, which done returns.
func (t *turns) alone(key string) (done func(), err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.busy[key] {
		return nil, status.Errorf(codes.Aborted, t.refusal, key)
	}
	if t.busy == nil {
		t.busy = map[string]bool{}
	}
	t.busy[key] = true
	return func() {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		delete(t.busy, key)
	}, nil
}

// usageOf is the use of the file system at a path, in bytes and in inodes.
func usageOf(path string) ([]*csi.VolumeUsage, error) {
	var state syscall.Statfs_t
	if err := syscall.Statfs(path, &state); err != nil {
		return nil, err
	}
	size := state.Bsize
	return []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: int64(state.Blocks) * size, Available: int64(state.Bavail) * size, Used: int64(state.Blocks-state.Bfree) * size},
		{Unit: csi.VolumeUsage_INODES, Total: int64(state.Files), Available: int64(state.Ffree), Used: int64(state.Files - state.Ffree)},
	}, nil
}
