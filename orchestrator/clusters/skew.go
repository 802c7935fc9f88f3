package clusters

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

// NodeVersion is a node's Kubernetes as it is and as it is to be; nil where it is not known.
type NodeVersion struct {
	Name        string
	Role        nodes.Role
	Now, Wanted *version.Version
}

func (n NodeVersion) then() *version.Version {
	if n.Wanted != nil {
		return n.Wanted
	}
	return n.Now
}

// ParseKubernetes reads the form of programs and images, such as v1.36.3; nil of any other text.
func ParseKubernetes(text string) *version.Version {
	parsed, err := version.ParseGeneric(text)
	if err != nil {
		return nil
	}
	return parsed
}

// minorText is 1.36 of v1.36.3.
func minorText(v *version.Version) string { return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) }

// CompareVersions is how many minor versions a is above b; versions with other first numbers are far apart.
func CompareVersions(a, b *version.Version) int {
	const far = 1000
	return (int(a.Major())-int(b.Major()))*far + int(a.Minor()) - int(b.Minor())
}

// Skewed returns the rules that the nodes' new versions break, the masters first.
func Skewed(list []NodeVersion) (broken []string) {
	var lowest, api *version.Version // of the API servers: now, and then
	for _, node := range list {
		if node.Role != nodes.Master {
			continue
		}
		if node.Now != nil && (lowest == nil || CompareVersions(node.Now, lowest) < 0) {
			lowest = node.Now
		}
		if then := node.then(); then != nil && (api == nil || CompareVersions(then, api) < 0) {
			api = then
		}
	}
	add := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(broken, text) {
			broken = append(broken, text)
		}
	}
	for _, node := range list {
		if node.Role != nodes.Master || node.Wanted == nil || lowest == nil {
			continue
		}
		switch distance := CompareVersions(node.Wanted, lowest); {
		case distance > 1:
			add("Kubernetes' control plane goes up one minor version at a time: from %s first to %d.%d, and not at once to %s",
				lowest, lowest.Major(), lowest.Minor()+1, node.Wanted)
		case distance < 0:
			add("Kubernetes does not go back: the API server is %s already, and what it has stored %s may not understand", lowest, node.Wanted)
		}
	}
	for _, node := range list {
		then := node.then()
		if node.Role != nodes.Minion || then == nil || api == nil {
			continue
		}
		switch distance := CompareVersions(then, api); {
		case distance > 0 && node.Wanted != nil:
			add("a kubelet must not be newer than the API server: %s would have %s, and the API server %s; upgrade the cluster as a whole", node.Name, then, api)
		case distance < -nodes.OldestKubelet:
			add("a kubelet must not be more than %d minor versions older than the API server: %s would have %s, and the API server %s", nodes.OldestKubelet, node.Name, then, api)
		}
	}
	return broken
}

// UnknownTo is the problem that a cluster's class does not know a version; "" when it does.
func UnknownTo(cluster *muranopl.Object, v *version.Version) string {
	known := cluster.Texts(propertyVersions)
	if len(known) == 0 || slices.Contains(known, minorText(v)) {
		return ""
	}
	return fmt.Sprintf("this Burano knows Kubernetes %s, and not %s: upgrade Burano first, or use another image", strings.Join(known, " and "), minorText(v))
}

// versionSkew keeps versions of Kubernetes apart by no more than its rules allow.
type versionSkew struct{ *Clusters }

// VersionSkewOf returns the rules about versions of Kubernetes for a task's clusters.
func VersionSkewOf(c *Clusters) versionSkew { return versionSkew{c} }

