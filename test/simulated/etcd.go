package simulated

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/burano/burano/nodes/etcd"
)

// cluster is the common state of the nodes of a simulated cluster: the store of etcd with its members and users, and the objects of
// Kubernetes.
type cluster struct {
	world *World

	mutex    sync.Mutex
	nodes    map[netip.Addr]*node // by fixed address
	members  []*etcdserverpb.Member
	revision int64
	pairs    map[string]*mvccpb.KeyValue
	roles    map[string][]*authpb.Permission
	users    map[string][]string // roles of each
	enabled  bool                // authorization
	objects  map[string][]byte   // of Kubernetes, by path
}

func (w *World) newCluster() *cluster {
	return &cluster{world: w, nodes: map[netip.Addr]*node{}, revision: 1, pairs: map[string]*mvccpb.KeyValue{}, roles: map[string][]*authpb.Permission{}, users: map[string][]string{}, objects: map[string][]byte{}}
}

func (c *cluster) at(host string) *node {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.nodes[address]
}

// started adds a node's member; the first node's is the first member.
func (c *cluster) started(n *node) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	of := etcd.Node{Name: n.name, Address: n.fixed}
	i := slices.IndexFunc(c.members, func(member *etcdserverpb.Member) bool { return slices.Contains(member.PeerURLs, of.PeerURL()) })
	if i < 0 && len(c.members) == 0 {
		c.members, i = append(c.members, &etcdserverpb.Member{ID: 1000, PeerURLs: []string{of.PeerURL()}}), 0
	}
	if i >= 0 {
		c.members[i].Name, c.members[i].ClientURLs = n.name, []string{of.ClientURL()}
	}
}

func (c *cluster) header() *etcdserverpb.ResponseHeader {
	return &etcdserverpb.ResponseHeader{ClusterId: 1, MemberId: 1000, Revision: c.revision, RaftTerm: 2}
}

// store answers as every member of every cluster: the connection decides which one.
type store struct {
	world *World
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedAuthServer
}

func (w *World) serveEtcd() error {
	server := grpc.NewServer(grpc.Creds(&byNode{}), grpc.MaxSendMsgSize(1<<30), grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		w.Tally.add(0, "etcd %s", info.FullMethod)
		if w.Endless.Load() {
			return endlessAnswer(request), nil
		}
		answer, err := handle(ctx, request)
		if err != nil && strings.Contains(err.Error(), "not implemented") {
			w.note("etcd %s", info.FullMethod)
		}
		return answer, err
	}))
	s := &store{world: w}
	etcdserverpb.RegisterKVServer(server, s)
	etcdserverpb.RegisterClusterServer(server, s)
	etcdserverpb.RegisterMaintenanceServer(server, s)
	etcdserverpb.RegisterAuthServer(server, s)
	return server.Serve(w.etcd)
}

// byNode binds each connection to its node.
type byNode struct {
	credentials.TransportCredentials
}

// ofNode is a connection whose node is known.
type ofNode struct {
	credentials.CommonAuthInfo
	node *node
}

func (ofNode) AuthType() string { return "tls" }

// ServerHandshake implements credentials.TransportCredentials.
func (*byNode) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	through, ok := raw.(*channelConn)
	if !ok {
		return nil, nil, errors.New("no connection to a node")
	}
	config, err := through.node.tls(through.pair)
	if err != nil {
		return nil, nil, err
	}
	conn := tls.Server(raw, config)
	if err := conn.Handshake(); err != nil {
		return nil, nil, err
	}
	return conn, ofNode{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, through.node}, nil
}

// Info implements credentials.TransportCredentials.
func (*byNode) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (*byNode) Clone() credentials.TransportCredentials { return &byNode{} }

// asked is the node that a call came to; its cluster is locked until the returned function is called.
func asked(ctx context.Context) (*node, *cluster, func()) {
	from, _ := peer.FromContext(ctx)
	n := from.AuthInfo.(ofNode).node
	n.cluster.mutex.Lock()
	return n, n.cluster, n.cluster.mutex.Unlock
}

func (s *store) Range(ctx context.Context, request *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	return c.read(request), nil
}

