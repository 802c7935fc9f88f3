package yaql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind says what a token is. A symbol of one character is that character.
type tokenKind byte

const (
	tokenEnd      tokenKind = iota
	tokenWrong              // no token
	tokenInteger            // 12
	tokenFraction           // 1.5
	tokenString             // 'a', "a" or `a`
	tokenEscaped            // a string with a backslash in it
	tokenWord
	tokenVariable
	tokenSafeDot   // ?.
	tokenMatch     // =~
	tokenNoMatch   // !~
	tokenUnequal   // !=
	tokenAtLeast   // >=
	tokenAtMost    // <=
	tokenFatArrow  // =>
	tokenThinArrow // ->
)

// token is where a token stands in the source, in bytes.
type token struct {
	kind   tokenKind
	offset int
	end    int
}

// symbol is the symbol that a text begins with and how long it is, 0 when it begins with none.
func symbol(text string) (tokenKind, int) {
	if len(text) > 1 {
		switch text[:2] {
		case "?.":
			return tokenSafeDot, 2
		case "=~":
			return tokenMatch, 2
		case "!~":
			return tokenNoMatch, 2
		case "!=":
			return tokenUnequal, 2
		case ">=":
			return tokenAtLeast, 2
		case "<=":
			return tokenAtMost, 2
		case "=>":
			return tokenFatArrow, 2
		case "->":
			return tokenThinArrow, 2
		}
	}
	switch text[0] {
	case '.', '(', ')', '[', ']', '{', '}', ',', '+', '-', '*', '/', '>', '<', '=', ':':
		return tokenKind(text[0]), 1
	}
	return tokenWrong, 0
}

// scan reads the token at an offset or after the white space there; at the end of the source it is the end.
func scan(source string, i int) (token, *SyntaxError) {
	for i < len(source) && (source[i] == ' ' || source[i] == '\t' || source[i] == '\r' || source[i] == '\n') {
		i++
	}
	if i == len(source) {
		return token{tokenEnd, i, i}, nil
	}
	switch c := source[i]; {
	case c == '$':
		return token{tokenVariable, i, wordEnd(source, i+1)}, nil
	case c >= '0' && c <= '9':
		return scanNumber(source, i)
	case c == '\'' || c == '"' || c == '`':
		return scanString(source, i)
	case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z':
		return scanWord(source, i)
	case c >= utf8.RuneSelf:
		r, size := utf8.DecodeRuneInString(source[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			return token{}, lexical(i, "the text is not UTF-8")
		case unicode.IsLetter(r):
			return scanWord(source, i)
		}
		return token{}, lexical(i, "unexpected character %q", r)
	}
	kind, length := symbol(source[i:])
	if length == 0 {
		return token{}, lexical(i, "unexpected character %q", source[i])
	}
	return token{kind, i, i + length}, nil
}

func lexical(offset int, format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: offset, Message: fmt.Sprintf(format, args...), Lexical: true}
}

func scanWord(source string, start int) (token, *SyntaxError) {
	end := wordEnd(source, start)
	if strings.HasPrefix(source[start:end], "__") {
		return token{}, lexical(start, "names that begin with two underscores are not allowed: %q", source[start:end])
	}
	return token{tokenWord, start, end}, nil
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.No, r)
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
	t := token{tokenInteger, start, digits(start)}
	if t.end+1 < len(source) && source[t.end] == '.' && source[t.end+1] >= '0' && source[t.end+1] <= '9' {
		t.kind, t.end = tokenFraction, digits(t.end+1)
	}
	if after := wordEnd(source, t.end); after != t.end {
		return token{}, lexical(start, "a number cannot go on with letters: %q", source[start:after])
	}
	return t, nil
}

// numberOf is the value of a token that is a number.
func numberOf(source string, t token) (value any, failed *SyntaxError) {
	text := source[t.offset:t.end]
	var err error
	if t.kind == tokenFraction {
		value, err = strconv.ParseFloat(text, 64)
	} else {
		value, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		return nil, lexical(t.offset, "the number %s is too large", text)
	}
	return value, nil
}

func scanString(source string, start int) (token, *SyntaxError) {
	kind := tokenString
	for i := start + 1; i < len(source); i++ {
		switch source[i] {
		case source[start]:
			return token{kind, start, i + 1}, nil
		case '\\':
			kind = tokenEscaped
			i++
		}
	}
	return token{}, lexical(start, "the string that begins here has no end")
}

// unquote is the value of a quoted string. In backquotes there is no escape but \`.
func unquote(quoted string) string {
	quote, inner := quoted[0], quoted[1:len(quoted)-1]
	var text strings.Builder
	for i := 0; i < len(inner); {
		switch c := inner[i]; {
		case c != '\\':
			text.WriteByte(c)
			i++
		case quote == '`':
			if inner[i+1] != '`' {
				text.WriteByte(c)
			}
			text.WriteByte(inner[i+1])
			i += 2
		default:
			i += unescape(&text, inner[i:])
		}
	}
	return text.String()
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
