package kube

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

const (
	// StorageUnit makes and removes volumes, on masters; StorageNodeUnit has pods of its minion use them. Both come with the image.
	StorageUnit     = "storage-controllers"
	StorageNodeUnit = "storage-node"
	// StorageProgram is on nodes whose image can serve volumes.
	StorageProgram = bin + StorageNodeUnit
	// StoragePort is where the minions' program gets the orders of the masters' program to make and remove local volumes, on the minions' addresses.
	StoragePort = 10271
	// LocalVolumes is the folder of local volumes on a minion. A machine that leaves the cluster keeps it.
	LocalVolumes = "/var/lib/burano-volumes"
	// LocalDriver is the CSI driver of local volumes.
	LocalDriver = "local.burano.io"
	// CinderDriver is the CSI driver of Cinder's volumes, CinderNode the label of nodes to which they can be attached, and CinderZone that of these nodes' zones.
	CinderDriver = "cinder.burano.io"
	CinderNode   = "cinder.burano.io/node"
	CinderZone   = "cinder.burano.io/zone"
	// StorageSocket is where the Burano server connects, over SSH; it asks the cloud on behalf of a master's program.
	StorageSocket = "/run/burano-storage/server.sock"
	// LabelStorage is the label of the storage classes that Burano has made.
	LabelStorage = "burano.io/storage"

	storagePair     = "storage"      // of the masters' program, towards the API server and the minions
	storageNodePair = "storage-node" // of the minions' program
	storageUser     = "burano:storage"
)

// Storage is the back-end of a class of volumes.
type Storage string

const (
	// Local is the back-end whose volumes are directories of one node.
	Local Storage = "local"
	// Cinder is the back-end whose volumes are the cloud's, attached to the server of the node where they are used.
	Cinder Storage = "cinder"
	// Manila is the back-end whose volumes are shares of the cloud, which all nodes that use one mount over NFS.
	Manila Storage = "manila"
)

// Storages are all back-ends.
func Storages() []Storage { return []Storage{Cinder, Local, Manila} }

// storage is a back-end's part in Kubernetes.
type storage interface {
	// driver is its CSI driver.
	driver() string
	// refuses returns an error for settings of a class that it does not support.
	refuses(class StorageClass) error
	// adapt adds the settings that only this back-end has to the object of a class.
	adapt(class StorageClass, object map[string]any)
	// manifests are the objects that it needs beside its classes.
	manifests() []byte
}

// backend is the implementation of a back-end; nil for an unknown one.
func (s Storage) backend() storage {
	switch s {
	case Local:
		return localStorage{}
	case Cinder:
		return cinderStorage{}
	case Manila:
		return manilaStorage{}
	}
	return nil
}

// Driver is the CSI driver of the back-end.
func (s Storage) Driver() string { return s.backend().driver() }

// Manifests are the objects that the back-end needs beside its classes.
func (s Storage) Manifests() []byte { return s.backend().manifests() }

// StorageClass is a kind of volumes that claims may ask for.
type StorageClass struct {
	Name    string
	Backend Storage
	Type    string // of volumes, as the back-end calls it; "" for its own default
	Default bool   // for claims that name no class
	Reclaim string // Delete or Retain
	// Zones are where volumes are made: in the one, or of several in that of the node which uses the volume. None are the back-end's own choice.
	Zones        []string
	FileSystem   string // ext4 or xfs; "" for ext4
	MountOptions []string
	ShareNetwork string // of Manila, by name or id; "" for none
}

// Follows is true if volumes of the class are made in the zones of the nodes that use them.
func (c StorageClass) Follows() bool { return len(c.Zones) > 1 }

// XFS is the file system that nodes have whose image has xfsprogs.
const XFS = "xfs"

// Newer is true if the class needs parts that nodes of older images do not have; nodes with xfsprogs have them all.
func (c StorageClass) Newer() bool { return c.FileSystem == XFS || c.Follows() }

