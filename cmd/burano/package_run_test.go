package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ran runs steps over the package for it and returns the outcomes.
func ran(t *testing.T, steps ...string) []map[string]any {
	t.Helper()
	out, err := called(t, strings.Join(steps, "\n"), "package", "run", "--packages", "../../test/packages", "--steps", "-")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	require.Len(t, lines, len(steps), out)
	outcomes := make([]map[string]any, len(lines))
	for n, line := range lines {
		require.NoError(t, json.Unmarshal([]byte(line), &outcomes[n]))
		require.Contains(t, outcomes[n], "traces")
	}
	return outcomes
}

const shelfModel = `{"?": {"type": "io.burano.test.Shelf", "id": "s", "name": "top", "_kept": 1}, "books": [{"?": {"type": "io.burano.test.Book", "id": "b"}, "title": "Go"}]}`

func header(class, id string, name any) map[string]any {
	return map[string]any{"type": class + "/0.0.0@io.burano.test.Scenario", "id": id, "name": name, "metadata": nil}
}

func TestAScenarioLoadsCallsAndWritesModels(t *testing.T) {
	o := ran(t,
		`{"load": `+shelfModel+`}`,
		`{"call": "add", "args": ["Yaql"], "kwargs": {"pages": 3}}`,
		`{"call": "last", "on": "root"}`,
		`{"call": "burn", "on": "b"}`,
		`{"call": "versionOf", "on_class": "io.burano.test.Shelf", "kwargs": {"name": "x"}}`,
		`{"serialize": true}`)
	require.Equal(t, map[string]any{"result": nil, "traces": []any{}}, o[0])
	added := o[1]["result"].(map[string]any)
	require.Equal(t, "Yaql", added["title"])
	require.Equal(t, []any{"Yaql", map[string]any{"pages": 3.0, "half": 1.5}}, o[1]["traces"])
	require.Equal(t, "Yaql", o[2]["result"])
	burnt := o[3]["exception"].(map[string]any)
	require.NotContains(t, o[3], "result")
	require.Equal(t, []any{"io.burano.test.BookBurnt"}, burnt["names"])
	require.Equal(t, "Go burns", burnt["message"])
	require.Regexp(t, `^File ".*Shelf.yaml", line \d+:\d+ in method burn of type io.burano.test.Book\n    `, burnt["stackTrace"])
	require.Equal(t, map[string]any{"result": 0.0, "traces": []any{"x"}}, o[4])

	id := added["?"].(map[string]any)["id"].(string)
	shelf := header("io.burano.test.Shelf", "s", "top")
	books := func(actions bool) []any {
		var list []any
		for _, book := range []struct {
			id, title string
			pages     any
		}{{"b", "Go", nil}, {id, "Yaql", 3.0}} {
			h := header("io.burano.test.Book", book.id, nil)
			if actions {
				h["_actions"] = map[string]any{}
			}
			list = append(list, map[string]any{"?": h, "title": book.title, "pages": book.pages})
		}
		return list
	}
	model := o[5]["result"].(map[string]any)
	require.Equal(t, map[string]any{"?": shelf, "factor": 2.0, "books": books(false)}, model["ObjectsCopy"])
	shelf["_kept"] = 1.0
	shelf["_actions"] = map[string]any{
		"s_last":      map[string]any{"name": "last", "title": "last", "enabled": true},
		"s_versionOf": map[string]any{"name": "versionOf", "title": "versionOf", "enabled": true}}
	require.Equal(t, map[string]any{"?": shelf, "factor": 2.0, "books": books(true)}, model["Objects"])
	require.Equal(t, []any{[]any{"s", "io.burano.test.Shelf", "last", "Yaql"}}, model["Attributes"])
}

