package haproxy

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
)

// webFiles are the maps and certificates that HAProxy reads when it starts or reloads. They always have the desired state; a running HAProxy is notified
// of changes (see follow).
type webFiles struct {
	directory string
	binary    string // HAProxy
}

func (w webFiles) exact() string           { return filepath.Join(w.directory, "exact.map") }
func (w webFiles) below() string           { return filepath.Join(w.directory, "below.map") }
func (w webFiles) ruleExact() string       { return filepath.Join(w.directory, "rule-exact.map") }
func (w webFiles) ruleBelow() string       { return filepath.Join(w.directory, "rule-below.map") }
func (w webFiles) names() string           { return filepath.Join(w.directory, "names.map") }
func (w webFiles) splits() string          { return filepath.Join(w.directory, "splits.map") }
func (w webFiles) certificateList() string { return filepath.Join(w.directory, "certificates.list") }
func (w webFiles) unknown() string         { return filepath.Join(w.directory, "default.pem") }

// pages are maps and certificates as they are wanted.
type pages struct {
	exact, below map[string]string // of Ingresses
	// Of Gateway API: paths, server names of TLS sessions, and the shares of several targets.
	ruleExact, ruleBelow, names, splits map[string]string
	dealt                               map[string][]string // the sections that a split leads to
	certificates                        []listed
	bad                                 map[string]string // certificates that HAProxy does not take, and why
	sites                               []route.Site
	wants                               map[string]bool // paths with their hosts, see anyForm
	ports                               map[string]bool // that serve paths, with their marks
}

// mapFile is a map and its desired content.
type mapFile struct {
	path    string
	entries map[string]string
}

// maps are in the order in which new entries are added: targets of references come first.
func (w webFiles) maps(p pages) []mapFile {
	return []mapFile{
		{w.splits(), p.splits}, {w.exact(), p.exact}, {w.below(), p.below}, {w.ruleExact(), p.ruleExact}, {w.ruleBelow(), p.ruleBelow}, {w.names(), p.names},
	}
}

// listed is a line of the list of certificates. Its file is named by its content and its hosts, and never changes.
type listed struct {
	file  string
	hosts []string
}

func (l listed) line() string { return strings.Join(append([]string{l.file}, l.hosts...), " ") }

// write updates the files to the desired state.
func (w webFiles) write(ctx context.Context, web Web, wanted map[string]listener) (pages, error) {
	p := pages{
		exact: map[string]string{}, below: map[string]string{}, ruleExact: map[string]string{}, ruleBelow: map[string]string{}, names: map[string]string{},
		splits: map[string]string{}, dealt: map[string][]string{}, bad: map[string]string{}, sites: web.Sites,
		wants: map[string]bool{}, ports: map[string]bool{},
	}
	if _, err := os.Stat(w.directory); len(web.Listeners) == 0 && errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err := os.MkdirAll(w.directory, 0o700); err != nil {
		return p, fmt.Errorf("keep maps and certificates: %w", err)
	}
	guards := guardsOf(web.Sites)
	for _, site := range web.Sites {
		for _, path := range site.Paths {
			section := poolSection(path.Pool)
			if _, there := wanted[section]; !there || path.Port != 0 || len(path.Rules) > 0 {
				continue
			}
			p.wants[anyForm(path.Key())] = true
			entries := p.below
			if path.Exact {
				entries = p.exact
			}
			if _, taken := entries[path.Key()]; !taken {
				entries[path.Key()] = entry(section, path, 0, guards.marks(site, path))
			}
		}
	}
	p.rules(web.HTTP, wanted, guards)
	err := w.unknownHosts(ctx, web.Default, p.bad)
	for _, one := range w.maps(p) {
		err = errors.Join(err, writeMap(one.path, one.entries))
	}
	if err != nil {
		return p, fmt.Errorf("keep maps and certificates: %w", err)
	}
	for _, certificate := range web.Certificates {
		l, err := w.keep(ctx, certificate)
		if refused := (refusal{}); errors.As(err, &refused) {
			p.bad[certificate.Name] = refused.Error()
			continue
		}
		if err != nil { // which is no verdict about the certificate: the list stays unchanged
			return p, fmt.Errorf("keep the certificate %s: %w", certificate.Name, err)
		}
		p.certificates = append(p.certificates, l)
	}
	if err := w.list(p.certificates); err != nil {
		return p, fmt.Errorf("keep maps and certificates: %w", err)
	}
	return p, nil
}

