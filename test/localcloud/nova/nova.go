// Package nova is the compute service of the local cloud, answered in the shapes of Nova v2.1 (https://docs.openstack.org/api-ref/compute/). It accepts
// servers at once and makes them in the background, continues begun work after a restart of the process, and leaves nothing of a deleted server.
package nova

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/burano/burano/test/localcloud/answer"
	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/hypervisor"
	"github.com/burano/burano/test/localcloud/state"
)

// Hypervisor runs servers.
type Hypervisor interface {
	Start(ctx context.Context, server hypervisor.Server) error
	Stop(ctx context.Context, id string) error
	Delete(ctx context.Context, id string) error
	State(ctx context.Context, id string) (hypervisor.State, error)
	ConsoleLog(ctx context.Context, id string, lines int) (string, error)
	SetDisks(ctx context.Context, id string, disks []hypervisor.Disk) error
}

// Images is where servers' images are looked up, by id or name.
type Images interface {
	Find(ctx context.Context, projectID, ref string) (glance.Image, error)
}

// Config has the service's folder and dependencies.
type Config struct {
	StateDir   string // folder for the tables, made when missing
	Endpoint   string // base of the cloud's addresses, such as "http://127.0.0.1:5050"
	Networks   Networks
	Hypervisor Hypervisor
	Images     Images
	Volumes    Volumes
	Zones      []string         // availability zones, one at least; volumes are attached within one
	MemoryMiB  int              // of the machine, asked for when 0; no server may have more
	Now        func() time.Time // clock, time.Now when nil
	Logger     *slog.Logger
}

// Service is the compute service. It is safe for concurrent use.
type Service struct {
	servers  *state.Table[Server]
	keypairs *state.Table[Keypair]
	flavors  *state.Table[Flavor]
	quotas   *state.Table[Quota] // by project
	computes *state.Table[compute]
	groups   *state.Table[ServerGroup]

	networks   Networks
	hypervisor Hypervisor
	images     Images
	volumes    Volumes
	endpoint   string
	zones      []string
	memory     int // MiB of the machine
	now        func() time.Time
	log        *slog.Logger

	background context.Context // of the work that goes on after a request's answer
	stop       context.CancelFunc
	group      sync.WaitGroup
	mutex      sync.Mutex             // guards running
	running    map[string]*operation  // by server id
	plugging   map[string]*sync.Mutex // by server id

	computeChanged chan struct{} // closed and made anew when the compute service changes; guarded by mutex
}

