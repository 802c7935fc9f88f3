// Command localcloud runs a small OpenStack on this machine, for development, demonstration and tests of Burano: real servers,
// networks and images behind the APIs of Keystone, Glance, Nova, Neutron and Heat on loopback.
package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/test/localcloud"
	"github.com/burano/burano/test/localcloud/keystone"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "localcloud:", err)
		stop()
		os.Exit(1)
	}
}

// options are the flags that every command has.
type options struct {
	state, listen, external, external6, second, prefix string
	zones                                              []string
}

func root() *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "localcloud",
		Short: "A small OpenStack on this machine, for trying and testing Burano",
		Long: "localcloud answers the OpenStack APIs that Burano uses (Keystone v3 with trusts, Glance v2, Nova v2.1, Neutron v2.0, " +
			"Heat v1) on loopback.\nIts servers are real: system containers with systemd and sshd, on real networks of this machine.\n\n" +
			"  localcloud up       starts it in the background and says how to use it\n" +
			"  localcloud down     removes everything that it made, and puts host settings back\n\n" +
			"It needs root. It is for development and tests only: its passwords are known to everyone.",
		Version:       version.Text(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	flags := command.PersistentFlags()
	flags.StringVar(&o.state, "state", "/var/lib/burano-localcloud", "folder of everything the cloud keeps")
	flags.StringVar(&o.listen, "listen", localcloud.DefaultListen, "address and port of all APIs")
	flags.StringVar(&o.external, "external-cidr", localcloud.DefaultExternal, "external network, free on this host; floating IPs are of it")
	flags.StringVar(&o.external6, "external-ipv6", "", "network of IPv6 of the external network, free on this host, such as fd00:88::/64; this host has routes to the networks behind it")
	flags.StringVar(&o.second, "second-region-cidr", "", "gives the cloud a second region, "+keystone.SecondRegion+", with this external network, free on this host")
	flags.StringSliceVar(&o.zones, "zones", nil, "availability zones of Nova and Cinder, the default first; volumes are attached within one (without it: nova)")
	flags.StringVar(&o.prefix, "prefix", "", "beginning of the names of network namespaces and interfaces, to keep two clouds apart")
	_ = flags.MarkHidden("prefix")
	command.AddCommand(upCommand(&o), downCommand(&o), statusCommand(&o), serveCommand(&o))
	return command
}

func (o *options) config() (localcloud.Config, error) {
	external, err := netip.ParsePrefix(o.external)
	if err != nil {
		return localcloud.Config{}, fmt.Errorf("--external-cidr %s: a network such as %s is wanted", o.external, localcloud.DefaultExternal)
	}
	var second, external6 netip.Prefix
	if o.external6 != "" {
		if external6, err = netip.ParsePrefix(o.external6); err != nil {
			return localcloud.Config{}, fmt.Errorf("--external-ipv6 %s: a network such as fd00:88::/64 is wanted", o.external6)
		}
	}
	if o.second != "" {
		if second, err = netip.ParsePrefix(o.second); err != nil {
			return localcloud.Config{}, fmt.Errorf("--second-region-cidr %s: a network such as 10.89.0.0/24 is wanted", o.second)
		}
	}
	state, err := filepath.Abs(o.state)
	if err != nil {
		return localcloud.Config{}, fmt.Errorf("--state %s: %w", o.state, err)
	}
	return localcloud.Config{StateDir: state, Listen: o.listen, ExternalCIDR: external, External6: external6, SecondCIDR: second, Zones: o.zones, Prefix: o.prefix}, nil
}
