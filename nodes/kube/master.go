package kube

import (
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/netip"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/signin"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// Names of the pairs a master orders.
const (
	apiServerPair  = "apiserver"
	apiEtcdPair    = "apiserver-etcd"
	apiKubeletPair = "apiserver-kubelet"
	frontProxyPair = "front-proxy"
	controllerPair = "controller-manager"
	schedulerPair  = "scheduler"
	publisherPair  = "publisher-kubernetes"
	rootPair       = "root"
	kubeletClient  = "burano:apiserver-kubelet-client" // bound to system:kubelet-api-admin, see manifests/access.yaml
)

// MasterOrders are the certificates of a master. etcdUser is the API server's user of etcd.
func (c Cluster) MasterOrders(node Node, etcdUser string) map[string]pki.Order {
	kubernetes, client := c.Authorities.Kubernetes, func(name string) pki.Request {
		return pki.Request{CommonName: name, Usage: pki.Client}
	}
	addresses := []netip.Addr{node.Address}
	if !c.Addressing.Four() {
		addresses = append(addresses, node.Six)
	}
	if node.Access.IsValid() && node.Access != node.Address {
		addresses = append(addresses, node.Access)
	}
	addresses = append(addresses, c.SharedAddresses...)
	return map[string]pki.Order{
		apiServerPair: {Authority: kubernetes, Request: pki.Request{
			CommonName: "kube-apiserver",
			DNS:        []string{APIServerName(c.Name), node.Name, "localhost", APIServerAlias, "kubernetes.default", "kubernetes.default.svc", c.apiService()},
			IP:         append(addresses, netip.MustParseAddr("127.0.0.1"), c.Addressing.API()),
			Usage:      pki.Server,
		}},
		apiEtcdPair:    {Authority: c.Authorities.Etcd, Request: client(etcdUser)},
		apiKubeletPair: {Authority: kubernetes, Request: client(kubeletClient)},
		frontProxyPair: {Authority: c.Authorities.FrontProxy, Request: client("front-proxy-client")},
		controllerPair: {Authority: kubernetes, Request: client("system:kube-controller-manager")},
		schedulerPair:  {Authority: kubernetes, Request: client("system:kube-scheduler")},
		publisherPair:  {Authority: kubernetes, Request: client(PublisherUser)},
		rootPair:       {Authority: kubernetes, Request: pki.Request{CommonName: RootUser, Organization: []string{AdminsGroup}, Usage: pki.Client}},
	}
}

//go:embed manifests/authentication.yaml
var authentication []byte

//go:embed manifests/audit.yaml
var auditRules []byte

const (
	// AuthenticationFile is the API server's AuthenticationConfiguration.
	AuthenticationFile = configs + "authentication.yaml"
	auditPolicy        = configs + "audit.yaml"
)

// APIServer is the unit of the API server. It talks to etcdURL only, its own node's member: through a list it would
// wait for members that are still joining.
func (c Cluster) APIServer(node Node, etcdURL string, etcdAuthority []byte, pairs map[string]pki.Pair) (systemd.Unit, error) {
	var servicePublic []byte
	for _, key := range c.Authorities.AcceptedServiceAccounts() {
		public, err := pki.PublicKey(key)
		if err != nil {
			return systemd.Unit{}, err
		}
		servicePublic = append(servicePublic, public...)
	}
	files := []ssh.File{
		c.authorityFile(),
		{Path: c.EtcdAuthorityFile, Content: etcdAuthority},
		{Path: keys + "front-proxy-ca.crt", Content: c.Authorities.FrontProxy.Trusted()},
		{Path: keys + "service-account.pub", Content: servicePublic},
		{Path: keys + "service-account.key", Content: c.Authorities.ServiceAccount, Mode: 0o600},
		{Path: configs + "encryption.yaml", Content: encryption(c.Authorities), Mode: 0o600},
		{Path: AuthenticationFile, Content: authentication},
	}
	var live []ssh.File
	if len(c.Issuers) > 0 { // the API server reads the file again by itself, so that its issuers are no reason to restart it
		content, err := signin.Configuration(authentication, c.Issuers)
		if err != nil {
			return systemd.Unit{}, err
		}
		live = append(live, ssh.File{Path: AuthenticationFile, Content: content})
	}
	if c.Host.Machine {
		files = append(files, ssh.File{Path: auditPolicy, Content: auditRules})
	}
	for _, name := range []string{apiServerPair, apiEtcdPair, apiKubeletPair, frontProxyPair} {
		files = append(files, pairFiles(name, pairs[name])...)
	}
	webhookFlags, webhookFiles := signInWebhook(c, pairs)
	files = append(files, webhookFiles...)
	return systemd.Unit{
		Name:        "kube-apiserver",
		Description: "Kubernetes API server",
		// A server that stops ends its API server first, which sends its clients to others. Then it ends its member of etcd, which the API server needs.
		After: "etcd.service",
		Command: append(program("kube-apiserver",
			"--advertise-address="+c.Primary(node).String(),
			"--bind-address="+c.everywhere(), // of IPv6 it is both
			fmt.Sprintf("--secure-port=%d", APIServerPort),
			"--etcd-servers="+etcdURL,
			"--etcd-cafile="+c.EtcdAuthorityFile,
			"--etcd-certfile="+keys+apiEtcdPair+".crt",
			"--etcd-keyfile="+keys+apiEtcdPair+".key",
			"--tls-cert-file="+keys+apiServerPair+".crt",
			"--tls-private-key-file="+keys+apiServerPair+".key",
			"--client-ca-file="+keys+"kubernetes-ca.crt",
			"--authentication-config="+AuthenticationFile,
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--encryption-provider-config="+configs+"encryption.yaml",
			"--kubelet-client-certificate="+keys+apiKubeletPair+".crt",
			"--kubelet-client-key="+keys+apiKubeletPair+".key",
			"--kubelet-certificate-authority="+keys+"kubernetes-ca.crt",
			"--kubelet-preferred-address-types=InternalIP,Hostname",
			"--service-account-issuer=https://"+c.apiService(),
			"--service-account-key-file="+keys+"service-account.pub",
			"--service-account-signing-key-file="+keys+"service-account.key",
			"--service-cluster-ip-range="+network.Text(c.Addressing.ServiceRanges()),
			"--requestheader-client-ca-file="+keys+"front-proxy-ca.crt",
			"--requestheader-allowed-names=front-proxy-client",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			"--proxy-client-cert-file="+keys+frontProxyPair+".crt",
			"--proxy-client-key-file="+keys+frontProxyPair+".key",
			// A master has routes to pods, but nothing there serves the addresses of Services: webhooks and extension API servers are called at their
			// pods' addresses.
			"--enable-aggregator-routing=true",
			"--allow-privileged=true",
			"--profiling=false",
			// One that stops takes no connections any more, and otherwise waits for watches, which do not end by themselves, until it is killed.
			"--shutdown-watch-termination-grace-period=1s",
		), append(c.Host.audit(), webhookFlags...)...),
		Service: []string{fmt.Sprintf("LimitNOFILE=%d", c.Host.openFiles())},
		Files:   files,
		Live:    live,
	}, nil
}

// Authentication returns the digest of the AuthenticationConfiguration that an API server uses, as "sha256:" and hexadecimal digits; "" if its metrics do not
// have it: https://kubernetes.io/docs/reference/instrumentation/metrics/.
func Authentication(ctx context.Context, config *rest.Config) (string, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make a client of the API server: %w", err)
	}
	samples, err := gauge(ctx, client.RESTClient(), "apiserver_authentication_config_controller_last_config_info")
	if err != nil || len(samples) == 0 {
		return "", err
	}
	return samples[0].labels["hash"], nil
}

