package haproxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/configuration/options"
	"github.com/haproxytech/client-native/v6/models"
)

// file is HAProxy's configuration file, which belongs to Burano alone. It is replaced as a whole: where more than servers changes, HAProxy checks its new
// parts, and then it is renamed into place. Beside it lies the last one that HAProxy really ran with.
type file struct {
	config Config
	client configuration.Configuration // renders sections; its own file has the base alone
	web    webFiles

	present  text // the file's content, now or soon
	is       map[string]listener
	skeleton [sha256.Size]byte // of it
	good     [sha256.Size]byte // of the last good one
	checked  bool              // HAProxy has checked all of it, or run with it
	behind   bool              // on the disk are other servers than in present
	writes   int               // how often another one took its place, or was read
}

// openFile opens the configuration file, and replaces a file of others first, of which it keeps a copy beside it.
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
	if err := f.openBase(ctx); err != nil {
		return nil, err
	}
	if err := f.load(); err != nil {
		return nil, err
	}
	// Sections of a file that an earlier Burano wrote are converted to their present form.
	checks := checksOf(servers(f.is))
	shared, err := f.render(checks, nil)
	if err != nil {
		return nil, err
	}
	next := f.present.clone()
	next.head, next.sections[clientsKey] = shared.head, shared.sections[clientsKey]
	for _, l := range f.is {
		next.place(l, checks)
	}
	next.separateSessions()
	if err := f.loadMirrors(&next); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // a daemon that is asked to stop has not failed
	switch {
	case next.skeleton() != f.skeleton:
		return f, f.commit(ctx, next, f.is, &next)
	case next.String() != f.present.String():
		return f, f.commit(ctx, next, f.is, nil)
	}
	return f, nil
}

// openBase opens the base with which sections are rendered.
func (f *file) openBase(ctx context.Context) error {
	path := f.config.ConfigFile + ".base"
	if err := writeAtomically(path, base(f.config), 0o644); err != nil {
		return fmt.Errorf("write HAProxy configuration: %w", err)
	}
	client, err := configuration.New(ctx, options.ConfigurationFile(path), options.HAProxyBin(f.config.Binary),
		options.TransactionsDir(filepath.Join(filepath.Dir(f.config.ConfigFile), "transactions")))
	if err != nil {
		return fmt.Errorf("read HAProxy configuration %s: %w", path, err)
	}
	f.client = client
	return nil
}

// load reads the file, and the last good one.
func (f *file) load() error {
	content, err := os.ReadFile(f.config.ConfigFile)
	if err != nil {
		return fmt.Errorf("read HAProxy configuration: %w", err)
	}
	f.present = readText(string(content))
	f.is, f.skeleton, f.behind = f.present.listeners(), f.present.skeleton(), false
	f.writes++
	f.good = [sha256.Size]byte{}
	if content, err := os.ReadFile(f.lastGood()); err == nil {
		f.good = readText(string(content)).skeleton()
	}
	f.checked = f.proven()
	return nil
}

// renderAtOnce is the number of listeners that are rendered at once: rendering uses much memory.
const renderAtOnce = 100

// render returns the head, with this interval of checks, the common section, and the sections of the listeners, without servers.
func (f *file) render(checks checks, listeners []listener) (text, error) {
	all := text{sections: make(map[string]string)}
	for first := true; first || len(listeners) > 0; first = false {
		some := listeners[:min(renderAtOnce, len(listeners))]
		listeners = listeners[len(some):]
		rendered, err := f.renderSome(some)
		if err != nil {
			return text{}, fmt.Errorf("change HAProxy configuration: %w", err)
		}
		all.head = strings.Replace(rendered.head, checksOf(0).words(), checks.words(), 1)
		maps.Copy(all.sections, rendered.sections)
	}
	return all, nil
}

func (f *file) renderSome(listeners []listener) (rendered text, err error) {
	version, err := f.client.GetVersion("")
	if err != nil {
		return text{}, err
	}
	t, err := f.client.StartTransaction(version)
	if err != nil {
		return text{}, err
	}
	defer func() { err = errors.Join(err, f.client.DeleteTransaction(t.ID)) }()
	if err := f.shared(t.ID); err != nil {
		return text{}, err
	}
	for _, l := range listeners {
		if err := f.add(l, t.ID); err != nil {
			return text{}, err
		}
	}
	parsed, err := f.client.GetParser(t.ID)
	if err != nil {
		return text{}, err
	}
	return readText(parsed.String()), nil
}

// commit puts a configuration into place. Where more of it is new than servers, HAProxy checks fresh first: its new part, or all of it.
func (f *file) commit(ctx context.Context, next text, listeners map[string]listener, fresh *text) error {
	content := []byte(next.String())
	skeleton := f.skeleton
	if fresh != nil {
		skeleton = next.skeleton()
		if err := f.check(ctx, []byte(fresh.String())); err != nil {
			return fmt.Errorf("change HAProxy configuration: the candidate is not used: %w", err)
		}
		f.checked = true
	}
	if err := writeAtomically(f.config.ConfigFile, content, 0o644); err != nil {
		return fmt.Errorf("change HAProxy configuration: %w", err)
	}
	f.present, f.is, f.skeleton = next, listeners, skeleton
	f.behind, f.writes = false, f.writes+1
	return nil
}

// check has HAProxy read a candidate.
func (f *file) check(ctx context.Context, content []byte) error {
	candidate := f.config.ConfigFile + ".candidate"
	defer os.Remove(candidate)
	if err := writeAtomically(candidate, content, 0o644); err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, f.config.Binary, "-W", "-c", "-f", candidate).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.2000s", err, bytes.TrimSpace(output))
	}
	return nil
}

