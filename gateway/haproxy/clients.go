package haproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/haproxytech/client-native/v6/models"

	"github.com/burano/burano/gateway/route"
)

// Bundles of authorities are files that are named by their content and never change, so the configuration of HAProxy names the same
// content always. Another bundle is another configuration, which a reload takes over.

// authoritiesSuffix ends the names of their files.
const authoritiesSuffix = ".authorities"

func (w webFiles) authorities(name string) string {
	return filepath.Join(w.directory, name+authoritiesSuffix)
}

// clientCheck is the check of clients' certificates on a port.
type clientCheck struct {
	authorities string // a file
	optional    bool
}

// apply has HAProxy check the clients of a port, and accept none without a certificate unless the check is optional.
func (c *clientCheck) apply(bind *models.Bind) {
	if c == nil {
		return
	}
	bind.SslCafile, bind.Verify = c.authorities, models.BindParamsVerifyRequired
	if c.optional {
		bind.Verify, bind.CrtIgnoreErr, bind.CaIgnoreErr = models.BindParamsVerifyOptional, "all", "all"
	}
}

// checkOf is the check of a listener of this gateway.
func (w webFiles) checkOf(l route.Listener) *clientCheck {
	if len(l.Checks) == 0 {
		return nil
	}
	return &clientCheck{authorities: w.authorities(l.Checks[0].Authorities), optional: l.Checks[0].Optional}
}

// mark is part of the keys of the paths of a port. A port whose check begins is closed to all requests until HAProxy makes the check: the rules that it runs
// with look for keys without the mark.
func mark(l route.Listener) string {
	switch {
	case len(l.Checks) == 0:
		return ""
	case l.Checks[0].Optional:
		return "o"
	}
	return "c"
}

// secure writes the bundles of authorities, and leaves out the ports whose clients cannot be checked, with the reason: nobody is served unchecked.
func (p *Proxy) secure(ctx context.Context, web Web, refused map[uint16]error) Web {
	problems := p.file.web.trust(ctx, web)
	problem := func(l route.Listener) error {
		for _, check := range l.Checks {
			if !check.Same(&l.Checks[0]) {
				return fmt.Errorf("they would have to show certificates of %s and of %s", l.Checks[0].Authorities, check.Authorities)
			}
		}
		if len(l.Checks) > 0 {
			return problems[l.Checks[0].Authorities]
		}
		return nil
	}
	checked := make(map[uint16]bool)
	for _, l := range web.Listeners {
		checked[l.Port] = checked[l.Port] || len(l.Checks) > 0
		if err := problem(l); err != nil {
			refused[l.Port] = fmt.Errorf("clients of the port cannot be checked, so it is closed: %w", err)
		}
	}
	web.Listeners = slices.DeleteFunc(slices.Clone(web.Listeners), func(l route.Listener) bool {
		// While a port gets a check, etcd may have it twice for an instant.
		return refused[l.Port] != nil || checked[l.Port] && len(l.Checks) == 0
	})
	if len(refused) > 0 {
		web.Sites = slices.Clone(web.Sites)
		for i, site := range web.Sites {
			web.Sites[i].Paths = slices.DeleteFunc(slices.Clone(site.Paths), func(path route.Path) bool { return refused[path.Port] != nil })
		}
	}
	web.Sites = withoutUntrusted(web.Sites, problems)
	p.untrusted(problems)
	return web
}

