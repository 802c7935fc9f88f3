package openstack

import (
	"strings"

	"github.com/burano/burano/internal/fault"
)

// one finds a thing by its id, or by its name when only one has it, as OpenStack's clients do. Of several the error lists the ids, of none the
// names that there are.
func one[T any](what, ref string, known []T, identity func(T) (id, name string)) (T, error) {
	var found []T
	var ids, names []string
	for _, candidate := range known {
		id, name := identity(candidate)
		if id == ref {
			return candidate, nil
		}
		if name == ref {
			found, ids = append(found, candidate), append(ids, id)
		}
		names = append(names, name)
	}
	var none T
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return none, fault.New(fault.Invalid, "the project sees no %s with the name or id %q: there are %s", what, ref, listed(names))
	}
	return none, fault.New(fault.Invalid, "%d of the project's %ss are called %q: write the id of one of them in place of the name, %s", len(found), what, ref, strings.Join(ids, " or "))
}

// mostListed is how many names an error lists.
const mostListed = 20

func listed(names []string) string {
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > mostListed:
		return strings.Join(names[:mostListed], ", ") + " and more"
	}
	return strings.Join(names, ", ")
}