func (c *cluster) read(request *etcdserverpb.RangeRequest) *etcdserverpb.RangeResponse {
	answer := &etcdserverpb.RangeResponse{Header: c.header()}
	for _, key := range slices.Sorted(maps.Keys(c.pairs)) {
		if within(key, request.Key, request.RangeEnd) {
			answer.Kvs = append(answer.Kvs, c.pairs[key])
		}
	}
	answer.Count = int64(len(answer.Kvs))
	return answer
}

func within(key string, from, to []byte) bool {
	if len(to) == 0 {
		return key == string(from)
	}
	return key >= string(from) && key < string(to)
}

func (c *cluster) put(request *etcdserverpb.PutRequest) *etcdserverpb.PutResponse {
	c.revision++
	pair := &mvccpb.KeyValue{Key: request.Key, Value: request.Value, CreateRevision: c.revision, ModRevision: c.revision, Version: 1}
	if before := c.pairs[string(request.Key)]; before != nil {
		pair.CreateRevision, pair.Version = before.CreateRevision, before.Version+1
	}
	c.pairs[string(request.Key)] = pair
	return &etcdserverpb.PutResponse{Header: c.header()}
}

func (c *cluster) remove(request *etcdserverpb.DeleteRangeRequest) *etcdserverpb.DeleteRangeResponse {
	before := len(c.pairs)
	maps.DeleteFunc(c.pairs, func(key string, _ *mvccpb.KeyValue) bool { return within(key, request.Key, request.RangeEnd) })
	c.revision++
	return &etcdserverpb.DeleteRangeResponse{Header: c.header(), Deleted: int64(before - len(c.pairs))}
}

// Txn knows comparisons of revisions of creation alone.
func (s *store) Txn(ctx context.Context, request *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	n, c, done := asked(ctx)
	defer done()
	answer := &etcdserverpb.TxnResponse{Succeeded: true}
	for _, compare := range request.Compare {
		created, ok := compare.TargetUnion.(*etcdserverpb.Compare_CreateRevision)
		if !ok || compare.Result != etcdserverpb.Compare_EQUAL {
			n.world.note("etcd comparison %s", compare)
			return nil, errors.New("not simulated")
		}
		var revision int64
		if pair := c.pairs[string(compare.Key)]; pair != nil {
			revision = pair.CreateRevision
		}
		answer.Succeeded = answer.Succeeded && revision == created.CreateRevision
	}
	operations := request.Success
	if !answer.Succeeded {
		operations = request.Failure
	}
	for _, one := range operations {
		switch of := one.Request.(type) {
		case *etcdserverpb.RequestOp_RequestRange:
			answer.Responses = append(answer.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: c.read(of.RequestRange)}})
		case *etcdserverpb.RequestOp_RequestPut:
			answer.Responses = append(answer.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponsePut{ResponsePut: c.put(of.RequestPut)}})
		case *etcdserverpb.RequestOp_RequestDeleteRange:
			answer.Responses = append(answer.Responses, &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: c.remove(of.RequestDeleteRange)}})
		}
	}
	answer.Header = c.header()
	return answer, nil
}

func (s *store) MemberList(ctx context.Context, _ *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	return &etcdserverpb.MemberListResponse{Header: c.header(), Members: c.list()}, nil
}

// list is a copy, since answers are encoded later.
func (c *cluster) list() (copied []*etcdserverpb.Member) {
	for _, member := range c.members {
		one := *member
		copied = append(copied, &one)
	}
	return copied
}

func (s *store) MemberAdd(ctx context.Context, request *etcdserverpb.MemberAddRequest) (*etcdserverpb.MemberAddResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	for _, member := range c.members {
		if slices.Equal(member.PeerURLs, request.PeerURLs) {
			return nil, rpctypes.ErrGRPCPeerURLExist
		}
	}
	made := etcdserverpb.Member{ID: 1000 + uint64(len(c.members)), PeerURLs: request.PeerURLs, IsLearner: request.IsLearner}
	c.members = append(c.members, &made)
	answer := made
	return &etcdserverpb.MemberAddResponse{Header: c.header(), Member: &answer, Members: c.list()}, nil
}

func (s *store) MemberPromote(ctx context.Context, request *etcdserverpb.MemberPromoteRequest) (*etcdserverpb.MemberPromoteResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	for _, member := range c.members {
		switch {
		case member.ID != request.ID:
		case member.Name == "":
			return nil, rpctypes.ErrGRPCLearnerNotReady
		default:
			member.IsLearner = false
			return &etcdserverpb.MemberPromoteResponse{Header: c.header(), Members: c.list()}, nil
		}
	}
	return nil, rpctypes.ErrGRPCMemberNotFound
}