var className = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// CheckStorageClasses returns all problems of the classes.
func CheckStorageClasses(classes []StorageClass) (problems []error) {
	var names, defaults []string
	for _, class := range classes {
		wrong := func(format string, arguments ...any) {
			problems = append(problems, fmt.Errorf("storage class %q: "+format, append([]any{class.Name}, arguments...)...))
		}
		if !className.MatchString(class.Name) {
			wrong("a name has small letters, digits, hyphens and dots only")
		}
		if slices.Contains(names, class.Name) {
			wrong("there are two of that name")
		}
		names = append(names, class.Name)
		if class.Default {
			defaults = append(defaults, class.Name)
		}
		if class.Reclaim != "Delete" && class.Reclaim != "Retain" {
			wrong("reclaimPolicy is %q: say Delete or Retain", class.Reclaim)
		}
		backend := class.Backend.backend()
		if backend == nil {
			wrong("there is no back-end %q: there are %v", class.Backend, Storages())
			continue
		}
		if err := backend.refuses(class); err != nil {
			wrong("%w", err)
		}
	}
	if len(defaults) > 1 {
		problems = append(problems, fmt.Errorf("storage classes %s are all the default: one can be", strings.Join(defaults, ", ")))
	}
	return problems
}

// Object is the class as Kubernetes knows it.
func (c StorageClass) Object() *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata":          map[string]any{"name": c.Name, "labels": map[string]any{LabelStorage: string(c.Backend)}},
		"provisioner":       c.Backend.Driver(),
		"reclaimPolicy":     c.Reclaim,
		"volumeBindingMode": "WaitForFirstConsumer",
	}
	if c.Default {
		object["metadata"].(map[string]any)["annotations"] = map[string]any{"storageclass.kubernetes.io/is-default-class": "true"}
	}
	c.Backend.backend().adapt(c, object)
	return &unstructured.Unstructured{Object: object}
}

//go:embed manifests/storage-rights.yaml
var storageRights []byte

//go:embed manifests/storage-local.yaml
var localManifests []byte

// StorageRights are the rights of the masters' program in Kubernetes.
func StorageRights() []byte { return storageRights }

type localStorage struct{}

func (localStorage) driver() string { return LocalDriver }

func (localStorage) manifests() []byte { return localManifests }

func (localStorage) refuses(class StorageClass) error {
	switch {
	case class.Type != "":
		return fmt.Errorf("type is %q, and a local volume is a directory, which has no type: leave it out", class.Type)
	case len(class.Zones) > 0:
		return fmt.Errorf("zones are %s, and a local volume is on the node of its first pod: leave them out, and have the pod say where it runs", strings.Join(class.Zones, ", "))
	case class.FileSystem != "" || len(class.MountOptions) > 0:
		return errors.New("a local volume is a directory, and has no file system of its own: leave fsType and mountOptions out")
	case class.ShareNetwork != "":
		return fmt.Errorf("shareNetwork is %q, which shares of Manila alone have: leave it out", class.ShareNetwork)
	}
	return nil
}

// adapt is storage's. A directory has no size that could change.
func (localStorage) adapt(_ StorageClass, object map[string]any) {
	object["allowVolumeExpansion"] = false
}

//go:embed manifests/storage-cinder.yaml
var cinderManifests []byte

type cinderStorage struct{}

func (cinderStorage) driver() string { return CinderDriver }

func (cinderStorage) manifests() []byte { return cinderManifests }

func (cinderStorage) refuses(class StorageClass) error {
	if class.FileSystem != "" && class.FileSystem != "ext4" && class.FileSystem != XFS {
		return fmt.Errorf("fsType is %q: say ext4 or xfs", class.FileSystem)
	}
	if class.ShareNetwork != "" {
		return fmt.Errorf("shareNetwork is %q, which shares of Manila alone have: leave it out", class.ShareNetwork)
	}
	if err := checkMountOptions(class.MountOptions); err != nil {
		return err
	}
	for i, zone := range class.Zones {
		if wrong := validation.IsValidLabelValue(zone); class.Follows() && (zone == "" || len(wrong) > 0) {
			return fmt.Errorf("zones have %q, which cannot be the label of a node, by which pods find their volumes: name one zone alone, or zones whose names are labels", zone)
		}
		if slices.Contains(class.Zones[:i], zone) {
			return fmt.Errorf("zones have %s twice", zone)
		}
	}
	return nil
}

func checkMountOptions(options []string) error {
	for _, option := range options {
		if option == "" || strings.ContainsAny(option, ", \t\n") {
			return fmt.Errorf("mountOptions have %q: say one option in each entry, such as noatime", option)
		}
	}
	return nil
}