// encryption is the API server's EncryptionConfiguration.
func encryption(of *pki.Cluster) []byte {
	// A key opens values that begin with its name. Keys of other clusters may have the same name: each is tried.
	others := ""
	for _, key := range of.AcceptedEncryption() {
		others += "  - secretbox:\n      keys:\n"
		for _, name := range pki.NamesOfEncryptionKey(key) {
			others += fmt.Sprintf("      - {name: %s, secret: %s}\n", name, base64.StdEncoding.EncodeToString(key))
		}
	}
	return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
      - {name: %s, secret: %s}
%s  - identity: {}
`, of.EncryptionName, base64.StdEncoding.EncodeToString(of.Encryption), others)
}

const (
	// SignInUnit is the unit of a master's program that answers whose a token of Keystone is.
	SignInUnit = "burano-sign-in"

	signInAddress    = "127.0.0.1:10261"
	signInPair       = "sign-in"           // of the program
	signInClientPair = "apiserver-sign-in" // of the API server
	signInClient     = "burano:apiserver-sign-in"
	signInConfig     = configs + "sign-in.yaml"
	// signInRemembers is how long an API server does not ask for a token again. Burano's server remembers tokens for half a minute more.
	signInRemembers = "15s"
)

// SignInOrders are the certificates of that program and of its only client.
func SignInOrders(c Cluster) map[string]pki.Order {
	return map[string]pki.Order{
		signInPair:       {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: SignInUnit, IP: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Usage: pki.Server}},
		signInClientPair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: signInClient, Usage: pki.Client}},
	}
}

// SignIn is the unit of that program, which is a part of Burano's. program and digest are that one's.
func SignIn(c Cluster, pairs map[string]pki.Pair, program, digest string) systemd.Unit {
	return systemd.Unit{
		Name:        SignInUnit,
		Description: "Burano: users sign in with tokens of Keystone",
		Command: []string{program, "authenticate", "--listen", signInAddress, "--cert", keys + signInPair + ".crt", "--key", keys + signInPair + ".key",
			"--client-ca", TrustedFile, "--client", signInClient},
		Files:  append(pairFiles(signInPair, pairs[signInPair]), c.authorityFile()),
		Binary: digest,
	}
}

// signInWebhook are the flags and files by which an API server asks that program; none where users do not sign in with tokens of Keystone.
func signInWebhook(c Cluster, pairs map[string]pki.Pair) (flags []string, files []ssh.File) {
	if !c.SignIn {
		return nil, nil
	}
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: sign-in
contexts:
- {name: sign-in, context: {cluster: sign-in, user: apiserver}}
clusters:
- {name: sign-in, cluster: {server: "https://%s/", certificate-authority: %s}}
users:
- {name: apiserver, user: {client-certificate: %s, client-key: %s}}
`, signInAddress, TrustedFile, keys+signInClientPair+".crt", keys+signInClientPair+".key")
	return []string{"--authentication-token-webhook-config-file=" + signInConfig, "--authentication-token-webhook-version=v1", "--authentication-token-webhook-cache-ttl=" + signInRemembers},
		append(pairFiles(signInClientPair, pairs[signInClientPair]), ssh.File{Path: signInConfig, Content: []byte(config)})
}

