package yaql

import (
	"iter"
	"math"
	"slices"
)

// stream makes a function of the library that turns one sequence into another, item by item and only as far as is asked.
func stream(transform func(i *Invocation, source Seq, yield func(any, error) bool)) body {
	return func(i *Invocation) (any, error) {
		source := arg[Seq](i, 0)
		return Seq(func(yield func(any, error) bool) { transform(i, source, yield) }), nil
	}
}

// whole makes a function that looks at all items at once.
func whole(of func(i *Invocation, items []any) (any, error)) body {
	return func(i *Invocation) (any, error) {
		items, err := i.items(0)
		if err != nil {
			return nil, err
		}
		return of(i, items)
	}
}

// lazily makes a sequence from a function's list. Functions that are generators in Python's YAQL are made lazy, because there it is visible: a sequence
// has no index, cannot be multiplied, and list() takes its items.
func lazily(call body) body {
	return func(i *Invocation) (any, error) {
		value, err := call(i)
		if items, ok := value.([]any); ok {
			return sequence(items), err
		}
		return value, err
	}
}

// resequenced makes a function that looks at all items at once and gives others lazily.
func resequenced(of func(i *Invocation, items []any) (any, error)) body { return lazily(whole(of)) }

// filtered yields the items for which keep is true; keep may end it by its second result.
func filtered(keep func(i *Invocation, item any, n int) (kept, end bool, err error)) body {
	return stream(func(i *Invocation, source Seq, yield func(any, error) bool) {
		n := 0
		for item, err := range source {
			var kept, end bool
			if err == nil {
				kept, end, err = keep(i, enter(item), n)
			}
			n++
			if err != nil {
				yield(nil, err)
				return
			}
			if end || kept && !yield(item, nil) {
				return
			}
		}
	})
}

func mapped(of func(i *Invocation, item any, n int) (any, error)) body {
	return stream(func(i *Invocation, source Seq, yield func(any, error) bool) {
		n := 0
		for item, err := range source {
			if err == nil {
				item, err = of(i, enter(item), n)
			}
			n++
			if !yield(item, err) || err != nil {
				return
			}
		}
	})
}

// fold joins items two by two; each also returns every step.
func fold(i *Invocation, items []any, seed any, step func(a, b any) (any, error), each func(any)) (any, error) {
	if _, without := seed.(absent); without {
		if len(items) == 0 {
			return nil, failure(BadType, "an empty sequence needs a first value").saying("reduce() of empty iterable with no initial value")
		}
		seed, items = enter(items[0]), items[1:]
	}
	total := seed
	each(total)
	for _, item := range items {
		var err error
		if total, err = step(total, enter(item)); err != nil {
			return nil, err
		}
		each(total)
	}
	return total, nil
}

func nothing(any) {}

func (i *Invocation) plus(a, b any) (any, error) { return i.run.overloaded("+", i.Scope, a, b) }

func best(wanted int) func(a, b any) (any, error) {
	return func(a, b any) (any, error) {
		c, ok := compare(a, b)
		if !ok {
			return nil, incomparable(a, b, ">")
		}
		if c == -wanted {
			return b, nil
		}
		return a, nil
	}
}

func rangeOf(start, stop, step int64) (any, error) {
	if step == 0 {
		return nil, failure(BadValue, "range() cannot go in steps of 0").saying("range() arg 3 must not be zero")
	}
	return Seq(func(yield func(any, error) bool) {
		for n := start; step > 0 && n < stop || step < 0 && n > stop; {
			if !yield(n, nil) {
				return
			}
			next, err := add(n, step)
			if err != nil {
				return
			}
			n = next.(int64)
		}
	}), nil
}

