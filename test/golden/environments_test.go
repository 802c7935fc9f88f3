package golden

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

// gates delay methods of the environment's class, so that a test can look at an environment while it is deploying or deleting.
type gates struct {
	mutex sync.Mutex
	shut  map[string]chan struct{} // by the method's name
}

// shutGate makes the method wait until open is called.
func (g *gates) shutGate(method string) (open func()) {
	gate := make(chan struct{})
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.shut == nil {
		g.shut = map[string]chan struct{}{}
	}
	g.shut[method] = gate
	return sync.OnceFunc(func() {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		delete(g.shut, method)
		close(gate)
	})
}

// through makes the native methods of the environment's class pass the gates.
func (g *gates) through(natives muranopl.Natives) muranopl.Natives {
	methods := natives["io.murano"]["io.murano.Environment"]
	for name, body := range methods {
		methods[name] = func(ctx context.Context, call muranopl.Call) (any, error) {
			g.mutex.Lock()
			gate := g.shut[name]
			g.mutex.Unlock()
			if gate != nil {
				select {
				case <-gate:
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
			}
			return body(ctx, call)
		}
	}
	return natives
}

// take sends a request of a session that was not recorded.
func (s *server) take(method, path, session string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, nil)
	require.NoError(s.t, err)
	request.Header.Set("X-Auth-Token", "{token:demo}")
	request.Header.Set("X-Configuration-Session", session)
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	require.Equal(s.t, http.StatusOK, response.StatusCode, "%s %s", method, path)
}

// awaitIdle waits until no task runs in the environment, or it is gone.
func (s *server) awaitIdle(id string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.URL+"/v1/environments/"+id, nil)
		require.NoError(s.t, err)
		request.Header.Set("X-Auth-Token", "{token:admin}")
		response, err := http.DefaultClient.Do(request)
		require.NoError(s.t, err)
		defer response.Body.Close()
		if response.StatusCode == http.StatusNotFound {
			return true
		}
		var shown struct {
			Status string `json:"status"`
		}
		require.NoError(s.t, json.NewDecoder(response.Body).Decode(&shown))
		return shown.Status != "deploying" && shown.Status != "deleting"
	}, time.Minute, 5*time.Millisecond)
}

// inRecordedOrder puts the environments or templates of a list, which have no order in Murano, in the recorded one.
func (s *server) inRecordedOrder(e Exchange, body []byte) []byte {
	recorded, _ := e.ResponseBody.(map[string]any)
	for _, key := range []string{"environments", "templates"} {
		list, ok := recorded[key].([]any)
		if !ok {
			continue
		}
		place := map[string]int{}
		for i, item := range list {
			place[s.IDs.Translate(item.(map[string]any)["id"].(string))] = i
		}
		var here map[string][]map[string]any
		require.NoError(s.t, json.Unmarshal(body, &here), "%s: %s", e.Name, body)
		slices.SortStableFunc(here[key], func(a, b map[string]any) int { return place[a["id"].(string)] - place[b["id"].(string)] })
		var err error
		body, err = json.Marshal(here)
		require.NoError(s.t, err)
	}
	return body
}

