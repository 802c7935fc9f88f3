package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/volumes"
)

// ClaimOf is a claim as backups keep it.
func ClaimOf(one kube.Claim) volumes.Claim {
	claim := volumes.Claim{Namespace: one.Namespace, Name: one.Name, Class: one.Class, Reclaim: string(one.Reclaim), Mode: string(one.Mode), FileSystem: one.FileSystem, Zone: one.Zone, MountOptions: one.MountOptions, Volume: one.Handle}
	for _, mode := range one.Modes {
		claim.Modes = append(claim.Modes, string(mode))
	}
	return claim
}

// KubeClaim is a claim of a backup as Kubernetes is to have it.
func KubeClaim(one volumes.Claim) kube.Claim {
	claim := kube.Claim{Namespace: one.Namespace, Name: one.Name, Class: one.Class, Reclaim: corev1.PersistentVolumeReclaimPolicy(one.Reclaim), Mode: corev1.PersistentVolumeMode(one.Mode), FileSystem: one.FileSystem,
		Zone: one.Zone, MountOptions: one.MountOptions}
	for _, mode := range one.Modes {
		claim.Modes = append(claim.Modes, corev1.PersistentVolumeAccessMode(mode))
	}
	return claim
}

// ClaimsOf lists the claims of a cluster with volumes in Cinder.
func ClaimsOf(ctx context.Context, api *rest.Config) (claims []volumes.Claim, err error) {
	list, err := kube.Claims(ctx, api, kube.Cinder)
	for _, one := range list {
		claims = append(claims, ClaimOf(one))
	}
	return claims, err
}

// ClaimNamed reads NAMESPACE/NAME, or a name of the namespace of applications.
func ClaimNamed(name string) (volumes.Claim, error) {
	namespace, rest, found := strings.Cut(name, "/")
	if !found {
		namespace, rest = "default", name
	}
	if namespace == "" || rest == "" || strings.Contains(rest, "/") {
		return volumes.Claim{}, fault.New(fault.Invalid, "%q names no claim: say NAMESPACE/NAME, or NAME in the namespace default", name)
	}
	return volumes.Claim{Namespace: namespace, Name: rest}, nil
}

// PlaceOf is the name of a claim as ClaimNamed reads it.
func PlaceOf(claim corev1.PersistentVolumeClaim) string {
	if claim.Namespace == "" || claim.Namespace == "default" {
		return claim.Name
	}
	return claim.Namespace + "/" + claim.Name
}

// DescribeClaim names a claim with its size and age.
func DescribeClaim(claim corev1.PersistentVolumeClaim) string {
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	// A volume may be larger than its claim asks for; and one that has grown shows its former size until a pod mounts it.
	if now, has := claim.Status.Capacity[corev1.ResourceStorage]; has && now.Cmp(size) > 0 {
		size = now
	}
	return fmt.Sprintf("claim %s (%s, made %s)", PlaceOf(claim), size.String(), claim.CreationTimestamp.UTC().Format("2 January 2006"))
}

// DescribeClaims names claims with their sizes and ages.
func DescribeClaims(claims []corev1.PersistentVolumeClaim) string {
	texts := make([]string, len(claims))
	for i, claim := range claims {
		texts[i] = DescribeClaim(claim)
	}
	return strings.Join(texts, ", ")
}

// NamesOf lists the names of claims.
func NamesOf(claims []corev1.PersistentVolumeClaim) []string {
	names := make([]string, len(claims))
	for i, claim := range claims {
		names[i] = claim.Name
	}
	return names
}

// Some names the first of many.
func Some(names []string) string {
	const most = 10
	if len(names) > most {
		names = append(slices.Clone(names[:most]), fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}
