package operations

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
)

// bootReach is how long a node is asked which run of its system it is in, and bootPoll how often.
const (
	bootReach = 15 * time.Second
	bootPoll  = time.Second
)

func seconds(count int64) time.Duration { return time.Duration(count) * time.Second }

// empty moves a node's pods to others, for an action: forced, also where an obstacle keeps them there.
func (c Operations) empty(ctx context.Context, call muranopl.Call, one *namedNode, live *nodes.Cluster) error {
	force, _ := call.Args[argumentForce].(bool)
	patience, _ := call.Args[argumentPatience].(int64)
	if one.RunsPods() {
		limit := seconds(patience)
		if limit == 0 {
			limit = clusters.ConnectionsOf(c.Clusters).DrainPatience()
		}
		otherwise := "if some are left then, nothing is changed"
		if force {
			otherwise = "what is left then is ended"
		}
		c.Reports.Inform(ctx, one.cluster, "%s: its pods have %s to move to other nodes, as disruption budgets allow; %s", one.Name, limit, otherwise)
	}
	err := live.Empty(ctx, one.Name, force)
	var stay *nodes.PodsStay
	if force && errors.As(err, &stay) {
		c.Reports.Warn(ctx, one.cluster, fmt.Sprintf("%s: some of its pods did not move in time, and are ended", one.Name), stay.Err.Error())
		return nil
	}
	return err
}

// lastTaker is true if no other node takes pods.
func (n *namedNode) lastTaker() bool {
	for _, other := range n.known.Nodes {
		if other.Role == nodes.Minion && other.Name != n.Name && !other.Leaving && !other.Settings.Locked && !other.Settings.Cordoned {
			return false
		}
	}
	return n.Role == nodes.Minion
}

const noTaker = "no other node of the cluster takes pods, so that those that run on it end and have nowhere to go"

// reboot is one that has begun.
type reboot struct {
	Task    string `json:"task"`
	Run     string `json:"run"`     // of the node's system before it, "" where it did not answer
	Reached bool   `json:"reached"` // it answered
}

// rebootNode is the action that restarts a node's server once its pods are elsewhere, and takes the node in again.
func (c Operations) rebootNode(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	one, err := c.namedNode(ctx, call, known)
	if err != nil {
		return err
	}
	patience, _ := call.Args[argumentPatience].(int64)
	live, err := c.connectKnown(ctx, one, patience)
	if err != nil {
		return err
	}
	var begun reboot
	if err := c.NodeSettings.Read(ctx, one.instance, clusters.AttributeReboot, &begun); err != nil {
		return err
	}
	if begun.Task != c.Runtime.TaskID() {
		if begun, err = c.beginReboot(ctx, call, one, live); err != nil {
			return err
		}
	}
	err = c.Runtime.Step(ctx, one.cluster, clusters.StepName(one.Name, "reboot"), func(ctx context.Context) error {
		limited, cancel := stacks.Limit(ctx, c.Settings.ServerPatience)
		defer cancel()
		return c.reboot(limited, one, live, begun)
	})
	if err != nil {
		return err
	}
	c.Reports.Inform(ctx, one.cluster, "%s: its server was started anew", one.Name)
	return c.rejoin(ctx, one.cluster, known)
}

// beginReboot makes sure that a node may go for a while, empties it, and notes in which run it was.
func (c Operations) beginReboot(ctx context.Context, call muranopl.Call, one *namedNode, live *nodes.Cluster) (begun reboot, err error) {
	if force, _ := call.Args[argumentForce].(bool); !force {
		costs, err := c.missed(ctx, one, live)
		if err != nil {
			return begun, err
		}
		if len(costs) > 0 {
			return begun, fault.New(fault.Conflict, "%s is not rebooted: %s. Say force to have it rebooted all the same", one.Name, strings.Join(costs, "; "))
		}
	}
	if !one.Settings.Locked { // else it is empty
		if err := c.empty(ctx, call, one, live); err != nil {
			return begun, err
		}
	}
	if one.Role == nodes.Master && otherMaster(ctx, one, live) == nil {
		if err := nodes.Swact(ctx, live, one.Name); err != nil { // it may be dead
			c.Reports.Warn(ctx, one.cluster, fmt.Sprintf("%s: the others take over what it leads when it is gone", one.Name), err.Error())
		}
	}
	begun.Task = c.Runtime.TaskID()
	begun.Run, begun.Reached = bootOf(ctx, live, one.Name)
	return begun, c.NodeSettings.Write(ctx, one.instance, clusters.AttributeReboot, begun)
}

