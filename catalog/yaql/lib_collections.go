package yaql

import (
	"math"
	"slices"
)

// listAt is a place in a list; a negative one counts from the end.
func listAt(items []any, index int64) (any, error) {
	n := index
	if n < 0 {
		n += int64(len(items))
	}
	if n < 0 || n >= int64(len(items)) {
		return nil, failure(IndexMissing, "there is no item %d in a list of %d", index, len(items)).saying("tuple index out of range")
	}
	return enter(items[n]), nil
}

func pairsOf(i *Invocation, items []any) ([]Entry, error) {
	entries := make([]Entry, 0, len(items))
	for _, item := range items {
		var e Entry
		switch v := enter(item).(type) {
		case *Pair:
			key, err := i.call(v.Key.(*Lambda))
			if err != nil {
				return nil, err
			}
			value, err := i.call(v.Value.(*Lambda))
			if err != nil {
				return nil, err
			}
			e = Entry{key, value}
		case []any:
			if len(v) != 2 {
				return nil, failure(BadValue, "a pair has two items, not %d", len(v))
			}
			e = Entry{v[0], v[1]}
		default:
			return nil, failure(BadType, "a pair is wanted, found %s", TypeName(v))
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// spread is the list with the items of lazy sequences in their place.
func (i *Invocation) spread(list []any) ([]any, error) {
	made := make([]any, 0, len(list))
	for _, item := range list {
		if !isSequence(item) {
			made = append(made, item)
			continue
		}
		seq, _ := iterable(item)
		items, err := i.run.list(seq.(Seq))
		if err != nil {
			return nil, err
		}
		made = append(made, items...)
	}
	return made, nil
}

// flat writes out lists within lists.
func flat(r *run, value any, into []any, depth int) ([]any, error) {
	seq, ok := iterable(enter(value))
	if !ok {
		return append(into, value), r.spend(16)
	}
	if depth > 100 {
		return nil, failure(TooLarge, "lists stand in each other too deeply")
	}
	for item, err := range r.limited(seq.(Seq)) {
		if err != nil {
			return nil, err
		}
		if into, err = flat(r, item, into, depth+1); err != nil {
			return nil, err
		}
	}
	return into, nil
}

func repeatList(i *Invocation, items []any, times int64) (any, error) {
	if times <= 0 || len(items) == 0 {
		return []any{}, nil
	}
	if times > math.MaxInt32 {
		return nil, i.run.spend(math.MaxInt)
	}
	if err := i.run.spend(16 * len(items) * int(times)); err != nil {
		return nil, err
	}
	return slices.Repeat(items, int(times)), nil
}

// insert puts values before the item at a position: past the end, they come last. A negative position counts from the end.
func insert(items []any, position int64, values ...any) []any {
	length := int64(len(items))
	if position < 0 {
		position = max(0, position+length)
	}
	position = min(position, length)
	return slices.Concat(items[:position], values, items[position:])
}

// exchange puts values in the place of count items from a position on; a negative count is all that follow. No position before the
// first item or after the last is counted: when no item is in the range, nothing changes.
func exchange(items []any, position, count int64, values []any) []any {
	length := int64(len(items))
	from, to := min(max(position, 0), length), length
	if count >= 0 && (position < 0 || count < length-position) {
		to = min(max(position+count, 0), length)
	}
	if from >= to {
		return items
	}
	return slices.Concat(items[:from], values, items[to:])
}

func setOf(values []any) *Set { return NewSet(values...) }

func combine(name, doc string, operation func(a, b *Set) *Set) *Function {
	return method(name, doc, func(i *Invocation) (any, error) { return operation(arg[*Set](i, 0), arg[*Set](i, 1)), nil },
		need("left", set), need("right", set))
}

func keepIf(s *Set, keep func(any) bool) *Set {
	return NewSet(slices.DeleteFunc(s.Members(), func(m any) bool { return !keep(m) })...)
}

func difference(a, b *Set) *Set { return keepIf(a, func(m any) bool { return !b.Has(m) }) }

func collectionFunctions() []*Function {
	test := func(name, doc string, t Type) *Function {
		return function(name, doc, func(i *Invocation) (any, error) { _, ok := t(i.Args[0]); return ok, nil }, need("arg", nil))
	}
	functions := []*Function{
		function("list", "a list of the arguments; of lazy sequences among them the items", func(i *Invocation) (any, error) {
			return i.spread(arg[[]any](i, 0))
		}, rest(nil)),
		method("flatten", "the items of all lists in the list", lazily(func(i *Invocation) (any, error) { return flat(i.run, i.Args[0], []any{}, 0) }), need("collection", iterable)),
		method("toList", "the items as a list", whole(func(_ *Invocation, items []any) (any, error) { return items, nil }), need("collection", iterable)),
		{Name: "dict", Kind: AsFunction, Doc: "a map of pairs", Pairs: true, Params: []Param{restOfPairs}, Call: func(i *Invocation) (any, error) {
			entries, err := pairsOf(i, arg[[]any](i, 0))
			return NewDict(entries...), err
		}},
		function("dict", "a map of a list of pairs", whole(func(i *Invocation, items []any) (any, error) {
			entries, err := pairsOf(i, items)
			return NewDict(entries...), err
		}), need("items", iterable)),
		method("toDict", "a map of what the selectors make of each item", whole(func(i *Invocation, items []any) (any, error) {
			made := NewDict()
			for _, item := range items {
				key, err := i.call(i.lambda(1), item)
				if err != nil {
					return nil, err
				}
				value := item
				if l := i.lambda(2); l != nil {
					if value, err = i.call(l, item); err != nil {
						return nil, err
					}
				}
				made.put(key, value)
			}
			return made, nil
		}), need("collection", iterable), lazy("keySelector"), mayLazy("valueSelector")),
		{Name: "[]", Kind: AsOperator, Doc: "the value of a key", Params: []Param{need("d", dict), need("key", nil)}, Call: func(i *Invocation) (any, error) {
			value, ok := arg[*Dict](i, 0).Get(i.Args[1])
			if !ok {
				return nil, failure(KeyMissing, "there is no key %s", Text(i.Args[1])).saying("%s", inPython(i.Args[1]))
			}
			return value, nil
		}},
		{Name: "[]", Kind: AsOperator, Doc: "the value of a key, or another value", Params: []Param{need("d", dict), need("key", nil), need("default", nil)}, Call: dictGet},
		{Name: "[]", Kind: AsOperator, Doc: "the item at a place", Params: []Param{need("lst", list), need("index", integer)}, Call: func(i *Invocation) (any, error) {
			return listAt(arg[[]any](i, 0), arg[int64](i, 1))
		}},
		method("get", "the value of a key, or another value", dictGet, need("d", dict), need("key", nil), may("default", nil, nil)),
		method("set", "the map with a value", func(i *Invocation) (any, error) {
			return arg[*Dict](i, 0).With(Entry{i.Args[1], i.Args[2]}), nil
		}, need("d", dict), need("key", nil), need("value", nil)),
		method("set", "the map with the values of another", func(i *Invocation) (any, error) {
			return arg[*Dict](i, 0).With(arg[*Dict](i, 1).all()...), nil
		}, need("d", dict), need("replacements", dict)),
		{Name: "set", Kind: AsMethod, Doc: "the map with the values of pairs", Pairs: true, Params: []Param{need("d", dict), restOfPairs}, Call: func(i *Invocation) (any, error) {
			entries, err := pairsOf(i, arg[[]any](i, 1))
			return arg[*Dict](i, 0).With(entries...), err
		}},
		method("keys", "the keys", func(i *Invocation) (any, error) {
			return eachEntry(i, func(e Entry) any { return e.Key }), nil
		}, need("d", dict)),
		method("values", "the values", func(i *Invocation) (any, error) {
			return eachEntry(i, func(e Entry) any { return e.Value }), nil
		}, need("d", dict)),
		method("items", "the pairs of keys and values", func(i *Invocation) (any, error) {
			return eachEntry(i, func(e Entry) any { return []any{e.Key, e.Value} }), nil
		}, need("d", dict)),
		operator("in", "whether the value is among the items", func(i *Invocation) (any, error) { return holds(i, 1, i.Args[0]) }, nil, iterable),
		method("contains", "whether the value is among the items", func(i *Invocation) (any, error) { return holds(i, 0, i.Args[1]) }, need("collection", iterable), need("value", nil)),
		method("containsKey", "whether the map has the key", func(i *Invocation) (any, error) {
			_, ok := arg[*Dict](i, 0).Get(i.Args[1])
			return ok, nil
		}, need("d", dict), need("key", nil)),
		method("containsValue", "whether the map has the value", func(i *Invocation) (any, error) {
			return slices.ContainsFunc(arg[*Dict](i, 0).all(), func(e Entry) bool { return Equal(e.Value, i.Args[1]) }), nil
		}, need("d", dict), need("value", nil)),
		operator("+", "one set and the other", func(i *Invocation) (any, error) {
			return setOf(append(arg[*Set](i, 0).Members(), arg[*Set](i, 1).members...)), nil
		}, set, set),
		operator("-", "the members that the other set lacks", func(i *Invocation) (any, error) {
			return difference(arg[*Set](i, 0), arg[*Set](i, 1)), nil
		}, set, set),
		operator("+", "one list after the other", func(i *Invocation) (any, error) {
			left, err := i.items(0)
			if err != nil {
				return nil, err
			}
			right, err := i.items(1)
			return append(left, right...), err
		}, iterable, iterable),
		operator("+", "one map and over it the other", func(i *Invocation) (any, error) {
			return arg[*Dict](i, 0).With(arg[*Dict](i, 1).all()...), nil
		}, dict, dict),
		operator("*", "the list that many times", func(i *Invocation) (any, error) { return repeatList(i, arg[[]any](i, 0), arg[int64](i, 1)) }, list, integer),
		operator("*", "the list that many times", func(i *Invocation) (any, error) { return repeatList(i, arg[[]any](i, 1), arg[int64](i, 0)) }, integer, list),
		test("isList", "whether it is a list", list),
		test("isDict", "whether it is a map", dict),
		test("isSet", "whether it is a set", set),
		both("len", "the number of entries", func(i *Invocation) (any, error) { return int64(arg[*Dict](i, 0).Len()), nil }, need("d", dict)),
		both("len", "the number of items", whole(func(_ *Invocation, items []any) (any, error) { return int64(len(items)), nil }), need("sequence", iterable)),
		method("delete", "the sequence without some items", resequenced(func(i *Invocation, items []any) (any, error) {
			return exchange(items, arg[int64](i, 1), arg[int64](i, 2), nil), nil
		}), need("collection", iterable), need("position", integer), may("count", integer, int64(1))),
		method("replace", "the sequence with another item", resequenced(func(i *Invocation, items []any) (any, error) {
			return exchange(items, arg[int64](i, 1), arg[int64](i, 3), []any{i.Args[2]}), nil
		}), need("collection", iterable), need("position", integer), need("value", nil), may("count", integer, int64(1))),
		method("replaceMany", "the sequence with other items", resequenced(func(i *Invocation, items []any) (any, error) {
			values, err := i.items(2)
			return exchange(items, arg[int64](i, 1), arg[int64](i, 3), values), err
		}), need("collection", iterable), need("position", integer), need("values", iterable), may("count", integer, int64(1))),
		method("delete", "the map without some keys", func(i *Invocation) (any, error) {
			return arg[*Dict](i, 0).Without(arg[[]any](i, 1)...), nil
		}, need("d", dict), rest(nil)),
		method("deleteAll", "the map without some keys", func(i *Invocation) (any, error) {
			keys, err := i.items(1)
			return arg[*Dict](i, 0).Without(keys...), err
		}, need("d", dict), need("keys", iterable)),
		method("insert", "the list with an item more", func(i *Invocation) (any, error) {
			return insert(arg[[]any](i, 0), arg[int64](i, 1), i.Args[2]), nil
		}, need("collection", list), need("position", integer), need("value", nil)),
		method("insert", "the sequence with an item more", whole(func(i *Invocation, items []any) (any, error) {
			if arg[int64](i, 1) < 0 { // a sequence has no end to count from
				return items, nil
			}
			return insert(items, arg[int64](i, 1), i.Args[2]), nil
		}), need("collection", lazySequence), need("position", integer), need("value", nil)),
		method("insertMany", "the sequence with more items", resequenced(func(i *Invocation, items []any) (any, error) {
			values, err := i.items(2)
			return insert(items, max(arg[int64](i, 1), 0), values...), err
		}), need("collection", iterable), need("position", integer), need("values", iterable)),
		function("set", "a set of the arguments; of lazy sequences among them the items", func(i *Invocation) (any, error) {
			members, err := i.spread(arg[[]any](i, 0))
			return setOf(members), err
		}, rest(nil)),
		method("toSet", "the items as a set", whole(func(_ *Invocation, items []any) (any, error) { return setOf(items), nil }), need("collection", iterable)),
		combine("union", "one set and the other", func(a, b *Set) *Set { return setOf(append(a.Members(), b.members...)) }),
		combine("intersect", "the members that both sets have", func(a, b *Set) *Set { return keepIf(a, b.Has) }),
		combine("difference", "the members that the other set lacks", difference),
		combine("symmetricDifference", "the members that only one of the sets has", func(a, b *Set) *Set {
			return setOf(append(difference(a, b).Members(), difference(b, a).members...))
		}),
		method("add", "the set with more members", func(i *Invocation) (any, error) {
			return setOf(append(arg[*Set](i, 0).Members(), arg[[]any](i, 1)...)), nil
		}, need("s", set), rest(nil)),
		method("remove", "the set without some members", func(i *Invocation) (any, error) {
			return difference(arg[*Set](i, 0), setOf(arg[[]any](i, 1))), nil
		}, need("s", set), rest(nil)),
	}
	for name, holds := range map[string]func(a, b *Set) bool{
		"<":  func(a, b *Set) bool { return b.contains(a) && a.Len() < b.Len() },
		"<=": func(a, b *Set) bool { return b.contains(a) },
		">":  func(a, b *Set) bool { return a.contains(b) && a.Len() > b.Len() },
		">=": func(a, b *Set) bool { return a.contains(b) },
	} {
		functions = append(functions, operator(name, "whether one set is part of the other", func(i *Invocation) (any, error) {
			return holds(arg[*Set](i, 0), arg[*Set](i, 1)), nil
		}, set, set))
	}
	return functions
}

// restOfPairs takes pairs only.
var restOfPairs = Param{Rest: true, Type: isA[*Pair]}

// lazySequence accepts sequences whose items are not computed yet.
func lazySequence(value any) (any, bool) {
	if _, ok := value.([]any); ok {
		return nil, false
	}
	if _, ok := value.(*Set); ok {
		return nil, false
	}
	return iterable(value)
}

func dictGet(i *Invocation) (any, error) {
	if value, ok := arg[*Dict](i, 0).Get(i.Args[1]); ok {
		return value, nil
	}
	return i.Args[2], nil
}

func eachEntry(i *Invocation, of func(Entry) any) []any {
	made := []any{}
	for _, e := range arg[*Dict](i, 0).all() {
		made = append(made, of(e))
	}
	return made
}

func holds(i *Invocation, collection int, value any) (any, error) {
	items, err := i.items(collection)
	if err != nil {
		return nil, err
	}
	return slices.ContainsFunc(items, func(item any) bool { return Equal(item, value) }), nil
}
