package golden

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// edge is a request that the recording does not have, and a real Murano's answer to it. $names are replaced by ids of earlier answers.
type edge struct {
	name    string
	who     string // demo, other or admin
	request string // method and path
	session string // X-Configuration-Session
	body    string // JSON; "" for none
	status  int
	kind    string            // media type of the answer; "" is JSON's, "*" any
	begins  string            // the beginning of the answer, instead of answer
	answer  string            // exact; JSON is compared as JSON, without keys that are missing here; "" is an empty body, "*" any
	keep    map[string]string // names for the values under these keys of the answer
}

const (
	plainText = "text/plain; charset=UTF-8"
	htmlText  = "text/html; charset=UTF-8"
)

// refused is an error as WebOb writes it as text.
func refused(status int, explanation string) string {
	return fmt.Sprintf("%d %s\n\n%s\n\n   ", status, http.StatusText(status), explanation)
}

const (
	anApplication = `{"?": {"id": "cccccccccccccccccccccccccccccccc", "type": "org.golden.Hello"}, "name": "one"}`
	noHeaderGiven = "X-Configuration-Session header which indicates to the session is missed"
)

// edges are sent in this order.
func edges() []edge {
	// An environment stores any posted model: here one with a disabled action.
	withAction := `{"name": "edges-one", "services": [{"name": "acts", "?": {"id": "dddddddddddddddddddddddddddddddd", "type": "org.golden.Hello",
		"_actions": {"dddddddddddddddddddddddddddddddd_off": {"name": "off", "enabled": false}}}}]}`
	list := []edge{
		{name: "an environment", who: "demo", request: "POST /v1/environments", body: withAction, status: 200, answer: "*", keep: map[string]string{"id": "$one"}},
		{name: "another one", who: "demo", request: "POST /v1/environments", body: `{"name": "edges-two"}`, status: 200, answer: "*", keep: map[string]string{"id": "$two"}},
		{name: "a session", who: "demo", request: "POST /v1/environments/$one/configure", status: 200, answer: "*", keep: map[string]string{"id": "$session"}},
		{name: "a session of the other one", who: "demo", request: "POST /v1/environments/$two/configure", status: 200, answer: "*", keep: map[string]string{"id": "$foreign"}},

		{name: "an unknown action", who: "demo", request: "POST /v1/environments/$one/actions/nope", body: `{}`, status: 404, kind: htmlText,
			answer: `{"code": 404, "title": "Not Found", "explanation": "The resource could not be found.",
				"error": {"message": "Action is not found", "type": "LookupError", "traceback": null}}`},
		{name: "a disabled action", who: "demo", request: "POST /v1/environments/$one/actions/dddddddddddddddddddddddddddddddd_off", body: `{}`, status: 400, kind: htmlText,
			answer: `{"code": 400, "title": "Bad Request", "explanation": "The server could not comply with the request since it is either malformed or otherwise incorrect.",
				"error": {"message": "Cannot execute disabled action", "type": "ValueError", "traceback": null}}`},

		{name: "services without a session, no environment", who: "demo", request: "POST /v1/environments/None/services", body: anApplication, status: 400,
			kind: plainText, answer: refused(400, noHeaderGiven)},
		{name: "services replaced without a session, no environment", who: "demo", request: "PUT /v1/environments/None/services", body: `[]`, status: 400,
			kind: plainText, answer: refused(400, noHeaderGiven)},
		{name: "services deleted without a session, no environment", who: "demo", request: "DELETE /v1/environments/None/services/x", status: 400,
			kind: plainText, answer: refused(400, noHeaderGiven)},
		{name: "services without a session, another project's environment", who: "other", request: "POST /v1/environments/$one/services", body: anApplication, status: 400,
			kind: plainText, answer: refused(400, noHeaderGiven)},
		{name: "services with a session, no environment", who: "demo", request: "POST /v1/environments/None/services", session: "$session", body: anApplication, status: 404,
			kind: plainText, answer: refused(404, "Environment with id None not found")},
		{name: "services with no such session, no environment", who: "demo", request: "POST /v1/environments/None/services", session: "nope", body: anApplication, status: 404,
			kind: plainText, answer: refused(404, "Session  is not found")},
	}
	for _, request := range []string{"GET /v1/environments/%s/sessions/%s", "DELETE /v1/environments/%s/sessions/%s", "POST /v1/environments/%s/sessions/%s/deploy"} {
		list = append(list,
			edge{name: "a session, no environment", who: "demo", request: fmt.Sprintf(request, "None", "$session"), status: 400, kind: plainText,
				answer: refused(400, "Session  is not tied with Environment ")},
			edge{name: "a session of another environment", who: "demo", request: fmt.Sprintf(request, "$one", "$foreign"), status: 400, kind: plainText,
				answer: refused(400, "Session  is not tied with Environment ")},
			edge{name: "a session of another project, of another environment", who: "other", request: fmt.Sprintf(request, "$one", "$foreign"), status: 400, kind: plainText,
				answer: refused(400, "Session  is not tied with Environment ")},
			edge{name: "no session, no environment", who: "demo", request: fmt.Sprintf(request, "None", "nope"), status: 404, kind: plainText,
				answer: refused(404, "Session  is not found")},
			edge{name: "a session of another project", who: "other", request: fmt.Sprintf(request, "$one", "$session"), status: 403, kind: plainText,
				answer: refused(403, "User is not authorized to access these tenant resources")})
	}
	for _, empty := range []string{`null`, `{}`, `false`, `0`, `0.0`, `""`, `[]`} {
		list = append(list,
			edge{name: "an application", who: "demo", request: "POST /v1/environments/$one/services", session: "$session", body: anApplication, status: 200, answer: anApplication},
			edge{name: "services replaced by " + empty, who: "demo", request: "PUT /v1/environments/$one/services", session: "$session", body: empty, status: 200, answer: `[]`},
			edge{name: "no services", who: "demo", request: "GET /v1/environments/$one/services", session: "$session", status: 200, answer: `[]`})
	}
	// Where paths lead nowhere.
	notThere := "404 Not Found\n\nThe resource could not be found"
	list = append(list, edge{name: "an application", who: "demo", request: "POST /v1/environments/$one/services", session: "$session", body: anApplication, status: 200, answer: anApplication},
		edge{name: "no application of the id", who: "demo", request: "GET /v1/environments/$one/services/nope", session: "$session", status: 200})
	for _, nowhere := range []string{"GET /v1/environments/$one/services/cccccccccccccccccccccccccccccccc/nope", "GET /v1/environments/$one/services/cccccccccccccccccccccccccccccccc/nope/x",
		"DELETE /v1/environments/$one/services/nope", "DELETE /v1/environments/$one/services/cccccccccccccccccccccccccccccccc/nope/x"} {
		list = append(list, edge{name: "nothing there", who: "demo", request: nowhere, session: "$session", status: 404, kind: plainText, begins: notThere})
	}
	list = append(list,
		edge{name: "no application of the number", who: "demo", request: "GET /v1/environments/$one/services/7", session: "$session", status: 404, kind: "*"},
		edge{name: "nothing whose member could be replaced", who: "demo", request: "PUT /v1/environments/$one/services/0/nope/x", session: "$session", body: `1`, status: 404,
			kind: plainText, begins: notThere})
	return append(list,
		edge{name: "a template", who: "demo", request: "POST /v1/templates", body: `{"name": "edges", "services": [` + anApplication + `]}`, status: 200, answer: "*",
			keep: map[string]string{"id": "$template"}},
		edge{name: "an environment of it", who: "demo", request: "POST /v1/templates/$template/create-environment", body: `{"name": "edges-three"}`, status: 200, answer: "*",
			keep: map[string]string{"environment_id": "$three", "session_id": "$drafted"}},
		edge{name: "its application keeps its id", who: "demo", request: "GET /v1/environments/$three/services/cccccccccccccccccccccccccccccccc", session: "$drafted", status: 200,
			answer: anApplication},

		edge{name: "a session goes", who: "demo", request: "DELETE /v1/environments/$two/sessions/$foreign", status: 200},
		edge{name: "a template goes", who: "demo", request: "DELETE /v1/templates/$template", status: 200},
		edge{name: "the first environment goes", who: "demo", request: "DELETE /v1/environments/$one", status: 200},
		edge{name: "the second goes", who: "demo", request: "DELETE /v1/environments/$two", status: 200},
		edge{name: "the third goes", who: "demo", request: "DELETE /v1/environments/$three", status: 200},
	)
}

