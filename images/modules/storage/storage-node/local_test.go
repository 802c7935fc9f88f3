package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/mount-utils"
)

const volume = "pvc-0a1b2c3d-0000-4000-8000-0123456789ab"

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func expect(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if status.Code(err) != code || code != codes.OK && !strings.Contains(err.Error(), text) {
		t.Fatalf("want %s with %q, got %v", code, text, err)
	}
}

func create(l *localVolumes, name string, size int64) error {
	_, err := l.CreateVolume(context.Background(), &csi.CreateVolumeRequest{Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: size}})
	return err
}

func remove(l *localVolumes, name string) error {
	_, err := l.DeleteVolume(context.Background(), &csi.DeleteVolumeRequest{VolumeId: name})
	return err
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	return must(os.Stat(path))(t).Mode().Perm()
}

func TestAVolumeIsADirectoryThatPodsMayWriteTo(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "volumes")
	l := must(openLocal(folder, mount.NewFakeMounter(nil)))(t)
	expect(t, create(l, volume, 1<<20), codes.OK, "")
	if mode(t, folder) != 0o700 || mode(t, filepath.Join(folder, volume)) != 0o777 {
		t.Fatalf("modes are %o and %o", mode(t, folder), mode(t, filepath.Join(folder, volume)))
	}
	kept := filepath.Join(folder, volume, "kept")
	if err := errors.Join(os.WriteFile(kept, nil, 0o600), os.Chmod(filepath.Join(folder, volume), 0o2770)); err != nil {
		t.Fatal(err)
	}
	expect(t, create(l, volume, 1<<20), codes.OK, "")
	must(os.Stat(kept))(t)
	if mode(t, filepath.Join(folder, volume)) != 0o770 {
		t.Fatal("what a pod has set did not stay")
	}
	expect(t, create(l, strings.Replace(volume, "0a", "0b", 1), 1<<60), codes.ResourceExhausted, "are free in "+folder)
	expect(t, remove(l, volume), codes.OK, "")
	expect(t, remove(l, volume), codes.OK, "")
	if left := must(os.ReadDir(folder))(t); len(left) > 0 {
		t.Fatalf("there is %v", left)
	}
}

func TestNothingOutsideOfItsPlaceIsMadeOrRemoved(t *testing.T) {
	base := t.TempDir()
	folder, other := filepath.Join(base, "volumes"), filepath.Join(base, "other")
	if err := errors.Join(os.Mkdir(other, 0o755), os.WriteFile(filepath.Join(other, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	mounter := mount.NewFakeMounter(nil)
	l := must(openLocal(folder, mounter))(t)
	for _, name := range []string{"", "..", "../other", "pvc-../../other", "/etc", volume + "/..", removing + volume, "PVC" + volume[3:]} {
		expect(t, create(l, name, 1), codes.InvalidArgument, "is no name of a local volume")
		expect(t, remove(l, name), codes.InvalidArgument, "is no name of a local volume")
	}
	expect(t, create(l, volume, 1), codes.OK, "")
	// possible remains of a pod in its volume
	if err := errors.Join(os.Symlink(other, filepath.Join(folder, volume, "link")), os.Symlink("../../other", filepath.Join(folder, volume, "relative"))); err != nil {
		t.Fatal(err)
	}
	mounter.MountPoints = []mount.MountPoint{{Path: filepath.Join(folder, volume, "deep", "mount")}}
	expect(t, remove(l, volume), codes.FailedPrecondition, "is mounted at "+filepath.Join(folder, volume, "deep", "mount"))
	mounter.MountPoints = nil
	expect(t, remove(l, volume), codes.OK, "")
	must(os.Stat(filepath.Join(other, "file")))(t)

	// a link in the place of a volume is none
	if err := os.Symlink(other, filepath.Join(folder, volume)); err != nil {
		t.Fatal(err)
	}
	expect(t, remove(l, volume), codes.OK, "")
	must(os.Stat(filepath.Join(other, "file")))(t)
}

func TestARemovalThatWasInterruptedIsEnded(t *testing.T) {
	folder := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(folder, removing+volume, "a", "b"), 0o755), os.Mkdir(filepath.Join(folder, volume), 0o755), os.Mkdir(filepath.Join(folder, "removing-lost+found"), 0o755)); err != nil {
		t.Fatal(err)
	}
	must(openLocal(folder, mount.NewFakeMounter(nil)))(t)
	left := must(os.ReadDir(folder))(t)
	if len(left) != 2 || left[0].Name() != volume || left[1].Name() != "removing-lost+found" {
		t.Fatalf("there is %v", left)
	}
}

func TestAPodSeesItsVolumeAndNoOther(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
	folder, target := t.TempDir(), filepath.Join(t.TempDir(), "pod", "mount")
	mounter := mount.New("")
	l := must(openLocal(folder, mounter))(t)
	node := newLocalNode("n1", l)
	publish := func(readonly bool) error {
		_, err := node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: volume, TargetPath: target, Readonly: readonly,
			VolumeCapability: &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}}})
		return err
	}
	unpublish := func() error {
		_, err := node.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: target})
		return err
	}
	t.Cleanup(func() { _ = unpublish() })
	expect(t, publish(false), codes.NotFound, "its disk is another one than when the volume was made")
	expect(t, create(l, volume, 1), codes.OK, "")
	for range 2 {
		expect(t, publish(false), codes.OK, "")
	}
	if err := os.WriteFile(filepath.Join(target, "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if content := must(os.ReadFile(filepath.Join(folder, volume, "file")))(t); string(content) != "kept" {
		t.Fatalf("it has %q", content)
	}
	for range 2 {
		expect(t, unpublish(), codes.OK, "")
	}
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is left: %v", target, err)
	}
	expect(t, publish(true), codes.OK, "")
	if err := os.WriteFile(filepath.Join(target, "other"), nil, 0o600); err == nil {
		t.Fatal("it was to be read only")
	}
	block := &csi.NodePublishVolumeRequest{VolumeId: volume, TargetPath: target, VolumeCapability: &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}}
	_, err := node.NodePublishVolume(t.Context(), block)
	expect(t, err, codes.InvalidArgument, "no block device")
}

