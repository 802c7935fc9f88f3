package catalog

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// DefaultPage is the default number of listed packages, and MaxPage the largest: Murano's limit_param_default and api_limit_max. The first is 20 there,
// which the packages that come with Burano would fill; they fit into this one twice.
const (
	DefaultPage = 80
	MaxPage     = 100
)

// PageSize sets the default number of listed packages.
func PageSize(packages int) Option { return func(s *Service) { s.page = packages } }

// List returns the packages that the parameters of GET /v1/catalog/packages ask for, and the marker of the next page, "" when
// this is the last one. Parameters that are not known are passed over.
func (s *Service) List(ctx context.Context, caller identity.Caller, parameters url.Values) (records []Record, marker string, err error) {
	query, err := listQuery(caller, parameters, cmp.Or(s.page, DefaultPage))
	if err != nil {
		return nil, "", err
	}
	if query.Marker != "" {
		if _, err := s.store.Package(ctx, query.Marker); err != nil {
			return nil, "", err
		}
	}
	records, err = s.store.Packages(ctx, query)
	if err != nil {
		return nil, "", err
	}
	for i := range records {
		records[i] = s.seen(records[i])
	}
	// Murano gives a marker whenever the page is full, also when nothing follows.
	if len(records) == query.Limit {
		marker = records[len(records)-1].ID
	}
	return records, marker, nil
}

func listQuery(caller identity.Caller, parameters url.Values, page int) (Query, error) {
	query := Query{
		Project:         caller.ProjectID,
		IncludeDisabled: isTrue(parameters.Get("include_disabled")),
		FullName:        parameters.Get("fqn"),
		Name:            parameters.Get("name"),
		ClassName:       parameters.Get("class_name"),
		IDs:             alternatives(parameters["id"]),
		Categories:      alternatives(parameters["category"]),
		Tags:            alternatives(parameters["tag"]),
		Marker:          parameters.Get("marker"),
	}
	var err error
	if query.Descending, err = ParseDirection(parameters.Get("sort_dir")); err != nil {
		return query, err
	}
	toDeploy := isTrue(parameters.Get("catalog")) // else: to edit
	switch {
	case isTrue(parameters.Get("owned")):
		query.Scope = ScopeOwned
	case caller.Admin && !toDeploy:
		query.Scope = ScopeAll
	case !toDeploy && !caller.May("manage_public_package"):
		query.Scope = ScopeOwned
	}
	if kind := parameters.Get("type"); kind != "" {
		query.Type = strings.ToUpper(kind[:1]) + strings.ToLower(kind[1:])
	}
	for word := range strings.FieldsFuncSeq(parameters.Get("search"), func(r rune) bool { return r == ';' || r == ',' }) {
		if word = strings.TrimSpace(word); word != "" {
			query.Search = append(query.Search, word)
		}
	}
	orders := parameters["order_by"]
	if len(orders) == 0 {
		orders = []string{string(OrderName)}
	}
	for _, key := range orders {
		if order := Order(key); slices.Contains([]Order{OrderName, OrderFullName, OrderCreated}, order) && !slices.Contains(query.OrderBy, order) {
			query.OrderBy = append(query.OrderBy, order)
		}
	}
	limit, err := ParseLimit(parameters.Get("limit"), page)
	query.Limit = min(limit, MaxPage)
	return query, err
}

// ParseDirection reads a parameter "sort_dir"; ascending is the direction where there is none.
func ParseDirection(text string) (descending bool, err error) {
	switch text {
	case "", "asc":
		return false, nil
	case "desc":
		return true, nil
	}
	return false, fault.New(fault.Invalid, "Invalid sort direction: %s", text)
}

// ParseLimit reads a parameter "limit"; otherwise is the value where there is none.
func ParseLimit(text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	limit, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, fault.New(fault.Invalid, "Limit param must be an integer")
	case limit <= 0:
		return 0, fault.New(fault.Invalid, "Limit param must be positive")
	}
	return limit, nil
}

// isTrue reads a flag as oslo.utils' bool_from_string does.
func isTrue(text string) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "t", "true", "on", "y", "yes":
		return true
	}
	return false
}

// alternatives reads the values of a filter that may be repeated and may have the form "in:a,b,\"c,d\"". A badly quoted list is ignored.
func alternatives(values []string) []string {
	var all []string
	for _, value := range values {
		list, isList := strings.CutPrefix(value, "in:")
		if !isList {
			all = append(all, value)
			continue
		}
		if items, ok := splitQuoted(list); ok {
			all = append(all, items...)
		}
	}
	return all
}

// splitQuoted splits at commas outside of double quotes; \" inside of quotes is a quote.
func splitQuoted(list string) ([]string, bool) {
	var items []string
	for {
		item, rest := "", ""
		if strings.HasPrefix(list, `"`) {
			var text strings.Builder
			end := -1
			for i := 1; i < len(list); i++ {
				if list[i] == '\\' && i+1 < len(list) && list[i+1] == '"' {
					i++
				} else if list[i] == '"' {
					end = i
					break
				}
				text.WriteByte(list[i])
			}
			if end < 0 {
				return nil, false
			}
			item, rest = text.String(), list[end+1:]
			if rest != "" && rest[0] != ',' {
				return nil, false
			}
		} else {
			end := strings.IndexByte(list, ',')
			if end < 0 {
				end = len(list)
			}
			item, rest = list[:end], list[end:]
			if strings.Contains(item, `"`) {
				return nil, false
			}
		}
		if item != "" {
			items = append(items, item)
		}
		if rest == "" {
			return items, true
		}
		list = rest[1:]
	}
}
