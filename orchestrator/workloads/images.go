package workloads

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
)

// Container images in Glance are copied to nodes through the server: no node has a credential of the cloud, and Glance takes the place of a missing
// registry.

// imagesOf are the names of the images of containers that Glance is to have, each once.
func imagesOf(containers []container) (names []string) {
	for _, one := range containers {
		names = append(names, imagesOf(one.options.before)...)
		if openstack.IsContainerImage(one.image) {
			names = append(names, one.image)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// imagesIn is imagesOf for pods as they were applied.
func imagesIn(pod corev1.PodSpec) (names []string) {
	for _, one := range slices.Concat(pod.InitContainers, pod.Containers) {
		if openstack.IsContainerImage(one.Image) {
			names = append(names, one.Image)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// haveImages copies images of Glance to the nodes of a pod's cluster. The pod's former images stay there for a rollback.
func (p Pods) haveImages(ctx context.Context, pod *muranopl.Object, names []string) error {
	cluster := pod.Object("kubernetesCluster")
	known, err := nodes.ImagesFor(ctx, known.Vault{Runtime: p.Runtime, Cluster: cluster.ID()}, pod.ID())
	if err != nil || len(names) == 0 && len(known) == 0 {
		return err
	}
	live, err := p.Clusters.Live(cluster)
	if err != nil {
		return err
	}
	return p.Runtime.Step(ctx, pod, "bring container images", func(ctx context.Context) error {
		var wanted []nodes.ContainerImage
		for _, name := range names {
			one, err := p.Images.Find(ctx, known, name, p.Runtime.Deploys())
			if err != nil {
				return err
			}
			wanted = append(wanted, one)
		}
		return live.HaveImages(ctx, pod.ID(), withFormer(wanted, known))
	})
}

// withFormer adds to a pod's wanted images the ones of its former form, out of all its known images.
func withFormer(wanted, known []nodes.ContainerImage) []nodes.ContainerImage {
	isOf := func(list []nodes.ContainerImage) func(nodes.ContainerImage) bool {
		return func(one nodes.ContainerImage) bool {
			return slices.ContainsFunc(list, func(other nodes.ContainerImage) bool { return other.Name == one.Name })
		}
	}
	isWanted := isOf(wanted)
	left := slices.ContainsFunc(known, func(one nodes.ContainerImage) bool { return !one.Former && !isWanted(one) })
	all := slices.Clone(wanted)
	for _, one := range known {
		if !isWanted(one) && one.Former != left {
			one.Former = true
			all = append(all, one)
		}
	}
	return all
}

// Images are the container images in Glance.
type Images struct {
	Runtime interface {
		Project(ctx context.Context) (*openstack.Project, error)
	}
	Logger       *slog.Logger
	Folder       *ImageFolder // nil for a server without one
	Applications []string     // that `burano image build-from` knows
}

// Find finds an image in Glance, or among a pod's former ones: running pods go on without Glance. anew is true if Glance may have another image of
// the name.
func (g Images) Find(ctx context.Context, known []nodes.ContainerImage, name string, anew bool) (nodes.ContainerImage, error) {
	i := slices.IndexFunc(known, func(one nodes.ContainerImage) bool { return one.Name == name })
	var had nodes.ContainerImage
	if i >= 0 {
		had = known[i]
		had.Former = false
	}
	if i >= 0 && !anew {
		return had, nil
	}
	project, err := g.Runtime.Project(ctx)
	if err != nil {
		return nodes.ContainerImage{}, err
	}
	found, there, err := project.ContainerImage(ctx, name)
	switch {
	case there:
		return nodes.ContainerImage{Name: name, ID: found.ID, Digest: found.Digest}, nil
	case i >= 0:
		g.Logger.InfoContext(ctx, "a container image is not in Glance any more; nodes have it", "image", name, "error", err)
		return had, nil
	case err != nil:
		return nodes.ContainerImage{}, err
	}
	return nodes.ContainerImage{}, noImage(name, g.Applications)
}

// noImage is the error for an image that Glance lacks, with the remedy.
func noImage(name string, applications []string) error {
	what := "build it (burano image build-from DIR --name " + name + ")"
	called, _, _ := strings.Cut(strings.TrimPrefix(name, openstack.ContainerHost+"/"), ":")
	if slices.Contains(applications, called) {
		what = "build it (burano image build-from " + called + ")"
	}
	return fault.New(fault.Invalid, "Glance has no container image %s that the project sees: %s and push it (burano image push FILE), or name an image of a registry", name, what)
}

// Load is nodes.Config.Image.
func (g Images) Load(ctx context.Context, image nodes.ContainerImage) (path string, err error) {
	if g.Folder == nil {
		return "", errors.New("this server has no folder for container images")
	}
	project, err := g.Runtime.Project(ctx)
	if err != nil {
		return "", err
	}
	id, err := project.ID()
	if err != nil {
		return "", err
	}
	return g.Folder.get(ctx, id, image, func(ctx context.Context, file *os.File, admit func(context.Context, int64) error) error {
		return project.DownloadImage(ctx, image.ID, file, mostImageBytes, admit)
	})
}

// mostImageBytes is how large an archive may be: it lies on the server's disk.
const mostImageBytes = 4 << 30

// spared is how long an archive lies unused before it makes room for another one: nodes that ask for one at the same time take it within that.
const spared = 10 * time.Minute

// keepImages is how long an archive stays in the folder after it was needed last: nodes that join later have it downloaded again.
const keepImages = 24 * time.Hour

// ImageFolder is where archives of container images lie between Glance and nodes.
type ImageFolder struct {
	folder string
	budget *scratch.Budget
	nameOf func(archive string) (string, error)
	mutex  sync.Mutex
	busy   map[string]*sync.Mutex   // by the digests of images
	rooms  map[string]*scratch.Room // of archives that are there, by their paths
}

// NewImageFolder makes the folder, or empties it: archives have room in the budget for as long as they are there. nameOf reads the name of the one image that
// an archive holds.
func NewImageFolder(path string, budget *scratch.Budget, nameOf func(archive string) (string, error)) (*ImageFolder, error) {
	if err := errors.Join(os.RemoveAll(path), os.MkdirAll(path, 0o700)); err != nil {
		return nil, fmt.Errorf("make the folder of container images: %w", err)
	}
	return &ImageFolder{folder: path, budget: budget, nameOf: nameOf, busy: map[string]*sync.Mutex{}, rooms: map[string]*scratch.Room{}}, nil
}

// download writes an image to a file, once it was admitted that it has so many bytes.
type download func(ctx context.Context, file *os.File, admit func(ctx context.Context, size int64) error) error

// get returns the file of an image, downloaded for a project if it is not there. Of several who want the same one downloads it.
func (f *ImageFolder) get(ctx context.Context, project string, image nodes.ContainerImage, download download) (path string, err error) {
	f.mutex.Lock()
	own := f.busy[image.Digest]
	if own == nil {
		own = &sync.Mutex{}
		f.busy[image.Digest] = own
	}
	f.mutex.Unlock()
	own.Lock()
	defer own.Unlock()
	path = filepath.Join(f.folder, image.Digest+".tar")
	now := time.Now()
	if err := os.Chtimes(path, now, now); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	f.clear(now.Add(-keepImages))
	file, err := os.CreateTemp(f.folder, "coming-")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	var room *scratch.Room
	defer func() {
		if err != nil && room != nil {
			err = errors.Join(err, room.Release())
		}
	}()
	err = download(ctx, file, func(ctx context.Context, size int64) (err error) {
		if !f.budget.Fits(project, size) {
			f.clear(time.Now().Add(-spared))
		}
		room, err = f.budget.Reserve(ctx, project, size)
		return err
	})
	if err := errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	called, err := f.nameOf(file.Name())
	if err != nil || called != image.Name {
		return "", fault.New(fault.Invalid, "image %s of Glance is called %s, and holds no container image of that name: push it with burano image push", image.ID, image.Name)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return "", err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.rooms[path] = room
	return path, nil
}

// clear removes archives that were not needed since a time.
func (f *ImageFolder) clear(since time.Time) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for path, room := range f.rooms {
		info, err := os.Stat(path)
		if err == nil && info.ModTime().After(since) || os.Remove(path) != nil {
			continue
		}
		_ = room.Release() // it has no other files
		delete(f.rooms, path)
	}
}

// NoDocker is the error for an image without the wanted containerRuntime.
func NoDocker(image, server, id string) error {
	return fmt.Errorf("image %s of %s does not say that it has Docker, which containerRuntime asks for: build a node image with it (burano image build --with docker) and upload it, "+
		"or, where this one has it, say so (openstack image set --property %s=VERSION %s)", image, server, openstack.DockerProperty, id)
}
