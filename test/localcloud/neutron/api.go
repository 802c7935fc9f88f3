package neutron

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// collection is one kind of object in the API: the same verbs over the Go calls.
type collection[T, R any] struct {
	one, many string
	service   *Service
	list      func(projectID string) []T
	get       func(ctx context.Context, projectID, id string) (T, error)
	create    func(ctx context.Context, projectID string, request R) (T, error)
	update    func(ctx context.Context, projectID, id string, request R) (T, error)
	remove    func(ctx context.Context, projectID, id string) error
	owner     func(R) string                           // the project a request names
	policy    func(caller identity.Caller, r R) string // the rule that forbids a request, or ""
}

// Handler serves the API below /v2.0; the caller is in the request's context.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	collection[Network, NetworkRequest]{
		"network", "networks", s, s.Networks, s.GetNetwork, s.CreateNetwork, s.UpdateNetwork, s.DeleteNetwork,
		func(r NetworkRequest) string { return r.project() },
		func(caller identity.Caller, r NetworkRequest) string {
			if !caller.Admin && (r.Shared != nil && *r.Shared || r.External != nil && *r.External) {
				return "create_network:router:external"
			}
			return ""
		},
	}.register(mux)
	collection[Subnet, SubnetRequest]{
		"subnet", "subnets", s, s.Subnets, s.GetSubnet, s.CreateSubnet, s.UpdateSubnet, s.DeleteSubnet,
		func(r SubnetRequest) string { return r.project() }, nil,
	}.register(mux)
	collection[Port, PortRequest]{
		"port", "ports", s, s.Ports, s.GetPort, s.CreatePort, s.UpdatePort, s.DeletePort,
		func(r PortRequest) string { return r.project() }, nil,
	}.register(mux)
	collection[Router, RouterRequest]{
		"router", "routers", s, s.Routers, s.GetRouter, s.CreateRouter, s.UpdateRouter, s.DeleteRouter,
		func(r RouterRequest) string { return r.project() }, nil,
	}.register(mux)
	collection[FloatingIP, FloatingIPRequest]{
		"floatingip", "floatingips", s, s.FloatingIPs, s.GetFloatingIP, s.CreateFloatingIP, s.UpdateFloatingIP, s.DeleteFloatingIP,
		func(r FloatingIPRequest) string { return r.project() }, nil,
	}.register(mux)
	collection[SecurityGroup, SecurityGroupRequest]{
		"security_group", "security-groups", s, s.SecurityGroups, s.GetSecurityGroup, s.CreateSecurityGroup, s.UpdateSecurityGroup, s.DeleteSecurityGroup,
		func(r SecurityGroupRequest) string { return r.project() }, nil,
	}.register(mux)
	collection[SecurityGroupRule, SecurityGroupRuleRequest]{
		"security_group_rule", "security-group-rules", s, s.SecurityGroupRules, s.GetSecurityGroupRule, s.CreateSecurityGroupRule, s.UpdateSecurityGroupRule, s.DeleteSecurityGroupRule,
		func(r SecurityGroupRuleRequest) string { return r.project() }, nil,
	}.register(mux)
	s.registerInterfaces(mux)
	s.registerAbout(mux)
	s.registerQuotas(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, s, problem(404, "HTTPNotFound", "The resource %s could not be found.", r.URL.Path))
	})
	return mux
}