// adapt is storage's. Pods with such volumes go to nodes to which they can be attached.
func (cinderStorage) adapt(class StorageClass, object map[string]any) {
	object["allowVolumeExpansion"] = true
	parameters := map[string]any{}
	if class.Type != "" {
		parameters["type"] = class.Type
	}
	switch {
	case class.Follows():
		parameters["zones"] = strings.Join(class.Zones, ",")
	case len(class.Zones) > 0:
		parameters["zone"] = class.Zones[0]
	}
	if class.FileSystem == XFS {
		parameters["csi.storage.k8s.io/fstype"] = XFS
	}
	if class.Reclaim == "Retain" {
		parameters["keep"] = "true" // also when the cluster is deleted
	}
	if len(parameters) > 0 {
		object["parameters"] = parameters
	}
	if len(class.MountOptions) > 0 {
		object["mountOptions"] = texts(class.MountOptions)
	}
	where := []any{map[string]any{"key": CinderNode, "values": []any{"true"}}}
	if class.Follows() {
		where = append(where, map[string]any{"key": CinderZone, "values": texts(class.Zones)})
	}
	object["allowedTopologies"] = []any{map[string]any{"matchLabelExpressions": where}}
}

func texts(list []string) (all []any) {
	for _, one := range list {
		all = append(all, one)
	}
	return all
}

// StorageOrders are the certificates of a master's program.
func (c Cluster) StorageOrders() map[string]pki.Order {
	return map[string]pki.Order{storagePair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: storageUser, Usage: pki.Client}}}
}

// StorageNodeOrders are the certificates of a minion's program.
func (c Cluster) StorageNodeOrders(node Node) map[string]pki.Order {
	return map[string]pki.Order{storageNodePair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: "burano:storage-node", DNS: []string{node.Name},
		IP: []netip.Addr{c.Primary(node)}, Usage: pki.Server}}}
}

// StorageControllers is the unit of a master's program, which serves these back-ends. It asks the API server, and minions, with the same certificate. With
// name, it stands for election under that name; name is "" where there is no other master.
func (c Cluster) StorageControllers(backends []Storage, name string, pairs map[string]pki.Pair) (systemd.Unit, error) {
	access, err := c.kubeconfigFile("storage", storageUser, pairs[storagePair])
	if err != nil {
		return systemd.Unit{}, err
	}
	command := program(StorageUnit, "--kubeconfig="+access.Path)
	if slices.Contains(backends, Local) {
		command = append(command, "--local")
	}
	if slices.Contains(backends, Cinder) {
		command = append(command, "--cinder="+StorageSocket)
	}
	if slices.Contains(backends, Manila) {
		command = append(command, "--manila="+StorageSocket)
	}
	if name != "" {
		command = append(command, "--elect="+name)
	}
	return systemd.Unit{
		Name:        StorageUnit,
		Description: "volumes for claims",
		Command:     command,
		Files:       []ssh.File{access},
	}, nil
}

// StorageNode is the unit of a minion's program, which serves these back-ends. zone is the node's; "" where it is not known, or its program does not take it.
func (c Cluster) StorageNode(node Node, zone string, backends []Storage, pairs map[string]pki.Pair) systemd.Unit {
	command := program(StorageNodeUnit, "--node="+node.Name)
	var files []ssh.File
	if slices.Contains(backends, Local) {
		command = append(command, "--local="+LocalVolumes,
			"--listen="+netip.AddrPortFrom(c.Primary(node), StoragePort).String(),
			"--certificate="+keys+storageNodePair+".crt",
			"--key="+keys+storageNodePair+".key",
			"--authority="+keys+"kubernetes-ca.crt",
			"--client="+storageUser)
		files = append(pairFiles(storageNodePair, pairs[storageNodePair]), c.authorityFile())
	}
	if slices.Contains(backends, Cinder) {
		command = append(command, "--cinder")
		if zone != "" {
			command = append(command, "--zone="+zone)
		}
	}
	if slices.Contains(backends, Manila) {
		command = append(command, "--manila")
	}
	return systemd.Unit{
		Name:        StorageNodeUnit,
		Description: "volumes of pods",
		Command:     command,
		Files:       files,
	}
}

// replaced is true if an existing class must be made again to be as wanted: Kubernetes lets no client change these fields.
func replaced(there, wanted *unstructured.Unstructured) bool {
	for _, field := range []string{"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode", "allowedTopologies", "mountOptions"} {
		former, _ := json.Marshal(there.Object[field])
		now, _ := json.Marshal(wanted.Object[field])
		if string(former) != string(now) {
			return true
		}
	}
	return false
}

// ownClass is true if Burano has made a class.
func ownClass(object *unstructured.Unstructured) bool {
	return ours(object) && object.GetLabels()[LabelStorage] != ""
}

