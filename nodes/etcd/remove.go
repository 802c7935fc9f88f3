package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// answerTimeout is how long a member may take to answer.
const answerTimeout = 3 * time.Second

// Started is true if the member ever ran: only then does it have a name.
func Started(member *etcdserverpb.Member) bool { return member.Name != "" }

// Answers is true if the member serves clients now.
func Answers(ctx context.Context, client *clientv3.Client, member *etcdserverpb.Member) bool {
	if len(member.ClientURLs) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := client.Status(ctx, member.ClientURLs[0])
	return err == nil
}

// AwaitAnswer waits until the node's member serves clients, which it does when it is connected to a majority.
func AwaitAnswer(ctx context.Context, client *clientv3.Client, node Node) error {
	members, err := Members(ctx, client)
	if err != nil {
		return err
	}
	member := members.Of(node)
	if member == nil {
		return fmt.Errorf("etcd member %s is not in the cluster", node.Name)
	}
	err = retry(ctx, promotePatience, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		if !Answers(ctx, client, member) {
			return true, errors.New("it does not answer")
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for etcd member %s: %w", node.Name, err)
	}
	return nil
}

// Silent names the voters that do not answer: while there are any, etcd takes no new member.
func Silent(ctx context.Context, client *clientv3.Client, members Membership) []string {
	answers := make([]chan bool, len(members))
	for i, member := range members {
		answers[i] = make(chan bool, 1)
		go func() { answers[i] <- member.IsLearner || Answers(ctx, client, member) }()
	}
	var silent []string
	for i, member := range members {
		if !<-answers[i] {
			silent = append(silent, member.Name)
		}
	}
	return silent
}

// Remove takes a member out for good. If it is the leader, another voter leads first, so that no client waits for an election. etcd itself refuses a
// removal that would cost the quorum. Remove tries again for a while, since a member that has just joined or started counts a little later. A member that
// is gone already is no error.
func Remove(ctx context.Context, client *clientv3.Client, id uint64) error {
	err := retry(ctx, changePatience, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		members, err := Members(ctx, client)
		if err != nil {
			return true, err
		}
		if members.ByID(id) == nil {
			return false, nil
		}
		if err := yield(ctx, client, members, id); err != nil {
			return true, err
		}
		_, err = client.MemberRemove(ctx, id)
		if errors.Is(err, rpctypes.ErrMemberNotFound) {
			return false, nil
		}
		return transient(err), err
	})
	if err != nil {
		return fmt.Errorf("remove etcd member %x: %w", id, err)
	}
	return nil
}

// ByID returns the member of that id, or nil.
func (m Membership) ByID(id uint64) *etcdserverpb.Member {
	for _, member := range m {
		if member.ID == id {
			return member
		}
	}
	return nil
}

// Yield has another voter lead when the member of a node does.
func Yield(ctx context.Context, client *clientv3.Client, node Node) error {
	members, err := Members(ctx, client)
	if err != nil {
		return err
	}
	if own := members.Of(node); own != nil {
		return yield(ctx, client, members, own.ID)
	}
	return nil
}

// Leads reports whether the member of a node leads. One that does not answer does not.
func Leads(ctx context.Context, client *clientv3.Client, node Node) (bool, error) {
	members, err := Members(ctx, client)
	if err != nil {
		return false, err
	}
	own := members.Of(node)
	if own == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return leads(ctx, client, own), nil
}

// leads reports whether a member leads. A learner does not, and one that does not answer is no leader.
func leads(ctx context.Context, client *clientv3.Client, member *etcdserverpb.Member) bool {
	if member.IsLearner || len(member.ClientURLs) == 0 {
		return false
	}
	status, err := client.Status(ctx, member.ClientURLs[0])
	return err == nil && status.Leader == member.ID
}

// yield has another voter lead when the leader is the member that is to go.
func yield(ctx context.Context, client *clientv3.Client, members Membership, id uint64) error {
	leaving := members.ByID(id)
	ask, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if !leads(ask, client, leaving) {
		return nil
	}
	for _, heir := range members {
		if heir.ID == id || heir.IsLearner || !Answers(ctx, client, heir) {
			continue
		}
		// Only the leader itself can hand over.
		conn, err := client.Dial(leaving.ClientURLs[0])
		if err != nil {
			return fmt.Errorf("connect to the leader: %w", err)
		}
		defer conn.Close()
		if _, err := etcdserverpb.NewMaintenanceClient(conn).MoveLeader(ask, &etcdserverpb.MoveLeaderRequest{TargetID: heir.ID}); err != nil {
			return fmt.Errorf("have %s lead in place of %s: %w", heir.Name, leaving.Name, err)
		}
		return nil
	}
	return nil
}
