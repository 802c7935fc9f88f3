package keystone

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// CatalogService is one service of the catalog. Its path follows the endpoint of the cloud; "{project}" in it is replaced by the project of the token.
type CatalogService struct{ Type, Name, Path string }

func localServices() []CatalogService {
	return []CatalogService{
		{"identity", "keystone", "/identity/v3"},
		{"image", "glance", "/image"},
		{"compute", "nova", "/compute/v2.1"},
		{"network", "neutron", "/network"},
		{"volumev3", "cinderv3", "/volume/v3/{project}"},
		{"sharev2", "manilav2", "/share/v2"},
		{"object-store", "swift", "/object-store/v1/AUTH_{project}"},
		{"orchestration", "heat", "/orchestration/v1/{project}"},
	}
}

// service is a row of the table of services. Fixed ones come with the cloud: their addresses are set, and missing ones made, at each start.
type service struct {
	ID, Type, Name, Description string
	Disabled, Fixed             bool
}

// endpoint is a row of the table of endpoints. "$(project_id)s" in its URL is replaced by the project of the token.
type endpoint struct {
	ID, ServiceID, Interface, RegionID, URL string
	Disabled                                bool
}

// region is a row of the table of regions.
type region struct{ ID, ParentID, Description string }

const projectInURL = "$(project_id)s"

// interfaces are the kinds of endpoints.
var interfaces = []string{"public", "internal", "admin"}

