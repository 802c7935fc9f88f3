package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

// machines is a server with an environment that has a cluster which machines can join.
type machines struct {
	*server
	environment, tokens string
}

// withMachines has a cluster c1, whose action takes a machine, or throws for a certain name of it.
func withMachines(s *server) machines {
	var archive bytes.Buffer
	require.NoError(s.t, catalog.WriteZip(&archive, fstest.MapFS{
		"manifest.yaml": {Data: []byte("Format: 1.4\nType: Application\nFullName: org.test.Cluster\nName: Cluster\nClasses: {org.test.Cluster: A.yaml}\n")},
		"Classes/A.yaml": {Data: []byte(`Namespaces: {=: org.test, std: io.murano, sys: io.murano.system}
Name: Cluster
Extends: std:Application
Properties:
  joined: {Contract: $.string(), Usage: InOut}
Methods:
  addExternalNode:
    Scope: Public
    Arguments:
      - {name: {Contract: $.string().notNull()}}
      - {address: {Contract: $.string().notNull()}}
      - {port: {Contract: $.int().notNull()}}
      - {user: {Contract: $.string().notNull()}}
      - {hostKey: {Contract: $.string().notNull()}}
    Body:
      - If: $name = broken
        Then:
          - Throw: Unready
            Message: "in cluster c1: broken: it swaps"
      - $.joined: concat($name, '|', $address, '|', str($port), '|', $user, '|', $hostKey)
`)},
	}))
	meta, err := catalog.ParseMetadata([]byte("{}"))
	require.NoError(s.t, err)
	_, err = s.catalog.Upload(s.t.Context(), callers["{token:demo}"], meta, archive.Bytes())
	require.NoError(s.t, err)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "joined"}, 200), "id").(string)
	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", map[string]any{"?": map[string]any{"id": "c1", "type": "org.test.Cluster"}}, 200)
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)
	return machines{s, id, "/burano/v1/environments/" + id + "/clusters/c1/join-tokens"}
}

func (m machines) token(body any) (id, text string) {
	m.t.Helper()
	made := m.call("demo", "", "POST", m.tokens, body, 200)
	return field(made, "id").(string), field(made, "token").(string)
}

// with calls as a machine that has nothing but its token, and returns the answer with its message.
func (m machines) with(token, method, path string, body any) (code int, answer map[string]any, said string) {
	m.t.Helper()
	var text []byte
	headers := map[string]string{joinHeader: token}
	if body != nil {
		var err error
		text, err = json.Marshal(body)
		require.NoError(m.t, err)
		headers["Content-Type"] = "application/json"
	}
	recorder := m.send(method, joinPath+path, headers, text)
	if recorder.Body.Len() > 0 {
		require.NoError(m.t, json.Unmarshal(recorder.Body.Bytes(), &answer))
	}
	said, _ = answer["message"].(string)
	return recorder.Code, answer, said
}

func lab(name string) map[string]any {
	return map[string]any{"name": name, "address": "198.51.100.7", "host_key": "ssh-ed25519 key of " + name}
}

func TestAMachineJoinsByATokenOfOneUse(t *testing.T) {
	m := withMachines(newServer(t))
	_, token := m.token(nil)

	code, answer, said := m.with(token, "GET", "", nil)
	require.Equal(t, 200, code, said)
	require.Equal(t, "waiting", answer["state"])
	code, _, said = m.with(token, "POST", "/deployment", nil)
	require.Equal(t, 400, code)
	require.Contains(t, said, "which machine")

	code, answer, said = m.with(token, "POST", "", lab("lab-1"))
	require.Equal(t, 200, code, said)
	require.Equal(t, map[string]any{"id": answer["id"], "node": "lab-1", "cluster": "of " + m.environment, "public_key": "ssh-ed25519 AAAA burano", "owner": "owner"}, answer, "and nothing else")
	code, _, said = m.with(token, "POST", "", lab("lab-2"))
	require.Equal(t, 403, code)
	require.Contains(t, said, "another machine")

	code, _, said = m.with(token, "POST", "/deployment", nil)
	require.Equal(t, 202, code, said)
	m.awaitIdle(m.environment)
	code, answer, said = m.with(token, "GET", "?after=0", nil)
	require.Equal(t, 200, code, said)
	require.Equal(t, "joined", answer["state"], "%v", answer)
	lines, err := json.Marshal(answer["reports"])
	require.NoError(t, err)
	require.Contains(t, string(lines), "The machine lab-1 (198.51.100.7) joins by the token")
	require.NotContains(t, string(lines), "Deployment finished", "lines that are not about the machine")
	model := m.call("demo", "", "GET", "/v1/environments/"+m.environment+"/services/c1", nil, 200)
	require.Equal(t, "lab-1|198.51.100.7|22|root|ssh-ed25519 key of lab-1", field(model, "joined"))

	code, _, said = m.with(token, "POST", "", lab("lab-1"))
	require.Equal(t, 403, code)
	require.Contains(t, said, "this machine joined by it at")
	code, _, _ = m.with(token, "POST", "/deployment", nil)
	require.Equal(t, 202, code, "whose answer was lost")
	tokens := m.call("reader", "", "GET", m.tokens, nil, 200)
	one := field(tokens, "join_tokens").([]any)[0]
	require.Equal(t, "joined", field(one, "state"))
	require.Equal(t, "lab-1", field(one, "node"))
	require.NotContains(t, one, "token")
}

