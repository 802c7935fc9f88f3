package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driver is a CSI driver with its part on nodes.
type driver struct {
	name string
	node csi.NodeServer
}

// serve has the kubelet find the driver, and serves it.
func (d driver) serve(kubelet string) func(context.Context) error {
	return func(ctx context.Context) error {
		socket := pluginSocket(kubelet, d.name)
		refused := make(chan error, 1)
		plugin := grpc.NewServer(grpc.UnaryInterceptor(logged))
		csi.RegisterIdentityServer(plugin, identity{name: d.name})
		csi.RegisterNodeServer(plugin, d.node)
		registrar := grpc.NewServer()
		registration.RegisterRegistrationServer(registrar, &registrationServer{name: d.name, endpoint: socket, refused: refused})
		return all(ctx, []func(context.Context) error{
			serveSocket(plugin, socket),
			serveSocket(registrar, filepath.Join(kubelet, "plugins_registry", d.name+"-reg.sock")),
			func(ctx context.Context) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case err := <-refused:
					return err
				}
			},
		})
	}
}

// serveSocket serves on a socket of its own, which replaces a former process's.
func serveSocket(server *grpc.Server, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		listener, err := net.Listen("unix", path)
		if err != nil {
			return err
		}
		if err := os.Chmod(path, 0o600); err != nil {
			return errors.Join(err, listener.Close())
		}
		return serveListener(ctx, server, listener)
	}
}

func serveListener(ctx context.Context, server *grpc.Server, listener net.Listener) error {
	stop := context.AfterFunc(ctx, server.GracefulStop)
	defer stop()
	if err := server.Serve(listener); err != nil {
		return err
	}
	return ctx.Err()
}

// logged writes each call that changes something, and each error, into the journal.
func logged(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, request)
	volume := ""
	if of, ok := request.(interface{ GetVolumeId() string }); ok {
		volume = of.GetVolumeId()
	}
	switch {
	case err != nil:
		slog.Error("a call has failed", "method", info.FullMethod, "volume", volume, "error", err)
	case volume != "":
		slog.Info("done", "method", info.FullMethod, "volume", volume)
	}
	return answer, err
}

// identity is the driver's Identity service.
type identity struct {
	csi.UnimplementedIdentityServer
	name         string
	capabilities []*csi.PluginCapability
}

func (i identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.name, VendorVersion: "1"}, nil
}

func (i identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: i.capabilities}, nil
}

func (i identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// registrationServer describes the driver to the kubelet, when that finds its socket.
type registrationServer struct {
	registration.UnsafeRegistrationServer
	name, endpoint string
	refused        chan<- error
}

func (r *registrationServer) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus ends the program when the kubelet does not take the driver: it is started again, and offers it again.
func (r *registrationServer) NotifyRegistrationStatus(_ context.Context, said *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !said.PluginRegistered {
		select {
		case r.refused <- fmt.Errorf("the kubelet does not take %s: %s", r.name, said.Error):
		default:
		}
	} else {
		slog.Info("registered at the kubelet", "driver", r.name)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// publishArguments are the common arguments of calls about a mount.
func publishArguments(volume, target string) error {
	if volume == "" || !filepath.IsAbs(target) {
		return status.Errorf(codes.InvalidArgument, "volume %q at %q: say which volume, and at which absolute path", volume, target)
	}
	return nil
}
