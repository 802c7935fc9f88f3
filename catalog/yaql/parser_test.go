package yaql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outline writes a parsed expression with all its parentheses.
func outline(node Node) string {
	args := func(nodes []Node) string {
		parts := make([]string, len(nodes))
		for i, n := range nodes {
			if n != nil {
				parts[i] = outline(n)
			}
		}
		return strings.Join(parts, ", ")
	}
	switch n := node.(type) {
	case *Literal:
		return fmt.Sprintf("%#v", n.Value)
	case *Keyword:
		return n.Name
	case *Variable:
		return "$" + n.Name
	case *Call:
		return n.Name + "(" + args(n.Args) + ")"
	case *Apply:
		return outline(n.Callee) + "<" + args(n.Args) + ">"
	case *Mapping:
		return outline(n.Key) + " => " + outline(n.Value)
	case *Binary:
		return "(" + outline(n.Left) + " " + n.Operator + " " + outline(n.Right) + ")"
	case *Unary:
		return "(" + n.Operator + " " + outline(n.Operand) + ")"
	case *Index:
		return outline(n.Target) + "[" + args(n.Args) + "]"
	case *List:
		return "[" + args(n.Items) + "]"
	case *Map:
		return "{" + args(n.Items) + "}"
	}
	return "?"
}

func TestOperatorsBindAsTheyShould(t *testing.T) {
	for source, wanted := range map[string]string{
		"1 + 2 * 3 mod 4":                 "(1 + ((2 * 3) mod 4))",
		"1 - 2 - 3":                       "((1 - 2) - 3)",
		"-$.a.b[0].c":                     "(- ((($ . a) . b)[0] . c))",
		"not $.a = 1 and $.b or c":        "(((not (($ . a) = 1)) and ($ . b)) or c)",
		"a in $.b and not c in d":         "((a in ($ . b)) and (not (c in d)))",
		"$a -> $b -> $c + 1":              "($a -> ($b -> ($c + 1)))",
		"$.x =~ 'a' = true":               `((($ . x) =~ "a") = true)`,
		"$x is std:Foo and $y is :Bar":    "(($x is (std : Foo)) and ($y is (: Bar)))",
		":Class.property":                 "((: Class) . property)",
		"std:Class.new(1, a => 2)":        "((std : Class) . new(1, a => 2))",
		"$?.a?.b(c)":                      "(($ ?. a) ?. b(c))",
		"f(,1,,a => 2)":                   "f(, 1, , a => 2)",
		"{a => 1, 'b c' => [1, 2]}[a]":    `{a => 1, "b c" => [1, 2]}[a]`,
		"lambda($ + 1)(2)(3)":             "lambda(($ + 1))<2><3>",
		"$x[1, default => 2]":             "$x[1, default => 2]",
		"1 * -2":                          "(1 * (- 2))",
		"a = not b":                       "(a = (not b))",
		"`a\\`b`+\"c\\n\\u0041\"":         `("a` + "`" + `b" + "c\nA")`,
		"Привет":                          "Привет",
		"$.get(is).where($ > 1.5).len( )": "((($ . get(is)) . where(($ > 1.5))) . len())",
	} {
		expression, err := Parse(source)
		require.NoError(t, err, source)
		require.Equal(t, wanted, outline(expression.Root()), source)
		require.Equal(t, source, expression.String())
	}
}

func TestLongExpressionsAreParsedToTheirEnd(t *testing.T) {
	for _, terms := range []int{31, 32, 33, 100, 400} { // 32 terms are 63 tokens, 64 with the end
		source := strings.Repeat("1 + ", terms-1) + "1"
		value, err := evaluate(t, source, nil)
		require.NoError(t, err)
		require.Equal(t, int64(terms), value)
		_, err = Parse(source + " + ?")
		require.EqualError(t, err, fmt.Sprintf("column %d: unexpected character '?'", len(source)+4))
	}
}

