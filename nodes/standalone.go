package nodes

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

//go:embed scripts/standalone.sh
var standaloneScript string

//go:embed scripts/standalone-pods.sh
var standalonePodsScript string

//go:embed scripts/standalone-ask.sh
var standaloneAskScript string

//go:embed scripts/standalone-clear.sh
var standaloneClearScript string

//go:embed scripts/standalone-again.sh
var standaloneAgainScript string

const (
	// standaloneVolumes is where folders that outlive their containers lie.
	standaloneVolumes = "/var/lib/burano/volumes/"
	// standaloneHolder wants the images of a standalone server.
	standaloneHolder = "containers"
)

// Standalone is a server that runs containers and belongs to no cluster.
type Standalone struct {
	Client *ssh.Client
	// Address is one that the server has.
	Address netip.Addr
	// Containers is where containers have their addresses.
	Containers netip.Prefix
	// Runtime runs the containers of a server that begins; one that has begun keeps its own. Containerd when empty.
	Runtime    kube.Runtime
	Registries kube.Registries
	// Vault keeps the list of copied images.
	Vault Vault
	// Image is Config.Image.
	Image func(ctx context.Context, image ContainerImage) (path string, err error)
	// Report gets each finished change.
	Report func(ctx context.Context, text string)
}

// StandaloneVolume is a folder of a standalone server that outlives its container.
type StandaloneVolume struct {
	// Folder is where it lies among the others. One that begins with "with/POD/" goes with the pod of this name.
	Folder string
	// Size is how much room the server's disk must have when the folder is made.
	Size resource.Quantity
}

// Path is where it lies on the server.
func (v StandaloneVolume) Path() string { return standaloneVolumes + v.Folder }

// StandaloneFile is a file of a container of a pod on a standalone server. Its contents never change: other contents have another name.
type StandaloneFile struct {
	Pod, Name string
	Content   []byte
	Mode      os.FileMode
}

// Path is where it lies on the server.
func (f StandaloneFile) Path() string { return path.Join(standaloneVolumes, "files", f.Pod, f.Name) }

// ErrNoRuntime is the error of a server whose image cannot run containers.
var ErrNoRuntime = errors.New("its image has no container runtime and no kubelet: make the server from an image that Burano has built (burano image build)")

