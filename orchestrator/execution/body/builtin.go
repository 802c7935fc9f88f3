package body

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/internal/wait"
)

// arity returns an error when there are fewer or more arguments.
func arity(line int, name string, args []any, least, most int) error {
	if len(args) < least || len(args) > most {
		return &Error{line, "TypeError", fmt.Sprintf("%s() is called with %d arguments", name, len(args))}
	}
	return nil
}

// exceptions are the types that raise can make.
var exceptions = []string{"Exception", "ValueError", "TypeError", "RuntimeError", "KeyError", "IndexError", "AssertionError", "OSError", "IOError", "EnvironmentError",
	"NotImplementedError", "LookupError", "ArithmeticError"}

func builtin(name string) (any, bool) {
	if slices.Contains(exceptions, name) {
		return function(func(_ *run, line int, args []any, _ map[string]any) (any, error) {
			text := ""
			if len(args) > 0 {
				text = str(args[0])
			}
			return caught{&Error{line, name, text}}, nil
		}), true
	}
	switch name {
	case "json":
		return moduleJSON(), true
	case "time":
		return moduleTime(), true
	case "uuid":
		return moduleUUID(), true
	}
	made := func(least, most int, do func(line int, args []any) (any, error)) (any, bool) {
		return function(func(_ *run, line int, args []any, named map[string]any) (any, error) {
			if err := arity(line, name, args, least, most); err != nil {
				return nil, err
			}
			return do(line, args)
		}), true
	}
	switch name {
	case "str", "unicode":
		return made(0, 3, func(_ int, args []any) (any, error) { return str(first(args, "")), nil })
	case "repr":
		return made(1, 1, func(_ int, args []any) (any, error) { return repr(args[0]), nil })
	case "int", "long":
		return made(0, 2, toInt)
	case "float":
		return made(0, 1, toFloat)
	case "bool":
		return made(0, 1, func(_ int, args []any) (any, error) { return truth(first(args, false)), nil })
	case "len":
		return made(1, 1, length)
	case "range", "xrange":
		return made(1, 3, toRange)
	case "list", "set", "frozenset":
		return made(0, 1, func(line int, args []any) (any, error) {
			items, err := iterate(line, first(args, tuple{}))
			if name != "list" {
				items = distinct(items)
			}
			return &list{slices.Clone(items)}, err
		})
	case "tuple":
		return made(0, 1, func(line int, args []any) (any, error) {
			items, err := iterate(line, first(args, tuple{}))
			return tuple(items), err
		})
	case "dict":
		return function(toDict), true
	case "sorted":
		return function(sorted), true
	case "map", "filter":
		return function(func(r *run, line int, args []any, _ map[string]any) (any, error) {
			if err := arity(line, name, args, 2, 2); err != nil {
				return nil, err
			}
			return r.each(line, name == "filter", args[0], args[1])
		}), true
	case "open":
		return function(open), true
	case "reversed":
		return made(1, 1, func(line int, args []any) (any, error) {
			items, err := iterate(line, args[0])
			items = slices.Clone(items)
			slices.Reverse(items)
			return &list{items}, err
		})
	case "enumerate":
		return made(1, 2, enumerate)
	case "zip":
		return made(0, 8, zip)
	case "min", "max":
		return made(1, 1000, func(line int, args []any) (any, error) { return extreme(line, name, args) })
	case "sum":
		return made(1, 2, sum)
	case "any", "all":
		return made(1, 1, func(line int, args []any) (any, error) {
			items, err := iterate(line, args[0])
			return slices.ContainsFunc(items, func(one any) bool { return truth(one) == (name == "any") }) == (name == "any"), err
		})
	case "abs":
		return made(1, 1, func(line int, args []any) (any, error) {
			if order, ok := compare(args[0], int64(0)); ok && order < 0 {
				return negate(unary{line, "-", nil}, args[0])
			}
			return args[0], nil
		})
	case "round":
		return made(1, 2, round)
	case "print":
		return function(func(*run, int, []any, map[string]any) (any, error) { return nil, nil }), true
	}
	return nil, false
}

func first(args []any, otherwise any) any {
	if len(args) == 0 {
		return otherwise
	}
	return args[0]
}

func distinct(items []any) []any {
	var once []any
	for _, one := range items {
		if !slices.ContainsFunc(once, func(other any) bool { return equal(one, other) }) {
			once = append(once, one)
		}
	}
	return once
}

