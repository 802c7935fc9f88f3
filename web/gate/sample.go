package gate

import (
	"sync"
	"time"
)

// SampleOf is how many events of each address, and of all, are let through in a span of time.
type SampleOf struct {
	Each, All int
	Span      time.Duration
}

// Sample lets some of strangers' events through, and counts the others.
type Sample struct {
	of  SampleOf
	now func() time.Time

	mutex sync.Mutex
	begun time.Time
	let   int
	seen  map[string]*seen // by address, at most mostSeen
	over  Left             // of further addresses
	left  []Left           // omissions of ended spans, until Left returns them
}

type seen struct{ let, left int64 }

// Left are events of an address that were not let through; of many addresses where it is "".
type Left struct {
	Address string
	Events  int64
	Since   time.Time
}

// mostSeen is the number of distinct addresses in a span.
const mostSeen = 64

// NewSample begins to count.
func NewSample(of SampleOf, now func() time.Time) *Sample {
	return &Sample{of: of, now: now, seen: map[string]*seen{}}
}

// Let counts an event of an address, and reports whether it is let through.
func (s *Sample) Let(address string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.turn()
	one := s.seen[address]
	if one == nil && len(s.seen) < mostSeen {
		one = &seen{}
		s.seen[address] = one
	}
	switch {
	case s.let < s.of.All && (one == nil || one.let < int64(s.of.Each)):
		s.let++
		if one != nil {
			one.let++
		}
		return true
	case one == nil:
		s.over.Events++
	default:
		one.left++
	}
	return false
}

// turn begins a new span when the last one is over. The caller holds the mutex.
func (s *Sample) turn() {
	now := s.now()
	if now.Sub(s.begun) < s.of.Span {
		return
	}
	s.end()
	s.begun = now
}

func (s *Sample) end() {
	for address, one := range s.seen {
		if one.left > 0 {
			s.left = append(s.left, Left{address, one.left, s.begun})
		}
	}
	if s.over.Events > 0 {
		s.left = append(s.left, Left{"", s.over.Events, s.begun})
	}
	s.left = s.left[max(0, len(s.left)-4*mostSeen):] // Left may never be called
	s.seen, s.let, s.over = map[string]*seen{}, 0, Left{}
}

// Left returns the omissions of ended spans, once; with all, also of the present one.
func (s *Sample) Left(all bool) []Left {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.turn(); all {
		s.end()
	}
	left := s.left
	s.left = nil
	return left
}