func TestWrongExpressionsAreRefusedWithTheirPlace(t *testing.T) {
	for source, wanted := range map[string]string{
		"":                         "column 1: expected a value, found the end",
		"1 2":                      `column 3: expected an operator or the end, found "2"`,
		"(2":                       `column 3: expected ")", found the end`,
		"1 ? 2":                    "column 3: unexpected character '?'",
		"$.__d":                    `column 3: names that begin with two underscores are not allowed: "__d"`,
		"2abc":                     `column 1: a number cannot go on with letters: "2abc"`,
		"'abc":                     "column 1: the string that begins here has no end",
		"$.a\n  + * 3":             `line 2, column 5: expected a value, found "*"`,
		"{a, b}":                   `column 2: between "{" and "}" stand pairs: key => value`,
		"f(1,,)":                   `column 6: expected a value, found ")"`,
		"f(a => 1, 2)":             `column 11: expected an argument with a name, as those before it have, found "2"`,
		"[1, , 2]":                 `column 5: expected a value, found ","`,
		"10:30":                    `column 3: ":" stands between a prefix and a class name`,
		"a and":                    "column 6: expected a value, found the end",
		"a => b":                   `column 3: expected an operator or the end, found "=>"`,
		"f (x)":                    `column 3: expected an operator or the end, found "("`,
		"some text - (x)y":         `column 6: expected an operator or the end, found "text"`,
		"99999999999999999999999":  "column 1: the number 99999999999999999999999 is too large",
		strings.Repeat("(", 10000): "column 501: the expression is nested too deeply",
	} {
		_, err := Parse(source)
		require.EqualError(t, err, wanted, source)
	}
}

func evaluate(t testing.TB, source string, data any) (any, error) {
	t.Helper()
	expression, err := Parse(source)
	require.NoError(t, err)
	return expression.Evaluate(t.Context(), NewScope(Standard(), data, Limits{}))
}

func TestExpressionsOverPlainGoValues(t *testing.T) {
	data := map[string]any{"name": "kube", "count": 3, "nodes": []any{map[string]any{"ip": "a"}, map[string]any{"ip": "b"}}}
	for source, wanted := range map[string]any{
		"$.nodes.ip":                                           []any{"a", "b"},
		"$.nodes.ip[0]":                                        "a",
		"$.nodes.where($.ip != a).len()":                       int64(1),
		"$.name.substring(1, 2)":                               "ub",
		"'{0}-{n} {{}} {}'.format(1, n=>null)":                 "1-None {} 1",
		"format('{}:{}', true, [1, 'a'])":                      "True:(1, 'a')",
		"$.count in [1, 2, 3]":                                 true,
		"count in $.keys()":                                    true,
		"set([1, 2].select($ + 1)).len()":                      int64(2),
		"$.name =~ '^ku' and $.name !~ x":                      true,
		"['b', 'a'].orderBy($).join(', ')":                     "a, b",
		"[1, [2, [3]]].flatten().sum()":                        int64(6),
		"$.get(nothing, 5) + 1":                                int64(6),
		"{a => 1}.set(b => 2).keys()":                          []any{"a", "b"},
		"max(1.5, 2)":                                          int64(2),
		"round(2.5)":                                           2.0,
		"range(3).zip(sequence(5)).toList()":                   []any{[]any{int64(0), int64(5)}, []any{int64(1), int64(6)}, []any{int64(2), int64(7)}},
		"datetime(2024, 2, 29).format('%d.%m.%Y, Monday: %%')": "29.02.2024, Monday: %",
		"(datetime(2024, 1, 1) + timespan(hours => 36)).day":   int64(2),
		"'a, b ,c'.split(',').select($.trim())":                []any{"a", "b", "c"},
		"'one two  three'.split(null, 1)":                      []any{"one", "two  three"},
		"str(1.0) + str(null)":                                 "1.0null",
	} {
		got, err := evaluate(t, source, data)
		require.NoError(t, err, source)
		require.Equal(t, wanted, got, source)
	}
}

func TestFormatIsClosed(t *testing.T) {
	for _, format := range []string{"{0.__class__}", "{a.b}", "{0[0]}", "{0!r}", "{0:>10}", "{", "}", "{0", "{-1}", "{ }"} {
		expression, err := Parse("$.format(secret, a => 1)")
		require.NoError(t, err)
		_, err = expression.Evaluate(t.Context(), NewScope(Standard(), format, Limits{}))
		require.Error(t, err, format)
	}
}

