package api

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator"
)

// nested is a value with so many objects around it.
func nested(levels int) any {
	var value any = "core"
	for range levels {
		value = map[string]any{"x": value}
	}
	return value
}

func TestAModelIsNotNestedDeeperThanItCanBeRead(t *testing.T) {
	s := newServer(t)
	s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "deep", "x": nested(orchestrator.MaxDepth)}, 400)
	raw := `{"name": "deep", "x": ` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`
	recorder := s.send("POST", "/v1/environments", map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": "application/json"}, []byte(raw))
	require.Equal(t, 400, recorder.Code)
	require.Contains(t, recorder.Body.String(), "nested deeper than 100 levels")

	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one", "x": nested(orchestrator.MaxDepth - 1)}, 200), "id").(string)
	path := "/v1/environments/" + id
	session := field(s.call("demo", "", "POST", path+"/configure", nil, 200), "id").(string)
	application := map[string]any{"?": map[string]any{"id": "aaaa", "type": "org.example.App"}, "x": nested(60)}
	s.call("demo", session, "POST", path+"/services", application, 200)
	// A combination of permitted parts may be too deep, too.
	below := path + "/services/aaaa" + strings.Repeat("/x", 61)
	require.Equal(t, "core", s.call("demo", session, "GET", below, nil, 200))
	s.call("demo", session, "PUT", below, nested(60), 400)
	s.call("demo", session, "POST", path+"/services", []any{map[string]any{"?": map[string]any{"id": "bbbb"}, "x": nested(98)}}, 400)
	patch := []any{map[string]any{"op": "add", "path": "/services/0" + strings.Repeat("/x", 61), "value": nested(60)}}
	text, err := json.Marshal(patch)
	require.NoError(t, err)
	recorder = s.send("PATCH", path+"/model/", map[string]string{"X-Auth-Token": "{token:demo}", "X-Configuration-Session": session,
		"Content-Type": "application/env-model-json-patch"}, text)
	require.Contains(t, recorder.Body.String(), "nested", "a patch")
	require.Equal(t, 400, recorder.Code)
	require.Equal(t, "core", s.call("demo", session, "GET", below, nil, 200), "nothing of it is kept")

	template := field(s.call("demo", "", "POST", "/v1/templates", map[string]any{"name": "one"}, 200), "id").(string)
	s.call("demo", "", "POST", "/v1/templates/"+template+"/services", map[string]any{"?": map[string]any{"id": "aaaa"}, "x": nested(98)}, 400)
	s.call("demo", "", "DELETE", path, nil, 200)
}

func TestABodyOfMoreValuesThanAllowedIsRefusedBeforeItTakesMemory(t *testing.T) {
	s := newServer(t)
	body := []byte(`{"name": "one", "x": [` + strings.Repeat("{},", (8<<20)/3-20) + `{}]}`)
	require.Less(t, len(body), maxJSON)
	headers := map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": "application/json"}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	recorder := s.send("POST", "/v1/environments", headers, body)
	runtime.ReadMemStats(&after)
	require.Equal(t, 413, recorder.Code)
	require.Contains(t, recorder.Body.String(), "more than 200000 values")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "bytes that were allocated for 8 MiB")

	// No more by parts than at once.
	s = newServer(t, func(c *Config) { c.Limits.Values = 100 })
	s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one", "x": make([]int, 60)}, 200)
	s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "two", "x": make([]int, 100)}, 413)
}

func TestADraftIsNotMadeOfMoreValuesThanAllowed(t *testing.T) {
	s := newServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	application := map[string]any{"?": map[string]any{"id": "aaaa"}, "x": make([]int, orchestrator.DefaultValues/2)}
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", application, 200)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", application, 413)
	s.call("demo", session, "DELETE", "/v1/environments/"+id+"/services/aaaa", nil, 200)
}

func TestValuesOfJSONAreCountedWithoutDecodingThem(t *testing.T) {
	for text, count := range map[string]int{
		`null`: 1, ` -1.5e3 `: 1, `[]`: 1, `[1,2]`: 3, `{"a":1}`: 3, `{"a":{"b":[true,false,null]}}`: 8, `"a,b{\"[\\"`: 1, `["\\",1]`: 3,
		`{ "a" : [ { } , { } ] }`: 5, `[[],[[]]]`: 4,
	} {
		counted, err := checkJSON([]byte(text), count)
		require.NoError(t, err, text)
		require.Equal(t, count, counted, text)
		_, err = checkJSON([]byte(text), count-1)
		require.Error(t, err, text)
	}
	for _, broken := range []string{`"`, `"\`, `[`, `]]]]`, `tru`, `{"a`, ``, `,`} {
		require.NotPanics(t, func() { _, _ = checkJSON([]byte(broken), 10) }, broken)
	}
}

func FuzzCheckJSONTakesWhateverComes(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\"",{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := checkJSON(text, len(text)+1); err != nil && json.Valid(text) {
			require.Greater(t, bytes.Count(text, []byte("["))+bytes.Count(text, []byte("{")), orchestrator.MaxDepth)
		}
	})
}
