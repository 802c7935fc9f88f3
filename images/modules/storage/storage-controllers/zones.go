package main

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// zoneParameter is the parameter of a class with the one zone of its volumes, which pods of all nodes use.
	zoneParameter = "zone"
	// zonesParameter is that with the zones, with commas between them, of a class whose volumes are in the zones of the nodes that use them.
	zonesParameter = "zones"
)

// zone is the zone of a claim's new volume, whose nodes alone can use it; "" if the class has none. It is the zone of the node which the scheduler has
// chosen. For a claim that does not wait for that, it is one of the class's: the name of the volume decides, so the choice is repeatable.
func (p cinderProvisioner) zone(order controller.ProvisionOptions) (string, error) {
	class := order.StorageClass
	listed := class.Parameters[zonesParameter]
	if listed == "" {
		return "", nil
	}
	allowed := strings.Split(listed, ",")
	if order.SelectedNodeName != "" {
		node, err := p.nodes.Get(order.SelectedNodeName)
		if err != nil {
			return "", fmt.Errorf("look for the zone of node %s: %w", order.SelectedNodeName, err)
		}
		zone := node.Labels[cinderZone]
		if !slices.Contains(allowed, zone) {
			return "", fmt.Errorf("node %s, on which the first pod of the claim is to run, is in zone %q (label %s), and class %s makes volumes in %s", node.Name, zone, cinderZone, class.Name, listed)
		}
		return zone, nil
	}
	// where Kubernetes restricts a class, its terms are alternatives
	if named := zonesOf(class.AllowedTopologies); len(named) > 0 {
		allowed = slices.DeleteFunc(allowed, func(zone string) bool { return !slices.Contains(named, zone) })
	}
	if len(allowed) == 0 {
		return "", fmt.Errorf("class %s makes volumes in %s, and its allowedTopologies have none of these", class.Name, listed)
	}
	chosen := fnv.New32a()
	_, _ = chosen.Write([]byte(order.PVName))
	return allowed[int(chosen.Sum32()%uint32(len(allowed)))], nil
}

// zonesOf are the zones that terms name; none where one of them names no zone, and thus allows all.
func zonesOf(terms []v1.TopologySelectorTerm) (zones []string) {
	for _, term := range terms {
		i := slices.IndexFunc(term.MatchLabelExpressions, func(one v1.TopologySelectorLabelRequirement) bool { return one.Key == cinderZone })
		if i < 0 {
			return nil
		}
		zones = append(zones, term.MatchLabelExpressions[i].Values...)
	}
	return zones
}

// affinity has pods go to nodes to which a volume can be attached: one that is in a zone for its nodes, to these.
func affinity(zone string) *v1.VolumeNodeAffinity {
	where := []v1.NodeSelectorRequirement{{Key: cinderNode, Operator: v1.NodeSelectorOpIn, Values: []string{"true"}}}
	if zone != "" {
		where = append(where, v1.NodeSelectorRequirement{Key: cinderZone, Operator: v1.NodeSelectorOpIn, Values: []string{zone}})
	}
	return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: where}}}}
}
