package nodes

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
)

// Names of the steps of a rotation, stable like the steps of Deploy.
const (
	stepBeginRotation  = "begin rotation"
	stepOfferRoot      = "offer root certificates"
	stepRestartPods    = "restart pods"
	stepRewriteSecrets = "rewrite secrets"
	stepRenewTokens    = "renew tokens"
	stepTokensRead     = "tokens are read again"
	stepForgetTrust    = "forget former authorities"
	stepNextStage      = "next stage of the rotation"
)

const (
	// DefaultTokenGrace is how long programs may go on with the token that they read last: Kubernetes' own libraries read it again each minute.
	DefaultTokenGrace = 75 * time.Second
	// rotationLimit ends steps that change all objects of a kind, of which there may be many.
	rotationLimit = 30 * time.Minute
)

//go:embed scripts/renew-tokens.sh
var renewTokensScript string

// Rotation names the parts of a cluster's trust to replace.
type Rotation struct {
	// Run names this rotation: with the same name it goes on where it was, also in another process, and is not done twice.
	Run   string
	Parts []pki.Part
	// KeepPods leaves pods alone that know a former authority of Kubernetes: the user restarts the pods that ask the API.
	KeepPods bool
}

// rotation exchanges parts of a cluster's trust.
type rotation struct{ *Cluster }

// Rotate exchanges parts of the cluster's trust without a pause. At each stage the cluster is deployed, one node after another where that matters. First
// all nodes accept the new parts, too; then all use them; then none accepts the former ones any more. In between, data that Kubernetes has kept under the
// former parts are renewed. A rotation that is under way is ended first; if it is of these parts, it is this one.
func (c *Cluster) Rotate(ctx context.Context, order Rotation) error {
	c.deploying.Lock()
	defer c.deploying.Unlock()
	for {
		known, err := c.authorities(ctx)
		if err != nil {
			return err
		}
		switch {
		case known.Rotated == order.Run:
			return nil
		case known.Rotation == nil:
			err = rotation{c}.begin(ctx, order)
		case known.Rotation.Run != order.Run && order.within(known.Rotation):
			c.config.Report(ctx, "", "the rotation that began on "+known.Rotation.Began.UTC().Format(time.DateTime)+" UTC goes on")
			err = pki.AdoptRotation(ctx, c.config.Vault, order.Run)
		default:
			err = rotation{c}.stage(ctx, order, *known.Rotation)
		}
		if err != nil {
			return fmt.Errorf("rotate %s of cluster %s: %w", describeParts(order.Parts), c.config.Name, err)
		}
	}
}

// Rotation is the rotation that has begun and not ended; nil for none. Nodes are not asked.
func (c *Cluster) Rotation(ctx context.Context) (*pki.Rotation, error) {
	known, err := c.authorities(ctx)
	if err != nil {
		return nil, err
	}
	return known.Rotation, nil
}

// within is true if a rotation is of all these parts.
func (o Rotation) within(r *pki.Rotation) bool {
	return !slices.ContainsFunc(o.Parts, func(part pki.Part) bool { return !r.Of(part) })
}

func describeParts(parts []pki.Part) string {
	var names []string
	for _, part := range parts {
		names = append(names, string(part))
	}
	return strings.Join(names, ", ")
}

// begin begins with a cluster all of whose nodes are as they should be: one that does not come along would be left behind.
func (c rotation) begin(ctx context.Context, order Rotation) error {
	if err := c.complete(); err != nil {
		return err
	}
	if err := c.deploy(ctx); err != nil {
		return err
	}
	return c.config.Step(ctx, "", stepBeginRotation, func(ctx context.Context) error {
		if err := pki.BeginRotation(ctx, c.config.Vault, order.Run, order.Parts, c.now()); err != nil {
			return err
		}
		others := slices.ContainsFunc(order.Parts, func(part pki.Part) bool { return !slices.Contains(pki.KeyParts(), part) })
		masters := slices.ContainsFunc(c.config.Nodes, func(node Node) bool { return node.Role == Master && node.Name != c.master().Name })
		if others || masters {
			return nil
		}
		// Only the API server works with the keys, and there is one: no other server has to accept them before.
		return pki.AdvanceRotation(ctx, c.config.Vault, pki.AcceptBoth)
	})
}

// complete returns an error where a deployment leaves nodes alone.
func (c *Cluster) complete() error {
	for _, node := range c.config.Nodes {
		if node.Leaving {
			return fmt.Errorf("node %s is being replaced, and what leaves learns nothing new: end that first, with the action replaceNode or a deployment", node.Name)
		}
	}
	return nil
}

