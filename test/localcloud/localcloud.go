// Package localcloud combines the services of the local cloud behind one listener on loopback: Keystone, Glance, Nova, Neutron, Cinder, Manila, Swift
// and Heat. Servers and networks are real, on this machine, and it removes all of them again.
//
// It is for development, demonstration and tests: its passwords are known, and its servers share the kernel of this machine.
package localcloud

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/burano/burano/test/localcloud/cinder"
	"github.com/burano/burano/test/localcloud/fabric"
	"github.com/burano/burano/test/localcloud/fault"
	"github.com/burano/burano/test/localcloud/glance"
	"github.com/burano/burano/test/localcloud/heat"
	"github.com/burano/burano/test/localcloud/hypervisor"
	"github.com/burano/burano/test/localcloud/keystone"
	"github.com/burano/burano/test/localcloud/manila"
	"github.com/burano/burano/test/localcloud/neutron"
	"github.com/burano/burano/test/localcloud/nova"
	"github.com/burano/burano/test/localcloud/swift"
)

// The defaults of a Config.
const (
	DefaultListen   = "127.0.0.1:5050"
	DefaultExternal = "10.88.0.0/24"
)

// Config has a local cloud's folders, addresses and limits.
type Config struct {
	StateDir     string       // folder of everything it keeps, made when missing
	Listen       string       // address and port, DefaultListen when ""; also in the catalog
	ExternalCIDR netip.Prefix // external network, DefaultExternal when it is not valid
	External6    netip.Prefix // its network of IPv6, /64 or larger; none when it is not valid
	// SecondCIDR is the external network of a second region, keystone.SecondRegion, with networks, images, servers, volumes and stacks of
	// its own; when it is not valid the cloud has one region.
	SecondCIDR netip.Prefix
	// Zones are the availability zones of Nova and Cinder, of which the first is the default; "nova" when there are none.
	Zones []string
	// Prefix begins the names of everything made on the machine, "blc-" when "". Two local clouds on one machine (tests) need
	// different ones.
	Prefix        string
	TokenLifetime time.Duration // of Keystone's tokens, one hour when 0
	Faults        *fault.Faults // the faults of calls; may be ordered at Endpoint()+"/faults" too
	Logger        *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Listen = cmp.Or(c.Listen, DefaultListen)
	c.Prefix = cmp.Or(c.Prefix, fabric.Prefix)
	if len(c.Zones) == 0 {
		c.Zones = []string{"nova"}
	}
	if !c.ExternalCIDR.IsValid() {
		c.ExternalCIDR = netip.MustParsePrefix(DefaultExternal)
	}
	if c.Faults == nil {
		c.Faults = &fault.Faults{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Endpoint is the base of the cloud's addresses; Keystone is at Endpoint()+"/identity/v3".
func (c Config) Endpoint() string { return "http://" + cmp.Or(c.Listen, DefaultListen) }

func (c Config) hypervisor() hypervisor.Config {
	parent := "/burano-localcloud"
	if c.Prefix != fabric.Prefix {
		parent += "-" + c.Prefix
	}
	return hypervisor.Config{StateDir: filepath.Join(c.StateDir, "hypervisor"), CgroupParent: parent, Logger: c.Logger}
}

// second is the configuration of the second region's services.
func (c Config) second() Config {
	c.StateDir, c.ExternalCIDR, c.External6 = filepath.Join(c.StateDir, keystone.SecondRegion), c.SecondCIDR, netip.Prefix{}
	c.Prefix = strings.TrimSuffix(c.Prefix, "-") + "b-"
	return c
}

// Cloud is a running local cloud.
type Cloud struct {
	config  Config
	owner   *ownership
	handler http.Handler
	regions []*region
}

// region are the services of a region.
type region struct {
	networks *neutron.Service
	compute  *nova.Service
	stacks   *heat.Service
}

// New starts the cloud from its state: host settings, networks, images and servers are restored, and unfinished work continues. It does not listen: serve
// Handler at Config.Listen.
func New(ctx context.Context, config Config) (cloud *Cloud, err error) {
	config = config.withDefaults()
	owner, err := takeOwnership(config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			owner.release()
		}
	}()
	if err := raiseSettings(settingsPath, config.Prefix, hostSettings()); err != nil {
		return nil, err
	}
	cloud = &Cloud{config: config, owner: owner}
	if err := cloud.assemble(ctx); err != nil {
		cloud.endWork()
		return nil, fmt.Errorf("start the local cloud: %w", err)
	}
	return cloud, nil
}

func (c *Cloud) assemble(ctx context.Context) error {
	config := c.config
	identity, err := keystone.New(keystone.Config{StateDir: filepath.Join(config.StateDir, "keystone"), Endpoint: config.Endpoint(),
		TokenLifetime: config.TokenLifetime, SecondRegion: config.SecondCIDR.IsValid(), Logger: config.Logger.With("service", "keystone")})
	if err != nil {
		return err
	}
	services := map[string]http.Handler{}
	if err := c.add(ctx, config, "", identity, services); err != nil {
		return err
	}
	if config.SecondCIDR.IsValid() {
		if err := c.add(ctx, config.second(), "/"+keystone.SecondRegion, identity, services); err != nil {
			return fmt.Errorf("region %s: %w", keystone.SecondRegion, err)
		}
	}
	c.handler = c.routes(identity, services)
	return nil
}

// add starts a region's services, which answer below a path.
func (c *Cloud) add(ctx context.Context, config Config, below string, identity *keystone.Service, services map[string]http.Handler) error {
	made := &region{}
	c.regions = append(c.regions, made)
	dir := func(service string) string { return filepath.Join(config.StateDir, service) }
	logger := func(service string) *slog.Logger { return config.Logger.With("service", below+service) }
	endpoint := config.Endpoint() + below
	machines, err := hypervisor.New(config.hypervisor())
	if err != nil {
		return err
	}
	networks, err := neutron.New(neutron.Config{
		StateDir: config.StateDir, ExternalCIDR: config.ExternalCIDR, External6: config.External6, Prefix: config.Prefix, Logger: logger("neutron"),
	})
	if err != nil {
		return err
	}
	images, err := glance.New(glance.Config{StateDir: dir("glance"), Endpoint: endpoint, Images: machines, Logger: logger("glance")})
	if err != nil {
		return err
	}
	volumes, err := cinder.New(cinder.Config{StateDir: dir("cinder"), Images: disks{images, machines}, Endpoint: endpoint, Zones: config.Zones, Logger: logger("cinder")})
	if err != nil {
		return err
	}
	shares, err := manila.New(manila.Config{StateDir: dir("manila"), Server: config.ExternalCIDR.Masked().Addr().Next().String(), Endpoint: endpoint, Logger: logger("manila")})
	if err != nil {
		return err
	}
	objects, err := swift.New(swift.Config{StateDir: dir("swift"), Logger: logger("swift")})
	if err != nil {
		return err
	}
	made.compute, err = nova.New(nova.Config{
		StateDir: dir("nova"), Endpoint: endpoint, Zones: config.Zones, Networks: networks, Hypervisor: machines, Images: images, Volumes: volumes,
		Logger: logger("nova"),
	})
	if err != nil {
		return err
	}
	made.stacks, err = heat.New(heat.Config{
		StateDir: config.StateDir, Compute: compute{made.compute}, Network: networks, Volumes: volumes, Delegations: identity, Logger: logger("heat"),
	})
	if err != nil {
		return err
	}
	made.networks = networks
	networks.ServeMetadata(made.compute.Metadata)
	if err := networks.Restore(ctx); err != nil {
		return fmt.Errorf("restore networks: %w", err)
	}
	if err := images.Restore(ctx); err != nil {
		return err
	}
	if err := made.compute.Restore(ctx); err != nil {
		return err
	}
	if err := made.stacks.Restore(ctx); err != nil {
		return fmt.Errorf("restore stacks: %w", err)
	}
	for path, handler := range map[string]http.Handler{"/image": images.Handler(), "/compute": made.compute.Handler(), "/network": networks.Handler(),
		"/volume": volumes.Handler(), "/share": shares.Handler(), "/object-store": objects.Handler(), "/orchestration/v1": made.stacks.Handler()} {
		services[below+path] = handler
	}
	return nil
}

// Serve answers at the listener until ctx ends; requests in progress then have ten seconds.
func (c *Cloud) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: c.handler, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(bounded); err != nil {
		return errors.Join(fmt.Errorf("end the requests under way: %w", err), server.Close())
	}
	return nil
}

// Close ends the process's part; servers and networks stay, and unfinished work continues when the cloud is started again.
func (c *Cloud) Close() {
	c.endWork()
	c.owner.release()
}

func (c *Cloud) endWork() {
	for _, one := range c.regions {
		if one.stacks != nil {
			one.stacks.Close()
		}
		if one.compute != nil {
			one.compute.Close()
		}
		if one.networks != nil {
			if err := one.networks.Close(); err != nil {
				c.config.Logger.Warn("the metadata service did not end cleanly", "error", err)
			}
		}
	}
}

// stored is the part of a Config that Down needs.
type stored struct {
	Listen, ExternalCIDR, SecondCIDR, Prefix string
	MadeDir                                  bool // the state folder was not there before
}

func configPath(stateDir string) string { return filepath.Join(stateDir, "config.json") }

func readConfig(stateDir string) (stored, error) {
	data, err := os.ReadFile(configPath(stateDir))
	if err != nil {
		return stored{}, err
	}
	var found stored
	if err := json.Unmarshal(data, &found); err != nil {
		return stored{}, fmt.Errorf("read %s: %w", configPath(stateDir), err)
	}
	return found, nil
}

func writeJSONFile(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
