package door_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/door"
)

func TestPatternsWhoseRepetitionsMultiplyAreRefused(t *testing.T) {
	_, err := door.Pattern(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	require.NoError(t, err)
	_, err = door.Pattern(strings.Repeat("(a|b)", 1000))
	require.True(t, door.IsExceeded(err))
	_, err = door.Pattern(`((a{30}){30})x{90}`)
	require.NoError(t, err)
	_, err = door.Pattern(strings.Repeat(`[a-z]{0,999}`, 5))
	require.True(t, door.IsExceeded(err))
	_, err = door.Pattern(strings.Repeat("x", 5000))
	require.True(t, door.IsExceeded(err))
}

func TestATextHasABoundByThePattern(t *testing.T) {
	small, err := door.Pattern(`^[a-z]+$`)
	require.NoError(t, err)
	require.NoError(t, small.Fits(strings.Repeat("a", 1<<20)))
	large, err := door.Pattern(strings.Repeat(`(x+x+)+y|`, 400))
	require.NoError(t, err)
	text := strings.Repeat("x", 100_000)
	require.ErrorContains(t, large.Fits(text), "the text that is matched with the regular expression has more than")
	for _, err := range large.All(text) {
		require.True(t, door.IsExceeded(err))
	}
}

// TestMatchesAreThoseOfGo compares All with Go's matches.
func TestMatchesAreThoseOfGo(t *testing.T) {
	texts := []string{"", "a", "aaa", "ab ab\nba", "x1 y22\n\nz", "äöü aö\xffa", "\xff\xfe", "a,b,,c", "foo bar_baz", "aXbXc"}
	for _, pattern := range []string{"", "a", "a*", "a*?", "^", "$", "^a", "(?m)^", "(?m)^.", "(?m)$", `\b`, `\B`, `\bb?`, `\w+\b`, "(a)|(b)", "(a|ab)(c|b)?", ".", "(?s).", `\A.`, `.\z`, "ö", `[^,]*`,
		"(?i)x", `(?P<n>\d)(\d)?`, "(^a|b)", "b|^a*", "(?:^|,)([^,]*)", `^\Qa b`, `(?i)\bX`} {
		compiled, err := door.Pattern(pattern)
		require.NoError(t, err, pattern)
		for _, text := range texts {
			var found [][]int
			for place, err := range compiled.All(text) {
				require.NoError(t, err)
				found = append(found, place)
			}
			require.Equal(t, compiled.FindAllStringSubmatchIndex(text, -1), found, "%q in %q", pattern, text)
		}
	}
}

func FuzzMatchesAreThoseOfGo(f *testing.F) {
	f.Add(`\b(a*)^`, "ab a")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		compiled, err := door.Pattern(pattern)
		if err != nil || len(text) > 1000 {
			return
		}
		var found [][]int
		for place := range compiled.All(text) {
			found = append(found, place)
		}
		require.Equal(t, compiled.FindAllStringSubmatchIndex(text, -1), found)
	})
}

func TestMatchesThatTakeTheSquareOfATextCanBeLeft(t *testing.T) {
	compiled, err := door.Pattern(`a.*b|a`)
	require.NoError(t, err)
	count := 0
	for range compiled.All(strings.Repeat("a", 1_000_000)) {
		if count++; count == 3 {
			break
		}
	}
	require.Equal(t, 3, count)
}
