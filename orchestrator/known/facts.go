package known

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/orchestrator/desired"
)

const (
	// FactsName is the secret with a cluster's facts.
	FactsName = "facts"
	// LabelGroup is the label of a Kubernetes node with the name of its group.
	LabelGroup = "burano.io/group"
)

// Facts are a cluster's data for use without its model.
type Facts struct {
	Name  string       `json:"name"`
	API   string       `json:"api"` // URL at which users reach the API server
	Nodes []nodes.Node `json:"nodes"`
	// Network is where the nodes' addresses are; former versions did not note it.
	Network netip.Prefix `json:"network,omitzero"`
	// Further are further networks of nodes.
	Further []netip.Prefix `json:"further,omitempty"`
	// Addressing has the ranges of pods and Services; former versions had no choice, and did not store it.
	Addressing network.Addressing `json:"addressing,omitzero"`
	// Datastore is where the pod network keeps its data; former versions had no choice, and did not store it.
	Datastore network.Datastore `json:"datastore,omitempty"`
	// Encapsulation is of packets between its pods, and goes into its snapshots; former versions did not store it.
	Encapsulation network.Encapsulation `json:"encapsulation,omitempty"`
	// Virtual is the address that the gateways share; the zero value for none.
	Virtual nodes.VirtualAddress `json:"virtual,omitzero"`
	// APIAddress is the address that the masters share; the zero value for none.
	APIAddress nodes.VirtualAddress `json:"api_address,omitzero"`
	// SnapshotContainer is the address of the container for the cluster's snapshots, "" where there is none.
	SnapshotContainer string `json:"snapshot_container,omitempty"`
	// Groups are the groups of minions of the last deployment.
	Groups []GroupFact `json:"groups,omitempty"`
	// Gateways are the limits by which the number of gateways follows connections; nil where it does not.
	Gateways *desired.GatewayLimits `json:"gateways,omitempty"`
	// Registry is the name of the cluster's own registry, "" for none.
	Registry string `json:"registry,omitempty"`
}

// GroupFact has a group's data for use outside of tasks.
type GroupFact struct {
	Name    string `json:"name"`
	Minimum *int   `json:"minimum"` // null where it does not follow its load
	Maximum int    `json:"maximum"`
	After   int    `json:"scale_down_after"` // seconds
}

// Clone is a copy whose lists may be changed.
func (f *Facts) Clone() *Facts {
	if f == nil {
		return nil
	}
	copied := *f
	copied.Nodes, copied.Groups = slices.Clone(f.Nodes), slices.Clone(f.Groups)
	return &copied
}

// Node finds a node that the cluster had last.
func (f *Facts) Node(name string) (nodes.Node, bool) {
	if f != nil {
		for _, node := range f.Nodes {
			if node.Name == name {
				return node, true
			}
		}
	}
	return nodes.Node{}, false
}

// FactsOf has the stored data of a cluster, outside of tasks.
func FactsOf(ctx context.Context, keep EnvironmentVault) (known Facts, err error) {
	text, found, err := keep.Load(ctx, FactsName)
	if err != nil {
		return known, err
	}
	if !found {
		return known, fault.New(fault.NotFound, "Object %s is no Kubernetes cluster that was ever up: deploy the environment first", keep.Cluster)
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return known, fmt.Errorf("read the facts of cluster %s: %w", keep.Cluster, err)
	}
	return known, nil
}

// Convert reads a value's JSON into a struct: attributes are stored as maps.
func Convert(value, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// Namespace is where applications run.
const Namespace = "default"
