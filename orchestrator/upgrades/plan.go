package upgrades

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// Plan has the steps and effects of an upgrade.
type Plan struct {
	Image      string        `json:"image"` // id
	ImageName  string        `json:"image_name"`
	From       string        `json:"from"`       // the Kubernetes of the API server, such as v1.35.8; "" where it is not known
	Kubernetes string        `json:"kubernetes"` // to which it would go
	Nodes      []PlannedNode `json:"nodes"`      // that would get other servers, in that order
	Seconds    int           `json:"seconds"`    // about how long it would take
	Measured   bool          `json:"measured"`   // whether that is measured from former nodes, and not assumed
	// Cost is a sentence.
	Cost     string        `json:"means"`
	Problems []PlanProblem `json:"problems"`

	turns []known.UpgradeNode
}

// PlannedNode is a node that would get another server.
type PlannedNode struct {
	Name       string     `json:"name"`
	Role       nodes.Role `json:"role"`
	Kubernetes string     `json:"kubernetes"` // that it has; "" where it is not known
	Image      string     `json:"image"`      // that it has, by name or id
	Seconds    int        `json:"seconds"`
}

// PlanProblem is an obstacle. A grave one cannot be passed over.
type PlanProblem struct {
	Text  string `json:"text"`
	Grave bool   `json:"grave"`
}

// refusal is why an upgrade does not begin.
func (p *Plan) refusal(force bool) error {
	var texts []string
	grave := false
	for _, one := range p.Problems {
		if one.Grave || !force {
			texts = append(texts, one.Text)
			grave = grave || one.Grave
		}
	}
	if len(texts) == 0 {
		return nil
	}
	remedy := "Mend that, and do the same again"
	if !grave {
		remedy += ", or say force to upgrade all the same"
	}
	return fault.New(fault.Conflict, "The cluster is not upgraded to image %s, and nothing was changed: %s. %s", p.ImageName, strings.Join(texts, "; "), remedy)
}

// lines are a plan as text for people.
func (p *Plan) lines() []string {
	about := fmt.Sprintf("about %s", (time.Duration(p.Seconds) * time.Second).Round(time.Second))
	if !p.Measured {
		about += ", by guess"
	}
	return []string{fmt.Sprintf("Upgrade from Kubernetes %s to %s (image %s): %s, %s", cmp.Or(p.From, "(not known)"), cmp.Or(p.Kubernetes, "(not known)"), p.ImageName, p.Cost, about)}
}

// Plans are the plans and the stored progress of upgrades.
type Plans struct{ *clusters.Clusters }

// PlansOf returns the plans of upgrades of clusters.
func PlansOf(c *clusters.Clusters) Plans { return Plans{c} }

// PlanUpgrade finds the steps of an upgrade to an image, and its obstacles.
func (c Plans) PlanUpgrade(ctx context.Context, object *muranopl.Object, image openstack.NodeImage) (*Plan, error) {
	plan := &Plan{Image: image.ID, ImageName: image.Name, Kubernetes: image.Kubernetes, Nodes: []PlannedNode{}, Problems: []PlanProblem{}}
	live, facts, err := c.Former(ctx, object)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return nil, fault.New(fault.Invalid, "Cluster %s was never up: deploy it first", object.Text("name"))
	}
	defer live.Close()
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	has := live.Versions(ctx)
	list, err := c.Members(ctx, object)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b clusters.Member) int {
		return slices.Index(clusters.UpgradeOrder, a.Role) - slices.Index(clusters.UpgradeOrder, b.Role)
	})
	took, err := c.replacements(ctx, object)
	if err != nil {
		return nil, err
	}
	wanted := clusters.ParseKubernetes(image.Kubernetes)
	plan.Measured = true
	var due []clusters.Member
	var versions []clusters.NodeVersion
	minions := 0
	for _, one := range list {
		if one.Leaving {
			plan.problem(true, "%s is being replaced: deploy the environment, which ends that, first", one.Server.Name())
			continue
		}
		name := one.Server.Name()
		if one.Role == nodes.Minion {
			minions++
		}
		version := clusters.NodeVersion{Name: name, Role: one.Role, Now: clusters.ParseKubernetes(has[name])}
		node, _ := facts.Node(name)
		made, err := project.ImageOf(ctx, node.Server)
		if err != nil {
			return nil, err
		}
		said := one.Instance().Text("image")
		if one.Role == nodes.Master && plan.From == "" {
			plan.From = has[name]
		}
		if made == image.ID && made != "" {
			versions = append(versions, version)
			continue
		}
		version.Wanted = wanted
		versions = append(versions, version)
		former := said
		if made != "" {
			if now, err := project.Image(ctx, said); err != nil || now.ID != made {
				former = made // the name is another image's by now
			}
		}
		seconds, measured := took[one.Role]
		if !measured {
			seconds, plan.Measured = assumedReplacement, false
		}
		due = append(due, one)
		plan.Seconds += seconds
		plan.Nodes = append(plan.Nodes, PlannedNode{Name: name, Role: one.Role, Kubernetes: has[name], Image: former, Seconds: seconds})
		plan.turns = append(plan.turns, known.UpgradeNode{Instance: one.Instance().ID(), Name: name, Role: one.Role, Former: former, State: known.NodeWaits})
	}
	if len(due) == 0 {
		return plan, nil
	}
	external, stay := clusters.ExternalVersions(facts, has)
	versions = append(versions, external...)
	if err := plan.checkVersions(ctx, object, image, versions, live); err != nil {
		return nil, err
	}
	pods, err := c.PodNetwork(ctx, object)
	if err != nil {
		return nil, err
	}
	plan.checkImage(object, image, pods, due)
	why, err := clusters.DifferencesOf(c.Clusters).NoRoom(ctx, object, due[0].Instance())
	if err != nil {
		return nil, err
	}
	if err := c.checkLosses(ctx, plan, live, due); err != nil {
		return nil, err
	}
	if why != "" && minions == 1 {
		plan.problem(true, "the only node that takes pods would go before there is another one, %s: add a node first, or make room for one server more and set surge to 1", why)
	}
	plan.Cost = clusters.DescribeReplacements(due, why) + stay
	return plan, nil
}

