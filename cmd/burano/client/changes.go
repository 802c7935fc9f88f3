package client

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/burano/burano/internal/sensitive"
	"github.com/burano/burano/web/client"
)

// signs mark added, changed and removed objects, as in the output of diff.
var signs = map[string]string{"added": "+", "changed": "~", "removed": "-"}

// changesTable lists changes with a sign each.
func changesTable(changes []client.Change) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		for _, one := range changes {
			fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\n", signs[one.Change], cmp.Or(one.Path, "the environment"), one.Type, one.Name, strings.Join(one.Properties, ", "))
			for _, value := range one.Values {
				for _, line := range changedLines(value, one.Names) {
					fmt.Fprintf(table, "    %s\n", line)
				}
			}
		}
	}
}

// changedLines are the differences in a property, a line each. Objects are shown by their names.
func changedLines(value client.Value, names map[string]string) []string {
	d := differences{names: names}
	if d.between(value.Name, value.Before, value.After); len(d.lines) == 0 {
		d.lines = []string{changedLine(value.Name, shortJSON(value.Before), shortJSON(value.After))}
	}
	if text, declared := effects[value.Effect]; declared {
		d.lines[0] += " [" + text + "]"
	}
	return d.lines
}

// effects are the words for declared effects of a change.
var effects = map[string]string{"inPlace": "in place", "rollsPods": "rolls pods", "nodeByNode": "node by node", "newOnly": "counts for new ones only", "refused": "refused", "loses": "can lose data",
	"none": "no effect"}

// changedLine is the difference of two values at a path. Different secrets are masked alike.
func changedLine(path, before, after string) string {
	if before == after && strings.Contains(before, sensitive.Mark) {
		return path + ": (secret, changed)"
	}
	return fmt.Sprintf("%s: %s → %s", path, before, after)
}

// differences collects the differences between values. names are those of objects by their ids.
type differences struct {
	names map[string]string
	lines []string
}

// between adds the differences of two values at a path: of maps key by key, of lists by their elements, which are compared by their names where they have any.
func (d *differences) between(path string, before, after any) {
	if reflect.DeepEqual(before, after) {
		return
	}
	was, isMap := before.(map[string]any)
	is, staysMap := after.(map[string]any)
	if isMap && staysMap {
		for _, key := range slices.Sorted(maps.Keys(union(was, is))) {
			d.between(path+"."+key, was[key], is[key])
		}
		return
	}
	formers, isList := before.([]any)
	elements, staysList := after.([]any)
	if !isList || !staysList {
		d.lines = append(d.lines, changedLine(path, d.shown(before), d.shown(after)))
		return
	}
	former, order, known := d.keyed(formers)
	present, newOrder, alsoKnown := d.keyed(elements)
	if !known || !alsoKnown {
		d.lines = append(d.lines, changedLine(path, d.shown(before), d.shown(after)))
		return
	}
	found := len(d.lines)
	for _, key := range slices.Concat(order, slices.DeleteFunc(slices.Clone(newOrder), func(key string) bool { _, had := former[key]; return had })) {
		_, had := former[key]
		_, stays := present[key]
		switch name := d.names[key]; {
		case name != "" && !had:
			d.lines = append(d.lines, path+": + "+name)
		case name != "" && !stays:
			d.lines = append(d.lines, path+": - "+name)
		default:
			d.between(fmt.Sprintf("%s[%s]", path, cmp.Or(name, key)), former[key], present[key])
		}
	}
	if len(d.lines) == found {
		d.lines = append(d.lines, path+": the same in another order")
	}
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// keyed are the elements of a list by their keys, and the keys in order: objects by their ids, and maps by their "name". ok is false for a list with other elements, or
// with two of one key.
func (d *differences) keyed(list []any) (elements map[string]any, order []string, ok bool) {
	elements = map[string]any{}
	for _, element := range list {
		key := ""
		switch v := element.(type) {
		case string:
			if _, object := d.names[v]; object {
				key = v
			}
		case map[string]any:
			key, _ = v["name"].(string)
		}
		if _, taken := elements[key]; taken || key == "" {
			return nil, nil, false
		}
		elements[key], order = element, append(order, key)
	}
	return elements, order, true
}

// shown is a value with the names of objects, as short JSON.
func (d *differences) shown(value any) string {
	if id, is := value.(string); is && d.names[id] != "" {
		return d.names[id]
	}
	return shortJSON(d.named(value))
}

// named is a value with the names of objects in the place of their ids.
func (d *differences) named(value any) any {
	switch v := value.(type) {
	case string:
		return cmp.Or(d.names[v], v)
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = d.named(element)
		}
		return list
	case map[string]any:
		dict := map[string]any{}
		for key, element := range v {
			dict[key] = d.named(element)
		}
		return dict
	}
	return value
}
