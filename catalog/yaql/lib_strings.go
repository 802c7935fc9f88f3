package yaql

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// trimmer cuts off characters, white space when none are named.
func trimmer(i *Invocation, chars int, left, right bool) string {
	s := arg[string](i, 0)
	cut := unicode.IsSpace
	if given, ok := i.Args[chars].(string); ok {
		cut = func(r rune) bool { return strings.ContainsRune(given, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

func textList(parts []string) []any {
	items := make([]any, len(parts))
	for n, part := range parts {
		items[n] = part
	}
	return items
}

// splitText splits as Python's str.split and rsplit do: at white space when there is no separator.
func splitText(i *Invocation, fromRight bool) (any, error) {
	s, limit := arg[string](i, 0), arg[int64](i, 2)
	separator, given := i.Args[1].(string)
	if given && separator == "" {
		return nil, failure(BadValue, "the separator is empty").saying("empty separator")
	}
	var parts []string
	if given {
		parts = strings.Split(s, separator)
	} else {
		parts = strings.Fields(s)
	}
	if limit < 0 || int64(len(parts)) <= limit || given && int64(len(parts)) == limit+1 { // the rest keeps its white space
		return textList(parts), nil
	}
	n := int(limit)
	switch {
	case given && fromRight:
		cut := len(parts) - n
		return textList(append([]string{strings.Join(parts[:cut], separator)}, parts[cut:]...)), nil
	case given:
		return textList(strings.SplitN(s, separator, n+1)), nil
	case fromRight:
		for range n {
			s = strings.TrimRightFunc(s, unicode.IsSpace)
			s = s[:strings.LastIndexFunc(s, unicode.IsSpace)+1]
		}
		return textList(append([]string{strings.TrimRightFunc(s, unicode.IsSpace)}, parts[len(parts)-n:]...)), nil
	}
	for range n {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
		s = s[strings.IndexFunc(s, unicode.IsSpace):]
	}
	return textList(append(slices.Clone(parts[:n]), strings.TrimLeftFunc(s, unicode.IsSpace))), nil
}

func joinText(i *Invocation, separator string, items []any) (any, error) {
	parts := make([]string, len(items))
	for n, item := range items {
		var err error
		if parts[n], err = i.run.text(item); err == nil {
			err = i.run.spend(len(parts[n]) + len(separator))
		}
		if err != nil {
			return nil, err
		}
	}
	return strings.Join(parts, separator), nil
}

func repeatText(i *Invocation, s string, times int64) (any, error) {
	if times <= 0 || s == "" {
		return "", nil
	}
	if times > math.MaxInt32 {
		return nil, i.run.spend(math.MaxInt)
	}
	if err := i.run.spend(len(s) * int(times)); err != nil {
		return nil, err
	}
	return strings.Repeat(s, int(times)), nil
}

// window makes of a start and an end the indices that Python makes of them in a text of n characters: negative ones count from
// the end, and none lies outside.
func window(start, end int64, n int) (from, to int) {
	place := func(at int64) int {
		if at < 0 {
			at = max(0, at+int64(n))
		}
		return int(min(at, int64(n)))
	}
	from = place(start)
	return from, max(from, place(end))
}

// findText is indexOf() and lastIndexOf(), with or without a length.
func findText(i *Invocation, last bool) (any, error) {
	runes, sub := []rune(arg[string](i, 0)), arg[string](i, 1)
	start, end := arg[int64](i, 2), int64(len(runes))
	if len(i.Args) > 3 {
		length := arg[int64](i, 3)
		if start < 0 {
			start += int64(len(runes))
		}
		if length < 0 {
			length = int64(len(runes)) - start
		}
		end = start + min(length, int64(len(runes))-start)
	}
	if start > int64(len(runes)) {
		return int64(-1), nil // not even nothing is found there
	}
	from, to := window(start, end, len(runes))
	part := string(runes[from:to])
	at := strings.Index(part, sub)
	if last {
		at = strings.LastIndex(part, sub)
	}
	if at < 0 {
		return int64(-1), nil
	}
	return int64(from + utf8.RuneCountInString(part[:at])), nil
}

func replaceText(i *Invocation, s, old, replacement string, count int64) (string, error) {
	times := strings.Count(s, old)
	if count >= 0 {
		times = min(times, int(min(count, math.MaxInt32)))
	}
	if grown := len(replacement) - len(old); grown > 0 && times > i.run.limits.Memory/grown {
		return "", i.run.spend(math.MaxInt)
	}
	return strings.Replace(s, old, replacement, times), nil
}

// characters are the groups of characters() by their parameters' names.
var characters = [...]struct{ name, characters string }{
	{"digits", "0123456789"},
	{"hexdigits", "0123456789abcdefABCDEF"},
	{"asciiLowercase", "abcdefghijklmnopqrstuvwxyz"},
	{"asciiUppercase", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
	{"asciiLetters", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"},
	{"letters", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"},
	{"octdigits", "01234567"},
	{"punctuation", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"},
	{"printable", "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ \t\n\r\x0b\x0c"},
	{"lowercase", "abcdefghijklmnopqrstuvwxyz"},
	{"uppercase", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"},
	{"whitespace", " \t\n\r\x0b\x0c"},
}

func charactersFunction() *Function {
	f := &Function{Name: "characters", Kind: AsFunction, Doc: "the characters of the groups that are named"}
	for _, group := range characters {
		f.Params = append(f.Params, may(group.name, boolean, false))
	}
	f.Call = func(i *Invocation) (any, error) {
		found := NewSet()
		for n, group := range characters {
			if arg[bool](i, n) {
				found = NewSet(append(found.Members(), textList(strings.Split(group.characters, ""))...)...)
			}
		}
		return found.Members(), nil
	}
	return f
}

func affix(name, doc string, has func(s, part string) bool) *Function {
	return method(name, doc, func(i *Invocation) (any, error) {
		return slices.ContainsFunc(arg[[]any](i, 1), func(part any) bool { return has(arg[string](i, 0), part.(string)) }), nil
	}, need("string", text), rest(text))
}

func stringFunctions() []*Function {
	onText := func(name, doc string, change func(string) string) *Function {
		return method(name, doc, func(i *Invocation) (any, error) { return change(arg[string](i, 0)), nil }, need("string", text))
	}
	return []*Function{
		operator("+", "one string after the other", func(i *Invocation) (any, error) { return arg[string](i, 0) + arg[string](i, 1), nil }, text, text),
		operator("*", "the string that many times", func(i *Invocation) (any, error) {
			return repeatText(i, arg[string](i, 0), arg[int64](i, 1))
		}, text, integer),
		operator("*", "the string that many times", func(i *Invocation) (any, error) {
			return repeatText(i, arg[string](i, 1), arg[int64](i, 0))
		}, integer, text),
		operator("in", "whether the string is part of the other", func(i *Invocation) (any, error) {
			return strings.Contains(arg[string](i, 1), arg[string](i, 0)), nil
		}, text, text),
		function("concat", "one string after the other", func(i *Invocation) (any, error) { return joinText(i, "", arg[[]any](i, 0)) }, rest(text)),
		onText("toUpper", "the string in capital letters", strings.ToUpper),
		onText("toLower", "the string in small letters", strings.ToLower),
		both("len", "the number of characters", func(i *Invocation) (any, error) {
			return int64(utf8.RuneCountInString(arg[string](i, 0))), nil
		}, need("string", text)),
		method("split", "the parts between separators", func(i *Invocation) (any, error) { return splitText(i, false) },
			need("string", text), may("separator", orNull(text), nil), may("maxSplits", integer, int64(-1))),
		method("rightSplit", "the parts between separators, counted from the right", func(i *Invocation) (any, error) { return splitText(i, true) },
			need("string", text), may("separator", orNull(text), nil), may("maxSplits", integer, int64(-1))),
		method("join", "the items as one string", func(i *Invocation) (any, error) {
			items, err := i.items(0)
			if err != nil {
				return nil, err
			}
			return joinText(i, arg[string](i, 1), items)
		}, need("sequence", iterable), need("separator", text)),
		method("join", "the items as one string", func(i *Invocation) (any, error) {
			items, err := i.items(1)
			if err != nil {
				return nil, err
			}
			return joinText(i, arg[string](i, 0), items)
		}, need("separator", text), need("sequence", iterable)),
		function("str", "the value as a string", func(i *Invocation) (any, error) { return i.run.text(i.Args[0]) }, need("value", nil)),
		method("trim", "the string without white space, or other characters, at its ends", func(i *Invocation) (any, error) {
			return trimmer(i, 1, true, true), nil
		}, need("string", text), may("chars", orNull(text), nil)),
		method("trimLeft", "the string without white space, or other characters, at its beginning", func(i *Invocation) (any, error) {
			return trimmer(i, 1, true, false), nil
		}, need("string", text), may("chars", orNull(text), nil)),
		method("trimRight", "the string without white space, or other characters, at its end", func(i *Invocation) (any, error) {
			return trimmer(i, 1, false, true), nil
		}, need("string", text), may("chars", orNull(text), nil)),
		both("norm", "the trimmed string, null when nothing is left", func(i *Invocation) (any, error) {
			if trimmed := trimmer(i, 1, true, true); trimmed != "" {
				return trimmed, nil
			}
			return nil, nil
		}, need("string", orNull(text)), may("chars", orNull(text), nil)),
		both("isEmpty", "whether the string is null or holds nothing but white space", func(i *Invocation) (any, error) {
			if !arg[bool](i, 1) {
				return arg[string](i, 0) == "", nil
			}
			return trimmer(i, 2, true, true) == "", nil
		}, need("string", orNull(text)), may("trimSpaces", boolean, true), may("chars", orNull(text), nil)),
		method("replace", "the string with another part", func(i *Invocation) (any, error) {
			return replaceText(i, arg[string](i, 0), arg[string](i, 1), arg[string](i, 2), arg[int64](i, 3))
		}, need("string", text), need("old", text), need("new", text), may("count", integer, int64(-1))),
		method("replace", "the string with other parts, by a map of old and new", func(i *Invocation) (any, error) {
			s := arg[string](i, 0)
			for _, e := range arg[*Dict](i, 1).all() {
				old, err := i.run.text(e.Key)
				if err != nil {
					return nil, err
				}
				other, err := i.run.text(e.Value)
				if err != nil {
					return nil, err
				}
				if s, err = replaceText(i, s, old, other, arg[int64](i, 2)); err != nil {
					return nil, err
				}
				if err = i.run.spend(len(s)); err != nil {
					return nil, err
				}
			}
			return s, nil
		}, need("string", text), need("replacements", dict), may("count", integer, int64(-1))),
		method("substring", "the part from a place on, of some length; a negative start counts from the end", func(i *Invocation) (any, error) {
			runes := []rune(arg[string](i, 0))
			start, length := arg[int64](i, 1), arg[int64](i, 2)
			if length < 0 {
				length = int64(len(runes))
			}
			if start < 0 {
				start += int64(len(runes)) // and counts from the end once more when it is still negative, as in Python's YAQL
			}
			from, to := window(start, min(start, math.MaxInt64-length)+length, len(runes))
			return string(runes[from:to]), nil
		}, need("string", text), need("start", integer), may("length", integer, int64(-1))),
		method("indexOf", "where the part first begins, -1 when nowhere", func(i *Invocation) (any, error) { return findText(i, false) },
			need("string", text), need("sub", text), may("start", integer, int64(0))),
		method("indexOf", "where the part first begins within a length, -1 when nowhere", func(i *Invocation) (any, error) { return findText(i, false) },
			need("string", text), need("sub", text), need("start", integer), need("length", integer)),
		method("lastIndexOf", "where the part last begins, -1 when nowhere", func(i *Invocation) (any, error) { return findText(i, true) },
			need("string", text), need("sub", text), may("start", integer, int64(0))),
		method("lastIndexOf", "where the part last begins within a length, -1 when nowhere", func(i *Invocation) (any, error) { return findText(i, true) },
			need("string", text), need("sub", text), need("start", integer), need("length", integer)),
		method("toCharArray", "the characters", func(i *Invocation) (any, error) { return textList(strings.Split(arg[string](i, 0), "")), nil }, need("string", text)),
		charactersFunction(),
		function("isString", "whether it is a string", func(i *Invocation) (any, error) {
			_, ok := i.Args[0].(string)
			return ok, nil
		}, need("arg", nil)),
		affix("startsWith", "whether the string begins with one of the others", strings.HasPrefix),
		affix("endsWith", "whether the string ends with one of the others", strings.HasSuffix),
		function("hex", "the integer in hexadecimal digits", func(i *Invocation) (any, error) {
			n, ok := i.Args[0].(int64)
			if !ok {
				return nil, failure(BadType, "hex() takes an integer, not %s", TypeName(i.Args[0])).
					saying("'%s' object cannot be interpreted as an integer", typeInPython(i.Args[0]))
			}
			if n < 0 {
				return "-0x" + strconv.FormatUint(-uint64(n), 16), nil
			}
			return "0x" + strconv.FormatInt(n, 16), nil
		}, need("num", orNull(number))),
		both("format", "the string with {}, {0} or {name} replaced by arguments", func(i *Invocation) (any, error) {
			return formatText(arg[string](i, 0), arg[[]any](i, 1), arg[map[string]any](i, 2), i.run.spend)
		}, need("string", text), rest(nil), Param{Keywords: true}),
	}
}

// Format is the function format() for code in Go: it fills the fields {}, {0} and {name} of a text.
func Format(text string, args []any, named map[string]any) (string, error) {
	return formatText(text, args, named, func(int) error { return nil })
}

// formatText is Python's str.format in a closed form: a field is empty, a number or a name, and nothing else. Attributes, indices,
// conversions and format specifications, which opened Murano to every caller, do not exist here.
func formatText(format string, args []any, named map[string]any, spend func(int) error) (string, error) {
	var b strings.Builder
	next := 0
	for rest := format; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:at])
		if at+1 < len(rest) && rest[at+1] == rest[at] {
			b.WriteByte(rest[at])
			rest = rest[at+2:]
			continue
		}
		end := strings.IndexByte(rest[at:], '}')
		if rest[at] == '}' || end < 0 {
			return "", failure(BadValue, "a single brace in the format %q; write {{ or }} for a brace", format).
				saying("Single '%c' encountered in format string", rest[at])
		}
		field := rest[at+1 : at+end]
		rest = rest[at+end+1:]
		value, err := formatField(field, &next, args, named)
		if err != nil {
			return "", err
		}
		if isComposite(value) {
			if err := spend(Size(value, maxWritten)); err != nil {
				return "", err
			}
		}
		inserted := formatValue(value)
		if err := spend(len(inserted)); err != nil {
			return "", err
		}
		b.WriteString(inserted)
	}
	return b.String(), nil
}

func formatField(field string, next *int, args []any, named map[string]any) (any, error) {
	if field == "" {
		field = strconv.Itoa(*next)
		*next++
	}
	if n, err := strconv.ParseUint(field, 10, 31); err == nil {
		if int(n) >= len(args) {
			return nil, failure(IndexMissing, "the format has a field {%d} but there are %d arguments", n, len(args)).
				saying("Replacement index %d out of range for positional args tuple", n)
		}
		return args[n], nil
	}
	if wordEnd(field, 0) != len(field) {
		return nil, failure(BadValue, "a field of a format is {}, {0} or {name}; {%s} is none of them", field)
	}
	value, ok := named[field]
	if !ok {
		return nil, failure(KeyMissing, "the format has a field {%s} but there is no argument of that name", field).saying("%s", inPython(field))
	}
	return value, nil
}

// formatValue writes as Python does: True, False and None.
func formatValue(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	return inPython(value)
}