// authority issues certificates to tests.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	raw := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	return authority{must(x509.ParseCertificate(raw))(t), key}
}

func (a authority) issue(t *testing.T, name string) (certificate, key []byte) {
	own := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	raw := must(x509.CreateCertificate(rand.Reader, template, a.certificate, own.Public(), a.key))(t)
	secret := must(x509.MarshalPKCS8PrivateKey(own))(t)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func TestOnlyTheControllersHaveVolumesMadeAndRemoved(t *testing.T) {
	folder := t.TempDir()
	ours, others := newAuthority(t), newAuthority(t)
	certificate, key := ours.issue(t, "n1")
	free := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	config := controlConfig{Listen: free.Addr().String(), Certificate: filepath.Join(folder, "crt"), Key: filepath.Join(folder, "key"), Authority: filepath.Join(folder, "ca"), Client: "burano:storage"}
	if err := errors.Join(free.Close(), os.WriteFile(config.Certificate, certificate, 0o600), os.WriteFile(config.Key, key, 0o600),
		os.WriteFile(config.Authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ours.certificate.Raw}), 0o600)); err != nil {
		t.Fatal(err)
	}
	l := must(openLocal(filepath.Join(folder, "volumes"), mount.NewFakeMounter(nil)))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- config.serve(l)(ctx) }()
	defer func() { cancel(); <-ended }()

	ask := func(of authority, name string) error {
		certificate, key := of.issue(t, name)
		pair := must(tls.X509KeyPair(certificate, key))(t)
		trusted := x509.NewCertPool()
		trusted.AddCert(ours.certificate)
		connection := must(grpc.NewClient(config.Listen, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: trusted}))))(t)
		defer connection.Close()
		limited, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := csi.NewControllerClient(connection).CreateVolume(limited, &csi.CreateVolumeRequest{Name: volume}, grpc.WaitForReady(name != "stranger"))
		return err
	}
	expect(t, ask(ours, "burano:storage"), codes.OK, "")
	expect(t, ask(ours, "system:node:n2"), codes.PermissionDenied, "only burano:storage has volumes made and removed here")
	if err := ask(others, "stranger"); status.Code(err) != codes.Unavailable {
		t.Fatalf("a certificate of another authority: %v", err)
	}
}

func TestTheKubeletFindsTheDriverAndCallsIt(t *testing.T) {
	kubelet := must(os.MkdirTemp("", "k"))(t) // paths of sockets are short
	t.Cleanup(func() { os.RemoveAll(kubelet) })
	l := must(openLocal(filepath.Join(kubelet, "volumes"), mount.NewFakeMounter(nil)))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- driver{localDriver, newLocalNode("n1", l)}.serve(kubelet)(ctx) }()
	dial := func(path string) *grpc.ClientConn {
		connection := must(grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true))))(t)
		t.Cleanup(func() { connection.Close() })
		return connection
	}
	registrar := registration.NewRegistrationClient(dial(filepath.Join(kubelet, "plugins_registry", "local.burano.io-reg.sock")))
	limited, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	info := must(registrar.GetInfo(limited, &registration.InfoRequest{}))(t)
	if info.Type != registration.CSIPlugin || info.Name != localDriver {
		t.Fatalf("it says %v", info)
	}
	node := csi.NewNodeClient(dial(info.Endpoint))
	if said := must(node.NodeGetInfo(limited, &csi.NodeGetInfoRequest{}))(t); said.NodeId != "n1" {
		t.Fatalf("it says %v", said)
	}
	must(registrar.NotifyRegistrationStatus(limited, &registration.RegistrationStatus{PluginRegistered: true}))(t)
	_, _ = registrar.NotifyRegistrationStatus(limited, &registration.RegistrationStatus{Error: "no room"})
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the kubelet does not take local.burano.io: no room") {
		t.Fatalf("it ended with %v", err)
	}
	cancel()
}
