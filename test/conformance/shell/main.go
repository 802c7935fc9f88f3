// Command shell is /bin/sh of our busybox images, which replace upstream's. It runs busybox's shell, whose messages tests compare. It runs bash
// where the environment has a name that is not valid for a shell's variable ("a-1"): Debian's busybox drops such variables from the environment of
// its children, upstream's does not.
package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

func main() {
	program := "/bin/busybox"
	if slices.ContainsFunc(os.Environ(), func(entry string) bool { return !variable.MatchString(entry) }) {
		program = "/bin/bash-static"
	}
	arguments := append([]string{strings.TrimPrefix(os.Args[0], "-")}, os.Args[1:]...)
	fmt.Fprintln(os.Stderr, "sh:", syscall.Exec(program, arguments, os.Environ()))
	os.Exit(126)
}
