package clusters

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// modelChecks check clusters before anything is changed.
type modelChecks struct{ *Clusters }

// ModelChecksOf returns the checks of a task's clusters.
func ModelChecksOf(c *Clusters) modelChecks { return modelChecks{c} }

// clusterCheck finds mistakes in a cluster. Its error is that of a check that could not be made.
type clusterCheck func(context.Context, *muranopl.Object) ([]error, error)

// Check finds later failures before anything is made.
func (c modelChecks) Check(ctx context.Context, object *muranopl.Object) error {
	var problems []error
	for _, find := range slices.Concat(c.modelChecks(), c.worldChecks()) {
		found, err := find(ctx, object)
		problems = append(problems, found...)
		if err != nil {
			return errors.Join(append(problems, err)...)
		}
	}
	return errors.Join(problems...)
}

// modelChecks need the model, and the notes from when the cluster was made.
func (c modelChecks) modelChecks() []clusterCheck {
	return []clusterCheck{c.unfit, pairsOf(c.Clusters).check}
}

// worldChecks ask the cloud, and some the nodes that are there.
func (c modelChecks) worldChecks() []clusterCheck {
	return []clusterCheck{imageChecksOf(c.Clusters).checkImages, podNetworksOf(c.Clusters).checkConnecting, virtualAddressesOf(c.Clusters).checkVirtual, c.checkStorage, imageChecksOf(c.Clusters).checkRegistry, imageChecksOf(c.Clusters).checkRuntime}
}

// lookPatience is how long a rehearsal waits for the cloud and the nodes of one cluster to answer its checks.
const lookPatience = 15 * time.Second

// Refused returns the faults of the clusters of the model. The deployment reports a cloud or a node that does not answer now.
func (c *Clusters) Refused(ctx context.Context) (refused []preview.Note, err error) {
	for _, object := range c.Objects.Clusters() {
		var problems []error
		for _, find := range ModelChecksOf(c).modelChecks() {
			found, err := find(ctx, object)
			if err != nil {
				return nil, err
			}
			problems = append(problems, found...)
		}
		limited, cancel := context.WithTimeout(ctx, lookPatience)
		for _, find := range ModelChecksOf(c).worldChecks() {
			found, _ := find(limited, object)
			problems = append(problems, found...)
		}
		cancel()
		for _, problem := range problems {
			refused = append(refused, preview.Note{ObjectID: object.ID(), Text: problem.Error()})
		}
	}
	return refused, nil
}

// unfit finds the mistakes of a cluster's model, also against the notes from when it was made.
func (c modelChecks) unfit(ctx context.Context, object *muranopl.Object) (problems []error, err error) {
	seen := map[string]bool{}
	for _, other := range c.Objects.Clusters() {
		members, err := c.Clusters.Members(ctx, other)
		if err != nil {
			return nil, err
		}
		for _, member := range members {
			if member.Leaving {
				continue
			}
			name := member.Instance().Text("name")
			if other == object {
				if made := member.Server.ModelName(); !desired.HostName.MatchString(made) {
					problems = append(problems, fmt.Errorf("%s is no name for a server of a cluster: use lower-case letters, digits and dashes, at most 63", made))
				}
				if seen[name] {
					problems = append(problems, fmt.Errorf("two servers are called %s: give each a name of its own", name))
				}
			}
			seen[name] = true
		}
	}
	wanted := task.Desired(object)
	problems = append(problems, wanted.Mistakes...)
	unconnected, err := podNetworksOf(c.Clusters).checkPodNetwork(ctx, object)
	if err != nil {
		return nil, err
	}
	problems = append(problems, unconnected...)
	if pods, err := c.Clusters.PodNetwork(ctx, object); err == nil {
		_, wrong := wanted.Routers(pods)
		problems = append(problems, wrong...)
		problems = append(problems, wanted.CheckMachines(seen, c.Clusters.Settings.MachineNetworks, pods.Addressing)...)
	}
	return problems, nil
}

// checkStorage finds the reasons why a cluster cannot have its storage classes.
func (c modelChecks) checkStorage(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	wanted := task.Desired(cluster)
	classes := wanted.StorageClasses
	if len(classes) == 0 {
		return nil, nil
	}
	members, err := c.Clusters.Members(ctx, cluster)
	if err != nil {
		return problems, err
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return problems, err
	}
	cinder, manila := wanted.HasStorage(kube.Cinder), wanted.HasStorage(kube.Manila)
	newer := slices.ContainsFunc(classes, kube.StorageClass.Newer)
	if cinder {
		if _, err := project.BlockStorage(); fault.KindOf(err) == fault.NotFound {
			problems = append(problems, fmt.Errorf("storageClasses has the back-end cinder, and %w", err))
		} else if err != nil {
			return problems, err
		}
	}
	if manila {
		if _, err := project.SharedFileSystems(); fault.KindOf(err) == fault.NotFound {
			problems = append(problems, fmt.Errorf("storageClasses has the back-end manila, and %w", err))
		} else if err != nil {
			return problems, err
		}
	}
	err = eachImage(ctx, project, members, func(role nodes.Role) bool { return role != nodes.Gateway }, func(image openstack.NodeImage, of Member) {
		lacks := func(what, property string) {
			problems = append(problems, fmt.Errorf("image %s of node %s does not say that it can serve volumes%s: build a node image with this release and upload it, "+
				"or, where this one is of it, say so (openstack image set --property %s=VERSION %s)", of.Instance().Text("image"), of.Server.ModelName(), what, property, image.ID))
		}
		if image.Storage == "" {
			lacks(", which storageClasses need", openstack.StorageProperty)
		} else if cinder && image.Cinder == "" {
			lacks(" of Cinder, which storageClasses has", openstack.CinderProperty)
		} else if manila && image.NFS == "" {
			lacks(" that are shares of Manila, which storageClasses has", openstack.NFSProperty)
		} else if newer && image.XFS == "" {
			lacks(" of Cinder with the file system xfs, or in the zones of their nodes, which storageClasses asks for", openstack.XFSProperty)
		}
	})
	if err != nil {
		return problems, err
	}
	if len(problems) > 0 {
		return problems, nil
	}
	live, _, err := c.Clusters.Former(ctx, cluster)
	if err != nil {
		return problems, err
	}
	if live == nil {
		missing, err := workloads.MissingTypes(ctx, project, classes)
		return slices.Collect(maps.Values(missing)), err
	}
	defer live.Close()
	lacking, err := live.WithoutStorage(ctx)
	if err == nil && len(lacking) > 0 {
		problems = append(problems, fmt.Errorf("%s: made from an older image, which cannot serve volumes, as storageClasses need: upgrade the cluster to the present image, or replace these "+
			"nodes, before", strings.Join(lacking, ", ")))
	}
	return problems, err
}
