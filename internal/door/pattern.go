package door

import (
	"regexp"
	"regexp/syntax"
)

// Go's regular expressions take time in proportion to the text and to the compiled program
// (https://swtch.com/~rsc/regexp/regexp3.html), so a bound of the program is one of the time for each byte of a text.
const (
	maxPattern      = 4 << 10
	maxInstructions = 4_000
)

// Pattern compiles a regular expression of a stranger. A pattern of more than 4 KiB, or of more than 4,000 instructions when its repetitions are
// written out, is an *Exceeded error.
func Pattern(pattern string) (*regexp.Regexp, error) {
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
	return regexp.Compile(pattern)
}