// stage has the whole cluster be at the rotation's stage, and then goes on to the next one.
func (c rotation) stage(ctx context.Context, order Rotation, r pki.Rotation) error {
	if err := c.complete(); err != nil {
		return err
	}
	c.config.Report(ctx, "", fmt.Sprintf("rotation of %s: %s", describeParts(r.Parts), map[pki.Stage]string{
		pki.AcceptBoth: "the new ones are accepted, too", pki.UseNew: "the new ones are used", pki.AcceptNew: "the former ones are no longer accepted"}[r.Stage]))
	if err := c.deploy(ctx); err != nil {
		return err
	}
	known, err := c.authorities(ctx)
	if err != nil {
		return err
	}
	p := &plan.Plan{}
	switch r.Stage {
	case pki.AcceptBoth:
		if r.Of(pki.KubernetesAuthority) {
			c.offerRoot(p, known, order.KeepPods)
		}
	case pki.UseNew:
		if r.Of(pki.EncryptionKey) {
			c.addStep(p, plan.Step{Name: stepRewriteSecrets}, c.master(), rotationLimit, func(ctx context.Context, _ plan.Progress) error { return c.rewriteSecrets(ctx, known) })
		}
		if r.Of(pki.ServiceAccountKey) {
			if err := c.renewTokens(p, known); err != nil {
				return err
			}
		}
	case pki.AcceptNew:
		if r.Of(pki.KubernetesAuthority) || r.Of(pki.FrontProxyAuthority) {
			c.addStep(p, plan.Step{Name: stepForgetTrust}, c.master(), c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error {
				api, err := c.bootstrap(ctx)
				if err != nil {
					return err
				}
				return kube.KeepAuthorities(ctx, api, known.Kubernetes.Trusted(), known.FrontProxy.Trusted())
			})
		}
	}
	if records, err := c.run(ctx, p); err != nil {
		return failures(records, err)
	}
	return c.config.Step(ctx, "", stepNextStage, func(ctx context.Context) error { return pki.AdvanceRotation(ctx, c.config.Vault, r.Stage) })
}

// offerRoot has pods know the new authority of Kubernetes before the API server shows a certificate of it.
func (c rotation) offerRoot(p *plan.Plan, known *pki.Cluster, keepPods bool) {
	trusted := known.Kubernetes.Trusted()
	offered := c.addStep(p, plan.Step{Name: stepOfferRoot}, c.master(), c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error {
		api, err := c.bootstrap(ctx)
		if err != nil {
			return err
		}
		return kube.AwaitRoot(ctx, api, trusted)
	})
	if keepPods {
		return
	}
	c.addStep(p, plan.Step{Name: stepRestartPods, After: []string{offered}}, c.master(), rotationLimit, func(ctx context.Context, _ plan.Progress) error {
		api, err := c.bootstrap(ctx)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(trusted)
		count, left, err := kube.RestartKnowing(ctx, api, hex.EncodeToString(sum[:8]))
		if err != nil {
			return fmt.Errorf("%w. Nothing has changed for anybody yet: mend or delete what does not start, and call the action again, or call it with restartPods false", err)
		}
		if count > 0 {
			c.config.Report(ctx, "", fmt.Sprintf("the pods of %d workloads were replaced, and know the new authority of Kubernetes", count))
		}
		if len(left) > 0 {
			c.config.Report(ctx, "", fmt.Sprintf("nobody replaces these pods; restart those of them that ask the Kubernetes API: %s", some(left)))
		}
		return nil
	})
}

// some names the first of a list.
func some(list []string) string {
	const shown = 10
	if len(list) <= shown {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}

// rewriteSecrets makes the API server seal all Secrets under the present key, and checks them in etcd: a Secret under another key would be lost with that
// key.
func (c rotation) rewriteSecrets(ctx context.Context, known *pki.Cluster) error {
	api, err := c.bootstrap(ctx)
	if err != nil {
		return err
	}
	count, err := kube.RewriteSecrets(ctx, api)
	if err != nil {
		return err
	}
	client, err := c.etcdAs(ctx, known, etcd.Root)
	if err != nil {
		return err
	}
	defer client.Close()
	left, err := etcd.SealedOtherwise(ctx, client, etcd.SecretsPrefix, kube.SealedBy(known.EncryptionName))
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%d Secrets are still sealed under a former key, which stays: %s", len(left), some(left))
	}
	c.config.Report(ctx, "", fmt.Sprintf("%d Secrets are sealed under the new key", count))
	return nil
}

// renewTokens has all tokens that pods and Secrets have signed by the key that is used now, and waits until programs have read them.
func (c rotation) renewTokens(p *plan.Plan, known *pki.Cluster) error {
	var former []string
	for _, key := range known.AcceptedServiceAccounts()[1:] {
		id, err := pki.TokenKeyID(key)
		if err != nil {
			return err
		}
		former = append(former, id)
	}
	if len(former) == 0 {
		return errors.New("there is no former key of service accounts")
	}
	renewed := []string{c.addStep(p, plan.Step{Name: stepRenewTokens}, c.master(), rotationLimit, func(ctx context.Context, _ plan.Progress) error {
		api, err := c.bootstrap(ctx)
		if err != nil {
			return err
		}
		secrets, err := kube.RenewTokenSecrets(ctx, api, former)
		if len(secrets) > 0 {
			c.config.Report(ctx, "", "new tokens stand in the Secrets "+some(secrets)+"; who has copied the former ones copies them again")
		}
		return err
	})}
	for _, node := range c.config.Nodes {
		if !node.RunsPods() {
			continue
		}
		renewed = append(renewed, c.addStep(p, plan.Step{Name: stepRenewTokens}, node, c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error {
			out, err := c.script(ctx, node.Name, ssh.Script{Name: "renew tokens", Body: renewTokensScript, Env: map[string]string{"KEYS": strings.Join(former, "\n")}})
			if err != nil {
				return err
			}
			if count := strings.TrimSpace(out); count != "0" {
				c.config.Report(ctx, node.Name, "tokens of pods renewed: "+count)
			}
			return nil
		}))
	}
	c.addStep(p, plan.Step{Name: stepTokensRead, After: renewed}, c.master(), c.config.TokenGrace+time.Minute, func(ctx context.Context, _ plan.Progress) error {
		return wait.Pause(ctx, c.config.TokenGrace)
	})
	return nil
}