func TestAScenarioDestroysWhatIsOnlyInTheCopy(t *testing.T) {
	o := ran(t,
		`{"load": {"Objects": {"?": {"type": "io.burano.test.Shelf", "id": "s"}}, "ObjectsCopy": `+shelfModel+`, "Attributes": [["s", "io.burano.test.Shelf", "last", "Old"], ["b", "x.Y", "z", 1]]}}`,
		`{"call": "last"}`, `{"serialize": true}`, `{"load": {"Objects": null, "ObjectsCopy": `+shelfModel+`}}`, `{"serialize": true}`)
	require.Equal(t, []any{"Go burns"}, o[0]["traces"])
	require.Equal(t, "Old", o[1]["result"])
	require.Equal(t, []any{[]any{"s", "io.burano.test.Shelf", "last", "Old"}}, o[2]["result"].(map[string]any)["Attributes"])
	require.Equal(t, []any{"Go burns", "s is gone"}, o[3]["traces"])
	require.Equal(t, map[string]any{"Objects": nil, "ObjectsCopy": nil, "Attributes": []any{}}, o[4]["result"])
}

func TestExceptionsOfAScenarioHaveMuranosNames(t *testing.T) {
	o := ran(t,
		`{"call": "last"}`,
		`{"load": {"?": {"type": "io.burano.test.Nothing"}}}`,
		`{"load": {"?": {"type": "io.burano.test.Shelf"}, "factor": 0}}`,
		`{"load": `+shelfModel+`}`,
		`{"call": "add", "args": [null]}`,
		`{"call": "add", "args": [1, 2, 3]}`,
		`{"call": "nothing"}`,
		`{"call": "last", "on": "lost"}`,
		`{"call": "last", "on_class": "io.burano.test.Shelf"}`,
		`{"call": "x", "on_class": "io.burano.test.Nothing"}`,
		`{"call": "fail"}`)
	for n, wanted := range [][2]string{
		{"ValueError", "no model was loaded whose root a method could be called on"},
		{"murano.dsl.exceptions.NoPackageForClassFound", `Package for class "io.burano.test.Nothing" is not found`},
		{"murano.dsl.exceptions.ContractViolationException", "[io.burano.test.Shelf.factor] Value 0 doesn't match predicate"},
		{},
		{"murano.dsl.exceptions.ContractViolationException", "[io.burano.test.Shelf::add(title)] null value violates notNull() contract"},
		{"yaql.language.exceptions.NoMatchingMethodException", "method io.burano.test.Shelf.add has 2 arguments, 1 too many were given"},
		{"murano.dsl.exceptions.NoMethodFound", `Method "nothing" is not found`},
		{"murano.dsl.exceptions.NoObjectFoundError", `Object "lost" is not found in object store`},
		{"ValueError", "method io.burano.test.Shelf.last is called on an object and not on the class"},
		{"murano.dsl.exceptions.NoPackageForClassFound", `Package for class "io.burano.test.Nothing" is not found`},
		{"io.burano.test.ShelfBroken", "Go burns"},
	} {
		if wanted[0] == "" {
			require.Contains(t, o[n], "result")
			continue
		}
		require.Equal(t, []any{wanted[0]}, o[n]["exception"].(map[string]any)["names"], n)
		require.Equal(t, wanted[1], o[n]["exception"].(map[string]any)["message"], n)
	}
}

func TestAScenarioThatCannotBeReadIsSaid(t *testing.T) {
	run := func(steps string) error {
		_, err := called(t, steps, "package", "run", "--packages", "../../test/packages", "--steps", "-")
		return err
	}
	require.ErrorContains(t, run(`{"call": "x", "serialize": true}`), `step 1: a step has one of "load", "call" and "serialize"`)
	require.ErrorContains(t, run("{\"serialize\": true}\n{\"cal\": 1}"), `step 2: a step is {"load": model}`)
	require.ErrorContains(t, run(`nonsense`), "step 1: it is no JSON object")
	require.ErrorContains(t, run(`{"call": "x", "on": "a", "on_class": "b"}`), "not both")
	_, err := called(t, "", "package", "run", "--steps", filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = called(t, "", "package", "run", "--packages", t.TempDir(), "--steps", "-")
	require.ErrorContains(t, err, "there is no package in this folder")
}
