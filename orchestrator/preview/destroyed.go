package preview

import (
	"cmp"
	"fmt"
	"slices"
)

// ClassCluster is the class of objects whose servers hold data that cannot be made again.
const ClassCluster = "com.mirantis.docker.kubernetes.KubernetesCluster"

// isCluster reports whether an object is a cluster, also of a class that extends the one of clusters: it has the lists of nodes of a cluster.
func (o Object) isCluster() bool {
	minions, _ := o.Fields["minionNodes"].([]any)
	return o.Type == ClassCluster || o.Fields["masterNode"] != nil && len(minions) > 0
}

// DestroyedClusters are the clusters of a model, in the API's form, that another one does not have any more.
func DestroyedClusters(before, after map[string]any) (list []Object) {
	has := Objects(after)
	for id, one := range Objects(before) {
		if _, there := has[id]; !there && one.isCluster() {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b Object) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Destroyed describes the cost of losing a cluster.
func (o Object) Destroyed() string {
	return fmt.Sprintf("cluster %s (%s) is destroyed, with everything that is in it%s", o.Name, o.ID, o.volumes())
}

// volumes describes the fate of a cluster's volumes; "" where its classes make none, and no former class's volumes go.
func (o Object) volumes() string {
	classes, _ := o.Fields["storageClasses"].([]any)
	of := func(backend string) bool {
		return slices.ContainsFunc(classes, func(class any) bool {
			fields, _ := class.(map[string]any)
			return fields["backend"] == backend
		})
	}
	text := ""
	if of("local") {
		text = "; its local volumes go with its servers"
	}
	switch {
	case o.Fields["keepVolumes"] == false:
		return text + "; its volumes in Cinder and shares in Manila, where it has any, are deleted (keepVolumes: false), but for those of classes whose reclaimPolicy is Retain"
	case of("cinder") && of("manila"):
		return text + "; its volumes in Cinder and shares in Manila stay (keepVolumes), and are yours to delete"
	case of("manila"):
		return text + "; its shares in Manila stay (keepVolumes), and are yours to delete"
	case of("cinder"):
		return text + "; its volumes in Cinder stay (keepVolumes), and are yours to delete"
	}
	return text
}
