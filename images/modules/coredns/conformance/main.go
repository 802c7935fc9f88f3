// Command conformance is CoreDNS with the plugins that a pod of Gateway API's conformance suite wants. It is not in the node image.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/whoami"
)

func main() {
	dnsserver.Directives = []string{"errors", "log", "whoami", "forward"} // in the order of CoreDNS's own plugin.cfg
	coremain.Run()
}