// TestEnvironmentsAnswerAsRecorded replays the recording of environments and their parts, with the recorded packages.
func TestEnvironmentsAnswerAsRecorded(t *testing.T) {
	groups := []string{"error", "api", "schema", "static", "env", "stats", "deployments", "services", "session", "deployment", "action", "fail", "deploy", "template"}
	list, err := Recorded(append(groups, "category", "package", "accept", "vm")...)
	require.NoError(t, err)
	s := newServer(t)
	s.before(list)
	s.benchEnvironments(list)
	replayed := map[string]int{}
	used := map[string]bool{}
	held, open := false, func() {}
	defer func() { open() }()
	for _, e := range list {
		word, _, _ := strings.Cut(e.Name, "-")
		// Packages and categories are compared elsewhere; here schemas, actions and deployments need them.
		needed := strings.HasPrefix(e.Name, "package-upload") || strings.HasPrefix(e.Name, "category-create") || e.Name == "vm-package-upload"
		if !needed && !slices.Contains(groups, word) {
			continue
		}
		s.nextID = strings.Repeat("0", 32)
		if object, ok := e.ResponseBody.(map[string]any); ok && needed && object["id"] != nil {
			s.nextID = object["id"].(string)
		}
		environment := ""
		if parts := strings.Split(s.IDs.Translate(e.Path), "/"); len(parts) > 3 && parts[2] == "environments" {
			environment, _, _ = strings.Cut(parts[3], "?")
		}
		configure := func(recorded string) {
			s.IDs[recorded] = s.call("{token:demo}", "POST", "/v1/environments/"+environment+"/configure", "application/json", nil)["id"].(string)
		}
		switch e.Name {
		case "services-post-noid": // sessions whose opening is not in the recording
			configure("75401c8eb02f4f7582e5ab01108b01cd")
		case "session-deploy":
			configure("e62cfd5b47884d6cac799c634a8d8b37")
		case "session-deploy-2":
			held, open = true, s.gates.shutGate("deploy")
		case "env-delete":
			held, open = true, s.gates.shutGate(".destroy")
		case "env-list-final": // the end of failed sessions is not in the recording
			for _, session := range []string{"237bb2e7666740de957f4653e2adf43c", "67ac860fde4141f285406f0a22a1843f"} {
				s.take("DELETE", s.IDs.Translate("/v1/environments/a7b18157d85543e39cf8511e80312a1a/sessions/"+session), "")
			}
		case "env-show-deployed-2", "env-show-deleted":
			open()
			held = false
			s.awaitIdle(environment)
			require.Len(t, s.cloud.stackNames(t), map[string]int{"env-show-deployed-2": 1}[e.Name], "%s: stacks in Heat", e.Name)
		}
		response, body, err := s.Send(t.Context(), e)
		require.NoError(t, err)
		if needed {
			continue
		}
		said := ""
		if exception, there := environmentExceptions[e.Name]; there {
			used[e.Name] = true
			said = exception.check(s, e, response, s.inRecordedOrder(e, body))
			if s.Compare(e, response, s.inRecordedOrder(e, body)) == "" {
				said = "it is no exception any more"
			}
		} else {
			said = s.Compare(e, response, s.inRecordedOrder(e, body))
		}
		if said != "" {
			t.Errorf("%s: %s %s: %s", e.Name, e.Method, e.Path, said)
		}
		if !held && environment != "" && response.StatusCode == http.StatusOK &&
			(strings.HasSuffix(e.Path, "/deploy") || e.Method == http.MethodDelete || strings.Contains(e.Path, "/actions/")) {
			s.awaitIdle(environment)
		}
		replayed[word]++
	}
	for name := range environmentExceptions {
		require.True(t, used[name], "the exception %s was not met", name)
	}
	t.Logf("replayed %v, %d exceptions", replayed, len(used))
}

// benchEnvironments makes the recorded Murano's environments of a benchmark.
func (s *server) benchEnvironments(all []Exchange) {
	for _, e := range all {
		if e.Name != "env-list-empty" {
			continue
		}
		for _, item := range e.ResponseBody.(map[string]any)["environments"].([]any) {
			item := item.(map[string]any)
			made := s.call("{token:other}", "POST", "/v1/environments", "application/json", fmt.Appendf(nil, `{"name": %q}`, item["name"]))
			s.IDs[item["id"].(string)] = made["id"].(string)
		}
	}
}

// exception is an exchange with another answer of Burano's, for a reason; check returns an error in the answer, or "".
type exception struct {
	reason string
	check  check
}

type check func(s *server, e Exchange, response *http.Response, body []byte) string

// status demands this status, and an error with these words.
func status(want int, words ...string) check {
	return func(_ *server, e Exchange, response *http.Response, body []byte) string {
		for _, word := range append(words, http.StatusText(want)) {
			if response.StatusCode != want || !strings.Contains(string(body), word) {
				return fmt.Sprintf("status %d: %s", response.StatusCode, body)
			}
		}
		return ""
	}
}

// text demands the recorded status and content type, and these words in the error.
func text(words ...string) check {
	return func(s *server, e Exchange, response *http.Response, body []byte) string {
		if !strings.EqualFold(response.Header.Get("Content-Type"), e.ResponseHeaders["Content-Type"]) {
			return "it is " + response.Header.Get("Content-Type")
		}
		return status(e.Status, words...)(s, e, response, body)
	}
}

// but demands the recorded value, after change was applied to both the recorded and the actual value.
func but(change func(s *server, value any) any) check {
	return func(s *server, e Exchange, response *http.Response, body []byte) string {
		var here any
		if err := json.Unmarshal(body, &here); err != nil {
			return err.Error()
		}
		body, err := json.Marshal(change(s, here))
		require.NoError(s.t, err)
		e.ResponseBody = change(s, e.ResponseBody)
		return s.Compare(e, response, body)
	}
}

