package golden

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
)

// The projects of the recording.
const (
	ProjectDemo  = "719b7bdac0ef48f984b5e18c16ee164a"
	ProjectAdmin = "c06600e6e1574f858a04195892a54896"
	ProjectOther = "49f7dfa305b04c3aa1131d721aa576de"
)

// target is a server for a replay of the recording, with no packages but io.murano at first.
type target struct {
	*Replay
	t testing.TB
	// nextID is the id of the next package or category: as recorded, so that lists are ordered alike. A server that makes its own ids
	// does not use it.
	nextID string
}

// CatalogAnswersAsRecorded replays the recording of the catalog, and of the API in general, on a server that makes its own ids.
func CatalogAnswersAsRecorded(t testing.TB, replay *Replay) {
	(&target{Replay: replay, t: t}).answersAsRecorded()
}

func (s *target) answersAsRecorded() {
	t := s.t
	t.Helper()
	groups := []string{"versions", "auth", "route", "accept", "category", "package"}
	list, err := Recorded(groups...)
	require.NoError(t, err)
	s.before(list)
	classes := coreClasses(t)
	replayed := map[string]int{}
	for _, e := range list {
		s.nextID = strings.Repeat("0", 32) // a refused one has no id
		if object, ok := e.ResponseBody.(map[string]any); ok && e.Method == http.MethodPost && object["id"] != nil {
			s.nextID = object["id"].(string)
		}
		response, body, err := s.Send(t.Context(), e)
		require.NoError(t, err)
		if e.Name == firstLibrary || e.Name == secondLibrary {
			response, body = s.inOrderOfIDs(e, response, body)
		}
		withOwnClasses(e.ResponseBody, classes)
		said := s.Compare(e, response, s.asRecorded(e, body))
		if exception, there := exceptions[e.Name]; there {
			if said == "" {
				t.Errorf("%s is no exception any more", e.Name)
			}
			said = exception.check(e, response, body)
		}
		if said != "" {
			t.Errorf("%s: %s %s: %s", e.Name, e.Method, e.Path, said)
		}
		word, _, _ := strings.Cut(e.Name, "-")
		replayed[word]++
	}
	for name := range exceptions {
		require.True(t, slices.ContainsFunc(list, func(e Exchange) bool { return e.Name == name }), "the exception %s is not in the recording", name)
	}
	t.Logf("replayed %d exchanges: %v", len(list), replayed)
}

// The recording has two packages of one name, whose ids alone order them: the second upload's id comes before the first one's.
const (
	firstLibrary   = "package-upload-library-public-admin"
	firstLibraryID = "9d184344704c4677bc4ee8ab5f5ce54f"
	secondLibrary  = "package-upload-duplicate-of-public-other-tenant"
)

// inOrderOfIDs repeats the upload of such a package until the server's id for the first one leaves room before it, and the
// second one's comes before.
func (s *target) inOrderOfIDs(e Exchange, response *http.Response, body []byte) (*http.Response, []byte) {
	for range 100 {
		var made struct {
			ID string `json:"id"`
		}
		require.NoError(s.t, json.Unmarshal(body, &made), "%s: %s", e.Name, body)
		if e.Name == firstLibrary && made.ID >= "8" || e.Name == secondLibrary && made.ID < s.IDs[firstLibraryID] {
			break
		}
		gone, _, err := s.Send(s.t.Context(), Exchange{Method: http.MethodDelete, Path: "/v1/catalog/packages/" + made.ID, RequestHeaders: e.RequestHeaders})
		require.NoError(s.t, err)
		require.Equal(s.t, http.StatusOK, gone.StatusCode)
		response, body, err = s.Send(s.t.Context(), e)
		require.NoError(s.t, err)
	}
	return response, body
}

// call sends JSON that is not in the recording.
func (s *target) call(token, method, path, contentType string, body []byte) map[string]any {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, bytes.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("X-Auth-Token", cmp.Or(s.Tokens[token], token))
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, response.StatusCode, "%s %s: %s", method, path, answer)
	var value map[string]any
	require.NoError(s.t, json.Unmarshal(answer, &value))
	return value
}

// before makes the objects that the recorded Murano had before the recording: an environment, a category of another test, and the
// packages of a benchmark. Murano counted these packages, but only a page of them was recorded.
func (s *target) before(all []Exchange) {
	byName := map[string]Exchange{}
	for _, e := range all {
		byName[e.Name] = e
	}
	environment := s.call("{token:demo}", "POST", "/v1/environments", "application/json", []byte(`{"name": "demo1"}`))
	listed := byName["accept-json"].ResponseBody.(map[string]any)["environments"].([]any)
	s.IDs[listed[0].(map[string]any)["id"].(string)] = environment["id"].(string)
	for _, category := range byName["category-list"].ResponseBody.(map[string]any)["categories"].([]any) {
		if category := category.(map[string]any); strings.HasPrefix(category["name"].(string), "TestCategories") {
			s.nextID = category["id"].(string)
			s.call("{token:admin}", "POST", "/v1/catalog/categories", "application/json", fmt.Appendf(nil, `{"name": %q}`, category["name"]))
		}
	}
	recorded := byName["package-search-other-tenant"].ResponseBody.(map[string]any)["packages"].([]any)
	for i := range 49 { // as many as category-list counts in "Web"
		name := fmt.Sprintf("org.bench.App%03d", i+1)
		s.nextID = fmt.Sprintf("%032x", i+1)
		if i < len(recorded) {
			s.nextID = recorded[i].(map[string]any)["id"].(string)
		}
		s.upload("{token:other}", fstest.MapFS{
			"manifest.yaml": {Data: fmt.Appendf(nil, "Format: 1.0\nType: Application\nFullName: %s\nName: Bench app %03d\nDescription: |\n  A tiny application\nAuthor: golden\n"+
				"Tags: [golden, hello]\nSupplier: {Name: Golden Inc, Logo: supplier_logo.png, Summary: sum, Description: desc,\n  CompanyUrl: {Text: golden, Link: 'http://example.org'}}\n"+
				"Classes: {%s: App.yaml}\n", name, i+1, name)},
			"Classes/App.yaml":  {Data: fmt.Appendf(nil, "Name: %s\n", name)},
			"supplier_logo.png": {Data: []byte("\x89PNG\r\n\x1a\n")},
		})
	}
}

