package images

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheEndOfAnOutputHoldsNoMoreThanTheLastStateOfAProgressBar(t *testing.T) {
	end := newTail()
	for _, text := range []string{"a\n10 %\r", "20", " %\r30 %\r\nb\r\n", "c\rd"} {
		_, err := end.Write([]byte(text))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"a", "30 %", "b", "c", "d"}, end.all())
	require.Equal(t, "d", end.last())
	_, err := end.Write([]byte("\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "30 %", "b", "d"}, end.all())
}

func TestABuildSaysWhatIsCompiledAndHowMuchIsLeft(t *testing.T) {
	folder, out := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.org/m\n\ngo 1.26\n",
		"greet/greet.go":  "package greet\n\n// At " + t.TempDir() + "\nfunc Text() string { return \"hello\" }\n", // the same text is never compiled twice
		"program/main.go": "package main\n\nimport \"example.org/m/greet\"\n\n// At " + t.TempDir() + "\nfunc main() { println(greet.Text()) }\n",
	} {
		path := filepath.Join(folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	m := module{name: "m", programs: []program{{"hello", "./program"}}}
	var said strings.Builder
	require.NoError(t, m.compile(t.Context(), folder, out, "-s -w", &said))
	require.FileExists(t, filepath.Join(out, "hello"))
	require.Equal(t, "compiling 2 packages\ncompiled 1 of 2 packages, now example.org/m/greet\rcompiled 2 of 2 packages, now example.org/m/program\r", said.String())

	require.NoError(t, os.WriteFile(filepath.Join(folder, "greet", "greet.go"), []byte("package greet\n\nfunc Text() string { return 1 }\n"), 0o644))
	said.Reset()
	require.Error(t, m.compile(t.Context(), folder, out, "-s -w", &said))
	require.Contains(t, said.String(), "greet.go:3", "what the compiler says is there")
}

func TestTheDefinitionsOfGatewayAPIAreOfTheReleaseThatGatewaysKnow(t *testing.T) {
	list := modules()
	m := list[slices.IndexFunc(list, func(m module) bool { return m.name == "gatewayapi" })]
	version, err := moduleVersion(t.Context(), m.in("."), m.main)
	require.NoError(t, err)
	known, err := moduleVersion(t.Context(), "..", m.main)
	require.NoError(t, err)
	require.Equal(t, known, version)

	out := t.TempDir()
	require.NoError(t, m.compile(t.Context(), m.in("."), out, "", t.Output()))
	content, err := os.ReadFile(filepath.Join(out, "gateway-api.yaml"))
	require.NoError(t, err)
	require.Equal(t, 10, bytes.Count(content, []byte("\nkind: CustomResourceDefinition\n")))
	require.Equal(t, 10, bytes.Count(content, []byte("gateway.networking.k8s.io/bundle-version: "+version+"\n")))
}
