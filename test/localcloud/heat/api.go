package heat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/version"
)

type handler func(w http.ResponseWriter, r *http.Request) error

// Handler serves the API; it sees /{project}/stacks…, and the caller is in the request's context.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	serve := func(pattern string, h handler) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /{project}"+path, func(w http.ResponseWriter, r *http.Request) {
			caller := identity.From(r.Context())
			if project := r.PathValue("project"); project != caller.ProjectID && !caller.Admin {
				writeProblem(w, s, &Error{Status: 403, Type: "Forbidden", Message: "You are not authorized to use this project."})
				return
			}
			if err := h(w, r); err != nil {
				writeProblem(w, s, err)
			}
		})
	}
	// A stack is named by name and id; by one of them alone it is found, and the client sent on to the full address.
	stack := func(h func(w http.ResponseWriter, r *http.Request, stack Stack) error) handler {
		return func(w http.ResponseWriter, r *http.Request) error {
			found, ok := s.stacks.Get(r.PathValue("id"))
			if !ok || found.ProjectID != r.PathValue("project") || found.Name != r.PathValue("name") && found.ID != r.PathValue("name") {
				return notFound("Stack", r.PathValue("name"))
			}
			return h(w, r, found)
		}
	}
	serve("GET /stacks", s.serveList)
	serve("GET /stacks/detail", s.serveList)
	serve("POST /stacks", s.serveCreate)
	serve("POST /stacks/preview", s.servePreview)
	serve("POST /validate", s.serveValidate)
	serve("GET /stacks/{name}/{id}", stack(func(w http.ResponseWriter, r *http.Request, stack Stack) error {
		return writeJSON(w, 200, map[string]any{"stack": s.show(r, stack)})
	}))
	update := func(patch bool) handler {
		return stack(func(w http.ResponseWriter, r *http.Request, stack Stack) error {
			request, err := read(r)
			if err == nil {
				err = s.updateStack(r.Context(), identity.From(r.Context()), stack, request, patch)
			}
			if err == nil {
				w.WriteHeader(http.StatusAccepted)
			}
			return err
		})
	}
	serve("PUT /stacks/{name}/{id}", update(false))
	serve("PATCH /stacks/{name}/{id}", update(true))
	preview := func(patch bool) handler {
		return stack(func(w http.ResponseWriter, r *http.Request, stack Stack) error {
			request, err := read(r)
			if err != nil {
				return err
			}
			changes, err := s.previewUpdate(r.Context(), stack, request, patch)
			if err != nil {
				return err
			}
			return writeJSON(w, 200, map[string]any{"resource_changes": changes})
		})
	}
	serve("PUT /stacks/{name}/{id}/preview", preview(false))
	serve("PATCH /stacks/{name}/{id}/preview", preview(true))
	serve("PATCH /stacks/{name}/{id}/resources/{resource}", stack(s.serveMark))
	remove := func(w http.ResponseWriter, _ *http.Request, stack Stack) error {
		err := s.deleteStack(stack)
		if err == nil {
			w.WriteHeader(http.StatusNoContent)
		}
		return err
	}
	serve("DELETE /stacks/{name}/{id}", stack(remove))
	serve("DELETE /stacks/{name}", func(w http.ResponseWriter, r *http.Request) error {
		found, err := s.find(r.PathValue("project"), r.PathValue("name"))
		if err != nil {
			return err
		}
		return remove(w, r, found)
	})
	for _, method := range []string{http.MethodPut, http.MethodPatch} { // python-heatclient follows with the same method and body
		serve(method+" /stacks/{name}", func(w http.ResponseWriter, r *http.Request) error {
			found, err := s.find(r.PathValue("project"), r.PathValue("name"))
			if err != nil {
				return err
			}
			http.Redirect(w, r, stackURL(r, found), http.StatusFound)
			return nil
		})
	}
	for _, part := range []string{"", "/resources", "/events", "/template", "/outputs"} {
		serve("GET /stacks/{name}"+part, func(w http.ResponseWriter, r *http.Request) error {
			found, err := s.find(r.PathValue("project"), r.PathValue("name"))
			if err != nil {
				return err
			}
			http.Redirect(w, r, stackURL(r, found)+part+queryOf(r), http.StatusFound)
			return nil
		})
	}
	s.registerParts(func(path string, h func(w http.ResponseWriter, r *http.Request, stack Stack) error) {
		serve("GET /stacks/{name}/{id}"+path, stack(h))
	})
	serve("GET /resource_types", func(w http.ResponseWriter, _ *http.Request) error {
		return writeJSON(w, 200, map[string]any{"resource_types": slices.Sorted(maps.Keys(s.types))})
	})
	serve("GET /resource_types/{type}", func(w http.ResponseWriter, r *http.Request) error {
		known, ok := s.types[r.PathValue("type")]
		if !ok {
			return notFound("Resource Type", r.PathValue("type"))
		}
		properties := map[string]any{}
		for name, property := range known.properties {
			if !property.hidden {
				properties[name] = map[string]any{"update_allowed": property.update, "required": property.required}
			}
		}
		return writeJSON(w, 200, map[string]any{"resource_type": r.PathValue("type"), "properties": properties})
	})
	serve("GET /build_info", func(w http.ResponseWriter, _ *http.Request) error {
		return writeJSON(w, 200, map[string]any{"api": map[string]any{"revision": version.Version}, "engine": map[string]any{"revision": version.Version}})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, s, &Error{Status: 404, Type: "HTTPNotFound", Message: "The resource could not be found."})
	})
	return mux
}