// without takes keys out of all objects.
func without(keys ...string) func(*server, any) any {
	return func(_ *server, value any) any {
		return each(value, func(object map[string]any) {
			for _, key := range keys {
				delete(object, key)
			}
		})
	}
}

// ownReports demands the recorded reports, in their order, and between the first and the last one the classes' own.
func ownReports(last string) check {
	return func(s *server, e Exchange, response *http.Response, body []byte) string {
		var here struct {
			Reports []map[string]any `json:"reports"`
		}
		if err := json.Unmarshal(body, &here); err != nil || len(here.Reports) < 3 {
			return fmt.Sprintf("reports %s", body)
		}
		recorded := e.ResponseBody.(map[string]any)["reports"].([]any)
		if last == "" {
			last = recorded[1].(map[string]any)["text"].(string)
		}
		for _, report := range here.Reports[1 : len(here.Reports)-1] {
			if report["text"] == "" {
				return fmt.Sprintf("a report without a text: %s", body)
			}
		}
		end := here.Reports[len(here.Reports)-1]
		if end["text"] != last {
			return fmt.Sprintf("the last report is %q", end["text"])
		}
		recorded[1].(map[string]any)["text"] = last
		body, err := json.Marshal(map[string]any{"reports": []any{here.Reports[0], end}})
		require.NoError(s.t, err)
		return s.Compare(e, response, body)
	}
}

// failed demands deployments as recorded, except for their results' text about the failure, and their state.
var failed = but(func(_ *server, value any) any {
	return each(value, func(object map[string]any) {
		if object["isException"] == true {
			object["result"] = nil
		}
		if _, isDeployment := object["finished"]; isDeployment {
			delete(object, "state")
		}
	})
})

// unordered demands the recorded deployments in any order.
func unordered(s *server, e Exchange, response *http.Response, body []byte) string {
	var here struct {
		Deployments []any `json:"deployments"`
	}
	if err := json.Unmarshal(body, &here); err != nil || response.StatusCode != e.Status {
		return fmt.Sprintf("status %d: %s", response.StatusCode, body)
	}
	for _, wanted := range e.ResponseBody.(map[string]any)["deployments"].([]any) {
		id, known := s.IDs[wanted.(map[string]any)["id"].(string)]
		at := slices.IndexFunc(here.Deployments, func(d any) bool {
			if known {
				return d.(map[string]any)["id"] == id
			}
			return d.(map[string]any)["environment_id"] == s.IDs[wanted.(map[string]any)["environment_id"].(string)] && d.(map[string]any)["state"] == wanted.(map[string]any)["state"]
		})
		if at < 0 {
			return fmt.Sprintf("the deployment %v is not there", wanted)
		}
		found, err := json.Marshal(here.Deployments[at])
		require.NoError(s.t, err)
		one := e
		one.ResponseBody = wanted
		if said := failed(s, one, response, found); said != "" {
			return said
		}
		here.Deployments = slices.Delete(here.Deployments, at, at+1)
	}
	if len(here.Deployments) > 0 {
		return fmt.Sprintf("there are others: %v", here.Deployments)
	}
	return ""
}

// shape demands the recorded keys and kinds of values.
func shape(s *server, e Exchange, response *http.Response, body []byte) string {
	kind := func(_ *server, value any) any {
		return each(value, func(object map[string]any) {
			for key, element := range object {
				if _, isNumber := element.(float64); isNumber {
					object[key] = "number"
				} else if _, isText := element.(string); isText {
					object[key] = "text"
				}
			}
		})
	}
	return but(kind)(s, e, response, body)
}

const (
	saysWhat   = "Murano says nothing but its stock sentence, Burano says what is wrong"
	ownText    = "the text is Burano's: it says more, or does not hold Python's words"
	notStatus  = "Murano answers a caller's mistake as a failure of its own, or as something else than it is"
	reported   = "the recorded Murano lost what classes report"
	ownFailure = "states, reports and results of failed deployments are Burano's"
	randomText = "the output of the Heat template is a random text"
)

