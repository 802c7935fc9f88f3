package nova

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// ServerGroup is a rule for placing servers: servers that are made with its id as a hint are its members until they are deleted.
type ServerGroup struct {
	ID, ProjectID, UserID, Name string
	Policy                      string
}

// The policies. The local cloud has one host, where all servers of a group are: the soft policies are wishes, and of a group with strict anti-affinity a
// second server finds no host.
const (
	apart     = "anti-affinity"
	together  = "affinity"
	softApart = "soft-anti-affinity"
	softClose = "soft-affinity"
)

// CreateServerGroup keeps a group for the caller of the context. One that has the id already is returned as it is.
func (s *Service) CreateServerGroup(ctx context.Context, projectID, id, name, policy string) (ServerGroup, error) {
	if name == "" || len(name) > 255 {
		return ServerGroup{}, fault.New(fault.Invalid, "Invalid input for field/attribute name. Value: %s. A name has 1 to 255 characters.", name)
	}
	if known := []string{apart, together, softApart, softClose}; !slices.Contains(known, policy) {
		return ServerGroup{}, fault.New(fault.Invalid, "Invalid input for field/attribute 0. Value: %s. '%s' is not one of %v", policy, policy, known)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if there, err := s.serverGroup(projectID, id); err == nil {
		return there, nil
	}
	if limit := s.quotaOf(projectID).groups; limit >= 0 && len(s.groupsOf(projectID)) >= limit {
		return ServerGroup{}, fault.New(fault.Forbidden, "Quota exceeded, too many server groups.")
	}
	made := ServerGroup{ID: id, ProjectID: projectID, UserID: identity.From(ctx).UserID, Name: name, Policy: policy}
	return made, s.groups.Put(made.ID, made)
}

// DeleteServerGroup removes a group; its servers stay.
func (s *Service) DeleteServerGroup(_ context.Context, projectID, id string) error {
	if _, err := s.serverGroup(projectID, id); err != nil {
		return err
	}
	_, err := s.groups.Delete(id)
	return err
}

func (s *Service) groupsOf(projectID string) []ServerGroup {
	return slices.DeleteFunc(s.groups.All(), func(g ServerGroup) bool { return g.ProjectID != projectID })
}

func (s *Service) serverGroup(projectID, id string) (ServerGroup, error) {
	group, ok := s.groups.Get(id)
	if !ok || group.ProjectID != projectID {
		return ServerGroup{}, fault.New(fault.NotFound, "Instance group %s could not be found.", id)
	}
	return group, nil
}

// members are the ids of a group's servers.
func (s *Service) members(groupID string) []string {
	ids := []string{}
	for _, server := range s.servers.All() {
		if server.GroupID == groupID && groupID != "" {
			ids = append(ids, server.ID)
		}
	}
	return ids
}

// checkGroup refuses a server of a group that has no room for it. The caller holds the mutex.
func (s *Service) checkGroup(server Server) error {
	if limit := s.quotaOf(server.ProjectID).members; server.GroupID != "" && limit >= 0 && len(s.members(server.GroupID)) >= limit {
		return fault.New(fault.Forbidden, "Quota exceeded, too many servers in group")
	}
	return nil
}

// keptApart reports whether the host of a new server is taken by another one of a group with strict anti-affinity.
func (s *Service) keptApart(server Server) bool {
	group, _ := s.groups.Get(server.GroupID)
	others := slices.DeleteFunc(s.members(server.GroupID), func(id string) bool {
		other, _ := s.servers.Get(id)
		return id == server.ID || other.Status == StatusError
	})
	return group.Policy == apart && len(others) > 0
}

func (s *Service) serverGroupBody(ctx context.Context, group ServerGroup) map[string]any {
	body := map[string]any{"id": group.ID, "name": group.Name, "members": s.members(group.ID)}
	if since(ctx, 13) {
		body["project_id"], body["user_id"] = group.ProjectID, group.UserID
	}
	if since(ctx, 64) {
		body["policy"], body["rules"] = group.Policy, map[string]any{}
	} else {
		body["policies"], body["metadata"] = []string{group.Policy}, map[string]any{}
	}
	return body
}

func (s *Service) listServerGroups(w http.ResponseWriter, r *http.Request) error {
	bodies := []any{}
	for _, group := range s.groupsOf(identity.From(r.Context()).ProjectID) {
		bodies = append(bodies, s.serverGroupBody(r.Context(), group))
	}
	answer.JSON(w, http.StatusOK, map[string]any{"server_groups": bodies})
	return nil
}

func (s *Service) createServerGroup(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Group struct {
			Name     string   `json:"name"`
			Policies []string `json:"policies"`
			Policy   string   `json:"policy"`
		} `json:"server_group"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	policy := body.Group.Policy
	if !since(r.Context(), 64) {
		if len(body.Group.Policies) != 1 {
			return fault.New(fault.Invalid, "Invalid input for field/attribute policies. Value: %v. It has one policy.", body.Group.Policies)
		}
		if policy = body.Group.Policies[0]; policy != apart && policy != together && !since(r.Context(), 15) {
			return fault.New(fault.Invalid, "Invalid input for field/attribute 0. Value: %s. '%s' is not one of ['anti-affinity', 'affinity']", policy, policy)
		}
	}
	made, err := s.CreateServerGroup(r.Context(), identity.From(r.Context()).ProjectID, uuid.NewString(), body.Group.Name, policy)
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"server_group": s.serverGroupBody(r.Context(), made)})
	return nil
}

func (s *Service) showServerGroup(w http.ResponseWriter, r *http.Request) error {
	group, err := s.serverGroup(identity.From(r.Context()).ProjectID, r.PathValue("id"))
	if err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"server_group": s.serverGroupBody(r.Context(), group)})
	return nil
}

func (s *Service) deleteServerGroup(w http.ResponseWriter, r *http.Request) error {
	if err := s.DeleteServerGroup(r.Context(), identity.From(r.Context()).ProjectID, r.PathValue("id")); err != nil {
		return fmt.Errorf("delete a server group: %w", err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