func toInt(line int, args []any) (any, error) {
	switch v := first(args, int64(0)).(type) {
	case string:
		base := int64(10)
		if len(args) > 1 {
			base, _, _, _ = numberOf(args[1])
		}
		n, err := strconv.ParseInt(strings.TrimSpace(v), int(base), 64)
		if err != nil {
			return nil, &Error{line, "ValueError", fmt.Sprintf("invalid literal for int() with base %d: %s", base, quoted(v))}
		}
		return n, nil
	default:
		n, f, isFloat, ok := numberOf(v)
		switch {
		case !ok:
			return nil, &Error{line, "TypeError", "int() argument must be a string or a number, not '" + typeName(v) + "'"}
		case isFloat && math.Abs(f) >= 1<<63, isFloat && math.IsNaN(f):
			return nil, &Error{line, "OverflowError", "the number does not fit 64 bits"}
		case isFloat:
			return int64(f), nil
		}
		return n, nil
	}
}

func toFloat(line int, args []any) (any, error) {
	value := first(args, 0.0)
	if s, is := value.(string); is {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return nil, &Error{line, "ValueError", "could not convert string to float: " + quoted(s)}
		}
		return f, nil
	}
	_, f, _, ok := numberOf(value)
	if !ok {
		return nil, &Error{line, "TypeError", "float() argument must be a string or a number, not '" + typeName(value) + "'"}
	}
	return f, nil
}

func length(line int, args []any) (any, error) {
	if s, is := args[0].(string); is {
		return int64(len([]rune(s))), nil
	}
	items, err := iterate(line, args[0])
	return int64(len(items)), err
}

