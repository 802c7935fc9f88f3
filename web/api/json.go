package api

import (
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
)

// checkJSON refuses JSON that would take much more memory than its text, before it is decoded. It refuses JSON nested deeper than a model may be, or
// with more than this number of values, including names of members, which it counts. The decoder checks the syntax.
func checkJSON(text []byte, values int) (count int, err error) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
			continue
		case '}', ']':
			depth--
			continue
		case '{', '[':
			if depth++; depth > orchestrator.MaxDepth {
				return 0, fault.New(fault.Invalid, "The request body is nested deeper than %d levels (at byte %d)", orchestrator.MaxDepth, i)
			}
		case '"':
			i = endOfText(text, i+1)
		default: // a number, true, false, null, or no JSON
			i = endOfWord(text, i+1) - 1
		}
		if count++; count > values {
			return 0, fault.New(fault.TooLarge, "The request body has more than %d values, names of members among them; send it in parts", values)
		}
	}
	return count, nil
}

// endOfText is the place of the quote that ends a text.
func endOfText(text []byte, i int) int {
	for ; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

// endOfWord is the place after a number or a name.
func endOfWord(text []byte, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\r', '\n', ',', ':', '}', ']', '{', '[', '"':
			return i
		}
	}
	return i
}
