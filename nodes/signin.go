package nodes

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/signin"
	"github.com/burano/burano/nodes/signin/webhook"
	"github.com/burano/burano/nodes/ssh"
)

// Users sign in at the API server with tokens of issuers. The API server reads the list of issuers again while it runs, so a change of it restarts nothing.
// One master after another gets another list: where the first API server does not take it, the others keep theirs.
//
// With tokens of Keystone the API server asks a program on its master, which asks a Burano server (nodes/signin/webhook).

const (
	vaultSignIn = "sign-in" // signInRecord as JSON
	// issuersPatience is how long an API server may take over issuers: it asks each for its keys, and tries again every ten seconds.
	issuersPatience = 45 * time.Second
	issuersEvery    = time.Second
)

// signInRecord has the known facts about sign-in at the API servers.
type signInRecord struct {
	Issuers []signin.Issuer `json:"issuers,omitempty"` // that all masters took last
	// Keystone is true if users sign in with tokens of Keystone, or masters may have the program for it.
	Keystone bool `json:"keystone,omitempty"`
	// Changing is true from before the first master gets another list until all have it.
	Changing bool `json:"changing,omitempty"`
}

func loadSignIn(ctx context.Context, vault Vault) (record signInRecord, err error) {
	text, found, err := vault.Load(ctx, vaultSignIn)
	if err == nil && found {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return record, fmt.Errorf("read who signs in: %w", err)
	}
	return record, nil
}

func saveSignIn(ctx context.Context, vault Vault, record signInRecord) error {
	text, err := json.Marshal(record)
	if err == nil {
		err = vault.Store(ctx, vaultSignIn, text)
	}
	if err != nil {
		return fmt.Errorf("store who signs in: %w", err)
	}
	return nil
}

// SignIn returns the issuers whose users sign in at the cluster with this vault, and whether users of Keystone do, as its last deployment left it.
func SignIn(ctx context.Context, vault Vault) (issuers []signin.Issuer, keystone bool, err error) {
	record, err := loadSignIn(ctx, vault)
	return record.Issuers, record.Keystone, err
}

// signInSteps let users sign in at the API servers.
type signInSteps struct{ *deployment }

// signInChange is the change of the issuers by a deployment.
type signInChange struct {
	// staged is true if issuers are there, or were: then a master that has a list gets another one by its own step.
	staged bool
	took   []string // the masters that have it
	// ends is true if masters may have the program for tokens of Keystone, and are to have it no more.
	ends  bool
	ended []string // the masters without it
}

// chooseSignIn records that masters are about to get other issuers.
func (d signInSteps) chooseSignIn(ctx context.Context) error {
	record, err := loadSignIn(ctx, d.cluster.config.Vault)
	if err != nil {
		return err
	}
	changed := !slices.EqualFunc(record.Issuers, d.cluster.config.Issuers, signin.Issuer.Same)
	d.signIn.staged = len(d.cluster.config.Issuers) > 0 || changed || record.Changing
	d.signIn.ends = record.Keystone && !d.design.signsIn()
	if (!changed || record.Changing) && (record.Keystone || !d.design.signsIn()) {
		return nil
	}
	record.Changing, record.Keystone = record.Changing || changed, record.Keystone || d.design.signsIn()
	return saveSignIn(ctx, d.cluster.config.Vault, record)
}

func (d signInSteps) steps() []step {
	return []step{
		{name: stepIssuers, on: d.with(Master), skipIf: !d.signIn.staged,
			after: needs(here(stepFiles), ifPlanned(here(stepAPIServes)), at(d.leads(), stepAPIReady)), mutex: mutexAPI, run: d.issuers},
		{name: stepSignIn, on: serving(d.deployment, Master), skipIf: !d.design.signsIn(), after: here(stepBinary), run: d.units(false, kube.SignInUnit)},
		// after its API server asks it no more
		{name: stepSignIn, on: d.with(Master), skipIf: !d.signIn.ends, after: needs(here(stepFiles), ifPlanned(here(stepAPIServes))), run: d.endSignIn},
	}
}

// endSignIn ends the program for tokens of Keystone on a master.
func (d signInSteps) endSignIn(ctx context.Context, node Node) error {
	out, err := d.script(ctx, node, "end "+kube.SignInUnit, endUnitScript, map[string]string{"UNIT": kube.SignInUnit})
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) == "ended" {
		d.report(ctx, node, kube.SignInUnit+" ended")
	}
	return d.keystoneEnded(ctx, node)
}

// keystoneEnded records that a master has the program no more.
func (d signInSteps) keystoneEnded(ctx context.Context, node Node) error {
	return d.noted(ctx, func(record *signInRecord) bool {
		d.signIn.ended = append(d.signIn.ended, node.Name)
		record.Keystone = false
		return len(d.signIn.ended) == len(d.with(Master))
	})
}

