package clients

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// broker is `burano broker` as a process, with the credentials of a caller.
type broker struct {
	t              *testing.T
	url            string
	user, password string
	version        string
}

// startBroker starts it beside an existing server.
func (s *server) startBroker() *broker {
	t := s.t
	address := freeAddress(t)
	command := exec.Command(s.program, "broker", "--listen", address, "--url", s.url)
	command.Env = s.as("demo", "demo")
	log, err := os.Create(filepath.Join(s.home, "broker.log"))
	require.NoError(t, err)
	defer log.Close()
	command.Stderr = log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, command.Start())
	b := &broker{t: t, url: "http://" + address, user: "demo", password: "demo", version: "2.16"}
	t.Cleanup(func() {
		require.NoError(t, command.Process.Signal(syscall.SIGTERM))
		require.NoError(t, command.Wait(), "it ends cleanly when asked to")
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the broker's log:\n%s", text)
		}
	})
	require.Eventually(t, func() bool {
		response, err := http.Get(b.url + "/v2/catalog")
		if err != nil {
			return false
		}
		response.Body.Close()
		return true
	}, 20*time.Second, 50*time.Millisecond)
	return b
}

// call sends a request and returns the status and the body.
func (b *broker) call(method, path string, body any) (int, map[string]any) {
	b.t.Helper()
	var content []byte
	if body != nil {
		var err error
		content, err = json.Marshal(body)
		require.NoError(b.t, err)
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+"/v2/"+path, bytes.NewReader(content))
	require.NoError(b.t, err)
	if b.version != "" {
		request.Header.Set("X-Broker-API-Version", b.version)
	}
	if b.user != "" {
		request.SetBasicAuth(b.user, b.password)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(b.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	answer := map[string]any{}
	require.NoError(b.t, json.Unmarshal(text, &answer), string(text))
	return response.StatusCode, answer
}

// ended waits for the end of an instance's last operation; the state is "" when the instance is gone.
func (b *broker) ended(instance string) (state, description string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		status, answer := b.call(http.MethodGet, "service_instances/"+instance+"/last_operation", nil)
		if status == http.StatusGone {
			state, description = "", ""
			return true
		}
		require.Equal(b.t, http.StatusOK, status, answer)
		state, description = answer["state"].(string), answer["description"].(string)
		return state != "in progress"
	}, 30*time.Second, 50*time.Millisecond)
	return state, description
}

