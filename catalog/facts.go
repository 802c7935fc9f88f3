package catalog

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// facts looks into the package: at its files, and at the parents of its classes. A class that cannot be read has none.
func (p *Package) facts() (Facts, map[string][]string) {
	there := func(read func() ([]byte, error)) bool {
		content, err := read()
		return err == nil && len(content) > 0
	}
	parents := map[string][]string{}
	for _, class := range p.ClassNames() {
		file, text, err := p.ClassFile(class)
		if err != nil {
			continue
		}
		if names, err := muranopl.Parents(class, file, text); err == nil {
			parents[class] = names
		}
	}
	return Facts{UI: there(p.UI), Logo: there(p.Logo), SupplierLogo: there(p.SupplierLogo)}, parents
}

// describe computes and stores the facts of records that have none: records of packages that a former version accepted. A record whose archive cannot be
// read stays without.
func (s *Service) describe(ctx context.Context, records []Record) error {
	for i, record := range records {
		if record.Facts != nil {
			continue
		}
		p, err := s.load(ctx, record)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			continue
		}
		facts, parents := p.facts()
		if err := s.store.NoteFacts(ctx, record.ID, facts, parents); err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
		records[i].Facts = &facts
	}
	return nil
}

// Describe is Show with the record's facts.
func (s *Service) Describe(ctx context.Context, caller identity.Caller, id string) (Record, error) {
	record, err := s.Show(ctx, caller, id)
	if err != nil {
		return record, err
	}
	records := []Record{record}
	return records[0], s.describe(ctx, records)
}

// Described adds facts to records that List has returned.
func (s *Service) Described(ctx context.Context, records []Record) ([]Record, error) {
	records = slices.Clone(records)
	return records, s.describe(ctx, records)
}

// Heirs lists the classes of packages that the caller's project may use which are the named class or extend it, directly or not, by package and name; all
// of them when it is "". Only the names of a class's parents decide, not the versions of their packages.
func (s *Service) Heirs(ctx context.Context, caller identity.Caller, class string) ([]ClassRecord, error) {
	records, err := s.store.Packages(ctx, Query{Project: caller.ProjectID, Scope: ScopeUsable, OrderBy: []Order{OrderFullName}})
	if err != nil {
		return nil, err
	}
	if err := s.describe(ctx, records); err != nil {
		return nil, err
	}
	ids := make([]string, len(records))
	for i, record := range records {
		ids[i] = record.ID
	}
	parents, err := s.store.Parents(ctx, ids)
	if err != nil {
		return nil, err
	}
	heirs := map[string]bool{class: true}
	for grown := true; grown; {
		grown = false
		for _, classes := range parents {
			for name, above := range classes {
				if !heirs[name] && slices.ContainsFunc(above, func(one string) bool { return heirs[one] }) {
					heirs[name], grown = true, true
				}
			}
		}
	}
	found := []ClassRecord{}
	for _, record := range records {
		for _, name := range record.Classes {
			if heirs[name] || class == "" {
				found = append(found, ClassRecord{Name: name, Parents: parents[record.ID][name], Package: s.seen(record)})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b ClassRecord) int {
		return cmp.Or(strings.Compare(a.Package.FullName, b.Package.FullName), strings.Compare(a.Name, b.Name))
	})
	return found, nil
}
