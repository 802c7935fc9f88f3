package operations

import (
	"context"
	"errors"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
)

// serversBeside are the other nodes of the same role that serve: they neither leave nor are locked.
func (n *namedNode) serversBeside() (others []nodes.Node) {
	for _, other := range n.known.Nodes {
		if other.Role == n.Role && other.Name != n.Name && !other.Leaving && !other.Settings.Locked {
			others = append(others, other)
		}
	}
	return others
}

// lockServer locks or unlocks a gateway or a master. A deployment of the cluster as it is does the work: the others take over, and then the node ends its service.
func (c Operations) lockServer(ctx context.Context, call muranopl.Call, one *namedNode, change nodeChange) error {
	if !change.onlyLocks() {
		return fault.New(fault.Invalid, "%s is a %s: it can be locked and unlocked; labels, taints and cordons are for minions", one.Name, one.Role)
	}
	locks := *change.locked
	if locks && !one.Settings.Locked {
		if err := c.admitLock(ctx, one, change.force); err != nil {
			return err
		}
	}
	if locks && one.RunsPods() {
		live, err := c.connectKnown(ctx, one, change.patience)
		if err != nil {
			return err
		}
		if err := c.empty(ctx, call, one, live); err != nil {
			return err
		}
	}
	settings := one.Settings
	settings.Locked = locks
	if _, err := c.set(ctx, one, settings); err != nil {
		return err
	}
	deploy := func() error { return c.rejoin(ctx, one.cluster, one.known) }
	if !locks { // its server may be off, or gone
		deploy = func() error { return c.recoverNode(ctx, call, one.known, one.Node) }
	}
	if err := deploy(); err != nil {
		return err
	}
	c.reportNode(ctx, one, change)
	return nil
}

// swactNode is the action that has other masters lead in place of one, before work on it.
func (c Operations) swactNode(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	one, err := c.namedNode(ctx, call, known)
	if err != nil {
		return err
	}
	if one.Role != nodes.Master {
		return fault.New(fault.Invalid, "%s is a %s: only masters lead, and pass it on", one.Name, one.Role)
	}
	live, err := c.connectKnown(ctx, one, 0)
	if err != nil {
		return err
	}
	if err := otherMaster(ctx, one, live); err != nil {
		return fault.New(fault.Conflict, "%s leads on: no other master can lead in its place: %w. Unlock, repair or add a master first", one.Name, err)
	}
	return nodes.Swact(ctx, live, one.Name)
}

// otherMaster is an error where no other master than a node serves.
func otherMaster(ctx context.Context, one *namedNode, live *nodes.Cluster) error {
	reasons := []error{errors.New("no other master is in service")}
	for _, other := range one.serversBeside() {
		err := live.Available(ctx, other.Name)
		if err == nil {
			return nil
		}
		reasons = append(reasons[:0], err)
	}
	return errors.Join(reasons...)
}

// admitLock refuses to lock a gateway or master whose service no other node takes over. The last master is never locked, because the API unlocks it.
func (c Operations) admitLock(ctx context.Context, one *namedNode, force bool) error {
	live, err := c.connectKnown(ctx, one, 0)
	if err != nil {
		return err
	}
	if one.Role == nodes.Master {
		if err := otherMaster(ctx, one, live); err != nil {
			return fault.New(fault.Conflict, "%s is not locked: without it no API server of the cluster answers: %w. Unlock, repair or add a master first", one.Name, err)
		}
	}
	costs, err := c.missed(ctx, one, live)
	if err != nil {
		return err
	}
	if len(costs) > 0 && !force {
		return fault.New(fault.Conflict, "%s is not locked: %s. Add or unlock another %s first, or say force", one.Name, strings.Join(costs, "; "), one.Role)
	}
	return nil
}
