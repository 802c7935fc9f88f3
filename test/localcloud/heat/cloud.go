package heat

import (
	"context"

	"github.com/burano/burano/test/localcloud/cinder"
	"github.com/burano/burano/test/localcloud/neutron"
)

// Compute is Heat's view of Nova. Errors that are faults (package fault) become the reason of a failed resource as they are; a missing server or key pair
// is a NotFound. The context carries the stack's owner as caller.
type Compute interface {
	// CheckImage and CheckFlavor are faults when there is none of this name or id.
	CheckImage(ctx context.Context, projectID, ref string) error
	CheckFlavor(ctx context.Context, projectID, ref string) error
	// CreateServer answers as soon as the server is accepted.
	CreateServer(ctx context.Context, projectID string, request ServerRequest) (Server, error)
	GetServer(ctx context.Context, projectID, id string) (Server, error)
	// FindServers lists the ids of the servers with exactly this name.
	FindServers(ctx context.Context, projectID, name string) ([]string, error)
	// RenameServer gives a server that runs another name and other metadata.
	RenameServer(ctx context.Context, projectID, id, name string, metadata map[string]string) error
	// RebuildServer gives a server a new disk from an image, ResizeServer starts it in another size; both by name or id. ReplugServer attaches
	// and detaches interfaces until it has these ports, and one in each of these networks.
	RebuildServer(ctx context.Context, projectID, id, image string) error
	ResizeServer(ctx context.Context, projectID, id, flavor string) error
	ReplugServer(ctx context.Context, projectID, id string, ports, networks []string) error
	// AttachVolume and DetachVolume return when the server has the volume, or has it no more; device is /dev/vdb or such, or "".
	AttachVolume(ctx context.Context, projectID, serverID, volumeID, device string) error
	DetachVolume(ctx context.Context, projectID, serverID, volumeID string) error
	// DeleteServer returns when nothing of the server is left.
	DeleteServer(ctx context.Context, projectID, id string) error
	// CreateKeyPair takes a public key, or makes a pair when it is "" and returns the private key too.
	CreateKeyPair(ctx context.Context, projectID, name, publicKey string) (KeyPair, error)
	DeleteKeyPair(ctx context.Context, projectID, name string) error
	// CreateServerGroup gives the group this id; an existing one with it is the wanted one.
	CreateServerGroup(ctx context.Context, projectID, id, name, policy string) error
	DeleteServerGroup(ctx context.Context, projectID, id string) error
}

// ServerRequest describes a new server; flavor and image by name or id.
type ServerRequest struct {
	Name, Flavor, Image, KeyName string
	UserData                     []byte
	Metadata                     map[string]string
	Ports                        []string // ids
	Networks                     []string // ids of networks in which Nova makes a port
	SecurityGroups               []string // names or ids
	AvailabilityZone             string
	Group                        string // id of a server group, "" for none
	Volumes                      []ServerVolume
}

// ServerVolume is a volume that a server is made with.
type ServerVolume struct {
	ID, Device string
	Delete     bool // with the server
	Boots      bool // the server runs from it
}

// Volumes is Heat's view of Cinder; *cinder.Service is one.
type Volumes interface {
	Create(ctx context.Context, projectID string, request cinder.CreateVolume) (cinder.Volume, error)
	Get(projectID, id string) (cinder.Volume, error)
	Update(projectID, id string, change cinder.Change) (cinder.Volume, error)
	Extend(ctx context.Context, projectID, id string, gigabytes int) error
	Delete(projectID, id string) error
	Show(volume cinder.Volume) map[string]any
}

// Server is Nova's record of a server.
type Server struct {
	ID, Name string
	Status   string         // BUILD, ACTIVE, ERROR, …
	Fault    string         // why it is in ERROR
	Show     map[string]any // the attribute show: the server as the API answers it
}

// KeyPair is a key pair; PrivateKey is known only when it was just made.
type KeyPair struct{ Name, PublicKey, PrivateKey string }

// Network is Heat's view of Neutron; *neutron.Service is one.
type Network interface {
	Networks(projectID string) []neutron.Network
	CreateNetwork(ctx context.Context, projectID string, request neutron.NetworkRequest) (neutron.Network, error)
	GetNetwork(ctx context.Context, projectID, id string) (neutron.Network, error)
	UpdateNetwork(ctx context.Context, projectID, id string, request neutron.NetworkRequest) (neutron.Network, error)
	DeleteNetwork(ctx context.Context, projectID, id string) error

	Subnets(projectID string) []neutron.Subnet
	CreateSubnet(ctx context.Context, projectID string, request neutron.SubnetRequest) (neutron.Subnet, error)
	GetSubnet(ctx context.Context, projectID, id string) (neutron.Subnet, error)
	UpdateSubnet(ctx context.Context, projectID, id string, request neutron.SubnetRequest) (neutron.Subnet, error)
	DeleteSubnet(ctx context.Context, projectID, id string) error

	CreatePort(ctx context.Context, projectID string, request neutron.PortRequest) (neutron.Port, error)
	GetPort(ctx context.Context, projectID, id string) (neutron.Port, error)
	UpdatePort(ctx context.Context, projectID, id string, request neutron.PortRequest) (neutron.Port, error)
	DeletePort(ctx context.Context, projectID, id string) error

	Routers(projectID string) []neutron.Router
	CreateRouter(ctx context.Context, projectID string, request neutron.RouterRequest) (neutron.Router, error)
	GetRouter(ctx context.Context, projectID, id string) (neutron.Router, error)
	UpdateRouter(ctx context.Context, projectID, id string, request neutron.RouterRequest) (neutron.Router, error)
	DeleteRouter(ctx context.Context, projectID, id string) error
	AddRouterInterface(ctx context.Context, projectID, id string, request neutron.InterfaceRequest) (neutron.RouterInterface, error)
	RemoveRouterInterface(ctx context.Context, projectID, id string, request neutron.InterfaceRequest) (neutron.RouterInterface, error)

	CreateFloatingIP(ctx context.Context, projectID string, request neutron.FloatingIPRequest) (neutron.FloatingIP, error)
	GetFloatingIP(ctx context.Context, projectID, id string) (neutron.FloatingIP, error)
	UpdateFloatingIP(ctx context.Context, projectID, id string, request neutron.FloatingIPRequest) (neutron.FloatingIP, error)
	DeleteFloatingIP(ctx context.Context, projectID, id string) error

	SecurityGroups(projectID string) []neutron.SecurityGroup
	CreateSecurityGroup(ctx context.Context, projectID string, request neutron.SecurityGroupRequest) (neutron.SecurityGroup, error)
	GetSecurityGroup(ctx context.Context, projectID, id string) (neutron.SecurityGroup, error)
	UpdateSecurityGroup(ctx context.Context, projectID, id string, request neutron.SecurityGroupRequest) (neutron.SecurityGroup, error)
	DeleteSecurityGroup(ctx context.Context, projectID, id string) error
	CreateSecurityGroupRule(ctx context.Context, projectID string, request neutron.SecurityGroupRuleRequest) (neutron.SecurityGroupRule, error)
	GetSecurityGroupRule(ctx context.Context, projectID, id string) (neutron.SecurityGroupRule, error)
	DeleteSecurityGroupRule(ctx context.Context, projectID, id string) error

	ServerAddresses(serverID string) []neutron.Address
}