func TestAnExpressionCannotTakeMoreThanItsLimits(t *testing.T) {
	for _, source := range []string{
		"sequence().toList()", "1.repeat().len()", "range(1000000).sum()", "[1].cycle().last()", "'x' * 2000000000", "[1, 2] * 2000000000",
		"'aaaaaaaaaa'.replace(a, 'bbbbbbbbbb' * 1000000)", "def(f, f($)) -> f(1)", "generate(0, true, $ + 1).len()",
		"generateMany(0, [$ + 1, $ + 2]).len()", "range(9999).select(range(9999).select(range(9999).sum()))", "pow(10, 100)", "9223372036854775807 + 1",
		"shiftBitsLeft(1, 64)", "let(x => 'x' * 1000000) -> range(1000).select($x + $x)", "regex('a*').split('b' * 10000000)",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		expression, err := Parse(source)
		require.NoError(t, err)
		_, err = expression.Evaluate(ctx, NewScope(Standard(), nil, Limits{}))
		cancel()
		var known *Error
		require.True(t, errors.As(err, &known), "%s: %v", source, err)
	}
}

func TestEvaluationEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	expression, err := Parse("range(9999).select(range(9999).select($ + 1).sum()).sum()")
	require.NoError(t, err)
	_, err = expression.Evaluate(ctx, NewScope(Standard(), nil, Limits{Steps: 1 << 40}))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAnErrorSaysWhereItIs(t *testing.T) {
	_, err := evaluate(t, "1 + $.select($.nothing(2)).sum()", []any{1})
	require.EqualError(t, err, `there is no method nothing (at column 15 of "1 + $.select($.nothing(2)).sum()")`)
}

