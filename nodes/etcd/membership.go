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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/internal/wait"
)

const (
	// etcd refuses a change of members until every voter has been connected for 5 s; a member that restarts needs a little more.
	changePatience = 40 * time.Second
	// A learner has to receive a snapshot before it can vote.
	promotePatience = 90 * time.Second
	callTimeout     = 7 * time.Second
	// quorumProbe is a key without a value; a read of it needs a majority.
	quorumProbe = "burano-quorum-probe"
)

// Membership is the list of the members of the etcd cluster.
type Membership []*etcdserverpb.Member

// Members asks for the membership. The answer is linearizable: it goes through the leader.
func Members(ctx context.Context, client *clientv3.Client) (Membership, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the etcd members: %w", err)
	}
	return list.Members, nil
}

// Of returns the node's member, found by its peer address, or nil.
func (m Membership) Of(node Node) *etcdserverpb.Member {
	for _, member := range m {
		if slices.Contains(member.PeerURLs, node.PeerURL()) {
			return member
		}
	}
	return nil
}

// PeerURLs returns the members' peer addresses by node name for Join; names are taken from nodes, since a member that has
// not started yet has none.
func (m Membership) PeerURLs(nodes []Node) map[string]string {
	urls := make(map[string]string, len(m))
	for _, member := range m {
		name := member.Name
		for _, node := range nodes {
			if slices.Contains(member.PeerURLs, node.PeerURL()) {
				name = node.Name
			}
		}
		for _, url := range member.PeerURLs {
			urls[name] = url
		}
	}
	return urls
}

// Voters returns the nodes that vote.
func (m Membership) Voters(nodes []Node) []Node {
	var voters []Node
	for _, node := range nodes {
		if member := m.Of(node); member != nil && !member.IsLearner {
			voters = append(voters, node)
		}
	}
	return voters
}

// AddLearners adds the nodes that are no members yet, as learners. All nodes of a change are added before the first is promoted: a promotion starts the 5
// s during which etcd refuses further changes.
func AddLearners(ctx context.Context, client *clientv3.Client, nodes []Node) (Membership, error) {
	members, err := Members(ctx, client)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		if members.Of(node) != nil {
			continue
		}
		err := retry(ctx, changePatience, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
			_, err := client.MemberAddAsLearner(ctx, []string{node.PeerURL()})
			if errors.Is(err, rpctypes.ErrPeerURLExist) || errors.Is(err, rpctypes.ErrMemberExist) {
				return false, nil // an attempt whose answer was lost
			}
			// A member's id is made of its address and the second in which it is added (computeMemberID in etcd 3.6's server/etcdserver/api/membership). A
			// member that was added and removed in this second can be added again only in the next one.
			return transient(err) || errors.Is(err, rpctypes.ErrMemberNotFound), err
		})
		if err != nil {
			if silent := Silent(ctx, client, members); len(silent) > 0 {
				err = fmt.Errorf("%w; a voter has to answer before etcd takes a new member: %s does not, so start its server, or remove its node", err, strings.Join(silent, ", "))
			}
			return nil, fmt.Errorf("add etcd member %s: %w", node.Name, err)
		}
	}
	return Members(ctx, client)
}

// Promote makes the node's learner a voter as soon as it has caught up, and then reads through the new quorum, so that
// the next member starts into a cluster that works. Only one member may be promoted at a time: etcd has been
// seen to hang for seconds on two.
func Promote(ctx context.Context, client *clientv3.Client, node Node) error {
	members, err := Members(ctx, client)
	if err != nil {
		return err
	}
	member := members.Of(node)
	if member == nil {
		return fmt.Errorf("promote etcd member %s: it is not in the cluster", node.Name)
	}
	if !member.IsLearner {
		return nil
	}
	leader := leader{client: client}
	defer leader.close()
	err = retry(ctx, promotePatience, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := leader.promote(ctx, member.ID)
		if errors.Is(err, rpctypes.ErrMemberNotLearner) {
			return false, nil
		}
		return transient(err) || errors.Is(err, rpctypes.ErrMemberLearnerNotReady), err
	})
	if err != nil {
		return fmt.Errorf("promote etcd member %s: %w", node.Name, err)
	}
	err = retry(ctx, changePatience, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := client.Get(ctx, quorumProbe)
		return transient(err), err
	})
	if err != nil {
		return fmt.Errorf("read from etcd after %s became a voter: %w", node.Name, err)
	}
	return nil
}

// leader reaches the member that leads, whichever that is at the moment.
type leader struct {
	client *clientv3.Client
	id     uint64
	conn   *grpc.ClientConn // of its own; nil where the client's is with the leader
}

// promote asks the leader itself. Any other member passes the request on without the name of its user, so that it is refused once
// authorization is on (promoteMember and promoteMemberHTTP in etcd 3.6's server/etcdserver).
func (l *leader) promote(ctx context.Context, id uint64) error {
	conn, err := l.connect(ctx)
	if err != nil {
		return err
	}
	_, err = etcdserverpb.NewClusterClient(conn).MemberPromote(ctx, &etcdserverpb.MemberPromoteRequest{ID: id})
	return rpctypes.Error(err)
}

// connect returns a connection with the leader. Who leads is asked over the client's own connections (its Status makes one for each question), and one that can only be
// with the leader is taken.
func (l *leader) connect(ctx context.Context) (*grpc.ClientConn, error) {
	own := l.client.ActiveConnection()
	now, err := etcdserverpb.NewMaintenanceClient(own).Status(ctx, &etcdserverpb.StatusRequest{})
	if err != nil {
		return nil, rpctypes.Error(err)
	}
	switch {
	case now.Leader == 0:
		return nil, rpctypes.ErrNoLeader
	case len(l.client.Endpoints()) == 1 && now.Leader == now.Header.MemberId:
		return own, nil
	case l.conn != nil && l.id == now.Leader:
		return l.conn, nil
	}
	members, err := Members(ctx, l.client)
	if err != nil {
		return nil, err
	}
	member := members.ByID(now.Leader)
	if member == nil || len(member.ClientURLs) == 0 {
		return nil, rpctypes.ErrLeaderChanged
	}
	l.close()
	l.id = now.Leader
	l.conn, err = l.client.Dial(member.ClientURLs[0])
	return l.conn, err
}

func (l *leader) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

// transient is true if the error of a membership change goes away by itself.
func transient(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	for _, passing := range []error{
		rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrNotCapable,
		rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTooManyRequests, rpctypes.ErrStopped,
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return status.Code(err) == codes.Unavailable
}

// retry calls once again and again, pausing between, until it succeeds, fails for good, or patience is over.
func retry(ctx context.Context, patience, pause time.Duration, once func(ctx context.Context) (again bool, err error)) error {
	return wait.Every(pause).For(patience).Until(ctx, func(patient context.Context) error {
		call, stop := context.WithTimeout(patient, callTimeout)
		defer stop()
		again, err := once(call)
		if err != nil && again {
			return wait.Again(err)
		}
		return err
	})
}