func TestPlatformsGetApplicationsFromTheBroker(t *testing.T) {
	s := start(t)
	s.write(map[string]string{
		"app/manifest.yaml": "Format: 1.4\nType: Application\nFullName: org.test.App\nName: App\nDescription: " + strings.Repeat("long ", 100) +
			"\nTags: [one]\nClasses: {org.test.App: App.yaml, org.test.Part: Part.yaml}\nRequire: {io.murano: }\n",
		"app/Classes/Part.yaml": "Namespaces: {=: org.test}\nName: Part\nProperties: {size: {Contract: $.int().notNull()}}\n",
		"app/Classes/App.yaml": `
Namespaces: {=: org.test, std: io.murano}
Name: App
Extends: std:Application
Properties:
  name: {Contract: $.string().notNull()}
  fail: {Contract: $.bool().notNull(), Default: false}
  part: {Contract: $.class(Part)}
Methods:
  deploy:
    Body:
      - If: $.fail
        Then:
          - Throw: AskedTo
            Message: asked to fail
  getCredentials:
    Scope: Public
    Body:
      - Return: {user: admin, size: $.part.size}
`,
		"plain/manifest.yaml":    "Format: 1.4\nType: Application\nFullName: org.test.Plain\nName: Plain\nClasses: {org.test.Plain: C.yaml}\nRequire: {io.murano: }\n",
		"plain/Classes/C.yaml":   "Namespaces: {=: org.test, std: io.murano}\nName: Plain\nExtends: std:Application\nProperties: {name: {Contract: $.string()}}\n",
		"library/manifest.yaml":  "Format: 1.4\nType: Library\nFullName: org.test.Library\nName: Library\nClasses: {org.test.L: C.yaml}\n",
		"library/Classes/C.yaml": "Namespaces: {=: org.test}\nName: L\n",
	})
	for _, name := range []string{"app", "plain", "library"} {
		out, ok := s.run(s.as("demo", "demo"), s.program, "package", "import", name)
		require.True(t, ok, out)
	}
	b := s.startBroker()

	// The caller and its version of the API.
	for _, version := range []string{"", "1.0", "3.0"} {
		status, answer := (&broker{t, b.url, "demo", "demo", version}).call(http.MethodGet, "catalog", nil)
		require.Equal(t, http.StatusPreconditionFailed, status, answer)
	}
	for _, one := range [][2]string{{"", ""}, {"demo", "wrong"}, {"nobody", "demo"}, {"other", "other"}} {
		status, answer := (&broker{t, b.url, one[0], one[1], "2.16"}).call(http.MethodGet, "catalog", nil)
		require.Equal(t, http.StatusUnauthorized, status, answer)
	}
	guesser := &broker{t, b.url, "other", "guessed", "2.16"}
	status, answer := 0, map[string]any(nil)
	for range 20 {
		status, answer = guesser.call(http.MethodGet, "catalog", nil)
	}
	require.Equal(t, http.StatusTooManyRequests, status, answer)

	_, answer = b.call(http.MethodGet, "catalog", nil)
	services := map[string]map[string]any{}
	for _, one := range answer["services"].([]any) {
		one := one.(map[string]any)
		services[one["name"].(string)] = one
	}
	require.Len(t, services, 2, "a library is no service")
	app := services["App"]
	require.Len(t, []rune(app["description"].(string)), 256)
	require.Equal(t, []any{"one"}, app["tags"])
	require.Equal(t, app["id"].(string)+"-1", app["plans"].([]any)[0].(map[string]any)["id"])
	of := func(name string, parameters map[string]any) map[string]any {
		id := services[name]["id"].(string)
		return map[string]any{"service_id": id, "plan_id": id + "-1", "organization_guid": "o", "space_guid": "s", "parameters": parameters}
	}
	query := "?accepts_incomplete=true&service_id=" + app["id"].(string) + "&plan_id=" + app["id"].(string) + "-1"
	expect := func(status int, code, method, path string, body any) map[string]any {
		t.Helper()
		got, answer := b.call(method, path, body)
		require.Equal(t, status, got, answer)
		if code != "" {
			require.Equal(t, code, answer["error"])
		}
		return answer
	}

	// An instance is made once, and is an environment.
	const path = "service_instances/8f1b8c4e-0001-4e2f-9d4c-1f8a6d1f0a11"
	instance := path[len("service_instances/"):]
	part := map[string]any{"?": map[string]any{"type": "org.test.Part"}, "size": 3}
	wanted := of("App", map[string]any{"name": "mine", "part": part})
	expect(http.StatusUnprocessableEntity, "AsyncRequired", http.MethodPut, path, wanted)
	unknown := of("App", nil)
	unknown["plan_id"] = "none"
	expect(http.StatusBadRequest, "", http.MethodPut, path+query, unknown)
	expect(http.StatusBadRequest, "", http.MethodPut, path+query, of("App", map[string]any{"part": "no object"}))
	expect(http.StatusGone, "", http.MethodGet, path+"/last_operation", nil)
	expect(http.StatusAccepted, "", http.MethodPut, path+query, wanted)
	state, _ := b.ended(instance)
	require.Equal(t, "succeeded", state)
	expect(http.StatusOK, "", http.MethodPut, path+query, wanted)
	expect(http.StatusConflict, "", http.MethodPut, path+query, of("App", map[string]any{"name": "another"}))
	expect(http.StatusConflict, "", http.MethodPut, path+query, of("Plain", nil))
	shown := expect(http.StatusOK, "", http.MethodGet, path, nil)
	require.Equal(t, app["id"], shown["service_id"])
	require.Equal(t, "mine", shown["parameters"].(map[string]any)["name"])
	out, ok := s.run(s.as("demo", "demo"), s.program, "environment", "list")
	require.True(t, ok)
	require.Contains(t, out, "service-"+instance)

	// The binding has the credentials, and is given another property.
	binding := expect(http.StatusCreated, "", http.MethodPut, path+"/service_bindings/b", wanted)
	require.Equal(t, map[string]any{"user": "admin", "size": 3.0}, binding["credentials"])
	wanted["parameters"] = map[string]any{"part": map[string]any{"?": map[string]any{"type": "org.test.Part"}, "size": 4}}
	expect(http.StatusAccepted, "", http.MethodPatch, path+query, wanted)
	state, _ = b.ended(instance)
	require.Equal(t, "succeeded", state)
	binding = expect(http.StatusCreated, "", http.MethodPut, path+"/service_bindings/b", wanted)
	require.Equal(t, 4.0, binding["credentials"].(map[string]any)["size"])
	expect(http.StatusUnprocessableEntity, "", http.MethodPatch, path+query, of("Plain", nil))
	expect(http.StatusOK, "", http.MethodDelete, path+"/service_bindings/b"+query, nil)

	// A failed instance reports the reason, and is deleted like any other.
	const failing = "service_instances/failing"
	expect(http.StatusAccepted, "", http.MethodPut, failing+query, of("App", map[string]any{"name": "bad", "fail": true}))
	state, description := b.ended("failing")
	require.Equal(t, "failed", state)
	require.Contains(t, description, "asked to fail")
	const plain = "service_instances/plain"
	expect(http.StatusAccepted, "", http.MethodPut, plain+query, of("Plain", nil))
	state, _ = b.ended("plain")
	require.Equal(t, "succeeded", state)
	require.Contains(t, expect(http.StatusUnprocessableEntity, "", http.MethodPut, plain+"/service_bindings/b", of("Plain", nil))["description"], "no action getCredentials")

	expect(http.StatusBadRequest, "", http.MethodDelete, path+"?accepts_incomplete=true", nil)
	for _, one := range []string{path, failing, plain} {
		expect(http.StatusAccepted, "", http.MethodDelete, one+query, nil)
		state, _ = b.ended(one[len("service_instances/"):])
		require.Empty(t, state)
		expect(http.StatusGone, "", http.MethodDelete, one+query, nil)
		expect(http.StatusNotFound, "", http.MethodGet, one, nil)
	}
}
