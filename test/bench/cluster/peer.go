package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ed25519"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/internal/wait"
	nodes "github.com/burano/burano/nodes/ssh"
)

// peerChange is the name of kubeadm's measurement. It makes less than Burano does for 1+1+1: no gateway, no DNS, no kube-proxy, no network between nodes,
// and an etcd of one member without users.
const peerChange = "kubeadm 1+1"

// stackPolicy is the interval between requests to Heat for the stack of kubeadm's servers.
var stackPolicy = wait.Every(100 * time.Millisecond)

var (
	//go:embed peer.yaml
	peerTemplate []byte
	//go:embed peer.sh
	peerScript string
)

// peer is kubeadm on servers of the same cloud and image.
type peer struct {
	lab      *lab
	heat     *gophercloud.ServiceClient
	signer   ssh.Signer
	program  string   // kubeadm
	version  string   // of Kubernetes, "v1.36.3"
	archives []string // the container images of its control plane
}

// newPeer packs the node image's own programs as the container images that kubeadm asks for, so that both run the same.
func (l *lab) newPeer(ctx context.Context, program, image string) (*peer, error) {
	p := &peer{lab: l, program: program}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	if p.signer, err = ssh.NewSignerFromKey(key); err != nil {
		return nil, err
	}
	authentication, endpoints, tls, err := clouds.Parse(clouds.WithCloudName("burano-demo"), clouds.WithLocations(l.clouds()))
	if err != nil {
		return nil, err
	}
	provider, err := config.NewProviderClient(ctx, authentication, config.WithTLSConfig(tls))
	if err != nil {
		return nil, err
	}
	if p.heat, err = openstack.NewOrchestrationV1(provider, endpoints); err != nil {
		return nil, err
	}
	if p.version, err = output(ctx, program, "version", "--output", "short"); err != nil {
		return nil, err
	}
	list, err := output(ctx, program, "config", "images", "list", "--kubernetes-version", p.version, "--image-repository", "registry.local/kubeadm")
	if err != nil {
		return nil, err
	}
	for _, reference := range strings.Fields(list) {
		tag, err := name.NewTag(reference)
		if err != nil {
			return nil, err
		}
		role := filepath.Base(tag.RepositoryStr())
		file := map[string]string{"kube-apiserver": "kubernetes", "kube-controller-manager": "kubernetes", "kube-scheduler": "kubernetes", "etcd": "etcd"}[role]
		if file == "" {
			continue
		}
		content, err := output(ctx, "tar", "--extract", "--to-stdout", "--file", image, "./opt/burano/bin/"+file)
		if err != nil {
			return nil, err
		}
		made, err := programImage(role, content)
		if err != nil {
			return nil, err
		}
		archive := filepath.Join(l.folder, role+".tar")
		if err := tarball.WriteToFile(archive, tag, made); err != nil {
			return nil, err
		}
		p.archives = append(p.archives, archive)
	}
	return p, nil
}

// programImage makes an image with one program in its path.
func programImage(program, content string) (v1.Image, error) {
	var layer bytes.Buffer
	writer := tar.NewWriter(&layer)
	err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "usr/local/bin/" + program, Mode: 0o755, Size: int64(len(content))})
	if err == nil {
		_, err = writer.Write([]byte(content))
	}
	if err = errors.Join(err, writer.Close()); err != nil {
		return nil, err
	}
	made, err := mutate.AppendLayers(empty.Image, static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer))
	if err != nil {
		return nil, err
	}
	settings, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	settings = settings.DeepCopy()
	settings.OS, settings.Architecture = "linux", runtime.GOARCH // neither containerd includes a platform equal to its own
	settings.Config.Env = []string{"PATH=/usr/local/bin"}
	return mutate.ConfigFile(made, settings)
}

func output(ctx context.Context, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	var said bytes.Buffer
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, &said)
	}
	if program != "tar" {
		out = bytes.TrimSpace(out)
	}
	return string(out), nil
}

// measure makes a control plane and a node, and measures from the call of Heat until both are ready. The copying of programs and images to the
// servers is not counted: the node image has Burano's already.
func (p *peer) measure(ctx context.Context) (one measurement, err error) {
	const stack = "kubeadm"
	one.change = peerChange
	defer func() {
		gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, p.remove(gone, stack))
	}()
	var addresses map[string]string
	if err := p.counted(&one, func() (err error) {
		addresses, err = p.create(ctx, stack)
		return err
	}); err != nil {
		return one, err
	}
	servers := map[string]*nodes.Client{}
	for role, address := range addresses {
		if servers[role], err = nodes.Dial(ctx, nodes.Config{Address: address + ":22", Signer: p.signer, FirstUse: true}); err != nil {
			return one, err
		}
		defer servers[role].Close()
	}
	var prepared errgroup.Group
	for role, server := range servers {
		prepared.Go(func() error {
			var archives []string
			if role == "master" {
				for _, archive := range p.archives {
					remote := "/root/" + filepath.Base(archive)
					if err := server.Copy(ctx, archive, remote); err != nil {
						return err
					}
					archives = append(archives, remote)
				}
			}
			if err := server.Copy(ctx, p.program, "/root/kubeadm"); err != nil {
				return err
			}
			_, err := server.Run(ctx, nodes.Script{Name: "prepare", Body: peerScript, Env: map[string]string{"ARCHIVES": strings.Join(archives, " ")}})
			return err
		})
	}
	if err := prepared.Wait(); err != nil {
		return one, err
	}
	return one, p.counted(&one, func() error { return p.join(ctx, servers["master"], servers["minion"]) })
}

