package catalog

import (
	"regexp"
	"strings"

	"github.com/burano/burano/internal/fault"
)

// Reserved are the names of embedded packages that have methods with a body in Go, and of their classes that have such methods. The bodies run for the
// embedded package alone, so no uploaded one may have these names. A package in MuranoPL alone may have the name of an embedded one that is so,
// too, such as its next version.
type Reserved struct {
	packages, classes map[string]*Package
}

// nativeMethod is a method with its body in Go, in a class file of an embedded package.
var nativeMethod = regexp.MustCompile(`(?m)^\s+Native:\s*(true|prompt)\b`)

// ReservedBy finds the names that embedded packages reserve.
func ReservedBy(embedded []*Package) Reserved {
	names := Reserved{map[string]*Package{}, map[string]*Package{}}
	for _, p := range embedded {
		for _, class := range p.ClassNames() {
			if _, content, err := p.ClassFile(class); err == nil && nativeMethod.Match(content) {
				names.packages[p.FullName()], names.classes[class] = p, p
			}
		}
	}
	return names
}

// Check refuses a package that has a reserved name.
func (r Reserved) Check(p *Package) error {
	if p.Embedded() {
		return nil
	}
	if one := r.packages[p.FullName()]; one != nil {
		return reserved("package "+p.FullName(), one)
	}
	for _, class := range p.ClassNames() {
		if one := r.classes[class]; one != nil {
			return reserved("class "+class, one)
		}
	}
	return nil
}

// has reports whether a record that a former version admitted has a reserved name: the embedded package goes before it.
func (r Reserved) has(record Record) bool {
	if record.Embedded || len(r.packages) == 0 {
		return false
	}
	if r.packages[record.FullName] != nil {
		return true
	}
	for _, class := range record.Classes {
		if r.classes[class] != nil {
			return true
		}
	}
	return false
}

func reserved(what string, embedded *Package) error {
	whose := " (package " + embedded.FullName() + " " + embedded.Version().String() + ")"
	if strings.HasPrefix(what, "package ") {
		whose = ""
	}
	return fault.New(fault.Conflict, "The %s comes with Burano%s, and its methods run in Burano itself, not from a package that is uploaded: use the one that is there, "+
		"or give yours another name and let its classes extend these", what, whose)
}
