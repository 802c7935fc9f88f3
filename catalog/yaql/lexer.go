package yaql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenEnd      tokenKind = iota
	tokenNumber             // value
	tokenString             // value
	tokenWord               // text
	tokenVariable           // text without $
	tokenSymbol             // text
)

type token struct {
	kind   tokenKind
	text   string
	value  any
	offset int
	end    int
}

func (t token) String() string {
	if t.kind == tokenEnd {
		return "the end"
	}
	return strconv.Quote(t.text)
}

// symbol is how long the symbol is that the text begins with, 0 when it begins with none.
func symbol(text string) int {
	if len(text) > 1 {
		switch text[:2] {
		case "?.", "=~", "!~", "!=", ">=", "<=", "=>", "->":
			return 2
		}
	}
	switch text[0] {
	case '.', '(', ')', '[', ']', '{', '}', ',', '+', '-', '*', '/', '>', '<', '=', ':':
		return 1
	}
	return 0
}

// scan cuts the source into tokens, the last of which is the end.
func scan(source string) ([]token, *SyntaxError) {
	tokens := make([]token, 0, len(source)/3+4)
	for i := 0; ; {
		for i < len(source) && (source[i] == ' ' || source[i] == '\t' || source[i] == '\r' || source[i] == '\n') {
			i++
		}
		if i == len(source) {
			return append(tokens, token{kind: tokenEnd, offset: i, end: i}), nil
		}
		t, err := scanToken(source, i)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, t)
		i = t.end
	}
}

func scanToken(source string, start int) (token, *SyntaxError) {
	r, size := utf8.DecodeRuneInString(source[start:])
	switch {
	case r == utf8.RuneError && size <= 1:
		return token{}, lexical(start, "the text is not UTF-8")
	case r == '\'' || r == '"' || r == '`':
		return scanString(source, start, byte(r))
	case r == '$':
		end := wordEnd(source, start+1)
		return token{kind: tokenVariable, text: source[start+1 : end], offset: start, end: end}, nil
	case r >= '0' && r <= '9':
		return scanNumber(source, start)
	case isWordStart(r):
		end := wordEnd(source, start)
		text := source[start:end]
		if strings.HasPrefix(text, "__") {
			return token{}, lexical(start, "names that begin with two underscores are not allowed: %q", text)
		}
		return token{kind: tokenWord, text: text, offset: start, end: end}, nil
	}
	if length := symbol(source[start:]); length > 0 {
		return token{kind: tokenSymbol, text: source[start : start+length], offset: start, end: start + length}, nil
	}
	return token{}, lexical(start, "unexpected character %q", r)
}

func lexical(offset int, format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: offset, Message: fmt.Sprintf(format, args...), Lexical: true}
}

func isWordStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isWord(r rune) bool {
	return isWordStart(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.No, r)
}

func wordEnd(source string, i int) int {
	for i < len(source) {
		if c := source[i]; c < utf8.RuneSelf {
			if c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				break
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(source[i:])
		if !isWord(r) {
			break
		}
		i += size
	}
	return i
}

func scanNumber(source string, start int) (token, *SyntaxError) {
	digits := func(i int) int {
		for i < len(source) && source[i] >= '0' && source[i] <= '9' {
			i++
		}
		return i
	}
	end := digits(start)
	fraction := false
	if end+1 < len(source) && source[end] == '.' && source[end+1] >= '0' && source[end+1] <= '9' {
		end, fraction = digits(end+1), true
	}
	text := source[start:end]
	if after := wordEnd(source, end); after != end {
		return token{}, lexical(start, "a number cannot go on with letters: %q", source[start:after])
	}
	t := token{kind: tokenNumber, text: text, offset: start, end: end}
	var err error
	if fraction {
		t.value, err = strconv.ParseFloat(text, 64)
	} else {
		t.value, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return token{}, lexical(start, "the number %s is too large", text)
	}
	return t, nil
}

// scanString reads a quoted string. Backquoted ones know no escape but \`.
func scanString(source string, start int, quote byte) (token, *SyntaxError) {
	if end := strings.IndexByte(source[start+1:], quote); end >= 0 && strings.IndexByte(source[start+1:start+1+end], '\\') < 0 {
		end += start + 1
		return token{kind: tokenString, text: source[start : end+1], value: source[start+1 : end], offset: start, end: end + 1}, nil
	}
	var text strings.Builder
	for i := start + 1; i < len(source); {
		c := source[i]
		switch {
		case c == quote:
			return token{kind: tokenString, text: source[start : i+1], value: text.String(), offset: start, end: i + 1}, nil
		case c != '\\' || i+1 == len(source):
			text.WriteByte(c)
			i++
		case quote == '`':
			if source[i+1] != '`' {
				text.WriteByte(c)
			}
			text.WriteByte(source[i+1])
			i += 2
		default:
			i += unescape(&text, source[i:])
		}
	}
	return token{}, lexical(start, "the string that begins here has no end")
}

// unescape writes what the escape sequence at the beginning of s stands for and returns its length. An unknown one stands for
// itself, as in Python.
func unescape(text *strings.Builder, s string) int {
	c := s[1]
	if at := strings.IndexByte(`\'"abfnrtv`, c); at >= 0 {
		text.WriteByte("\\'\"\a\b\f\n\r\t\v"[at])
		return 2
	}
	length := 0
	switch c {
	case 'x':
		length = 2
	case 'u':
		length = 4
	case 'U':
		length = 8
	}
	if length > 0 && len(s) >= 2+length {
		if code, err := strconv.ParseUint(s[2:2+length], 16, 32); err == nil && code <= unicode.MaxRune {
			text.WriteRune(rune(code))
			return 2 + length
		}
	}
	if c >= '0' && c <= '7' {
		end := 2
		for end < len(s) && end < 4 && s[end] >= '0' && s[end] <= '7' {
			end++
		}
		code, _ := strconv.ParseUint(s[1:end], 8, 32)
		text.WriteRune(rune(code))
		return end
	}
	text.WriteString(s[:2])
	return 2
}