// counted adds the time and processor time of the work to the measurement.
func (p *peer) counted(one *measurement, work func() error) error {
	before, err := p.lab.processorTime()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := work(); err != nil {
		return err
	}
	one.seconds += time.Since(began).Seconds()
	after, err := p.lab.processorTime()
	one.used += (after - before).Seconds()
	return err
}

func (p *peer) create(ctx context.Context, stack string) (map[string]string, error) {
	userData, err := json.Marshal(map[string]any{"ssh_authorized_keys": []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(p.signer.PublicKey())))},
		"runcmd": []string{"ssh-keygen -A", "systemctl reset-failed ssh", "systemctl start ssh"}})
	if err != nil {
		return nil, err
	}
	if _, err := stacks.Create(ctx, p.heat, stacks.CreateOpts{Name: stack, TemplateOpts: &stacks.Template{TE: stacks.TE{Bin: peerTemplate}},
		Parameters: map[string]any{"user_data": "#cloud-config\n" + string(userData)}}).Extract(); err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	err = stackPolicy.Until(ctx, func(ctx context.Context) error {
		found, err := stacks.Find(ctx, p.heat, stack).Extract()
		if err != nil {
			return err
		}
		switch found.Status {
		case "CREATE_COMPLETE":
			for _, one := range found.Outputs {
				addresses[fmt.Sprint(one["output_key"])] = fmt.Sprint(one["output_value"])
			}
			return nil
		case "CREATE_FAILED":
			return fmt.Errorf("the stack of kubeadm's servers failed: %s", found.StatusReason)
		}
		return wait.Again(fmt.Errorf("the stack of kubeadm's servers is %s", found.Status))
	})
	return addresses, err
}

func (p *peer) remove(ctx context.Context, stack string) error {
	found, err := stacks.Find(ctx, p.heat, stack).Extract()
	if gophercloud.ResponseCodeIs(err, 404) {
		return nil
	} else if err != nil {
		return err
	}
	if err := stacks.Delete(ctx, p.heat, stack, found.ID).ExtractErr(); err != nil {
		return err
	}
	return stackPolicy.Until(ctx, func(ctx context.Context) error {
		now, err := stacks.Get(ctx, p.heat, stack, found.ID).Extract()
		switch {
		case gophercloud.ResponseCodeIs(err, 404) || err == nil && now.Status == "DELETE_COMPLETE":
			return nil
		case err != nil:
			return err
		case now.Status == "DELETE_FAILED":
			return fmt.Errorf("the stack of kubeadm's servers stays: %s", now.StatusReason)
		}
		return wait.Again(fmt.Errorf("the stack of kubeadm's servers is %s", now.Status))
	})
}

// join runs the commands that a user of kubeadm types on two prepared servers.
func (p *peer) join(ctx context.Context, master, minion *nodes.Client) error {
	settings := fmt.Sprintf(`apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
skipPhases: [addon/coredns, addon/kube-proxy, show-join-command]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %s
imageRepository: registry.local/kubeadm
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
failSwapOn: false
failCgroupV1: false
oomScoreAdj: 0
maxOpenFiles: 16384
resolvConf: ""
evictionHard: {nodefs.available: 1%%, imagefs.available: 1%%, memory.available: 50Mi}
`, p.version)
	if err := master.Upload(ctx, []nodes.File{{Path: "/root/kubeadm.yaml", Content: []byte(settings)}}); err != nil {
		return err
	}
	if _, err := master.Run(ctx, nodes.Script{Name: "kubeadm init", Body: "/root/kubeadm init --config /root/kubeadm.yaml --ignore-preflight-errors=all"}); err != nil {
		return err
	}
	command, err := master.Run(ctx, nodes.Script{Name: "kubeadm token", Body: "/root/kubeadm token create --print-join-command 2>/dev/null"})
	if err != nil {
		return err
	}
	if _, err := minion.Run(ctx, nodes.Script{Name: "kubeadm join", Body: "/root/" + strings.TrimSpace(command) + " --ignore-preflight-errors=all"}); err != nil {
		return err
	}
	_, err = master.Run(ctx, nodes.Script{Name: "wait for the nodes", Body: `/opt/burano/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf wait --for=condition=Ready node/master node/minion --timeout=2m`})
	return err
}
