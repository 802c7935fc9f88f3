package yaql

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// matchTime is how long one search with a backtracking pattern may take: such a pattern can take time that is exponential in the text.
const matchTime = time.Second

// backtracking is a pattern with constructs of Python's that Go's expressions do not have: look-around, back references, conditional and
// atomic groups, comments.
type backtracking struct {
	compiled *regexp2.Regexp
	named    []string // of the groups, "" where one has no name; the first is the whole match
}

// compileBacktracking makes a pattern that Go's expressions do not know.
func compileBacktracking(pattern string) (*backtracking, error) {
	numbered, names := numberGroups(pattern)
	compiled, err := regexp2.Compile(numbered, regexp2.None)
	if err != nil {
		return nil, err
	}
	compiled.MatchTimeout = matchTime
	return &backtracking{compiled, names}, nil
}

// numberGroups writes Python's named groups, "(?P<name>…)", as groups without a name, and "(?P=name)" as a reference by number: the library counts groups
// with a name after groups without one, Python counts all in the order in which they begin.
func numberGroups(pattern string) (numbered string, names []string) {
	var b strings.Builder
	names = []string{""}
	class := false
	for at := 0; at < len(pattern); {
		rest := pattern[at:]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			at += 2
			continue
		case class:
			class = rest[0] != ']'
		case rest[0] == '[':
			class = true
			for _, first := range []string{"[^]", "[]"} { // a bracket that comes first is one of the class
				if strings.HasPrefix(rest, first) {
					b.WriteString(first[:len(first)-1] + `\]`)
					rest = ""
					at += len(first)
					break
				}
			}
			if rest == "" {
				continue
			}
		case strings.HasPrefix(rest, "(?P<"):
			if name, _, ended := strings.Cut(rest[4:], ">"); ended {
				names = append(names, name)
				b.WriteByte('(')
				at += 4 + len(name) + 1
				continue
			}
		case strings.HasPrefix(rest, "(?P="):
			if name, _, ended := strings.Cut(rest[4:], ")"); ended {
				for n, known := range names {
					if known == name {
						fmt.Fprintf(&b, `(?:\%d)`, n)
					}
				}
				at += 4 + len(name) + 1
				continue
			}
		case rest[0] == '(' && !strings.HasPrefix(rest, "(?"):
			names = append(names, "")
		}
		b.WriteByte(rest[0])
		at++
	}
	return b.String(), names
}

func (p *backtracking) names() []string { return p.named }

// find returns the places of at most count matches (all when it is negative), as regexp.FindAllStringSubmatchIndex does.
func (p *backtracking) find(r *run, s string, count int) ([][]int, error) {
	var found [][]int
	offset := runeOffsets(s)
	match, err := p.compiled.FindStringMatch(s)
	for ; err == nil && match != nil && len(found) != count; match, err = p.compiled.FindNextMatch(match) {
		location := make([]int, 0, 2*len(p.named))
		for _, group := range match.Groups() {
			if len(group.Captures) == 0 {
				location = append(location, -1, -1)
				continue
			}
			location = append(location, offset(group.Index), offset(group.Index+group.Length))
		}
		found = append(found, location)
		if err := r.matched(location); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, failure("TimeoutError", "the regular expression %q took longer than %s: it has look-around or back references, which can take time without end", p.compiled, matchTime)
	}
	return found, nil
}

// runeOffsets returns where in bytes the rune of that number begins; asked for in ascending order it goes through the text once.
func runeOffsets(s string) func(n int) int {
	runes, bytes := 0, 0
	return func(n int) int {
		if n < runes {
			runes, bytes = 0, 0
		}
		for ; runes < n; runes++ {
			_, size := utf8.DecodeRuneInString(s[bytes:])
			bytes += size
		}
		return bytes
	}
}
