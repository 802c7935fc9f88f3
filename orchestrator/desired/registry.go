package desired

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/burano/burano/nodes/kube"
)

// Registry is the registry of container images that a cluster may run for itself.
type Registry struct {
	// Enabled is nil where the cluster stays as it is. A new one then has a registry if its default storage class allows it.
	Enabled *bool
	kube.Registry
	// Mistakes count in a cluster that has a registry.
	Mistakes []error
}

func (c *Cluster) readRegistry(p properties) {
	r := Registry{Enabled: p.choice("enableRegistry"), Registry: kube.Registry{StorageClass: p.text("registryStorageClass"), CollectAt: p.text("registryCollectAt"),
		UntaggedDays: p.number("registryUntaggedDays", 0), Mirror: p.choice("registryMirror")}}
	mistaken := func(format string, arguments ...any) {
		r.Mistakes = append(r.Mistakes, fmt.Errorf(format, arguments...))
	}
	if upstream, _ := c.Registries.Upstream(c.Proxy); r.Mirror != nil && *r.Mirror && upstream == "" {
		r.Mistakes = append(r.Mistakes, errors.New("registryMirror is true, and the registry, which is a pod, reaches no mirror and not Docker Hub: minions go through a proxy or the masters, "+
			"or each dockerMirror has a path of its own, where /v2 is none. Leave registryMirror out"))
	}
	if _, err := time.Parse("15:04", r.CollectAt); r.CollectAt != "" && err != nil {
		mistaken("registryCollectAt is %q, which is no time of the day: write it like 03:00 (UTC), or null for never but when the registry starts", r.CollectAt)
	}
	size := p.text("registrySize")
	if p.get("registrySize") == nil {
		size = defaultRegistrySize
	}
	var err error
	if r.Size, err = resource.ParseQuantity(size); err != nil || r.Size.Sign() <= 0 {
		mistaken("registrySize is %q, which is no size of a volume: write 20Gi or 500Gi", size)
	}
	var names []string
	for _, class := range c.StorageClasses {
		names = append(names, class.Name)
		if r.StorageClass == "" && class.Default {
			r.StorageClass = class.Name
		}
	}
	switch {
	case len(names) == 0:
		mistaken("enableRegistry is true, and the cluster has no storageClasses, so that nothing would keep what is pushed: give it one, such as " +
			"{name: burano-local, backend: local, default: true}, or set enableRegistry to false")
	case r.StorageClass == "":
		mistaken("enableRegistry is true, and none of the storageClasses is the default: name one in registryStorageClass (%s)", strings.Join(names, ", "))
	case !slices.Contains(names, r.StorageClass):
		mistaken("registryStorageClass is %q, and storageClasses has no such class: name one of %s", r.StorageClass, strings.Join(names, ", "))
	}
	c.Registry = r
}

// FollowsPods reports whether volumes of the default storage class follow pods to other nodes.
func (c *Cluster) FollowsPods() bool {
	return slices.ContainsFunc(c.StorageClasses, func(class kube.StorageClass) bool { return class.Default && class.Backend != kube.Local })
}
