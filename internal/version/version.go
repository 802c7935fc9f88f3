// Package version is the version of this Burano.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is Burano's own version.
const Version = "0.1.0-dev"

// commit is the revision that the program was built from; the Makefile sets it with -ldflags "-X …/internal/version.commit=…".
var commit string

// Commit is the revision that the program was built from, with "-dirty" at its end when files were changed since. It comes from the Makefile, or from the
// Go command, or is "unknown".
func Commit() string {
	if commit != "" {
		return commit
	}
	revision, dirty := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			switch {
			case setting.Key == "vcs.revision":
				revision = setting.Value
			case setting.Key == "vcs.modified" && setting.Value == "true":
				dirty = "-dirty"
			}
		}
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			revision = cmp.Or(revision, info.Main.Version) // go install …@version
		}
	}
	return cmp.Or(revision, "unknown") + dirty
}

// Text is all of it in one line, for people.
func Text() string {
	return fmt.Sprintf("%s (commit %s, %s, %s/%s)", Version, Commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
