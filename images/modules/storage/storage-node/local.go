package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/mount-utils"
)

// localDriver is the driver of volumes that are directories of one node. A directory has no size limit: all volumes of a node share its file system.
const localDriver = "local.burano.io"

// removing begins the names of directories that are being removed. They are no volumes any more.
const removing = "removing-"

// localName matches the controllers' names of volumes: nothing that leads out of the folder.
var localName = regexp.MustCompile(`^pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// localVolumes are the directories of a folder, of which each is a volume.
type localVolumes struct {
	csi.UnimplementedControllerServer
	folder  string
	root    *os.Root
	mounter mount.Interface

	mutex sync.Mutex // one volume is made or removed at a time
}

// openLocal opens the folder, which only root may enter, and completes the removals of a former process.
func openLocal(folder string, mounter mount.Interface) (*localVolumes, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of local volumes: %w", err)
	}
	if err := os.Chmod(folder, 0o700); err != nil { // volumes are open to all users: pods cannot reach each other's
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of local volumes: %w", err)
	}
	l := &localVolumes{folder: folder, root: root, mounter: mounter}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if name, begun := strings.CutPrefix(entry.Name(), removing); begun && localName.MatchString(name) {
			if err := l.remove(name); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// path of a volume that is there.
func (l *localVolumes) path(name string) (string, error) {
	if !localName.MatchString(name) {
		return "", status.Errorf(codes.InvalidArgument, "%q is no name of a local volume", name)
	}
	info, err := l.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return "", status.Errorf(codes.NotFound, "volume %s is not on this node (in %s): its disk is another one than when the volume was made, and what was in it is not here", name, l.folder)
	}
	return filepath.Join(l.folder, name), err
}

// CreateVolume makes a directory that every user may write to: pods need not be root. It does so where there is as much room as is asked for, which
// nothing keeps for it.
func (l *localVolumes) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if !localName.MatchString(r.Name) {
		return nil, status.Errorf(codes.InvalidArgument, "%q is no name of a local volume", r.Name)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if _, err := l.path(r.Name); err != nil {
		if status.Code(err) != codes.NotFound {
			return nil, err
		}
		var state syscall.Statfs_t
		if err := syscall.Statfs(l.folder, &state); err != nil {
			return nil, fmt.Errorf("look how much room there is: %w", err)
		}
		if free := int64(state.Bavail) * state.Bsize; r.GetCapacityRange().GetRequiredBytes() > free {
			return nil, status.Errorf(codes.ResourceExhausted, "%d bytes are asked for, and %d are free in %s", r.GetCapacityRange().GetRequiredBytes(), free, l.folder)
		}
		if err := l.root.Mkdir(r.Name, 0o700); err != nil {
			return nil, err
		}
	}
	// also after an incomplete former call; a pod's later changes stay
	info, err := l.root.Stat(r.Name)
	if err == nil && info.Mode().Perm() == 0o700 {
		err = l.root.Chmod(r.Name, 0o777)
	}
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: r.Name, CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}}, nil
}

// DeleteVolume removes a directory with its content. A volume with a mount below it stays until that is gone.
func (l *localVolumes) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	path, err := l.path(r.VolumeId)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	mounts, err := l.mounter.List()
	if err != nil {
		return nil, fmt.Errorf("look for mounts: %w", err)
	}
	for _, mount := range mounts {
		if mount.Path == path || strings.HasPrefix(mount.Path, path+"/") {
			return nil, status.Errorf(codes.FailedPrecondition, "something is mounted at %s, which is not removed with the volume: unmount it on the node", mount.Path)
		}
	}
	if err := l.root.Rename(r.VolumeId, removing+r.VolumeId); err != nil {
		return nil, err
	}
	if err := l.remove(r.VolumeId); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// remove ends the removal of a volume, and follows no link.
func (l *localVolumes) remove(name string) error {
	if err := l.root.RemoveAll(removing + name); err != nil {
		return fmt.Errorf("remove the directory of volume %s: %w", name, err)
	}
	return nil
}

// controlConfig has the address of the service that makes and removes volumes, and its client.
type controlConfig struct{ Listen, Certificate, Key, Authority, Client string }

// serve serves only the controllers, which are on other nodes.
func (c controlConfig) serve(volumes *localVolumes) func(context.Context) error {
	return func(ctx context.Context) error {
		if c.Client == "" {
			return errors.New("say whom to serve: --client")
		}
		pair, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
		if err != nil {
			return fmt.Errorf("read the certificate: %w", err)
		}
		authority, err := os.ReadFile(c.Authority)
		if err != nil {
			return fmt.Errorf("read the authority: %w", err)
		}
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(authority) {
			return fmt.Errorf("%s has no certificate", c.Authority)
		}
		secured := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13})
		server := grpc.NewServer(grpc.Creds(secured), grpc.ChainUnaryInterceptor(c.admit, logged))
		csi.RegisterControllerServer(server, volumes)
		listener, err := net.Listen("tcp", c.Listen)
		if err != nil {
			return err
		}
		return serveListener(ctx, server, listener)
	}
}

// admit lets only the controllers call.
func (c controlConfig) admit(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	from, _ := peer.FromContext(ctx)
	if info, ok := from.AuthInfo.(credentials.TLSInfo); !ok || len(info.State.PeerCertificates) == 0 || info.State.PeerCertificates[0].Subject.CommonName != c.Client {
		return nil, status.Errorf(codes.PermissionDenied, "only %s has volumes made and removed here", c.Client)
	}
	return handler(ctx, request)
}

// localNode is the node's part of the driver.
type localNode struct {
	csi.UnimplementedNodeServer
	name    string
	volumes *localVolumes
}

func newLocalNode(name string, volumes *localVolumes) localNode {
	return localNode{name: name, volumes: volumes}
}

func (n localNode) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: capabilities(csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)}, nil
}

func (n localNode) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name}, nil
}

// NodePublishVolume shows a pod its volume.
func (n localNode) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := publishArguments(r.VolumeId, r.TargetPath); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability().GetMount() == nil {
		return nil, status.Error(codes.InvalidArgument, "a local volume is a directory and no block device")
	}
	source, err := n.volumes.path(r.VolumeId)
	if err != nil {
		return nil, err
	}
	options := []string{"bind"}
	if r.Readonly {
		options = append(options, "ro")
	}
	if err := bindOnce(n.volumes.mounter, source, r.TargetPath, options); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n localNode) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return unpublish(n.volumes.mounter, r)
}

// unpublish takes a volume from where a pod saw it.
func unpublish(mounter mount.Interface, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := publishArguments(r.VolumeId, r.TargetPath); err != nil {
		return nil, err
	}
	if err := mount.CleanupMountPoint(r.TargetPath, mounter, true); err != nil {
		return nil, fmt.Errorf("unmount %s: %w", r.TargetPath, err)
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func capabilities(list ...csi.NodeServiceCapability_RPC_Type) (all []*csi.NodeServiceCapability) {
	for _, one := range list {
		all = append(all, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: one}}})
	}
	return all
}

// bindOnce binds a directory at a target that may be there, and bound, already.
func bindOnce(mounter mount.Interface, source, target string, options []string) error {
	if err := os.MkdirAll(target, 0o750); err != nil {
		return fmt.Errorf("make the place of the volume: %w", err)
	}
	there, err := mounter.IsMountPoint(target)
	if err != nil {
		return fmt.Errorf("look at %s: %w", target, err)
	}
	if there {
		return nil
	}
	if err := mounter.Mount(source, target, "", options); err != nil {
		return fmt.Errorf("bind %s at %s: %w", source, target, err)
	}
	return nil
}
