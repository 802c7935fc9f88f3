package native

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// Kubernetes' rules for versions that work together (https://kubernetes.io/releases/version-skew-policy/): the API servers of a cluster go up one minor
// version at a time and never down, and a kubelet is not newer than any of them, and at most three minor versions older.

// propertyVersions are the minor versions of Kubernetes that a cluster's class knows.
const propertyVersions = "kubernetesVersions"

// nodeVersion is a node's Kubernetes as it is and as it is to be; nil where it is not known.
type nodeVersion struct {
	name        string
	role        nodes.Role
	now, wanted *version.Version
}

func (n nodeVersion) then() *version.Version {
	if n.wanted != nil {
		return n.wanted
	}
	return n.now
}

// parseKubernetes reads the form of programs and images, such as v1.36.3; nil of any other text.
func parseKubernetes(text string) *version.Version {
	parsed, err := version.ParseGeneric(text)
	if err != nil {
		return nil
	}
	return parsed
}

// minorText is 1.36 of v1.36.3.
func minorText(v *version.Version) string { return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) }

// above is how many minor versions a is above b; versions with other first numbers are far apart.
func above(a, b *version.Version) int {
	const far = 1000
	return (int(a.Major())-int(b.Major()))*far + int(a.Minor()) - int(b.Minor())
}

// skewed returns the rules that the nodes' new versions break, the masters first.
func skewed(list []nodeVersion) (broken []string) {
	var lowest, api *version.Version // of the API servers: now, and then
	for _, node := range list {
		if node.role != nodes.Master {
			continue
		}
		if node.now != nil && (lowest == nil || above(node.now, lowest) < 0) {
			lowest = node.now
		}
		if then := node.then(); then != nil && (api == nil || above(then, api) < 0) {
			api = then
		}
	}
	add := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(broken, text) {
			broken = append(broken, text)
		}
	}
	for _, node := range list {
		if node.role != nodes.Master || node.wanted == nil || lowest == nil {
			continue
		}
		switch distance := above(node.wanted, lowest); {
		case distance > 1:
			add("Kubernetes' control plane goes up one minor version at a time: from %s first to %d.%d, and not at once to %s",
				lowest, lowest.Major(), lowest.Minor()+1, node.wanted)
		case distance < 0:
			add("Kubernetes does not go back: the API server is %s already, and what it has stored %s may not understand", lowest, node.wanted)
		}
	}
	for _, node := range list {
		then := node.then()
		if node.role != nodes.Minion || then == nil || api == nil {
			continue
		}
		switch distance := above(then, api); {
		case distance > 0 && node.wanted != nil:
			add("a kubelet must not be newer than the API server: %s would have %s, and the API server %s; upgrade the cluster as a whole", node.name, then, api)
		case distance < -nodes.OldestKubelet:
			add("a kubelet must not be more than %d minor versions older than the API server: %s would have %s, and the API server %s", nodes.OldestKubelet, node.name, then, api)
		}
	}
	return broken
}

// unknownTo is the problem that a cluster's class does not know a version; "" when it does.
func unknownTo(cluster *muranopl.Object, v *version.Version) string {
	known := cluster.Texts(propertyVersions)
	if len(known) == 0 || slices.Contains(known, minorText(v)) {
		return ""
	}
	return fmt.Sprintf("this Burano knows Kubernetes %s, and not %s: upgrade Burano first, or use another image", strings.Join(known, " and "), minorText(v))
}

// versionSkew keeps versions of Kubernetes apart by no more than its rules allow.
type versionSkew struct{ *clusters }

func versionSkewOf(c *clusters) versionSkew { return versionSkew{c} }

// raises finds out, once in a task, whether changed images give nodes of a cluster other versions of Kubernetes: then its masters get theirs first. It
// returns the broken rules. Images without a declared version are skipped.
func (c versionSkew) raises(ctx context.Context, cluster *muranopl.Object, images map[string]string) (broken []string, err error) {
	c.clusters.skewing.Lock()
	defer c.clusters.skewing.Unlock()
	if checked, done := c.clusters.skew[cluster.ID()]; done {
		return checked.broken, nil
	}
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	wanted := imageVersions(ctx, project, slices.Collect(maps.Values(images)))
	checked := skewCheck{}
	if len(wanted) > 0 {
		members, err := c.clusters.members(ctx, cluster)
		if err != nil {
			return nil, err
		}
		has := map[string]string{}
		live, _, err := c.clusters.former(ctx, cluster)
		if err != nil {
			return nil, err
		}
		if live != nil {
			has = live.Versions(ctx)
			_ = live.Close()
		}
		var list []nodeVersion
		for _, one := range members {
			if one.absent {
				continue
			}
			node := nodeVersion{name: one.server.Name(), role: one.role, now: parseKubernetes(has[one.server.Name()])}
			if !one.leaving {
				node.wanted = wanted[images[one.instance().ID()]]
			}
			if node.role == nodes.Master && node.now != nil && node.wanted != nil && node.now.LessThan(node.wanted) {
				checked.raised = true
			}
			if node.wanted != nil {
				if text := unknownTo(cluster, node.wanted); text != "" && !slices.Contains(checked.broken, text) {
					checked.broken = append(checked.broken, text)
				}
			}
			list = append(list, node)
		}
		checked.broken = append(checked.broken, skewed(list)...)
	}
	if c.clusters.skew == nil {
		c.clusters.skew = map[string]skewCheck{}
	}
	c.clusters.skew[cluster.ID()] = checked
	return checked.broken, nil
}

