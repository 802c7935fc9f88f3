package network

import (
	_ "embed"

	"github.com/burano/burano/nodes/ssh"
)

//go:embed scripts/calico-forget.sh
var calicoForgetScript string

// Forget is part of Driver.
func (c Calico) Forget(node Node, _ Access) ssh.Script {
	return ssh.Script{Name: "forget " + node.Name, Body: calicoForgetScript, Env: map[string]string{"NODE": node.Name, "ENVIRONMENT": daemonEnv}}
}

//go:embed scripts/flannel-forget.sh
var flannelForgetScript string

// Forget is part of Driver.
func (f Flannel) Forget(node Node, access Access) ssh.Script {
	return ssh.Script{Name: "forget " + node.Name, Body: flannelForgetScript, Env: map[string]string{
		"ADDRESS": node.Address.String(), "PREFIX": flannelPrefix + "/subnets/", "ENDPOINT": access.Endpoint,
		"CA": access.AuthorityFile, "CERTIFICATE": flannelCert, "KEY": flannelKey,
	}}
}
