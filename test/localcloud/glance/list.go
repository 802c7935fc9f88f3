package glance

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// Parameters of a list's query that are no filters.
var listControls = []string{"limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "created_at", "updated_at"}

const maxPage = 1000

func (s *Service) listImages(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	wanted, err := filtersOf(query)
	if err != nil {
		return err
	}
	caller := identity.From(r.Context())
	var found []Image
	for _, image := range s.images.All() {
		listed := image.Owner == caller.ProjectID || image.Visibility == "public" ||
			(image.Visibility == "community" && query.Get("visibility") == "community") ||
			(caller.Admin && image.Visibility != "community")
		if listed && wanted(image) {
			found = append(found, image)
		}
	}
	order, err := orderOf(query)
	if err != nil {
		return err
	}
	slices.SortStableFunc(found, order)

	if marker := query.Get("marker"); marker != "" {
		i := slices.IndexFunc(found, func(image Image) bool { return image.ID == marker })
		if i < 0 {
			return invalid("Invalid marker: image %s is not in this list", marker)
		}
		found = found[i+1:]
	}
	limit := maxPage
	if text := query.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return invalid("limit param must be positive")
		}
		limit = min(limit, maxPage)
	}
	first := url.Values{}
	for key, values := range query {
		if key != "marker" {
			first[key] = values
		}
	}
	body := map[string]any{"schema": "/v2/schemas/images", "first": address(first)}
	if len(found) > limit && limit > 0 {
		first.Set("marker", found[limit-1].ID)
		body["next"] = address(first)
	}
	images := []any{}
	for _, image := range found[:min(limit, len(found))] {
		images = append(images, image.body())
	}
	body["images"] = images
	answer.JSON(w, http.StatusOK, body)
	return nil
}

func address(query url.Values) string {
	if len(query) == 0 {
		return "/v2/images"
	}
	return "/v2/images?" + query.Encode()
}

// filtersOf makes one test of all filters in a query; a key that is no attribute filters by that property.
func filtersOf(query url.Values) (func(Image) bool, error) {
	var tests []func(Image) bool
	hidden := false
	for key, values := range query {
		value := values[0]
		switch key {
		case "tag":
			tests = append(tests, func(i Image) bool {
				return !slices.ContainsFunc(values, func(tag string) bool { return !slices.Contains(i.Tags, tag) })
			})
		case "visibility":
			if value != "all" && !slices.Contains(visibilities, value) {
				return nil, invalid("Invalid visibility value: %s", value)
			}
			tests = append(tests, func(i Image) bool { return value == "all" || i.Visibility == value })
		case "os_hidden":
			hidden = strings.EqualFold(value, "true")
		case "size_min", "size_max":
			bound, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, invalid("Unable to filter on a range with a non-numeric value.")
			}
			tests = append(tests, func(i Image) bool { return (key == "size_min") == (i.Size > bound) || i.Size == bound })
		default:
			if !slices.Contains(listControls, key) {
				allowed := anyOf(value)
				tests = append(tests, func(i Image) bool {
					have, ok := i.attribute(key)
					return ok && slices.Contains(allowed, have)
				})
			}
		}
	}
	return func(i Image) bool {
		return i.Hidden == hidden && !slices.ContainsFunc(tests, func(test func(Image) bool) bool { return !test(i) })
	}, nil
}

// anyOf reads the operator "in:a,b" of a filter's value.
func anyOf(value string) []string {
	if list, ok := strings.CutPrefix(value, "in:"); ok {
		var values []string
		for v := range strings.SplitSeq(list, ",") {
			values = append(values, strings.Trim(v, `"`))
		}
		return values
	}
	return []string{value}
}

// attribute is the value of an attribute or property as a query writes it.
func (i Image) attribute(name string) (string, bool) {
	if value, ok := i.Properties[name]; ok {
		return value, true
	}
	switch value := i.body()[name].(type) {
	case string:
		return value, true
	case bool:
		return strconv.FormatBool(value), true
	case int:
		return strconv.Itoa(value), true
	default:
		return "", false
	}
}

// orderOf reads sort ("name:asc,created_at:desc") or the older sort_key and sort_dir; without either the newest come first.
func orderOf(query url.Values) (func(a, b Image) int, error) {
	var keys []string
	for key := range strings.SplitSeq(query.Get("sort"), ",") {
		if key != "" {
			keys = append(keys, key)
		}
	}
	for i, key := range query["sort_key"] {
		direction := "desc"
		if dirs := query["sort_dir"]; len(dirs) > 0 {
			direction = dirs[min(i, len(dirs)-1)]
		}
		keys = append(keys, key+":"+direction)
	}
	compare := map[string]func(a, b Image) int{
		"name":             func(a, b Image) int { return cmp.Compare(a.Name, b.Name) },
		"status":           func(a, b Image) int { return cmp.Compare(a.Status, b.Status) },
		"id":               func(a, b Image) int { return cmp.Compare(a.ID, b.ID) },
		"size":             func(a, b Image) int { return cmp.Compare(a.Size, b.Size) },
		"container_format": func(a, b Image) int { return cmp.Compare(a.ContainerFormat, b.ContainerFormat) },
		"disk_format":      func(a, b Image) int { return cmp.Compare(a.DiskFormat, b.DiskFormat) },
		"created_at":       func(a, b Image) int { return a.CreatedAt.Compare(b.CreatedAt) },
		"updated_at":       func(a, b Image) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
	}
	var steps []func(a, b Image) int
	for _, key := range append(keys, "created_at:desc", "id:desc") {
		name, direction, _ := strings.Cut(key, ":")
		step, ok := compare[name]
		if !ok || !slices.Contains([]string{"", "asc", "desc"}, direction) {
			return nil, invalid("Invalid sort %q: wanted a key such as name or created_at, with :asc or :desc", key)
		}
		if direction == "asc" {
			steps = append(steps, step)
		} else {
			steps = append(steps, func(a, b Image) int { return step(b, a) })
		}
	}
	return func(a, b Image) int {
		for _, step := range steps {
			if c := step(a, b); c != 0 {
				return c
			}
		}
		return 0
	}, nil
}
