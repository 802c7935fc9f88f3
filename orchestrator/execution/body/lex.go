package body

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind int

const (
	endOfText kind = iota
	newline
	indent
	dedent
	nameToken
	number
	text
	operator
)

type token struct {
	kind  kind
	text  string // of names and operators
	value any    // of numbers and texts
	line  int
}

// operators, the longer ones first.
var operators = []string{"**=", "//=", "==", "!=", "<>", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "**", "//", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=",
	"<", ">", "+", "-", "*", "/", "%"}

type lexer struct {
	rest   string
	line   int
	open   int   // brackets that are open: lines do not end within them
	levels []int // of indentation
	tokens []token
}

// tokenise cuts a body into tokens. Its least indented line has no indentation.
func tokenise(source string) (tokens []token, err error) {
	defer recovered(&err)
	l := &lexer{rest: unindented(source), line: 1, levels: []int{0}}
	for l.rest != "" {
		l.logicalLine()
	}
	for range l.levels[1:] {
		l.add(token{kind: dedent})
	}
	l.add(token{kind: endOfText})
	return l.tokens, nil
}

func unindented(source string) string {
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\t", "    "), "\n")
	least := -1
	for _, line := range lines {
		if trimmed := strings.TrimLeft(line, " "); trimmed != "" && trimmed[0] != '#' {
			if width := len(line) - len(trimmed); least < 0 || width < least {
				least = width
			}
		}
	}
	for n, line := range lines {
		lines[n] = line[min(max(least, 0), len(line)-len(strings.TrimLeft(line, " "))):]
	}
	return strings.Join(lines, "\n") + "\n"
}

func (l *lexer) add(t token) {
	t.line = l.line
	l.tokens = append(l.tokens, t)
}

// logicalLine reads indentation and tokens up to the end of a line, or of the last line that brackets join.
func (l *lexer) logicalLine() {
	trimmed := strings.TrimLeft(l.rest, " ")
	width := len(l.rest) - len(trimmed)
	l.rest = trimmed
	if l.rest == "" || l.rest[0] == '\n' || l.rest[0] == '#' {
		l.skipLine()
		return
	}
	switch last := l.levels[len(l.levels)-1]; {
	case width > last:
		l.levels = append(l.levels, width)
		l.add(token{kind: indent})
		if len(l.levels) > maxDepth {
			syntax(l.line, "blocks are nested too deeply")
		}
	case width < last:
		for l.levels[len(l.levels)-1] > width {
			l.levels = l.levels[:len(l.levels)-1]
			l.add(token{kind: dedent})
		}
		if l.levels[len(l.levels)-1] != width {
			syntax(l.line, "unindent does not match any outer indentation level")
		}
	}
	for {
		l.rest = strings.TrimLeft(l.rest, " \f")
		switch {
		case l.rest == "":
			if l.open > 0 {
				syntax(l.line, "unexpected end of the body: a bracket is not closed")
			}
			l.add(token{kind: newline})
			return
		case l.rest[0] == '#':
			l.rest = l.rest[strings.IndexByte(l.rest, '\n'):]
		case strings.HasPrefix(l.rest, "\\\n"):
			l.rest = l.rest[2:]
			l.line++
		case l.rest[0] == '\n':
			l.rest = l.rest[1:]
			if l.open == 0 {
				l.add(token{kind: newline})
				l.line++
				return
			}
			l.line++
		default:
			l.token()
		}
	}
}

func (l *lexer) skipLine() {
	_, l.rest, _ = strings.Cut(l.rest, "\n")
	l.line++
}

