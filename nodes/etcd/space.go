package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Space is how much of its quota a member's store takes. At the quota etcd takes no more writes: the alarm NOSPACE stays until an operator makes room and
// disarms it (https://etcd.io/docs/v3.6/op-guide/maintenance/).
type Space struct {
	Size  int64 // bytes of the file
	InUse int64 // their size after a defragmentation
	Quota int64
	Full  bool // the alarm is on, of this member or another one: none of them takes writes
}

const (
	// defragmentPatience is how long one member may take, during which it answers no client: about a second for each 100 MB.
	defragmentPatience = 2 * time.Minute
	// wasted is how many bytes, and what part of the file, are free before a defragmentation is worth its pause.
	wasted     = 100 << 20
	wastedPart = 2
)

// Wasted is true if a defragmentation is worth its pause.
func (s Space) Wasted() bool {
	return s.Size-s.InUse >= wasted && (s.Size-s.InUse)*wastedPart >= s.Size || s.Full && s.InUse < s.Size
}

// Short is true if the used bytes nearly fill the quota.
func (s Space) Short() bool { return s.Full || s.Quota > 0 && s.InUse*5 >= s.Quota*4 }

// SpaceOf asks a member; an error when it does not answer.
func SpaceOf(ctx context.Context, client *clientv3.Client, member *etcdserverpb.Member) (Space, error) {
	if len(member.ClientURLs) == 0 {
		return Space{}, errors.New("it has never run")
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	asked := clientv3.Maintenance(client)
	if slices.Equal(client.Endpoints(), member.ClientURLs) { // else it would connect a second time to its present member
		asked = clientv3.NewMaintenanceFromMaintenanceClient(clientv3.RetryMaintenanceClient(client, client.ActiveConnection()), client)
	}
	status, err := asked.Status(ctx, member.ClientURLs[0])
	if err != nil {
		return Space{}, err
	}
	space := Space{Size: status.DbSize, InUse: status.DbSizeInUse, Quota: status.DbSizeQuota}
	space.Full = slices.ContainsFunc(status.Errors, func(text string) bool { return strings.Contains(text, etcdserverpb.AlarmType_NOSPACE.String()) })
	return space, nil
}

// Defragment compacts the history and then returns the free room of the members' files, one member after another and the leader last. It disarms the
// alarms of members that have room again. During its turn a member answers no client; the others do. client's user is Root.
func Defragment(ctx context.Context, client *clientv3.Client) error {
	members, err := Members(ctx, client)
	if err != nil {
		return err
	}
	if err := compact(ctx, client); err != nil {
		return err
	}
	leads := func(member *etcdserverpb.Member) bool {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		if len(member.ClientURLs) == 0 {
			return false
		}
		status, err := client.Status(ctx, member.ClientURLs[0])
		return err == nil && status.Leader == member.ID
	}
	slices.SortStableFunc(members, func(a, b *etcdserverpb.Member) int {
		switch x, y := leads(a), leads(b); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	for _, member := range members {
		if len(member.ClientURLs) == 0 || member.IsLearner {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, defragmentPatience)
		_, err := client.Defragment(limited, member.ClientURLs[0])
		cancel()
		if err != nil {
			return fmt.Errorf("defragment etcd member %s: %w", member.Name, err)
		}
		space, err := SpaceOf(ctx, client, member)
		if err != nil {
			return fmt.Errorf("ask etcd member %s after it was defragmented: %w", member.Name, err)
		}
		if space.Full && space.Size < space.Quota*9/10 {
			if _, err := client.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: member.ID, Alarm: etcdserverpb.AlarmType_NOSPACE}); err != nil {
				return fmt.Errorf("disarm the alarm of etcd member %s: %w", member.Name, err)
			}
		}
	}
	return nil
}

// compact forgets former values of keys. Watches that have not come so far begin anew, as after any compaction.
func compact(ctx context.Context, client *clientv3.Client) error {
	limited, cancel := context.WithTimeout(ctx, defragmentPatience)
	defer cancel()
	now, err := client.Get(limited, "compact_rev_key", clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("ask etcd for its revision: %w", err)
	}
	// Until the room is free, which takes a while when much was written.
	_, err = client.Compact(limited, now.Header.Revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compact etcd's history: %w", err)
	}
	return nil
}
