package nova

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// Quota is the limits of a project; a negative one is unlimited.
type Quota struct {
	Instances *int `json:"instances,omitempty"`
	Cores     *int `json:"cores,omitempty"`
	RAM       *int `json:"ram,omitempty"` // MiB
	Groups    *int `json:"server_groups,omitempty"`
	Members   *int `json:"server_group_members,omitempty"` // of each group
}

// usage is a project's use, or its limits.
type usage struct{ instances, cores, memory, groups, members int }

// generous is the default quota of a project.
func generous() usage {
	return usage{instances: 100, cores: 200, memory: 512 * 1024, groups: 10, members: 10}
}

func (s *Service) quotaOf(projectID string) usage {
	limit := generous()
	set, _ := s.quotas.Get(projectID)
	for wanted, field := range map[*int]*int{set.Instances: &limit.instances, set.Cores: &limit.cores, set.RAM: &limit.memory, set.Groups: &limit.groups, set.Members: &limit.members} {
		if wanted != nil {
			*field = *wanted
		}
	}
	return limit
}

func (s *Service) used(projectID string) (sum usage) {
	for _, server := range s.servers.All() {
		if server.ProjectID == projectID {
			flavor := s.flavorOfServer(server)
			sum.instances, sum.cores, sum.memory = sum.instances+1, sum.cores+flavor.VCPUs, sum.memory+flavor.MemoryMiB
		}
	}
	return sum
}

// checkQuota refuses a server that its project may not have beside the others. The caller holds the mutex.
func (s *Service) checkQuota(server Server) error {
	limit, used, flavor := s.quotaOf(server.ProjectID), s.used(server.ProjectID), s.flavorOfServer(server)
	for _, one := range []struct {
		name                string
		wanted, used, limit int
	}{
		{"instances", 1, used.instances, limit.instances},
		{"cores", flavor.VCPUs, used.cores, limit.cores},
		{"ram", flavor.MemoryMiB, used.memory, limit.memory},
	} {
		if one.limit >= 0 && one.used+one.wanted > one.limit {
			return fault.New(fault.Forbidden, "Quota exceeded for %s: Requested %d, but already used %d of %d %s",
				one.name, one.wanted, one.used, one.limit, one.name)
		}
	}
	return nil
}

func (s *Service) showLimits(w http.ResponseWriter, r *http.Request) error {
	project := identity.From(r.Context()).ProjectID
	limit, used := s.quotaOf(project), s.used(project)
	answer.JSON(w, http.StatusOK, map[string]any{"limits": map[string]any{"rate": []any{}, "absolute": map[string]any{
		"maxTotalInstances": limit.instances, "maxTotalCores": limit.cores, "maxTotalRAMSize": limit.memory, "maxTotalKeypairs": 100,
		"maxServerMeta": 128, "maxImageMeta": 128, "maxPersonality": 5, "maxPersonalitySize": 10240, "maxServerGroups": limit.groups,
		"maxServerGroupMembers": limit.members, "maxSecurityGroups": -1, "maxSecurityGroupRules": -1, "maxTotalFloatingIps": -1,
		"totalInstancesUsed": used.instances, "totalCoresUsed": used.cores, "totalRAMUsed": used.memory, "totalServerGroupsUsed": len(s.groupsOf(project)),
		"totalSecurityGroupsUsed": 0, "totalFloatingIpsUsed": 0,
	}}})
	return nil
}

func quotaBody(ctx context.Context, limit usage) map[string]any {
	quota := map[string]any{
		"instances": limit.instances, "cores": limit.cores, "ram": limit.memory, "key_pairs": 100, "metadata_items": 128,
		"server_groups": limit.groups, "server_group_members": limit.members,
	}
	if !since(ctx, 36) {
		maps.Copy(quota, map[string]any{"fixed_ips": -1, "floating_ips": -1, "security_groups": -1, "security_group_rules": -1})
	}
	if !since(ctx, 57) {
		maps.Copy(quota, map[string]any{"injected_files": 5, "injected_file_content_bytes": 10240, "injected_file_path_bytes": 255})
	}
	return quota
}

func (s *Service) showQuota(w http.ResponseWriter, r *http.Request) error {
	project := r.PathValue("project")
	if caller := identity.From(r.Context()); !caller.Admin && caller.ProjectID != project {
		return fault.New(fault.Forbidden, "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed.")
	}
	quota := quotaBody(r.Context(), s.quotaOf(project))
	quota["id"] = project
	answer.JSON(w, http.StatusOK, map[string]any{"quota_set": quota})
	return nil
}

func (s *Service) showDefaultQuota(w http.ResponseWriter, r *http.Request) error {
	quota := quotaBody(r.Context(), generous())
	quota["id"] = r.PathValue("project")
	answer.JSON(w, http.StatusOK, map[string]any{"quota_set": quota})
	return nil
}

func (s *Service) updateQuota(w http.ResponseWriter, r *http.Request) error {
	if !identity.From(r.Context()).Admin {
		return fault.New(fault.Forbidden, "Policy doesn't allow os_compute_api:os-quota-sets:update to be performed.")
	}
	var body struct {
		Quota Quota `json:"quota_set"`
	}
	if err := readJSON(r, &body); err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	set, _ := s.quotas.Get(r.PathValue("project"))
	set.Instances = cmp.Or(body.Quota.Instances, set.Instances)
	set.Cores = cmp.Or(body.Quota.Cores, set.Cores)
	set.RAM = cmp.Or(body.Quota.RAM, set.RAM)
	set.Groups = cmp.Or(body.Quota.Groups, set.Groups)
	set.Members = cmp.Or(body.Quota.Members, set.Members)
	if err := s.quotas.Put(r.PathValue("project"), set); err != nil {
		return fmt.Errorf("store a quota: %w", err)
	}
	answer.JSON(w, http.StatusOK, map[string]any{"quota_set": quotaBody(r.Context(), s.quotaOf(r.PathValue("project")))})
	return nil
}

// deleteQuota restores a project's default quota.
func (s *Service) deleteQuota(w http.ResponseWriter, r *http.Request) error {
	if !identity.From(r.Context()).Admin {
		return fault.New(fault.Forbidden, "Policy doesn't allow os_compute_api:os-quota-sets:delete to be performed.")
	}
	if _, err := s.quotas.Delete(r.PathValue("project")); err != nil {
		return fmt.Errorf("forget a quota: %w", err)
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}