// The messages of Debian's yaql 2.0.0, with lists as tuples and maps as FrozenDict.
func TestErrorsAreKnownByPythonsNamesAndMessages(t *testing.T) {
	for source, wanted := range map[string][2]string{
		"[1,2].single()":            {"StopIteration", "Collection contains more than one item"},
		"range(1,5,0)":              {"ValueError", "range() arg 3 must not be zero"},
		"[].aggregate($1+$2)":       {"TypeError", "reduce() of empty iterable with no initial value"},
		"[].max()":                  {"TypeError", "reduce() of empty iterable with no initial value"},
		"'a'.split('')":             {"ValueError", "empty separator"},
		"'{0} {1}'.format(1)":       {"IndexError", "Replacement index 1 out of range for positional args tuple"},
		"'{a}'.format(1)":           {"KeyError", "'a'"},
		"'{'.format(1)":             {"ValueError", "Single '{' encountered in format string"},
		"'}'.format(1)":             {"ValueError", "Single '}' encountered in format string"},
		"int([])":                   {"TypeError", "int() argument must be a string, a bytes-like object or a real number, not 'tuple'"},
		"float([])":                 {"TypeError", "float() argument must be a string or a real number, not 'tuple'"},
		"1/0":                       {"ZeroDivisionError", "integer division or modulo by zero"},
		"1.0/0":                     {"ZeroDivisionError", "float division by zero"},
		"1 mod 0":                   {"ZeroDivisionError", "integer modulo by zero"},
		"1.5 mod 0":                 {"ZeroDivisionError", "float modulo"},
		"shiftBitsLeft(1,-1)":       {"ValueError", "negative shift count"},
		"random(3,1)":               {"ValueError", "empty range for randrange() (3, 2, -1)"},
		"a in {a => 1}":             {"NoMatchingFunctionException", "No function \"#operator_in\" matches supplied arguments"},
		"max(1,a)":                  {"NoMatchingFunctionException", "No function \"#operator_>\" matches supplied arguments"},
		"min(1,a)":                  {"NoMatchingFunctionException", "No function \"#operator_>\" matches supplied arguments"},
		"[1,a].orderBy($)":          {"NoMatchingFunctionException", "No function \"#operator_<\" matches supplied arguments"},
		"[1,2].unpack(a,b,c) -> $a": {"ValueError", "Cannot unpack 2 elements into 3"},
		"1 -> 2":                    {"NoMatchingFunctionException", "No function \"#operator_->\" matches supplied arguments"},
		"$.a.b":                     {"NoFunctionRegisteredException", "Unknown function \"#property#a\""},
		"[1].select($.a)":           {"NoFunctionRegisteredException", "Unknown function \"#property#a\""},
		"[1][a]":                    {"NoMatchingFunctionException", "No function \"#indexer\" matches supplied arguments"},
		"[1][5]":                    {"IndexError", "tuple index out of range"},
		"{a=>1}.b":                  {"KeyError", "'b'"},
		"switch(1)":                 {"NoMatchingFunctionException", "No function \"switch\" matches supplied arguments"},
		"-'a'":                      {"NoMatchingFunctionException", "No function \"#unary_operator_-\" matches supplied arguments"},
		"'a' - 1":                   {"NoMatchingFunctionException", "No function \"#operator_-\" matches supplied arguments"},
		"[1].foo()":                 {"NoMethodRegisteredException", "Unknown method \"foo\" for receiver (1,)"},
		"foo()":                     {"NoFunctionRegisteredException", "Unknown function \"foo\""},
		"[1, [2]].len(3)":           {"NoMatchingMethodException", "No method \"len\" for receiver (1, (2,)) matches supplied arguments"},
		"'a'*100000":                {"MemoryQuotaExceededException", "Expression consumed too much memory"},
		"int('1.5')":                {"ValueError", "invalid literal for int() with base 10: '1.5'"},
		"float('x')":                {"ValueError", "could not convert string to float: 'x'"},
		"[1].skip(-1)":              {"ValueError", "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize."},
		"[1].limit(-1)":             {"ValueError", "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."},
		"[1].delete(0)[0]":          {"NoMatchingFunctionException", "No function \"#indexer\" matches supplied arguments"},
		"[1].reverse() * 2":         {"NoMatchingFunctionException", "No function \"#operator_*\" matches supplied arguments"},
		"null.date":                 {"NoMatchingFunctionException", "No function \"#property#date\" matches supplied arguments"},
		"{a=>1}.mergeWith({a=>[]})": {"TypeError", "Cannot merge <class 'int'> with <class 'tuple'>"},
		"[{a=>{}}, {a=>1}].select($.mergeWith({a=>{b=>2}}))": {"TypeError", "Cannot merge <class 'int'> with <class 'yaql.language.utils.FrozenDict'>"},
		"pow(0, -1)":                              {"ZeroDivisionError", "0.0 cannot be raised to a negative power"},
		"pow(2, 3, 0)":                            {"ValueError", "pow() 3rd argument cannot be 0"},
		"pow(2, -1, 4)":                           {"ValueError", "base is not invertible for the given modulus"},
		"pow(2.0, 3, 5)":                          {"TypeError", "pow() 3rd argument not allowed unless all arguments are integers"},
		"hex(1.5)":                                {"TypeError", "'float' object cannot be interpreted as an integer"},
		"regex('a').replace(b, `\\1`)":            {"error", "invalid group reference 1 at position 1"},
		"regex('(a)').replace(b, `\\g<z>`)":       {"IndexError", "unknown group name 'z'"},
		"regex('a').replace(b, `x\\x`)":           {"error", "bad escape \\x at position 1"},
		"regex('a').replaceBy(a, 1)":              {"TypeError", "expected str instance, int found"},
		"timespan(100000) + timespan(100000)":     {"OverflowError", "the time span is too long: at most it has 292 years"},
		"-timespan(100000) - timespan(100000)":    {"OverflowError", "the time span is too long: at most it has 292 years"},
		"datetime(2000, 1, 1) - datetime(1, 1,1)": {"OverflowError", "the time span is too long: at most it has 292 years"},
		"int({})": {"TypeError", "int() argument must be a string, a bytes-like object or a real number, not 'FrozenDict'"},
	} {
		expression, err := Parse(source)
		require.NoError(t, err, source)
		_, err = expression.Evaluate(t.Context(), NewScope(Standard(), nil, Limits{Memory: 20_000}))
		var failed *Error
		require.ErrorAs(t, err, &failed, source)
		require.Equal(t, wanted, [2]string{failed.Name, cmp.Or(failed.Said, failed.Message)}, source)
	}
}

func TestListsAreTextsAsPythonsTuplesAre(t *testing.T) {
	for source, wanted := range map[string]string{
		"str([])": "()", "str([1])": "(1,)", "str([1, 'a', null, [true]])": "(1, 'a', None, (True,))", "str({a => [1]})": "{'a': (1,)}",
		"str(set(1, 2))": "frozenset({1, 2})", "str(set())": "frozenset()", "'{0}'.format([1.5])": "(1.5,)",
	} {
		got, err := evaluate(t, source, nil)
		require.NoError(t, err, source)
		require.Equal(t, wanted, got, source)
	}
}

