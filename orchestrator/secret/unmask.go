package secret

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/sensitive"
)

// Unmask puts the secrets of former models back where a model has Mark in their places, as one has that was read where secrets are not shown. It changes
// the model in place. A place is an object's id and the path in it; the first former model that has a value there counts. A fault of kind Invalid names each
// place that has no secret.
func Unmask(model map[string]any, formers ...map[string]any) error {
	u := unmasking{}
	for _, former := range formers {
		had := map[string]map[string]any{}
		identify(had, former)
		u.formers = append(u.formers, had)
	}
	were := make([]any, len(formers))
	for i, former := range formers {
		if former != nil {
			were[i] = former
		}
	}
	u.value(model, were, "")
	return errors.Join(u.missing...)
}

// UnmaskNothing is the fault that a value has Mark where there was none before; name is the value's name.
func UnmaskNothing(name string, value any) error {
	u := unmasking{}
	u.value(value, nil, name)
	return errors.Join(u.missing...)
}

type unmasking struct {
	formers []map[string]map[string]any // objects by their ids, of each former model
	missing []error
}

// identify notes objects by their ids.
func identify(had map[string]map[string]any, value any) {
	switch v := value.(type) {
	case map[string]any:
		if id := idOf(v); id != "" {
			had[id] = v
		}
		for key, inner := range v {
			if key != "?" {
				identify(had, inner)
			}
		}
	case []any:
		for _, inner := range v {
			identify(had, inner)
		}
	}
}

func idOf(value map[string]any) string {
	header, _ := value["?"].(map[string]any)
	id, _ := header["id"].(string)
	return id
}

// value returns a value without marks. were are the former values in its place, for each former model; nil for none.
func (u *unmasking) value(value any, were []any, path string) any {
	switch v := value.(type) {
	case string:
		if v == Mark {
			return u.whole(were, path)
		}
		return u.text(v, were, path)
	case map[string]any:
		if id := idOf(v); id != "" && len(u.formers) > 0 {
			were = make([]any, len(u.formers))
			for i, had := range u.formers {
				if former := had[id]; former != nil {
					were[i] = former
				}
			}
		}
		for key, inner := range v {
			if key != "?" {
				v[key] = u.value(inner, each(were, func(was any) any { former, _ := was.(map[string]any); return former[key] }), strings.TrimPrefix(path+"."+key, "."))
			}
		}
	case []any:
		for i, inner := range v {
			v[i] = u.value(inner, each(were, func(was any) any { return counterpart(was, inner, i) }), path+"["+strconv.Itoa(i)+"]")
		}
	}
	return value
}

// counterpart is the item of a former list that an item of a list goes on: the one of its name where it has one, else that in its place.
func counterpart(was, item any, i int) any {
	list, _ := was.([]any)
	if named, is := item.(map[string]any); is && named["name"] != nil {
		for _, one := range list {
			if former, is := one.(map[string]any); is && former["name"] == named["name"] {
				return former
			}
		}
		return nil
	}
	if i < len(list) {
		return list[i]
	}
	return nil
}

func each(were []any, of func(any) any) []any {
	list := make([]any, len(were))
	for i, was := range were {
		if was != nil {
			list[i] = of(was)
		}
	}
	return list
}

// whole is a former value in whose place Mark is. A number, a list or a map can be a secret too.
func (u *unmasking) whole(were []any, path string) any {
	for _, was := range were {
		if was != nil && was != "" {
			return was
		}
	}
	u.misses(path)
	return Mark
}

func (u *unmasking) text(text string, were []any, path string) string {
	if !marked(text) {
		return text
	}
	for _, was := range were {
		former, _ := was.(string)
		if whole, found := lines(text, former); found {
			return whole
		}
	}
	u.misses(path)
	return text
}

func (u *unmasking) misses(path string) {
	u.missing = append(u.missing, fault.New(fault.Invalid, "%s is %q, which is shown in place of a secret, and there is no secret in this place: give it the secret itself", path, Mark))
}

// markedLine is a line of YAML that gives a name Mark as its value, as sensitive.Texts leaves it.
var markedLine = regexp.MustCompile(`(?m)^[\t -]*["']?([\w.-]+)["']?[\t ]*:[\t ]+["']?` + regexp.QuoteMeta(Mark))

// marked reports whether a line of a text gives a name of a secret Mark as its value.
func marked(text string) bool {
	return strings.Contains(text, Mark) && slices.ContainsFunc(markedLine.FindAllStringSubmatch(text, -1), func(line []string) bool { return sensitive.Name(line[1]) })
}

// lines replaces lines of a text by the lines of a former one that read the same once their secrets are masked.
func lines(text, former string) (whole string, found bool) {
	had := map[string]string{}
	for line := range strings.Lines(former) {
		masked, _ := sensitive.Texts("", line, func(string) string { return Mark }).(string)
		had[strings.TrimRight(masked, "\n")] = strings.TrimRight(line, "\n")
	}
	list := strings.Split(text, "\n")
	for i, line := range list {
		if !marked(line) {
			continue
		}
		original, there := had[line]
		if !there {
			return text, false
		}
		list[i] = original
	}
	return strings.Join(list, "\n"), true
}
