package haproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/configuration/options"
	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/traffic"
)

// file is HAProxy's configuration file, which is ours alone. It changes only by transactions: a candidate is written, HAProxy
// checks this very file, and then it is renamed into place. Beside it lies a copy of the last one that HAProxy really ran with.
type file struct {
	config Config
	client configuration.Configuration
	web    webFiles
}

// openFile opens the configuration file, and makes it ours first if it is not: a file of others is kept beside it.
func openFile(ctx context.Context, c Config) (*file, error) {
	f := &file{config: c, web: webFiles{directory: filepath.Join(filepath.Dir(c.ConfigFile), "burano"), binary: c.Binary}}
	if err := os.MkdirAll(filepath.Dir(c.ConfigFile), 0o755); err != nil {
		return nil, fmt.Errorf("open HAProxy configuration: %w", err)
	}
	content, err := os.ReadFile(c.ConfigFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open HAProxy configuration: %w", err)
	}
	if !strings.Contains(string(content), "\ndefaults "+defaultsName) {
		if len(content) > 0 {
			if err := writeAtomically(c.ConfigFile+".before-burano", content, 0o644); err != nil {
				return nil, fmt.Errorf("keep the HAProxy configuration that was there: %w", err)
			}
		}
		if err := writeAtomically(c.ConfigFile, base(c), 0o644); err != nil {
			return nil, fmt.Errorf("write HAProxy configuration: %w", err)
		}
	}
	if err := f.load(ctx); err != nil {
		return nil, err
	}
	if err := f.refreshBase(ctx); err != nil {
		return nil, err
	}
	return f, f.shared()
}

func (f *file) open(ctx context.Context, path string) (configuration.Configuration, error) {
	client, err := configuration.New(ctx,
		options.ConfigurationFile(path),
		options.HAProxyBin(f.config.Binary),
		options.TransactionsDir(filepath.Join(filepath.Dir(f.config.ConfigFile), "transactions")),
		options.MasterWorker,
		options.SkipFailedTransactions, // the reason is in the error; the candidates themselves would pile up
	)
	if err != nil {
		return nil, fmt.Errorf("read HAProxy configuration %s: %w", path, err)
	}
	return client, nil
}

func (f *file) load(ctx context.Context) error {
	client, err := f.open(ctx, f.config.ConfigFile)
	f.client = client
	return err
}

// refreshBase brings the sections global and defaults of a file that an earlier Burano wrote to what they are now.
func (f *file) refreshBase(ctx context.Context) error {
	fresh := f.config.ConfigFile + ".base"
	if err := writeAtomically(fresh, base(f.config), 0o644); err != nil {
		return fmt.Errorf("compare HAProxy configuration: %w", err)
	}
	defer os.Remove(fresh)
	client, err := f.open(ctx, fresh)
	if err != nil {
		return err
	}
	_, global, err := client.GetGlobalConfiguration("")
	if err != nil {
		return fmt.Errorf("compare HAProxy configuration: %w", err)
	}
	_, defaults, err := client.GetDefaultsSection(defaultsName, "")
	if err != nil {
		return fmt.Errorf("compare HAProxy configuration: %w", err)
	}
	_, globalNow, err := f.client.GetGlobalConfiguration("")
	if err != nil {
		return fmt.Errorf("compare HAProxy configuration: %w", err)
	}
	_, defaultsNow, err := f.client.GetDefaultsSection(defaultsName, "")
	if err != nil {
		return fmt.Errorf("compare HAProxy configuration: %w", err)
	}
	if defaults.DefaultServer != nil && defaultsNow.DefaultServer != nil && defaultsNow.DefaultServer.Inter != nil {
		defaults.DefaultServer.Inter = defaultsNow.DefaultServer.Inter // see checkEvery
	}
	if global.Equal(*globalNow) && defaults.Equal(*defaultsNow) {
		return nil
	}
	return f.transaction(func(id string) error {
		if err := f.client.PushGlobalConfiguration(global, id, 0); err != nil {
			return err
		}
		return f.setDefaults(defaults, id)
	})
}

// setDefaults writes the section of defaults. client-native reads keep-alives in milliseconds and writes their number as it is, which HAProxy takes for
// seconds; other times have a unit.
func (f *file) setDefaults(defaults *models.Defaults, id string) error {
	written := *defaults
	for _, keepAlive := range []**int64{&written.ClitcpkaIdle, &written.ClitcpkaIntvl, &written.SrvtcpkaIdle, &written.SrvtcpkaIntvl} {
		if *keepAlive != nil {
			seconds := **keepAlive / 1000
			*keepAlive = &seconds
		}
	}
	return f.client.EditDefaultsSection(defaultsName, &written, id, 0)
}

