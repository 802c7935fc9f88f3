package muranopl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

func TestWhatAClassMayInheritIsBounded(t *testing.T) {
	chain := &testPackage{name: "org.chain", version: "1.0.0", classes: map[string]string{"io.murano.Object": "Name: io.murano.Object\n"}}
	var many strings.Builder
	for i := range 400 {
		fmt.Fprintf(&many, "  m%d: {Body: [Return: 1]}\n", i)
	}
	for i := range 4096 {
		parent := "io.murano.Object"
		if i > 0 {
			parent = fmt.Sprintf("org.C%d", i-1)
		}
		chain.classes[fmt.Sprintf("org.C%d", i)] = fmt.Sprintf("Name: org.C%d\nExtends: %s\nMethods:\n  own%d: {Body: [Return: 1]}\n", i, parent, i)
		chain.classes[fmt.Sprintf("org.M%d", i)] = fmt.Sprintf("Name: org.M%d\nExtends: %s\nMethods:\n%s", i, strings.Replace(parent, "org.C", "org.M", 1), strings.ReplaceAll(many.String(), " m", fmt.Sprintf(" n%d_", i)))
		if i >= 100 {
			delete(chain.classes, fmt.Sprintf("org.M%d", i))
		}
	}
	classes := muranopl.NewClasses(testSource{chain})
	_, err := classes.Class(t.Context(), "org.C4095", "")
	require.Equal(t, fault.Invalid, fault.KindOf(err), "%v", err)
	require.ErrorContains(t, err, "class org.C128 (Classes/Some.yaml:2:10) has more than 128 ancestors")
	for i := range 4096 {
		class, err := classes.Class(t.Context(), fmt.Sprintf("org.C%d", i), "")
		if i >= 128 {
			require.Error(t, err, i)
			continue
		}
		require.NoError(t, err)
		method, err := class.Method("own0")
		require.NoError(t, err)
		require.Equal(t, "org.C0", method.Class.Name)
	}
	_, err = classes.Class(t.Context(), "org.M99", "")
	require.ErrorContains(t, err, "properties and methods, its ancestors' counted; 4096 are allowed")
}