func toRange(line int, args []any) (any, error) {
	bounds := [3]int64{0, 0, 1}
	for n, arg := range args {
		value, _, isFloat, ok := numberOf(arg)
		if !ok || isFloat {
			return nil, &Error{line, "TypeError", "range() needs integers"}
		}
		bounds[n] = value
	}
	if len(args) == 1 {
		bounds[0], bounds[1] = 0, bounds[0]
	}
	if bounds[2] == 0 {
		return nil, &Error{line, "ValueError", "range() arg 3 must not be zero"}
	}
	made := &list{}
	for n := bounds[0]; bounds[2] > 0 && n < bounds[1] || bounds[2] < 0 && n > bounds[1]; n += bounds[2] {
		if err := made.extend(line, []any{n}); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func toDict(_ *run, line int, args []any, named map[string]any) (any, error) {
	d := newDict()
	if err := arity(line, "dict", args, 0, 1); err != nil {
		return nil, err
	}
	if len(args) > 0 {
		if err := d.update(line, args[0]); err != nil {
			return nil, err
		}
	}
	keys := make([]string, 0, len(named))
	for key := range named {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		d.set(key, named[key])
	}
	return d, nil
}

func (d *dict) update(line int, from any) error {
	if other, is := from.(*dict); is {
		for _, key := range other.keys {
			value, _ := other.get(key)
			d.set(key, value)
		}
		return nil
	}
	items, err := iterate(line, from)
	if err != nil {
		return err
	}
	for _, one := range items {
		pair, err := iterate(line, one)
		if err != nil || len(pair) != 2 {
			return &Error{line, "ValueError", "a dict is made of pairs"}
		}
		if err := put(line, d, pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

func sorted(r *run, line int, args []any, named map[string]any) (any, error) {
	if err := arity(line, "sorted", args, 1, 1); err != nil {
		return nil, err
	}
	items, err := iterate(line, args[0])
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	return &list{items}, r.sort(line, items, named)
}

func (r *run) sort(line int, items []any, named map[string]any) error {
	var failed error
	type keyed struct{ item, key any }
	all := make([]keyed, len(items))
	for n, one := range items {
		all[n] = keyed{one, one}
		if named["key"] != nil {
			var err error
			if all[n].key, err = r.invoke(line, named["key"], []any{one}, nil); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(all, func(x, y keyed) int {
		a, b := x.key, y.key
		order, ok := compare(a, b)
		if !ok {
			failed = &Error{line, "TypeError", "'" + typeName(a) + "' and '" + typeName(b) + "' have no order"}
		}
		if truth(named["reverse"]) {
			return -order
		}
		return order
	})
	for n := range all {
		items[n] = all[n].item
	}
	return failed
}

// each is map, or filter.
func (r *run) each(line int, filter bool, f, over any) (any, error) {
	items, err := iterate(line, over)
	if err != nil {
		return nil, err
	}
	made := &list{}
	for _, one := range items {
		value := one
		if f != nil {
			if value, err = r.invoke(line, f, []any{one}, nil); err != nil {
				return nil, err
			}
		}
		switch {
		case !filter:
			made.items = append(made.items, value)
		case truth(value):
			made.items = append(made.items, one)
		}
	}
	return made, nil
}

func enumerate(line int, args []any) (any, error) {
	items, err := iterate(line, args[0])
	if err != nil {
		return nil, err
	}
	start, _, _, _ := numberOf(first(args[1:], int64(0)))
	made := make([]any, len(items))
	for n, one := range items {
		made[n] = tuple{start + int64(n), one}
	}
	return &list{made}, nil
}

func zip(line int, args []any) (any, error) {
	made := &list{}
	for n := 0; len(args) > 0; n++ {
		row := make(tuple, len(args))
		for m, arg := range args {
			items, err := iterate(line, arg)
			if err != nil || n >= len(items) {
				return made, err
			}
			row[m] = items[n]
		}
		made.items = append(made.items, row)
	}
	return made, nil
}

func extreme(line int, name string, args []any) (any, error) {
	if len(args) == 1 {
		var err error
		if args, err = iterate(line, args[0]); err != nil {
			return nil, err
		}
	}
	if len(args) == 0 {
		return nil, &Error{line, "ValueError", name + "() arg is an empty sequence"}
	}
	found := args[0]
	for _, one := range args[1:] {
		order, ok := compare(one, found)
		if !ok {
			return nil, &Error{line, "TypeError", "'" + typeName(one) + "' and '" + typeName(found) + "' have no order"}
		}
		if order < 0 && name == "min" || order > 0 && name == "max" {
			found = one
		}
	}
	return found, nil
}

func sum(line int, args []any) (any, error) {
	items, err := iterate(line, args[0])
	if err != nil {
		return nil, err
	}
	total := first(args[1:], int64(0))
	for _, one := range items {
		if total, err = (&run{}).operate(line, "+", total, one); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func round(line int, args []any) (any, error) {
	_, f, isFloat, ok := numberOf(args[0])
	if !ok {
		return nil, &Error{line, "TypeError", "a number is required"}
	}
	digits, _, _, _ := numberOf(first(args[1:], int64(0)))
	if !isFloat && digits >= 0 {
		return args[0], nil
	}
	scale := math.Pow(10, float64(digits))
	rounded := math.RoundToEven(f*scale) / scale
	if len(args) == 1 {
		return int64(rounded), nil
	}
	return rounded, nil
}

// moduleJSON is the module of import json.
func moduleJSON() any {
	d := newDict()
	var dumps any = function(func(_ *run, line int, args []any, named map[string]any) (any, error) {
		if err := arity(line, "dumps", args, 1, 1); err != nil {
			return nil, err
		}
		plain, err := toGo(args[0])
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if spaces, _, _, ok := numberOf(named["indent"]); ok {
			encoder.SetIndent("", strings.Repeat(" ", int(min(max(spaces, 0), 16))))
		}
		err = encoder.Encode(plain)
		return strings.TrimSuffix(b.String(), "\n"), err
	})
	d.set("dumps", dumps)
	d.set("dump", function(func(r *run, line int, args []any, named map[string]any) (any, error) {
		if err := arity(line, "dump", args, 2, 2); err != nil {
			return nil, err
		}
		f, is := args[1].(*fileValue)
		if !is {
			return nil, &Error{line, "TypeError", "dump() writes into a file"}
		}
		text, err := dumps.(function)(r, line, args[:1], named)
		if err != nil {
			return nil, err
		}
		return nil, f.write(line, text)
	}))
	d.set("loads", function(func(_ *run, line int, args []any, _ map[string]any) (any, error) {
		if err := arity(line, "loads", args, 1, 1); err != nil {
			return nil, err
		}
		decoder := json.NewDecoder(strings.NewReader(str(args[0])))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, &Error{line, "ValueError", "no JSON object could be decoded: " + err.Error()}
		}
		return fromGo(numbers(value)), nil
	}))
	return d
}

func numbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		for n := range v {
			v[n] = numbers(v[n])
		}
	case map[string]any:
		for key := range v {
			v[key] = numbers(v[key])
		}
	}
	return value
}

// moduleTime is the module of import time.
func moduleTime() any {
	d := newDict()
	d.set("sleep", function(func(r *run, line int, args []any, _ map[string]any) (any, error) {
		if err := arity(line, "sleep", args, 1, 1); err != nil {
			return nil, err
		}
		_, seconds, _, ok := numberOf(args[0])
		if !ok {
			return nil, &Error{line, "TypeError", "a number is required"}
		}
		return nil, wait.Pause(r.ctx, time.Duration(max(0, cmp.Or(seconds, 0))*float64(time.Second)))
	}))
	return d
}