// The results of python3-yaql 2.0 for the same.
func TestEdgesAreWherePythonHasThem(t *testing.T) {
	for source, wanted := range map[string]any{
		"[1, 2, 3].delete(-2)": "1, 2, 3", "[1, 2, 3].delete(-1, 3)": "3", "[1, 2, 3].delete(1, -1)": "1", "[1, 2, 3].delete(true)": "1, 3",
		"[].replace(0, 5)": "", "[1, 2].replace(-1, 5)": "1, 2", "[1, 2].replace(0, 5, 100)": "5", "[1, 2, 3].replaceMany(-1, [7, 8], 2)": "7, 8, 2, 3",
		"[1, 2].insertMany(-1, [5])": "5, 1, 2", "[1, 2].insertMany(9, [5])": "1, 2, 5", "[1, 2].insert(-1, 5)": "1, 5, 2",
		"[1, 2, 3].slice(0)": "", "[1, 2].skip(true)": "2", "list(0, [1, 2].reverse())": "0, 2, 1",
		"[0, 1, 0, 1].splitWhere($ = 1).select($.len())": "1, 1", "[3, 3, 4].sliceWhere($).select($.len())": "2, 1",
		"range(true)": "0", "bitwiseAnd(true, 3)": int64(1), "round(25, -1)": int64(20), "round(-15, -1)": int64(-20), "round(2.675, 2)": 2.67, "pow(3, -1, 7)": int64(5),
		"abc.indexOf('', 3)": int64(3), "abc.indexOf('', 4)": int64(-1), "abc.indexOf(a, -100)": int64(0), "abc.indexOf(b, 0, 1)": int64(-1), "abc.indexOf(c, -1, -1)": int64(2),
		"abc.lastIndexOf('')": int64(3), "abc.lastIndexOf('', 10)": int64(-1), "abc.lastIndexOf(a, -2, 1)": int64(-1),
		"abc.substring(-7)": "ab", "abc.substring(-7, 5)": "a", "abcdef.substring(-8, 4)": "", "abc.substring(-2, 1)": "b",
		"' x y '.split(null, 1)": "x, y ", "' x y '.rightSplit(null, 1)": " x, y", "escapeRegex('a b-c&.!')": `a\ b\-c\&\.!`,
		"regex('(?P<n>a)').replace(ab, `\\g<n>\\g<1>\\-\\n`)": "aa\\-\nb", "regex('(a)|(b)').replace(ab, `[\\2]`)": "[][b]", "regex(a).replace(a, `\\101`)": "A",
		"str(timespan(hours => 26, milliseconds => 5))": "1 day, 2:00:00.005000", "str(timespan(hours => -2))": "-1 day, 22:00:00", "str(timespan(0))": "0:00:00",
		"str(datetime(2015, 8, 29, 1, 2, 3, 40))":                         "2015-08-29 01:02:03.000040+00:00",
		"str(datetime(2015, 8, 29, offset => timespan(hours => 3)).utc)":  "2015-08-28 21:00:00+03:00",
		"datetime(2015, 8, 29, offset => timespan(hours => 3)).timestamp": 1440784800.0,
	} {
		got, err := evaluate(t, source, nil)
		require.NoError(t, err, source)
		if items, ok := got.([]any); ok {
			texts := make([]string, len(items))
			for i, item := range items {
				texts[i] = Text(item)
			}
			got = strings.Join(texts, ", ")
		}
		require.Equal(t, wanted, got, source)
	}
}

func TestFunctionsOfAHostAreGivenListsInPlaceOfSequences(t *testing.T) {
	first := function("first2", "", func(i *Invocation) (any, error) { return arg[[]any](i, 0)[0], nil }, need("items", list))
	for _, source := range []string{"first2([1, 2, 3].where($ > 1))", "first2([2, 1].reverse().delete(0))", "first2([3, 2].orderBy($))", "first2(range(2, 4))"} {
		expression, err := Parse(source)
		require.NoError(t, err, source)
		got, err := expression.Evaluate(t.Context(), NewScope(Standard().Extend(first), nil, Limits{}))
		require.NoError(t, err, source)
		require.EqualValues(t, 2, got, source)
	}
}