// unstaged are missing files of a node without the list of issuers, which a step of its own changes where there is one.
func (d signInSteps) unstaged(found facts, missing []ssh.File) []ssh.File {
	return slices.DeleteFunc(missing, func(file ssh.File) bool {
		return d.signIn.staged && file.Path == kube.AuthenticationFile && found.files[file.Path] != ""
	})
}

// issuers gives a master the list of issuers, and waits until its API server has taken it over.
func (d signInSteps) issuers(ctx context.Context, node Node) error {
	there := d.found(node)
	list := slices.DeleteFunc(there.files(), func(file ssh.File) bool { return file.Path != kube.AuthenticationFile })
	if len(list) != 1 {
		return fmt.Errorf("node %s has no %s", node.Name, kube.AuthenticationFile)
	}
	changed := there.facts.missing(list)
	if err := d.upload(ctx, node, changed...); err != nil {
		return err
	}
	if !d.cluster.config.idle(node) {
		if err := d.taken(ctx, node, list[0]); err != nil {
			return err
		}
	}
	if len(changed) > 0 && there.facts.files[kube.AuthenticationFile] != "" {
		d.report(ctx, node, fmt.Sprintf("its API server took over the list of issuers: %d", len(d.cluster.config.Issuers)))
	}
	return d.issued(ctx, node)
}

// taken waits until the API server of a master uses this list.
func (d signInSteps) taken(ctx context.Context, node Node, list ssh.File) error {
	config, err := d.bootstrapOn(ctx, node)
	if err != nil {
		return err
	}
	var expired *wait.Expired
	err = d.guarded(ctx, node, []string{"kube-apiserver"}, func(ctx context.Context) error {
		return wait.Every(issuersEvery).For(issuersPatience).Until(ctx, func(ctx context.Context) error { return uses(ctx, config, list) })
	})
	if errors.As(err, &expired) && ctx.Err() == nil {
		return fmt.Errorf("the API server of %s does not take over the issuers, and goes on with the former ones. It asks each issuer for URL/.well-known/openid-configuration and for its keys: "+
			"look whether the master reaches it, and whether ca has its authority; then deploy again: %w", node.Name, err)
	}
	return err
}

// uses asks an API server for the digest of its AuthenticationConfiguration; another one is asked for again.
func uses(ctx context.Context, api *rest.Config, list ssh.File) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := kube.Authentication(ctx, api)
	switch {
	case err != nil:
		return wait.Again(err)
	case found == "":
		return wait.Again(errors.New("its metrics do not name its list"))
	case found != fmt.Sprintf("sha256:%x", sha256.Sum256(list.Content)):
		return wait.Again(errors.New("it uses another list"))
	}
	return nil
}

// issued records that a master has the list. After the last one the change has ended.
func (d signInSteps) issued(ctx context.Context, node Node) error {
	return d.noted(ctx, func(record *signInRecord) bool {
		d.signIn.took = append(d.signIn.took, node.Name)
		record.Issuers, record.Changing = d.cluster.config.Issuers, false
		return len(d.signIn.took) == len(d.with(Master))
	})
}

// noted changes the record, where change returns true. Masters change side by side.
func (d signInSteps) noted(ctx context.Context, change func(record *signInRecord) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	record, err := loadSignIn(ctx, d.cluster.config.Vault)
	if err != nil || !change(&record) {
		return err
	}
	return saveSignIn(ctx, d.cluster.config.Vault, record)
}

// SignInLines connects to the programs for tokens of Keystone on the masters that serve, without masters of which has returns true. The caller answers on each
// line (webhook.Answer) until it ends. Masters whose program another server answers have none. The error is of the other masters without a line.
func SignInLines(ctx context.Context, c *Cluster, has func(master string) bool) (lines map[string]net.Conn, err error) {
	lines = map[string]net.Conn{}
	var failures []error
	for _, master := range only(c.config.servingMasters(), func(master Node) bool { return !has(master.Name) }) {
		line, err := signInLine(ctx, c, master)
		switch {
		case err == nil:
			lines[master.Name] = line
		case !errors.Is(err, errHeld):
			failures = append(failures, fmt.Errorf("%s: %w", master.Name, err))
		}
	}
	return lines, errors.Join(failures...)
}

func signInLine(ctx context.Context, c *Cluster, master Node) (net.Conn, error) {
	client, err := c.connect(ctx, master)
	if err != nil {
		return nil, err
	}
	line, err := client.DialContext(ctx, "unix", webhook.Socket)
	if err != nil {
		return nil, err
	}
	if err := greeted(line, webhook.Serves, webhook.Held); err != nil {
		return nil, errors.Join(err, line.Close())
	}
	return line, nil
}
