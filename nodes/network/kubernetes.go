package network

import (
	_ "embed"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
)

// Datastore is where a network keeps its data. It never changes in a cluster.
type Datastore string

// The datastores.
const (
	InEtcd Datastore = "etcd" // under a prefix of its own
	// InKubernetes is in objects of Kubernetes: nodes as annotations of Node objects, which every node must have, and the rest as kinds of its own.
	InKubernetes Datastore = "kubernetes"
)

// CalicoDefinitions is where the node image has the definitions of Calico's kinds.
const CalicoDefinitions = "/opt/burano/manifests/calico.yaml"

const (
	calicoNodePair   = "calico-node"
	calicoKubeconfig = "/etc/kubernetes/calico.conf"

	// Groups that have Calico's rights in Kubernetes: the one of every node, and a further one of masters.
	calicoNodes   = "burano:calico-nodes"
	calicoMasters = "burano:calico-masters"
)

//go:embed manifests/calico-kubernetes.yaml
var calicoKubernetesManifests []byte

// kubernetesOrders are the certificates of a node whose Calico has its store in Kubernetes. Calico is the node's own user there, so that it can change no
// other node (NodeRestriction). It is in groups with the further rights that Calico needs.
func kubernetesOrders(node Node, authorities *pki.Cluster) map[string]pki.Order {
	request := pki.Request{CommonName: nodeUser(node), Organization: []string{"system:nodes", calicoNodes}, Usage: pki.Client}
	if node.Master {
		request.Organization = append(request.Organization, calicoMasters)
	}
	return map[string]pki.Order{calicoNodePair: {Authority: authorities.Kubernetes, Request: request}}
}

func nodeUser(node Node) string { return "system:node:" + node.Name }

// access is how the programs of a node's Calico reach its store: the first environment is for all of them, the second one Felix's own.
func (c Calico) access(node Node, pairs map[string]pki.Pair, access Access) (env, felix []string, files []ssh.File, err error) {
	if c.Datastore == InKubernetes {
		kubeconfig, err := access.Kubeconfig(nodeUser(node), pairs[calicoNodePair])
		if err != nil {
			return nil, nil, nil, err
		}
		return []string{"DATASTORE_TYPE=kubernetes", "KUBECONFIG=" + calicoKubeconfig}, []string{"FELIX_DATASTORETYPE=kubernetes"},
			[]ssh.File{{Path: calicoKubeconfig, Content: kubeconfig, Mode: 0o600}}, nil
	}
	return []string{
			"DATASTORE_TYPE=etcdv3",
			"ETCD_ENDPOINTS=" + access.Endpoint,
			"ETCD_CA_CERT_FILE=" + access.AuthorityFile,
			"ETCD_CERT_FILE=" + calicoCert,
			"ETCD_KEY_FILE=" + calicoKey,
		}, []string{
			"FELIX_DATASTORETYPE=etcdv3",
			"FELIX_ETCDENDPOINTS=" + access.Endpoint,
			"FELIX_ETCDCAFILE=" + access.AuthorityFile,
			"FELIX_ETCDCERTFILE=" + calicoCert,
			"FELIX_ETCDKEYFILE=" + calicoKey,
		}, []ssh.File{
			{Path: access.AuthorityFile, Content: access.Authority},
			{Path: calicoCert, Content: pairs[calicoEtcdPair].Certificate},
			{Path: calicoKey, Content: pairs[calicoEtcdPair].Key, Mode: 0o600},
		}, nil
}
