package yaql

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"
)

func overflow(operation string) error {
	return failure(Overflow, "the result of %s does not fit into 64 bits", operation)
}

// calculate makes an operation of one on integers and one on other numbers.
func calculate(whole func(a, b int64) (any, error), broken func(a, b float64) (any, error)) body {
	return func(i *Invocation) (any, error) {
		a, aok := i.Args[0].(int64)
		b, bok := i.Args[1].(int64)
		if aok && bok {
			return whole(a, b)
		}
		return broken(i.number(0), i.number(1))
	}
}

func add(a, b int64) (any, error) {
	if sum := a + b; (sum > a) == (b > 0) {
		return sum, nil
	}
	return nil, overflow("+")
}

func subtract(a, b int64) (any, error) {
	if difference := a - b; (difference < a) == (b > 0) {
		return difference, nil
	}
	return nil, overflow("-")
}

func multiply(a, b int64) (any, error) {
	high, low := bits.Mul64(uint64(max(a, -a)), uint64(max(b, -b)))
	if high != 0 || low > math.MaxInt64 || a == math.MinInt64 || b == math.MinInt64 {
		return nil, overflow("*")
	}
	return a * b, nil
}

// divide rounds down, as Python does.
func divide(a, b int64) (any, error) {
	switch {
	case b == 0:
		return nil, failure(DivideByZero, "division by zero").saying("integer division or modulo by zero")
	case b == -1:
		return subtract(0, a)
	}
	quotient := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		quotient--
	}
	return quotient, nil
}

// modulo has the sign of the divisor, as in Python.
func modulo(a, b int64) (any, error) {
	switch b {
	case 0:
		return nil, failure(DivideByZero, "division by zero").saying("integer modulo by zero")
	case -1:
		return int64(0), nil
	}
	remainder := a % b
	if remainder != 0 && (remainder < 0) != (b < 0) {
		remainder += b
	}
	return remainder, nil
}

func power(base, exponent int64) (any, error) {
	var result any = int64(1)
	for n := exponent; n > 0; n >>= 1 {
		var err error
		if n&1 == 1 {
			if result, err = multiply(result.(int64), base); err != nil {
				return nil, err
			}
		}
		if n > 1 {
			squared, err := multiply(base, base)
			if err != nil {
				return nil, err
			}
			base = squared.(int64)
		}
	}
	return result, nil
}

func powerModulo(base, exponent, modulus int64) (any, error) {
	if modulus == 0 || modulus == math.MinInt64 {
		return nil, failure(BadValue, "pow() with a third argument wants a modulus that is not zero").saying("pow() 3rd argument cannot be 0")
	}
	if exponent < 0 {
		inverse := new(big.Int).ModInverse(big.NewInt(base), big.NewInt(max(modulus, -modulus)))
		if inverse == nil || exponent == math.MinInt64 {
			return nil, failure(BadValue, "%d has no inverse modulo %d", base, modulus).saying("base is not invertible for the given modulus")
		}
		return powerModulo(inverse.Int64(), -exponent, modulus)
	}
	m := uint64(max(modulus, -modulus))
	start, _ := modulo(base, int64(m))
	b, result := uint64(start.(int64)), 1%m
	times := func(x, y uint64) uint64 {
		high, low := bits.Mul64(x, y)
		return bits.Rem64(high, low, m)
	}
	for n := exponent; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = times(result, b)
		}
		b = times(b, b)
	}
	return modulo(int64(result), modulus)
}

// roundInteger rounds to a power of ten, halves to the even one.
func roundInteger(n, digits int64) (any, error) {
	if digits > 19 {
		return int64(0), nil
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil)
	quotient, rest := new(big.Int).DivMod(big.NewInt(n), unit, new(big.Int))
	half := rest.Lsh(rest, 1).Cmp(unit)
	if half > 0 || half == 0 && quotient.Bit(0) == 1 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if quotient.Mul(quotient, unit); !quotient.IsInt64() {
		return nil, overflow("round")
	}
	return quotient.Int64(), nil
}

// toInt is int(): of a string, a number or null.
func toInt(value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return int64(0), nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.Abs(v) >= 1<<63 {
			return nil, overflow("int()")
		}
		return int64(v), nil
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		if err != nil {
			return nil, failure(BadValue, "%q is not an integer", v).saying("invalid literal for int() with base 10: %s", inPython(v))
		}
		return n, nil
	}
	return nil, failure(BadType, "%s cannot be made an integer", TypeName(value)).
		saying("int() argument must be a string, a bytes-like object or a real number, not '%s'", typeInPython(value))
}

