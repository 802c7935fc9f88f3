package nodes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"golang.org/x/crypto/bcrypt"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/kube"
)

// A cluster can have a registry of its own, from which its pods have images that users push. It is a pod on a volume. Nodes know its address, its
// authority and a password of theirs from the files of their container runtime and kubelet.

const (
	stepRegistry  = "registry"
	vaultRegistry = "registry" // registryRecord as JSON

	// registryPatience is how long the registry's pod may take until it serves.
	registryPatience = 2 * time.Minute
)

// registryLogin are the passwords of a registry's users.
type registryLogin struct {
	Push string `json:"push"` // the password of the user who pushes
	Pull string `json:"pull"` // that of nodes
	// Other is true if they are for the other users of these two kinds.
	Other bool `json:"other,omitempty"`
}

// registryRecord has the known facts about a cluster's registry.
type registryRecord struct {
	registryLogin
	Users []byte `json:"users"`           // all users as the registry reads them
	First []byte `json:"first,omitempty"` // the logins with which it began, once they are others
	// Others is true if the registry's configuration names the other puller.
	Others bool `json:"others,omitempty"`
	// Next are passwords that replace the present ones, and are accepted beside them; nil for none. Used is true when nodes and the user who pushes have
	// them.
	Next *registryLogin `json:"next,omitempty"`
	Used bool           `json:"used,omitempty"`
	// Mirrors is true if it mirrors Docker Hub without a setting: former releases made registries that did not.
	Mirrors bool `json:"mirrors,omitempty"`
	// Ended is true if it was removed; the pushed images are still there.
	Ended bool `json:"ended,omitempty"`
}

// registrySteps run the cluster's registry, or end it.
type registrySteps struct{ *deployment }

func (d registrySteps) steps() []step {
	return []step{{name: stepRegistry, on: d.leads(), skipIf: d.registry == nil || d.registry.Ended, after: needs(here(stepAPIReady, stepAccess), ifPlanned(here(stepStorage))),
		soft: []soft{{name: stepNodeReady, nodes: d.with(Minion), limit: d.cluster.config.StepPatience, when: whereConnected}}, run: d.serveRegistry}}
}

// chooseRegistry finds the registry's settings for nodes, and records them before any node gets them. The record is nil where the cluster never had a
// registry.
func (d registrySteps) chooseRegistry(ctx context.Context) error {
	vault, wanted := d.cluster.config.Vault, d.cluster.config.Registry != nil
	record := &registryRecord{}
	text, found, err := vault.Load(ctx, vaultRegistry)
	if err == nil && found {
		err = json.Unmarshal(text, record)
	}
	if err != nil {
		return fmt.Errorf("read what is known of the registry: %w", err)
	}
	if !found && !wanted {
		return nil
	}
	d.registry = record
	if wanted {
		if !found {
			if err := record.make(); err != nil {
				return err
			}
		}
		d.design.cluster.Registries = d.design.cluster.Registries.With(d.design.cluster.Name, d.design.cluster.Addressing.Registry(), record.login().puller(), record.login().Pull)
		if upstream, below := d.registryUpstream(); upstream != "" {
			d.design.cluster.Registries = d.design.cluster.Registries.Through(d.design.cluster.Addressing.Registry(), below)
		}
	}
	if !wanted || found && !record.Ended {
		return nil
	}
	return d.saveRegistry(ctx, false)
}

// registryUpstream is the registry that the cluster's registry mirrors, in the form of kube.Registries; "" for none.
func (d registrySteps) registryUpstream() (upstream, below string) {
	config := d.cluster.config
	mirrors := d.registry.Mirrors
	if config.Registry.Mirror != nil {
		mirrors = *config.Registry.Mirror
	}
	if !mirrors {
		return "", ""
	}
	return config.Registries.Upstream(config.Proxy)
}

// applyRegistry has the cluster have the registry's objects but for its claim.
func (d registrySteps) applyRegistry(ctx context.Context, node Node, config *rest.Config) error {
	// Each deployment asks for the same pair, so that the registry is not begun anew where another master leads.
	pairs, err := d.design.pairs(ctx, d.cluster, d.design.cluster.masters()[0])
	if err != nil {
		return err
	}
	upstream, _ := d.registryUpstream()
	manifests, err := d.design.kube().RegistryManifests(*d.cluster.config.Registry, pairs, d.registry.logins(), upstream)
	if err != nil {
		return err
	}
	return d.apply(ctx, node, config, manifests)
}

func (d registrySteps) saveRegistry(ctx context.Context, ended bool) error {
	d.registry.Ended = ended
	text, err := json.Marshal(d.registry)
	if err == nil {
		err = d.cluster.config.Vault.Store(ctx, vaultRegistry, text)
	}
	if err != nil {
		return fmt.Errorf("note what is known of the registry: %w", err)
	}
	return nil
}

// make draws the passwords.
func (r *registryRecord) make() (err error) {
	r.registryLogin, r.Others, r.Mirrors = drawRegistryLogin(false), true, true
	r.Users, err = r.registryLogin.lines()
	return err
}

func drawRegistryLogin(other bool) registryLogin {
	return registryLogin{Push: rand.Text(), Pull: rand.Text(), Other: other}
}

func (l registryLogin) pusher() string {
	if l.Other {
		return kube.RegistryOtherPusher
	}
	return kube.RegistryPusher
}

