package yaql

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a token. A symbol of one character is that character.
type tokenKind byte

const (
	tokenEnd      tokenKind = iota
	tokenWrong              // no token
	tokenInteger            // 12
	tokenFraction           // 1.5
	tokenString             // 'a', "a" or `a`
	tokenEscaped            // a string with a backslash in it
	tokenVariable
	tokenWord // a word that is none of the following
	tokenName // such a word with a parenthesis right after it
	tokenTrue
	tokenFalse
	tokenNull
	tokenNot
	tokenAnd
	tokenOr
	tokenIn
	tokenIs
	tokenMod
	tokenSafeDot   // ?.
	tokenMatch     // =~
	tokenNoMatch   // !~
	tokenUnequal   // !=
	tokenAtLeast   // >=
	tokenAtMost    // <=
	tokenFatArrow  // =>
	tokenThinArrow // ->
)

// kinds is how many kinds of tokens there are at most.
const kinds = 128

// role is the most likely node of a token.
type role byte

const (
	noNode role = iota
	aLiteral
	aKeyword
	aVariable
	aCall
	aBinary
	aMapping
	aMap // and an argument
	anArgument
	roles
)

// roleOf the tokens: by it the parser knows beforehand for how many nodes it needs room.
var roleOf = [kinds]role{
	tokenInteger: aLiteral, tokenFraction: aLiteral, tokenString: aLiteral, tokenEscaped: aLiteral,
	tokenTrue: aLiteral, tokenFalse: aLiteral, tokenNull: aLiteral,
	tokenWord: aKeyword, tokenVariable: aVariable, tokenName: aCall, tokenFatArrow: aMapping,
	'{': aMap, '(': anArgument, '[': anArgument, ',': anArgument,
	'.': aBinary, tokenSafeDot: aBinary, '+': aBinary, '-': aBinary, '*': aBinary, '/': aBinary, tokenMod: aBinary,
	'=': aBinary, '<': aBinary, '>': aBinary, tokenUnequal: aBinary, tokenAtLeast: aBinary, tokenAtMost: aBinary,
	tokenAnd: aBinary, tokenOr: aBinary, tokenIn: aBinary, tokenIs: aBinary, tokenMatch: aBinary, tokenNoMatch: aBinary,
	tokenThinArrow: aBinary, ':': aBinary,
}

// token is the place of a token in the source, in bytes.
type token struct {
	kind        tokenKind
	offset, end int32
}

// tokens are the tokens of a source.
type tokens struct {
	source string
	few    [64]token
	more   []token      // tokens that do not fit into few
	count  [roles]int   // how many there are of a role
	wrong  *SyntaxError // why they end before the source does
}

// at returns the token of that number, which is not behind the end.
func (s *tokens) at(number int) token {
	if number < len(s.few) {
		return s.few[number]
	}
	return s.more[number-len(s.few)]
}

// read reads tokens up to the end of the source or to the first place where there is none.
func (s *tokens) read() {
	t := token{kind: tokenWord}
	for number := 0; t.kind != tokenEnd && t.kind != tokenWrong; number++ {
		t = s.scan(int(t.end))
		if number < len(s.few) {
			s.few[number] = t
		} else {
			s.more = append(s.more, t)
		}
		s.count[roleOf[t.kind]]++
	}
}

// class is the class of a token's first byte.
type class byte

const (
	noToken class = iota
	space
	letter // or underscore
	digit
	dollar
	quote
	symbol     // of one character
	longSymbol // or of two
	onlyLong   // a symbol of two characters
	beyondASCII
)

var classes = func() (of [256]class) {
	for c := range of {
		if c >= utf8.RuneSelf {
			of[c] = beyondASCII
		}
	}
	for class, members := range map[class]string{
		space: " \t\r\n", letter: "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", digit: "0123456789", dollar: "$", quote: "'\"`",
		symbol: ".()[]{},+*/:", longSymbol: "-<=>", onlyLong: "?!",
	} {
		for _, c := range []byte(members) {
			of[c] = class
		}
	}
	return of
}()

