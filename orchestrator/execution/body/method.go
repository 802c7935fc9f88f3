package body

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// attributeOf is a method of a value, or a key of a dict: parameters and results of scripts have their keys as attributes.
func attributeOf(line int, of any, attribute string) (any, error) {
	switch v := of.(type) {
	case scriptValue:
		v.method = attribute
		return v, nil
	case string:
		if m := textMethod(v, attribute); m != nil {
			return m, nil
		}
	case *list:
		if m := listMethod(v, attribute); m != nil {
			return m, nil
		}
	case tuple:
		if attribute == "index" || attribute == "count" {
			return listMethod(&list{v}, attribute), nil
		}
	case *dict:
		if value, found := v.get(attribute); found {
			return value, nil
		}
		if m := dictMethod(v, attribute); m != nil {
			return m, nil
		}
		return nil, &Error{line, "AttributeError", "there is no " + attribute}
	case uuidValue:
		if attribute == "hex" {
			return strings.ReplaceAll(string(v), "-", ""), nil
		}
	case *fileValue:
		if m := v.method(attribute); m != nil {
			return m, nil
		}
	case caught:
		if attribute == "message" || attribute == "strerror" {
			return said(v.err), nil
		}
	}
	return nil, &Error{line, "AttributeError", "'" + typeName(of) + "' object has no attribute '" + attribute + "'"}
}

// method makes a function of a method that takes some arguments.
func method(name string, least, most int, do func(r *run, line int, args []any) (any, error)) any {
	return function(func(r *run, line int, args []any, _ map[string]any) (any, error) {
		if err := arity(line, name, args, least, most); err != nil {
			return nil, err
		}
		return do(r, line, args)
	})
}

// onText is a method of texts that takes texts.
func onText(name string, least, most int, do func(args []string) any) any {
	return method(name, least, most, func(_ *run, line int, args []any) (any, error) {
		texts := make([]string, len(args))
		for n, arg := range args {
			s, is := arg.(string)
			if !is && arg != nil {
				return nil, &Error{line, "TypeError", name + "() needs texts, not " + typeName(arg)}
			}
			texts[n] = s
		}
		return do(texts), nil
	})
}

