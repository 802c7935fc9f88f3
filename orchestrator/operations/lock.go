package operations

import (
	"context"
	"errors"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
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

// admitLock refuses to lock a gateway or master whose service no other node takes over. The last master is never locked, because the API unlocks it.
func (c Operations) admitLock(ctx context.Context, one *namedNode, force bool) error {
	live, err := c.connectKnown(ctx, one, 0)
	if err != nil {
		return err
	}
	if one.Role == nodes.Master {
		reasons := []error{errors.New("no other master is in service")}
		for _, other := range one.serversBeside() {
			err := live.Available(ctx, other.Name)
			if err == nil {
				reasons = nil
				break
			}
			reasons = append(reasons[:0], err)
		}
		if err := errors.Join(reasons...); err != nil {
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