// scan reads the token at an offset or after the white space there; at the end of the source it is the end.
func (s *tokens) scan(i int) token {
	source := s.source
	for i < len(source) && classes[source[i]] == space {
		i++
	}
	if i == len(source) {
		return token{tokenEnd, int32(i), int32(i)}
	}
	switch c := source[i]; classes[c] {
	case symbol:
		return token{tokenKind(c), int32(i), int32(i + 1)}
	case longSymbol, onlyLong:
		if i+1 < len(source) {
			if kind := pair(c, source[i+1]); kind != tokenWrong {
				return token{kind, int32(i), int32(i + 2)}
			}
		}
		if classes[c] == longSymbol {
			return token{tokenKind(c), int32(i), int32(i + 1)}
		}
	case dollar:
		return token{tokenVariable, int32(i), int32(wordEnd(source, i+1))}
	case letter:
		return s.word(i)
	case digit:
		return s.number(i)
	case quote:
		return s.quoted(i)
	case beyondASCII:
		r, size := utf8.DecodeRuneInString(source[i:])
		switch {
		case r == utf8.RuneError && size <= 1:
			return s.fail(i, "the text is not UTF-8")
		case unicode.IsLetter(r):
			return s.word(i)
		}
		return s.fail(i, "unexpected character %q", r)
	}
	return s.fail(i, "unexpected character %q", source[i])
}

// pair is the symbol that two characters are.
func pair(a, b byte) tokenKind {
	switch [2]byte{a, b} {
	case [2]byte{'?', '.'}:
		return tokenSafeDot
	case [2]byte{'=', '~'}:
		return tokenMatch
	case [2]byte{'!', '~'}:
		return tokenNoMatch
	case [2]byte{'!', '='}:
		return tokenUnequal
	case [2]byte{'>', '='}:
		return tokenAtLeast
	case [2]byte{'<', '='}:
		return tokenAtMost
	case [2]byte{'=', '>'}:
		return tokenFatArrow
	case [2]byte{'-', '>'}:
		return tokenThinArrow
	}
	return tokenWrong
}

func lexical(offset int, format string, args ...any) *SyntaxError {
	return &SyntaxError{Offset: offset, Message: fmt.Sprintf(format, args...), Lexical: true}
}

func (s *tokens) fail(offset int, format string, args ...any) token {
	s.wrong = lexical(offset, format, args...)
	return token{kind: tokenWrong, offset: int32(offset)}
}

func (s *tokens) word(start int) token {
	end := wordEnd(s.source, start)
	word := s.source[start:end]
	if strings.HasPrefix(word, "__") {
		return s.fail(start, "names that begin with two underscores are not allowed: %q", word)
	}
	kind := wordKind(word)
	if kind == tokenWord && end < len(s.source) && s.source[end] == '(' {
		kind = tokenName
	}
	return token{kind, int32(start), int32(end)}
}

// wordKind distinguishes keywords from other words.
func wordKind(word string) tokenKind {
	switch word {
	case "true":
		return tokenTrue
	case "false":
		return tokenFalse
	case "null":
		return tokenNull
	case "not":
		return tokenNot
	case "and":
		return tokenAnd
	case "or":
		return tokenOr
	case "in":
		return tokenIn
	case "is":
		return tokenIs
	case "mod":
		return tokenMod
	}
	return tokenWord
}

func isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.No, r)
}

func wordEnd(source string, i int) int {
	for i < len(source) {
		switch classes[source[i]] {
		case letter, digit:
			i++
		case beyondASCII:
			r, size := utf8.DecodeRuneInString(source[i:])
			if !isWord(r) {
				return i
			}
			i += size
		default:
			return i
		}
	}
	return i
}

func (s *tokens) number(start int) token {
	kind, end := tokenInteger, digitsEnd(s.source, start)
	if end+1 < len(s.source) && s.source[end] == '.' && classes[s.source[end+1]] == digit {
		kind, end = tokenFraction, digitsEnd(s.source, end+1)
	}
	if after := wordEnd(s.source, end); after != end {
		return s.fail(start, "a number cannot go on with letters: %q", s.source[start:after])
	}
	return token{kind, int32(start), int32(end)}
}

func digitsEnd(source string, i int) int {
	for i < len(source) && classes[source[i]] == digit {
		i++
	}
	return i
}

// numberOf is the value of a token that is a number.
func numberOf(text string, t token) (any, *SyntaxError) {
	if t.kind == tokenInteger && len(text) <= 18 {
		value := int64(0)
		for i := range len(text) {
			value = 10*value + int64(text[i]-'0')
		}
		return value, nil
	}
	if t.kind == tokenFraction {
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			return value, nil
		}
	} else if value, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value, nil
	}
	return nil, lexical(int(t.offset), "the number %s is too large", text)
}

func (s *tokens) quoted(start int) token {
	kind := tokenString
	for i := start + 1; i < len(s.source); i++ {
		switch s.source[i] {
		case s.source[start]:
			return token{kind, int32(start), int32(i + 1)}
		case '\\':
			kind = tokenEscaped
			i++
		}
	}
	return s.fail(start, "the string that begins here has no end")
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

// unescape writes the meaning of the escape sequence at the beginning of s and returns its length. An unknown one means itself, as in Python.
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
