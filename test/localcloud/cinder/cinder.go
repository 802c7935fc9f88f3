// Package cinder is the block storage service of the local cloud, answered in the shapes of Cinder v3
// (https://docs.openstack.org/api-ref/block-storage/v3/). Volumes, snapshots and backups are sparse files; the hypervisor attaches
// volumes to servers as block devices. Groups and transfers are not supported.
package cinder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/state"
)

// Config sets the places of the service's data, and its collaborators.
type Config struct {
	StateDir string           // folder of tables and files, made when missing
	Images   Images           // sources of new volumes
	Endpoint string           // base of the cloud's addresses, such as "http://127.0.0.1:5050"
	Zones    []string         // availability zones, one at least
	Now      func() time.Time // clock, time.Now when nil
	Logger   *slog.Logger
}

// Images is where the images are of which volumes are made.
type Images interface {
	Find(ctx context.Context, projectID, ref string) (glance.Image, error)
	// Write makes the file of a volume, which has its size, the disk of a server that runs from the image.
	Write(ctx context.Context, imageID, file string) error
}

// Service is the block storage service. It is safe for concurrent use.
type Service struct {
	volumes   *state.Table[Volume]
	snapshots *state.Table[Snapshot]
	backups   *state.Table[Backup]
	types     *state.Table[volumeType]
	quotas    *state.Table[Quota] // by project

	images   Images
	dir      string
	endpoint string
	zones    []string
	now      func() time.Time
	log      *slog.Logger

	mutex sync.Mutex // held while something is decided on, and its file made or removed
}

// New opens the tables. Work that the process's end has cut off is undone: files that no table lists are removed.
func New(config Config) (*Service, error) {
	s := &Service{dir: filepath.Join(config.StateDir, "files"), images: config.Images, endpoint: config.Endpoint, zones: config.Zones, now: config.Now, log: config.Logger}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var failures [6]error
	s.volumes, failures[0] = state.Open[Volume](config.StateDir, "volumes")
	s.snapshots, failures[1] = state.Open[Snapshot](config.StateDir, "snapshots")
	s.types, failures[2] = state.Open[volumeType](config.StateDir, "types")
	s.quotas, failures[3] = state.Open[Quota](config.StateDir, "quotas")
	s.backups, failures[5] = state.Open[Backup](config.StateDir, "backups")
	failures[4] = os.MkdirAll(s.dir, 0o700)
	if err := errors.Join(failures[:]...); err != nil {
		return nil, fmt.Errorf("open cinder: %w", err)
	}
	if _, ok := s.types.Get(defaultType.ID); !ok {
		if err := s.types.Put(defaultType.ID, defaultType); err != nil {
			return nil, fmt.Errorf("open cinder: %w", err)
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("open cinder: %w", err)
	}
	for _, entry := range entries {
		_, volume := s.volumes.Get(entry.Name())
		_, snapshot := s.snapshots.Get(entry.Name())
		_, backup := s.backups.Get(entry.Name())
		if !volume && !snapshot && !backup {
			if err := os.Remove(s.file(entry.Name())); err != nil {
				return nil, fmt.Errorf("open cinder: %w", err)
			}
		}
	}
	return s, nil
}

// file is where the data of a volume, a snapshot or a backup are.
func (s *Service) file(id string) string { return filepath.Join(s.dir, id) }

// Handler answers the block storage API; it sees paths from "/v3" on, and "/" for the list of versions. The caller comes with the
// request's context (internal/identity).
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	open := func(pattern string, h answer.Handler) { mux.Handle(pattern, s.handle(h)) }
	open("GET /{$}", s.listVersions)
	open("GET /v3", s.showVersion)
	open("GET /v3/{$}", s.showVersion)

	serve := func(method, path string, h answer.Handler) { open(method+" /v3/{project}"+path, inProject(h)) }
	serve("GET", "/volumes", s.listVolumes)
	serve("GET", "/volumes/detail", s.listVolumes)
	serve("POST", "/volumes", s.createVolume)
	serve("GET", "/volumes/{id}", s.showVolume)
	serve("PUT", "/volumes/{id}", s.updateVolume)
	serve("DELETE", "/volumes/{id}", s.deleteVolume)
	serve("POST", "/volumes/{id}/action", s.act)
	serve("GET", "/volumes/{id}/metadata", s.showMetadata)
	serve("POST", "/volumes/{id}/metadata", s.updateMetadata)
	serve("PUT", "/volumes/{id}/metadata", s.updateMetadata)
	serve("GET", "/snapshots", s.listSnapshots)
	serve("GET", "/snapshots/detail", s.listSnapshots)
	serve("POST", "/snapshots", s.createSnapshot)
	serve("GET", "/snapshots/{id}", s.showSnapshot)
	serve("PUT", "/snapshots/{id}", s.updateSnapshot)
	serve("DELETE", "/snapshots/{id}", s.deleteSnapshot)
	serve("POST", "/snapshots/{id}/metadata", s.addSnapshotMetadata)
	serve("GET", "/backups/detail", s.listBackups)
	serve("POST", "/backups", s.createBackup)
	serve("GET", "/backups/{id}", s.showBackup)
	serve("DELETE", "/backups/{id}", s.deleteBackup)
	serve("GET", "/types", s.listTypes)
	serve("POST", "/types", s.createType)
	serve("GET", "/types/{id}", s.showType)
	serve("DELETE", "/types/{id}", s.deleteType)
	serve("GET", "/limits", s.showLimits)
	serve("GET", "/os-quota-sets/{of}", s.showQuota)
	serve("GET", "/os-quota-sets/{of}/defaults", s.showDefaultQuota)
	serve("PUT", "/os-quota-sets/{of}", s.updateQuota)
	serve("GET", "/os-availability-zone", s.listZones)
	open("/", func(http.ResponseWriter, *http.Request) error {
		return answer.Failure{Status: http.StatusNotFound, Message: "The resource could not be found."}
	})
	return mux
}

func (s *Service) versionDocument() map[string]any {
	return map[string]any{
		"id": "v3.0", "status": "CURRENT", "version": "3.0", "min_version": "3.0", "updated": "2018-07-17T00:00:00Z",
		"links": []map[string]any{{"rel": "self", "href": s.endpoint + "/volume/v3/"}},
		"media-types": []map[string]any{
			{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"},
		},
	}
}

func (s *Service) listVersions(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusMultipleChoices, map[string]any{"versions": []any{s.versionDocument()}})
	return nil
}

func (s *Service) showVersion(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, map[string]any{"versions": []any{s.versionDocument()}})
	return nil
}

func (s *Service) listZones(w http.ResponseWriter, _ *http.Request) error {
	var zones []any
	for _, zone := range s.zones {
		zones = append(zones, map[string]any{"zoneName": zone, "zoneState": map[string]any{"available": true}})
	}
	answer.JSON(w, http.StatusOK, map[string]any{"availabilityZoneInfo": zones})
	return nil
}
