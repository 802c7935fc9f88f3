package catalog

import (
	"context"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// Source finds packages for the classes of a project's object models: the project's own first, then public ones, then the packages that came with Burano.
// Disabled packages are not found.
func (s *Service) Source(projectID string) muranopl.Source {
	return projectSource{service: s, project: projectID}
}

type projectSource struct {
	service *Service
	project string
}

// PackageForClass returns the package that declares the class.
func (p projectSource) PackageForClass(ctx context.Context, class, spec string) (muranopl.Package, error) {
	return p.find(ctx, Query{ClassName: class}, spec, "class", class)
}

// PackageByName returns the package of that name.
func (p projectSource) PackageByName(ctx context.Context, fullName, spec string) (muranopl.Package, error) {
	return p.find(ctx, Query{FullName: fullName}, spec, "package", fullName)
}

// PackageID returns the id of the package that PackageByName returns.
func (p projectSource) PackageID(ctx context.Context, fullName, spec string) (string, error) {
	record, err := p.record(ctx, Query{FullName: fullName}, spec, "package", fullName)
	return record.ID, err
}

func (p projectSource) find(ctx context.Context, query Query, spec, what, name string) (muranopl.Package, error) {
	record, err := p.record(ctx, query, spec, what, name)
	if err != nil {
		return nil, err
	}
	return p.service.load(ctx, record)
}

func (p projectSource) record(ctx context.Context, query Query, spec, what, name string) (Record, error) {
	wanted, err := muranopl.ParseSpec(spec)
	if err != nil {
		return Record{}, fault.New(fault.Invalid, "%s '%s': %w", what, name, err)
	}
	query.Project, query.Scope = p.project, ScopeUsable
	records, err := p.service.store.Packages(ctx, query)
	if err != nil {
		return Record{}, err
	}
	slices.SortStableFunc(records, func(a, b Record) int { return p.rank(a) - p.rank(b) })
	var found []string
	for _, record := range records {
		version, err := semver.NewVersion(record.Version)
		if err != nil {
			continue // only admitted manifests are stored
		}
		if wanted.Admits(version) {
			return record, nil
		}
		found = append(found, record.Version)
	}
	if len(found) > 0 {
		return Record{}, fault.New(fault.NotFound, "No package with %s '%s' of version %s; there is %v", what, name, quoteShort(spec), found)
	}
	return Record{}, fault.New(fault.NotFound, "There is no package with %s '%s' in the catalog (or it is disabled, or another project's)", what, name)
}

func (p projectSource) rank(record Record) int {
	switch {
	case p.service.reserved.has(record):
		return 3
	case record.OwnerID == p.project && !record.Embedded:
		return 0
	case !record.Embedded:
		return 1
	default:
		return 2
	}
}