func toFloat(value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return 0.0, nil
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err != nil {
			return nil, failure(BadValue, "%q is not a number", v).saying("could not convert string to float: %s", inPython(v))
		}
		return f, nil
	}
	if f, ok := float(value); ok {
		return f, nil
	}
	return nil, failure(BadType, "%s cannot be made a number", TypeName(value)).
		saying("float() argument must be a string or a real number, not '%s'", typeInPython(value))
}

// ordered makes a comparison of the outcomes of compare that satisfy it.
func ordered(name, doc string, satisfies func(int) bool) []*Function {
	call := func(i *Invocation) (any, error) {
		c, _ := compare(i.Args[0], i.Args[1])
		return satisfies(c), nil
	}
	return []*Function{
		operator(name, doc, call, number, number),
		operator(name, doc, call, text, text),
		operator(name, doc, call, datetime, datetime),
		operator(name, doc, call, timespan, timespan),
		operator(name, "null is smaller than everything", call, null, nil),
		operator(name, "null is smaller than everything", call, nil, null),
	}
}

func bitwise(name, doc string, operation func(a, b int64) int64) *Function {
	return function(name, doc, func(i *Invocation) (any, error) {
		return operation(arg[int64](i, 0), arg[int64](i, 1)), nil
	}, need("left", integer), need("right", integer))
}

func shift(name, doc string, left bool) *Function {
	return function(name, doc, func(i *Invocation) (any, error) {
		value, n := arg[int64](i, 0), arg[int64](i, 1)
		switch {
		case n < 0:
			return nil, failure(BadValue, "negative shift count")
		case !left:
			return value >> min(n, 63), nil
		case value == 0:
			return value, nil
		case n > 62:
			return nil, overflow(name)
		}
		return multiply(value, 1<<n)
	}, need("value", integer), need("bitsNumber", integer))
}

func extreme(name, doc string, wanted int) *Function {
	return function(name, doc, func(i *Invocation) (any, error) {
		c, ok := compare(i.Args[0], i.Args[1])
		if !ok {
			return nil, incomparable(i.Args[0], i.Args[1], ">")
		}
		if c == -wanted {
			return i.Args[1], nil
		}
		return i.Args[0], nil
	}, need("a", nil), need("b", nil))
}

// incomparable reports that two values cannot be compared by an operator.
func incomparable(a, b any, operator string) error {
	return failure(NoMatch, "%s and %s cannot be compared", TypeName(a), TypeName(b)).saying(`No function "#operator_%s" matches supplied arguments`, operator)
}