func textMethod(s, name string) any {
	trimmed := func(trim func(string, string) string) any {
		return onText(name, 0, 1, func(args []string) any {
			if len(args) == 0 || args[0] == "" {
				return trim(s, " \t\n\r\f\v")
			}
			return trim(s, args[0])
		})
	}
	every := func(is func(rune) bool) any {
		return onText(name, 0, 0, func([]string) any { return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0 })
	}
	switch name {
	case "format":
		return function(func(_ *run, line int, args []any, named map[string]any) (any, error) {
			return format(line, s, args, named)
		})
	case "join":
		return method(name, 1, 1, func(_ *run, line int, args []any) (any, error) {
			items, err := iterate(line, args[0])
			if err != nil {
				return nil, err
			}
			parts := make([]string, len(items))
			for n, one := range items {
				part, is := one.(string)
				if !is {
					return nil, &Error{line, "TypeError", fmt.Sprintf("sequence item %d: expected string, %s found", n, typeName(one))}
				}
				parts[n] = part
			}
			return bounded(line, strings.Join(parts, s))
		})
	case "strip":
		return trimmed(strings.Trim)
	case "lstrip":
		return trimmed(strings.TrimLeft)
	case "rstrip":
		return trimmed(strings.TrimRight)
	case "lower", "upper", "title", "capitalize", "swapcase", "encode", "decode":
		return onText(name, 0, 2, func([]string) any { return cased(s, name) })
	case "startswith", "endswith":
		return method(name, 1, 1, func(_ *run, line int, args []any) (any, error) {
			choices, is := args[0].(tuple)
			if !is {
				choices = tuple{args[0]}
			}
			test := map[string]func(string, string) bool{"startswith": strings.HasPrefix, "endswith": strings.HasSuffix}[name]
			return slices.ContainsFunc(choices, func(one any) bool { part, is := one.(string); return is && test(s, part) }), nil
		})
	case "replace":
		return method(name, 2, 3, func(_ *run, line int, args []any) (any, error) {
			from, fromIs := args[0].(string)
			to, toIs := args[1].(string)
			if !fromIs || !toIs {
				return nil, &Error{line, "TypeError", "replace() needs texts"}
			}
			n := int64(-1)
			if len(args) > 2 {
				n, _, _, _ = numberOf(args[2])
			}
			if len(to) > 0 && (strings.Count(s, from)+1)*len(to) > maxText {
				return nil, &Error{line, "MemoryError", "the text is too long"}
			}
			return strings.Replace(s, from, to, int(n)), nil
		})
	case "split", "rsplit":
		return method(name, 0, 2, func(_ *run, line int, args []any) (any, error) { return split(line, s, name, args) })
	case "splitlines":
		return onText(name, 0, 0, func([]string) any {
			if s == "" {
				return &list{}
			}
			return texts(strings.Split(strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\n"), "\n"))
		})
	case "partition":
		return onText(name, 1, 1, func(args []string) any {
			before, after, found := strings.Cut(s, args[0])
			if !found {
				return tuple{s, "", ""}
			}
			return tuple{before, args[0], after}
		})
	case "find", "index":
		return method(name, 1, 1, func(_ *run, line int, args []any) (any, error) {
			part, _ := args[0].(string)
			at := strings.Index(s, part)
			if at < 0 && name == "index" {
				return nil, &Error{line, "ValueError", "substring not found"}
			}
			if at < 0 {
				return int64(-1), nil
			}
			return int64(len([]rune(s[:at]))), nil
		})
	case "count":
		return onText(name, 1, 1, func(args []string) any { return int64(strings.Count(s, args[0])) })
	case "isdigit", "isnumeric":
		return every(unicode.IsDigit)
	case "isalpha":
		return every(unicode.IsLetter)
	case "isalnum":
		return every(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	case "isspace":
		return every(unicode.IsSpace)
	case "zfill", "ljust", "rjust", "center":
		return method(name, 1, 2, func(_ *run, line int, args []any) (any, error) {
			width, _, _, ok := numberOf(args[0])
			if !ok || width > maxItems {
				return nil, &Error{line, "ValueError", name + "() needs a width"}
			}
			fill := str(first(args[1:], " "))
			align := map[string]string{"zfill": ">", "ljust": "<", "rjust": ">", "center": "^"}[name]
			if name == "zfill" {
				fill = "0"
			}
			return padded(s, fill, align, int(width)), nil
		})
	}
	return nil
}

func cased(s, name string) string {
	switch name {
	case "lower":
		return strings.ToLower(s)
	case "upper":
		return strings.ToUpper(s)
	case "capitalize":
		for n, r := range s {
			return string(unicode.ToUpper(r)) + strings.ToLower(s[n+len(string(r)):])
		}
	case "title":
		var b strings.Builder
		within := false
		for _, r := range s {
			if within {
				b.WriteRune(unicode.ToLower(r))
			} else {
				b.WriteRune(unicode.ToUpper(r))
			}
			within = unicode.IsLetter(r)
		}
		return b.String()
	case "swapcase":
		return strings.Map(func(r rune) rune {
			if unicode.IsUpper(r) {
				return unicode.ToLower(r)
			}
			return unicode.ToUpper(r)
		}, s)
	}
	return s // encode and decode: texts are texts
}

func split(line int, s, name string, args []any) (any, error) {
	most := int64(-1)
	if len(args) > 1 {
		most, _, _, _ = numberOf(args[1])
	}
	if len(args) == 0 || args[0] == nil {
		fields := strings.Fields(s)
		if most >= 0 && int64(len(fields)) > most+1 {
			rest := s
			for range most {
				rest = strings.TrimLeft(rest, " \t\n\r\f\v")
				rest = rest[strings.IndexAny(rest, " \t\n\r\f\v"):]
			}
			fields = append(fields[:most:most], strings.TrimSpace(rest))
		}
		return texts(fields), nil
	}
	by, is := args[0].(string)
	if !is || by == "" {
		return nil, &Error{line, "ValueError", "empty separator"}
	}
	parts := strings.Split(s, by)
	switch {
	case most < 0:
		return texts(parts), nil
	case name == "split":
		return texts(strings.SplitN(s, by, int(min(most, maxItems))+1)), nil
	}
	if keep := len(parts) - int(most); keep > 1 {
		parts = append([]string{strings.Join(parts[:keep], by)}, parts[keep:]...)
	}
	return texts(parts), nil
}

func texts(all []string) *list {
	items := make([]any, len(all))
	for n, one := range all {
		items[n] = one
	}
	return &list{items}
}

func listMethod(l *list, name string) any {
	switch name {
	case "append":
		return method(name, 1, 1, func(_ *run, line int, args []any) (any, error) { return nil, l.extend(line, args) })
	case "extend":
		return method(name, 1, 1, func(_ *run, line int, args []any) (any, error) {
			items, err := iterate(line, args[0])
			if err != nil {
				return nil, err
			}
			return nil, l.extend(line, items)
		})
	case "insert":
		return method(name, 2, 2, func(_ *run, line int, args []any) (any, error) {
			at, _, _, _ := numberOf(args[0])
			if at < 0 {
				at += int64(len(l.items))
			}
			l.items = slices.Insert(l.items, int(min(max(at, 0), int64(len(l.items)))), args[1])
			return nil, l.extend(line, nil)
		})
	case "pop":
		return method(name, 0, 1, func(_ *run, line int, args []any) (any, error) {
			at, err := position(line, first(args, int64(-1)), len(l.items))
			if err != nil {
				return nil, err
			}
			taken := l.items[at]
			l.items = slices.Delete(l.items, at, at+1)
			return taken, nil
		})
	case "index", "remove":
		return method(name, 1, 1, func(_ *run, line int, args []any) (any, error) {
			at := slices.IndexFunc(l.items, func(one any) bool { return equal(one, args[0]) })
			if at < 0 {
				return nil, &Error{line, "ValueError", repr(args[0]) + " is not in the list"}
			}
			if name == "index" {
				return int64(at), nil
			}
			l.items = slices.Delete(l.items, at, at+1)
			return nil, nil
		})
	case "add":
		return method(name, 1, 1, func(_ *run, line int, args []any) (any, error) {
			if slices.ContainsFunc(l.items, func(one any) bool { return equal(one, args[0]) }) {
				return nil, nil
			}
			return nil, l.extend(line, args)
		})
	case "count":
		return method(name, 1, 1, func(_ *run, _ int, args []any) (any, error) {
			n := int64(0)
			for _, one := range l.items {
				if equal(one, args[0]) {
					n++
				}
			}
			return n, nil
		})
	case "reverse":
		return method(name, 0, 0, func(*run, int, []any) (any, error) { slices.Reverse(l.items); return nil, nil })
	case "sort":
		return function(func(r *run, line int, _ []any, named map[string]any) (any, error) {
			return nil, r.sort(line, l.items, named)
		})
	}
	return nil
}

func dictMethod(d *dict, name string) any {
	switch name {
	case "get":
		return method(name, 1, 2, func(_ *run, _ int, args []any) (any, error) {
			if value, found := d.get(args[0]); found {
				return value, nil
			}
			return first(args[1:], nil), nil
		})
	case "setdefault":
		return method(name, 1, 2, func(_ *run, line int, args []any) (any, error) {
			if value, found := d.get(args[0]); found {
				return value, nil
			}
			return first(args[1:], nil), put(line, d, args[0], first(args[1:], nil))
		})
	case "pop":
		return method(name, 1, 2, func(_ *run, line int, args []any) (any, error) {
			value, found := d.get(args[0])
			if !found && len(args) == 1 {
				return nil, &Error{line, "KeyError", repr(args[0])}
			}
			if !found {
				return args[1], nil
			}
			d.remove(args[0])
			return value, nil
		})
	case "has_key":
		return method(name, 1, 1, func(_ *run, _ int, args []any) (any, error) { _, found := d.get(args[0]); return found, nil })
	case "keys", "iterkeys":
		return method(name, 0, 0, func(*run, int, []any) (any, error) { return &list{slices.Clone(d.keys)}, nil })
	case "values", "itervalues", "items", "iteritems":
		return method(name, 0, 0, func(*run, int, []any) (any, error) {
			all := make([]any, len(d.keys))
			for n, key := range d.keys {
				all[n], _ = d.get(key)
				if strings.HasSuffix(name, "items") {
					all[n] = tuple{key, all[n]}
				}
			}
			return &list{all}, nil
		})
	case "update":
		return function(func(r *run, line int, args []any, named map[string]any) (any, error) {
			more, err := toDict(r, line, args, named)
			if err != nil {
				return nil, err
			}
			return nil, d.update(line, more)
		})
	case "copy":
		return method(name, 0, 0, func(_ *run, line int, _ []any) (any, error) {
			made := newDict()
			return made, made.update(line, d)
		})
	}
	return nil
}

// format fills the fields of a text: {}, {0}, {name}, {name.key}, {name[key]}, and after a colon alignment, width, precision and kind.
func format(line int, pattern string, args []any, named map[string]any) (any, error) {
	var b strings.Builder
	following := 0
	for rest := pattern; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:at])
		if strings.HasPrefix(rest[at:], "{{") || strings.HasPrefix(rest[at:], "}}") {
			b.WriteByte(rest[at])
			rest = rest[at+2:]
			continue
		}
		field, after, found := strings.Cut(rest[at+1:], "}")
		if rest[at] == '}' || !found {
			return nil, &Error{line, "ValueError", "single '" + rest[at:at+1] + "' in the format string"}
		}
		rest = after
		field, spec, _ := strings.Cut(field, ":")
		field, conversion, _ := strings.Cut(field, "!")
		value, err := formatField(line, field, &following, args, named)
		if err != nil {
			return nil, err
		}
		if conversion == "r" {
			value = repr(value)
		}
		text, err := formatted(line, value, spec)
		if err != nil {
			return nil, err
		}
		b.WriteString(text)
		if b.Len() > maxText {
			return nil, &Error{line, "MemoryError", "the text is too long"}
		}
	}
	return bounded(line, b.String())
}

