// Package blackbox records a server's work for its tenants in a file that is mapped into memory, so that the next start knows the work that ran when the
// server died. A record costs a copy in memory: the kernel keeps it when the process is killed. A power failure loses records, but no tenant causes one.
package blackbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Kinds of work.
const (
	Request = "request"
	Task    = "task"
	Look    = "look" // of the keeper
)

// Work is something that a server does for a tenant.
type Work struct {
	Kind    string
	Project string // "" while it is unknown who asks
	What    string // for people: a route, a kind of task with its environment
	// Key is the same for the same work: of a request its project, route and content, of a task its id. "" is work without a lasting record.
	Key string
	// Of a task: its fencing number, and whether the database marks it as running alone.
	Fence uint64
	Alone bool
}

const (
	slots    = 1024
	slotSize = 512 // bytes: one of state, the rest as write has them
	header   = slotSize
	fileSize = header + slots*slotSize
	longText = 120 // bytes of each of a work's texts: four of them, and its numbers, fit a slot
	// written is the state of a slot with a work. 1 was that of former versions, which wrote JSON.
	written = 2
)

// Box is safe for concurrent use. A nil Box notes nothing.
type Box struct {
	mutex sync.Mutex
	data  []byte
	free  []int
	over  int // works that run without a slot
	// suspects are the keys of works that ran when servers died, and whether they are refused.
	suspects map[string]bool
	survived chan string
}

// Open maps the file, and returns the work that ran when the process that used it before died: nothing after a stop. more reports that this was not all.
func Open(path string) (box *Box, ran []Work, more bool, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, false, fmt.Errorf("open the list of what runs: %w", err)
	}
	defer file.Close()
	if err := file.Truncate(fileSize); err != nil {
		return nil, nil, false, fmt.Errorf("make the list of what runs: %w", err)
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, fileSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, false, fmt.Errorf("map the list of what runs (%s): %w", path, err)
	}
	more = data[0] != 0
	for i := range slots {
		slot := data[header+i*slotSize:][:slotSize]
		if slot[0] == 0 {
			continue
		}
		work, whole := read(slot[1:])
		if !whole || slot[0] != written {
			more = true
			continue
		}
		ran = append(ran, work)
	}
	clear(data)
	box = &Box{data: data, survived: make(chan string, slots)}
	for i := range slots {
		box.free = append(box.free, slots-1-i)
	}
	return box, ran, more, nil
}

// Close records that the process stops by itself.
func (b *Box) Close() error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	data := b.data
	if b.data = nil; data == nil {
		return nil
	}
	clear(data)
	return syscall.Munmap(data)
}

// Note is the note of a work that runs. A nil Note is that of a nil Box.
type Note struct {
	box  *Box
	slot int // -1 where there was none

	mutex sync.Mutex
	work  Work
	ended bool
}

// Begin notes a work before it begins.
func (b *Box) Begin(work Work) *Note {
	if b == nil {
		return nil
	}
	note := &Note{box: b, slot: -1, work: work}
	b.mutex.Lock()
	if last := len(b.free) - 1; last >= 0 {
		note.slot, b.free = b.free[last], b.free[:last]
	} else {
		b.over++
		b.countOver()
	}
	b.mutex.Unlock()
	note.write()
	return note
}

// countOver writes whether works run that have no slot.
func (b *Box) countOver() {
	if b.data != nil {
		b.data[0] = byte(min(b.over, 1))
	}
}

// Change changes the record.
func (n *Note) Change(change func(work *Work)) {
	if n == nil {
		return
	}
	n.mutex.Lock()
	change(&n.work)
	n.mutex.Unlock()
	n.write()
}

// Work returns the recorded work.
func (n *Note) Work() Work {
	if n == nil {
		return Work{}
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.work
}

func (n *Note) write() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.slot < 0 || n.ended {
		return
	}
	n.box.mutex.Lock()
	defer n.box.mutex.Unlock()
	if n.box.data == nil {
		return
	}
	slot := n.box.data[header+n.slot*slotSize:][:slotSize]
	slot[0] = 0 // what is half written is not read
	write(slot[1:], n.work)
	slot[0] = written
}

// write writes a work into a slot: each text after its length, which is one byte, and the numbers.
func write(slot []byte, work Work) {
	at := 0
	for _, text := range [...]string{work.Kind, work.Project, work.What, work.Key} {
		length := copy(slot[at+1:], text[:min(len(text), longText)])
		slot[at] = byte(length)
		at += 1 + length
	}
	binary.BigEndian.PutUint64(slot[at:], work.Fence)
	slot[at+8] = 0
	if work.Alone {
		slot[at+8] = 1
	}
}

// storable is a text as databases take it: a path of a stranger may have any bytes, and write may have cut a letter.
func storable(text []byte) string {
	return strings.ToValidUTF8(strings.ReplaceAll(string(text), "\x00", "\uFFFD"), "\uFFFD")
}

// read reads a slot, and reports whether it is whole.
func read(slot []byte) (work Work, whole bool) {
	for _, text := range [...]*string{&work.Kind, &work.Project, &work.What, &work.Key} {
		length := int(slot[0])
		if length > longText {
			return Work{}, false
		}
		*text, slot = storable(slot[1:1+length]), slot[1+length:]
	}
	work.Fence, work.Alone = binary.BigEndian.Uint64(slot), slot[8] == 1
	return work, true
}

// End takes the note away. Only the first call counts.
func (n *Note) End() {
	if n == nil {
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.ended {
		return
	}
	n.ended = true
	n.box.mutex.Lock()
	defer n.box.mutex.Unlock()
	if refused, suspect := n.box.suspects[n.work.Key]; suspect && !refused {
		delete(n.box.suspects, n.work.Key)
		select {
		case n.box.survived <- n.work.Key:
		default: // the next time
		}
	}
	if n.slot < 0 {
		n.box.over--
		n.box.countOver()
		return
	}
	if n.box.data != nil {
		n.box.data[header+n.slot*slotSize] = 0
	}
	n.box.free = append(n.box.free, n.slot)
}

// Key is the key of the work that these parts make.
func Key(parts ...[]byte) string {
	hash := sha256.New()
	var room [sha256.Size]byte
	for _, part := range parts {
		hash.Write(append(strconv.AppendInt(room[:0], int64(len(part)), 10), ' '))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(room[:0])[:16])
}

// Suspect sets the works that ran when servers died, by key, and whether they are refused.
func (b *Box) Suspect(works map[string]bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.suspects = works
}

// Survived gives the keys of suspects that ran to their end while they were not refused: they are none.
func (b *Box) Survived() <-chan string { return b.survived }

// Refused reports whether a work is refused, because it ended servers.
func (b *Box) Refused(key string) bool {
	if b == nil {
		return false
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.suspects[key]
}

// Alone returns the one work of a list, and false where others ran beside it.
func Alone(ran []Work, more bool) (Work, bool) {
	if more || len(ran) != 1 {
		return Work{}, false
	}
	return ran[0], true
}
