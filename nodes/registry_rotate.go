package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/registry-login.sh
var registryLoginScript string

//go:embed scripts/restart-kubelet.sh
var restartKubeletScript string

const (
	stepAcceptLogins = "accept other passwords"
	stepForgetLogins = "forget former passwords"
	stepRefuseLogins = "refuse former passwords"
)

// RotateRegistry gives the cluster's registry other passwords. First it accepts both; then nodes and the Secret for pushing get the new ones; then it
// accepts no others. Images can be pulled all the time. Called again before that is done, it continues.
func (c *Cluster) RotateRegistry(ctx context.Context) error {
	if c.config.Registry == nil {
		return errors.New("the cluster has no registry: set enableRegistry to true, and deploy")
	}
	c.deploying.Lock()
	defer c.deploying.Unlock()
	made, err := c.newDeployment(ctx)
	if err != nil {
		return err
	}
	d := registrySteps{made}
	defer d.etcd.close()
	record := d.registry
	if record.Next == nil {
		next := drawRegistryLogin(!record.Other)
		lines, err := next.lines()
		if err != nil {
			return err
		}
		if record.First == nil {
			record.First = record.Users
		}
		if !record.Others {
			c.config.Report(ctx, "", "the registry starts anew once, because it does not know yet that there may be other passwords; it cannot be asked for some seconds")
			record.Others = true
		}
		record.Next, record.Users = &next, slices.Concat(record.Users, lines)
		if err := d.saveRegistry(ctx, false); err != nil {
			return err
		}
	}
	if !record.Used {
		if err := d.tellRegistry(ctx, stepAcceptLogins, *record.Next, "200"); err != nil {
			return err
		}
		record.Used = true
		if err := d.saveRegistry(ctx, false); err != nil {
			return err
		}
	}
	if err := c.deploy(ctx); err != nil {
		return err
	}
	if err := d.forgetLogins(ctx); err != nil {
		return err
	}
	former := record.registryLogin
	if record.Users, err = record.Next.lines(); err != nil {
		return err
	}
	record.registryLogin, record.Next, record.Used = *record.Next, nil, false
	if err := d.saveRegistry(ctx, false); err != nil {
		return err
	}
	return d.tellRegistry(ctx, stepRefuseLogins, former, "401")
}

// forgetLogins starts the kubelets anew: each remembers for five minutes which logins it has read (k8s.io/kubernetes/pkg/credentialprovider). Containers run on.
func (d registrySteps) forgetLogins(ctx context.Context) error {
	c := d.cluster
	p := &plan.Plan{}
	for _, node := range c.config.staying() {
		if node.RunsPods() {
			c.addStep(p, plan.Step{Name: stepForgetLogins}, node, c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error {
				_, err := c.script(ctx, node.Name, ssh.Script{Name: "restart the kubelet", Body: restartKubeletScript})
				return err
			})
		}
	}
	_, err := c.run(ctx, p)
	return err
}

// tellRegistry has the registry know its users, and waits until it answers so to a login, as nodes have it.
func (d registrySteps) tellRegistry(ctx context.Context, name string, login registryLogin, answer string) error {
	c := d.cluster
	p := &plan.Plan{}
	c.addStep(p, plan.Step{Name: name}, d.lead, c.config.StepPatience, func(ctx context.Context, _ plan.Progress) error {
		config, err := d.bootstrap(ctx)
		if err != nil {
			return err
		}
		if err := d.applyRegistry(ctx, d.lead, config); err != nil {
			return err
		}
		if err := kube.Wait(ctx, config, kube.RegistryRef(), kube.Available); err != nil {
			return fmt.Errorf("the registry does not serve: %w", err)
		}
		if err := kube.HurryRegistry(ctx, config, d.registry.logins()); err != nil {
			return err
		}
		var failures []error
		for _, node := range c.config.staying() {
			if node.Role != Minion {
				continue
			}
			_, err := c.script(ctx, node.Name, ssh.Script{Name: "log in to the registry", Body: registryLoginScript, Env: map[string]string{
				"LOGIN": login.puller() + ":" + login.Pull, "ANSWER": answer, "REGISTRY": kube.RegistryName(c.config.Name), "ADDRESS": c.config.Addressing.Registry().String(), "AUTHORITY": kube.TrustedFile}})
			if err == nil {
				return nil
			}
			failures = append(failures, fmt.Errorf("%s: %w", node.Name, err))
		}
		return errors.Join(failures...)
	})
	_, err := c.run(ctx, p)
	return err
}