func (s *target) upload(token string, files fstest.MapFS) {
	var archive bytes.Buffer
	require.NoError(s.t, catalog.WriteZip(&archive, files))
	body, contentType, err := formBody([]formPart{{Name: "JsonString", Text: `{"categories": ["Web"]}`},
		{Name: "file", Filename: "p.zip", ContentType: "application/octet-stream", Text: archive.String()}}, "multipart/form-data; boundary=xxxx")
	require.NoError(s.t, err)
	s.call(token, "POST", "/v1/catalog/packages", contentType, body)
}

// exceptions are the exchanges with another answer of Burano's, each with its reason; the function returns an error in the answer,
// or "".
var exceptions = map[string]struct {
	reason string
	check  func(e Exchange, response *http.Response, body []byte) string
}{
	"package-upload-bad-zip": {"the recorded message names a file of Murano's server", begins("400 Bad Request\n\nCouldn't load package from file: " +
		"Incorrect package format: Uploaded file ")},
	"package-upload-bad-manifest": {"the recorded message names a file of Murano's server, in the words of a YAML parser of Python",
		begins("400 Bad Request\n\nCouldn't load package from file: Unable to load due to '")},
	"package-patch-same-value": {"Murano answers 500; a tag that is there already is left as it is", func(_ Exchange, response *http.Response, body []byte) string {
		if response.StatusCode != http.StatusOK || bytes.Count(body, []byte(`"t1"`)) != 1 {
			return fmt.Sprintf("status %d: %s", response.StatusCode, body)
		}
		return ""
	}},
}

// begins demands the recorded status and this beginning of the message.
func begins(text string) func(Exchange, *http.Response, []byte) string {
	return func(e Exchange, response *http.Response, body []byte) string {
		if response.StatusCode != e.Status || !bytes.HasPrefix(body, []byte(text)) {
			return fmt.Sprintf("status %d: %s", response.StatusCode, body)
		}
		return ""
	}
}

// orderedByID are the exchanges whose lists have the id as the last key of their order, with the keys before it. Ids of initial
// objects (the seeded categories, the core library) are not the recorded ones, so the order here is checked by itself.
var orderedByID = map[string]string{
	"category-list-sort-multi": "created", "category-list-sort-package-count": "package_count", "package-search-order-bad": "",
	"package-search-order-created": "created",
}

// asRecorded puts the items of a list into the recorded order, after a check of their own order.
func (s *target) asRecorded(e Exchange, body []byte) []byte {
	key, there := orderedByID[e.Name]
	if !there {
		return body
	}
	var answer map[string][]map[string]any
	require.NoError(s.t, json.Unmarshal(body, &answer))
	for name, list := range answer {
		rank := func(item map[string]any) string { return fmt.Sprintf("%10v %v", item[key], item["id"]) }
		require.True(s.t, slices.IsSortedFunc(list, func(a, b map[string]any) int { return strings.Compare(rank(a), rank(b)) }), "%s: %s", e.Name, body)
		place := map[any]int{}
		for i, item := range e.ResponseBody.(map[string]any)[name].([]any) {
			place[s.IDs.Translate(item.(map[string]any)["id"].(string))] = i
		}
		slices.SortFunc(list, func(a, b map[string]any) int { return place[a["id"]] - place[b["id"]] })
	}
	body, err := json.Marshal(answer)
	require.NoError(s.t, err)
	return body
}

// withOwnClasses replaces the classes of Murano's core library, which has more, by Burano's.
func withOwnClasses(value any, classes []any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			withOwnClasses(item, classes)
		}
	case map[string]any:
		if value["fully_qualified_name"] == "io.murano" && value["class_definitions"] != nil {
			value["class_definitions"] = classes
		}
		for _, item := range value {
			withOwnClasses(item, classes)
		}
	}
}

// coreClasses are the names of the classes of Burano's core library.
func coreClasses(t testing.TB) (names []any) {
	embedded, err := apps.Packages()
	require.NoError(t, err)
	for _, p := range embedded {
		if p.FullName() == "io.murano" {
			for _, name := range p.ClassNames() {
				names = append(names, name)
			}
		}
	}
	return names
}