func TestAMachineThatFailedMayTryAgain(t *testing.T) {
	m := withMachines(newServer(t))
	_, token := m.token(map[string]any{"lifetime": "30m"})
	broken := lab("broken")
	for range 2 {
		code, _, said := m.with(token, "POST", "", broken)
		require.Equal(t, 200, code, said)
		code, _, said = m.with(token, "POST", "/deployment", nil)
		require.Equal(t, 202, code, said)
		m.awaitIdle(m.environment)
		_, answer, _ := m.with(token, "GET", "", nil)
		require.Equal(t, "failed", answer["state"])
		lines, err := json.Marshal(answer["reports"])
		require.NoError(t, err)
		require.Contains(t, string(lines), "broken: it swaps")
	}
	broken["name"] = "mended"
	code, _, said := m.with(token, "POST", "", broken)
	require.Equal(t, 200, code, said)
	code, _, said = m.with(token, "POST", "/deployment", nil)
	require.Equal(t, 202, code, said)
	m.awaitIdle(m.environment)
	_, answer, _ := m.with(token, "GET", "", nil)
	require.Equal(t, "joined", answer["state"])
}

func TestTokensThatAreNoneSayNothing(t *testing.T) {
	m := withMachines(newServer(t))
	id, token := m.token(nil)
	other, gone := m.token(nil)
	m.call("demo", "", "DELETE", m.tokens+"/"+other, nil, 200)
	m.call("demo", "", "DELETE", m.tokens+"/"+other, nil, 404)
	said := map[string]bool{}
	for _, text := range []string{"", ".", "nonsense", id, id + ".", id + ".AAAAAAAAAAAAAAAAAAAAAAAAAA", other + "." + token[33:], gone} {
		code, _, message := m.with(text, "POST", "", lab("lab-1"))
		require.Equal(t, 401, code, "%q", text)
		said[message] = true
	}
	require.Len(t, said, 1, "the same is said of all")

	require.NoError(t, m.db.Exec("UPDATE join_tokens SET expires = 1").Error)
	code, _, message := m.with(token, "POST", "", lab("lab-1"))
	require.Equal(t, 403, code)
	require.Contains(t, message, "expired at 1970-01-01")
	for range 12 {
		code, _, message = m.with("guess", "GET", "", nil)
	}
	require.Equal(t, 429, code)
	require.Contains(t, message, "Too many attempts to use a join token")
}

func TestAMachineThatJoinsSendsNoMoreThanALittle(t *testing.T) {
	m := withMachines(newServer(t))
	_, token := m.token(nil)
	machine := lab("lab-1")
	machine["host_key"] = "ssh-ed25519 " + strings.Repeat("A", 1<<20)
	code, _, said := m.with(token, "POST", "", machine)
	require.Equal(t, 413, code, said)
	code, _, said = m.with(token, "POST", "", map[string]any{"name": "lab-1", "certificate_request": "x"})
	require.Equal(t, 400, code, said)
	require.Less(t, len(said), 1<<10)
}

func TestTokensAreMadeByWhoMayDeploy(t *testing.T) {
	m := withMachines(newServer(t))
	m.call("reader", "", "POST", m.tokens, nil, 403)
	m.call("other", "", "POST", m.tokens, nil, 403)
	for _, lifetime := range []any{"soon", "1s", "200h", 7} {
		m.call("demo", "", "POST", m.tokens, map[string]any{"lifetime": lifetime}, 400)
	}
	base := "/burano/v1/environments/" + m.environment + "/clusters/"
	m.call("demo", "", "POST", base+"nothing/join-tokens", nil, 404)
	mine := m.populate("demo", "demos")
	m.call("demo", "", "POST", "/burano/v1/environments/"+mine["environment"]+"/clusters/"+mine["cluster"]+"/join-tokens", nil, 409)
}

func TestAMachineWaitsForWhatOthersDoInTheEnvironment(t *testing.T) {
	m := withMachines(newServer(t))
	_, token := m.token(nil)
	code, _, said := m.with(token, "POST", "", lab("lab-1"))
	require.Equal(t, 200, code, said)
	require.NoError(t, m.db.Exec("UPDATE sessions SET state = 'deploying' WHERE environment_id = ?", m.environment).Error)
	code, _, said = m.with(token, "POST", "/deployment", nil)
	require.Equal(t, 409, code)
	require.Contains(t, said, "is being deployed or deleted at the moment")
}

func TestWhatAMachineDoesIsItsTokensMakersInTheAuditLog(t *testing.T) {
	s, lines := auditedServer(t)
	m := withMachines(s)
	id, token := m.token(nil)
	_, _, _ = m.with(token, "POST", "", lab("lab-1"))
	_, _, _ = m.with(token, "GET", "", nil)
	_, _, _ = m.with("guess", "POST", "", lab("lab-1"))
	events := lines()
	made, redeemed, guessed := events[len(events)-3], events[len(events)-2], events[len(events)-1]
	require.Equal(t, "POST "+m.tokens, made.Request)
	require.Equal(t, id, made.Target.ID)
	require.Equal(t, "POST /burano/v1/join", redeemed.Request)
	require.Equal(t, id, redeemed.Target.ID)
	require.Equal(t, "u-demo", redeemed.Initiator.ID)
	require.Equal(t, goldenDemo, redeemed.Initiator.ProjectID)
	require.Equal(t, "failure", guessed.Outcome)
}