func (l *lexer) token() {
	if quoted := strings.TrimLeft(l.rest[:min(3, len(l.rest))], "rRuUbB"); quoted != "" && (quoted[0] == '"' || quoted[0] == '\'') {
		prefix := strings.ToLower(l.rest[:min(3, len(l.rest))-len(quoted)])
		l.rest = l.rest[len(prefix):]
		l.text(strings.Contains(prefix, "r"))
		return
	}
	r, _ := utf8.DecodeRuneInString(l.rest)
	switch {
	case r == '_' || unicode.IsLetter(r):
		end := strings.IndexFunc(l.rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		l.add(token{kind: nameToken, text: l.rest[:end]})
		l.rest = l.rest[end:]
		return
	case r >= '0' && r <= '9', r == '.' && len(l.rest) > 1 && l.rest[1] >= '0' && l.rest[1] <= '9':
		l.number()
		return
	}
	for _, one := range operators {
		if strings.HasPrefix(l.rest, one) {
			switch one {
			case "(", "[", "{":
				if l.open++; l.open > maxDepth {
					syntax(l.line, "brackets are nested too deeply")
				}
			case ")", "]", "}":
				l.open = max(l.open-1, 0)
			}
			l.add(token{kind: operator, text: one})
			l.rest = l.rest[len(one):]
			return
		}
	}
	syntax(l.line, "%q is not known here", string(r))
}

func (l *lexer) number() {
	end := 0
	for end < len(l.rest) && (l.rest[end] == '.' || l.rest[end] == '_' || isLetterOrDigit(l.rest[end]) ||
		(l.rest[end] == '+' || l.rest[end] == '-') && (l.rest[end-1] == 'e' || l.rest[end-1] == 'E') && !strings.HasPrefix(l.rest, "0x")) {
		end++
	}
	literal := strings.TrimRight(strings.ReplaceAll(l.rest[:end], "_", ""), "lL")
	l.rest = l.rest[end:]
	base := 0
	if len(literal) > 1 && literal[0] == '0' && literal[1] >= '0' && literal[1] <= '9' {
		base = 8 // of Python 2
	}
	if n, err := strconv.ParseInt(literal, base, 64); err == nil {
		l.add(token{kind: number, value: n})
		return
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		syntax(l.line, "%q is no number", literal)
	}
	l.add(token{kind: number, value: f})
}

func isLetterOrDigit(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// text reads a quoted text.
func (l *lexer) text(raw bool) {
	quote := l.rest[:1]
	if strings.HasPrefix(l.rest, strings.Repeat(quote, 3)) {
		quote = l.rest[:3]
	}
	l.rest = l.rest[len(quote):]
	var b strings.Builder
	line := l.line
	for !strings.HasPrefix(l.rest, quote) {
		switch {
		case l.rest == "" || l.rest[0] == '\n' && len(quote) == 1:
			syntax(line, "a text is not closed")
		case l.rest[0] == '\\' && len(l.rest) > 1:
			l.escape(&b, raw)
			continue
		case l.rest[0] == '\n':
			l.line++
		}
		b.WriteByte(l.rest[0])
		l.rest = l.rest[1:]
	}
	l.rest = l.rest[len(quote):]
	l.add(token{kind: text, value: b.String()})
}

var escapes = map[byte]string{'\\': "\\", '\'': "'", '"': "\"", 'n': "\n", 't': "\t", 'r': "\r", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00", '\n': ""}

func (l *lexer) escape(b *strings.Builder, raw bool) {
	following := l.rest[1]
	if following == '\n' {
		l.line++
	}
	if raw {
		b.WriteString(l.rest[:2])
		l.rest = l.rest[2:]
		return
	}
	if digits, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[following]; ok && len(l.rest) >= 2+digits {
		if code, err := strconv.ParseUint(l.rest[2:2+digits], 16, 32); err == nil {
			b.WriteRune(rune(code))
			l.rest = l.rest[2+digits:]
			return
		}
		syntax(l.line, "\\%c needs %d hexadecimal digits", following, digits)
	}
	if value, known := escapes[following]; known {
		b.WriteString(value)
	} else {
		b.WriteString(l.rest[:2])
	}
	l.rest = l.rest[2:]
}