func mathFunctions() []*Function {
	functions := []*Function{
		operator("+", "the sum of two numbers", calculate(add, func(a, b float64) (any, error) { return a + b, nil }), number, number),
		operator("-", "the difference of two numbers", calculate(subtract, func(a, b float64) (any, error) { return a - b, nil }), number, number),
		operator("*", "the product of two numbers", calculate(multiply, func(a, b float64) (any, error) { return a * b, nil }), number, number),
		operator("/", "the quotient; of two integers it is rounded down", calculate(divide, func(a, b float64) (any, error) {
			if b == 0 {
				return nil, failure(DivideByZero, "division by zero").saying("float division by zero")
			}
			return a / b, nil
		}), number, number),
		operator("mod", "the remainder, with the divisor's sign", calculate(modulo, func(a, b float64) (any, error) {
			if b == 0 {
				return nil, failure(DivideByZero, "division by zero").saying("float modulo")
			}
			remainder := math.Mod(a, b)
			if remainder != 0 && (remainder < 0) != (b < 0) {
				remainder += b
			}
			return remainder, nil
		}), number, number),
		operator("+", "the number itself", func(i *Invocation) (any, error) { return i.Args[0], nil }, number),
		operator("-", "the number with the other sign", func(i *Invocation) (any, error) {
			if n, ok := i.Args[0].(int64); ok {
				return subtract(0, n)
			}
			return -i.number(0), nil
		}, number),
		function("abs", "the number without its sign", func(i *Invocation) (any, error) {
			if n, ok := i.Args[0].(int64); ok {
				if n < 0 {
					return subtract(0, n)
				}
				return n, nil
			}
			return math.Abs(i.number(0)), nil
		}, need("op", number)),
		function("int", "an integer of a string or a number; null is 0", func(i *Invocation) (any, error) { return toInt(i.Args[0]) }, need("value", nil)),
		function("float", "a number of a string or a number; null is 0", func(i *Invocation) (any, error) { return toFloat(i.Args[0]) }, need("value", nil)),
		function("random", "a random number between 0 and 1", func(*Invocation) (any, error) { return rand.Float64(), nil }),
		function("random", "a random integer between two, both included", func(i *Invocation) (any, error) {
			from, to := arg[int64](i, 0), arg[int64](i, 1)
			span := to - from + 1
			if span <= 0 {
				return nil, failure(BadValue, "random() wants the smaller number first").saying("empty range for randrange() (%d, %d, %d)", from, to+1, span)
			}
			return from + rand.Int64N(span), nil
		}, need("from", integer), need("to", integer)),
		bitwise("bitwiseAnd", "the bits that both have", func(a, b int64) int64 { return a & b }),
		bitwise("bitwiseOr", "the bits that one of them has", func(a, b int64) int64 { return a | b }),
		bitwise("bitwiseXor", "the bits in which they differ", func(a, b int64) int64 { return a ^ b }),
		function("bitwiseNot", "the other bits", func(i *Invocation) (any, error) { return ^arg[int64](i, 0), nil }, need("arg", integer)),
		shift("shiftBitsLeft", "the bits moved up", true),
		shift("shiftBitsRight", "the bits moved down", false),
		extreme("max", "the greater of two values", 1),
		extreme("min", "the smaller of two values", -1),
		function("pow", "a to the power of b, modulo c where that is given", func(i *Invocation) (any, error) {
			a, aok := i.Args[0].(int64)
			b, bok := i.Args[1].(int64)
			if c, ok := i.Args[2].(int64); ok && aok && bok {
				return powerModulo(a, b, c)
			}
			if i.Args[2] != nil {
				return nil, failure(BadType, "pow() with a third argument takes integers").saying("pow() 3rd argument not allowed unless all arguments are integers")
			}
			if aok && bok && b >= 0 {
				return power(a, b)
			}
			base, exponent := i.number(0), i.number(1)
			if base == 0 && exponent < 0 {
				return nil, failure(DivideByZero, "0 has no negative power").saying("0.0 cannot be raised to a negative power")
			}
			return math.Pow(base, exponent), nil
		}, need("a", number), need("b", number), may("c", orNull(number), nil)),
		function("sign", "1, 0 or -1", func(i *Invocation) (any, error) {
			c, _ := compare(i.Args[0], int64(0))
			return int64(c), nil
		}, need("num", number)),
		function("round", "the number rounded to that many digits after the point, halves to the even digit", func(i *Invocation) (any, error) {
			digits := max(min(arg[int64](i, 1), 400), -400)
			n, whole := i.Args[0].(int64)
			switch {
			case whole && digits >= 0:
				return n, nil
			case whole:
				return roundInteger(n, -digits)
			case digits >= 0: // FormatFloat rounds the exact value of the float
				return strconv.ParseFloat(strconv.FormatFloat(i.number(0), 'f', int(digits), 64), 64)
			case digits < -308:
				return math.Copysign(0, i.number(0)), nil
			}
			scale := math.Pow10(int(-digits))
			return math.RoundToEven(i.number(0)/scale) * scale, nil
		}, need("number", number), may("ndigits", integer, int64(0))),
		function("isInteger", "whether it is an integer", func(i *Invocation) (any, error) {
			_, ok := i.Args[0].(int64)
			return ok, nil
		}, need("value", nil)),
		function("isNumber", "whether it is a number", func(i *Invocation) (any, error) {
			_, ok := float(i.Args[0])
			return ok, nil
		}, need("value", nil)),
	}
	functions = append(functions, ordered("<", "less", func(c int) bool { return c < 0 })...)
	functions = append(functions, ordered("<=", "less or equal", func(c int) bool { return c <= 0 })...)
	functions = append(functions, ordered(">", "greater", func(c int) bool { return c > 0 })...)
	return append(functions, ordered(">=", "greater or equal", func(c int) bool { return c >= 0 })...)
}
