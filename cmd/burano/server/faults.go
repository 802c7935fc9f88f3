//go:build faults

package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof" // at http.DefaultServeMux
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// testSwitches are options of a server for tests. Only a program that was built with the tag faults has them.
type testSwitches struct {
	killAt instant
	begun  string
	age    time.Duration
	grace  time.Duration
	hour   time.Duration
	debug  string
}

func (s *testSwitches) flags(flags *pflag.FlagSet) {
	const name = "kill-at-step"
	flags.Var(&s.killAt, name, "kill this process when the step of this name begins (begin:NAME) or before its end is written (end:NAME); "+
		"at the N-th time that this process comes there (NAME@N)")
	_ = flags.MarkHidden(name)
	const begun = "kill-at-new-steps"
	flags.StringVar(&s.begun, begun, "", "kill this process when a step begins whose name is no line of this file, to which it is added before")
	_ = flags.MarkHidden(begun)
	const age = "certificate-age"
	flags.DurationVar(&s.age, age, 0, "issue certificates of nodes as if that were so long ago")
	_ = flags.MarkHidden(age)
	const grace = "token-grace"
	flags.DurationVar(&s.grace, grace, 0, "how long the programs of pods may take to read a renewed token")
	_ = flags.MarkHidden(grace)
	const hour = "hour"
	flags.DurationVar(&s.hour, hour, time.Hour, "how long an hour of schedules of backups and drills is, and the age at which a claim counts as unused")
	_ = flags.MarkHidden(hour)
	const debug = "profile-listen"
	flags.StringVar(&s.debug, debug, "", "answer /debug/pprof/ at this address, host:port")
	_ = flags.MarkHidden(debug)
}

// profile answers at the switch's address, if it has one, where this process spends its time and its memory.
func (s *testSwitches) profile() error {
	if s.debug == "" {
		return nil
	}
	listener, err := net.Listen("tcp", s.debug)
	if err != nil {
		return fmt.Errorf("--profile-listen: %w", err)
	}
	go func() { _ = http.Serve(listener, http.DefaultServeMux) }()
	return nil
}

// issued is the clock of certificates of nodes.
func (s *testSwitches) issued() func() time.Time {
	return func() time.Time { return time.Now().Add(-s.age) }
}

func (s *testSwitches) anHour() time.Duration { return s.hour }

func (s *testSwitches) tokenGrace() time.Duration { return s.grace }

// atStep ends this process, as a crash would, at the instants that the switches name; nil when they name none.
func (s *testSwitches) atStep() func(name string, done bool) {
	if s.begun != "" {
		return s.atNewStep()
	}
	if s.killAt.step == "" {
		return nil
	}
	var times atomic.Int64
	return func(name string, done bool) {
		if name == s.killAt.step && done == s.killAt.done && times.Add(1) == cmp.Or(s.killAt.time, 1) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing more of the step is done
		}
	}
}

// atNewStep ends this process when a step begins that the file of begun steps does not list.
func (s *testSwitches) atNewStep() func(name string, done bool) {
	var one sync.Mutex // only one of several steps that begin beside each other is the one at which this process dies
	return func(name string, done bool) {
		if done {
			return
		}
		one.Lock()
		defer one.Unlock()
		text, err := os.ReadFile(s.begun)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			panic(err)
		}
		if slices.Contains(strings.Split(string(text), "\n"), name) {
			return
		}
		if err := os.WriteFile(s.begun, append(text, name+"\n"...), 0o600); err != nil {
			panic(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // nothing more of the step is done
	}
}

// instant is the beginning or the end of a step.
type instant struct {
	step string
	done bool
	time int64 // counts the times that a process reaches the step, from 1; 0 is the first, too
}

func (*instant) Type() string { return "string" }

func (i *instant) String() string {
	if i.step == "" {
		return ""
	}
	text := "begin:" + i.step
	if i.done {
		text = "end:" + i.step
	}
	if i.time > 0 {
		text += "@" + strconv.FormatInt(i.time, 10)
	}
	return text
}

// Set reads begin:NAME or end:NAME, with @N behind it or without.
func (i *instant) Set(text string) error {
	at, rest, _ := strings.Cut(text, ":")
	step, number, counted := strings.Cut(rest, "@")
	if at != "begin" && at != "end" || step == "" {
		return fmt.Errorf("%q is neither begin:NAME nor end:NAME", text)
	}
	*i = instant{step: step, done: at == "end"}
	if counted {
		var err error
		if i.time, err = strconv.ParseInt(number, 10, 64); err != nil || i.time < 1 {
			return fmt.Errorf("%q does not end with a number from 1", text)
		}
	}
	return nil
}
