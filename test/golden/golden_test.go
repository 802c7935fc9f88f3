package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/engine/enginetest"
	"github.com/burano/burano/orchestrator/native"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/api"
	"github.com/burano/burano/web/auth"
)

// The projects of the recording.
const (
	projectDemo  = "719b7bdac0ef48f984b5e18c16ee164a"
	projectAdmin = "c06600e6e1574f858a04195892a54896"
	projectOther = "49f7dfa305b04c3aa1131d721aa576de"
)

const keystone = "http://keystone.test:5000/v3"

// tokens is a Keystone that knows the recorded tokens.
type tokens map[string]identity.Caller

func (t tokens) Validate(_ context.Context, token string) (identity.Caller, error) {
	caller, known := t[token]
	if !known {
		return caller, fault.New(fault.Unauthorized, "nobody has this token")
	}
	return caller, nil
}

var recordedTokens = tokens{
	"{token:demo}":  {UserID: "8a1d7a3c7c3f4b6e9f0b6d5c4e3f2a10", ProjectID: projectDemo, Roles: []string{"member"}},
	"{token:other}": {UserID: "8a1d7a3c7c3f4b6e9f0b6d5c4e3f2a11", ProjectID: projectOther, Roles: []string{"member"}},
	"{token:admin}": {UserID: "8a1d7a3c7c3f4b6e9f0b6d5c4e3f2a12", ProjectID: projectAdmin, Roles: []string{"admin"}, Admin: true},
}

// server is a whole Burano, but for the cloud: real stores, engine, catalog and API. Of the packages that come with it, it offers
// only io.murano, as the recorded Murano did (`burano serve --embedded-packages io.murano`).
type server struct {
	*Replay
	t *testing.T
	// nextID is what the next package or category gets for its id: as recorded, so that lists are ordered alike.
	nextID string
	gates  gates
}

func newServer(t *testing.T) *server {
	s := &server{t: t}
	folder := t.TempDir()
	db, err := database.Open(filepath.Join(folder, "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	embedded, err := apps.Packages()
	require.NoError(t, err)
	rows, err := catalogstore.New(t.Context(), db)
	require.NoError(t, err)
	moment := time.Date(2026, 11, 20, 13, 33, 47, 0, time.UTC)
	packages, err := catalog.New(rows, embedded, catalog.OfferEmbedded("io.murano"), catalog.EmbeddedOwner(projectAdmin),
		catalog.WithIDs(func() string { return s.nextID }), catalog.WithClock(func() time.Time { return moment }))
	require.NoError(t, err)

	environments, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	sealer, err := secret.Open(filepath.Join(folder, "key"))
	require.NoError(t, err)
	cloud := enginetest.NewCloud()
	logger := slog.New(slog.DiscardHandler)
	tasks, err := engine.New(t.Context(), engine.Config{Store: environments, Sealer: sealer, Cloud: cloud, Source: packages.Source,
		Natives: func(r *engine.Runtime) muranopl.Natives {
			return s.gates.through(native.Methods(r, native.Config{Logger: logger}))
		}, Logger: logger})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tasks.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	handler := api.New(api.Config{
		Orchestrator: orchestrator.New(orchestrator.Config{Store: environments, Sealer: sealer, Trusts: cloud, Engine: tasks, Logger: logger}),
		Catalog:      packages,
		Auth:         auth.Keystone(recordedTokens, time.Now),
		Keystone:     keystone,
		Logger:       logger,
	})
	listener := httptest.NewServer(handler)
	t.Cleanup(listener.Close)
	s.Replay = &Replay{URL: listener.URL, Keystone: keystone, IDs: IDs{projectDemo: projectDemo, projectAdmin: projectAdmin, projectOther: projectOther}}
	return s
}

// call sends JSON that was not recorded.
func (s *server) call(token, method, path, contentType string, body []byte) map[string]any {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, bytes.NewReader(body))
	require.NoError(s.t, err)
	request.Header.Set("X-Auth-Token", token)
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

// before makes what the recorded Murano held before the recording: an environment, a category of another test, and the packages of
// a benchmark, which it counted but of which only a page was recorded.
func (s *server) before(all []Exchange) {
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

func (s *server) upload(token string, files fstest.MapFS) {
	var archive bytes.Buffer
	require.NoError(s.t, catalog.WriteZip(&archive, files))
	body, contentType, err := formBody([]formPart{{Name: "JsonString", Text: `{"categories": ["Web"]}`},
		{Name: "file", Filename: "p.zip", ContentType: "application/octet-stream", Text: archive.String()}}, "multipart/form-data; boundary=xxxx")
	require.NoError(s.t, err)
	s.call(token, "POST", "/v1/catalog/packages", contentType, body)
}

// exceptions are the exchanges that Burano answers otherwise, each for its reason; the function says what is wrong with the answer.
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

// begins wants the recorded status and this beginning of the message.
func begins(text string) func(Exchange, *http.Response, []byte) string {
	return func(e Exchange, response *http.Response, body []byte) string {
		if response.StatusCode != e.Status || !bytes.HasPrefix(body, []byte(text)) {
			return fmt.Sprintf("status %d: %s", response.StatusCode, body)
		}
		return ""
	}
}

// orderedByID are the exchanges whose lists an id orders at last, and what orders them before. Ids of what was there at the beginning
// (the seeded categories, the core library) are not the recorded ones, so the order here is looked at by itself.
var orderedByID = map[string]string{
	"category-list-sort-multi": "created", "category-list-sort-package-count": "package_count", "package-search-order-bad": "",
}

// asRecorded puts the items of a list in the recorded order, after it has looked at their own.
func (s *server) asRecorded(e Exchange, body []byte) []byte {
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

// withOwnClasses writes the classes of Burano's core library in the place of those of Murano's, which has more.
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
func coreClasses(t *testing.T) (names []any) {
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

func TestTheServerAnswersAsRecorded(t *testing.T) {
	groups := []string{"versions", "auth", "route", "accept", "category", "package"}
	list, err := Recorded(groups...)
	require.NoError(t, err)
	s := newServer(t)
	s.before(list)
	classes := coreClasses(t)
	replayed := map[string]int{}
	for _, e := range list {
		s.nextID = strings.Repeat("0", 32) // nothing that is refused keeps an id
		if object, ok := e.ResponseBody.(map[string]any); ok && e.Method == http.MethodPost && object["id"] != nil {
			s.nextID = object["id"].(string)
		}
		response, body, err := s.Send(t.Context(), e)
		require.NoError(t, err)
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