func (c collection[T, R]) register(mux *http.ServeMux) {
	path := "/v2.0/" + c.many
	mux.HandleFunc("GET "+path, c.serveList)
	mux.HandleFunc("POST "+path, c.serveCreate)
	mux.HandleFunc("GET "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		value, err := c.get(r.Context(), scope(r), r.PathValue("id"))
		c.answer(w, r, http.StatusOK, value, err)
	})
	mux.HandleFunc("PUT "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		requests, _, err := c.read(r)
		if err != nil {
			writeProblem(w, c.service, err)
			return
		}
		value, err := c.update(r.Context(), scope(r), r.PathValue("id"), requests[0])
		c.answer(w, r, http.StatusOK, value, err)
	})
	mux.HandleFunc("DELETE "+path+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := c.remove(r.Context(), scope(r), r.PathValue("id")); err != nil {
			writeProblem(w, c.service, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// scope is the project whose objects the caller sees, "" for all.
func scope(r *http.Request) string {
	caller := identity.From(r.Context())
	if caller.Admin {
		return ""
	}
	if caller.ProjectID == "" {
		return "-" // no project: a token without one sees nothing
	}
	return caller.ProjectID
}

func (c collection[T, R]) serveList(w http.ResponseWriter, r *http.Request) {
	objects := []map[string]any{}
	for _, value := range c.list(scope(r)) {
		object, err := toMap(value)
		if err != nil {
			writeProblem(w, c.service, err)
			return
		}
		objects = append(objects, object)
	}
	found, next, err := query(objects, r.URL.Query())
	if err != nil {
		writeProblem(w, c.service, err)
		return
	}
	many := strings.ReplaceAll(c.many, "-", "_")
	list := map[string]any{many: found}
	if next != nil {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		list[many+"_links"] = []any{map[string]any{"rel": "next", "href": "http://" + r.Host + path + "?" + next.Encode()}}
	}
	answer.JSON(w, http.StatusOK, list)
}

func (c collection[T, R]) serveCreate(w http.ResponseWriter, r *http.Request) {
	requests, bulk, err := c.read(r)
	if err != nil {
		writeProblem(w, c.service, err)
		return
	}
	caller := identity.From(r.Context())
	var objects []map[string]any
	for _, request := range requests {
		project := caller.ProjectID
		if named := c.owner(request); named != "" && named != project {
			if !caller.Admin {
				writeProblem(w, c.service, disallowed("create_"+c.one))
				return
			}
			project = named
		}
		value, err := c.create(r.Context(), project, request)
		if err != nil || !bulk {
			c.answer(w, r, http.StatusCreated, value, err)
			return
		}
		object, err := toMap(value)
		if err != nil {
			writeProblem(w, c.service, err)
			return
		}
		objects = append(objects, object)
	}
	answer.JSON(w, http.StatusCreated, map[string]any{strings.ReplaceAll(c.many, "-", "_"): objects})
}

// read returns the request's one object, or its several ones.
func (c collection[T, R]) read(r *http.Request) (requests []R, bulk bool, err error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, false, problem(400, "HTTPBadRequest", "The request's body could not be read: %v.", err)
	}
	var wrapped map[string]json.RawMessage
	if err := json.Unmarshal(body, &wrapped); err != nil {
		return nil, false, problem(400, "HTTPBadRequest", "The request's body is no JSON object: %v.", err)
	}
	many := strings.ReplaceAll(c.many, "-", "_")
	parts := []json.RawMessage{wrapped[c.one]}
	if data, ok := wrapped[many]; ok {
		if err := json.Unmarshal(data, &parts); err != nil {
			return nil, false, problem(400, "HTTPBadRequest", "'%s' is no list.", many)
		}
		bulk = true
	} else if parts[0] == nil {
		return nil, false, problem(400, "HTTPBadRequest", "Resource body required: an object '%s'.", c.one)
	}
	for _, part := range parts {
		var request R
		if err := decode(part, &request); err != nil {
			return nil, false, err
		}
		if c.policy != nil {
			if rule := c.policy(identity.From(r.Context()), request); rule != "" {
				return nil, false, disallowed(rule)
			}
		}
		requests = append(requests, request)
	}
	return requests, bulk, nil
}

func decode(data []byte, target any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(target)
	if err == nil {
		return nil
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return problem(400, "HTTPBadRequest", "Unrecognized attribute(s) '%s'", strings.Trim(field, `"`))
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return invalid("Invalid input for %s. Reason: %s was given where %s is wanted", wrong.Field, wrong.Value, wrong.Type)
	}
	return problem(400, "HTTPBadRequest", "The request's body cannot be used: %v", err)
}

func (c collection[T, R]) answer(w http.ResponseWriter, r *http.Request, status int, value T, err error) {
	if err != nil {
		writeProblem(w, c.service, err)
		return
	}
	object, err := toMap(value)
	if err != nil {
		writeProblem(w, c.service, err)
		return
	}
	answer.JSON(w, status, map[string]any{c.one: selected(object, r.URL.Query()["fields"])})
}

func (s *Service) registerInterfaces(mux *http.ServeMux) {
	serve := func(call func(ctx context.Context, projectID, id string, request InterfaceRequest) (RouterInterface, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var request InterfaceRequest
			body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
			if err == nil {
				err = decode(body, &request)
			}
			var made RouterInterface
			if err == nil {
				made, err = call(r.Context(), scope(r), r.PathValue("id"), request)
			}
			if err != nil {
				writeProblem(w, s, err)
				return
			}
			answer.JSON(w, http.StatusOK, made)
		}
	}
	mux.HandleFunc("PUT /v2.0/routers/{id}/add_router_interface", serve(s.AddRouterInterface))
	mux.HandleFunc("PUT /v2.0/routers/{id}/remove_router_interface", serve(s.RemoveRouterInterface))
}

// registerAbout serves calls about the service itself.
func (s *Service) registerAbout(mux *http.ServeMux) {
	fixed := func(path string, value any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { answer.JSON(w, http.StatusOK, value) })
	}
	fixed("/{$}", map[string]any{"versions": []any{map[string]any{"id": "v2.0", "status": "CURRENT", "links": []any{}}}})
	fixed("/v2.0/{$}", map[string]any{"resources": []any{}})
	extensions := []map[string]any{}
	for _, alias := range []string{"external-net", "router", "security-group", "quotas", "allowed-address-pairs", "port-security", "binding", "net-mtu", "standard-attr-description", "standard-attr-revisions", "standard-attr-timestamp", "project-id"} {
		extension := map[string]any{"alias": alias, "name": alias, "description": "", "updated": "2016-01-01T00:00:00-00:00", "links": []any{}}
		extensions = append(extensions, extension)
		fixed("/v2.0/extensions/"+alias, map[string]any{"extension": extension})
	}
	fixed("/v2.0/extensions", map[string]any{"extensions": extensions})
	fixed("/v2.0/availability_zones", map[string]any{"availability_zones": []any{map[string]any{"name": "nova", "resource": "network", "state": "available"}}})
}

func writeProblem(w http.ResponseWriter, s *Service, err error) {
	var known *Error
	if !errors.As(err, &known) {
		s.logger.Error("networking request failed", "error", err)
		known = &Error{Status: 500, Type: "HTTPInternalServerError", Message: fmt.Sprintf("Request Failed: internal server error while processing your request: %v", err)}
	}
	answer.JSON(w, known.Status, map[string]any{"NeutronError": map[string]any{"type": known.Type, "message": known.Message, "detail": ""}})
}