func writeMap(path string, entries map[string]string) error {
	var b bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		b.WriteString(key + " " + entries[key] + "\n")
	}
	return replace(path, b.Bytes())
}

// replace writes a file when it is to be another one.
func replace(path string, content []byte) error {
	if present, err := os.ReadFile(path); err == nil && bytes.Equal(present, content) {
		return nil
	}
	return writeAtomically(path, content, 0o600)
}

// refusal is why HAProxy does not take a certificate.
type refusal struct{ error }

// keep writes a certificate's file. HAProxy checks it first: one that it does not take would keep it from starting. The error is a refusal where
// the certificate is the reason.
func (w webFiles) keep(ctx context.Context, c Certificate) (listed, error) {
	hosts := slices.Compact(slices.Sorted(slices.Values(c.Hosts)))
	sum := sha256.Sum256([]byte(strings.Join(hosts, " ") + "\n" + string(c.PEM)))
	l := listed{file: filepath.Join(w.directory, fmt.Sprintf("%.16x.pem", sum)), hosts: hosts}
	if present, err := os.ReadFile(l.file); err == nil && bytes.Equal(present, c.PEM) {
		return l, nil
	}
	return l, w.put(ctx, c.PEM, l.file)
}

// put writes a certificate's file that HAProxy takes. The error is a refusal where the certificate is the reason.
func (w webFiles) put(ctx context.Context, content []byte, path string) error {
	if _, err := tls.X509KeyPair(content, content); err != nil {
		return refusal{err}
	}
	return w.place(ctx, content, path, "frontend candidate\n  bind 127.0.0.1:1 ssl crt %s\n")
}

// list writes the list of certificates, and forgets the others.
func (w webFiles) list(certificates []listed) error {
	lines, kept := []string{w.unknown()}, map[string]bool{w.unknown(): true}
	for _, l := range certificates {
		lines, kept[l.file] = append(lines, l.line()), true
	}
	if err := replace(w.certificateList(), []byte(strings.Join(lines, "\n")+"\n")); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(w.directory, "*.pem"))
	for _, file := range files {
		if !kept[file] {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

// The certificate for hosts without one does not depend on the gateway's clock, which may be wrong when it is made: it began before there was a gateway,
// and has no known end (RFC 5280, 4.1.2.5).
var (
	unknownBegins = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)
	unknownEnds   = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
)

// nameOfUnknown is whose the certificate is that is made here.
const nameOfUnknown = "this-host-has-no-certificate.invalid"

// unknownHosts writes the certificate for hosts without one. Where none is given, or HAProxy rejects it, which bad reports then, it is self-signed. A
// self-signed one that has not begun yet, or has ended, is made anew.
func (w webFiles) unknownHosts(ctx context.Context, given *Certificate, bad map[string]string) error {
	present, _ := os.ReadFile(w.unknown()) // an unreadable one is written anew
	if given != nil {
		if bytes.Equal(present, given.PEM) {
			return nil
		}
		err := w.put(ctx, given.PEM, w.unknown())
		refused := refusal{}
		if !errors.As(err, &refused) {
			return err
		}
		bad[given.Name] = refused.Error()
	}
	pair, err := tls.X509KeyPair(present, present)
	if err == nil && pair.Leaf.Subject.CommonName == nameOfUnknown && !time.Now().Before(pair.Leaf.NotBefore) && time.Now().Before(pair.Leaf.NotAfter) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: nameOfUnknown}, DNSNames: []string{nameOfUnknown}, NotBefore: unknownBegins, NotAfter: unknownEnds,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	content = append(content, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	return writeAtomically(w.unknown(), content, 0o600)
}

// follow updates the maps and certificates of the running HAProxy; changes that are impossible at run time need a reload. It skips entries whose pool does
// not run yet: until then the request keeps its target (see stays).
func (p *Proxy) follow(ctx context.Context, wanted pages, running, listeners map[string]listener, outcome *Outcome) error {
	err := errors.Join(p.admin.certificates(p.file.web, wanted.certificates), p.admin.renewShown(p.file.web, wanted.sites), p.admin.maps(p.file.web, wanted, running, outcome.Waiting))
	if err == nil || outcome.Waiting || !sameLayout(running, listeners) {
		return err
	}
	p.config.Logger.Info("a change that HAProxy is not told at run time needs a reload", "reason", err)
	if err := p.reload(ctx, listeners); err != nil {
		return err
	}
	outcome.Reloaded = true
	return nil
}

// tell logs certificates that cannot be used once, and their recovery once.
func (p *Proxy) tell(bad map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		if p.bad[name] != bad[name] {
			p.config.Logger.Error("a certificate cannot be used; its hosts are served with one that is signed by itself", "secret", name, "error", bad[name])
		}
	}
	for name := range p.bad {
		if bad[name] == "" {
			p.config.Logger.Info("a certificate is no longer refused", "secret", name)
		}
	}
	p.bad = bad
}