func formatField(line int, field string, following *int, args []any, named map[string]any) (any, error) {
	head := field
	if at := strings.IndexAny(field, ".["); at >= 0 {
		head = field[:at]
	}
	path := field[len(head):]
	var value any
	n, err := strconv.Atoi(head)
	switch {
	case head == "":
		n, err = *following, nil
		*following++
		fallthrough
	case err == nil:
		if n < 0 || n >= len(args) {
			return nil, &Error{line, "IndexError", "there is no value for the field {" + field + "}"}
		}
		value = args[n]
	default:
		var known bool
		if value, known = named[head]; !known {
			return nil, &Error{line, "KeyError", quoted(head)}
		}
	}
	for path != "" {
		switch {
		case path[0] == '.':
			end := strings.IndexAny(path[1:], ".[") + 1
			if end == 0 {
				end = len(path)
			}
			if value, err = attributeOf(line, value, path[1:end]); err != nil {
				return nil, err
			}
			path = path[end:]
		default:
			key, after, found := strings.Cut(path[1:], "]")
			if path[0] != '[' || !found {
				return nil, &Error{line, "ValueError", "the field {" + field + "} cannot be read"}
			}
			at := any(key)
			if n, err := strconv.ParseInt(key, 10, 64); err == nil {
				at = n
			}
			if value, err = item(line, value, at); err != nil {
				return nil, err
			}
			path = after
		}
	}
	return value, nil
}

