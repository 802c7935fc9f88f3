package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
)

// kept is the duty that checks the servers of environments in Nova for changes that were not made by Burano.
type kept struct {
	Config
	// mark marks the nodes whose servers are off in the Kubernetes of a cluster, and returns the nodes that are marked as out of service.
	mark func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, off []string) (marked []string, err error)
}

func newKept(config Config) kept {
	return kept{config, func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster, off []string) ([]string, error) {
		one, err := config.open(ctx, environment, cluster.ID)
		if err != nil {
			return nil, err
		}
		return one.live.OutOfService(ctx, off)
	}}
}

func (k kept) Name() string { return dutyServers }

func (k kept) Every() time.Duration { return k.Interval }

// keptServer is a server with its known data.
type keptServer struct {
	keeper.Server
	node  nodes.Node // of a cluster; the zero value for none
	state openstack.ServerState
	// others is true if the cluster has other masters, and alone if it has gateways only.
	others, alone bool
}

func (k kept) Look(ctx context.Context, environment *keeper.Environment) (keeper.Result, error) {
	servers, of, err := k.list(ctx, environment)
	if err != nil || len(servers) == 0 {
		return keeper.Result{}, err
	}
	var result keeper.Result
	if result.Findings, err = k.keyless(ctx, environment, servers); err != nil {
		return result, err
	}
	_, err = environment.Project(ctx, "")
	if errors.Is(err, keeper.ErrNoDelegation) {
		result.Findings = append(result.Findings, undelegated(environment))
		marks, _, err := k.outOfService(ctx, environment, nil, nil) // earlier marks are removed all the same
		result.Findings = append(result.Findings, marks...)
		return result, err
	}
	if err != nil {
		return result, err
	}
	lasting := len(result.Findings)
	bad := map[string]int{} // by cluster
	for i := range servers {
		project, err := environment.Project(ctx, servers[i].Region)
		if err != nil {
			return result, err
		}
		if servers[i].state, err = project.Server(ctx, servers[i].ID); err != nil {
			return result, err
		}
		if cluster, ok := of[servers[i].ID]; ok && servers[i].state.Status != openstack.Active && !servers[i].node.Settings.Locked {
			bad[cluster.ID]++
		}
	}
	for _, server := range servers {
		finding, wrong := server.finding(environment)
		if !wrong {
			continue
		}
		if cluster, ok := of[server.ID]; ok {
			all := 0
			for _, other := range of {
				if other.ID == cluster.ID {
					all++
				}
			}
			finding.ObjectID, finding.Subject = cluster.ID, server.node.Name
			if server.state.Down() && !server.node.Settings.Locked {
				finding.Repair, finding.Mends = repairOf(environment, cluster, all, bad[cluster.ID], server.alone, finding)
			}
		}
		result.Findings = append(result.Findings, finding)
	}
	marks, hurried, err := k.outOfService(ctx, environment, servers, of)
	result.Findings = append(result.Findings, marks...)
	if len(result.Findings) > lasting || hurried || slices.Contains(environment.Found, dutyHealth) { // a node that is not well may be off any moment
		result.Next = k.Interval / hurry
	}
	return result, err
}

// outOfService moves the pods of nodes whose servers are off, with their volumes and shares, to other nodes. A cluster without volumes of Cinder and shares of Manila is asked
// only when a server is off, or was so at the last look. One with them is asked always, and it hurries: pods wait for them.
func (k kept) outOfService(ctx context.Context, environment *keeper.Environment, servers []keptServer, of map[string]*desired.Cluster) (findings []keeper.Finding, hurried bool, err error) {
	for _, cluster := range environment.Clusters {
		has, err := nodes.HasStorage(ctx, known.EnvironmentVault{Secrets: k.Secrets, Environment: environment.ID, Cluster: cluster.ID}, kube.Cinder, kube.Manila)
		if err != nil {
			return findings, hurried, err
		}
		var off []string
		for _, server := range servers {
			if in := of[server.ID]; in != nil && in.ID == cluster.ID && server.node.RunsPods() && server.state.Off() {
				off = append(off, server.node.Name)
			}
		}
		if !has && len(off) == 0 && !slices.Contains(environment.Found, dutyServers) {
			continue
		}
		hurried = hurried || has
		marked, err := k.mark(ctx, environment, cluster, off)
		if err != nil {
			k.Logger.DebugContext(ctx, "nodes could not be marked as out of service, or taken back", "environment", environment.ID, "cluster", cluster.Name, "error", err)
		}
		for _, node := range marked {
			findings = append(findings, keeper.Finding{ObjectID: cluster.ID, Kind: "node-out-of-service", Subject: node, Severity: keeper.Warning,
				Text: fmt.Sprintf("Node %s of cluster %s is marked as out of service (%s), because its server was off: its pods are made anew on other nodes, with their volumes and shares",
					node, cluster.Name, corev1.TaintNodeOutOfService),
				Mends: "Burano takes the mark back when its server runs and its kubelet is ready"})
		}
		if err != nil && len(off) > 0 {
			kind, held := "pods-held", "Pods of"
			if has {
				kind, held = "volumes-held", "Volumes and shares that are attached to"
			}
			findings = append(findings, keeper.Finding{ObjectID: cluster.ID, Kind: kind, Severity: keeper.Warning,
				Text: fmt.Sprintf("%s %s of cluster %s, whose servers are off, may be held there for some minutes, because Kubernetes could not be told: %v",
					held, strings.Join(off, ", "), cluster.Name, err),
				Mends: "It is tried again by itself. Bring back a master, if none answers"})
		}
	}
	return findings, hurried, nil
}

