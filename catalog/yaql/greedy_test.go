package yaql

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMatchingEndsWithTheEvaluation(t *testing.T) {
	limit := errors.New("it takes too long")
	for name, data := range map[string]map[string]any{
		"a large pattern": {"pattern": strings.Repeat("(x+x+)+y|", 400), "text": strings.Repeat("x", 100_000)},
		"a longer one":    {"pattern": strings.Repeat("(x+x+)+y|", 2000), "text": strings.Repeat("x", 100_000)},
		"many matches":    {"pattern": "a.*b|a", "text": strings.Repeat("a", 300_000)},
		"many groups":     {"pattern": strings.Repeat("()", 500), "text": strings.Repeat("a", 100_000)},
		"a text of 1 KiB": {"pattern": strings.Repeat("a.*b|", 400) + "a", "text": strings.Repeat("a", 1000)},
		"many backwards":  {"pattern": `a(?=.*b)|(a)(?!\1c)`, "text": strings.Repeat("a", 300_000)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, source := range []string{"regex($.pattern).searchAll($.text).len()", "regex($.pattern).replace($.text, b).len()", "regex($.pattern).split($.text).len()", "$.text =~ $.pattern"} {
				expression, err := Parse(source)
				require.NoError(t, err)
				ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, limit)
				_, _ = expression.Evaluate(ctx, NewScope(Standard(), FromJSON(data), Limits{}))
				cancel()
			}
		})
	}
}

func TestTheTimeOfMatchesCounts(t *testing.T) {
	expression, err := Parse("let(t => $) -> range(9999).where($t =~ '(a|aa)+y').len()")
	require.NoError(t, err)
	_, err = expression.Evaluate(t.Context(), NewScope(Standard(), strings.Repeat("a", 100_000), Limits{Steps: 200_000}))
	require.ErrorContains(t, err, "takes more than 200000 steps")
}

func TestAValueThatIsSmallInMemoryIsNotWrittenWithoutEnd(t *testing.T) {
	doubled := "[1]"
	for range 60 {
		doubled = "let(b => " + doubled + ") -> [$b, $b]"
	}
	for source, ends := range map[string]string{
		"let(t => $.text) -> str(range(9999).select($t).toList())":                    "takes more than",
		"let(t => $.text) -> [range(9999).select($t).toList()].join(',')":             "takes more than",
		"let(t => $.text) -> '{0}'.format(range(9999).select($t).toList())":           "takes more than",
		"let(t => $.text) -> 'a'.replace(dict(a => range(9999).select($t).toList()))": "takes more than",
		doubled:                                "takes more than",
		"let(l => " + doubled + ") -> str($l)": "takes more than",
		"let(l => " + doubled + ", m => " + doubled + ") -> $l = $m":             "",
		"let(l => " + doubled + ", m => " + doubled + ") -> [$l, $m].distinct()": "",
		"let(l => " + doubled + ") -> dict().get($l)":                            "",
		"let(l => " + doubled + ") -> {a => 1}[$l]":                              "there is no key",
	} {
		expression, err := Parse(source)
		require.NoError(t, err, source)
		_, err = expression.Evaluate(t.Context(), NewScope(Standard(), FromJSON(map[string]any{"text": strings.Repeat("x", 1_500_000)}), Limits{}))
		if ends == "" && err == nil {
			continue
		}
		require.ErrorContains(t, err, ends, source)
	}
}