// Controllers are the units of the controller-manager and the scheduler. elect is for more masters than one.
//
// The controller-manager's client limits are high: with its own ones a new cluster's default ServiceAccount, and with it
// the first pod, comes five seconds later.
func (c Cluster) Controllers(pairs map[string]pki.Pair, elect bool) ([]systemd.Unit, error) {
	manager, err := c.kubeconfigFile("controller-manager", "system:kube-controller-manager", pairs[controllerPair])
	if err != nil {
		return nil, err
	}
	scheduler, err := c.kubeconfigFile("scheduler", "system:kube-scheduler", pairs[schedulerPair])
	if err != nil {
		return nil, err
	}
	return []systemd.Unit{
		{
			Name:        "kube-controller-manager",
			Description: "Kubernetes controllers",
			Command: program("kube-controller-manager",
				"--kubeconfig="+manager.Path,
				"--authentication-kubeconfig="+manager.Path,
				"--authorization-kubeconfig="+manager.Path,
				"--bind-address=127.0.0.1",
				fmt.Sprintf("--leader-elect=%t", elect),
				"--allocate-node-cidrs=false",
				"--service-cluster-ip-range="+network.Text(c.Addressing.ServiceRanges()),
				"--cluster-signing-cert-file="+keys+"kubernetes-signer.crt", // one certificate, whichever authorities the nodes trust
				"--cluster-signing-key-file="+keys+"kubernetes-ca.key",
				"--root-ca-file="+keys+"kubernetes-ca.crt",
				"--service-account-private-key-file="+keys+"service-account.key",
				"--use-service-account-credentials=true",
				"--requestheader-client-ca-file="+keys+"front-proxy-ca.crt",
				"--kube-api-qps=500",
				"--kube-api-burst=1000",
				"--profiling=false",
			),
			Files: []ssh.File{
				manager,
				c.authorityFile(),
				{Path: keys + "kubernetes-signer.crt", Content: c.Authorities.Kubernetes.Certificate},
				{Path: keys + "kubernetes-ca.key", Content: c.Authorities.KubernetesKey, Mode: 0o600},
				{Path: keys + "service-account.key", Content: c.Authorities.ServiceAccount, Mode: 0o600},
				{Path: keys + "front-proxy-ca.crt", Content: c.Authorities.FrontProxy.Trusted()},
			},
		},
		{
			Name:        "kube-scheduler",
			Description: "Kubernetes scheduler",
			Command: program("kube-scheduler",
				"--kubeconfig="+scheduler.Path,
				"--authentication-kubeconfig="+scheduler.Path,
				"--authorization-kubeconfig="+scheduler.Path,
				"--bind-address=127.0.0.1",
				fmt.Sprintf("--leader-elect=%t", elect),
				"--profiling=false",
			),
			Files: []ssh.File{scheduler},
		},
	}, nil
}