func (plan *Plan) problem(grave bool, format string, args ...any) {
	plan.Problems = append(plan.Problems, PlanProblem{fmt.Sprintf(format, args...), grave})
}

// checkVersions adds the obstacles in the versions of Kubernetes.
func (plan *Plan) checkVersions(ctx context.Context, object *muranopl.Object, image openstack.NodeImage, versions []clusters.NodeVersion, live *nodes.Cluster) error {
	wanted := clusters.ParseKubernetes(image.Kubernetes)
	if wanted == nil {
		plan.problem(true, "image %s does not say which Kubernetes it holds, so that the rules for versions cannot be kept: burano image check %s says what to do", image.Name, image.Name)
		return nil
	}
	if text := clusters.UnknownTo(object, wanted); text != "" {
		plan.problem(true, "%s", text)
	}
	for _, text := range clusters.Skewed(versions) {
		plan.problem(true, "%s", text)
	}
	if plan.From == "" {
		plan.problem(true, "the master does not say which Kubernetes it has: repair it first")
	}
	obstacles, err := live.Obstacles(ctx, int(wanted.Minor()))
	if err != nil {
		return err
	}
	for _, one := range obstacles {
		plan.problem(one.Grave, "%s", one.Text)
	}
	return nil
}

// checkImage adds the parts that the image lacks for nodes which get it.
func (plan *Plan) checkImage(object *muranopl.Object, image openstack.NodeImage, pods desired.PodNetwork, due []clusters.Member) {
	takesPods := func(one clusters.Member) bool { return one.Role == nodes.Minion }
	if i := slices.IndexFunc(due, takesPods); i >= 0 && image.Docker == "" && task.Desired(object).Runtime == kube.Docker {
		plan.problem(true, "%v", workloads.NoDocker(image.Name, due[i].Server.Name(), image.ID))
	}
	for _, need := range clusters.ImageNeeds(pods) {
		if i := slices.IndexFunc(due, func(one clusters.Member) bool { return need.Has(one.Role) }); i >= 0 {
			if missing := need.Missing(image, image.Name, due[i].Server.Name()); missing != nil {
				plan.problem(true, "%v", missing)
			}
		}
	}
}

// checkLosses adds the volumes that would be lost with nodes, unless the caller allows it.
func (c Plans) checkLosses(ctx context.Context, plan *Plan, live *nodes.Cluster, due []clusters.Member) error {
	var leaving []string
	for _, one := range due {
		leaving = append(leaving, one.Server.Name())
	}
	volumes, err := live.VolumesLost(ctx, leaving...)
	if err != nil {
		return err
	}
	if len(volumes) > 0 && !clusters.VolumeLossesOf(c.Clusters).MayLose() {
		plan.problem(true, "%v", &nodes.VolumesLost{Volumes: volumes})
	}
	return nil
}

// measured keeps how long the replacement of a node took.
func (c Plans) measured(ctx context.Context, object *muranopl.Object, role nodes.Role, took time.Duration) error {
	all, err := c.replacements(ctx, object)
	if err != nil {
		return err
	}
	all[role] = int(took.Seconds() + 0.5)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return known.Vault{Runtime: c.Runtime, Cluster: object.ID()}.Store(ctx, replacementsName, text)
}

func (c Plans) replacements(ctx context.Context, object *muranopl.Object) (map[nodes.Role]int, error) {
	all := map[nodes.Role]int{}
	text, found, err := known.Vault{Runtime: c.Runtime, Cluster: object.ID()}.Load(ctx, replacementsName)
	if err == nil && found {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}
