package kube

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/pki"
)

// A cluster can have a registry of its own: a pod on a volume, behind a Service at an address that nodes know from the beginning.

const (
	// RegistryNamespace and RegistryObject are where the registry's Deployment, Service, claim and Secret are.
	RegistryNamespace = "kube-system"
	RegistryObject    = "burano-registry"
	// RegistryLogin is the Secret for users who push: username, password, host, and the authority of its certificate in ca.crt.
	RegistryLogin = RegistryObject + "-login"
	// RegistryArchive has the registry's image, on nodes whose image has one.
	RegistryArchive = "/opt/burano/images/registry.tar"
	// RegistryPusher may push and pull, RegistryPuller, which nodes are, pull only. While passwords are rotated there is another one of each, so that both are
	// let in.
	RegistryPusher      = "burano"
	RegistryPuller      = "node"
	RegistryOtherPusher = "burano-2"
	RegistryOtherPuller = "node-2"

	// RegistryPort is where its pod listens, and registryMirrorPort where it serves images of Docker Hub.
	RegistryPort       = 5000
	registryMirrorPort = 5001

	registryPair = "registry"
)

//go:embed manifests/registry.yaml
var registryManifests string

//go:embed manifests/registry-config.yaml
var registryConfig []byte

// Registry is the registry that a cluster has of its own.
type Registry struct {
	StorageClass string
	Size         resource.Quantity // of its volume
	CollectAt    string            // HH:MM, UTC: when it removes parts that no image has any more; "" for only when it starts
	UntaggedDays int               // how many days it keeps images that have lost their tags; 0 for always
	Mirror       *bool             // whether it fetches images of Docker Hub for nodes, and keeps them; nil for the choice when it was made
}

// registryOptions are the options of its program that distribution does not have (images/modules/distribution). Programs of older images do not read them.
type registryOptions struct {
	CollectAt    string                 `json:"collectAt,omitempty"`
	UntaggedDays int                    `json:"untaggedDays,omitempty"`
	Archives     string                 `json:"archives"`
	Mirror       *registryMirrorOptions `json:"mirror,omitempty"`
}

type registryMirrorOptions struct {
	Of      string `json:"of"`
	Address string `json:"address"`
	Folder  string `json:"folder"`
	Bytes   int64  `json:"bytes"`
}

// options are the program's options with a mirror of this URL; "" for no mirror.
func (r Registry) options(upstream string) ([]byte, error) {
	options := registryOptions{CollectAt: r.CollectAt, UntaggedDays: r.UntaggedDays, Archives: path.Dir(RegistryArchive)}
	if upstream != "" {
		options.Mirror = &registryMirrorOptions{Of: upstream, Address: fmt.Sprintf(":%d", registryMirrorPort), Folder: "/var/lib/registry/mirror", Bytes: r.Size.Value() / 2}
	}
	return json.Marshal(options)
}

// RegistryName is the registry's in names of images: registry.<cluster>.internal.
func RegistryName(cluster string) string { return "registry." + clusterDomain(cluster) }

// RegistryRef names its Deployment.
func RegistryRef() Ref {
	return Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: RegistryNamespace, Name: RegistryObject}
}

// RegistryObjects are all objects of the registry except its claim, which stays when the registry goes.
func RegistryObjects() []Ref {
	return []Ref{
		RegistryRef(),
		{APIVersion: "v1", Kind: "Service", Namespace: RegistryNamespace, Name: RegistryObject},
		{APIVersion: "v1", Kind: "Secret", Namespace: RegistryNamespace, Name: RegistryObject},
		{APIVersion: "v1", Kind: "Secret", Namespace: RegistryNamespace, Name: RegistryLogin},
	}
}

// RegistryLogins are the users of a cluster's registry.
type RegistryLogins struct {
	User, Password string // of the user who pushes
	Users          []byte // all, in htpasswd's form, which the registry reads again when they change
	First          []byte // the users that it began with; nil: Users
	Others         bool   // it knows that RegistryOtherPuller may only pull
}

// With are these registries and the cluster's own, from which nodes pull as this user.
func (r Registries) With(cluster string, address netip.Addr, user, password string) Registries {
	r.own, r.address = RegistryName(cluster), "https://"+netip.AddrPortFrom(address, 443).String()
	logins := map[string]login{r.own: loginOf(user, password)}
	maps.Copy(logins, r.logins)
	r.logins = logins
	return r
}

