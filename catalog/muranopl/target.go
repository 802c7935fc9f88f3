package muranopl

import (
	"context"

	"github.com/burano/burano/catalog/yaql"
)

// assign assigns a value to the place that a node of a target names. Lists and maps do not change: their holder gets a new one.
func (s *strand) assign(ctx context.Context, target *yaql.Expression, node yaql.Node, value any) error {
	switch n := node.(type) {
	case *yaql.Variable:
		if n.Name == "" || n.Name == "this" {
			return raised("ValueError", "Cannot assign to $%s", n.Name)
		}
		s.frame.set(n.Name, value)
		return nil
	case *yaql.Binary:
		name, ok := n.Right.(*yaql.Keyword)
		if n.Operator != "." || !ok {
			break
		}
		holder, err := s.held(ctx, target, n.Left)
		if err != nil {
			return err
		}
		switch h := holder.(type) {
		case *Object:
			return h.assign(ctx, s.frame.method.Class, name.Name, value)
		case view:
			return h.object.assign(ctx, s.frame.method.Class, name.Name, value)
		case TypeReference:
			return h.Class.assignStatic(ctx, name.Name, value)
		}
		if dict, ok := asDict(holder); ok {
			return s.assignWhole(ctx, target, n.Left, dict.With(yaql.Entry{Key: name.Name, Value: value}))
		}
		return raised("ValueError", "attribution may only be applied to objects and dictionaries")
	case *yaql.Index:
		if len(n.Args) != 1 || n.Args[0] == nil {
			break
		}
		holder, err := s.held(ctx, target, n.Target)
		if err != nil {
			return err
		}
		key, err := target.EvaluatePart(ctx, n.Args[0], s.frame.variables())
		if err != nil {
			return err
		}
		if dict, ok := asDict(holder); ok {
			return s.assignWhole(ctx, target, n.Target, dict.With(yaql.Entry{Key: key, Value: value}))
		}
		list, ok := holder.([]any)
		if !ok {
			return invalidTarget(target, holder)
		}
		at, ok := key.(int64)
		if !ok {
			return raised("ValueError", "the index of a list is a whole number, not %s", yaql.TypeName(key))
		}
		if at < 0 {
			at += int64(len(list))
		}
		if at < 0 || at >= int64(len(list)) {
			return raised("IndexError", "a list of %d has no item %v to assign", len(list), key)
		}
		changed := append([]any(nil), list...)
		changed[at] = value
		return s.assignWhole(ctx, target, n.Target, changed)
	}
	return raised(dslExceptions+"InvalidLhsTargetError", "Invalid assignment target %q", target.String())
}

// assignWhole is assign of a list or map of which one place was changed, within the same bound as one that an expression makes.
func (s *strand) assignWhole(ctx context.Context, target *yaql.Expression, node yaql.Node, value any) error {
	if err := bounded(value); err != nil {
		return err
	}
	return s.assign(ctx, target, node, value)
}

// held returns the present value of an assignment's place: an empty map if it has none.
func (s *strand) held(ctx context.Context, target *yaql.Expression, node yaql.Node) (any, error) {
	left, key := yaql.Node(nil), any(nil)
	switch n := node.(type) {
	case *yaql.Binary:
		if name, ok := n.Right.(*yaql.Keyword); ok && n.Operator == "." {
			left, key = n.Left, name.Name
		}
	case *yaql.Index:
		if len(n.Args) == 1 && n.Args[0] != nil {
			value, err := target.EvaluatePart(ctx, n.Args[0], s.frame.variables())
			if err != nil {
				return nil, err
			}
			left, key = n.Target, value
		}
	}
	if left != nil {
		holder, err := s.held(ctx, target, left)
		if err != nil {
			return nil, err
		}
		if dict, ok := asDict(holder); ok {
			value, has := dict.Get(key)
			if !has {
				return yaql.NewDict(), nil
			}
			return value, nil
		}
	}
	value, err := target.EvaluatePart(ctx, node, s.frame.variables())
	if uninitialised(err) != nil {
		return yaql.NewDict(), nil
	}
	return value, err
}

func invalidTarget(target *yaql.Expression, holder any) error {
	return raised(dslExceptions+"InvalidLhsTargetError", "Invalid assignment target %q: %s holds nothing that could be assigned", target.String(), yaql.TypeName(holder))
}

func asDict(value any) (*yaql.Dict, bool) {
	switch v := value.(type) {
	case *yaql.Dict:
		return v, true
	case map[string]any:
		entries := make([]yaql.Entry, 0, len(v))
		for _, key := range sortedKeys(v) {
			entries = append(entries, yaql.Entry{Key: key, Value: v[key]})
		}
		return yaql.NewDict(entries...), true
	}
	return nil, false
}
