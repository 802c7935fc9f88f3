package catalog

import (
	"context"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// Shelf is packages without a database, in which tools for authors find classes. Earlier ones go before later ones of the same version.
type Shelf []*Package

var _ muranopl.Source = Shelf{}

// PackageForClass returns the newest package that declares the class and that the spec admits.
func (s Shelf) PackageForClass(_ context.Context, class, spec string) (muranopl.Package, error) {
	return s.find(spec, "a class "+class, func(p *Package) bool { return slices.Contains(p.manifest.classes, class) })
}

// PackageByName returns the newest package of that name that the spec admits.
func (s Shelf) PackageByName(_ context.Context, fullName, spec string) (muranopl.Package, error) {
	return s.find(spec, "the name "+fullName, func(p *Package) bool { return p.FullName() == fullName })
}

func (s Shelf) find(spec, what string, fits func(*Package) bool) (muranopl.Package, error) {
	admitted, err := muranopl.ParseSpec(spec)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	var best *Package
	for _, p := range s {
		if fits(p) && admitted.Admits(p.Version()) && (best == nil || p.Version().GreaterThan(best.Version())) {
			best = p
		}
	}
	if best == nil {
		return nil, fault.New(fault.NotFound, "there is no package with %s, version %q, among those at hand", what, spec)
	}
	return best, nil
}