// TestEdgesAnswerAsMuranoDoes sends requests that the recording does not have. With BURANO_TEST_MURANO=URL and the tokens
// BURANO_TEST_DEMO and BURANO_TEST_OTHER, of two projects, it sends them to a real Murano, and so proves these expectations.
func TestEdgesAnswerAsMuranoDoes(t *testing.T) {
	target, tokens, isMurano := os.Getenv("BURANO_TEST_MURANO"), map[string]string{"demo": "{token:demo}", "other": "{token:other}"}, true
	if target == "" {
		target, isMurano = newServer(t).URL, false
	} else {
		tokens = map[string]string{"demo": os.Getenv("BURANO_TEST_DEMO"), "other": os.Getenv("BURANO_TEST_OTHER")}
	}
	known := map[string]string{}
	filled := func(text string) string {
		for name, id := range known {
			text = strings.ReplaceAll(text, name, id)
		}
		return text
	}
	for _, e := range edges() {
		method, path, _ := strings.Cut(filled(e.request), " ")
		request, err := http.NewRequestWithContext(t.Context(), method, target+path, strings.NewReader(e.body))
		require.NoError(t, err)
		request.Header.Set("X-Auth-Token", tokens[e.who])
		if e.session != "" {
			request.Header.Set("X-Configuration-Session", filled(e.session))
		}
		if e.body != "" {
			request.Header.Set("Content-Type", "application/json")
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if said := e.differs(response, body); said != "" {
			t.Errorf("%s: %s %s: %s", e.name, method, path, said)
		}
		if said := framing(response, body); said != "" && !isMurano {
			t.Errorf("%s: %s %s: %s", e.name, method, path, said)
		} else if isMurano && said != "" {
			t.Logf("Murano: %s: %s", e.name, said)
		}
		var answer map[string]any
		_ = json.Unmarshal(body, &answer)
		for key, name := range e.keep {
			require.NotEmpty(t, answer[key], "%s: %s", e.name, body)
			known[name] = fmt.Sprint(answer[key])
		}
	}
}

// differs returns the difference between an answer and the expected one.
func (e edge) differs(response *http.Response, body []byte) string {
	kind := e.kind
	if kind == "" {
		kind = "application/json"
	}
	if response.StatusCode != e.status || kind != "*" && response.Header.Get("Content-Type") != kind {
		return fmt.Sprintf("%d, %s: %s", response.StatusCode, response.Header.Get("Content-Type"), short(body))
	}
	if e.answer == "*" || kind == "*" {
		return ""
	}
	if e.begins != "" {
		if !strings.HasPrefix(string(body), e.begins) {
			return fmt.Sprintf("%q does not begin with %q", body, e.begins)
		}
		return ""
	}
	if kind == plainText || e.answer == "" {
		if string(body) != e.answer {
			return fmt.Sprintf("%q and not %q", body, e.answer)
		}
		return ""
	}
	var want, got any
	if err := json.Unmarshal([]byte(e.answer), &want); err != nil {
		return "the wanted answer: " + err.Error()
	}
	if err := json.Unmarshal(body, &got); err != nil {
		return fmt.Sprintf("%s: %s", err, short(body))
	}
	return within("", want, got)
}

// within compares expected and actual values: actual objects may have more keys, and actual messages more text.
func within(where string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: %v", where, got)
		}
		for key, element := range w {
			if said := within(where+"."+key, element, g[key]); said != "" {
				return said
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: %v", where, got)
		}
		for i := range w {
			if said := within(fmt.Sprintf("%s[%d]", where, i), w[i], g[i]); said != "" {
				return said
			}
		}
		return ""
	case string:
		if g, ok := got.(string); ok && strings.HasPrefix(g, w) {
			return ""
		}
	}
	if want != got {
		return fmt.Sprintf("%s: %v and not %v", where, got, want)
	}
	return ""
}