// seedCatalog puts the services of the configuration into the tables and removes others.
func (s *Service) seedCatalog() error {
	for _, name := range s.named {
		if _, ok := s.regions.Get(name); !ok {
			if err := s.regions.Put(name, region{ID: name}); err != nil {
				return err
			}
		}
	}
	for _, old := range s.services.All() {
		if old.Fixed && !slices.ContainsFunc(s.fixed, func(f CatalogService) bool { return stableID(f.Type) == old.ID }) {
			if err := s.removeService(old); err != nil {
				return err
			}
		}
	}
	for _, f := range s.fixed {
		row := service{ID: stableID(f.Type), Type: f.Type, Name: f.Name, Fixed: true}
		if err := s.services.Put(row.ID, row); err != nil {
			return err
		}
		for _, kind := range interfaces {
			if _, err := s.endpoints.Delete(stableID(s.inRegion(f.Type, SecondRegion) + " " + kind)); err != nil { // of a cloud that had two regions
				return err
			}
		}
		for _, name := range s.named {
			if err := s.seedEndpoints(f, row.ID, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// seedEndpoints puts the endpoints that a service has in a region into the table. Keystone itself is the same everywhere.
func (s *Service) seedEndpoints(f CatalogService, id, name string) error {
	base := s.endpoint
	if name != s.named[0] && f.Type != "identity" {
		base += "/" + name
	}
	for _, kind := range interfaces {
		e := endpoint{
			ID: stableID(s.inRegion(f.Type, name) + " " + kind), ServiceID: id, Interface: kind, RegionID: name,
			URL: base + strings.ReplaceAll(f.Path, "{project}", projectInURL),
		}
		if err := s.endpoints.Put(e.ID, e); err != nil {
			return err
		}
	}
	return nil
}

// inRegion is the base of the ids of a service's endpoints in a region.
func (s *Service) inRegion(service, name string) string {
	if name == s.named[0] {
		return service
	}
	return service + " " + name
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

// catalog lists the services for a token of this project; without a project, services that need one in their path are left out.
func (s *Service) catalog(projectID string) []catalogEntry {
	of := map[string][]catalogEndpoint{}
	for _, e := range s.endpoints.All() {
		if e.Disabled || (projectID == "" && strings.Contains(e.URL, projectInURL)) {
			continue
		}
		of[e.ServiceID] = append(of[e.ServiceID], catalogEndpoint{
			ID: e.ID, Interface: e.Interface, Region: e.RegionID, RegionID: e.RegionID,
			URL: strings.ReplaceAll(e.URL, projectInURL, projectID),
		})
	}
	entries := []catalogEntry{}
	for _, row := range s.services.All() {
		if endpoints := of[row.ID]; !row.Disabled && len(endpoints) > 0 {
			entries = append(entries, catalogEntry{ID: row.ID, Type: row.Type, Name: row.Name, Endpoints: endpoints})
		}
	}
	return entries
}

func (s *Service) serviceCollection() collection[service] {
	return collection[service]{
		service: s, singular: "service", table: s.services, filters: []string{"name", "type", "enabled"},
		body: func(row service) map[string]any {
			return map[string]any{
				"id": row.ID, "type": row.Type, "name": row.Name, "description": row.Description, "enabled": !row.Disabled,
				"links": s.self("services", row.ID),
			}
		},
		id: func(row service) string { return row.ID }, made: func(id string) service { return service{ID: id} },
		change: changeService, remove: s.removeService,
	}
}

func changeService(_ session, row *service, wanted json.RawMessage) error {
	var w struct {
		Type        *string `json:"type"`
		Name        *string `json:"name"`
		Description *string `json:"description"`
		Enabled     *bool   `json:"enabled"`
	}
	if err := readWanted("service", wanted, &w); err != nil {
		return err
	}
	set(&row.Type, w.Type)
	set(&row.Name, w.Name)
	set(&row.Description, w.Description)
	if w.Enabled != nil {
		row.Disabled = !*w.Enabled
	}
	if row.Type == "" {
		return invalid("Invalid input for field 'service': 'type' is a required property and must not be empty")
	}
	return nil
}

// removeService deletes a service with its endpoints.
func (s *Service) removeService(row service) error {
	if err := deleteWhere(s.endpoints, endpoint.key, func(e endpoint) bool { return e.ServiceID == row.ID }); err != nil {
		return err
	}
	_, err := s.services.Delete(row.ID)
	return err
}

func (e endpoint) key() string { return e.ID }

func (s *Service) endpointCollection() collection[endpoint] {
	return collection[endpoint]{
		service: s, singular: "endpoint", table: s.endpoints, filters: []string{"interface", "service_id", "region", "region_id", "enabled"},
		body: func(e endpoint) map[string]any {
			return map[string]any{
				"id": e.ID, "service_id": e.ServiceID, "interface": e.Interface, "region": e.RegionID, "region_id": e.RegionID, "url": e.URL,
				"enabled": !e.Disabled, "links": s.self("endpoints", e.ID),
			}
		},
		id: endpoint.key, made: func(id string) endpoint { return endpoint{ID: id} },
		change: s.changeEndpoint,
		remove: func(e endpoint) error {
			_, err := s.endpoints.Delete(e.ID)
			return err
		},
	}
}

func (s *Service) changeEndpoint(_ session, e *endpoint, wanted json.RawMessage) error {
	var w struct {
		ServiceID *string `json:"service_id"`
		Interface *string `json:"interface"`
		Region    *string `json:"region"` // an older name, with which a region that is not there is made
		RegionID  *string `json:"region_id"`
		URL       *string `json:"url"`
		Enabled   *bool   `json:"enabled"`
	}
	if err := readWanted("endpoint", wanted, &w); err != nil {
		return err
	}
	set(&e.ServiceID, w.ServiceID)
	set(&e.Interface, w.Interface)
	set(&e.RegionID, cmp.Or(w.RegionID, w.Region))
	set(&e.URL, w.URL)
	if w.Enabled != nil {
		e.Disabled = !*w.Enabled
	}
	// The common notations of the project; a catalog has one.
	for _, other := range []string{"%(project_id)s", "%(tenant_id)s", "$(tenant_id)s"} {
		e.URL = strings.ReplaceAll(e.URL, other, projectInURL)
	}
	if e.URL == "" || !slices.Contains(interfaces, e.Interface) {
		return invalid("Invalid input for field 'endpoint': it needs a 'url' and, as 'interface', one of %s", strings.Join(interfaces, ", "))
	}
	if _, ok := s.services.Get(e.ServiceID); !ok {
		return notFound("service", e.ServiceID)
	}
	if _, ok := s.regions.Get(e.RegionID); ok || e.RegionID == "" {
		return nil
	}
	if w.RegionID != nil {
		return notFound("region", e.RegionID)
	}
	return s.regions.Put(e.RegionID, region{ID: e.RegionID})
}

func (s *Service) regionCollection() collection[region] {
	return collection[region]{
		service: s, singular: "region", table: s.regions, filters: []string{"parent_region_id"}, public: true,
		body: func(row region) map[string]any {
			body := map[string]any{"id": row.ID, "description": row.Description, "parent_region_id": nil, "links": s.self("regions", row.ID)}
			if row.ParentID != "" {
				body["parent_region_id"] = row.ParentID
			}
			return body
		},
		id: func(row region) string { return row.ID }, made: func(string) region { return region{} },
		change: s.changeRegion, remove: s.removeRegion,
	}
}

// changeRegion sets the desired state of a region, whose id its maker may choose.
func (s *Service) changeRegion(_ session, row *region, wanted json.RawMessage) error {
	var w struct {
		ID          string  `json:"id"`
		ParentID    *string `json:"parent_region_id"`
		Description *string `json:"description"`
	}
	if err := readWanted("region", wanted, &w); err != nil {
		return err
	}
	switch _, taken := s.regions.Get(w.ID); {
	case row.ID == "" && taken:
		return conflict("region", "Duplicate ID, "+w.ID)
	case row.ID == "":
		row.ID = cmp.Or(w.ID, newID())
	case w.ID != "" && w.ID != row.ID:
		return invalid("Cannot change region ID")
	}
	set(&row.ParentID, w.ParentID)
	set(&row.Description, w.Description)
	if _, ok := s.regions.Get(row.ParentID); row.ParentID != "" && !ok {
		return notFound("region", row.ParentID)
	}
	return nil
}

func (s *Service) removeRegion(row region) error {
	_, used := first(s.endpoints, func(e endpoint) bool { return e.RegionID == row.ID })
	_, parent := first(s.regions, func(other region) bool { return other.ParentID == row.ID })
	if used || parent {
		return failure{http.StatusForbidden, "Unable to delete region " + row.ID + " because it has endpoints or child regions."}
	}
	_, err := s.regions.Delete(row.ID)
	return err
}

// stableID makes the same id from the same name, so that the cloud's own objects keep their ids at each start.
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