// formatted writes a value by a format specification: [[fill]align][sign][0][width][.precision][kind].
func formatted(line int, value any, spec string) (string, error) {
	if spec == "" {
		return str(value), nil
	}
	wrong := &Error{line, "ValueError", "the format specification " + quoted(spec) + " is not known"}
	fill, align := " ", ""
	runes := []rune(spec)
	switch {
	case len(runes) > 1 && strings.ContainsRune("<>^", runes[1]):
		fill, align, runes = string(runes[0]), string(runes[1]), runes[2:]
	case strings.ContainsRune("<>^", runes[0]):
		align, runes = string(runes[0]), runes[1:]
	}
	spec = string(runes)
	sign := ""
	if strings.HasPrefix(spec, "+") {
		sign, spec = "+", spec[1:]
	}
	if strings.HasPrefix(spec, "0") {
		spec = spec[1:]
		if align == "" {
			fill, align = "0", "0"
		}
	}
	digits := strings.TrimLeft(spec, "0123456789")
	width := 0
	if len(digits) < len(spec) {
		var err error
		if width, err = strconv.Atoi(spec[:len(spec)-len(digits)]); err != nil || width > maxItems {
			return "", wrong
		}
	}
	precision := -1
	kind := digits
	if strings.HasPrefix(digits, ".") {
		kind = strings.TrimLeft(digits[1:], "0123456789")
		var err error
		if precision, err = strconv.Atoi(digits[1 : len(digits)-len(kind)]); err != nil || precision > 100 {
			return "", wrong
		}
	}
	text, err := kindText(line, value, kind, precision, wrong)
	if err != nil {
		return "", err
	}
	_, _, _, isNumber := numberOf(value)
	if sign != "" && isNumber && !strings.HasPrefix(text, "-") {
		text = sign + text
	}
	if align == "" {
		align = "<"
		if isNumber {
			align = ">"
		}
	}
	return padded(text, fill, align, width), nil
}