// New opens the tables. Nothing is done to servers before Restore.
func New(config Config) (*Service, error) {
	s := &Service{
		networks: config.Networks, hypervisor: config.Hypervisor, images: config.Images, volumes: config.Volumes, endpoint: config.Endpoint, zones: config.Zones,
		memory: config.MemoryMiB, now: config.Now, log: config.Logger, running: map[string]*operation{}, plugging: map[string]*sync.Mutex{}, computeChanged: make(chan struct{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.memory == 0 {
		var machine unix.Sysinfo_t
		if err := unix.Sysinfo(&machine); err != nil {
			return nil, fmt.Errorf("ask for the machine's memory: %w", err)
		}
		s.memory = int(machine.Totalram * uint64(machine.Unit) >> 20)
	}
	var failures [6]error
	s.servers, failures[0] = state.Open[Server](config.StateDir, "servers")
	s.keypairs, failures[1] = state.Open[Keypair](config.StateDir, "keypairs")
	s.flavors, failures[2] = state.Open[Flavor](config.StateDir, "flavors")
	s.quotas, failures[3] = state.Open[Quota](config.StateDir, "quotas")
	s.computes, failures[4] = state.Open[compute](config.StateDir, "computes")
	s.groups, failures[5] = state.Open[ServerGroup](config.StateDir, "groups")
	if err := errors.Join(failures[:]...); err != nil {
		return nil, fmt.Errorf("open nova: %w", err)
	}
	s.background, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Close ends the background work, which goes on at the next Restore. Servers go on running.
func (s *Service) Close() {
	s.stop()
	s.group.Wait()
}

// Handler answers the compute API; it sees paths from "/v2.1" on, and "/" for the list of versions. The caller comes with the
// request's context (internal/identity).
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	open := func(pattern string, h answer.Handler) { mux.Handle(pattern, s.handle(h)) }
	open("GET /{$}", s.listVersions)
	open("GET /v2.1", s.showVersion)
	open("GET /v2.1/{$}", s.showVersion)

	serve := func(pattern string, h answer.Handler) { open(pattern, inProject(h)) }
	serve("GET /v2.1/flavors", s.listFlavors)
	serve("POST /v2.1/flavors", s.createFlavor)
	serve("DELETE /v2.1/flavors/{id}", s.deleteFlavor)
	serve("GET /v2.1/flavors/detail", s.listFlavors)
	serve("GET /v2.1/flavors/{id}", s.showFlavor)
	serve("GET /v2.1/flavors/{id}/os-extra_specs", s.showExtraSpecs)
	serve("GET /v2.1/os-keypairs", s.listKeypairs)
	serve("POST /v2.1/os-keypairs", s.createKeypair)
	serve("GET /v2.1/os-keypairs/{name}", s.showKeypair)
	serve("DELETE /v2.1/os-keypairs/{name}", s.deleteKeypair)
	serve("GET /v2.1/servers", s.listServers)
	serve("GET /v2.1/servers/detail", s.listServers)
	serve("POST /v2.1/servers", s.createServer)
	serve("GET /v2.1/servers/{id}", s.showServer)
	serve("DELETE /v2.1/servers/{id}", s.deleteServer)
	serve("PUT /v2.1/servers/{id}", s.renameServer)
	serve("PUT /v2.1/servers/{id}/metadata", s.replaceMetadata)
	serve("POST /v2.1/servers/{id}/action", s.act)
	serve("GET /v2.1/servers/{id}/os-interface", s.listInterfaces)
	serve("POST /v2.1/servers/{id}/os-interface", s.attachInterface)
	serve("DELETE /v2.1/servers/{id}/os-interface/{port}", s.detachInterface)
	serve("GET /v2.1/servers/{id}/os-volume_attachments", s.listVolumes)
	serve("POST /v2.1/servers/{id}/os-volume_attachments", s.attachVolume)
	serve("GET /v2.1/servers/{id}/os-volume_attachments/{volume}", s.showVolume)
	serve("DELETE /v2.1/servers/{id}/os-volume_attachments/{volume}", s.detachVolume)
	serve("GET /v2.1/limits", s.showLimits)
	serve("GET /v2.1/os-quota-sets/{project}", s.showQuota)
	serve("GET /v2.1/os-quota-sets/{project}/defaults", s.showDefaultQuota)
	serve("PUT /v2.1/os-quota-sets/{project}", s.updateQuota)
	serve("DELETE /v2.1/os-quota-sets/{project}", s.deleteQuota)
	serve("GET /v2.1/os-server-groups", s.listServerGroups)
	serve("POST /v2.1/os-server-groups", s.createServerGroup)
	serve("GET /v2.1/os-server-groups/{id}", s.showServerGroup)
	serve("DELETE /v2.1/os-server-groups/{id}", s.deleteServerGroup)
	serve("GET /v2.1/os-services", s.listServices)
	serve("PUT /v2.1/os-services/{id}", s.updateService)
	serve("GET /v2.1/os-availability-zone", s.listZones)
	serve("GET /v2.1/os-availability-zone/detail", s.listZones)
	open("/", func(http.ResponseWriter, *http.Request) error {
		return answer.Failure{Status: http.StatusNotFound, Message: "The resource could not be found."}
	})
	return withMicroversion(mux)
}

func (s *Service) versionDocument() map[string]any {
	return map[string]any{
		"id": "v2.1", "status": "CURRENT", "version": maxMicroversion.String(), "min_version": minMicroversion.String(),
		"updated": "2013-07-23T11:33:21Z", "links": []map[string]any{
			{"rel": "self", "href": s.endpoint + "/compute/v2.1/"},
		},
		"media-types": []map[string]any{{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}},
	}
}

func (s *Service) listVersions(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, map[string]any{"versions": []any{s.versionDocument()}})
	return nil
}

func (s *Service) showVersion(w http.ResponseWriter, _ *http.Request) error {
	answer.JSON(w, http.StatusOK, map[string]any{"version": s.versionDocument()})
	return nil
}