// Upstream is the registry of which a cluster's own can be a mirror for the images of Docker Hub: the first mirror that nodes know, or Docker Hub. Clients
// ask for them below a path there, as in /v2/hub; "" for the usual one. It is "" where nodes reach none but through a proxy, which pods cannot, or one
// whose path is of its own.
func (r Registries) Upstream(proxy Proxy) (upstream, below string) {
	if proxy.exists() {
		return "", ""
	}
	if len(r.mirrors) == 0 {
		return dockerHub, ""
	}
	for _, mirror := range r.mirrors {
		u, err := url.Parse(mirror)
		if err == nil && (u.Path == "" || u.Path == "/v2" || strings.HasPrefix(u.Path, "/v2/")) {
			return u.Scheme + "://" + u.Host, u.Path
		}
	}
	return "", ""
}

// Through are these registries, where nodes ask the cluster's own first for images of Docker Hub, and the others when it does not answer.
func (r Registries) Through(address netip.Addr, below string) Registries {
	r.through = "https://" + netip.AddrPortFrom(address, registryMirrorPort).String() + below
	return r
}

// RegistryOrders are the registry's certificates.
func (c Cluster) RegistryOrders() map[string]pki.Order {
	name := RegistryName(c.Name)
	return map[string]pki.Order{registryPair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: name,
		DNS: []string{name, RegistryObject + "." + RegistryNamespace + ".svc"}, IP: []netip.Addr{c.Addressing.Registry()}, Usage: pki.Server}}}
}

// RegistryManifests are the registry's objects but for its claim. It is a mirror of the registry upstream; "" for none.
func (c Cluster) RegistryManifests(registry Registry, pairs map[string]pki.Pair, logins RegistryLogins, upstream string) ([]byte, error) {
	options, err := registry.options(upstream)
	if err != nil {
		return nil, fmt.Errorf("write the registry's options: %w", err)
	}
	pair, config, first := pairs[registryPair], registryConfig, logins.First
	if logins.Others {
		config = bytes.Replace(config, []byte("pullers: ["+RegistryPuller+"]"), []byte("pullers: ["+RegistryPuller+", "+RegistryOtherPuller+"]"), 1)
	}
	if first == nil {
		first = logins.Users
	}
	sum := sha256.New()
	for _, part := range [][]byte{config, options, first, pair.Certificate, pair.Key} {
		fmt.Fprintf(sum, "%d\n%s\n", len(part), part)
	}
	text := base64.StdEncoding.EncodeToString
	return []byte(strings.NewReplacer("ADDRESS", c.Addressing.Registry().String(), "CONFIG", text(config), "OPTIONS", text(options), "USERS", text(logins.Users), "CERTIFICATE", text(pair.Certificate), "KEY", text(pair.Key),
		"USERNAME", text([]byte(logins.User)), "PASSWORD", text([]byte(logins.Password)), "HOST", text([]byte(RegistryName(c.Name))), "AUTHORITY", text(c.Authorities.Kubernetes.Trusted()),
		"DIGEST", fmt.Sprintf("%.8x", sum.Sum(nil))).Replace(registryManifests)), nil
}

// HurryRegistry has the kubelet of the registry's pod look at once at the users that the registry is to know; else it does so within two minutes.
func HurryRegistry(ctx context.Context, config *rest.Config, logins RegistryLogins) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"burano.io/users":"%.8x"}}}`, sha256.Sum256(logins.Users))
	return persist(ctx, func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods(RegistryNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + RegistryObject})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if _, err := client.CoreV1().Pods(RegistryNamespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
}

// AddressHolder is the Service, as namespace/name, that has an address of Services; "" where none has.
func AddressHolder(ctx context.Context, config *rest.Config, address netip.Addr) (holder string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	err = persist(ctx, func(ctx context.Context) error {
		list, err := client.CoreV1().Services("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, one := range list.Items {
			if one.Spec.ClusterIP == address.String() {
				holder = one.Namespace + "/" + one.Name
			}
		}
		return nil
	})
	return holder, err
}

// EnsureRegistryClaim makes the claim of the registry's volume where there is none. An existing claim does not change: different describes the difference.
func EnsureRegistryClaim(ctx context.Context, config *rest.Config, wanted Registry) (different string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	claims := client.CoreV1().PersistentVolumeClaims(RegistryNamespace)
	err = persist(ctx, func(ctx context.Context) error {
		found, err := claims.Get(ctx, RegistryObject, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = claims.Create(ctx, &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: RegistryObject, Namespace: RegistryNamespace},
				Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &wanted.StorageClass, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: wanted.Size}}},
			}, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		class, size := "", found.Spec.Resources.Requests[corev1.ResourceStorage]
		if found.Spec.StorageClassName != nil {
			class = *found.Spec.StorageClassName
		}
		if class != wanted.StorageClass || size.Cmp(wanted.Size) != 0 {
			different = fmt.Sprintf("%s of class %s", size.String(), class)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("claim the registry's volume: %w", err)
	}
	return different, nil
}