// trust writes the bundles that a state names, and returns the names of the others with the reason. HAProxy reads each of them first.
func (w webFiles) trust(ctx context.Context, web Web) (problems map[string]error) {
	problems = make(map[string]error)
	bundles := make(map[string]route.Authorities, len(web.Authorities))
	for _, one := range web.Authorities {
		bundles[one.Name()] = one
	}
	w.show(ctx, web, problems)
	for name := range namedAuthorities(web) {
		if name == "" {
			if _, err := os.Stat(systemAuthorities); err != nil {
				problems[name] = fmt.Errorf("the well-known authorities of this gateway: %w", err)
			}
			continue
		}
		bundle, there := bundles[name]
		if present, err := os.ReadFile(w.authorities(name)); err == nil && (route.Authorities{PEM: string(present)}).Name() == name {
			continue // also one that is about to go, and the port that names it with it
		}
		err := errors.New("the certificates of the authorities are not in etcd")
		if there {
			err = os.MkdirAll(w.directory, 0o700)
		}
		if err == nil {
			err = w.place(ctx, []byte(bundle.PEM), w.authorities(name), "listen candidate\n  bind 127.0.0.1:1\n  server candidate 127.0.0.1:1 ssl verify required ca-file %s\n")
		}
		if err != nil {
			problems[name] = err
		}
	}
	return problems
}

// namedAuthorities are the names of the bundles that a state uses.
func namedAuthorities(web Web) map[string]bool {
	named := make(map[string]bool)
	for _, l := range web.Listeners {
		for _, check := range l.Checks {
			named[check.Authorities] = true
		}
	}
	for tls := range backendsWithTLS(web.Sites) {
		if !tls.Unverified {
			named[tls.Authorities] = true
		}
	}
	return named
}

// forget removes the bundles, and certificates for backends, that nothing names any more, the last good configuration included.
func (p *Proxy) forget(web Web) error {
	kept := make(map[string]bool)
	for name := range namedAuthorities(web) {
		kept[p.file.web.authorities(name)] = true
	}
	for tls := range backendsWithTLS(web.Sites) {
		kept[p.file.web.shown(tls.Certificate)] = true
	}
	var problems []error
	for _, pattern := range []string{p.file.web.authorities("*"), filepath.Join(p.file.web.directory, "*"+shownSuffix)} {
		files, err := filepath.Glob(pattern)
		problems = append(problems, err)
		for _, file := range files {
			if !kept[file] && p.file.proven() && !p.file.present.mentions(file) {
				problems = append(problems, os.Remove(file))
			}
		}
	}
	return errors.Join(problems...)
}

func (t text) mentions(what string) bool {
	for section := range maps.Values(t.sections) {
		if strings.Contains(section, what) {
			return true
		}
	}
	return false
}

// HAProxy 2.6 has one cache of TLS sessions for all ports. A client of TLS 1.2 could resume a session of one port on another, which would not ask for its
// certificate any more. So without the cache; tickets, by which most clients resume sessions, hold for the port that gave them.
const (
	noSessions = "  tune.ssl.cachesize 0\n"
	global     = "\nglobal\n"
)

// separateSessions gives the configuration that line where it checks clients.
func (t *text) separateSessions() {
	t.head = strings.Replace(t.head, noSessions, "", 1)
	for key, section := range t.sections {
		if !strings.HasPrefix(key, "frontend ") {
			continue
		}
		for line := range strings.Lines(section) {
			if strings.HasPrefix(line, "  bind ") && strings.Contains(line, " verify ") {
				t.head = strings.Replace(t.head, global, global+noSessions, 1)
				return
			}
		}
	}
}

// place writes a file that HAProxy can read. It tries a candidate first, with these lines of a configuration, which would prevent its start otherwise. The
// error is a refusal where the content is the reason.
func (w webFiles) place(ctx context.Context, content []byte, path, lines string) error {
	candidate := filepath.Join(w.directory, "candidate.pem")
	check := filepath.Join(w.directory, "candidate.cfg")
	defer os.Remove(candidate)
	defer os.Remove(check)
	if err := writeAtomically(candidate, content, 0o600); err != nil {
		return err
	}
	text := "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n" + fmt.Sprintf(lines, candidate)
	if err := writeAtomically(check, []byte(text), 0o600); err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, w.binary, "-c", "-f", check).CombinedOutput()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.Exited() {
		return refusal{fmt.Errorf("HAProxy does not take it: %w: %.500s", err, bytes.TrimSpace(output))}
	}
	if err != nil {
		return fmt.Errorf("check it: %w", err)
	}
	return os.Rename(candidate, path)
}
