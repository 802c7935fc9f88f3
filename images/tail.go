package images

import (
	"strings"
	"sync"
)

// tailLines is how many lines of a failed step's output are shown.
const tailLines = 25

// tail is a writer that keeps the last lines written to it.
type tail struct {
	mutex sync.Mutex
	lines []string
	open  string
}

func newTail() *tail { return &tail{} }

// Write never fails. A carriage return ends a line as well: progress bars are lines that follow one another.
func (t *tail) Write(data []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	parts := strings.FieldsFunc(t.open+string(data)+"\x00", func(r rune) bool { return r == '\n' || r == '\r' })
	for _, part := range parts[:len(parts)-1] {
		if strings.TrimSpace(part) != "" {
			t.lines = append(t.lines, part)
		}
	}
	t.open = strings.TrimSuffix(parts[len(parts)-1], "\x00")
	if len(t.lines) > tailLines {
		t.lines = append([]string(nil), t.lines[len(t.lines)-tailLines:]...)
	}
	return len(data), nil
}

func (t *tail) all() []string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	lines := t.lines
	if strings.TrimSpace(t.open) != "" {
		lines = append(lines[:len(lines):len(lines)], t.open)
	}
	return lines
}

func (t *tail) String() string { return strings.Join(t.all(), "\n") }

// last is the last line, short enough to stand in another.
func (t *tail) last() string {
	lines := t.all()
	if len(lines) == 0 {
		return ""
	}
	last := []rune(lines[len(lines)-1])
	if len(last) > 100 {
		return string(last[:100]) + "…"
	}
	return string(last)
}
