package muranopl

import (
	"context"

	"github.com/Masterminds/semver/v3"
)

// Package is the language's view of a package.
type Package interface {
	// FullName is the package's fully qualified name.
	FullName() string
	// Version is the package's version; 0.0.0 where the manifest names none.
	Version() *semver.Version
	// Format is the version of MuranoPL that the package is written in: "1.0" to "1.4".
	Format() string
	// Embedded reports whether the package came with Burano; only such a package's classes can have native methods.
	Embedded() bool
	// Requires maps the names of required packages to version specs as written in the manifest.
	Requires() map[string]string
	// Meta is the manifest's metadata of the package: a name of a meta class, a map {name: {property: value}}, or a list of these; nil
	// for none. Names are fully qualified, values are no expressions.
	Meta() any
	// ClassNames lists the fully qualified names of the classes that the manifest declares.
	ClassNames() []string
	// ClassFile returns the file that declares the class: its name inside the package, for messages, and its text.
	ClassFile(class string) (file string, text []byte, err error)
}

// Source finds packages for the classes that an object model or another class names. Which packages a caller may see is the
// source's business. Both methods return a fault of kind NotFound when there is none.
type Source interface {
	// PackageForClass returns the package that declares the class; spec is a version spec, "" for any.
	PackageForClass(ctx context.Context, class, spec string) (Package, error)
	// PackageByName returns the package of that fully qualified name; spec is a version spec, "" for any.
	PackageByName(ctx context.Context, fullName, spec string) (Package, error)
}
