// Package version tells which Burano this is.
package version

// Version is Burano's own version; the build may set it with -ldflags "-X …/internal/version.Version=…".
var Version = "0.1.0-dev"