// command requests a change; HAProxy's answer begins with a number when it refuses.
func (a *admin) command(text string) (string, error) {
	answer, err := a.client.ExecuteRaw(text)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(answer), refused(answer)
}

// payload limits the size of one message: a command has to fit into one of HAProxy's buffers.
const payload = 8 << 10

// maps updates the maps of the running worker: it first adds new entries, in all of them, and then removes obsolete ones. When a reload is due, or an entry
// waits for one, some obsolete entries stay: the reload removes them.
func (a *admin) maps(files webFiles, wanted pages, running map[string]listener, waiting bool) error {
	type leftover struct{ path, reference, key string }
	var leftovers []leftover
	for _, one := range files.maps(wanted) {
		path, entries := one.path, one.entries
		answer, err := a.command("show map " + path)
		if err != nil {
			continue // it has no listener that looks there
		}
		missing := maps.Clone(entries)
		seen := map[string]bool{}
		for line := range strings.Lines(answer) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				continue
			}
			reference, key, value := "#"+fields[0], fields[1], fields[2]
			want, stays := entries[key]
			if !stays || seen[key] {
				leftovers = append(leftovers, leftover{path, reference, key})
				continue
			}
			seen[key] = true
			delete(missing, key)
			switch runs := wanted.runs(want, running); {
			case want != value && !runs:
				waiting = true
			case want != value:
				if _, err := a.command("set map " + path + " " + reference + " " + want); err != nil {
					return fmt.Errorf("change a path of HAProxy: %w", err)
				}
			}
		}
		var lines strings.Builder
		flush := func() error {
			if lines.Len() == 0 {
				return nil
			}
			_, err := a.command("add map " + path + " <<\n" + lines.String())
			lines.Reset()
			return err
		}
		for _, key := range slices.Sorted(maps.Keys(missing)) {
			if !wanted.runs(missing[key], running) {
				waiting = true
				continue
			}
			if lines.Len()+len(key) > payload {
				if err := flush(); err != nil {
					return fmt.Errorf("add paths to HAProxy: %w", err)
				}
			}
			lines.WriteString(key + " " + missing[key] + "\n")
		}
		if err := flush(); err != nil {
			return fmt.Errorf("add paths to HAProxy: %w", err)
		}
	}
	for _, one := range leftovers {
		if waiting && wanted.stays(files, one.path, one.key) {
			continue
		}
		if _, err := a.command("del map " + one.path + " " + one.reference); err != nil {
			return fmt.Errorf("take a path from HAProxy: %w", err)
		}
	}
	return nil
}