func TestAHostTakesPart(t *testing.T) {
	type host struct{ name string }
	dialect := &Dialect{
		Owns: func(v any) bool { _, ok := v.(host); return ok },
		Attribute: func(_ context.Context, v any, name string) (any, bool, error) {
			h, ok := v.(host)
			return h.name + "." + name, ok, nil
		},
		Method: func(_ context.Context, v any, name string, args []any, named map[string]any) (any, bool, error) {
			return fmt.Sprint(v.(host).name, name, args, named), true, nil
		},
		Type: func(_ context.Context, prefix, name string) (any, error) { return prefix + "/" + name, nil },
		Is:   func(_ context.Context, v, class any) (bool, error) { return v.(host).name == class, nil },
	}
	scope := NewScope(Standard(), []any{host{"std/Foo"}, host{"b"}}, Limits{}).Speaking(dialect)
	for source, wanted := range map[string]any{
		"$.x":                     []any{"std/Foo.x", "b.x"},
		"$[1].call(1, a => [2])":  "bcall[1] map[a:[2]]",
		"$.where($ is std:Foo).x": []any{"std/Foo.x"},
		":Bar":                    "/Bar",
	} {
		expression, err := Parse(source)
		require.NoError(t, err)
		got, err := expression.Evaluate(t.Context(), scope)
		require.NoError(t, err, source)
		require.Equal(t, wanted, got, source)
	}
}

func TestVariablesAreFoundInTheNearestScope(t *testing.T) {
	base := NewScope(Standard(), "data", Limits{})
	inner := base.With("a", int64(1)).WithAll(map[string]any{"b": int64(2), "2": "two"}).Define(function("f", "", func(*Invocation) (any, error) { return "f", nil }))
	for range 3 {
		inner = inner.Assign("c", int64(3)).Assign("a", int64(4))
	}
	require.Equal(t, "data", inner.Variable(""))
	require.Equal(t, "data", inner.Variable("1"))
	require.Equal(t, "two", inner.Variable("2"))
	require.Nil(t, inner.Variable("02"))
	require.Equal(t, int64(4), inner.Variable("a"))
	require.Equal(t, int64(2), inner.Variable("b"))
	require.Equal(t, int64(3), inner.Variable("c"))
	require.Nil(t, inner.Variable("d"))
	require.Equal(t, int64(1), base.With("a", int64(1)).Variable("a"))
	require.Equal(t, "new", base.Assign("", "new").Variable(""))
	parsed, err := Parse("f() + $1 + $2 + str($a) + [5].select($ + $a).join('')")
	require.NoError(t, err)
	got, err := parsed.Evaluate(t.Context(), inner)
	require.NoError(t, err)
	require.Equal(t, "fdatatwo49", got)
}

// Truth values are numbers, as in Python.
func TestTrueIsOne(t *testing.T) {
	for _, source := range []string{"1 = true", "true in [1]", "{1 => a}.get(true) = a", "0 = false and not null = false", "[1, true, 1.0].distinct().len() = 1", "set(0).contains(false)",
		"[[1], [true]].toSet().len() = 1", "[true] = [1]"} {
		got, err := evaluate(t, source, nil)
		require.NoError(t, err, source)
		require.Equal(t, true, got, source)
	}
}

// The behaviour of Python's re for patterns that Go's expressions do not support.
func TestPatternsMayLookAroundAndReferBack(t *testing.T) {
	for source, wanted := range map[string]any{
		"'foobar' =~ 'foo(?=bar)'":                                                 true,
		"'foobaz' =~ 'foo(?!baz)'":                                                 false,
		"regex('(?<=ü)b+').search('übb', $.start)":                                 int64(1),
		`regex('(\\w)\\1').searchAll('aabccd')`:                                    []any{"aa", "cc"},
		`regex('(?P<q>[\'"])(x*)(?P=q)').search("'xx'", list($q.value, $3.value))`: []any{"'", "xx"},
		`regex('(?P<a>.)(.)(?=c)').replace('xybc', '\\2\\g<a>')`:                   "xbyc",
		"regex('(?>a+)b').split('1aab2')":                                          []any{"1", "2"},
		"regex('(x)?(?(1)y|z)').searchAll('xy z')":                                 []any{"xy", "z"},
		"regex('(?i)A(?# a comment)(?=B)').replaceBy('xab', $.value + '!')":        "xa!b",
	} {
		value, err := evaluate(t, source, nil)
		require.NoError(t, err, source)
		require.Equal(t, wanted, value, source)
	}
}

