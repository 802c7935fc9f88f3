package glance

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// This file is the catalog of metadata definitions (https://docs.openstack.org/api-ref/image/v2/metadefs-index.html), as far as it can be made in one
// call and read.

// definitionsPage is how many namespaces a list has without a limit.
const definitionsPage = 25

// Namespace is a set of definitions.
type Namespace struct {
	Name        string `json:"namespace"`
	DisplayName string `json:"display_name,omitempty"`
	Description string `json:"description,omitempty"`
	Visibility  string `json:"visibility"` // public or private
	Protected   bool   `json:"protected"`
	Owner       string `json:"owner"` // project id
	Types       []struct {
		Name string `json:"name"` // that Heat calls the resources by
	} `json:"resource_type_associations,omitempty"`
	Objects   []map[string]any `json:"objects,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
}

func (n Namespace) body() map[string]any {
	at, path := n.CreatedAt.UTC().Format(time.RFC3339), "/v2/metadefs/namespaces/"+url.PathEscape(n.Name)
	body := map[string]any{
		"namespace": n.Name, "visibility": n.Visibility, "protected": n.Protected, "owner": n.Owner, "created_at": at, "updated_at": at,
		"self": path, "schema": "/v2/schemas/metadefs/namespace",
	}
	for name, text := range map[string]string{"display_name": n.DisplayName, "description": n.Description} {
		if text != "" {
			body[name] = text
		}
	}
	if len(n.Types) > 0 {
		body["resource_type_associations"] = n.Types
	}
	return body
}

func (s *Service) createNamespace(w http.ResponseWriter, r *http.Request) error {
	caller := identity.From(r.Context())
	if !caller.Admin {
		return forbidden("You are not authorized to complete add_metadef_namespace action.")
	}
	var wanted Namespace
	if err := readJSON(r, &wanted); err != nil {
		return err
	}
	if wanted.Name == "" {
		return invalid("Provided object does not match schema 'namespace': 'namespace' is a required property")
	}
	if wanted.Visibility == "" {
		wanted.Visibility = "private"
	}
	if wanted.Owner == "" {
		wanted.Owner = caller.ProjectID
	}
	s.uploads.Lock()
	defer s.uploads.Unlock()
	if _, taken := s.namespaces.Get(wanted.Name); taken {
		return failure{http.StatusConflict, fmt.Sprintf("The metadata definition namespace=%s already exists.", wanted.Name)}
	}
	wanted.CreatedAt = s.now()
	if err := s.namespaces.Put(wanted.Name, wanted); err != nil {
		return err
	}
	answer.JSON(w, http.StatusCreated, wanted.body())
	return nil
}

// namespace is that of the request's path, if the caller may see it.
func (s *Service) namespace(r *http.Request) (Namespace, error) {
	name, caller := r.PathValue("namespace"), identity.From(r.Context())
	row, there := s.namespaces.Get(name)
	if !there || (row.Visibility != "public" && !caller.Admin && row.Owner != caller.ProjectID) {
		return Namespace{}, failure{http.StatusNotFound, fmt.Sprintf("Metadata definition namespace not found: %s", name)}
	}
	return row, nil
}

func (s *Service) listNamespaces(w http.ResponseWriter, r *http.Request) error {
	caller, query := identity.From(r.Context()), r.URL.Query()
	types := strings.Split(query.Get("resource_types"), ",")
	var found []Namespace
	for _, row := range s.namespaces.All() {
		wanted := types[0] == ""
		for _, one := range row.Types {
			wanted = wanted || slices.Contains(types, one.Name)
		}
		if wanted && (row.Visibility == "public" || caller.Admin || row.Owner == caller.ProjectID) {
			found = append(found, row)
		}
	}
	slices.Reverse(found) // the newest first
	if marker := query.Get("marker"); marker != "" {
		at := slices.IndexFunc(found, func(row Namespace) bool { return row.Name == marker })
		if at < 0 {
			return failure{http.StatusNotFound, fmt.Sprintf("Metadata definition namespace not found: %s", marker)}
		}
		found = found[at+1:]
	}
	limit := definitionsPage
	if text := query.Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return invalid("limit param must be positive")
		}
		limit = min(limit, maxPage)
	}
	list := []any{}
	for _, row := range found[:min(limit, len(found))] {
		list = append(list, row.body())
	}
	body := map[string]any{"namespaces": list, "first": "/v2/metadefs/namespaces", "schema": "/v2/schemas/metadefs/namespaces"}
	if len(found) > limit && limit > 0 {
		query.Set("marker", found[limit-1].Name)
		body["next"] = "/v2/metadefs/namespaces?" + query.Encode()
	}
	answer.JSON(w, http.StatusOK, body)
	return nil
}

func (s *Service) showNamespace(w http.ResponseWriter, r *http.Request) error {
	row, err := s.namespace(r)
	if err != nil {
		return err
	}
	body := row.body()
	if len(row.Objects) > 0 {
		body["objects"] = row.Objects
	}
	answer.JSON(w, http.StatusOK, body)
	return nil
}

func (s *Service) deleteNamespace(w http.ResponseWriter, r *http.Request) error {
	row, err := s.namespace(r)
	if err != nil {
		return err
	}
	if !identity.From(r.Context()).Admin {
		return forbidden("You are not authorized to complete delete_metadef_namespace action.")
	}
	if row.Protected {
		return forbidden("Metadata definition namespace %s is protected and cannot be deleted.", row.Name)
	}
	if _, err := s.namespaces.Delete(row.Name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Service) listObjects(w http.ResponseWriter, r *http.Request) error {
	row, err := s.namespace(r)
	if err != nil {
		return err
	}
	objects := row.Objects
	if objects == nil {
		objects = []map[string]any{}
	}
	answer.JSON(w, http.StatusOK, map[string]any{"objects": objects, "schema": "v2/schemas/metadefs/objects"})
	return nil
}
