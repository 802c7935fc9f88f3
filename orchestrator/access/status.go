package access

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/scaling"
)

// The shapes of a cluster's description.
type (
	// ClusterStatus is a cluster: its nodes as they were when it was last up or changed, and how it is now.
	ClusterStatus struct {
		Name string `json:"name"`
		API  string `json:"api"` // URL at which users reach the API server
		// VirtualAddress is the gateways' shared address; nil for none.
		VirtualAddress *VirtualStatus `json:"virtual_address"`
		// APIAddress is the masters' shared address; nil for none.
		APIAddress *VirtualStatus `json:"api_address"`
		// Registry is the cluster's own registry in names of images; "" for none.
		Registry string         `json:"registry"`
		Healthy  bool           `json:"healthy"`
		Problems []string       `json:"problems"`
		Nodes    []NodeStatus   `json:"nodes"`
		Members  []MemberStatus `json:"members"` // of etcd
		Routes   []RouteStatus  `json:"routes"`
		// Certificates are the authorities and the nodes' certificates, the one first that ends first.
		Certificates []CertificateStatus `json:"certificates"`
		// Rotation of authorities or keys that has begun and not ended; nil for none.
		Rotation *RotationStatus `json:"rotation"`
		// Upgrade is one that has begun and not ended; nil for none.
		Upgrade *known.Upgrade `json:"upgrade"`
		// Groups are the groups of minions, without the list of the cluster's own.
		Groups []scaling.GroupStatus `json:"groups"`
		// GatewayScaling are the limits by which the number of gateways follows connections; nil where it does not.
		GatewayScaling *scaling.GatewayScaling `json:"gateway_scaling"`
	}
	// VirtualStatus is an address that gateways or masters share.
	VirtualStatus struct {
		Address  string `json:"address"`
		Floating string `json:"floating_address"` // "" for none
	}
	// RotationStatus is a rotation: parts of the cluster's trust, and how far it has come.
	RotationStatus struct {
		Parts []pki.Part `json:"parts"`
		Stage pki.Stage  `json:"stage"`
		Began time.Time  `json:"began"`
	}
	// NodeStatus is a server with a role.
	NodeStatus struct {
		Name      string     `json:"name"`
		Role      nodes.Role `json:"role"`
		Address   string     `json:"address"`
		Floating  string     `json:"floating_address"` // "" for none
		Server    string     `json:"server"`           // id in Nova
		External  bool       `json:"external"`         // a machine of its own, and no server in Nova
		Reachable bool       `json:"reachable"`        // over SSH
		Ready     *bool      `json:"ready"`            // takes pods; null where there is no kubelet, or it is not known
		Version   string     `json:"version"`          // of the kubelet
		// State is the users' choice: "" for none, cordoned (takes no new pods) or locked (takes none, and is left alone).
		State string `json:"state"`
		// Labels and Taints are the ones in Kubernetes, whoever has set them. Where it does not answer, they are Set's, which are set through Burano and
		// stay with the node.
		Labels map[string]string `json:"labels"`
		Taints []kube.Taint      `json:"taints"`
		Set    NodeSet           `json:"set"`
	}
	// NodeSet are the users' settings of a node through Burano.
	NodeSet struct {
		Labels map[string]string `json:"labels"`
		Taints []kube.Taint      `json:"taints"`
	}
	// MemberStatus is a member of etcd.
	MemberStatus struct {
		Name    string `json:"name"`
		Learner bool   `json:"learner"`
		Healthy bool   `json:"healthy"`
		Size    int64  `json:"size"`   // bytes of its store's file; 0 where it does not answer
		InUse   int64  `json:"in_use"` // of them
		Quota   int64  `json:"quota"`  // of the file: beyond it nothing can be written
		Full    bool   `json:"full"`   // nothing can be written
	}
	// CertificateStatus is a certificate of a node, or an authority.
	CertificateStatus struct {
		Node    string    `json:"node"` // "" for an authority
		Name    string    `json:"name"`
		Expires time.Time `json:"expires"`
	}
	// RouteStatus is a port of the gateways with its servers.
	RouteStatus struct {
		Namespace   string          `json:"namespace"`
		Service     string          `json:"service"`
		Port        string          `json:"port"`
		GatewayPort uint16          `json:"gateway_port"`
		Backends    []BackendStatus `json:"backends"`
	}
	// BackendStatus is a pod behind a route.
	BackendStatus struct {
		Address  string `json:"address"`
		Port     uint16 `json:"port"`
		Node     string `json:"node"`
		Ready    bool   `json:"ready"`
		Draining bool   `json:"draining"`
	}
)