// write changes the file from its listeners to the wanted ones. Without a difference nothing is written.
func (f *file) write(ctx context.Context, wanted map[string]listener) error {
	var fresh, changed []listener
	next := f.present.clone()
	remove := func(l listener) {
		for _, section := range []string{l.Section, inside(l.Port), opening(l.Port), mirrorSection(l.Section)} {
			delete(next.sections, frontendKey(section))
			delete(next.sections, backendKey(section))
		}
	}
	restructured := false
	for section, has := range f.is {
		if _, stays := wanted[section]; !stays {
			remove(has)
			restructured = true
		}
	}
	for section, want := range wanted {
		has, exists := f.is[section]
		switch {
		case !exists || has.About != want.About:
			remove(has)
			fresh = append(fresh, want)
		case !slices.Equal(has.Servers, want.Servers):
			changed = append(changed, want)
		}
	}
	checks, were := checksOf(servers(wanted)), checksOf(servers(f.is))
	var rendered text
	if restructured = restructured || len(fresh) > 0 || checks != were; restructured {
		var err error
		if rendered, err = f.render(checks, fresh); err != nil {
			return err
		}
		next.head = rendered.head
		maps.Copy(next.sections, rendered.sections)
		next.separateSessions()
		if err := f.loadMirrors(&next); err != nil {
			return err
		}
		rendered.head = next.head
	}
	if checks.enabled() != were.enabled() {
		changed = slices.Collect(maps.Values(wanted))
	} else {
		changed = append(changed, fresh...)
	}
	if !restructured && len(changed) == 0 && !f.behind {
		return nil
	}
	for _, l := range changed {
		next.place(l, checks)
	}
	switch {
	case !restructured:
		return f.commit(ctx, next, wanted, nil)
	case !f.checked:
		return f.commit(ctx, next, wanted, &next)
	}
	// Sections do not depend on other listeners: unchanged ones were checked before.
	for _, l := range changed {
		rendered.sections[backendKey(l.Section)] = next.sections[backendKey(l.Section)]
	}
	return f.commit(ctx, next, wanted, &rendered)
}

// follow takes over which servers listeners have now. The file is behind then, until it is written.
func (f *file) follow(listeners map[string]listener, checks checks) {
	for section, l := range listeners {
		if slices.Equal(f.is[section].Servers, l.Servers) {
			continue
		}
		f.present.place(l, checks)
		f.is[section] = l
		f.behind = true
	}
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
	if l.Rules.Affinity > 0 {
		affine(backend, l.Rules.Affinity)
	}
	if l.Filters != nil {
		shape(backend, l)
	}
	if l.Filters != nil && l.Filters.Retry != nil {
		retried(backend, l.Filters.Retry)
	}
	if l.Mirrored {
		patience := int64(copyPatience)
		backend.ServerTimeout = &patience
	}
	if err := f.client.CreateBackend(backend, id, 0); err != nil {
		return err
	}
	if l.Rules.Affinity > 0 {
		if err := f.stick(l.Section, id); err != nil {
			return err
		}
	}
	if l.Filters != nil {
		if err := f.filters(l.Section, l.Filters, id); err != nil {
			return err
		}
	}
	if l.Mirrored {
		return f.mirror(l, id)
	}
	if l.Port == 0 {
		return nil
	}
	if err := f.frontend(l.frontend(l.Section), id); err != nil {
		return err
	}
	if err := f.rules(l.Section, l.Rules, id); err != nil {
		return err
	}
	var err error
	switch {
	case l.Streams:
		err = f.streams(l, id)
	case l.Passes:
		err = f.passing(l, id)
	case l.HTTP:
		err = f.requests(l, id)
	}
	if err != nil {
		return err
	}
	bind := f.bind(l)
	if err := f.client.CreateBind("frontend", l.Section, bind, id, 0); err != nil || !f.config.Bind6.IsValid() {
		return err
	}
	// One socket for both versions of IP would see the addresses of IPv4 as such of IPv6.
	bind.Name, bind.Address, bind.V6only = l.Section+"-ipv6", f.config.Bind6.String(), true
	return f.client.CreateBind("frontend", l.Section, bind, id, 0)
}

func (f *file) bind(l listener) *models.Bind {
	number := int64(l.Port)
	bind := &models.Bind{BindParams: models.BindParams{Name: l.Section, AcceptProxy: l.Rules.AcceptProxy}, Address: f.config.Bind.String(), Port: &number}
	if l.TLS && !l.Passes {
		bind.Ssl, bind.CrtList = true, f.web.certificateList()
		bind.Alpn, bind.SslMinVer = "h2,http/1.1", models.BindParamsSslMinVerTLSv1Dot2
		l.Check.apply(bind)
	}
	return bind
}

// lastGood is where the configuration is that HAProxy last ran with.
func (f *file) lastGood() string { return f.config.ConfigFile + ".last-good" }

// keep remembers the present file as one that HAProxy runs with: it gets a second name, as a change puts another file in its place.
func (f *file) keep() error {
	f.good = f.skeleton
	present, err := os.Stat(f.config.ConfigFile)
	if err != nil {
		return fmt.Errorf("keep the last good HAProxy configuration: %w", err)
	}
	if good, err := os.Stat(f.lastGood()); err == nil && os.SameFile(present, good) {
		return nil
	}
	second := f.config.ConfigFile + ".good"
	err = os.Remove(second)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Link(f.config.ConfigFile, second)
	}
	if err == nil {
		err = os.Rename(second, f.lastGood())
	}
	if err != nil {
		return fmt.Errorf("keep the last good HAProxy configuration: %w", err)
	}
	return nil
}

// restore puts the last good configuration back.
func (f *file) restore() error {
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
	return f.load()
}

// proven reports whether HAProxy is known to have run with the present file, servers aside.
func (f *file) proven() bool { return f.skeleton == f.good }