func (l registryLogin) puller() string {
	if l.Other {
		return kube.RegistryOtherPuller
	}
	return kube.RegistryPuller
}

// lines are both users as the registry reads them. It is asked with a password each time an image is pulled: they are long, so that their hashes need not be
// slow.
func (l registryLogin) lines() (users []byte, err error) {
	for _, one := range [][2]string{{l.pusher(), l.Push}, {l.puller(), l.Pull}} {
		hash, err := bcrypt.GenerateFromPassword([]byte(one[1]), bcrypt.MinCost)
		if err != nil {
			return nil, fmt.Errorf("make the registry's passwords: %w", err)
		}
		users = append(users, one[0]+":"+string(hash)+"\n"...)
	}
	return users, nil
}

// login is the login of nodes and of the user who pushes.
func (r *registryRecord) login() registryLogin {
	if r.Next != nil && r.Used {
		return *r.Next
	}
	return r.registryLogin
}

func (r *registryRecord) logins() kube.RegistryLogins {
	login := r.login()
	return kube.RegistryLogins{User: login.pusher(), Password: login.Push, Users: r.Users, First: r.First, Others: r.Others}
}

// serveRegistry makes the cluster run its registry, and waits until it serves; or ends it. A registry that served before delays nothing: the deployment
// may repair its node.
func (d registrySteps) serveRegistry(ctx context.Context, lead Node) error {
	config, err := d.bootstrap(ctx)
	if err != nil {
		return err
	}
	wanted := d.cluster.config.Registry
	if wanted == nil {
		for _, ref := range kube.RegistryObjects() {
			if err := kube.Delete(ctx, config, ref); err != nil {
				return err
			}
		}
		d.report(ctx, lead, fmt.Sprintf("the registry ended; what was pushed to it stays in the claim %s/%s, for when there is one again", kube.RegistryNamespace, kube.RegistryObject))
		return d.saveRegistry(ctx, true)
	}
	address := d.design.cluster.Addressing.Registry()
	holder, err := kube.AddressHolder(ctx, config, address)
	if err != nil {
		return err
	}
	own := kube.RegistryNamespace + "/" + kube.RegistryObject
	if holder != "" && holder != own {
		return fmt.Errorf("the Service %s has the address %s, which is that of the cluster's registry: delete this Service and make it anew, which gives it another address, or set enableRegistry to false", holder, address)
	}
	different, err := kube.EnsureRegistryClaim(ctx, config, *wanted)
	if err != nil {
		return err
	}
	if different != "" {
		d.report(ctx, lead, fmt.Sprintf("the registry's volume stays as it was made (%s): registrySize and registryStorageClass count for a new one", different))
	}
	if err := d.applyRegistry(ctx, lead, config); err != nil {
		return err
	}
	if gone, err := d.registryLost(ctx, config, own); err != nil || gone != "" {
		if gone != "" {
			d.report(ctx, lead, fmt.Sprintf("the registry does not serve: what was pushed to it was on the disk of %s, which is no node of the cluster any more. Delete its claim "+
				"(kubectl -n %s delete pvc %s) and deploy again, for an empty one", gone, kube.RegistryNamespace, kube.RegistryObject))
		}
		return err
	}
	name := kube.RegistryName(d.cluster.config.Name)
	if holder == "" && !slices.ContainsFunc(d.cluster.config.StorageClasses, func(class kube.StorageClass) bool {
		return class.Name == wanted.StorageClass && class.Backend == kube.Local
	}) {
		// Cinder is asked for volumes of clusters that are up: nothing to wait for.
		d.report(ctx, lead, fmt.Sprintf("the registry %s serves as soon as Cinder has made its volume; Events of the claim %s say what is in the way", name, own))
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, min(registryPatience, d.cluster.config.StepPatience*3/4))
	defer cancel()
	if err := kube.Wait(waiting, config, kube.RegistryRef(), kube.Available); err != nil && holder == "" {
		return fmt.Errorf("the registry does not serve (see the pod of the Deployment %s; enableRegistry: false does without it): %w", own, err)
	} else if err != nil && ctx.Err() == nil {
		d.report(ctx, lead, fmt.Sprintf("the registry %s does not serve, and images of it cannot be pulled meanwhile: %v", name, err))
	} else if err == nil && holder == "" {
		d.report(ctx, lead, "the registry "+name+" serves")
	}
	return ctx.Err()
}

// registryLost is the node that is gone and had the registry's volume; "" where it is there.
func (d registrySteps) registryLost(ctx context.Context, config *rest.Config, claim string) (node string, err error) {
	volumes, err := kube.Volumes(ctx, config, kube.Local)
	if err != nil {
		return "", err
	}
	for _, volume := range volumes {
		if volume.Claim == claim && !slices.ContainsFunc(d.cluster.config.Nodes, func(node Node) bool { return node.Name == volume.Node }) {
			return volume.Node, nil
		}
	}
	return "", nil
}

// WithoutRegistry are the minions that answer and cannot run a registry that the cluster has not had yet, because the image that they were made from has none.
func (c *Cluster) WithoutRegistry(ctx context.Context) (lacking []string, err error) {
	_, found, err := c.config.Vault.Load(ctx, vaultRegistry)
	if err != nil || found || c.config.Registry == nil {
		return nil, err
	}
	minions := slices.DeleteFunc(c.config.staying(), func(node Node) bool { return node.Role != Minion })
	return c.without(ctx, minions, "the registry", "test -e "+kube.RegistryArchive), nil
}
