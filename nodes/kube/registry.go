package kube

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/pki"
)

// A cluster can have a registry of its own: a pod on a volume, behind a Service at an address that nodes know from the beginning.

const (
	// RegistryNamespace and RegistryObject are where the registry's Deployment, Service, claim and Secret are.
	RegistryNamespace = "kube-system"
	RegistryObject    = "burano-registry"
	// RegistryLogin is the Secret of whoever pushes: username, password, host, and the authority of its certificate in ca.crt.
	RegistryLogin = RegistryObject + "-login"
	// RegistryArchive has the registry's image, on nodes whose image has one.
	RegistryArchive = "/opt/burano/images/registry.tar"
	// RegistryPusher may push and pull, RegistryPuller, which nodes are, pull only.
	RegistryPusher = "burano"
	RegistryPuller = "node"

	// RegistryPort is where its pod listens.
	RegistryPort = 5000

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
}

// RegistryName is the registry's in names of images: registry.<cluster>.internal.
func RegistryName(cluster string) string { return "registry." + clusterDomain(cluster) }

// RegistryRef names its Deployment.
func RegistryRef() Ref {
	return Ref{APIVersion: "apps/v1", Kind: "Deployment", Namespace: RegistryNamespace, Name: RegistryObject}
}

// RegistryObjects are what the registry consists of but for its claim, which stays when it goes.
func RegistryObjects() []Ref {
	return []Ref{
		RegistryRef(),
		{APIVersion: "v1", Kind: "Service", Namespace: RegistryNamespace, Name: RegistryObject},
		{APIVersion: "v1", Kind: "Secret", Namespace: RegistryNamespace, Name: RegistryObject},
		{APIVersion: "v1", Kind: "Secret", Namespace: RegistryNamespace, Name: RegistryLogin},
	}
}

// With are these registries and the cluster's own, from which nodes pull with this password.
func (r Registries) With(cluster string, address netip.Addr, password string) Registries {
	r.own, r.address = RegistryName(cluster), "https://"+netip.AddrPortFrom(address, 443).String()
	logins := map[string]login{r.own: loginOf(RegistryPuller, password)}
	maps.Copy(logins, r.logins)
	r.logins = logins
	return r
}

// RegistryOrders are the registry's certificates.
func (c Cluster) RegistryOrders() map[string]pki.Order {
	name := RegistryName(c.Name)
	return map[string]pki.Order{registryPair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: name,
		DNS: []string{name, RegistryObject + "." + RegistryNamespace + ".svc"}, IP: []netip.Addr{c.Addressing.Registry()}, Usage: pki.Server}}}
}

// RegistryManifests are the registry's objects but for its claim. users is in htpasswd's form; password is RegistryPusher's.
func (c Cluster) RegistryManifests(pairs map[string]pki.Pair, users []byte, password string) []byte {
	pair := pairs[registryPair]
	sum := sha256.New()
	for _, part := range [][]byte{registryConfig, users, pair.Certificate, pair.Key} {
		fmt.Fprintf(sum, "%d\n%s\n", len(part), part)
	}
	text := base64.StdEncoding.EncodeToString
	return []byte(strings.NewReplacer("ADDRESS", c.Addressing.Registry().String(), "CONFIG", text(registryConfig), "USERS", text(users), "CERTIFICATE", text(pair.Certificate), "KEY", text(pair.Key),
		"USERNAME", text([]byte(RegistryPusher)), "PASSWORD", text([]byte(password)), "HOST", text([]byte(RegistryName(c.Name))), "AUTHORITY", text(c.Authorities.Kubernetes.Trusted()),
		"DIGEST", fmt.Sprintf("%.8x", sum.Sum(nil))).Replace(registryManifests))
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

// EnsureRegistryClaim makes the claim of the registry's volume where there is none. One that is there stays as it is: different says how it is not as
// asked for.
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
