package yaql

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed is a line of the reference's list of functions.
type listed struct {
	line string
	name string // as it is written in expressions
	kind Kind
}

// inGrammar are the operators of the evaluator itself, because they decide which of their operands are evaluated.
var inGrammar = []string{".", "?.", "->", "and", "or", "not", "=", "!=", "=>"}

// The list lies beside the project's root; without it the test logs this and passes.
func TestEveryFunctionOfTheReferenceIsThere(t *testing.T) {
	path := filepath.Join(filepath.Dir(projectRoot(t)), "shared", "reference", "yaql-functions.txt")
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the list of functions is not there: %s", path)
	}
	require.NoError(t, err)
	defer file.Close()
	module, found := "", 0
	var missing []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if after, ok := strings.CutPrefix(line, "## yaql/standard_library/"); ok {
			module = strings.TrimSuffix(after, ".py")
			continue
		}
		entry, ok := parseListed(line)
		if !ok || module == "yaqlized" { // access to Python's objects: the host's Dialect is that here
			continue
		}
		functions := Standard()
		if module == "legacy" {
			functions = Legacy()
		}
		if entry.isIn(functions) {
			found++
		} else {
			missing = append(missing, module+": "+line)
		}
	}
	require.Empty(t, missing)
	require.Greater(t, found, 250)
}

func (l listed) isIn(functions *Functions) bool {
	if l.kind == AsOperator {
		for _, operator := range inGrammar {
			if operator == l.name {
				return true
			}
		}
	}
	return len(functions.named(l.name, l.kind)) > 0
}

var (
	documented = regexp.MustCompile(`:yaql:(.*?)\s*\|`)
	signature  = regexp.MustCompile(`:signature: ?(.*)$`)
	methodCall = regexp.MustCompile(`^[\w.]+\.(\w+)\(`)
	attribute  = regexp.MustCompile(`^\w+\.(\w+)$`)
)

// parseListed reads a line such as "- first  method ( collection, default ) | :yaql:first | :signature: collection.first(default)".
// Lines without ":yaql:" are Python's own helpers.
func parseListed(line string) (listed, bool) {
	name := documented.FindStringSubmatch(line)
	if name == nil || !strings.HasPrefix(line, "- ") {
		return listed{}, false
	}
	l := listed{line: line, name: name[1], kind: AsBoth}
	form := ""
	if s := signature.FindStringSubmatch(line); s != nil {
		form = strings.TrimSpace(s[1])
	}
	rest, isOperator := strings.CutPrefix(l.name, "operator ")
	switch {
	case l.name == "getContextData": // the variables themselves
		return listed{}, false
	case l.name == "call" && strings.Contains(line, "#call"): // the call of a value, by grammar
		return listed{}, false
	case isOperator:
		l.kind, l.name = AsOperator, strings.TrimPrefix(rest, "unary ")
		if rest == "indexer" {
			l.name = "[]"
		}
	case strings.HasPrefix(l.name, "property "):
		l.kind = AsProperty
		l.name = attribute.FindStringSubmatch(form)[1]
	default:
		if call := methodCall.FindStringSubmatch(form); call != nil {
			l.kind, l.name = AsMethod, call[1]
		} else {
			l.kind = AsFunction
		}
	}
	return l, true
}
