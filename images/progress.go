package images

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// beat is how long a step may be silent.
const beat = 20 * time.Second

// progress reports the steps of a build, one line each: number of the step and of all, its name, and a note.
type progress struct {
	mutex      sync.Mutex
	out        io.Writer
	began      int
	total      int
	made, kept int
}

func newProgress(out io.Writer, total int) *progress {
	if out == nil {
		out = io.Discard
	}
	return &progress{out: out, total: total}
}

func (p *progress) counts() (made, kept int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.made, p.kept
}

func (p *progress) say(format string, arguments ...any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	fmt.Fprintf(p.out, format+"\n", arguments...)
}

// step is one piece being made or found.
type step struct {
	progress *progress
	number   int
	name     string
	start    time.Time
	tail     *tail
}

func (p *progress) step(name string) *step {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.began++
	return &step{progress: p, number: p.began, name: name, start: time.Now(), tail: newTail()}
}

func (s *step) say(text string) {
	s.progress.say("[%2d of %d] %s: %s", s.number, s.progress.total, s.name, text)
}

func (s *step) keep() {
	s.progress.mutex.Lock()
	s.progress.kept++
	s.progress.mutex.Unlock()
	s.say("unchanged, kept")
}

// run does the work of a step, reports that it lives, and puts the end of its output into its error.
func (s *step) run(doing string, work func(output io.Writer) error) error {
	s.say(doing)
	stop := s.heartbeat()
	err := work(s.tail)
	stop()
	if err != nil {
		if output := s.tail.String(); output != "" {
			return fmt.Errorf("step %q failed after %.0f s: %w; the end of its output:\n%s", s.name, time.Since(s.start).Seconds(), err, output)
		}
		return fmt.Errorf("step %q failed after %.0f s: %w", s.name, time.Since(s.start).Seconds(), err)
	}
	s.progress.mutex.Lock()
	s.progress.made++
	s.progress.mutex.Unlock()
	s.say(fmt.Sprintf("done, %.1f s", time.Since(s.start).Seconds()))
	return nil
}

// heartbeat repeats the step's last message from time to time, until the returned function is called.
func (s *step) heartbeat() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
				text := fmt.Sprintf("%.0f s", time.Since(s.start).Seconds())
				if last := s.tail.last(); last != "" {
					text += ", " + last
				}
				s.say(text)
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}
