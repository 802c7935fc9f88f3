package process

import (
	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/door"
)

const (
	// ownProgram is the file of the running program (proc(5)), also when an upgrade has put another in its place.
	OwnProgram = "/proc/self/exe"
	// childPlaces is how many child processes read projects' data at a time. Each may take 512 MiB.
	ChildPlaces = 4
)

// NewChildren returns children that are runs of this program.
func NewChildren() *door.Children { return door.NewChildren(OwnProgram, ChildPlaces, door.Limits{}) }

// PackageReader reads packages of whomever as the server does.
func PackageReader() catalog.Reader { return catalog.Reader{Children: NewChildren()} }