// PublisherConfig is the kubeconfig file of the gateways' publisher.
func (c Cluster) PublisherConfig(pairs map[string]pki.Pair) (ssh.File, error) {
	content, err := c.Kubeconfig(PublisherUser, pairs[publisherPair])
	return ssh.File{Path: PublisherKubeconfig, Content: content, Mode: 0o600}, err
}

const (
	// RootUser is root of a master as Kubernetes knows it.
	RootUser = "burano:root"
	// RootKubeconfig is root's kubeconfig on masters.
	RootKubeconfig = configs + "root.conf"
)

// RootConfig is the kubeconfig file of root on a master. It gives no new rights: the keys of the authority are there, too.
func RootConfig(c Cluster, pairs map[string]pki.Pair) (ssh.File, error) {
	content, err := c.Kubeconfig(RootUser, pairs[rootPair])
	return ssh.File{Path: RootKubeconfig, Content: content, Mode: 0o600}, err
}

// Elected are the programs of masters of which one leads in the cluster. Each has a Lease with its name.
func Elected() []string { return []string{"kube-controller-manager", "kube-scheduler"} }

// LeaseHolder is the node on which the leading one of such programs runs; "" for none.
func LeaseHolder(ctx context.Context, config *rest.Config, program string) (node string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return leaseHolder(ctx, client, program)
}

func leaseHolder(ctx context.Context, client kubernetes.Interface, program string) (node string, err error) {
	lease, err := leaseOf(ctx, client, program)
	if err != nil || lease == nil {
		return "", err
	}
	return holderOf(lease), nil
}

// leaseOf is the lease of such programs; nil where none has led yet.
func leaseOf(ctx context.Context, client kubernetes.Interface, program string) (*coordinationv1.Lease, error) {
	lease, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, program, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the leading %s: %w", program, err)
	}
	return lease, nil
}

// holderOf is the node in the identity of a lease's holder; "" for none.
func holderOf(lease *coordinationv1.Lease) (node string) {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	host, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_") // and an id of the process
	host, _, _ = strings.Cut(host, ".")
	return host
}

// ReleaseLease has another one of such programs lead at once in place of the one on a node, which has ended. Else the others wait until its lease ends.
func ReleaseLease(ctx context.Context, config *rest.Config, program, node string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return releaseLease(ctx, client, program, node)
}

func releaseLease(ctx context.Context, client kubernetes.Interface, program, node string) error {
	lease, err := leaseOf(ctx, client, program)
	if err != nil || lease == nil || holderOf(lease) != node {
		return err
	}
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new(string), new(int32(1))
	_, err = client.CoordinationV1().Leases(metav1.NamespaceSystem).Update(ctx, lease, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsConflict(err) { // another one leads
		return fmt.Errorf("release the lease of %s: %w", program, err)
	}
	return nil
}
