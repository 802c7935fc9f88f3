package door

import (
	"iter"
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"
)

// Go's regular expressions take time in proportion to the text and to the compiled program
// (https://swtch.com/~rsc/regexp/regexp3.html), so the product of both bounds the time of one match.
const (
	maxPattern      = 4 << 10
	maxInstructions = 4_000
	// maxSteps is that product: about a third of a second, on a processor of 2020.
	maxSteps = 50_000_000
)

// Expression is a regular expression of a stranger. Fits goes before a match of a text that a stranger sent.
type Expression struct {
	*regexp.Regexp
	instructions int
	behind       func() *regexp.Regexp // the expression after any character; nil when the text before a match does not matter
}

// Pattern compiles a regular expression of a stranger. A pattern of more than 4 KiB, or of more than 4,000 instructions when its repetitions are
// written out, is an *Exceeded error.
func Pattern(pattern string) (*Expression, error) {
	if len(pattern) > maxPattern {
		return nil, &Exceeded{What: "the regular expression", Bound: Bytes(maxPattern)}
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxInstructions {
		return nil, &Exceeded{What: "the regular expression", Bound: "4000 instructions, repetitions written out"}
	}
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	e := &Expression{Regexp: compiled, instructions: len(program.Inst)}
	for _, one := range program.Inst {
		const before = syntax.EmptyBeginLine | syntax.EmptyBeginText | syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
		if one.Op == syntax.InstEmptyWidth && syntax.EmptyOp(one.Arg)&before != 0 {
			behind := `(?s:.)(?:` + parsed.String() + `)`
			if _, err := syntax.Parse(behind, syntax.Perl); err != nil {
				return nil, err // a level deeper is too deep
			}
			e.behind = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(behind) })
			break
		}
	}
	return e, nil
}

// Fits reports an *Exceeded error where one match of a text may take more than about a third of a second.
func (e *Expression) Fits(text string) error {
	if longest := int64(maxSteps / e.instructions); int64(len(text)) > longest {
		return &Exceeded{What: "the text that is matched with the regular expression", Bound: Bytes(longest)}
	}
	return nil
}

// FitsAll reports whether all matches of a text together take no longer than one may: their time grows with the square of the text.
func (e *Expression) FitsAll(text string) bool {
	return len(text)*len(text) <= maxSteps/e.instructions
}

// All finds the places of matches and their groups, as FindAllStringSubmatchIndex does, which takes time in proportion to the square of the text. Here
// each place is found when it is asked for, within the time of one match. The error is that of Fits.
func (e *Expression) All(text string) iter.Seq2[[]int, error] {
	return func(yield func([]int, error) bool) {
		if err := e.Fits(text); err != nil {
			yield(nil, err)
			return
		}
		for from, former := 0, -1; from <= len(text); {
			place := e.next(text, from)
			if place == nil {
				return
			}
			adjacent := false // an empty match behind another one is none
			if place[1] > from {
				from = place[1]
			} else {
				adjacent = place[0] == former
				_, width := utf8.DecodeRuneInString(text[from:])
				from += max(width, 1)
			}
			former = place[1]
			if !adjacent && !yield(place, nil) {
				return
			}
		}
	}
}

// next finds the first match that begins at or behind a place.
func (e *Expression) next(text string, from int) []int {
	shift := from
	expression := e.Regexp
	if from > 0 && e.behind != nil {
		_, width := utf8.DecodeLastRuneInString(text[:from])
		shift -= width
		expression = e.behind()
	}
	place := expression.FindStringSubmatchIndex(text[shift:])
	if place == nil {
		return nil
	}
	for i := range place {
		if place[i] >= 0 {
			place[i] += shift
		}
	}
	if shift < from {
		_, width := utf8.DecodeRuneInString(text[place[0]:])
		place[0] += width
	}
	return place
}
