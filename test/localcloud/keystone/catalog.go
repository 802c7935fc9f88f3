package keystone

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// CatalogService is one service of the catalog. Its path follows the endpoint of the cloud; "{project}" in it stands for the
// project of the token.
type CatalogService struct{ Type, Name, Path string }

func localServices() []CatalogService {
	return []CatalogService{
		{"identity", "keystone", "/identity/v3"},
		{"image", "glance", "/image"},
		{"compute", "nova", "/compute/v2.1"},
		{"network", "neutron", "/network"},
		{"orchestration", "heat", "/orchestration/v1/{project}"},
	}
}

type catalogEntry struct {
	ID        string            `json:"id"`
	Type      string            `json:"type"`
	Name      string            `json:"name"`
	Endpoints []catalogEndpoint `json:"endpoints"`
}

type catalogEndpoint struct {
	ID        string `json:"id"`
	Interface string `json:"interface"`
	Region    string `json:"region"`
	RegionID  string `json:"region_id"`
	URL       string `json:"url"`
}

// catalog lists the services for a token of this project; without a project those that need one in their path are left out.
func (s *Service) catalog(projectID string) []catalogEntry {
	entries := []catalogEntry{}
	for _, service := range s.services {
		if projectID == "" && strings.Contains(service.Path, "{project}") {
			continue
		}
		entry := catalogEntry{ID: stableID(service.Type), Type: service.Type, Name: service.Name}
		for _, kind := range []string{"public", "internal", "admin"} {
			entry.Endpoints = append(entry.Endpoints, catalogEndpoint{
				ID: stableID(service.Type + " " + kind), Interface: kind, Region: Region, RegionID: Region,
				URL: s.endpoint + strings.ReplaceAll(service.Path, "{project}", projectID),
			})
		}
		entries = append(entries, entry)
	}
	return entries
}

// stableID makes the same id of the same name, so that a catalog entry keeps its id without being stored.
func stableID(name string) string {
	sum := sha256.Sum256([]byte("burano local cloud catalog " + name))
	return hex.EncodeToString(sum[:16])
}

func (s *Service) showCatalog(w http.ResponseWriter, _ *http.Request, caller session) error {
	if caller.scope == (scope{}) {
		return forbidden("identity:get_auth_catalog")
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"catalog": s.catalog(caller.scope.ProjectID), "links": map[string]any{"self": s.endpoint + "/identity/v3/auth/catalog"},
	})
	return nil
}

func (s *Service) versionDocument() map[string]any {
	return map[string]any{
		"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []map[string]any{{"rel": "self", "href": s.endpoint + "/identity/v3/"}},
		"media-types": []map[string]any{{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}},
	}
}

func (s *Service) listVersions(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusMultipleChoices, map[string]any{
		"versions": map[string]any{"values": []any{s.versionDocument()}},
	})
	return nil
}

func (s *Service) showVersion(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]any{"version": s.versionDocument()})
	return nil
}
