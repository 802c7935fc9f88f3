package haproxy

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/burano/burano/gateway/route"
)

// systemAuthorities is Debian's file of well-known authorities.
const systemAuthorities = "/etc/ssl/certs/ca-certificates.crt"

// secured begins the words of a server that is asked over TLS; they are the last of its line.
const secured = " ssl verify "

// words are the words for the servers of a target, which check their certificates and their name, in checks of their health, too.
func (t target) words(files webFiles) string {
	if t.filters == nil || t.filters.TLS == nil {
		return ""
	}
	tls := t.filters.TLS
	authorities, protocol := systemAuthorities, " alpn http/1.1"
	if tls.Authorities != "" {
		authorities = files.authorities(tls.Authorities)
	}
	switch {
	case t.raw:
		protocol = ""
	case t.filters.H2C:
		protocol = " alpn h2"
	}
	text := secured + "required ca-file " + authorities
	if tls.Unverified {
		text = secured + "none"
	}
	if tls.Host != "" {
		text += " sni str(" + tls.Host + ") check-sni " + tls.Host
	}
	text += protocol
	if tls.Certificate != "" {
		text += " crt " + files.shown(tls.Certificate)
	}
	return text
}

// shownSuffix ends the names of files with certificates for backends.
const shownSuffix = ".shown"

// shown is the file of the certificate of a Secret that backends are shown. Its content changes at run time.
func (w webFiles) shown(secret string) string {
	if secret == "" {
		return ""
	}
	return filepath.Join(w.directory, fmt.Sprintf("%.16x%s", sha256.Sum256([]byte(secret)), shownSuffix))
}

// backendsWithTLS lists how sites ask backends over TLS.
func backendsWithTLS(sites []route.Site) iter.Seq[*route.BackendTLS] {
	return func(yield func(*route.BackendTLS) bool) {
		for _, site := range sites {
			for one := range site.Targets() {
				if one.Filters != nil && one.Filters.TLS != nil && !yield(one.Filters.TLS) {
					return
				}
			}
		}
	}
}

// show writes the certificates for backends. The reasons of missing and refused ones are in problems, by Secret.
func (w webFiles) show(ctx context.Context, web Web, problems map[string]error) {
	given := make(map[string][]byte, len(web.Shown))
	for _, one := range web.Shown {
		given[one.Name] = one.PEM
	}
	done := map[string]bool{"": true}
	for one := range backendsWithTLS(web.Sites) {
		if done[one.Certificate] {
			continue
		}
		done[one.Certificate] = true
		path := w.shown(one.Certificate)
		content, there := given[one.Certificate]
		present, err := os.ReadFile(path)
		if err == nil && (!there || bytes.Equal(present, content)) {
			continue
		}
		err = errors.New("the certificate for backends is not there")
		if there {
			if err = os.MkdirAll(w.directory, 0o700); err == nil {
				err = w.place(ctx, content, path, "listen candidate\n  bind 127.0.0.1:1\n  server candidate 127.0.0.1:1 ssl verify none crt %s\n")
			}
		}
		if err != nil {
			problems[one.Certificate] = err
		}
	}
}

// withoutUntrusted gives requests for backends whose certificate cannot be checked, or that cannot be shown one, the status 503, and ends such sessions.
func withoutUntrusted(sites []route.Site, problems map[string]error) []route.Site {
	if len(problems) == 0 {
		return sites
	}
	bad := func(t route.Target) bool {
		return t.Filters != nil && t.Filters.TLS != nil && (problems[t.Filters.TLS.Authorities] != nil && !t.Filters.TLS.Unverified || problems[t.Filters.TLS.Certificate] != nil && t.Filters.TLS.Certificate != "")
	}
	replaced := func(targets []route.Target, instead *route.Filters) []route.Target {
		targets = slices.Clone(targets)
		for i, one := range targets {
			if bad(one) {
				targets[i] = route.Target{Weight: one.Weight, Filters: instead}
				continue
			}
			targets[i].Filters = withoutMirrors(one.Filters, bad)
		}
		return targets
	}
	sites = slices.Clone(sites)
	for i := range sites {
		site := &sites[i]
		site.Paths, site.Terminated = slices.Clone(site.Paths), slices.Clone(site.Terminated)
		for j, path := range site.Paths {
			site.Paths[j].Targets = replaced(path.Targets, &route.Filters{Status: http.StatusServiceUnavailable})
		}
		for j, session := range site.Terminated {
			site.Terminated[j].Targets = replaced(session.Targets, nil)
		}
	}
	return sites
}

// untrusted logs changes of the authorities and certificates that cannot be used.
func (p *Proxy) untrusted(problems map[string]error) {
	now := make(map[string]string, len(problems))
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		now[name] = problems[name].Error()
		if p.unusable[name] != now[name] {
			p.config.Logger.Error("authorities, or a certificate for backends, cannot be used; what needs them is closed", "name", name, "error", problems[name])
		}
	}
	for name := range p.unusable {
		if _, still := now[name]; !still {
			p.config.Logger.Info("authorities, or a certificate for backends, can be used again", "name", name)
		}
	}
	p.unusable = now
}

// renewShown has the running worker show backends the certificates of the files. One that it does not know comes with a reload.
func (a *admin) renewShown(files webFiles, sites []route.Site) error {
	done := map[string]bool{"": true}
	for one := range backendsWithTLS(sites) {
		if done[one.Certificate] {
			continue
		}
		done[one.Certificate] = true
		file := files.shown(one.Certificate)
		shown, err := a.command("show ssl cert " + file)
		if err != nil || strings.Contains(shown, "Can't") {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		pair, err := tls.X509KeyPair(content, content)
		if err != nil {
			return err
		}
		if strings.Contains(shown, fmt.Sprintf("%X", sha1.Sum(pair.Leaf.Raw))) {
			continue
		}
		if err := a.inTurn(setCertificate(file, content)...); err != nil {
			return fmt.Errorf("change the certificate of %s for backends: %w", one.Certificate, err)
		}
	}
	return nil
}
