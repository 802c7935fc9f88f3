//go:build !faults

package server

import (
	"time"

	"github.com/spf13/pflag"
)

// testSwitches are none in a program that users get: see faults.go.
type testSwitches struct{}

func (testSwitches) flags(*pflag.FlagSet) {}

func (testSwitches) atStep() func(name string, done bool) { return nil }

func (testSwitches) issued() func() time.Time { return time.Now }

func (testSwitches) tokenGrace() time.Duration { return 0 } // the default

func (testSwitches) anHour() time.Duration { return time.Hour }

func (testSwitches) profile() error { return nil }
