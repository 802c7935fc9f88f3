//go:build faults

package main

import (
	"os"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// testSwitches are what tests ask of a server that users must not: a program has them that was built with the tag faults.
type testSwitches struct {
	killAt string
	age    time.Duration
	grace  time.Duration
}

func (s *testSwitches) flags(flags *pflag.FlagSet) {
	const name = "kill-at-step"
	flags.StringVar(&s.killAt, name, "", "kill this process when the step of this name begins (begin:NAME) or before its end is written (end:NAME)")
	_ = flags.MarkHidden(name)
	const age = "certificate-age"
	flags.DurationVar(&s.age, age, 0, "issue certificates of nodes as if that were so long ago")
	_ = flags.MarkHidden(age)
	const grace = "token-grace"
	flags.DurationVar(&s.grace, grace, 0, "how long the programs of pods may take to read a renewed token")
	_ = flags.MarkHidden(grace)
}

// issued is the clock of certificates of nodes.
func (s *testSwitches) issued() func() time.Time {
	return func() time.Time { return time.Now().Add(-s.age) }
}

func (s *testSwitches) tokenGrace() time.Duration { return s.grace }

// atStep ends this process, as a crash would, at the step that the switch names; nil when it names none.
func (s *testSwitches) atStep() func(name string, done bool) {
	if s.killAt == "" {
		return nil
	}
	return func(name string, done bool) {
		if !done && s.killAt == "begin:"+name || done && s.killAt == "end:"+name {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing more of the step is done
		}
	}
}
