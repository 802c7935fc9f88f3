package body

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

func (r *run) compare(e comparison) (any, error) {
	left, err := r.value(e.first)
	if err != nil {
		return nil, err
	}
	for n, operator := range e.operators {
		right, err := r.value(e.others[n])
		if err != nil {
			return nil, err
		}
		holds, err := holds(e.line, operator, left, right)
		if err != nil || !holds {
			return false, err
		}
		left = right
	}
	return true, nil
}

func holds(line int, operator string, left, right any) (bool, error) {
	switch operator {
	case "==":
		return equal(left, right), nil
	case "!=", "<>":
		return !equal(left, right), nil
	case "is", "is not":
		_, isBool := left.(bool)
		_, otherBool := right.(bool)
		same := equal(left, right) && isBool == otherBool
		return same == (operator == "is"), nil
	case "in", "not in":
		found, err := contains(line, right, left)
		return found == (operator == "in"), err
	}
	order, ok := compare(left, right)
	if !ok {
		return false, &Error{line, "TypeError", fmt.Sprintf("'%s' not supported between instances of '%s' and '%s'", operator, typeName(left), typeName(right))}
	}
	switch operator {
	case "<":
		return order < 0, nil
	case ">":
		return order > 0, nil
	case "<=":
		return order <= 0, nil
	}
	return order >= 0, nil
}

func contains(line int, in, what any) (bool, error) {
	switch v := in.(type) {
	case string:
		if part, is := what.(string); is {
			return strings.Contains(v, part), nil
		}
		return false, &Error{line, "TypeError", "'in <string>' requires string as left operand, not " + typeName(what)}
	case *dict:
		_, found := v.get(what)
		return found, nil
	}
	items, err := iterate(line, in)
	return slices.ContainsFunc(items, func(one any) bool { return equal(one, what) }), err
}

// operate is an arithmetic operator. Integers are divided to integers, as in Python 2, which plans were written for.
func (r *run) operate(line int, operator string, left, right any) (any, error) {
	wrong := &Error{line, "TypeError", fmt.Sprintf("unsupported operand type(s) for %s: '%s' and '%s'", operator, typeName(left), typeName(right))}
	a, af, aFloat, aOK := numberOf(left)
	b, bf, bFloat, bOK := numberOf(right)
	if aOK && bOK {
		if aFloat || bFloat {
			return floats(line, operator, af, bf)
		}
		return integers(line, operator, a, b)
	}
	switch operator {
	case "+":
		switch l := left.(type) {
		case string:
			if s, is := right.(string); is {
				return bounded(line, l+s)
			}
			return nil, &Error{line, "TypeError", "cannot concatenate 'str' and '" + typeName(right) + "' objects"}
		case *list:
			if other, is := right.(*list); is {
				made := &list{slices.Clone(l.items)}
				return made, made.extend(line, other.items)
			}
		case tuple:
			if other, is := right.(tuple); is {
				return append(slices.Clone(l), other...), nil
			}
		}
	case "*":
		if aOK && !aFloat {
			left, right, b, bOK, bFloat = right, left, a, true, false
		}
		if !bOK || bFloat {
			return nil, wrong
		}
		b = max(b, 0)
		switch l := left.(type) {
		case string:
			if b > 0 && int64(len(l)) > maxText/b {
				return nil, &Error{line, "MemoryError", "the text is too long"}
			}
			return strings.Repeat(l, int(b)), nil
		case *list:
			if b > 0 && int64(len(l.items)) > maxItems/b {
				return nil, &Error{line, "MemoryError", "the list is too long"}
			}
			return &list{slices.Repeat(l.items, int(b))}, nil
		}
	case "%":
		if pattern, is := left.(string); is {
			return percent(line, pattern, right)
		}
	}
	return nil, wrong
}

func bounded(line int, s string) (any, error) {
	if len(s) > maxText {
		return nil, &Error{line, "MemoryError", "the text is too long"}
	}
	return s, nil
}

func integers(line int, operator string, a, b int64) (any, error) {
	overflow := &Error{line, "OverflowError", "the number does not fit 64 bits"}
	switch operator {
	case "+":
		if sum := a + b; (sum > a) == (b > 0) {
			return sum, nil
		}
		return nil, overflow
	case "-":
		if difference := a - b; (difference < a) == (b > 0) {
			return difference, nil
		}
		return nil, overflow
	case "*":
		if a == 0 || b == 0 {
			return int64(0), nil
		}
		if product := a * b; product/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64) {
			return product, nil
		}
		return nil, overflow
	case "**":
		if b < 0 {
			return math.Pow(float64(a), float64(b)), nil
		}
		power := any(int64(1))
		for range min(b, 64) {
			var err error
			if power, err = integers(line, "*", power.(int64), a); err != nil {
				return nil, err
			}
		}
		if b > 64 && a != 0 && a != 1 && a != -1 {
			return nil, overflow
		}
		if b > 64 && a == -1 && b%2 == 1 {
			return int64(-1), nil
		}
		return power, nil
	}
	if b == 0 {
		return nil, &Error{line, "ZeroDivisionError", "integer division or modulo by zero"}
	}
	quotient, rest := a/b, a%b
	if rest != 0 && (rest < 0) != (b < 0) {
		quotient, rest = quotient-1, rest+b
	}
	if operator == "%" {
		return rest, nil
	}
	return quotient, nil
}

func floats(line int, operator string, a, b float64) (any, error) {
	switch operator {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "**":
		return math.Pow(a, b), nil
	}
	if b == 0 {
		return nil, &Error{line, "ZeroDivisionError", "float division by zero"}
	}
	switch operator {
	case "/":
		return a / b, nil
	case "//":
		return math.Floor(a / b), nil
	}
	return a - b*math.Floor(a/b), nil
}
