package yaql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/burano/burano/internal/door"
)

// Regex is a regular expression: of Go's syntax (https://github.com/google/re2/wiki/Syntax), and so linear in time, where that knows the
// pattern, otherwise a backtracking one with a limit of time.
type Regex struct {
	pattern interface {
		// find returns the places of at most count matches and their groups, in bytes; all when count is negative.
		find(r *run, s string, count int) ([][]int, error)
		names() []string // of the groups, "" where one has no name; the first is the whole match
	}
}

// linear is a pattern of Go's syntax.
type linear struct{ compiled *door.Expression }

func (l linear) find(r *run, s string, count int) (found [][]int, err error) {
	if count == 0 {
		return nil, nil
	}
	for place, err := range l.compiled.All(s) {
		if err != nil {
			return nil, failure(BadValue, "%v", err)
		}
		if found = append(found, place); len(found) == count {
			break
		}
		if err := r.matched(place); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (l linear) names() []string { return l.compiled.SubexpNames() }

// matched accounts for a match, and ends a cancelled evaluation.
func (r *run) matched(place []int) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return r.spend(8 * len(place))
}

// perStep is the time of matching that counts as a step.
const perStep = time.Microsecond

// matching accounts for the time since an operation with a regular expression began: one match may take as long as many steps.
func (r *run) matching(begun time.Time) error {
	steps := int(time.Since(begun) / perStep)
	if steps < tellSteps {
		return nil
	}
	if r.steps += steps; r.steps > r.limits.Steps {
		return failure(TooLarge, "the expression takes more than %d steps", r.limits.Steps)
	}
	return r.pause()
}

// find returns the places of at most count matches and their groups; all when count is negative.
func (r *Regex) find(of *run, s string, count int) ([][]int, error) {
	begun := time.Now()
	found, err := r.pattern.find(of, s, count)
	if err != nil {
		return nil, err
	}
	return found, of.matching(begun)
}

// first returns the place of the first match and its groups, nil when there is none.
func (r *Regex) first(of *run, s string) ([]int, error) {
	found, err := r.find(of, s, 1)
	if len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

func (r *Regex) matches(of *run, s string) (bool, error) {
	if l, ok := r.pattern.(linear); ok {
		begun := time.Now()
		if err := l.compiled.Fits(s); err != nil {
			return false, failure(BadValue, "%v", err)
		}
		return l.compiled.MatchString(s), of.matching(begun)
	}
	found, err := r.first(of, s)
	return found != nil, err
}

// patterns are the compiled regular expressions of an expression; constant ones are compiled once for all evaluations.
type patterns struct {
	known atomic.Pointer[map[string]*Regex] // a map does not change
}

// maxPatterns is how many compiled patterns an expression keeps; when there are more, it begins anew.
const maxPatterns = 32

// compile makes a regular expression of a pattern.
func (r *run) compile(pattern string, flags string) (*Regex, error) {
	if flags != "" {
		pattern = "(?" + flags + ")" + pattern
	}
	if r.patterns == nil {
		r.patterns = &patterns{}
	}
	known := r.patterns.known.Load()
	if known != nil {
		if made := (*known)[pattern]; made != nil {
			return made, nil
		}
	}
	made, err := newRegex(pattern)
	if err != nil {
		return nil, err
	}
	more := map[string]*Regex{pattern: made}
	if known != nil && len(*known) < maxPatterns {
		maps.Copy(more, *known)
	}
	r.patterns.known.Store(&more)
	return made, nil
}

func newRegex(pattern string) (*Regex, error) {
	compiled, err := door.Pattern(pattern)
	if err == nil {
		return &Regex{linear{compiled}}, nil
	}
	if door.IsExceeded(err) {
		return nil, failure(BadValue, "%v", err)
	}
	if more, wrong := compileBacktracking(pattern); wrong == nil {
		return &Regex{more}, nil
	}
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return nil, failure(BadValue, "%q is not a regular expression: %s at position %d: %q", pattern, wrong.Code, 1+max(0, strings.Index(pattern, wrong.Expr)), wrong.Expr)
	}
	return nil, failure(BadValue, "%q is not a regular expression: %v", pattern, err)
}

// matched is a match or a group of one, as a value with the keys value, start and end.
func matched(s string, from, to int) *Dict {
	value, start, end := any(nil), int64(-1), int64(-1)
	if from >= 0 {
		value, start = s[from:to], int64(utf8.RuneCountInString(s[:from]))
		end = start + int64(utf8.RuneCountInString(s[from:to]))
	}
	return &Dict{entries: []Entry{{"value", value}, {"start", start}, {"end", end}}}
}

// selected evaluates a selector over a match: $ is the match, $1, $2 … and $name are groups.
func (r *Regex) selected(i *Invocation, selector *Lambda, s string, location []int) (any, error) {
	if selector == nil {
		return s[location[0]:location[1]], nil
	}
	whole := matched(s, location[0], location[1])
	variables := map[string]any{"": whole}
	for n, name := range r.pattern.names() {
		group := matched(s, location[2*n], location[2*n+1])
		variables[strconv.Itoa(n+1)] = group
		if name != "" {
			variables[name] = group
		}
	}
	lambda := *selector
	if lambda.scope != nil {
		lambda.scope = lambda.scope.WithAll(variables)
	}
	value, err := i.run.apply(&lambda)
	return enter(value), err
}

func (r *Regex) split(of *run, s string, limit int64) (any, error) {
	found, err := r.find(of, s, atMost(limit))
	if err != nil {
		return nil, err
	}
	parts, begin := []any{}, 0
	for _, location := range found {
		parts = append(parts, s[begin:location[0]])
		for n := 2; n < len(location); n += 2 {
			if location[n] < 0 {
				parts = append(parts, nil)
			} else {
				parts = append(parts, s[location[n]:location[n+1]])
			}
		}
		begin = location[1]
	}
	return append(parts, s[begin:]), nil
}

func atMost(count int64) int {
	if count <= 0 || count > math.MaxInt32 {
		return -1
	}
	return int(count)
}

// replace replaces each match by the result of with.
func (r *Regex) replace(i *Invocation, s string, count int64, with func([]int) (string, error)) (any, error) {
	found, err := r.find(i.run, s, atMost(count))
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	begin := 0
	for _, location := range found {
		replacement, err := with(location)
		if err != nil {
			return nil, err
		}
		if err := i.run.spend(len(replacement)); err != nil {
			return nil, err
		}
		b.WriteString(s[begin:location[0]])
		b.WriteString(replacement)
		begin = location[1]
	}
	b.WriteString(s[begin:])
	return b.String(), nil
}

// short is the length of texts in bytes below which a replacement takes so little memory that only its result counts.
const short = 1 << 10

// replacement is a piece of a match's replacement: a text, or a group of the match.
type replacement struct {
	text  string
	group int // -1 for a text
}

// replacements reads a replacement of Python's: \1 and \g<name> are groups, and there are escapes
// (https://docs.python.org/3/library/re.html#re.sub).
func (r *Regex) replacements(template string) ([]replacement, error) {
	var pieces []replacement
	wrong := func(at int, format string, args ...any) error {
		said := fmt.Sprintf(format, args...) + " at position " + strconv.Itoa(utf8.RuneCountInString(template[:at]))
		return failure(BadPattern, "the replacement %q: %s", template, said).saying("%s", said)
	}
	text := func(s string) { pieces = append(pieces, replacement{s, -1}) }
	for at := 0; at < len(template); {
		rest := template[at:]
		if next := strings.IndexByte(rest, '\\'); next != 0 {
			if next < 0 {
				next = len(rest)
			}
			text(rest[:next])
			at += next
			continue
		}
		if len(rest) == 1 {
			return nil, wrong(at, "bad escape (end of pattern)")
		}
		switch c := rest[1]; {
		case octal.MatchString(rest):
			digits := octal.FindString(rest)[1:]
			code, _ := strconv.ParseUint(digits, 8, 16)
			text(string(rune(code)))
			at += 1 + len(digits)
		case c >= '1' && c <= '9':
			end := 2
			if len(rest) > 2 && rest[2] >= '0' && rest[2] <= '9' {
				end = 3
			}
			n, _ := strconv.Atoi(rest[1:end])
			if n >= len(r.pattern.names()) {
				return nil, wrong(at+1, "invalid group reference %d", n)
			}
			pieces = append(pieces, replacement{group: n})
			at += end
		case c == 'g':
			name, _, ended := strings.Cut(strings.TrimPrefix(rest[2:], "<"), ">")
			switch {
			case !strings.HasPrefix(rest[2:], "<"):
				return nil, wrong(at+2, "missing <")
			case name == "":
				return nil, wrong(at+3, "missing group name")
			case !ended:
				return nil, wrong(at+3, "missing >, unterminated name")
			}
			n, err := strconv.Atoi(name)
			if err != nil {
				n = slices.Index(r.pattern.names(), name)
			}
			switch {
			case err != nil && n < 0:
				return nil, failure(IndexMissing, "the regular expression has no group %s", name).saying("unknown group name '%s'", name)
			case n < 0 || n >= len(r.pattern.names()):
				return nil, wrong(at+3, "invalid group reference %d", n)
			}
			pieces = append(pieces, replacement{group: n})
			at += len(name) + 4
		case escapes[c] != 0:
			text(string(rune(escapes[c])))
			at += 2
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			return nil, wrong(at, `bad escape \%c`, c)
		default: // both stay
			text(rest[:2])
			at += 2
		}
	}
	return pieces, nil
}

// octal is an escape of octal digits: one that begins with another digit than 0 has three, else it is a group.
var octal = regexp.MustCompile(`^\\(0[0-7]{0,2}|[1-3][0-7]{2})`)

// escapes are the characters that mean another one behind a backslash.
var escapes = map[byte]byte{'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\'}

func expand(pieces []replacement, s string, location []int) string {
	var b strings.Builder
	for _, piece := range pieces {
		if piece.group < 0 {
			b.WriteString(piece.text)
		} else if from := location[2*piece.group]; from >= 0 {
			b.WriteString(s[from:location[2*piece.group+1]])
		}
	}
	return b.String()
}

// special are the characters that Python's re.escape puts a backslash before.
const special = "()[]{}?*+-|^$\\.&~# \t\n\r\v\f"

func escapeRegex(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(special, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// regexFunctions: where a function is called on an expression or on a string alike, there is one overload for each.
func regexFunctions() []*Function {
	matchText := func(wanted bool) body {
		return func(i *Invocation) (any, error) {
			r, err := i.run.compile(arg[string](i, 1), "")
			if err != nil {
				return nil, err
			}
			found, err := r.matches(i.run, arg[string](i, 0))
			return found == wanted, err
		}
	}
	matchRegex := func(wanted bool) body {
		return func(i *Invocation) (any, error) {
			found, err := arg[*Regex](i, 1).matches(i.run, arg[string](i, 0))
			return found == wanted, err
		}
	}
	// on swaps the first two arguments where the string comes first.
	swapped := func(call body) body {
		return func(i *Invocation) (any, error) {
			i.Args[0], i.Args[1] = i.Args[1], i.Args[0]
			return call(i)
		}
	}
	split := func(i *Invocation) (any, error) {
		return arg[*Regex](i, 0).split(i.run, arg[string](i, 1), arg[int64](i, 2))
	}
	replace := func(i *Invocation) (any, error) {
		r, s, template, count := arg[*Regex](i, 0), arg[string](i, 1), arg[string](i, 2), arg[int64](i, 3)
		if l, ok := r.pattern.(linear); ok && count <= 0 && len(s) < short && len(template) < short && !strings.Contains(template, `\`) && l.compiled.FitsAll(s) {
			return l.compiled.ReplaceAllLiteralString(s, template), nil
		}
		pieces, err := r.replacements(template)
		if err != nil {
			return nil, err
		}
		return r.replace(i, s, count, func(location []int) (string, error) { return expand(pieces, s, location), nil })
	}
	replaceBy := func(i *Invocation) (any, error) {
		r, s := arg[*Regex](i, 0), arg[string](i, 1)
		return r.replace(i, s, arg[int64](i, 3), func(location []int) (string, error) {
			value, err := r.selected(i, i.lambda(2), s, location)
			text, ok := value.(string)
			if err == nil && !ok {
				err = failure(BadType, "the expression of replaceBy() gives a string, not %s", TypeName(value)).
					saying("expected str instance, %s found", typeInPython(value))
			}
			return text, err
		})
	}
	return []*Function{
		function("regex", "a regular expression", func(i *Invocation) (any, error) {
			flags := ""
			for n, flag := range []string{"i", "m", "s"} {
				if arg[bool](i, n+1) {
					flags += flag
				}
			}
			return i.run.compile(arg[string](i, 0), flags)
		}, need("pattern", text), may("ignoreCase", boolean, false), may("multiLine", boolean, false), may("dotAll", boolean, false)),
		method("matches", "whether the expression matches somewhere in the string", swapped(matchRegex(true)), need("regexp", regex), need("string", text)),
		method("matches", "whether the expression matches somewhere in the string", matchRegex(true), need("string", text), need("regexp", regex)),
		method("matches", "whether the expression matches somewhere in the string", matchText(true), need("string", text), need("regexp", text)),
		operator("=~", "whether the expression matches", matchRegex(true), text, regex),
		operator("=~", "whether the expression matches", matchText(true), text, text),
		operator("!~", "whether the expression does not match", matchRegex(false), text, regex),
		operator("!~", "whether the expression does not match", matchText(false), text, text),
		method("search", "the first match, or what the selector makes of it; null when there is none", func(i *Invocation) (any, error) {
			r, s := arg[*Regex](i, 0), arg[string](i, 1)
			location, err := r.first(i.run, s)
			if location == nil {
				return nil, err
			}
			return r.selected(i, i.lambda(2), s, location)
		}, need("regexp", regex), need("string", text), mayLazy("selector")),
		method("searchAll", "all matches, or what the selector makes of them", lazily(func(i *Invocation) (any, error) {
			r, s := arg[*Regex](i, 0), arg[string](i, 1)
			locations, err := r.find(i.run, s, -1)
			if err != nil {
				return nil, err
			}
			found := []any{}
			for _, location := range locations {
				value, err := r.selected(i, i.lambda(2), s, location)
				if err != nil {
					return nil, err
				}
				found = append(found, value)
			}
			return found, nil
		}), need("regexp", regex), need("string", text), mayLazy("selector")),
		method("split", "the parts between matches, with the groups of these", split, need("regexp", regex), need("string", text), may("maxSplit", integer, int64(0))),
		method("split", "the parts between matches, with the groups of these", swapped(split), need("string", text), need("regexp", regex), may("maxSplit", integer, int64(0))),
		method("replace", "the string with matches replaced; \\1 is a group", replace, need("regexp", regex), need("string", text), need("repl", text), may("count", integer, int64(0))),
		method("replace", "the string with matches replaced; \\1 is a group", swapped(replace), need("string", text), need("regexp", regex), need("repl", text), may("count", integer, int64(0))),
		method("replaceBy", "the string with matches replaced by what the expression makes of them", replaceBy, need("regexp", regex), need("string", text), lazy("repl"), may("count", integer, int64(0))),
		method("replaceBy", "the string with matches replaced by what the expression makes of them", swapped(replaceBy), need("string", text), need("regexp", regex), lazy("repl"), may("count", integer, int64(0))),
		function("escapeRegex", "the string as an expression that matches nothing else", func(i *Invocation) (any, error) {
			return escapeRegex(arg[string](i, 0)), nil
		}, need("string", text)),
		function("isRegex", "whether it is a regular expression", func(i *Invocation) (any, error) {
			_, ok := i.Args[0].(*Regex)
			return ok, nil
		}, need("value", nil)),
	}
}
