package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/requestid"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/audit"
)

// keySubject is the key of the call's subject in the request's context, if its path does not name it: the account of a sign-in.
const keySubject = "subject"

// actions are CADF's words for calls whose method is not enough.
var actions = map[string]string{
	"POST /burano/v1/session":                                               "authenticate/login",
	"DELETE /burano/v1/session":                                             "authenticate/logout",
	"PUT /burano/v1/session/project":                                        "authenticate/renew",
	"POST /v1/environments/:environment/sessions/:session/deploy":           "deploy",
	"POST /v1/environments/:environment/actions/:action":                    "start",
	"POST /v1/actions":                                                      "start",
	"POST /burano/v1/deployments/:deployment/cancel":                        "stop",
	"POST /burano/v1/deployments/:deployment/retry":                         "deploy",
	"POST /burano/v1/environments/:environment/hibernate":                   "disable",
	"POST /burano/v1/environments/:environment/wake":                        "enable",
	"GET /burano/v1/environments/:environment/clusters/:cluster/kubeconfig": "read",
	"GET /burano/v1/environments/:environment/clusters/:cluster/credential": "read",
	"GET /burano/v1/snapshots/:snapshot/content":                            "read",

	"POST /burano/v1/join/deployment": "deploy",

	"POST /burano/v1/environments/:environment/clusters/:cluster/upgrade/pause":        "stop",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/labels":   "update",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/taints":   "update",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/cordon":   "disable",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/uncordon": "enable",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/lock":     "disable",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/unlock":   "enable",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/reboot":   "start",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/swact":    "start",
	"POST /burano/v1/environments/:environment/clusters/:cluster/nodes/:node/replace":  "start",
}

// unaudited are the routes that change nothing in spite of their method.
var unaudited = map[string]bool{
	"POST /burano/v1/forms/:package":                                       true,
	"POST /burano/v1/environments/:environment/components/:component/form": true,
}

// audited records each call that changes something, sign-ins, downloads of a kubeconfig, and refusals. It comes before all middleware that refuses.
func audited(log *audit.Log, address echo.IPExtractor) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		if log == nil {
			return next
		}
		return func(c echo.Context) error {
			method := c.Request().Method
			changes := method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
			var made *madeID
			if method == http.MethodPost {
				made = &madeID{ResponseWriter: c.Response().Writer}
				c.Response().Writer = made
			}
			err := next(c)
			route, status := method+" "+c.Path(), c.Response().Status
			if !routed(c) && !changes && status != http.StatusUnauthorized {
				return err
			}
			refused := status == http.StatusUnauthorized || status == http.StatusForbidden
			if open[c.Request().URL.Path] || unaudited[route] && !refused || !changes && !refused && actions[route] == "" {
				return err
			}
			log.Record(c.Request().Context(), event(c, address, made), strconv.Itoa(status))
			return err
		}
	}
}

func event(c echo.Context, address echo.IPExtractor, made *madeID) audit.Event {
	request := c.Request()
	caller := identity.From(request.Context())
	e := audit.Event{Action: actions[request.Method+" "+c.Path()], Outcome: audit.Success, Request: request.Method + " " + request.URL.Path,
		RequestID: requestid.From(request.Context())}
	if e.Action == "" {
		e.Action = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "update", http.MethodDelete: "delete"}[request.Method]
	}
	if e.Action == "" {
		e.Action = "read"
	}
	if c.Response().Status >= http.StatusBadRequest {
		e.Outcome = audit.Failure
	}
	e.Initiator = audit.Initiator{TypeURI: audit.UserTypeURI, ID: caller.UserID, Name: caller.UserName, ProjectID: caller.ProjectID,
		Host: audit.Host{Address: address(request), Agent: request.UserAgent()}}
	if caller.Credential != nil {
		e.Initiator.Credential = caller.Credential.ID
	}
	if subject, ok := c.Get(keySubject).(string); ok && e.Initiator.Name == "" {
		e.Initiator.Name = subject
	}
	e.Target = auditTarget(c)
	if id := made.id(); id != "" && strings.HasPrefix(e.Action, "create") {
		e.Target.ID = id
	}
	return e
}

