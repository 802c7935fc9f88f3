package api

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/audit"
	"github.com/burano/burano/web/auth"
)

// auditedServer accounts in lines and rows.
func auditedServer(t *testing.T) (s *server, lines func() []audit.Event) {
	var mutex sync.Mutex
	var text bytes.Buffer
	s = newServer(t, func(c *Config) {
		proxies, err := auth.ParseProxies([]string{"192.0.2.1"}) // httptest's
		require.NoError(t, err)
		c.Address = auth.AddressOf(proxies)
	})
	account := audit.New(audit.Config{Lines: lockedWriter{&mutex, &text}, Rows: s.rows.Audit(), Keep: time.Hour, Observer: "host-1", Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	s.config.Audit, s.config.AuditRows = account, s.rows.Audit()
	s.echo = newEcho(s.config)
	s.stopAudit = sync.OnceFunc(account.Start())
	t.Cleanup(s.stopAudit)
	return s, func() []audit.Event {
		mutex.Lock()
		defer mutex.Unlock()
		var events []audit.Event
		for line := range strings.Lines(text.String()) {
			require.NotContains(t, line, "correct horse")
			require.NotContains(t, line, "{token:")
			var event audit.Event
			require.NoError(t, json.Unmarshal([]byte(line), &event))
			events = append(events, event)
		}
		return events
	}
}

func TestWhoDidWhatIsInTheAuditLog(t *testing.T) {
	s, lines := auditedServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	event := lines()[0]
	require.Equal(t, "create", event.Action)
	require.Equal(t, "success", event.Outcome)
	require.Equal(t, audit.Resource{TypeURI: "service/application-catalog/environments", ID: id}, event.Target)
	require.Equal(t, "u-demo", event.Initiator.ID)
	require.Equal(t, goldenDemo, event.Initiator.ProjectID)
	require.Equal(t, "192.0.2.1", event.Initiator.Host.Address)
	require.Equal(t, "host-1", event.Observer.ID)
	require.Equal(t, "POST /v1/environments", event.Request)
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+0000$`, event.EventTime)
	require.Equal(t, audit.Reason{Type: "HTTP", Code: "200"}, event.Reason)
	require.NotEmpty(t, event.RequestID)

	session := field(s.call("demo", "", "POST", "/v1/environments/"+id+"/configure", nil, 200), "id").(string)
	application := hello("a1", "alpha")
	application["password"] = "correct horse"
	s.call("demo", session, "POST", "/v1/environments/"+id+"/services", application, 200)
	s.call("demo", "", "GET", "/v1/environments/"+id, nil, 200) // changes nothing
	s.call("demo", "", "POST", "/v1/environments/"+id+"/sessions/"+session+"/deploy", nil, 200)
	s.awaitIdle(id)
	s.call("demo", "", "DELETE", "/v1/environments/"+id, nil, 200)
	s.send("GET", "/v1/environments", nil, nil)
	s.send("GET", "/v1/environments/"+id, map[string]string{"X-Auth-Token": "{token:other}", "X-Forwarded-For": "10.9.8.7", "User-Agent": "curl"}, nil)
	s.send("DELETE", "/v1/nothing/of/this/name", map[string]string{"X-Auth-Token": "{token:demo}"}, nil)
	s.send("GET", "/healthz", nil, nil)
	s.send("GET", "/burano/v1/environments/"+id+"/clusters/a1/kubeconfig", asDemo, nil)
	var told []string
	for _, event := range lines() {
		told = append(told, event.Action+" "+event.Outcome+" "+strings.TrimPrefix(event.Target.TypeURI, audit.ServiceURI)+" "+event.Reason.Code)
	}
	require.Equal(t, []string{"create success /environments 200", "create success /environments/configure 200", "create success /environments/services 200",
		"deploy success /environments/sessions/deploy 200", "delete success /environments 200", "read failure /environments 401",
		"read failure /environments 403", "delete failure  404", "read success /environments/clusters/kubeconfig 200"}, told)
	refused := lines()[6]
	require.Equal(t, "10.9.8.7", refused.Initiator.Host.Address)
	require.Equal(t, "curl", refused.Initiator.Host.Agent)
	require.Equal(t, "u-other", refused.Initiator.ID)
	require.Empty(t, lines()[5].Initiator.ID, "nobody knows who it was")
}

func TestSignInsAreInTheAuditLogWithTheirAccountAndWithoutTheirPassword(t *testing.T) {
	s, lines := auditedServer(t)
	s.send("POST", "/burano/v1/session", map[string]string{"Content-Type": "application/json", auth.RequestedWith: "test"},
		[]byte(`{"user": "mallory", "password": "correct horse"}`))
	event := lines()[0]
	require.Equal(t, "authenticate/login", event.Action)
	require.Equal(t, "failure", event.Outcome)
	require.Equal(t, "mallory", event.Initiator.Name)
}

func TestAuditEventsAreListedForThoseWhoMay(t *testing.T) {
	s, lines := auditedServer(t)
	id := field(s.call("demo", "", "POST", "/v1/environments", map[string]any{"name": "one"}, 200), "id").(string)
	s.call("other", "", "POST", "/v1/environments", map[string]any{"name": "two"}, 200)
	s.call("demo", "", "PUT", "/v1/environments/"+id, map[string]any{"name": "three"}, 200)
	require.Len(t, lines(), 3)
	list := func(query string) (actions []string, next string) {
		answer := s.call("admin", "", "GET", "/burano/v1/audit"+query, nil, 200).(map[string]any)
		for _, event := range answer["events"].([]any) {
			actions = append(actions, field(event, "action").(string))
		}
		next, _ = answer["next_marker"].(string)
		return actions, next
	}
	require.Eventually(t, func() bool { actions, _ := list(""); return len(actions) == 3 }, 20*time.Second, 10*time.Millisecond)
	actions, next := list("?limit=2")
	require.Equal(t, []string{"update", "create"}, actions)
	actions, next = list("?limit=2&marker=" + next)
	require.Equal(t, []string{"create"}, actions)
	require.Empty(t, next)
	for query, number := range map[string]int{"?project_id=" + goldenDemo: 2, "?user_id=u-other": 1, "?action=update": 1, "?target_id=" + id: 2, "?outcome=failure": 0,
		"?request_id=" + lines()[1].RequestID: 1, "?since=2999-01-01T00:00:00Z": 0, "?until=2999-01-01T00:00:00Z": 3} {
		actions, _ := list(query)
		require.Len(t, actions, number, query)
	}
	require.Equal(t, http.StatusForbidden, s.send("GET", "/burano/v1/audit", asDemo, nil).Code, "users see none")
	for _, bad := range []string{"?limit=0", "?limit=x", "?marker=nothing", "?since=yesterday", "?what=ever"} {
		require.Equal(t, http.StatusBadRequest, s.send("GET", "/burano/v1/audit"+bad, map[string]string{"X-Auth-Token": "{token:admin}"}, nil).Code, bad)
	}
	_, err := netip.ParseAddr(lines()[0].Initiator.Host.Address)
	require.NoError(t, err)
}

type lockedWriter struct {
	mutex *sync.Mutex
	to    *bytes.Buffer
}

func (w lockedWriter) Write(text []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.to.Write(text)
}

// TestOfWhatStrangersSayLittleIsWrittenDown sends requests that need no account: long headers and paths, many times.
func TestOfWhatStrangersSayLittleIsWrittenDown(t *testing.T) {
	s, lines := auditedServer(t)
	long := strings.Repeat("\u263a", 10_000)
	headers := map[string]string{"User-Agent": long, "X-Openstack-Request-Id": long, "X-Forwarded-For": "203.0.113.9"}
	for range 500 {
		require.Equal(t, 401, s.send("GET", "/v1/environments/"+strings.Repeat("x", 10_000), headers, nil).Code)
	}
	written := 0
	for _, event := range lines() {
		text, err := json.Marshal(event)
		require.NoError(t, err)
		require.Less(t, len(text), 4<<10)
		written++
	}
	require.Equal(t, 20, written)
	require.Less(t, s.log.Len(), 200<<10, "the log has some lines, and short ones")

	// The others are one event at the end, with their number.
	s.stopAudit()
	events, err := s.rows.Audit().AuditEvents(t.Context(), store.AuditFilter{Limit: 1000})
	require.NoError(t, err)
	require.Len(t, events, 21)
	var last audit.Event
	require.NoError(t, json.Unmarshal([]byte(events[0].Event), &last))
	require.Equal(t, "203.0.113.9", last.Initiator.Host.Address)
	require.Equal(t, "480", last.Attachments[0].Content)
}

func TestAuditEventsOfOneProjectAreKeptUpToANumber(t *testing.T) {
	s := newServer(t)
	add := func(project string, number int) {
		var events []store.AuditEvent
		for n := range number {
			events = append(events, store.AuditEvent{ID: store.NewID(), ProjectID: project, Event: "{}", Created: store.Time(n)})
		}
		require.NoError(t, s.rows.Audit().AddAuditEvents(t.Context(), events))
	}
	add("", 50)
	add("busy", 30)
	add("calm", 10)
	for {
		removed, err := s.rows.Audit().RemoveFurtherAuditEvents(t.Context(), 20, 7)
		require.NoError(t, err)
		if removed < 7 {
			break
		}
	}
	for project, kept := range map[string]int{"busy": 20, "calm": 10} {
		events, err := s.rows.Audit().AuditEvents(t.Context(), store.AuditFilter{ProjectID: project, Limit: 100})
		require.NoError(t, err)
		require.Len(t, events, kept)
		require.EqualValues(t, map[string]int{"busy": 29, "calm": 9}[project], events[0].Created, "the newest stay")
	}
	events, err := s.rows.Audit().AuditEvents(t.Context(), store.AuditFilter{Limit: 100})
	require.NoError(t, err)
	require.Len(t, events, 50)
}
