package yaql

import (
	"cmp"
)

func (r *run) unary(n *Unary, scope *Scope) (any, error) {
	if n.Operator == ":" {
		return r.typeReference("", n.Operand.(*Keyword).Name, scope)
	}
	operand, err := r.evaluate(n.Operand, scope)
	if err != nil {
		return nil, err
	}
	if n.Operator == "not" {
		return !Truth(operand), nil
	}
	return r.overloaded(n.Operator, scope, operand)
}

func (r *run) typeReference(prefix, name string, scope *Scope) (any, error) {
	if scope.setting.dialect.Type == nil {
		return nil, failure(NoFunction, "class references like %s:%s are not possible here", prefix, name)
	}
	return scope.setting.dialect.Type(r.ctx, prefix, name)
}

func (r *run) binary(n *Binary, scope *Scope) (any, error) {
	switch n.Operator {
	case ":":
		return r.typeReference(n.Left.(*Keyword).Name, n.Right.(*Keyword).Name, scope)
	case ".", "?.":
		return r.dot(n, scope)
	}
	left, err := r.evaluate(n.Left, scope)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "and":
		if !Truth(left) {
			return left, nil
		}
		return r.evaluate(n.Right, scope)
	case "or":
		if Truth(left) {
			return left, nil
		}
		return r.evaluate(n.Right, scope)
	case "->":
		inner, ok := left.(*Scope)
		if !ok {
			return nil, failure(NoMatch, `on the left of "->" stands a scope, as let() and with() make it, not %s`, TypeName(left)).
				saying(`No function "#operator_->" matches supplied arguments`)
		}
		return r.evaluate(n.Right, inner)
	}
	right, err := r.evaluate(n.Right, scope)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "=":
		return Equal(left, right), nil
	case "!=":
		return !Equal(left, right), nil
	case "is":
		if scope.setting.dialect.Is == nil {
			return nil, failure(NoFunction, `the operator "is" is not possible here`)
		}
		return scope.setting.dialect.Is(r.ctx, left, right)
	}
	return r.overloaded(n.Operator, scope, left, right)
}

// overloaded evaluates an operator that is in the table of functions.
func (r *run) overloaded(operator string, scope *Scope, operands ...any) (any, error) {
	if scope.setting.functions.plain {
		if value, ok := r.quick(operator, operands); ok {
			return value, nil
		}
	}
	var buffer [2]argument
	given := arguments{positional: buffer[:0]}
	for _, operand := range operands {
		given.addValue(enter(operand))
	}
	return r.chooseAmong(operator, AsOperator, scope.setting.functions.named(operator, AsOperator), &given, nil, nil, scope)
}

// quick evaluates common operators without the table of functions.
func (r *run) quick(operator string, operands []any) (any, bool) {
	if len(operands) != 2 {
		return nil, false
	}
	switch a := operands[0].(type) {
	case int64:
		b, ok := operands[1].(int64)
		if !ok {
			return nil, false
		}
		switch operator {
		case "+":
			value, err := add(a, b)
			return value, err == nil
		case "-":
			value, err := subtract(a, b)
			return value, err == nil
		case "*":
			value, err := multiply(a, b)
			return value, err == nil
		case "mod":
			if b > 0 {
				value, err := modulo(a, b)
				return value, err == nil
			}
		}
		return compared(operator, a, b)
	case string:
		b, ok := operands[1].(string)
		if !ok {
			return nil, false
		}
		if operator == "=~" || operator == "!~" {
			made, err := r.compile(b, "")
			if err != nil {
				return nil, false
			}
			found, err := made.matches(r, a)
			return found == (operator == "=~"), err == nil
		}
		return compared(operator, a, b)
	}
	return nil, false
}

func compared[T cmp.Ordered](operator string, a, b T) (holds any, ok bool) {
	switch operator {
	case "<":
		return a < b, true
	case ">":
		return a > b, true
	case "<=":
		return a <= b, true
	case ">=":
		return a >= b, true
	}
	return nil, false
}