// stays reports whether an obsolete entry is left until the reload that is due: another entry for its requests may wait for that. Removed paths go at once, and
// so do the ones of ports that close or get a check of clients.
func (p pages) stays(files webFiles, path, key string) bool {
	prefix, requests, ruled := strings.Cut(key, "|")
	switch {
	case path == files.splits():
		return true // another entry may lead there
	case path == files.names():
		return false
	case !ruled:
		return p.wants[anyForm(key)]
	}
	port, set, _ := strings.Cut(prefix, ".")
	return p.ports[port] && (p.wants[anyForm(requests)] || set == regexSet)
}

// anyForm is the same text for an exact path and for the paths below it.
func anyForm(key string) string { return strings.TrimRight(key, "/") }

// runs reports whether the target of a value runs.
func (p pages) runs(value string, running map[string]listener) bool {
	section, _, _ := strings.Cut(value, ":")
	for _, one := range p.dealt[section] {
		if _, there := running[one]; !there {
			return false
		}
	}
	for _, prefix := range []string{insidePrefix, openingPrefix} {
		if text, within := strings.CutPrefix(section, prefix); within {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil {
				return false
			}
			section = traffic.Section(uint16(port)) // which has this frontend with it
		}
	}
	_, there := running[section]
	return there || len(p.dealt[section]) > 0
}

// certificates updates the certificates of the running worker. A new one is listed beside the former one of its hosts until that is removed, so that at no
// instant they have none.
func (a *admin) certificates(files webFiles, wanted []listed) error {
	answer, err := a.command("show ssl crt-list " + files.certificateList())
	if err != nil {
		return nil // it has no listener for TLS
	}
	present := map[string]bool{}
	for line := range strings.Lines(answer) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			present[fields[0]] = true
		}
	}
	for _, l := range wanted {
		if present[l.file] {
			delete(present, l.file)
			continue
		}
		if err := a.addCertificate(files, l); err != nil {
			return fmt.Errorf("add the certificate of %s to HAProxy: %w", strings.Join(l.hosts, ", "), err)
		}
	}
	delete(present, files.unknown())
	if err := a.renewUnknown(files); err != nil {
		return fmt.Errorf("change the certificate of hosts that have none: %w", err)
	}
	for _, file := range slices.Sorted(maps.Keys(present)) {
		if _, err := a.command("del ssl crt-list " + files.certificateList() + " " + file); err != nil {
			return fmt.Errorf("take a certificate from HAProxy: %w", err)
		}
		if _, err := a.command("del ssl cert " + file); err != nil {
			return fmt.Errorf("take a certificate from HAProxy: %w", err)
		}
	}
	return nil
}

// renewUnknown has the running worker show the certificate of the file to hosts that have none of their own.
func (a *admin) renewUnknown(files webFiles) error {
	content, err := os.ReadFile(files.unknown())
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(content, content)
	if err != nil {
		return err
	}
	shown, err := a.command("show ssl cert " + files.unknown())
	if err != nil || strings.Contains(shown, fmt.Sprintf("%X", sha1.Sum(pair.Leaf.Raw))) { // HAProxy's identification of certificates for people
		return err
	}
	return a.inTurn(setCertificate(files.unknown(), content)...)
}

// setCertificate are the commands by which a certificate that HAProxy has becomes another one.
func setCertificate(file string, content []byte) []string {
	return []string{
		"set ssl cert " + file + " <<\n" + strings.TrimSpace(strings.ReplaceAll(string(content), "\n\n", "\n")) + "\n",
		"commit ssl cert " + file,
	}
}

func (a *admin) addCertificate(files webFiles, l listed) error {
	content, err := os.ReadFile(l.file)
	if err != nil {
		return err
	}
	list := append([]string{"new ssl cert " + l.file}, setCertificate(l.file, content)...)
	return a.inTurn(append(list, "add ssl crt-list "+files.certificateList()+" <<\n"+l.line()+"\n")...)
}

// inTurn asks for changes of certificates, one after another.
func (a *admin) inTurn(list ...string) error {
	for _, text := range list {
		answer, err := a.command(text)
		if err == nil && strings.Contains(answer, "Can't") {
			err = errors.New(answer)
		}
		if err != nil {
			verb, _, _ := strings.Cut(text, " /")
			return fmt.Errorf("%s: %w", verb, err)
		}
	}
	return nil
}