// imageVersions are the declared versions of Kubernetes of images, by the names in the request. A missing image is reported elsewhere.
func imageVersions(ctx context.Context, project *openstack.Project, images []string) map[string]*version.Version {
	slices.Sort(images)
	found := map[string]*version.Version{}
	for _, image := range slices.Compact(images) {
		if one, err := project.Image(ctx, image); err == nil {
			if said := parseKubernetes(one.Kubernetes); said != nil {
				found[image] = said
			}
		}
	}
	return found
}

// admit refuses nodes that join a cluster, before they have servers, if their images have a Kubernetes that does not fit the masters'. The images of the
// masters' servers declare that version.
func (c versionSkew) admit(ctx context.Context, cluster *muranopl.Object, joining []activeNode) error {
	if len(joining) == 0 {
		return nil
	}
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return err
	}
	known, err := c.clusters.facts(ctx, cluster)
	if err != nil {
		return err
	}
	var images []string
	for _, node := range joining {
		images = append(images, node.object.Object("instance").Text("image"))
	}
	wanted := imageVersions(ctx, project, images)
	if len(wanted) == 0 {
		return nil
	}
	var list []nodeVersion
	if known != nil {
		for _, node := range known.Nodes {
			if node.Role != nodes.Master {
				continue
			}
			image, err := project.ImageOf(ctx, node.Server)
			if err != nil {
				return err
			}
			if image != "" {
				list = append(list, nodeVersion{name: node.Name, role: node.Role, now: imageVersions(ctx, project, []string{image})[image]})
			}
		}
	}
	for i, node := range joining {
		if wanted[images[i]] == nil {
			continue
		}
		name, err := nodeNamesOf(c.clusters).nameOf(ctx, node.object)
		if err != nil {
			return err
		}
		list = append(list, nodeVersion{name: name, role: node.role, wanted: wanted[images[i]]})
	}
	if broken := skewed(list); len(broken) > 0 {
		return fault.New(fault.Conflict, "%s. The images of the nodes decide: give those that join one that fits", strings.Join(broken, "; "))
	}
	return nil
}

// newcomers are the nodes of a cluster that never had a server.
func (c versionSkew) newcomers(ctx context.Context, cluster *muranopl.Object) (list []activeNode, err error) {
	known, err := c.clusters.facts(ctx, cluster)
	if err != nil {
		return nil, err
	}
	members, err := c.clusters.members(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for _, one := range members {
		if _, there := known.Node(one.server.Name()); !there && !one.replacing && !one.leaving {
			list = append(list, activeNode{one.object, one.role})
		}
	}
	return list, nil
}

// skewCheck is the result of raises.
type skewCheck struct {
	raised bool
	broken []string
}

// raised is true if the masters of a cluster get a newer Kubernetes, and so go first.
func (c versionSkew) raised(cluster *muranopl.Object) bool {
	c.clusters.skewing.Lock()
	defer c.clusters.skewing.Unlock()
	return c.clusters.skew[cluster.ID()].raised
}

// refuseSkew refuses changes of images that break the rules of versions.
func (c *clusters) refuseSkew(ctx context.Context, changes []*openstack.ServerChange, active []stacks.Server) (refused []*openstack.ServerChange, err error) {
	images := map[*muranopl.Object]map[string]string{} // by cluster and instance
	of := map[string]*muranopl.Object{}                // clusters, by resource
	for _, change := range changes {
		i := slices.IndexFunc(active, func(server stacks.Server) bool { return openstack.ServerResource(server.ID()) == change.Resource })
		if i < 0 || change.Property != "image" {
			continue
		}
		cluster := task.ClusterOf(active[i].Instance)
		if cluster == nil {
			continue
		}
		if images[cluster] == nil {
			images[cluster] = map[string]string{}
		}
		images[cluster][active[i].Instance.ID()] = change.To
		of[change.Resource] = cluster
	}
	for cluster, wanted := range images {
		broken, err := versionSkewOf(c).raises(ctx, cluster, wanted)
		if err != nil {
			return nil, err
		}
		for _, change := range changes {
			if len(broken) > 0 && of[change.Resource] == cluster && change.Property == "image" {
				change.Why = strings.Join(broken, "; ")
				refused = append(refused, change)
			}
		}
	}
	return refused, nil
}
