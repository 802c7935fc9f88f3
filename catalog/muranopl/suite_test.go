package muranopl_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
)

var update = flag.Bool("update", false, "write golden files anew")

var suiteNatives = muranopl.Natives{"io.murano": {
	"io.murano.StackTrace": {"toString": func(_ context.Context, call muranopl.Call) (any, error) { return "a stack", nil }},
	"io.murano.system.GC":  muranopl.CollectorNatives(),
}}

// traces collects the arguments of the function trace().
type traces struct {
	mutex sync.Mutex
	all   []any
}

func (t *traces) function() *yaql.Function {
	return &yaql.Function{Name: "trace", Kind: yaql.AsFunction, Doc: "collects a value", Params: []yaql.Param{{Name: "value"}},
		Call: func(i *yaql.Invocation) (any, error) {
			t.mutex.Lock()
			defer t.mutex.Unlock()
			t.all = append(t.all, jsonable(yaql.Plain(i.Args[0])))
			return i.Args[0], nil
		}}
}

// suiteClasses are the classes of a file, with the number of the format that the package is of.
func suiteSource(t testing.TB, file, format string) (testSource, []string) {
	t.Helper()
	read := func(name string) ([]byte, []string) {
		text, err := os.ReadFile(filepath.Join("testdata", "suite", name))
		require.NoError(t, err)
		var names []string
		namespace := ""
		decoder := yaml.NewDecoder(strings.NewReader(string(text)))
		for {
			var document struct {
				Namespaces map[string]string `yaml:"Namespaces"`
				Name       string            `yaml:"Name"`
			}
			err := decoder.Decode(&document)
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			if own := document.Namespaces["="]; own != "" {
				namespace = own
			}
			if document.Name != "" {
				names = append(names, namespace+"."+document.Name)
			}
		}
		return text, names
	}
	pack := func(name, file, format string, embedded bool) (*testPackage, []string) {
		text, names := read(file)
		classes := map[string]string{}
		for _, class := range names {
			classes[class] = string(text)
		}
		return &testPackage{name: name, version: "1.2.3", format: format, embedded: embedded, classes: classes}, names
	}
	core, _ := pack("io.murano", "core.yaml", "1.4", true)
	core.version = "0.0.0"
	own, names := pack("suite", file, format, false)
	own.requires = map[string]string{"lib": "1"}
	own.meta = []any{map[string]any{"suite.Many": map[string]any{"val": 1}}, map[string]any{"suite.Many": nil}, "suite.One"}
	return append(testSource{core, own}, libraries()...), names
}

// libraries are versions of a package with one class, the newest first.
func libraries() testSource {
	var source testSource
	for _, version := range []string{"2.1.0", "2.0.0-rc1", "1.3.0", "1.2.10", "1.2.3", "1.0.0", "1.0.0-beta", "0.9.0"} {
		source = append(source, &testPackage{name: "lib", version: version, classes: map[string]string{"lib.Thing": "Name: lib.Thing\n"}})
	}
	return source
}

var anID = regexp.MustCompile(`[0-9a-f]{32}`)

// result is the result of a method, in the form of the golden files.
func result(value any, err error) map[string]any {
	var e *muranopl.Exception
	switch {
	case errors.As(err, &e):
		return map[string]any{"exception": e.Names, "message": anID.ReplaceAllString(e.Message, "(id)"),
			"traceback": strings.Split(anID.ReplaceAllString(e.Traceback(), "(id)"), "\n")}
	case err != nil:
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"result": jsonable(value)}
}

func jsonable(value any) any {
	switch v := value.(type) {
	case string:
		return anID.ReplaceAllString(v, "(id)")
	case *muranopl.Object:
		return "object of " + v.Class().Name
	case muranopl.TypeReference:
		return "class " + v.Class.Name
	case []any:
		list := make([]any, len(v))
		for n, item := range v {
			list[n] = jsonable(item)
		}
		return list
	case map[string]any:
		made := map[string]any{}
		for key, item := range v {
			made[key] = jsonable(item)
		}
		return made
	case *yaql.Dict:
		pairs := []any{}
		for _, e := range v.Entries() {
			pairs = append(pairs, []any{jsonable(e.Key), jsonable(e.Value)})
		}
		return map[string]any{"pairs": pairs}
	}
	return value
}

// Each public or private method without arguments of the classes in testdata/suite is run under formats 1.0 and 1.4; the results are in the golden file
// beside.
func TestEveryConstructOfTheLanguageDoesWhatItsGoldenResultSays(t *testing.T) {
	files, err := filepath.Glob("testdata/suite/*.yaml")
	require.NoError(t, err)
	for _, path := range files {
		file := filepath.Base(path)
		if file == "core.yaml" {
			continue
		}
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			golden := strings.TrimSuffix(path, ".yaml") + ".golden.json"
			all := map[string]any{}
			for _, format := range []string{"1.0", "1.4"} {
				for method, what := range runSuite(t, file, format) {
					key := method
					if before, same := all[method]; same {
						if sameJSON(before, what) {
							continue
						}
						key += " (1.4)"
					}
					all[key] = what
				}
			}
			written, err := json.MarshalIndent(all, "", "  ")
			require.NoError(t, err)
			if *update {
				require.NoError(t, os.WriteFile(golden, append(written, '\n'), 0o644))
				return
			}
			text, err := os.ReadFile(golden)
			require.NoError(t, err)
			wanted := map[string]json.RawMessage{}
			require.NoError(t, json.Unmarshal(text, &wanted))
			for method, what := range all {
				now, err := json.Marshal(what)
				require.NoError(t, err)
				assert.JSONEq(t, cmp.Or(string(wanted[method]), "null"), string(now), method)
			}
			for method := range wanted {
				assert.Contains(t, all, method)
			}
		})
	}
}

func sameJSON(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// runSuite runs the methods of the first class of a file.
func runSuite(t *testing.T, file, format string) map[string]any {
	source, names := suiteSource(t, file, format)
	fresh := func() *muranopl.Classes {
		return muranopl.NewClasses(source, muranopl.WithConfigs(os.DirFS(filepath.Join("testdata", "suite", "configs"))))
	}
	class, err := fresh().Class(t.Context(), names[0], "")
	require.NoError(t, err)
	results := map[string]any{}
	for _, method := range class.Methods {
		if len(method.Arguments) > 0 || strings.HasPrefix(method.Name, ".") || !method.HasBody() {
			continue
		}
		var traced traces
		interpreter := muranopl.NewInterpreter(fresh(), suiteNatives, muranopl.WithMocks(), muranopl.WithFunctions(traced.function()))
		object, problems, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": names[0], "id": "the-object"}})
		require.Empty(t, problems)
		require.NoError(t, err)
		came := result(interpreter.Invoke(t.Context(), object, method.Name, nil))
		if traced.all != nil {
			came["traces"] = traced.all
		}
		results[method.Name] = came
	}
	return results
}
