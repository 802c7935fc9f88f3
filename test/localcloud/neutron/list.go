package neutron

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// This file selects objects and their fields by a list's query.

// toMap is an object as the API shows it, without the internal fields, which begin with _.
func toMap(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	maps.DeleteFunc(object, func(key string, _ any) bool { return strings.HasPrefix(key, "_") })
	return object, nil
}

// query filters, sorts, pages and reduces objects. Values of one key are alternatives; different keys must all match. next is
// the query of the next page, if there is one.
func query(objects []map[string]any, values url.Values) (result []map[string]any, next url.Values, err error) {
	found := objects
	for key, wanted := range values {
		switch key {
		case "fields", "limit", "marker", "sort_key", "sort_dir", "page_reverse", "tags", "tags-any", "not-tags", "not-tags-any":
			continue
		}
		if len(objects) > 0 {
			if _, ok := objects[0][key]; !ok {
				return nil, nil, problem(400, "HTTPBadRequest", "[['%s']] is invalid attribute for filtering", key)
			}
		}
		found = slices.DeleteFunc(slices.Clone(found), func(object map[string]any) bool {
			return !slices.ContainsFunc(wanted, func(want string) bool { return matches(object[key], want) })
		})
	}
	sortBy(found, values["sort_key"], values["sort_dir"])
	if marker := values.Get("marker"); marker != "" {
		at := slices.IndexFunc(found, func(o map[string]any) bool { return o["id"] == marker })
		found = found[at+1:]
	}
	if text := values.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 0 {
			return nil, nil, problem(400, "HTTPBadRequest", "limit: '%s' is no number", text)
		}
		if limit > 0 && limit < len(found) {
			found = found[:limit]
			next = maps.Clone(values)
			next.Set("marker", fmt.Sprint(found[limit-1]["id"]))
		}
	}
	result = make([]map[string]any, len(found))
	for i, object := range found {
		result[i] = selected(object, values["fields"])
	}
	return result, next, nil
}

// matches compares a value with the text of a query. A list matches by any of its elements; an address of a port is asked for
// as fixed_ips=ip_address=10.0.0.5 or fixed_ips=subnet_id=….
func matches(value any, want string) bool {
	switch value := value.(type) {
	case nil:
		return want == "" || strings.EqualFold(want, "null")
	case bool:
		asked, err := strconv.ParseBool(strings.ToLower(want))
		return err == nil && asked == value
	case []any:
		return slices.ContainsFunc(value, func(element any) bool { return matches(element, want) })
	case map[string]any:
		key, rest, ok := strings.Cut(want, "=")
		if key == "ip_address_substr" {
			address, _ := value["ip_address"].(string)
			return strings.Contains(address, rest)
		}
		return ok && matches(value[key], rest)
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64) == want
	}
	return fmt.Sprint(value) == want
}

func sortBy(objects []map[string]any, keys, directions []string) {
	if len(keys) == 0 {
		return
	}
	slices.SortStableFunc(objects, func(a, b map[string]any) int {
		for i, key := range keys {
			order := strings.Compare(fmt.Sprint(a[key]), fmt.Sprint(b[key]))
			if i < len(directions) && directions[i] == "desc" {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
}

func selected(object map[string]any, fields []string) map[string]any {
	if len(fields) == 0 {
		return object
	}
	reduced := map[string]any{}
	for _, list := range fields {
		for field := range strings.SplitSeq(list, ",") {
			if value, ok := object[field]; ok {
				reduced[field] = value
			}
		}
	}
	return reduced
}