var environmentExceptions = map[string]exception{
	"schema-version-404":        {"Burano knows the versions of packages, and there is none of this one", status(404, "of version '>=5'")},
	"static-action-not-static":  {notStatus, status(400, "A class instance is required")},
	"static-action-bad-version": {ownText, text("bogus!")},

	"env-create-number-name":       {notStatus, status(400, "specify a name")},
	"env-create-nobody":            {saysWhat, text("no body")},
	"env-rename-noname":            {notStatus, status(400, "name")},
	"env-model-404-path":           {saysWhat, text("nope")},
	"env-show-broken-session":      {"Murano tells a KeyError", status(404, "no ?/id")},
	"env-model-patch-region":       {ownText, text("/region")},
	"env-model-patch-unknown-path": {ownText, text("/nope")},
	"env-model-patch-bad-schema":   {ownText, text("/name: got number, want string")},
	"env-model-patch-wrong-ct":     {notStatus, status(415)},
	"env-model-patch-nosession":    {notStatus, status(400, "X-Configuration-Session")},
	"env-model-patch-bad-session":  {notStatus, status(404, "Session")},
	"env-show-deployed-2":          {randomText, but(lengths)},
	"env-show-deleting":            {randomText, but(lengths)},
	"env-laststatus":               {reported, but(ownStatuses)},
	"env-laststatus-2":             {reported, but(ownStatuses)},
	"stats-as-user":                {"other numbers", shape},
	"stats-final":                  {"other numbers", shape},

	"services-get-bad-session":           {saysWhat, text("Session")},
	"services-put":                       {saysWhat, text("by its index")},
	"services-put-404":                   {saysWhat, text("by its index")},
	"services-delete-404":                {saysWhat, text("nothing at")},
	"services-list-noid":                 {saysWhat, text("no ?/id")},
	"services-post-session-of-other-env": {"Murano writes into another environment's session, also another project's", status(400, "is not tied with")},

	"deployment-statuses":            {reported, ownReports("")},
	"deployment-statuses-2":          {reported, ownReports("")},
	"deployment-statuses-service":    {"Murano fails with a TypeError of Python 3", aboutOne},
	"deployment-statuses-service-d":  {"Murano fails with a TypeError of Python 3", aboutOne},
	"deployment-statuses-404":        {saysWhat, text("there is no deployment")},
	"deployment-statuses-other-env":  {saysWhat, text("is not tied with")},
	"deployments-list-after-actions": {ownFailure, failed},
	"deployments-list-deploying":     {ownFailure, failed},
	"deployments-list-2":             {ownFailure, failed},
	"deployments-all-full":           {"deployments that began in one second have no order; " + ownFailure, unordered},
	"action-execute-badarg-result":   {ownFailure, failed},
	"action-execute-throws-result":   {ownFailure, failed},
	"action-404":                     {saysWhat, text("Action is not found")},
	"action-deploying":               {saysWhat, text("is deploying or deleting")},
	"fail-deployments":               {ownFailure, failed},
	"fail-deployment-statuses":       {ownFailure, ownReports("Deployment finished with errors")},
	"fail-laststatus":                {reported, but(ownStatuses)},
	"deploy-badclass-deployments":    {ownFailure, failed},
	"deploy-badclass-statuses":       {ownFailure, ownReports("Deployment finished with errors")},
	"deploy-contract-deployments":    {ownFailure, failed},
	"deploy-contract-statuses":       {ownFailure, ownReports("Deployment finished with errors")},

	"template-update-blank":        {ownText, text("EnvTemplate body is incorrect")},
	"template-update-noname":       {ownText, text("EnvTemplate body is incorrect")},
	"template-services-post-empty": {saysWhat, text("Request body is empty")},
	"template-services-get-404":    {ownText, text("has no application at")},
	"template-services-put-404":    {ownText, text("has no application at")},
	"template-services-delete":     {"Murano tells the name that the template was made with", but(without("name"))},
	"template-services-delete-404": {ownText, text("has no application at")},
}

// ownStatuses removes the classes' own reports.
func ownStatuses(_ *server, value any) any {
	statuses := value.(map[string]any)["lastStatuses"].(map[string]any)
	for id := range statuses {
		statuses[id] = nil
	}
	return value
}

// aboutOne demands reports about the requested application only, and at least one.
func aboutOne(s *server, e Exchange, response *http.Response, body []byte) string {
	_, id, _ := strings.Cut(e.Path, "service_id=")
	var here struct {
		Reports []map[string]any `json:"reports"`
	}
	if err := json.Unmarshal(body, &here); err != nil || response.StatusCode != http.StatusOK || len(here.Reports) == 0 {
		return fmt.Sprintf("status %d: %s", response.StatusCode, body)
	}
	for _, report := range here.Reports {
		if report["entity_id"] != id {
			return fmt.Sprintf("a report about something else: %v", report)
		}
	}
	return ""
}

// lengths replaces outputs of Heat templates by their lengths.
func lengths(_ *server, value any) any {
	return each(value, func(object map[string]any) {
		outputs, _ := object["templateOutputs"].(map[string]any)
		for name, output := range outputs {
			outputs[name] = float64(len(output.(string)))
		}
	})
}