func queryOf(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return ""
	}
	return "?" + r.URL.RawQuery
}

// base is the address of the caller's project in this API, as the caller wrote it: the handler may be mounted below a prefix.
func base(r *http.Request) string {
	requested, _, _ := strings.Cut(r.RequestURI, "?")
	before, _, ok := strings.Cut(requested, r.URL.EscapedPath())
	if !ok {
		before = ""
	}
	return "http://" + r.Host + before + "/" + url.PathEscape(r.PathValue("project"))
}

func stackURL(r *http.Request, stack Stack) string {
	return base(r) + "/stacks/" + url.PathEscape(stack.Name) + "/" + stack.ID
}

func read(r *http.Request) (request stackRequest, err error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 4<<20))
	if err != nil {
		return request, invalid("HTTPBadRequest", "The request's body could not be read: %v", err)
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return request, invalid("HTTPBadRequest", "The request's body cannot be used: %v", err)
	}
	return request, nil
}

// serveMark marks a resource unhealthy, so that the stack's next update replaces it, or healthy again.
func (s *Service) serveMark(w http.ResponseWriter, r *http.Request, stack Stack) error {
	var request struct {
		Unhealthy *bool  `json:"mark_unhealthy"`
		Reason    string `json:"resource_status_reason"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&request); err != nil || request.Unhealthy == nil {
		return invalid("HTTPBadRequest", "Missing mandatory (mark_unhealthy) key from mark unhealthy request")
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	stack, _ = s.stacks.Get(stack.ID)
	resource, known := stack.Resources[r.PathValue("resource")]
	if !known {
		return &Error{Status: 404, Type: "EntityNotFound", Message: "The Resource (" + r.PathValue("resource") + ") could not be found in Stack " + stack.Name + "."}
	}
	if stack.Status == inProgress {
		return &Error{Status: 409, Type: "ActionInProgress", Message: fmt.Sprintf("Stack %s already has an action (%s) in progress.", stack.Name, stack.Action)}
	}
	status, reason := failed, "state changed by resource_mark_unhealthy api"
	if !*request.Unhealthy {
		status = complete
	}
	if request.Reason != "" {
		reason = request.Reason
	}
	if err := s.setResource(stack.ID, resource, actionCheck, status, reason); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *Service) serveCreate(w http.ResponseWriter, r *http.Request) error {
	request, err := read(r)
	if err != nil {
		return err
	}
	stack, err := s.createStack(r.Context(), identity.From(r.Context()), r.PathValue("project"), request)
	if err != nil {
		return err
	}
	return writeJSON(w, 201, map[string]any{"stack": map[string]any{"id": stack.ID, "links": links(stackURL(r, stack))}})
}

func (s *Service) servePreview(w http.ResponseWriter, r *http.Request) error {
	request, err := read(r)
	if err != nil {
		return err
	}
	stack, template, err := s.prepare(r.Context(), identity.From(r.Context()), r.PathValue("project"), request)
	if err == nil {
		template, _, err = stack.decided(template)
	}
	if err != nil {
		return err
	}
	resources := []any{}
	for _, name := range slices.Sorted(maps.Keys(template.Resources)) {
		definition := template.Resources[name]
		resources = append(resources, map[string]any{
			"resource_name": name, "logical_resource_id": name, "resource_type": definition.Type, "properties": definition.Properties, "metadata": definition.Metadata,
			"physical_resource_id": "", "resource_status": "INIT_COMPLETE", "resource_status_reason": "", "required_by": []any{},
		})
	}
	shown := s.show(r, stack)
	shown["resources"] = resources
	delete(shown, "outputs")
	return writeJSON(w, 200, map[string]any{"stack": shown})
}

func (s *Service) serveValidate(w http.ResponseWriter, r *http.Request) error {
	request, err := read(r)
	if err != nil {
		return err
	}
	_, template, err := request.target()
	if err == nil {
		err = s.checkTypes(template)
	}
	if err != nil {
		return err
	}
	parameters := map[string]any{}
	for name, parameter := range template.Parameters {
		types := map[string]string{"string": "String", "number": "Number", "json": "Json", "comma_delimited_list": "CommaDelimitedList", "boolean": "Boolean"}
		shown := map[string]any{"Type": types[parameter.Type], "NoEcho": strconv.FormatBool(parameter.Hidden), "Description": parameter.Description, "Label": parameter.Label}
		if parameter.Label == "" {
			shown["Label"] = name
		}
		if parameter.HasDefault {
			shown["Default"] = parameter.Default
		}
		parameters[name] = shown
	}
	return writeJSON(w, 200, map[string]any{"Description": template.Description, "Parameters": parameters})
}

func (s *Service) serveList(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	// Heat (Zed) looks for other parameters in the table of tags.
	if query.Has("tags") && slices.ContainsFunc([]string{"id", "name", "stack_name", "status", "action"}, query.Has) {
		return &Error{Status: 500, Type: "RemoteError"}
	}
	shown := []map[string]any{}
	deleted, _ := hot.Boolean(query.Get("show_deleted"))
	wanted := func(stack Stack) bool {
		return stack.ProjectID == r.PathValue("project") && !stack.Group && (stack.DeletedAt == "" || deleted) && selected(stack, query)
	}
	for _, stack := range s.stacks.Where(wanted) {
		shown = append(shown, summary(r, stack))
	}
	sortStacks(shown, query)
	if marker := query.Get("marker"); marker != "" {
		shown = shown[slices.IndexFunc(shown, func(one map[string]any) bool { return one["id"] == marker })+1:]
	}
	if text := query.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 0 {
			return invalid("HTTPBadRequest", "Only integer is allowed for limit, not %s", text)
		}
		shown = shown[:min(limit, len(shown))]
	}
	answer := map[string]any{"stacks": shown}
	if count, _ := hot.Boolean(query.Get("with_count")); count {
		answer["count"] = len(shown)
	}
	return writeJSON(w, 200, answer)
}

func selected(stack Stack, query url.Values) bool {
	matches := func(key, value string) bool { return query.Get(key) == "" || slices.Contains(query[key], value) }
	status := query.Get("status") == "" || slices.ContainsFunc(query["status"], func(wanted string) bool {
		return strings.EqualFold(wanted, stack.Status) || strings.EqualFold(wanted, stack.state())
	})
	hasAll := func(list string) bool {
		for tag := range strings.SplitSeq(list, ",") {
			if !slices.Contains(stack.Tags, tag) {
				return false
			}
		}
		return true
	}
	hasAny := func(list string) bool {
		return slices.ContainsFunc(strings.Split(list, ","), func(tag string) bool { return slices.Contains(stack.Tags, tag) })
	}
	return status && matches("id", stack.ID) && matches("name", stack.Name) && matches("stack_name", stack.Name) && matches("action", stack.Action) &&
		(query.Get("tags") == "" || hasAll(query.Get("tags"))) && (query.Get("tags_any") == "" || hasAny(query.Get("tags_any"))) &&
		(query.Get("not_tags") == "" || !hasAll(query.Get("not_tags"))) && (query.Get("not_tags_any") == "" || !hasAny(query.Get("not_tags_any")))
}

// sortStacks sorts by the query's key; without one the newest is first.
func sortStacks(shown []map[string]any, query url.Values) {
	key := map[string]string{"name": "stack_name", "status": "stack_status", "created_at": "creation_time", "updated_at": "updated_time"}[query.Get("sort_keys")]
	if key == "" {
		slices.Reverse(shown)
		return
	}
	slices.SortStableFunc(shown, func(a, b map[string]any) int {
		order := strings.Compare(fmt.Sprint(a[key]), fmt.Sprint(b[key]))
		if query.Get("sort_dir") == "desc" {
			return -order
		}
		return order
	})
}

// explanations are Heat's texts for each status.
var explanations = map[int][2]string{
	400: {"Bad Request", "The server could not comply with the request since it is either malformed or otherwise incorrect."},
	403: {"Forbidden", "Access was denied to this resource."},
	404: {"Not Found", "The resource could not be found."},
	409: {"Conflict", "There was a conflict when trying to complete your request."},
	500: {"Internal Server Error", "The server has either erred or is incapable of performing the requested operation."},
}

func writeProblem(w http.ResponseWriter, s *Service, err error) {
	var known *Error
	if !errors.As(err, &known) {
		s.logger.Error("orchestration request failed", "error", err)
		known = &Error{Status: 500, Type: "Exception", Message: err.Error()}
	}
	texts := explanations[known.Status]
	_ = writeJSON(w, known.Status, map[string]any{
		"code": known.Status, "title": texts[0], "explanation": texts[1],
		"error": map[string]any{"type": known.Type, "message": known.Message, "traceback": nil},
	})
}

func writeJSON(w http.ResponseWriter, status int, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the client is gone
	return nil
}