// raises finds out, once in a task, whether changed images give nodes of a cluster other versions of Kubernetes: then its masters get theirs first. It
// returns the broken rules. Images without a declared version are skipped.
func (c versionSkew) raises(ctx context.Context, cluster *muranopl.Object, images map[string]string) (broken []string, err error) {
	c.Clusters.skewing.Lock()
	defer c.Clusters.skewing.Unlock()
	if checked, done := c.Clusters.skew[cluster.ID()]; done {
		return checked.broken, nil
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	wanted := imageVersions(ctx, project, slices.Collect(maps.Values(images)))
	checked := skewCheck{}
	if len(wanted) > 0 {
		members, err := c.Clusters.Members(ctx, cluster)
		if err != nil {
			return nil, err
		}
		known, err := c.Clusters.Facts(ctx, cluster)
		if err != nil {
			return nil, err
		}
		has := map[string]string{}
		live, _, err := c.Clusters.Former(ctx, cluster)
		if err != nil {
			return nil, err
		}
		if live != nil {
			has = live.Versions(ctx)
			_ = live.Close()
		}
		var list []NodeVersion
		for _, one := range members {
			if one.absent {
				continue
			}
			node := NodeVersion{Name: one.Server.Name(), Role: one.Role, Now: ParseKubernetes(has[one.Server.Name()])}
			// A rule holds for a node that does not answer now, too.
			if kept, there := known.Node(node.Name); there && node.Now == nil {
				if node.Now, err = declaredBy(ctx, project, kept.Server); err != nil {
					return nil, err
				}
			}
			if !one.Leaving {
				node.Wanted = wanted[images[one.Instance().ID()]]
			}
			if node.Role == nodes.Master && node.Now != nil && node.Wanted != nil && node.Now.LessThan(node.Wanted) {
				checked.raised = true
			}
			if node.Wanted != nil {
				if text := UnknownTo(cluster, node.Wanted); text != "" && !slices.Contains(checked.broken, text) {
					checked.broken = append(checked.broken, text)
				}
			}
			list = append(list, node)
		}
		checked.broken = append(checked.broken, Skewed(list)...)
	}
	if c.Clusters.skew == nil {
		c.Clusters.skew = map[string]skewCheck{}
	}
	c.Clusters.skew[cluster.ID()] = checked
	return checked.broken, nil
}

// imageVersions are the declared versions of Kubernetes of images, by the names in the request. A missing image is reported elsewhere.
func imageVersions(ctx context.Context, project *openstack.Project, images []string) map[string]*version.Version {
	slices.Sort(images)
	found := map[string]*version.Version{}
	for _, image := range slices.Compact(images) {
		if one, err := project.Image(ctx, image); err == nil {
			if said := ParseKubernetes(one.Kubernetes); said != nil {
				found[image] = said
			}
		}
	}
	return found
}

// declaredBy is the version of Kubernetes that the image of a server declares; nil where it is not known.
func declaredBy(ctx context.Context, project *openstack.Project, server string) (*version.Version, error) {
	image, err := project.ImageOf(ctx, server)
	if err != nil || image == "" {
		return nil, err
	}
	return imageVersions(ctx, project, []string{image})[image], nil
}

// Admit refuses nodes that join a cluster, before they have servers, if their images have a Kubernetes that does not fit the masters'. The images of the
// masters' servers declare that version.
func (c versionSkew) Admit(ctx context.Context, cluster *muranopl.Object, joining []ActiveNode) error {
	if len(joining) == 0 {
		return nil
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	known, err := c.Clusters.Facts(ctx, cluster)
	if err != nil {
		return err
	}
	var images []string
	for _, node := range joining {
		images = append(images, node.Object.Object("instance").Text("image"))
	}
	wanted := imageVersions(ctx, project, images)
	if len(wanted) == 0 {
		return nil
	}
	var list []NodeVersion
	if known != nil {
		for _, node := range known.Nodes {
			if node.Role != nodes.Master {
				continue
			}
			has, err := declaredBy(ctx, project, node.Server)
			if err != nil {
				return err
			}
			list = append(list, NodeVersion{Name: node.Name, Role: node.Role, Now: has})
		}
	}
	for i, node := range joining {
		if wanted[images[i]] == nil {
			continue
		}
		name, err := NodeNamesOf(c.Clusters).NameOf(ctx, node.Object)
		if err != nil {
			return err
		}
		list = append(list, NodeVersion{Name: name, Role: node.Role, Wanted: wanted[images[i]]})
	}
	if broken := Skewed(list); len(broken) > 0 {
		return fault.New(fault.Conflict, "%s. The images of the nodes decide: give those that join one that fits", strings.Join(broken, "; "))
	}
	return nil
}

// newcomers are the nodes of a cluster that never had a server.
func (c versionSkew) newcomers(ctx context.Context, cluster *muranopl.Object) (list []ActiveNode, err error) {
	known, err := c.Clusters.Facts(ctx, cluster)
	if err != nil {
		return nil, err
	}
	members, err := c.Clusters.Members(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for _, one := range members {
		if _, there := known.Node(one.Server.Name()); !there && !one.Replacing && !one.Leaving {
			list = append(list, ActiveNode{one.object, one.Role})
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
	c.Clusters.skewing.Lock()
	defer c.Clusters.skewing.Unlock()
	return c.Clusters.skew[cluster.ID()].raised
}

// refuseSkew refuses changes of images that break the rules of versions.
func (c *Clusters) refuseSkew(ctx context.Context, changes []*openstack.ServerChange, active []stacks.Server) (refused []*openstack.ServerChange, err error) {
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
		broken, err := VersionSkewOf(c).raises(ctx, cluster, wanted)
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
