package images

import (
	"strings"
	"sync"
)

// tailLines is how many lines of a failed step's output are shown.
const tailLines = 25

// tail is a writer that keeps the last lines written to it.
type tail struct {
	mutex     sync.Mutex
	lines     []string
	open      string
	transient bool // the last line ended in a carriage return
}

func newTail() *tail { return &tail{} }

// Write never fails. A line that ends in a carriage return, as of progress bars, is replaced by the following line.
func (t *tail) Write(data []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	text := t.open + string(data)
	for {
		end := strings.IndexAny(text, "\r\n")
		if end < 0 {
			break
		}
		line, transient := text[:end], text[end] == '\r'
		text = text[end+1:]
		if strings.TrimSpace(line) == "" {
			t.transient = t.transient && transient // it was the end of a line that ends in both
			continue
		}
		if t.transient {
			t.lines = t.lines[:len(t.lines)-1]
		}
		t.lines, t.transient = append(t.lines, line), transient
	}
	t.open = text
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

// last is the last line, shortened to fit into another.
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