// missed describes the cluster's loss while a node is away.
func (c Operations) missed(ctx context.Context, one *namedNode, live *nodes.Cluster) (costs []string, err error) {
	switch {
	case one.Settings.Locked && one.Role != nodes.Minion: // it serves nothing
	case one.Role == nodes.Master && len(one.serversBeside()) == 0:
		costs = append(costs, "it is the only master, so that the API of Kubernetes is away meanwhile, and nothing is scheduled or mended")
	case one.Role == nodes.Gateway && len(one.serversBeside()) == 0:
		costs = append(costs, "it is the only gateway, so that nobody reaches published services meanwhile")
	case one.lastTaker() && !one.Settings.Locked:
		costs = append(costs, noTaker+" meanwhile")
	}
	quorum, err := live.Missed(ctx, one.Name)
	if err != nil {
		return nil, fmt.Errorf("find out whether etcd does without %s: %w", one.Name, err)
	}
	if quorum != "" {
		costs = append(costs, quorum)
	}
	return costs, nil
}

// bootOf identifies the present run of a node's system.
func bootOf(ctx context.Context, live *nodes.Cluster, name string) (run string, reached bool) {
	asked, cancel := context.WithTimeout(ctx, bootReach)
	defer cancel()
	run, err := live.Boot(asked, name)
	return run, err == nil
}

// reboot starts a node's server anew, unless that was done since it was noted, and waits until it answers.
func (c Operations) reboot(ctx context.Context, one *namedNode, live *nodes.Cluster, begun reboot) error {
	anew := func(ctx context.Context) bool {
		run, reached := bootOf(ctx, live, one.Name)
		return reached && run != begun.Run
	}
	if anew(ctx) {
		return nil
	}
	if one.Machine != nil {
		return c.rebootMachine(ctx, one, live, anew)
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	state, err := project.Server(ctx, one.Server)
	switch {
	case err != nil:
		return err
	case state.Status == openstack.Gone:
		return fault.New(fault.Conflict, "the server of %s is gone from Nova: deploy the environment for a new one in its place", one.Name)
	case state.Down():
		err = stacks.StartServer(ctx, c.Reports, project, one.cluster, one.Name, one.Server)
	default:
		err = project.RebootServer(ctx, one.Server, !begun.Reached)
	}
	if err != nil {
		return err
	}
	return awaitBoot(ctx, one.Name, anew)
}

// awaitBoot waits until a node answers from a new run of its system.
func awaitBoot(ctx context.Context, name string, anew func(context.Context) bool) error {
	return wait.Every(bootPoll).Until(ctx, func(ctx context.Context) error {
		if !anew(ctx) {
			return wait.Again(fmt.Errorf("%s does not answer yet from a new run of its system", name))
		}
		return nil
	})
}

// rebootMachine has a machine that is no server of the cloud start itself anew.
func (c Operations) rebootMachine(ctx context.Context, one *namedNode, live *nodes.Cluster, anew func(context.Context) bool) error {
	if _, err := live.Run(ctx, one.Name, "systemctl reboot --no-block"); err != nil {
		return fmt.Errorf("have %s start anew, which only it itself can do: %w", one.Name, err)
	}
	return awaitBoot(ctx, one.Name, anew)
}
