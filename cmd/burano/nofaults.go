//go:build !faults

package main

import "github.com/spf13/pflag"

// testSwitches are none in a program that users get: see faults.go.
type testSwitches struct{}

func (testSwitches) flags(*pflag.FlagSet) {}

func (testSwitches) atStep() func(name string, done bool) { return nil }