func kindText(line int, value any, kind string, precision int, wrong error) (string, error) {
	n, f, isFloat, ok := numberOf(value)
	switch kind {
	case "", "s":
		text := str(value)
		if s, is := value.(string); is && precision >= 0 {
			text = string([]rune(s)[:min(precision, len([]rune(s)))])
		} else if isFloat && precision >= 0 {
			text = strconv.FormatFloat(f, 'g', max(precision, 1), 64)
		}
		return text, nil
	case "d", "i", "u", "x", "X", "o", "b":
		if !ok || isFloat && f != math.Trunc(f) && kind != "d" {
			return "", &Error{line, "ValueError", "an integer is needed for the format " + kind + ", not " + typeName(value)}
		}
		if isFloat {
			n = int64(f)
		}
		base := cmp.Or(map[string]int{"x": 16, "X": 16, "o": 8, "b": 2}[kind], 10)
		text := strconv.FormatInt(n, base)
		if kind == "X" {
			text = strings.ToUpper(text)
		}
		return text, nil
	case "f", "F", "e", "E", "g", "G", "%":
		if !ok {
			return "", &Error{line, "ValueError", "a number is needed for the format " + kind + ", not " + typeName(value)}
		}
		if precision < 0 {
			precision = 6
		}
		if kind == "%" {
			return strconv.FormatFloat(f*100, 'f', precision, 64) + "%", nil
		}
		return strconv.FormatFloat(f, strings.ToLower(kind)[0], precision, 64), nil
	}
	return "", wrong
}

func padded(text, fill, align string, width int) string {
	missing := width - len([]rune(text))
	if missing <= 0 {
		return text
	}
	switch align {
	case "<":
		return text + strings.Repeat(fill, missing)
	case "^":
		return strings.Repeat(fill, missing/2) + text + strings.Repeat(fill, missing-missing/2)
	case "0":
		if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
			return text[:1] + strings.Repeat(fill, missing) + text[1:]
		}
	}
	return strings.Repeat(fill, missing) + text
}

// percent fills the fields of a text as the operator % does: %s, %d, %(name)s, with flags, width and precision.
func percent(line int, pattern string, right any) (any, error) {
	values, isTuple := right.(tuple)
	if !isTuple {
		values = tuple{right}
	}
	var b strings.Builder
	used := 0
	for rest := pattern; rest != ""; {
		before, after, found := strings.Cut(rest, "%")
		b.WriteString(before)
		if !found {
			break
		}
		if strings.HasPrefix(after, "%") {
			b.WriteByte('%')
			rest = after[1:]
			continue
		}
		var value any
		named := false
		if strings.HasPrefix(after, "(") {
			key, remaining, closed := strings.Cut(after[1:], ")")
			if !closed {
				return nil, &Error{line, "ValueError", "incomplete format key"}
			}
			var err error
			if value, err = item(line, right, key); err != nil {
				return nil, err
			}
			after, named = remaining, true
		}
		end := strings.IndexFunc(after, func(r rune) bool { return !strings.ContainsRune("-+ 0123456789.", r) })
		if end < 0 {
			return nil, &Error{line, "ValueError", "incomplete format"}
		}
		if !named {
			if used >= len(values) {
				return nil, &Error{line, "TypeError", "not enough arguments for format string"}
			}
			value = values[used]
			used++
		}
		text, err := percentText(line, value, after[:end], after[end:end+1])
		if err != nil {
			return nil, err
		}
		b.WriteString(text)
		rest = after[end+1:]
	}
	if _, isDict := right.(*dict); used < len(values) && !isDict {
		return nil, &Error{line, "TypeError", "not all arguments converted during string formatting"}
	}
	return bounded(line, b.String())
}

func percentText(line int, value any, flags, kind string) (string, error) {
	if kind == "r" {
		value, kind = repr(value), "s"
	}
	if kind == "s" {
		value = str(value)
	}
	if left := strings.TrimPrefix(flags, "-"); left != flags {
		flags = "<" + left
	} else if kind == "s" && flags != "" {
		flags = ">" + flags
	}
	return formatted(line, value, strings.TrimSpace(flags)+kind)
}