// transaction makes changes to a candidate and puts it into place when HAProxy finds it valid.
func (f *file) transaction(change func(id string) error) error {
	version, err := f.client.GetVersion("")
	if err != nil {
		return fmt.Errorf("change HAProxy configuration: %w", err)
	}
	t, err := f.client.StartTransaction(version)
	if err != nil {
		return fmt.Errorf("change HAProxy configuration: %w", err)
	}
	if err := change(t.ID); err != nil {
		return errors.Join(fmt.Errorf("change HAProxy configuration: %w", err), f.client.DeleteTransaction(t.ID))
	}
	if _, err := f.client.CommitTransaction(t.ID); err != nil {
		return fmt.Errorf("change HAProxy configuration: the candidate is not used: %w", err)
	}
	return nil
}

// listeners reads the published ports and the pools from the file. Sections that are not ours, or were spoilt, are not among them.
func (f *file) listeners() (map[string]listener, error) {
	_, frontends, err := f.client.GetFrontends("")
	if err != nil {
		return nil, fmt.Errorf("read HAProxy configuration: %w", err)
	}
	_, backends, err := f.client.GetBackends("")
	if err != nil {
		return nil, fmt.Errorf("read HAProxy configuration: %w", err)
	}
	found := make(map[string]listener, len(frontends))
	add := func(l listener) {
		_, servers, err := f.client.GetServers("backend", l.Section, "")
		if err != nil {
			return
		}
		for _, server := range servers {
			l.Slots = append(l.Slots, slotOf(server))
		}
		found[l.Section] = l
	}
	for _, frontend := range frontends {
		if port, ok := traffic.Port(frontend.Name); ok {
			add(listener{Section: frontend.Name, Port: port, About: frontend.Description})
		}
	}
	for _, backend := range backends {
		if strings.HasPrefix(backend.Name, poolPrefix) {
			add(listener{Section: backend.Name, About: backend.Description})
		}
	}
	return found, nil
}

