package yaql

import (
	"errors"
	"slices"
)

// ordering is a sequence that is sorted by one selector after the other; thenBy adds to it.
type ordering struct {
	items []any
	by    []orderedBy
	call  *Invocation
}

func (o *ordering) sequence() Seq {
	return func(yield func(any, error) bool) {
		items, err := o.sorted(o.call)
		if err != nil {
			yield(nil, err)
			return
		}
		sequence(items)(yield)
	}
}

type orderedBy struct {
	selector   *Lambda
	descending bool
}

func (o *ordering) sorted(i *Invocation) ([]any, error) {
	keys := make([][]any, len(o.items))
	order := make([]int, len(o.items))
	for n, item := range o.items {
		order[n] = n
		for _, by := range o.by {
			key, err := i.call(by.selector, item)
			if err != nil {
				return nil, err
			}
			keys[n] = append(keys[n], key)
		}
	}
	var wrong error
	slices.SortStableFunc(order, func(a, b int) int {
		for n, by := range o.by {
			c, ok := compare(keys[a][n], keys[b][n])
			if !ok && wrong == nil {
				wrong = incomparable(keys[a][n], keys[b][n], "<")
			}
			if by.descending {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	made := make([]any, len(order))
	for n, from := range order {
		made[n] = o.items[from]
	}
	return made, wrong
}

func orderBy(descending bool) body {
	return whole(func(i *Invocation, items []any) (any, error) {
		return &ordering{items, []orderedBy{{i.lambda(1), descending}}, i}, nil
	})
}

func thenBy(descending bool) body {
	return func(i *Invocation) (any, error) {
		o := i.Args[0].(*ordering)
		return &ordering{o.items, append(slices.Clone(o.by), orderedBy{i.lambda(1), descending}), i}, nil
	}
}

// groupBy gathers items by key. The aggregator sees a group's values; old ones, which expect the pair of key and values, are recognised because they fail
// on the values alone.
func groupBy(i *Invocation, items []any) (any, error) {
	places := make(map[any]int)
	var groups []Entry // of key and []any
	var members [][]any
	for _, item := range items {
		key, err := i.call(i.lambda(1), item)
		if err != nil {
			return nil, err
		}
		value := item
		if selector := i.lambda(2); selector != nil {
			if value, err = i.call(selector, item); err != nil {
				return nil, err
			}
		}
		id := keyOf(key)
		place, known := places[id]
		if !known {
			place = len(groups)
			places[id] = place
			groups, members = append(groups, Entry{Key: key}), append(members, nil)
		}
		members[place] = append(members[place], value)
	}
	for n := range groups {
		groups[n].Value = members[n]
	}
	made := make([]any, 0, len(groups))
	for _, e := range groups {
		pair := []any{e.Key, e.Value}
		if aggregator := i.lambda(3); aggregator != nil {
			value, err := i.call(aggregator, e.Value)
			var known *Error
			if errors.As(err, &known) {
				old, oldErr := i.call(aggregator, pair)
				if oldErr == nil {
					made = append(made, old)
					continue
				}
			}
			if err != nil {
				return nil, err
			}
			pair = []any{e.Key, value}
		}
		made = append(made, pair)
	}
	return made, nil
}