// Status describes the cluster that this object of the environment is, and asks it how it is. A cluster that was never up is a fault
// of kind NotFound; one that does not answer is described with its problems.
func (c Clusters) Status(ctx context.Context, environmentID, objectID string) (ClusterStatus, error) {
	facts, cluster, err := known.Open(ctx, c.Secrets, environmentID, objectID, nodes.Config{Logger: c.Config.Logger, Connected: c.Config.Connected, Patience: known.ReachPatience})
	if err != nil {
		return ClusterStatus{}, err
	}
	defer cluster.Close()
	asked, cancel := context.WithTimeout(ctx, known.AnswerPatience)
	defer cancel()
	found := cluster.Status(asked, nil)
	certificates, err := cluster.Certificates(ctx)
	if err != nil {
		return ClusterStatus{}, err
	}
	status := ClusterStatus{Name: facts.Name, API: facts.API, Registry: facts.Registry, Healthy: len(found.Problems) == 0, Problems: append([]string{}, found.Problems...),
		Nodes: []NodeStatus{}, Members: []MemberStatus{}, Routes: []RouteStatus{}, Certificates: []CertificateStatus{}}
	status.VirtualAddress, status.APIAddress = virtualStatus(facts.Virtual), virtualStatus(facts.APIAddress)
	for _, one := range certificates {
		status.Certificates = append(status.Certificates, CertificateStatus(one))
	}
	rotation, err := cluster.Rotation(ctx)
	if err != nil {
		return ClusterStatus{}, err
	}
	if rotation != nil {
		status.Rotation = &RotationStatus{Parts: rotation.Parts, Stage: rotation.Stage, Began: rotation.Began}
	}
	if status.Upgrade, err = known.LoadUpgrade(ctx, c.vault(environmentID, objectID).Load); err != nil {
		return ClusterStatus{}, err
	}
	if status.Groups, err = scaling.GroupStatuses(ctx, c.vault(environmentID, objectID).Load, facts); err != nil {
		return ClusterStatus{}, err
	}
	if facts.Gateways != nil {
		record, err := scaling.LoadGatewayRecord(ctx, c.vault(environmentID, objectID).Load)
		if err != nil {
			return ClusterStatus{}, err
		}
		status.GatewayScaling = &scaling.GatewayScaling{GatewayLimits: *facts.Gateways, Last: record.Last}
	}
	for _, node := range found.Nodes {
		status.Nodes = append(status.Nodes, nodeStatus(node))
	}
	for _, member := range found.Members {
		status.Members = append(status.Members, MemberStatus{Name: member.Name, Learner: member.Learner, Healthy: member.Answers && !member.Space.Full,
			Size: member.Space.Size, InUse: member.Space.InUse, Quota: member.Space.Quota, Full: member.Space.Full})
	}
	for _, one := range found.Routes {
		status.Routes = append(status.Routes, routeStatus(one))
	}
	return status, ctx.Err()
}

func nodeStatus(node nodes.NodeStatus) NodeStatus {
	status := NodeStatus{Name: node.Name, Role: node.Role, Address: addressText(node.Address), Floating: addressText(node.Access),
		Server: node.Server, External: node.Machine != nil, Reachable: node.Reached, Ready: node.Ready, Version: node.Version, Labels: map[string]string{}, Taints: []kube.Taint{},
		Set: NodeSet{map[string]string{}, append([]kube.Taint{}, node.Settings.Taints...)}}
	now := node.Settings
	if node.Kubernetes != nil {
		now = *node.Kubernetes
	}
	maps.Copy(status.Set.Labels, node.Settings.Labels)
	maps.Copy(status.Labels, now.Labels)
	status.Taints = append(status.Taints, now.Taints...)
	switch {
	case node.Settings.Locked:
		status.State = "locked"
	case now.Cordoned:
		status.State = "cordoned"
	}
	return status
}

// virtualStatus is the status of an address that nodes share; nil for none.
func virtualStatus(shared nodes.VirtualAddress) *VirtualStatus {
	if !shared.Address.IsValid() {
		return nil
	}
	return &VirtualStatus{Address: shared.Address.String(), Floating: addressText(shared.Access)}
}

func addressText(address netip.Addr) string {
	if !address.IsValid() {
		return ""
	}
	return address.String()
}

func routeStatus(one route.Route) RouteStatus {
	status := RouteStatus{Namespace: one.Namespace, Service: one.Service, Port: one.Port, GatewayPort: one.GatewayPort, Backends: []BackendStatus{}}
	for _, b := range one.Backends {
		status.Backends = append(status.Backends, BackendStatus(b))
	}
	return status
}
