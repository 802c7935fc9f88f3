package openstack

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/limits"
)

// GroupRoom is how many server groups more a project may have, and how many servers Nova lets into one of them.
type GroupRoom struct{ Groups, Members int }

// GroupRoom asks Nova for it. A Nova without an answer sets no limit.
func (n Nova) GroupRoom(ctx context.Context) (GroupRoom, error) {
	unlimited := GroupRoom{Groups: math.MaxInt, Members: math.MaxInt}
	found, err := limits.Get(ctx, n.compute, limits.GetOpts{}).Extract()
	var unexpected gophercloud.ErrUnexpectedResponseCode
	if errors.As(err, &unexpected) && unexpected.Actual < http.StatusInternalServerError {
		return unlimited, nil
	}
	if err != nil {
		return GroupRoom{}, fmt.Errorf("ask Nova for the project's limits: %w", err)
	}
	if found == nil {
		return unlimited, nil
	}
	room := unlimited
	if most := found.Absolute.MaxServerGroups; most >= 0 { // -1 is no limit
		room.Groups = max(most-found.Absolute.TotalServerGroupsUsed, 0)
	}
	if most := found.Absolute.MaxServerGroupMembers; most >= 0 {
		room.Members = most
	}
	return room, nil
}