func zip(i *Invocation, sources []any, longest bool, otherwise any) Seq {
	return func(yield func(any, error) bool) {
		var pulls []func() (any, error, bool)
		for _, source := range sources {
			next, stop := iter.Pull2(source.(Seq))
			defer stop()
			pulls = append(pulls, next)
		}
		for {
			row, ended := make([]any, len(pulls)), 0
			for n, next := range pulls {
				item, err, ok := next()
				if err != nil {
					yield(nil, err)
					return
				}
				if !ok {
					ended++
					item = otherwise
				}
				row[n] = item
			}
			if ended == len(pulls) || ended > 0 && !longest || !yield(row, nil) {
				return
			}
		}
	}
}

func generate(i *Invocation, initial any, more func(any) (bool, error), produce func(any) (any, error), selector *Lambda, decycle bool) Seq {
	return func(yield func(any, error) bool) {
		seen := NewSet()
		for value := initial; ; {
			if decycle && !seen.put(value) {
				return
			}
			ok, err := more(value)
			shown := value
			if err == nil && ok && selector != nil {
				shown, err = i.call(selector, value)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !ok || !yield(shown, nil) {
				return
			}
			if value, err = produce(value); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

func generateMany(i *Invocation) (any, error) {
	producer, selector := i.lambda(1), i.lambda(2)
	decycle, depthFirst := arg[bool](i, 3), arg[bool](i, 4)
	made, seen := []any{}, NewSet()
	queue := []any{i.Args[0]}
	for len(queue) > 0 {
		value := queue[0]
		queue = queue[1:]
		if decycle && !seen.put(value) {
			continue
		}
		if len(made) >= i.run.limits.Items {
			return nil, failure(TooLarge, "a sequence has more than %d items", i.run.limits.Items)
		}
		shown := value
		var err error
		if selector != nil {
			if shown, err = i.call(selector, value); err != nil {
				return nil, err
			}
		}
		made = append(made, shown)
		produced, err := i.call(producer, value)
		if err != nil {
			return nil, err
		}
		seq, ok := iterable(produced)
		if !ok {
			return nil, failure(BadType, "the producer of generateMany() makes a list, not %s", TypeName(produced))
		}
		next, err := i.run.list(seq.(Seq))
		if err != nil {
			return nil, err
		}
		if depthFirst {
			queue = append(next, queue...)
		} else {
			queue = append(queue, next...)
		}
	}
	return made, nil
}

// merge merges one map over another; maps in both are merged too, down to the level (0: all levels).
func merge(i *Invocation, a, b *Dict, level int64, lists, items *Lambda) (*Dict, error) {
	made := NewDict(a.all()...)
	for _, e := range b.all() {
		old, both := a.Get(e.Key)
		value := enter(e.Value)
		if both {
			old = enter(old)
			oldDict, oldIs := old.(*Dict)
			newDict, newIs := value.(*Dict)
			oldList, oldIsList := old.([]any)
			newList, newIsList := value.([]any)
			var err error
			switch {
			case level != 1 && (newIs && !oldIs || newIsList && !oldIsList):
				err = failure(BadType, "%s and %s cannot be merged, at the key %s", TypeName(old), TypeName(value), Text(e.Key)).
					saying("Cannot merge %s with %s", classInPython(old), classInPython(value))
			case level != 1 && newIs:
				value, err = merge(i, oldDict, newDict, max(level-1, 0), lists, items)
			case level != 1 && newIsList && lists != nil:
				value, err = i.call(lists, oldList, newList)
			case level != 1 && newIsList:
				value = NewSet(append(slices.Clone(oldList), newList...)...).Members()
			case items != nil:
				value, err = i.call(items, old, value)
			}
			if err != nil {
				return nil, err
			}
		}
		made.put(e.Key, value)
	}
	return made, nil
}

func find(i *Invocation, items []any, last bool, is func(any) (bool, error)) (any, error) {
	found := int64(-1)
	for n, item := range items {
		ok, err := is(enter(item))
		if err != nil {
			return nil, err
		}
		if ok {
			found = int64(n)
			if !last {
				break
			}
		}
	}
	return found, nil
}

// splitWhere makes the lists between items for which the predicate holds; an empty one at the end is left out.
func splitWhere(i *Invocation, items []any) (any, error) {
	made, piece := []any{}, []any{}
	for _, item := range items {
		ok, err := i.test(i.lambda(1), enter(item))
		if err != nil {
			return nil, err
		}
		if ok {
			made, piece = append(made, piece), []any{}
		} else {
			piece = append(piece, item)
		}
	}
	if len(piece) > 0 {
		made = append(made, piece)
	}
	return made, nil
}

// sliceWhere makes the lists of neighbours for which the predicate gives the same value.
func sliceWhere(i *Invocation, items []any) (any, error) {
	made, piece := []any{}, []any{}
	var before any
	for n, item := range items {
		value, err := i.call(i.lambda(1), enter(item))
		if err != nil {
			return nil, err
		}
		if n > 0 && !Equal(value, before) {
			made, piece = append(made, piece), []any{}
		}
		piece, before = append(piece, item), value
	}
	if len(piece) > 0 {
		made = append(made, piece)
	}
	return made, nil
}

// counted refuses a negative second argument; what is Python's name for it.
func counted(call body, what string) body {
	return func(i *Invocation) (any, error) {
		if count := arg[int64](i, 1); count < 0 {
			return nil, failure(BadValue, "a number of items is 0 or more, not %d", count).
				saying("%s for islice() must be None or an integer: 0 <= x <= sys.maxsize.", what)
		}
		return call(i)
	}
}

func queryFunctions() []*Function {
	collection := need("collection", iterable)
	where := filtered(func(i *Invocation, item any, _ int) (bool, bool, error) {
		ok, err := i.test(i.lambda(1), item)
		return ok, false, err
	})
	selects := mapped(func(i *Invocation, item any, _ int) (any, error) { return i.call(i.lambda(1), item) })
	limit := counted(stream(func(i *Invocation, source Seq, yield func(any, error) bool) {
		left := arg[int64](i, 1)
		if left <= 0 {
			return
		}
		for item, err := range source {
			if !yield(item, err) || err != nil {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}), "Stop argument")
	aggregate := whole(func(i *Invocation, items []any) (any, error) {
		return fold(i, items, i.Args[2], func(a, b any) (any, error) { return i.call(i.lambda(1), a, b) }, nothing)
	})
	functions := []*Function{
		method("where", "the items for which the predicate holds", where, collection, lazy("predicate")),
		method("filter", "the items for which the predicate holds", where, collection, lazy("predicate")),
		method("select", "what the selector makes of each item", selects, collection, lazy("selector")),
		method("map", "what the selector makes of each item", selects, collection, lazy("selector")),
		method("skip", "the items but for the first ones", counted(filtered(func(i *Invocation, _ any, n int) (bool, bool, error) {
			return int64(n) >= arg[int64](i, 1), false, nil
		}), "Indices"), collection, need("count", integer)),
		method("limit", "the first items", limit, collection, need("count", integer)),
		method("take", "the first items", limit, collection, need("count", integer)),
		both("append", "the items and more", resequenced(func(i *Invocation, items []any) (any, error) {
			return append(items, arg[[]any](i, 1)...), nil
		}), collection, rest(nil)),
		both("distinct", "the items without those whose key was there before", resequenced(func(i *Invocation, items []any) (any, error) {
			seen, made := NewSet(), []any{}
			for _, item := range items {
				key := item
				if l := i.lambda(1); l != nil {
					var err error
					if key, err = i.call(l, item); err != nil {
						return nil, err
					}
				}
				if seen.put(key) {
					made = append(made, item)
				}
			}
			return made, nil
		}), collection, mayLazy("keySelector")),
		both("enumerate", "pairs of number and item", mapped(func(i *Invocation, item any, n int) (any, error) {
			return []any{arg[int64](i, 1) + int64(n), item}, nil
		}), collection, may("start", integer, int64(0))),
		both("any", "whether there is an item for which the predicate holds", func(i *Invocation) (any, error) {
			for item, err := range arg[Seq](i, 0) {
				if err != nil {
					return nil, err
				}
				if i.lambda(1) == nil {
					return true, nil
				}
				if ok, err := i.test(i.lambda(1), enter(item)); ok || err != nil {
					return ok, err
				}
			}
			return false, nil
		}, collection, mayLazy("predicate")),
		both("all", "whether the predicate, or the item, holds for all items", func(i *Invocation) (any, error) {
			for item, err := range arg[Seq](i, 0) {
				if err != nil {
					return nil, err
				}
				ok := Truth(item)
				if l := i.lambda(1); l != nil {
					if ok, err = i.test(l, enter(item)); err != nil {
						return nil, err
					}
				}
				if !ok {
					return false, nil
				}
			}
			return true, nil
		}, collection, mayLazy("predicate")),
		both("concat", "one sequence after the other", func(i *Invocation) (any, error) {
			sources := arg[[]any](i, 0)
			return Seq(func(yield func(any, error) bool) {
				for _, source := range sources {
					for item, err := range source.(Seq) {
						if !yield(item, err) || err != nil {
							return
						}
					}
				}
			}), nil
		}, rest(iterable)),
		method("count", "the number of items", whole(func(_ *Invocation, items []any) (any, error) { return int64(len(items)), nil }), collection),
		method("memorize", "the items, evaluated once", whole(func(_ *Invocation, items []any) (any, error) { return items, nil }), collection),
		method("sum", "the items added up", whole(func(i *Invocation, items []any) (any, error) {
			return fold(i, items, i.Args[1], i.plus, nothing)
		}), collection, may("initial", nil, absent{})),
		method("max", "the greatest item", whole(func(i *Invocation, items []any) (any, error) {
			return fold(i, items, i.Args[1], best(1), nothing)
		}), collection, may("initial", nil, absent{})),
		method("min", "the smallest item", whole(func(i *Invocation, items []any) (any, error) {
			return fold(i, items, i.Args[1], best(-1), nothing)
		}), collection, may("initial", nil, absent{})),
		method("first", "the first item, or another value where there is none", func(i *Invocation) (any, error) {
			for item, err := range arg[Seq](i, 0) {
				return item, err
			}
			if _, without := i.Args[1].(absent); !without {
				return i.Args[1], nil
			}
			return nil, failure(NoItem, "first() of an empty sequence")
		}, collection, may("default", nil, absent{})),
		method("single", "the one item", whole(func(_ *Invocation, items []any) (any, error) {
			if len(items) != 1 {
				said := ""
				if len(items) > 1 {
					said = "Collection contains more than one item"
				}
				return nil, failure(NoItem, "single() of a sequence of %d items", len(items)).saying("%s", said)
			}
			return items[0], nil
		}), collection),
		method("last", "the last item, or another value where there is none", whole(func(i *Invocation, items []any) (any, error) {
			if len(items) > 0 {
				return items[len(items)-1], nil
			}
			if _, without := i.Args[1].(absent); !without {
				return i.Args[1], nil
			}
			return nil, failure(NoItem, "last() of an empty sequence")
		}), collection, may("default", nil, absent{})),
		method("selectMany", "the items of what the selector makes of each item", stream(func(i *Invocation, source Seq, yield func(any, error) bool) {
			for item, err := range source {
				var inner any
				if err == nil {
					inner, err = i.call(i.lambda(1), enter(item))
				}
				if err != nil {
					yield(nil, err)
					return
				}
				seq, ok := iterable(inner)
				if !ok {
					seq = sequence([]any{inner})
				}
				for item, err := range seq.(Seq) {
					if !yield(item, err) || err != nil {
						return
					}
				}
			}
		}), collection, lazy("selector")),
		function("range", "the integers from 0 up to another", func(i *Invocation) (any, error) { return rangeOf(0, arg[int64](i, 0), 1) }, need("stop", integer)),
		function("range", "the integers from one up to another", func(i *Invocation) (any, error) {
			return rangeOf(arg[int64](i, 0), arg[int64](i, 1), arg[int64](i, 2))
		}, need("start", integer), need("stop", integer), may("step", integer, int64(1))),
		function("sequence", "the integers from one on", func(i *Invocation) (any, error) {
			step := arg[int64](i, 1)
			if step < 0 {
				return rangeOf(arg[int64](i, 0), math.MinInt64, step)
			}
			return rangeOf(arg[int64](i, 0), math.MaxInt64, step)
		}, may("start", integer, int64(0)), may("step", integer, int64(1))),
		method("orderBy", "the items by what the selector makes of them", orderBy(false), collection, lazy("selector")),
		method("orderByDescending", "the items by what the selector makes of them, greatest first", orderBy(true), collection, lazy("selector")),
		method("thenBy", "ordered items, and equal ones by what the selector makes of them", thenBy(false), need("collection", isA[*ordering]), lazy("selector")),
		method("thenByDescending", "ordered items, and equal ones by what the selector makes of them, greatest first", thenBy(true), need("collection", isA[*ordering]), lazy("selector")),
		method("groupBy", "pairs of a key and the items that have it", resequenced(groupBy), collection, lazy("keySelector"), mayLazy("valueSelector"), mayLazy("aggregator")),
		method("zip", "lists of the first items, the second ones and so on, to the end of the shortest", func(i *Invocation) (any, error) {
			return zip(i, arg[[]any](i, 0), false, nil), nil
		}, rest(iterable)),
		method("zipLongest", "lists of the first items, the second ones and so on, to the end of the longest", func(i *Invocation) (any, error) {
			return zip(i, arg[[]any](i, 0), true, i.Args[1]), nil
		}, rest(iterable), may("default", nil, nil)),
		method("join", "what the selector makes of the pairs for which the predicate holds", resequenced(func(i *Invocation, items []any) (any, error) {
			others, err := i.items(1)
			if err != nil {
				return nil, err
			}
			made := []any{}
			for _, a := range items {
				for _, b := range others {
					ok, err := i.test(i.lambda(2), a, b)
					if err != nil {
						return nil, err
					}
					if !ok {
						continue
					}
					value, err := i.call(i.lambda(3), a, b)
					if err != nil {
						return nil, err
					}
					made = append(made, value)
				}
			}
			return made, nil
		}), need("collection1", iterable), need("collection2", iterable), lazy("predicate"), lazy("selector")),
		method("repeat", "the value that many times, or without end", func(i *Invocation) (any, error) {
			value, times := i.Args[0], arg[int64](i, 1)
			return Seq(func(yield func(any, error) bool) {
				for n := int64(0); (times < 0 || n < times) && yield(value, nil); n++ {
				}
			}), nil
		}, need("value", nil), may("times", integer, int64(-1))),
		method("cycle", "the items again and again", whole(func(_ *Invocation, items []any) (any, error) {
			return Seq(func(yield func(any, error) bool) {
				for len(items) > 0 {
					for _, item := range items {
						if !yield(item, nil) {
							return
						}
					}
				}
			}), nil
		}), collection),
		method("takeWhile", "the items before the first for which the predicate does not hold", filtered(func(i *Invocation, item any, _ int) (bool, bool, error) {
			ok, err := i.test(i.lambda(1), item)
			return ok, !ok, err
		}), collection, lazy("predicate")),
		method("skipWhile", "the items from the first on for which the predicate does not hold", stream(func(i *Invocation, source Seq, yield func(any, error) bool) {
			skipping := true
			for item, err := range source {
				if err == nil && skipping {
					skipping, err = i.test(i.lambda(1), enter(item))
				}
				if err != nil {
					yield(nil, err)
					return
				}
				if !skipping && !yield(item, nil) {
					return
				}
			}
		}), collection, lazy("predicate")),
	}
	for _, last := range []bool{false, true} {
		names := map[bool][2]string{false: {"indexOf", "indexWhere"}, true: {"lastIndexOf", "lastIndexWhere"}}[last]
		functions = append(functions,
			method(names[0], "the place of the item, -1 when it is nowhere", whole(func(i *Invocation, items []any) (any, error) {
				return find(i, items, last, func(item any) (bool, error) { return Equal(item, i.Args[1]), nil })
			}), collection, need("item", nil)),
			method(names[1], "the place of an item for which the predicate holds, -1 when there is none", whole(func(i *Invocation, items []any) (any, error) {
				return find(i, items, last, func(item any) (bool, error) { return i.test(i.lambda(1), item) })
			}), collection, lazy("predicate")))
	}
	functions = append(functions,
		method("slice", "lists of that many items", counted(resequenced(func(i *Invocation, items []any) (any, error) {
			length := arg[int64](i, 1)
			made := []any{}
			if length == 0 {
				return made, nil
			}
			for piece := range slices.Chunk(items, int(min(length, math.MaxInt32))) {
				made = append(made, slices.Clone(piece))
			}
			return made, nil
		}), "Stop argument"), collection, need("length", integer)),
		method("splitWhere", "the lists between items for which the predicate holds", resequenced(splitWhere), collection, lazy("predicate")),
		method("sliceWhere", "the lists of neighbours for which the predicate is alike", resequenced(sliceWhere), collection, lazy("predicate")),
		method("splitAt", "the items before a place and those from it on", whole(func(i *Invocation, items []any) (any, error) {
			at, _ := window(arg[int64](i, 1), 0, len(items))
			return []any{items[:at:at], items[at:]}, nil
		}), collection, need("index", integer)),
		method("aggregate", "the items joined two by two", aggregate, collection, lazy("selector"), may("seed", nil, absent{})),
		method("reduce", "the items joined two by two", aggregate, collection, lazy("selector"), may("seed", nil, absent{})),
		method("accumulate", "the steps of joining the items two by two", resequenced(func(i *Invocation, items []any) (any, error) {
			steps := []any{}
			_, err := fold(i, items, i.Args[2], func(a, b any) (any, error) { return i.call(i.lambda(1), a, b) }, func(v any) { steps = append(steps, v) })
			return steps, err
		}), collection, lazy("selector"), may("seed", nil, absent{})),
		method("reverse", "the items from the last to the first", resequenced(func(_ *Invocation, items []any) (any, error) {
			slices.Reverse(items)
			return items, nil
		}), collection),
		method("mergeWith", "one map and over it another, also within", func(i *Invocation) (any, error) {
			return merge(i, arg[*Dict](i, 0), arg[*Dict](i, 1), arg[int64](i, 4), i.lambda(2), i.lambda(3))
		}, need("d", dict), need("another", dict), mayLazy("listMerger"), mayLazy("itemMerger"), may("maxLevels", integer, int64(0))),
		function("isIterable", "whether it is a sequence", func(i *Invocation) (any, error) { _, ok := iterable(i.Args[0]); return ok, nil }, need("value", nil)),
		function("generate", "values, each made of the one before, as long as the predicate holds", func(i *Invocation) (any, error) {
			return generate(i, i.Args[0], func(v any) (bool, error) { return i.test(i.lambda(1), v) }, func(v any) (any, error) { return i.call(i.lambda(2), v) },
				i.lambda(3), arg[bool](i, 4)), nil
		}, need("initial", nil), lazy("predicate"), lazy("producer"), mayLazy("selector"), may("decycle", boolean, false)),
		function("generateMany", "values, and all that are made of them, and so on", generateMany,
			need("initial", nil), lazy("producer"), mayLazy("selector"), may("decycle", boolean, false), may("depthFirst", boolean, false)),
		method("defaultIfEmpty", "the items, or others where there are none", whole(func(i *Invocation, items []any) (any, error) {
			if len(items) > 0 {
				return items, nil
			}
			return i.items(1)
		}), collection, need("default", iterable)))
	return functions
}
