// Package manila is the shared file systems service of the local cloud, answered in the shapes of Manila v2
// (https://docs.openstack.org/api-ref/shared-file-system/) at the versions that Burano uses. Shares of NFS are folders of this machine, with metadata,
// rules of access and a quota. No server exports the folders, so a mount fails. Share networks are only names; snapshots, groups and replicas are not
// supported.
package manila

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/state"
)

// The versions that are answered: from 2.45 on, rules of access are asked for elsewhere.
const (
	oldest = "2.0"
	newest = "2.44"
)

// Config has the service's folder and dependencies.
type Config struct {
	StateDir string // folder of tables and shares, made when missing
	Server   string // address of shares' export locations
	Endpoint string // base of the cloud's addresses, such as "http://127.0.0.1:5050"
	Logger   *slog.Logger
}

// Service is the shared file systems service. It is safe for concurrent use.
type Service struct {
	Config
	shares   *state.Table[share]
	networks *state.Table[network]
	quotas   *state.Table[quota] // by project

	mutex sync.Mutex // held while something is decided on, and its folder made or removed
}

// New opens the tables. Folders of which nothing is known go.
func New(config Config) (*Service, error) {
	s := &Service{Config: config}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	var failures [4]error
	s.shares, failures[0] = state.Open[share](config.StateDir, "shares")
	s.networks, failures[1] = state.Open[network](config.StateDir, "networks")
	s.quotas, failures[2] = state.Open[quota](config.StateDir, "quotas")
	failures[3] = os.MkdirAll(s.folder(""), 0o755)
	if err := errors.Join(failures[:]...); err != nil {
		return nil, fmt.Errorf("open manila: %w", err)
	}
	entries, err := os.ReadDir(s.folder(""))
	if err != nil {
		return nil, fmt.Errorf("open manila: %w", err)
	}
	for _, entry := range entries {
		if _, known := s.shares.Get(entry.Name()); !known {
			if err := os.RemoveAll(s.folder(entry.Name())); err != nil {
				return nil, fmt.Errorf("open manila: %w", err)
			}
		}
	}
	return s, nil
}

// folder is where the files of a share are.
func (s *Service) folder(id string) string { return filepath.Join(s.StateDir, "folders", id) }

// Handler answers the shared file systems API; it sees paths from "/v2" on, and "/" for the list of versions. The caller comes with the request's context
// (internal/identity).
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	open := func(pattern string, h answer.Handler) { mux.Handle(pattern, s.handle(h)) }
	open("GET /{$}", s.listVersions)
	open("GET /v2", s.listVersions)
	open("GET /v2/{$}", s.listVersions)

	serve := func(method, path string, h answer.Handler) { open(method+" /v2"+path, inProject(h)) }
	serve("GET", "/shares/detail", s.listShares)
	serve("POST", "/shares", s.createShare)
	serve("GET", "/shares/{id}", s.showShare)
	serve("DELETE", "/shares/{id}", s.deleteShare)
	serve("POST", "/shares/{id}/action", s.act)
	serve("GET", "/shares/{id}/export_locations", s.listExports)
	serve("POST", "/shares/{id}/metadata", s.addMetadata)
	serve("DELETE", "/shares/{id}/metadata/{key}", s.deleteMetadata)
	serve("GET", "/share-networks/detail", s.listNetworks)
	serve("POST", "/share-networks", s.createNetwork)
	serve("PUT", "/quota-sets/{of}", s.updateQuota)
	open("/", func(http.ResponseWriter, *http.Request) error {
		return answer.Failure{Status: http.StatusNotFound, Message: "The resource could not be found."}
	})
	return mux
}

// statuses: an obstacle to a change is a bad request to Manila, as to Cinder.
var statuses = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound,
	fault.Conflict: http.StatusBadRequest, fault.TooLarge: http.StatusRequestEntityTooLarge,
}

func (s *Service) handle(h answer.Handler) http.Handler {
	return answer.Failures{Service: "manila", Own: "The server has either erred or is incapable of performing the requested operation.", Statuses: statuses, Log: s.Logger}.Handle(h)
}