// EnsureStorageClasses changes Burano's classes in a cluster to these. Volumes do not notice: they keep the settings that their class had when they were
// made. A class of such a name by another maker stays as it is; left names it. changed describes the changes, for people.
func EnsureStorageClasses(ctx context.Context, config *rest.Config, classes []StorageClass) (changed, left []string, err error) {
	client, err := NewClient(config)
	if err != nil {
		return nil, nil, err
	}
	resource := client.dynamic.Resource(schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"})
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("look at storage classes: %w", err)
	}
	there := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		one := &list.Items[i]
		there[one.GetName()] = one
		wanted := slices.ContainsFunc(classes, func(class StorageClass) bool { return class.Name == one.GetName() })
		if ownClass(one) && !wanted {
			if err := resource.Delete(ctx, one.GetName(), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return nil, nil, fmt.Errorf("remove storage class %s: %w", one.GetName(), err)
			}
			changed = append(changed, one.GetName()+" removed")
		}
	}
	for _, class := range classes {
		object, former := class.Object(), there[class.Name]
		switch {
		case former == nil:
			changed = append(changed, class.Name+" made")
		case !ownClass(former):
			left = append(left, class.Name)
			continue
		case replaced(former, object):
			if err := resource.Delete(ctx, class.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				return nil, nil, fmt.Errorf("replace storage class %s: %w", class.Name, err)
			}
			changed = append(changed, class.Name+" replaced")
		}
		if err := client.Apply(ctx, Manager, object); err != nil {
			return nil, nil, err
		}
	}
	return changed, left, nil
}

// Volume is a volume that a cluster has.
type Volume struct {
	Name   string
	Handle string // its back-end's name
	Claim  string // with its namespace; "" for none
	Node   string // whose directory it is; "" where it is in no node
}

// String names it as users know it.
func (v Volume) String() string {
	if v.Claim == "" {
		return "volume " + v.Name
	}
	return v.Claim
}

// Volumes are the volumes of a back-end.
func Volumes(ctx context.Context, config *rest.Config, of Storage) (list []Volume, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return volumesOf(ctx, client, of)
}

func volumesOf(ctx context.Context, client kubernetes.Interface, of Storage) (list []Volume, err error) {
	all, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("look at volumes: %w", err)
	}
	for _, one := range all.Items {
		if one.Spec.CSI == nil || one.Spec.CSI.Driver != of.Driver() {
			continue
		}
		volume := Volume{Name: one.Name, Handle: one.Spec.CSI.VolumeHandle, Node: one.Spec.CSI.VolumeAttributes["node"]}
		if claim := one.Spec.ClaimRef; claim != nil {
			volume.Claim = claim.Namespace + "/" + claim.Name
		}
		list = append(list, volume)
	}
	slices.SortFunc(list, func(a, b Volume) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.String(), b.String())) })
	return list, nil
}

// Attached are the names of the volumes of back-ends that are attached to a node, or being attached or detached.
func Attached(ctx context.Context, config *rest.Config, node string, of ...Storage) (volumes []string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	all, err := client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("look at what is attached: %w", err)
	}
	for _, one := range all.Items {
		if one.Spec.NodeName == node && slices.ContainsFunc(of, func(s Storage) bool { return s.Driver() == one.Spec.Attacher }) && one.Spec.Source.PersistentVolumeName != nil {
			volumes = append(volumes, *one.Spec.Source.PersistentVolumeName)
		}
	}
	slices.Sort(volumes)
	return volumes, nil
}

// MoveZones corrects the zone of nodes whose zone differs from these (by the names of nodes, "" where it is not known). The kubelet does not change the
// label of a registered driver, and refuses the driver. MoveZones returns the names of the changed nodes.
func MoveZones(ctx context.Context, config *rest.Config, zones map[string]string) (moved []string, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return moveZones(ctx, client, zones)
}

func moveZones(ctx context.Context, client kubernetes.Interface, zones map[string]string) (moved []string, err error) {
	all, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: CinderZone})
	if err != nil {
		return nil, fmt.Errorf("look at the zones of nodes: %w", err)
	}
	for _, node := range all.Items {
		zone := zones[node.Name]
		if zone == "" || zone == node.Labels[CinderZone] {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{CinderZone: zone}}})
		if err != nil {
			return moved, err
		}
		if _, err := client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return moved, fmt.Errorf("have node %s say that it is in zone %s: %w", node.Name, zone, err)
		}
		moved = append(moved, node.Name)
	}
	return moved, nil
}