func (s *store) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	return &etcdserverpb.StatusResponse{Header: c.header(), Version: "3.6.0", DbSize: 4 << 20, DbSizeInUse: 3 << 20, DbSizeQuota: 2 << 30, Leader: 1000, RaftIndex: uint64(c.revision), RaftTerm: 2}, nil
}

func (s *store) Snapshot(_ *etcdserverpb.SnapshotRequest, stream etcdserverpb.Maintenance_SnapshotServer) error {
	for s.world.Endless.Load() {
		if err := stream.Send(&etcdserverpb.SnapshotResponse{RemainingBytes: 1 << 40, Blob: zeros[:32<<10]}); err != nil {
			return err
		}
	}
	from, _ := peer.FromContext(stream.Context())
	w := from.AuthInfo.(ofNode).node.world
	w.Tally.add(0, "etcd snapshot")
	for part := range slices.Chunk(w.snapshot, 32<<10) {
		if err := stream.Send(&etcdserverpb.SnapshotResponse{Header: &etcdserverpb.ResponseHeader{}, Blob: part, Version: "3.6.0"}); err != nil {
			return err
		}
	}
	return nil
}

func (s *store) AuthEnable(ctx context.Context, _ *etcdserverpb.AuthEnableRequest) (*etcdserverpb.AuthEnableResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	c.enabled = true
	return &etcdserverpb.AuthEnableResponse{Header: c.header()}, nil
}

func (s *store) AuthStatus(ctx context.Context, _ *etcdserverpb.AuthStatusRequest) (*etcdserverpb.AuthStatusResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	return &etcdserverpb.AuthStatusResponse{Header: c.header(), Enabled: c.enabled}, nil
}

func (s *store) UserAdd(ctx context.Context, request *etcdserverpb.AuthUserAddRequest) (*etcdserverpb.AuthUserAddResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	c.users[request.Name] = []string{}
	return &etcdserverpb.AuthUserAddResponse{Header: c.header()}, nil
}

func (s *store) UserGet(ctx context.Context, request *etcdserverpb.AuthUserGetRequest) (*etcdserverpb.AuthUserGetResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	roles, there := c.users[request.Name]
	if !there {
		return nil, rpctypes.ErrGRPCUserNotFound
	}
	return &etcdserverpb.AuthUserGetResponse{Header: c.header(), Roles: roles}, nil
}

func (s *store) UserGrantRole(ctx context.Context, request *etcdserverpb.AuthUserGrantRoleRequest) (*etcdserverpb.AuthUserGrantRoleResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	c.users[request.User] = append(c.users[request.User], request.Role)
	return &etcdserverpb.AuthUserGrantRoleResponse{Header: c.header()}, nil
}

func (s *store) RoleAdd(ctx context.Context, request *etcdserverpb.AuthRoleAddRequest) (*etcdserverpb.AuthRoleAddResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	c.roles[request.Name] = []*authpb.Permission{}
	return &etcdserverpb.AuthRoleAddResponse{Header: c.header()}, nil
}

func (s *store) RoleGet(ctx context.Context, request *etcdserverpb.AuthRoleGetRequest) (*etcdserverpb.AuthRoleGetResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	permissions, there := c.roles[request.Role]
	if !there {
		return nil, rpctypes.ErrGRPCRoleNotFound
	}
	return &etcdserverpb.AuthRoleGetResponse{Header: c.header(), Perm: permissions}, nil
}

func (s *store) RoleGrantPermission(ctx context.Context, request *etcdserverpb.AuthRoleGrantPermissionRequest) (*etcdserverpb.AuthRoleGrantPermissionResponse, error) {
	_, c, done := asked(ctx)
	defer done()
	if _, there := c.roles[request.Name]; !there {
		return nil, fmt.Errorf("grant: %w", rpctypes.ErrGRPCRoleNotFound)
	}
	c.roles[request.Name] = append(c.roles[request.Name], request.Perm)
	return &etcdserverpb.AuthRoleGrantPermissionResponse{Header: c.header()}, nil
}