// keyless are findings about servers of applications that were made without Burano's key: by Murano, or by a former version. They keep running, and are
// never replaced for that. The stored data of the stacks show it, without any call of the cloud.
func (k kept) keyless(ctx context.Context, environment *keeper.Environment, servers []keptServer) (findings []keeper.Finding, err error) {
	templates := map[string]map[string]any{} // by region
	for _, server := range servers {
		if server.node.Name != "" {
			continue
		}
		template, read := templates[server.Region]
		if !read {
			text, found, err := k.Secrets.Secret(ctx, environment.ID, known.InRegion(known.SecretTemplate, server.Region))
			if err == nil && found {
				err = json.Unmarshal(text, &template)
			}
			if err != nil {
				return nil, fmt.Errorf("read what is kept of the stack: %w", err)
			}
			templates[server.Region] = template
		}
		data, _ := known.UserDataIn(template, server.ObjectID)
		if data == "" || access.Marked(data) || access.Foreign(data) {
			continue
		}
		findings = append(findings, keeper.Finding{ObjectID: server.ObjectID, Kind: "server-without-key", Subject: server.Name, Severity: keeper.Info,
			Text: fmt.Sprintf("Server %s (%s) was made without Burano's SSH key, by Murano or a former version: it runs on, and execution plans cannot run on it", server.Name, server.ID),
			Mends: "Nothing, where no plan is to run there. To have it made anew, with an empty disk, delete it in Nova and deploy again; or add another server and move to it " +
				"what runs here"})
	}
	return findings, nil
}

// list are the servers of an environment, and by their ids the clusters of which they are nodes.
func (k kept) list(ctx context.Context, environment *keeper.Environment) (servers []keptServer, of map[string]*desired.Cluster, err error) {
	of = map[string]*desired.Cluster{}
	for _, cluster := range environment.Clusters {
		known, err := known.FactsOf(ctx, known.EnvironmentVault{Secrets: k.Secrets, Environment: environment.ID, Cluster: cluster.ID})
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		masters := 0
		for _, node := range known.Nodes {
			if node.Role == nodes.Master && !node.Leaving {
				masters++
			}
		}
		for _, node := range known.Nodes {
			if node.Server != "" && !node.Leaving {
				of[node.Server] = cluster
				servers = append(servers, keptServer{Server: keeper.Server{Name: node.Name, ID: node.Server}, node: node, others: masters > 1, alone: nodes.Alone(known.Nodes)})
			}
		}
	}
	for _, server := range environment.Servers {
		if _, node := of[server.ID]; !node {
			servers = append(servers, keptServer{Server: server})
		}
	}
	return servers, of, nil
}

// finding is a server's problem.
func (s keptServer) finding(environment *keeper.Environment) (keeper.Finding, bool) {
	finding := keeper.Finding{ObjectID: s.ObjectID, Severity: keeper.Critical}
	what := "Server " + s.Name
	if s.node.Name != "" {
		finding.Severity = keeper.Warning // the others go on
		if s.node.Role == nodes.Master && !s.others {
			finding.Severity = keeper.Critical
		}
	}
	switch {
	case s.state.Status == openstack.Gone:
		finding.Kind, finding.Text = "server-gone", fmt.Sprintf("%s (%s) was deleted: Nova does not know it any more", what, s.ID)
		finding.Mends = environment.DeployAgain("puts a new one in its place", "what ran there is away")
	case s.node.Settings.Locked && s.state.Status != "ERROR":
		return finding, false // its user has locked it, and may do with it as they like
	case s.state.Down():
		finding.Kind, finding.Text = "server-stopped", fmt.Sprintf("%s (%s) is off", what, s.ID)
		finding.Mends = "Start it in Nova"
		if !environment.Failed {
			finding.Mends += ", or deploy the environment again, which does"
		}
	case s.state.Status == "ERROR":
		finding.Kind, finding.Text = "server-failed", fmt.Sprintf("%s (%s) is %s", what, s.ID, s.state)
		finding.Mends = "Mend it in Nova, or delete it there and deploy the environment again for a new one in its place"
	case s.state.Status != openstack.Active && s.state.Task == "":
		finding.Kind, finding.Text = "server-not-active", fmt.Sprintf("%s (%s) is %s", what, s.ID, s.state)
		finding.Mends = "Make it active again in Nova"
	case s.node.Launched != "" && s.state.Launched != "" && s.node.Launched != s.state.Launched:
		finding.Kind, finding.Text = "server-changed", fmt.Sprintf("%s (%s) was set up anew in Nova at %s, so that it may have another image, disk or size than Burano gave it",
			what, s.ID, s.state.Launched)
		finding.Mends = "Deploy environment " + environment.Name + " again, which takes it in as it is"
	default:
		return finding, false
	}
	return finding, true
}

// undelegated is the finding that an environment's servers are not checked.
func undelegated(environment *keeper.Environment) keeper.Finding {
	finding := keeper.Finding{Kind: "no-delegation", Severity: keeper.Info, Text: "Servers that are deleted, stopped or changed behind Burano's back are not noticed: the " +
		"environment has no standing delegation", Mends: "Give it one: burano environment delegation set " + environment.Name + ", or let Burano work in the project with a role of its own: burano project enable"}
	for _, cluster := range environment.Clusters {
		if cluster.AutoRepair {
			finding.Severity = keeper.Warning
			finding.Text = "Cluster " + cluster.Name + " is to be repaired by itself (autoRepair), which is not possible, and servers that are deleted, stopped or " +
				"changed behind Burano's back are not noticed: the environment has no standing delegation"
		}
	}
	return finding
}
