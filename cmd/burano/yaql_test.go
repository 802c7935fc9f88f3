package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// called runs the program with arguments and returns its output.
func called(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := command()
	command.SetArgs(args)
	command.SetIn(strings.NewReader(in))
	command.SetOut(&out)
	command.SetErr(&out)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestExpressionsAreEvaluatedOnTheCommandLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.yaml")
	require.NoError(t, os.WriteFile(file, []byte("nodes:\n- {name: a, cpu: 4}\n- {name: b, cpu: 8}\n1: one\n"), 0o600))
	for _, c := range []struct {
		name, in, wanted string
		args             []string
	}{
		{"without data", "", "7\n", []string{"1 + 2 * 3"}},
		{"over a YAML file", "", "[\"b\"]\n", []string{"$.get(nodes).where($.cpu > 4).name", "--data", file, "-o", "compact"}},
		{"over JSON from standard input", `{"a": 12345678901234567}`, "12345678901234567\n", []string{"$.a", "--data", "-"}},
		{"indented", "", "{\n  \"a\": [\n    1\n  ]\n}\n", []string{"{a => [1]}"}},
		{"texts without quotes", "", "a <b>\n", []string{"'a <b>'", "-o", "raw"}},
		{"in the old way", "", "[1,2]\n", []string{"tuple(1, 2)", "--legacy", "-o", "compact"}},
		{"dates and sets", "", "[\"2024-02-29T00:00:00Z\",[1]]\n", []string{"[datetime(2024, 2, 29), set(1, 1)]", "-o", "compact"}},
		{"keys of all kinds", "", "{\"1\":\"a\"}\n", []string{"{1 => a}", "-o", "compact"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := called(t, c.in, append([]string{"yaql"}, c.args...)...)
			require.NoError(t, err)
			require.Equal(t, c.wanted, out)
		})
	}
}

func TestAWrongExpressionIsShownWithAMarkBelowItsPlace(t *testing.T) {
	for _, c := range []struct{ expression, wanted string }{
		{"1 + * 2", "column 5: expected a value, found \"*\"\n  1 + * 2\n      ^"},
		{"'ü' +\n\t$.x(", "line 2, column 6: expected a value, found the end\n  \t$.x(\n  \t    ^"},
		{"1 + nothing(2)", "NoFunctionRegisteredException: there is no function nothing\n  1 + nothing(2)\n      ^"},
		{"'a' =~ '(b'", "ValueError: \"(b\" is not a regular expression: missing closing ) at position 1: \"(b\"\n  'a' =~ '(b'\n      ^"},
	} {
		_, err := called(t, "", "yaql", c.expression)
		require.EqualError(t, err, c.wanted, c.expression)
	}
}

func TestDataThatCannotBeReadIsSaid(t *testing.T) {
	_, err := called(t, "a: [", "yaql", "$", "--data", "-")
	require.ErrorContains(t, err, "standard input is neither JSON nor YAML")
	_, err = called(t, "", "yaql", "$", "-o", "xml")
	require.ErrorContains(t, err, `not "xml"`)
}