func TestAPatternWithoutEndIsStopped(t *testing.T) {
	_, err := evaluate(t, "('a' * 40 + '!') =~ '^(?=(a+)+$)'", nil)
	require.ErrorContains(t, err, "took longer than 1s")
}

func TestWrongPatternsAreNamedWithTheirPlace(t *testing.T) {
	for pattern, wanted := range map[string]string{"ab[c": "missing closing ] at position 3", "(?=a": "is not a regular expression"} {
		_, err := evaluate(t, "regex('"+pattern+"')", nil)
		require.ErrorContains(t, err, wanted, pattern)
	}
}

func TestPatternsOfAnExpressionAreCompiledOnce(t *testing.T) {
	expression, err := Parse("regex('a+', ignoreCase => true).replace($, b)")
	require.NoError(t, err)
	scope := NewScope(Standard(), "xAa", Limits{})
	var compiled *Regex
	for range 2 {
		value, err := expression.Evaluate(t.Context(), scope)
		require.NoError(t, err)
		require.Equal(t, "xb", value)
		known := *expression.patterns.known.Load()
		require.Len(t, known, 1)
		if compiled != nil {
			require.Same(t, compiled, known["(?i)a+"])
		}
		compiled = known["(?i)a+"]
	}
}

func TestAnExpressionKeepsFewPatterns(t *testing.T) {
	expression, err := Parse("range(1000).where(str($) =~ str($)).len()")
	require.NoError(t, err)
	value, err := expression.Evaluate(t.Context(), NewScope(Standard(), nil, Limits{}))
	require.NoError(t, err)
	require.Equal(t, int64(1000), value)
	require.LessOrEqual(t, len(*expression.patterns.known.Load()), maxPatterns)
}

func TestAReplacementCountsAsMemory(t *testing.T) {
	for _, template := range []string{"$", `\\\\` + "$"} {
		expression, err := Parse("regex('').replace($, '" + strings.ReplaceAll(template, "$", strings.Repeat("b", 900)) + "')")
		require.NoError(t, err)
		_, err = expression.Evaluate(t.Context(), NewScope(Standard(), strings.Repeat("a", 1000), Limits{Memory: 100_000}))
		var failed *Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, TooMuchMemory, failed.Name)
	}
}

func TestEveryFunctionIsDocumented(t *testing.T) {
	for _, f := range append(Standard().All(), Legacy().All()...) {
		require.NotEmpty(t, f.Doc, f.Name)
		require.NotNil(t, f.Call, f.Name)
		require.NotZero(t, f.Kind, f.Name)
	}
}

// patience is how long something may take that ends by itself.
const patience = time.Minute

func FuzzParseAndEvaluateNeverPanic(f *testing.F) {
	for _, seed := range []string{"$.a.b[0] + 1", "f(,1, a => [2])", "{a => 'b'}.get(a)", "lambda($ + 1)(2)", "[1,2].select($ * 2).where($ > 2).first()",
		"not $ is :A and std:B.x", "'{0}'.format($)", "let(a => 1) -> $a", "def(f, f($)) -> f(1)", "`x\\``", "[3,1].orderBy($).thenBy(-$)",
		"$.groupBy($.a, $.b, $.sum())", "'a'.replace({a => b})", "datetime('2024-01-01').format('%Y')", "regex('(a)').replace(aa, '\\1')",
		"call(len, [[1]], {})", "$.mergeWith($, $1 + $2)", "-1.5 mod 2 =~ a"} {
		f.Add(seed)
	}
	data := map[string]any{"a": []any{1, "x", nil}, "b": map[string]any{"c": 1.5}}
	f.Fuzz(func(t *testing.T, source string) {
		expression, err := Parse(source)
		if err != nil {
			var syntax *SyntaxError
			require.ErrorAs(t, err, &syntax)
			require.LessOrEqual(t, syntax.Offset, len(source))
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		limits := Limits{Items: 200, Memory: 1 << 18, Steps: 20_000}
		for _, functions := range []*Functions{Standard(), Legacy()} {
			_, err = expression.Evaluate(ctx, NewScope(functions, data, limits))
			require.NoError(t, ctx.Err(), "%v", err)
		}
	})
}
