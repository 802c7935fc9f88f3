package server

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/burano/burano/web/auth"
	"github.com/burano/burano/web/client"
	"github.com/burano/burano/web/policy"
)

// given are the settings, with the contents of the files that they name.
type given struct {
	options *Options
	logger  *slog.Logger
	metrics *prometheus.Registry

	binary       string // this program, which is copied to nodes
	own          client.Credentials
	rules        *policy.Policy
	classConfigs fs.FS // nil for none
	networks     netip.Prefix
	machines     []netip.Prefix
	proxies      []netip.Prefix
	providers    []auth.Provider
}

// read reads everything that the settings name. It changes nothing.
func (o *Options) read(logger *slog.Logger) (g *given, err error) {
	g = &given{options: o, logger: logger, metrics: o.Registry, rules: policy.New()}
	if g.metrics == nil {
		g.metrics = prometheus.NewRegistry()
	}
	if err := o.tests.profile(); err != nil {
		return nil, err
	}
	if g.binary, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find the program itself, which is copied to the nodes: %w", err)
	}
	if o.policy != "" {
		if err := g.readPolicy(); err != nil {
			return nil, err
		}
	}
	if g.own, err = client.OwnCredentials(o.Cloud); err != nil {
		return nil, err
	}
	if o.configs != "" {
		if _, err := os.ReadDir(o.configs); err != nil {
			return nil, fmt.Errorf("--class-configs: %w", err)
		}
		g.classConfigs = os.DirFS(o.configs)
	}
	if g.networks, err = netip.ParsePrefix(o.Networks); err != nil {
		return nil, fmt.Errorf("--networks: %w", err)
	}
	if g.machines, err = ranges(o.machineNetworks); err != nil {
		return nil, fmt.Errorf("--machine-networks: %w", err)
	}
	if g.proxies, err = auth.ParseProxies(o.proxies); err != nil {
		return nil, fmt.Errorf("--trusted-proxies: %w", err)
	}
	if g.providers, err = auth.ParseProviders(o.websso); err != nil {
		return nil, fmt.Errorf("--websso: %w", err)
	}
	return g, nil
}

func (g *given) readPolicy() error {
	rules, unknown, err := policy.Load(g.options.policy)
	if err != nil {
		return err
	}
	for _, name := range unknown {
		g.logger.Warn("the policy file has a rule that nothing asks for", "rule", name, "file", g.options.policy)
	}
	g.rules = rules
	return nil
}