// SetUp makes the server run containers: its container runtime and its kubelet run with the wanted settings. Units that already do are left alone.
func (s Standalone) SetUp(ctx context.Context) error {
	var paths []string
	for _, runtime := range []kube.Runtime{kube.Containerd, kube.Docker} {
		sketch, err := kube.Standalone{Host: kube.Host{Machine: true}, Runtime: runtime, Registries: s.Registries, Containers: s.Containers}.Units()
		if err != nil {
			return err
		}
		for _, file := range filesOf(sketch) {
			paths = append(paths, file.Path)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	out, err := s.Client.Run(ctx, ssh.Script{Name: "look around", Body: factsScript, Env: map[string]string{"ADDRESS": s.Address.String(), "PATHS": strings.Join(paths, "\n")}})
	if err != nil {
		return err
	}
	found := parseFacts(out)
	runtime := cmp.Or(found.runtime, s.Runtime, kube.Containerd)
	if runtime == kube.Docker && !found.docker {
		return ErrNoDocker
	}
	units, err := kube.Standalone{Host: found.host, Runtime: runtime, Registries: s.Registries, Containers: s.Containers, MTU: found.mtu}.Units()
	if err != nil {
		return err
	}
	var exit *ssh.ExitError
	_, err = s.Client.Run(ctx, ssh.Script{Name: "prepare for containers", Body: standaloneScript, Env: map[string]string{"CLIENT": kube.StandaloneClient, "PODS": kube.StandalonePods}})
	if errors.As(err, &exit) && exit.Code == 3 {
		return ErrNoRuntime
	}
	if err != nil {
		return err
	}
	missing := found.missing(filesOf(units))
	if err := s.Client.Upload(ctx, missing); err != nil {
		return err
	}
	reload := "no"
	if slices.ContainsFunc(missing, func(file ssh.File) bool { return strings.HasPrefix(file.Path, systemd.Folder) }) {
		reload = "yes"
	}
	if _, err := s.Client.Run(ctx, ssh.Script{Name: "place files", Body: placeFilesScript, Env: map[string]string{"RELOAD": reload}}); err != nil {
		return err
	}
	for i, unit := range units {
		out, err := s.Client.Run(ctx, ssh.Script{Name: "start " + unit.Name, Body: startScript, Env: map[string]string{"UNITS": unit.Name + " " + unit.Fingerprint()}})
		if err != nil {
			return err
		}
		if strings.HasPrefix(out, "started ") {
			s.Report(ctx, unit.Name+" started")
		}
		if i != len(units)-2 { // the last of the runtime, before the kubelet
			continue
		}
		if _, err := s.Client.Run(ctx, ssh.Script{Name: "import container images", Body: runtimeScript + imagesScript}); err != nil { // that of the pause among them
			return err
		}
	}
	return nil
}

func filesOf(units []systemd.Unit) (files []ssh.File) {
	for _, unit := range units {
		files = append(files, unit.Install()...)
	}
	return files
}

// HaveImages copies images to the server, in place of the former ones.
func (s Standalone) HaveImages(ctx context.Context, images []ContainerImage) error {
	all, err := noteImages(ctx, s.Vault, standaloneHolder, images)
	if err != nil || all == nil {
		return err
	}
	return bringImages(ctx, s.Client, all, func(ctx context.Context, image ContainerImage, file string) error {
		local, err := s.Image(ctx, image)
		if err != nil {
			return err
		}
		return s.Client.Copy(ctx, local, file)
	}, func(ctx context.Context, text string) { s.Report(ctx, text) })
}

// StandaloneImages are the copied images of the server with this vault.
func StandaloneImages(ctx context.Context, vault Vault) ([]ContainerImage, error) {
	return ImagesFor(ctx, vault, standaloneHolder)
}

// Run makes the kubelet run these pods and no others. Pods with the same description are left alone. Missing volumes and files are made.
func (s Standalone) Run(ctx context.Context, pods []*corev1.Pod, volumes []StandaloneVolume, mounted []StandaloneFile) error {
	var files, first []ssh.File
	var names, paths, folders []string
	for _, pod := range pods {
		content, err := json.Marshal(pod)
		if err != nil {
			return err
		}
		file := ssh.File{Path: path.Join(kube.StandalonePods, pod.Name+".json"), Content: append(content, '\n'), Mode: 0o600} // secrets are in it
		files, names, paths = append(files, file), append(names, pod.Name+".json"), append(paths, file.Path)
	}
	for _, one := range mounted {
		file := ssh.File{Path: one.Path(), Content: one.Content, Mode: one.Mode}
		if !slices.Contains(paths, file.Path) { // two containers of a pod can have one
			first, paths = append(first, file), append(paths, file.Path)
		}
	}
	for _, volume := range volumes {
		folders = append(folders, fmt.Sprintf("%d %s", volume.Size.Value(), volume.Folder))
	}
	out, err := s.Client.Run(ctx, ssh.Script{Name: "look for containers", Body: factsScript, Env: map[string]string{"ADDRESS": s.Address.String(), "PATHS": strings.Join(paths, "\n")}})
	if err != nil {
		return err
	}
	env := map[string]string{"PODS": kube.StandalonePods, "KEEP": strings.Join(names, "\n"), "VOLUMES": standaloneVolumes, "FOLDERS": strings.Join(folders, "\n")}
	if _, err := s.Client.Run(ctx, ssh.Script{Name: "end containers, make volumes", Body: standalonePodsScript, Env: env}); err != nil {
		return err
	}
	there := parseFacts(out)
	if err := s.Client.Upload(ctx, there.missing(first)); err != nil {
		return err
	}
	return s.Client.Upload(ctx, there.missing(files))
}

// End has the kubelet run the pod of this name no more.
func (s Standalone) End(ctx context.Context, name string) error {
	_, err := s.Client.Run(ctx, ssh.Script{Name: "end container " + name, Body: standalonePodsScript, Env: map[string]string{"PODS": kube.StandalonePods, "END": name + ".json", "VOLUMES": standaloneVolumes}})
	return err
}

// Clear deletes the volumes and files that went with pods which are not described any more, and have ended, and files that no pod mounts any more.
func (s Standalone) Clear(ctx context.Context) error {
	_, err := s.Client.Run(ctx, ssh.Script{Name: "clear volumes", Body: standaloneClearScript, Env: map[string]string{"PODS": kube.StandalonePods, "VOLUMES": standaloneVolumes}})
	return err
}

// EndContainers ends containers by their ids in the container runtime, as Cluster.EndContainers does.
func (s Standalone) EndContainers(ctx context.Context, ids []string) error {
	_, err := s.Client.Run(ctx, ssh.Script{Name: "end containers", Body: runtimeScript + endContainersScript, Env: map[string]string{"IDS": strings.Join(ids, "\n")}})
	return err
}

// Again makes the kubelet repeat at once the work that it has put off after failures. Running containers go on.
func (s Standalone) Again(ctx context.Context) error {
	_, err := s.Client.Run(ctx, ssh.Script{Name: "try containers again", Body: standaloneAgainScript})
	return err
}

// Pods are the kubelet's data about the described pods.
func (s Standalone) Pods(ctx context.Context) ([]corev1.Pod, error) { return s.list(ctx, "pods") }

// Running are the pods with running containers, also pods without a description that have not ended. They have only names and UIDs.
func (s Standalone) Running(ctx context.Context) ([]corev1.Pod, error) {
	return s.list(ctx, "runningpods/")
}

// mostPodsDecoded is how many bytes the kubelet's answer may have in memory.
const mostPodsDecoded = 64 << 20

func (s Standalone) list(ctx context.Context, what string) ([]corev1.Pod, error) {
	text, err := s.ask(ctx, what)
	if err != nil {
		return nil, err
	}
	var list corev1.PodList
	if err := door.DecodeJSON(strings.NewReader(text), &list, int64(len(text)), mostPodsDecoded, "its answer"); err != nil {
		return nil, fmt.Errorf("read what the kubelet says of its pods: %w", err)
	}
	return list.Items, nil
}

// Log returns the last lines that a container of a pod wrote, or that its former run did.
func (s Standalone) Log(ctx context.Context, pod, container string, lines int, previous bool) (string, error) {
	asked := url.Values{"tailLines": {strconv.Itoa(lines)}, "limitBytes": {strconv.Itoa(64 << 10)}}
	if previous {
		asked.Set("previous", "true")
	}
	return s.ask(ctx, path.Join("containerLogs", "default", url.PathEscape(pod), url.PathEscape(container))+"?"+asked.Encode())
}

// ask asks the kubelet.
func (s Standalone) ask(ctx context.Context, what string) (string, error) {
	return s.Client.Run(ctx, ssh.Script{Name: "ask the kubelet", Body: standaloneAskScript, Env: map[string]string{
		"CLIENT": kube.StandaloneClient, "URL": fmt.Sprintf("https://127.0.0.1:%d/%s", kube.StandalonePort, what)}})
}