// inProject refuses callers whose token is for no project.
func inProject(h answer.Handler) answer.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if identity.From(r.Context()).ProjectID == "" {
			return fault.New(fault.Invalid, "Malformed request url")
		}
		return h(w, r)
	}
}

// read reads a request body of at most 1 MiB.
func read(r *http.Request, into any) error {
	if err := answer.Read(r, into); err != nil {
		return fault.New(fault.Invalid, "Malformed request body: %v", err)
	}
	return nil
}

func (s *Service) listVersions(w http.ResponseWriter, r *http.Request) error {
	status := http.StatusOK
	if r.URL.Path == "/" {
		status = http.StatusMultipleChoices
	}
	answer.JSON(w, status, map[string]any{"versions": []any{map[string]any{
		"id": "v2.0", "status": "CURRENT", "version": newest, "min_version": oldest, "updated": "2015-08-27T11:33:21Z",
		"links":       []map[string]any{{"rel": "self", "href": s.Endpoint + "/share/v2/"}},
		"media-types": []map[string]any{{"base": "application/json", "type": "application/vnd.openstack.share+json;version=1"}},
	}}})
	return nil
}

// network is a share network: nothing but a name here.
type network struct{ ID, ProjectID, Name string }

func (n network) body() map[string]any {
	return map[string]any{"id": n.ID, "project_id": n.ProjectID, "name": n.Name}
}

func (s *Service) listNetworks(w http.ResponseWriter, r *http.Request) error {
	list := []any{}
	for _, one := range s.networks.Where(func(one network) bool { return one.ProjectID == identity.From(r.Context()).ProjectID }) {
		list = append(list, one.body())
	}
	answer.JSON(w, http.StatusOK, map[string]any{"share_networks": list})
	return nil
}

func (s *Service) createNetwork(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Network struct {
			Name string `json:"name"`
		} `json:"share_network"`
	}
	if err := read(r, &body); err != nil {
		return err
	}
	made := network{newID(), identity.From(r.Context()).ProjectID, body.Network.Name}
	if err := s.networks.Put(made.ID, made); err != nil {
		return err
	}
	answer.JSON(w, http.StatusAccepted, map[string]any{"share_network": made.body()})
	return nil
}

// quota is the limits of a project; nil for the defaults.
type quota struct {
	Shares    *int `json:"shares,omitempty"`
	Gigabytes *int `json:"gigabytes,omitempty"`
}

// checkQuota refuses an addition beyond a project's quota. The caller holds the mutex.
func (s *Service) checkQuota(project string, shares, gigabytes int) error {
	mostShares, mostGigabytes := 50, 1000
	set, _ := s.quotas.Get(project)
	if set.Shares != nil {
		mostShares = *set.Shares
	}
	if set.Gigabytes != nil {
		mostGigabytes = *set.Gigabytes
	}
	usedShares, usedGigabytes := 0, 0
	for _, one := range s.shares.Where(func(one share) bool { return one.ProjectID == project }) {
		usedShares, usedGigabytes = usedShares+1, usedGigabytes+one.SizeGB
	}
	switch {
	case usedShares+shares > mostShares:
		return fault.New(fault.TooLarge, "ShareLimitExceeded: Maximum number of shares allowed (%d) either per project/user or share type quota is exceeded.", mostShares)
	case usedGigabytes+gigabytes > mostGigabytes:
		return fault.New(fault.TooLarge, "ShareSizeExceedsAvailableQuota: Requested share exceeds allowed project/user or share type gigabytes quota.")
	}
	return nil
}

func (s *Service) updateQuota(w http.ResponseWriter, r *http.Request) error {
	if !identity.From(r.Context()).Admin {
		return fault.New(fault.Forbidden, "Policy doesn't allow quota_set:update to be performed.")
	}
	var body struct {
		Quota quota `json:"quota_set"`
	}
	if err := read(r, &body); err != nil {
		return err
	}
	if err := s.quotas.Put(r.PathValue("of"), body.Quota); err != nil {
		return err
	}
	answer.JSON(w, http.StatusOK, map[string]any{"quota_set": body.Quota})
	return nil
}