// write brings the file from the listeners that it has to those wanted, in one transaction. Without a difference nothing is written.
func (f *file) write(wanted map[string]listener) (changed bool, err error) {
	present, err := f.listeners()
	if err != nil {
		return false, err
	}
	var steps []func(id string) error
	for _, section := range slices.Sorted(maps.Keys(present)) {
		if _, stays := wanted[section]; !stays {
			steps = append(steps, func(id string) error { return f.remove(present[section], id) })
		}
	}
	for _, section := range slices.Sorted(maps.Keys(wanted)) {
		want := wanted[section]
		has, exists := present[section]
		switch {
		case !exists:
			steps = append(steps, func(id string) error { return f.add(want, id) })
		case has.About != want.About || len(has.Slots) > len(want.Slots):
			steps = append(steps, func(id string) error { return f.remove(has, id) }, func(id string) error { return f.add(want, id) })
		default:
			steps = append(steps, f.edits(has, want)...)
		}
	}
	_, defaults, err := f.client.GetDefaultsSection(defaultsName, "")
	if err != nil {
		return false, fmt.Errorf("read HAProxy configuration: %w", err)
	}
	if inter := checkEvery(places(wanted)).Milliseconds(); defaults.DefaultServer == nil || defaults.DefaultServer.Inter == nil || *defaults.DefaultServer.Inter != inter {
		steps = append(steps, func(id string) error {
			if defaults.DefaultServer == nil {
				defaults.DefaultServer = &models.DefaultServer{}
			}
			defaults.DefaultServer.Inter = &inter
			return f.setDefaults(defaults, id)
		})
	}
	if len(steps) == 0 {
		return false, nil
	}
	return true, f.transaction(func(id string) error {
		for _, step := range steps {
			if err := step(id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *file) add(l listener, id string) error {
	backend := &models.Backend{BackendBase: models.BackendBase{Name: l.Section, From: defaultsName, Description: l.About}}
	if l.Rules.Idle > 0 {
		idle := l.Rules.Idle.Milliseconds()
		backend.ServerTimeout = &idle
	}
	if l.HTTP {
		backend.Mode = models.BackendBaseModeHTTP
	}
	if l.Filters != nil && l.Filters.Timeout > 0 {
		patience := l.Filters.Timeout.Milliseconds()
		backend.ServerTimeout = &patience
	}
	if err := f.client.CreateBackend(backend, id, 0); err != nil {
		return err
	}
	for _, s := range l.Slots {
		if err := f.client.CreateServer("backend", l.Section, l.server(s), id, 0); err != nil {
			return err
		}
	}
	if l.Filters != nil {
		if err := f.filters(l.Section, l.Filters, id); err != nil {
			return err
		}
	}
	if l.Port == 0 {
		return nil
	}
	if err := f.client.CreateFrontend(l.frontend(l.Section), id, 0); err != nil {
		return err
	}
	if err := f.rules(l.Section, l.Rules, id); err != nil {
		return err
	}
	if l.Passes {
		if err := f.passing(l, id); err != nil {
			return err
		}
	} else if l.HTTP {
		if err := f.requests(l, id); err != nil {
			return err
		}
	}
	return f.client.CreateBind("frontend", l.Section, f.bind(l), id, 0)
}

func (f *file) bind(l listener) *models.Bind {
	number := int64(l.Port)
	bind := &models.Bind{BindParams: models.BindParams{Name: l.Section}, Address: f.config.Bind.String(), Port: &number}
	if l.TLS && !l.Passes {
		bind.Ssl, bind.CrtList = true, f.web.certificateList()
		bind.Alpn, bind.SslMinVer = "h2,http/1.1", models.BindParamsSslMinVerTLSv1Dot2
	}
	return bind
}

func (f *file) remove(l listener, id string) error {
	if l.Port != 0 {
		if err := f.removeInside(l.Port, id); err != nil {
			return err
		}
		if err := f.client.DeleteFrontend(l.Section, id, 0); err != nil {
			return err
		}
	}
	return f.client.DeleteBackend(l.Section, id, 0)
}

func (f *file) edits(has, want listener) []func(id string) error {
	var steps []func(id string) error
	for i, s := range want.Slots {
		switch {
		case i >= len(has.Slots):
			steps = append(steps, func(id string) error {
				return f.client.CreateServer("backend", want.Section, want.server(s), id, 0)
			})
		case has.Slots[i] != s:
			steps = append(steps, func(id string) error {
				return f.client.EditServer(has.Slots[i].Name, "backend", want.Section, want.server(s), id, 0)
			})
		}
	}
	return steps
}

// lastGood is where the copy of the configuration is that HAProxy last ran with.
func (f *file) lastGood() string { return f.config.ConfigFile + ".last-good" }

// keep remembers the present file as one that HAProxy runs with.
func (f *file) keep() error {
	content, err := os.ReadFile(f.config.ConfigFile)
	if err == nil {
		err = writeAtomically(f.lastGood(), content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep the last good HAProxy configuration: %w", err)
	}
	return nil
}

// restore puts the last good configuration back.
func (f *file) restore(ctx context.Context) error {
	content, err := os.ReadFile(f.lastGood())
	if errors.Is(err, fs.ErrNotExist) {
		content, err = base(f.config), nil // never ran yet
	}
	if err == nil {
		err = writeAtomically(f.config.ConfigFile, content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("put the last good HAProxy configuration back: %w", err)
	}
	if err := f.load(ctx); err != nil {
		return err
	}
	return f.shared() // that of a former release has not got it, and what is written next refers to it
}

// proven says whether HAProxy is known to have run with the present file, servers aside.
func (f *file) proven() bool {
	present, err := os.ReadFile(f.config.ConfigFile)
	if err != nil {
		return false
	}
	good, err := os.ReadFile(f.lastGood())
	return err == nil && skeleton(present) == skeleton(good)
}

// nowhere stands in the configuration for a free slot, which is disabled.
func nowhere() netip.AddrPort { return netip.AddrPortFrom(netip.IPv4Unspecified(), 1) }

// server is how a slot stands in the configuration.
func (l listener) server(s slot) *models.Server {
	address := s.Address
	if s.State == free {
		address = nowhere()
	}
	port := int64(address.Port())
	server := &models.Server{Name: s.Name, Address: address.Addr().String(), Port: &port}
	server.Check = models.ServerParamsCheckEnabled
	if l.Filters != nil && l.Filters.H2C {
		server.Proto = "h2"
	}
	switch s.State {
	case free:
		server.Maintenance = models.ServerParamsMaintenanceEnabled
	case draining:
		none := int64(0)
		server.Weight = &none
	}
	return server
}

func slotOf(server *models.Server) slot {
	if server.Maintenance == models.ServerParamsMaintenanceEnabled || server.Port == nil {
		return slot{Name: server.Name}
	}
	address, err := netip.ParseAddr(strings.Trim(server.Address, "[]"))
	if err != nil {
		return slot{Name: server.Name}
	}
	s := slot{Name: server.Name, Address: netip.AddrPortFrom(address, uint16(*server.Port)), State: ready}
	if server.Weight != nil && *server.Weight == 0 {
		s.State = draining
	}
	return s
}
