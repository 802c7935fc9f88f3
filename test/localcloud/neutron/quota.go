package neutron

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/state"
)

// The names of limited resources. The local cloud lacks some of them.
const (
	quotaNetwork  = "network"
	quotaSubnet   = "subnet"
	quotaPort     = "port"
	quotaRouter   = "router"
	quotaFloating = "floatingip"
	quotaGroup    = "security_group"
	quotaRule     = "security_group_rule"
)

// quotaOf returns the limits of a project, by the names of resources; a negative one is unlimited.
func (s *Service) quotaOf(projectID string) map[string]int {
	limits := map[string]int{
		quotaNetwork: -1, quotaSubnet: -1, quotaPort: -1, quotaRouter: -1, quotaFloating: -1, quotaGroup: -1, quotaRule: -1, "subnetpool": -1,
		"rbac_policy": -1, "trunk": -1,
	}
	set, _ := s.quotas.Get(projectID)
	maps.Copy(limits, set)
	return limits
}

// usedBy is how much a project has, by the names of resources.
func (s *Service) usedBy(projectID string) map[string]int {
	groups := s.securityGroups.Where(func(g SecurityGroup) bool { return g.ProjectID == projectID })
	rules := 0
	for _, group := range groups {
		rules += len(group.Rules)
	}
	return map[string]int{
		quotaNetwork: count(s.networks, projectID), quotaSubnet: count(s.subnets, projectID), quotaPort: count(s.ports, projectID),
		quotaRouter: count(s.routers, projectID), quotaFloating: count(s.floatingIPs, projectID), quotaGroup: len(groups), quotaRule: rules,
	}
}

func count[T interface{ belongs(projectID string) bool }](table *state.Table[T], projectID string) int {
	return len(table.Where(func(one T) bool { return one.belongs(projectID) }))
}

// checkQuota refuses one more of a resource where the project has as many as it may. The caller holds the mutex.
func (s *Service) checkQuota(projectID, resource string) error {
	if limit := s.quotaOf(projectID)[resource]; limit >= 0 && s.usedBy(projectID)[resource] >= limit {
		return conflict("OverQuota", "Quota exceeded for resources: ['%s'].", resource)
	}
	return nil
}

func (s *Service) registerQuotas(mux *http.ServeMux) {
	serve := func(pattern, rule string, adminOnly bool, call func(w http.ResponseWriter, r *http.Request, projectID string) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			project, caller := r.PathValue("project"), identity.From(r.Context())
			err := disallowed(rule)
			if caller.Admin || (!adminOnly && caller.ProjectID == project) {
				err = call(w, r, project)
			}
			if err != nil {
				writeProblem(w, s, err)
			}
		})
	}
	show := func(w http.ResponseWriter, project string) error {
		answer.JSON(w, http.StatusOK, map[string]any{"quota": s.quotaOf(project)})
		return nil
	}
	serve("GET /v2.0/quotas/{project}", "get_quota", false, func(w http.ResponseWriter, _ *http.Request, project string) error { return show(w, project) })
	serve("GET /v2.0/quotas/{project}/default", "get_quota", false, func(w http.ResponseWriter, _ *http.Request, _ string) error { return show(w, "") })
	serve("GET /v2.0/quotas/{project}/{details}", "get_quota", false, func(w http.ResponseWriter, _ *http.Request, project string) error {
		used, details := s.usedBy(project), map[string]any{}
		for name, limit := range s.quotaOf(project) {
			details[name] = map[string]any{"limit": limit, "used": used[name], "reserved": 0}
		}
		answer.JSON(w, http.StatusOK, map[string]any{"quota": details})
		return nil
	})
	serve("PUT /v2.0/quotas/{project}", "update_quota", true, func(w http.ResponseWriter, r *http.Request, project string) error {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if err != nil {
			return problem(400, "HTTPBadRequest", "The request's body could not be read: %v.", err)
		}
		var wanted struct {
			Quota map[string]int `json:"quota"`
		}
		if err := json.Unmarshal(body, &wanted); err != nil {
			return problem(400, "HTTPBadRequest", "The request's body cannot be used: %v", err)
		}
		s.mutex.Lock()
		defer s.mutex.Unlock()
		limits := s.quotaOf(project)
		for name, limit := range wanted.Quota {
			if _, known := limits[name]; !known {
				return problem(400, "HTTPBadRequest", "Unrecognized attribute(s) '%s'", name)
			}
			limits[name] = limit
		}
		if err := s.quotas.Put(project, limits); err != nil {
			return err
		}
		return show(w, project)
	})
	serve("DELETE /v2.0/quotas/{project}", "delete_quota", true, func(w http.ResponseWriter, _ *http.Request, project string) error {
		if _, err := s.quotas.Delete(project); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}
