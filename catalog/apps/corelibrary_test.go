package apps_test

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

//go:embed testdata/core-library.txt
var coreLibrary string

// TestTheCoreLibraryIsComplete checks that every name that a package of Murano may call, override, or give exists. A method may have more arguments behind
// Murano's, which need no value.
func TestTheCoreLibraryIsComplete(t *testing.T) {
	classes := demoClasses(t)
	var class *muranopl.Class
	counted := 0
	for line := range strings.Lines(coreLibrary) {
		line = strings.TrimRight(line, "\n")
		switch entry := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "#"):
		case entry == line:
			found, err := classes.Class(t.Context(), line, "")
			require.NoError(t, err, line)
			class = found
		case strings.HasPrefix(entry, "properties: "):
			for name := range strings.SplitSeq(strings.TrimPrefix(entry, "properties: "), ", ") {
				assert.NotEmpty(t, class.Property(name), "%s has no property %s", class.Name, name)
				counted++
			}
		case strings.HasPrefix(entry, "."), strings.HasPrefix(entry, "initialize("):
			counted++ // each class may have them
		default:
			checkMethod(t, class, entry)
			counted++
		}
	}
	require.Greater(t, counted, 300, "the list was read")
}

// checkMethod takes a method as name(argument, argument).
func checkMethod(t *testing.T, class *muranopl.Class, entry string) {
	t.Helper()
	name, list, _ := strings.Cut(strings.TrimSuffix(entry, ")"), "(")
	wanted := []string{}
	if list != "" {
		wanted = strings.Split(list, ", ")
	}
	method, err := class.Method(name)
	if !assert.NoError(t, err, class.Name) || !assert.NotNil(t, method, "%s has no method %s", class.Name, name) {
		return
	}
	has := make([]string, len(method.Arguments))
	for i, argument := range method.Arguments {
		has[i] = argument.Name
	}
	if !assert.Equal(t, wanted, slices.Clip(has[:min(len(wanted), len(has))]), "%s.%s(%s) has the arguments (%s)", class.Name, name, list, strings.Join(has, ", ")) {
		return
	}
	for _, more := range method.Arguments[len(wanted):] {
		assert.True(t, more.Default != nil || more.Usage != muranopl.Standard, "%s.%s asks for %s, which Murano's has not", class.Name, name, more.Name)
	}
}