// auditTarget is the target of a path: its last named part, and the id after it or, without one, the id before.
func auditTarget(c echo.Context) audit.Resource {
	segments := strings.Split(strings.Trim(strings.TrimSuffix(c.Path(), "*"), "/"), "/")
	target := audit.Resource{TypeURI: audit.ServiceURI}
	var names []string
	for _, segment := range segments {
		name, isID := strings.CutPrefix(segment, ":")
		switch {
		case isID:
			target.ID = c.Param(name)
		case segment != "v1" && segment != "burano":
			names = append(names, segment)
		}
	}
	if names != nil {
		target.TypeURI = path.Join(audit.ServiceURI, path.Join(names...))
	}
	return target
}

// maxMade is how many bytes of an answer are searched for the id of the new object.
const maxMade = 64 << 10

// madeID stores the beginning of an answer, to find the id of the new object.
type madeID struct {
	http.ResponseWriter
	text []byte
}

func (m *madeID) Write(text []byte) (int, error) {
	if room := maxMade - len(m.text); room > 0 {
		m.text = append(m.text, text[:min(room, len(text))]...)
	}
	return m.ResponseWriter.Write(text)
}

// Unwrap is for http.ResponseController.
func (m *madeID) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m *madeID) id() string {
	if m == nil {
		return ""
	}
	var answer struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(m.text, &answer) != nil {
		return ""
	}
	return answer.ID
}

// AuditRows lists the stored events (store.Audit).
type AuditRows interface {
	AuditEvents(ctx context.Context, filter store.AuditFilter) ([]store.AuditEvent, error)
}

type auditHandlers struct{ rows AuditRows }

func (h auditHandlers) register(v1 *echo.Group) { v1.GET("/audit", h.list) }

const (
	auditPage    = 100
	maxAuditPage = 1000
)

type auditJSON struct {
	Events     []json.RawMessage `json:"events"`
	NextMarker string            `json:"next_marker,omitempty"`
}

// list answers the newest events first. A caller that is no administrator sees the events of the own project.
func (h auditHandlers) list(c echo.Context) error {
	if h.rows == nil {
		return fault.New(fault.NotFound, "This Burano keeps no audit events in its database")
	}
	ctx, caller := calling(c)
	known := []string{"limit", "marker", "project_id", "user_id", "action", "target_id", "outcome", "request_id", "since", "until"}
	for name := range c.QueryParams() {
		if !slices.Contains(known, name) {
			return fault.New(fault.Invalid, "There is no filter %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	filter := store.AuditFilter{ProjectID: c.QueryParam("project_id"), UserID: c.QueryParam("user_id"), Action: c.QueryParam("action"),
		TargetID: c.QueryParam("target_id"), Outcome: c.QueryParam("outcome"), RequestID: c.QueryParam("request_id"), Marker: c.QueryParam("marker"), Limit: auditPage}
	if text := c.QueryParam("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 1 {
			return fault.New(fault.Invalid, "limit is a number of at least 1, not %q", text)
		}
		filter.Limit = min(limit, maxAuditPage)
	}
	for name, at := range map[string]*store.Time{"since": &filter.Since, "until": &filter.Until} {
		if text := c.QueryParam(name); text != "" {
			parsed, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return fault.New(fault.Invalid, "%s is a time such as 2026-11-22T04:05:06Z, not %q", name, text)
			}
			*at = store.Time(parsed.UnixMicro())
		}
	}
	if !caller.Admin {
		if filter.ProjectID != "" && filter.ProjectID != caller.ProjectID {
			return denied
		}
		filter.ProjectID = caller.ProjectID
	}
	limit := filter.Limit
	filter.Limit++ // to know whether more follow
	rows, err := h.rows.AuditEvents(ctx, filter)
	if errors.Is(err, store.ErrNotFound) {
		return fault.New(fault.Invalid, "There is no event %q to go on after", filter.Marker)
	}
	if err != nil {
		return err
	}
	answer := auditJSON{Events: []json.RawMessage{}}
	for i, row := range rows {
		if i == limit {
			answer.NextMarker = rows[i-1].ID
			break
		}
		answer.Events = append(answer.Events, json.RawMessage(row.Event))
	}
	return c.JSON(http.StatusOK, answer)
}
