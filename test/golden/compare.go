package golden

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// IDs maps recorded ids to the server's.
type IDs map[string]string

var (
	isID   = regexp.MustCompile(`^[0-9a-f]{32}$`)
	someID = regexp.MustCompile(`[0-9a-f]{32}`)
	isTime = regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?$`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d`)
)

// Translate replaces recorded ids by the server's.
func (ids IDs) Translate(text string) string {
	return someID.ReplaceAllStringFunc(text, func(id string) string {
		if here, known := ids[id]; known {
			return here
		}
		return id
	})
}

// sets are the lists that have no order in Murano.
var sets = []string{"tags", "categories", "class_definitions"}

// difference compares a recorded body with the server's: it learns ids that it meets for the first time, and times only need to
// be times. It returns the first place where they differ, or "".
func (ids IDs) difference(recorded any, here []byte) string {
	if recorded == nil {
		if len(here) > 0 {
			return fmt.Sprintf("the recorded body is empty, here it is %s", short(here))
		}
		return ""
	}
	if object, ok := recorded.(map[string]any); ok && object["binary"] == true {
		if base64.StdEncoding.EncodeToString(here) != object["base64"] {
			return fmt.Sprintf("not the recorded bytes but %d others", len(here))
		}
		return ""
	}
	if text, ok := recorded.(string); ok {
		want, got := times.ReplaceAllString(ids.Translate(text), "<time>"), times.ReplaceAllString(string(here), "<time>")
		var value any
		if want != got && !(json.Unmarshal(here, &value) == nil && value == text) {
			return fmt.Sprintf("recorded %q, here %q", want, got)
		}
		return ""
	}
	var value any
	if err := json.Unmarshal(here, &value); err != nil {
		return fmt.Sprintf("recorded is JSON, here is %s", short(here))
	}
	return ids.differ("", recorded, value)
}

func short(text []byte) string {
	if len(text) > 200 {
		return fmt.Sprintf("%q…", text[:200])
	}
	return fmt.Sprintf("%q", text)
}

func (ids IDs) differ(where string, recorded, here any) string {
	switch r := recorded.(type) {
	case map[string]any:
		h, ok := here.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: recorded is an object, here is %v", where, here)
		}
		// Keys may hold ids, too, as in actions.
		names := map[string]string{}
		for key := range r {
			names[ids.Translate(key)] = key
		}
		if want, got := slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(h)); !slices.Equal(want, got) {
			return fmt.Sprintf("%s: recorded are the keys %v, here %v", where, want, got)
		}
		for _, key := range slices.Sorted(maps.Keys(names)) {
			want, got := r[names[key]], h[key]
			if slices.Contains(sets, key) {
				want, got = ordered(want), ordered(got)
			}
			if said := ids.differ(where+"."+key, want, got); said != "" {
				return said
			}
		}
		return ""
	case []any:
		h, ok := here.([]any)
		if !ok || len(h) != len(r) {
			return fmt.Sprintf("%s: recorded are %d items, here is %v", where, len(r), here)
		}
		for i := range r {
			if said := ids.differ(fmt.Sprintf("%s[%d]", where, i), r[i], h[i]); said != "" {
				return said
			}
		}
		return ""
	case string:
		if h, ok := here.(string); ok && ids.agree(r, h) {
			return ""
		}
		return fmt.Sprintf("%s: recorded %q, here %#v", where, ids.Translate(r), here)
	}
	if !reflect.DeepEqual(recorded, here) {
		return fmt.Sprintf("%s: recorded %v, here %v", where, recorded, here)
	}
	return ""
}

// agree compares two texts, and learns an id.
func (ids IDs) agree(recorded, here string) bool {
	if isID.MatchString(recorded) && isID.MatchString(here) {
		if known, ok := ids[recorded]; ok {
			return known == here
		}
		ids[recorded] = here
		return true
	}
	if isTime.MatchString(recorded) {
		return isTime.MatchString(here)
	}
	return ids.Translate(recorded) == here
}

// ordered sorts a list of texts; it leaves other lists as they are.
func ordered(value any) any {
	list, ok := value.([]any)
	if !ok || slices.ContainsFunc(list, func(item any) bool { _, text := item.(string); return !text }) {
		return value
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return list
}

var requestIDs = regexp.MustCompile(`^req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// framing checks the properties of every answer of Murano: a request id, the length of its body, and JSON without further text. It returns
// the first missing one, or "".
func framing(response *http.Response, body []byte) string {
	switch {
	case !requestIDs.MatchString(response.Header.Get("X-Openstack-Request-Id")):
		return fmt.Sprintf("the request id is %q", response.Header.Get("X-Openstack-Request-Id"))
	case response.ContentLength != int64(len(body)) && response.Request.Method != http.MethodHead:
		return fmt.Sprintf("Content-Length is %d, there are %d bytes", response.ContentLength, len(body))
	case strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") && !bytes.Equal(bytes.TrimSpace(body), body):
		return fmt.Sprintf("JSON with blanks around it: %s", short(body))
	}
	return ""
}
