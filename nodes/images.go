package nodes

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/nodes/ssh"
)

// Container images that only Burano has, and no registry, are copied to the minions of a cluster. All present minions get them when pods are to use them,
// since the pods may run on any minion. A new minion gets them before it takes pods.

//go:embed scripts/container-images.sh
var containerImagesScript string

//go:embed scripts/container-image.sh
var containerImageScript string

const (
	stepContainerImages = "images of pods"
	vaultImages         = "container images" // imagesRecord as JSON
	// incoming is where an archive lies on a node until it is imported.
	incoming = "/var/lib/burano/incoming"
	// copiesAtOnce is how many nodes of a cluster get an archive at a time.
	copiesAtOnce = 8
)

// ContainerImage is a container image that Burano has.
type ContainerImage struct {
	Name   string `json:"name"`   // as pods write it
	Digest string `json:"digest"` // of its archive, in hexadecimal digits: another one is another image
	ID     string `json:"id"`     // by which Burano finds it
	// Former is true if pods had it before: it stays so that they can go back to it.
	Former bool `json:"former,omitempty"`
}

// imagesRecord are the images that pods of a cluster need, by their holders.
type imagesRecord map[string][]ContainerImage

func loadImages(ctx context.Context, vault Vault) (imagesRecord, error) {
	record := imagesRecord{}
	text, found, err := vault.Load(ctx, vaultImages)
	if err == nil && found {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return nil, fmt.Errorf("read which container images the nodes have: %w", err)
	}
	return record, nil
}

// all are the images of all holders, each once.
func (r imagesRecord) all() (list []ContainerImage) {
	for _, images := range r {
		for _, image := range images {
			image.Former = false
			if !slices.Contains(list, image) {
				list = append(list, image)
			}
		}
	}
	slices.SortFunc(list, func(a, b ContainerImage) int { return strings.Compare(a.Name+" "+a.Digest, b.Name+" "+b.Digest) })
	return list
}

// ImagesFor are a holder's container images on the nodes of the cluster with this vault.
func ImagesFor(ctx context.Context, vault Vault, holder string) ([]ContainerImage, error) {
	record, err := loadImages(ctx, vault)
	return record[holder], err
}

// HaveImages copies container images to all minions for a holder, in place of the holder's former ones. Nodes that do not answer are passed over: they get
// them with the next deployment. Images without a holder stay on the nodes until their kubelets need the room.
func (c *podImages) HaveImages(ctx context.Context, holder string, images []ContainerImage) error {
	c.imaging.Lock() // two calls that copy the same image to a node would disturb each other
	defer c.imaging.Unlock()
	c.vaultLock.Lock()
	all, err := noteImages(ctx, c.config.Vault, holder, images)
	c.vaultLock.Unlock()
	if err != nil || all == nil {
		return err
	}
	var mutex sync.Mutex
	var failures []error
	var minions, has int
	var group sync.WaitGroup
	for _, node := range c.config.staying() {
		if !node.RunsPods() {
			continue
		}
		minions++
		group.Go(func() {
			err := c.bringImages(ctx, node, all)
			mutex.Lock()
			defer mutex.Unlock()
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", node.Name, err))
				return
			}
			has++
		})
	}
	group.Wait()
	if len(failures) == 0 {
		return nil
	}
	err = errors.Join(failures...)
	if has == 0 && len(images) > 0 || ctx.Err() != nil {
		return fmt.Errorf("bring container images to the nodes: %w", err)
	}
	c.config.Report(ctx, "", fmt.Sprintf("container images did not reach %d of %d nodes, which get them with the next deployment: %v", len(failures), minions, err))
	return nil
}

// noteImages records a holder's images, and returns the images of all holders; nil if neither the holder nor the record has any.
func noteImages(ctx context.Context, vault Vault, holder string, images []ContainerImage) ([]ContainerImage, error) {
	record, err := loadImages(ctx, vault)
	if err != nil {
		return nil, err
	}
	former := record[holder]
	if len(images) == 0 && len(former) == 0 {
		return nil, nil
	}
	if record[holder] = images; len(images) == 0 {
		delete(record, holder)
	}
	if !slices.Equal(former, images) {
		text, err := json.Marshal(record)
		if err != nil {
			return nil, err
		}
		if err := vault.Store(ctx, vaultImages, text); err != nil {
			return nil, fmt.Errorf("note which container images the nodes have: %w", err)
		}
	}
	return append([]ContainerImage{}, record.all()...), nil
}

// bringImages makes a node have these images, and no other copied ones.
func (c *podImages) bringImages(ctx context.Context, node Node, images []ContainerImage) error {
	reach, cancel := context.WithTimeout(ctx, lockedReach)
	client, err := c.connect(reach, node)
	cancel()
	if err != nil {
		return err
	}
	copied := func(ctx context.Context, image ContainerImage, file string) error {
		return c.copyImage(ctx, client, image, file)
	}
	return bringImages(ctx, client, images, copied, func(ctx context.Context, text string) { c.config.Report(ctx, node.Name, text) })
}

// bringImages makes a server have these images, and no other copied ones. copied gives it the archive of one as a file.
func bringImages(ctx context.Context, client *ssh.Client, images []ContainerImage, copied func(ctx context.Context, image ContainerImage, file string) error, report func(ctx context.Context, text string)) error {
	var wanted []string
	for _, image := range images {
		wanted = append(wanted, image.Digest+" "+image.Name)
	}
	out, err := client.Run(ctx, ssh.Script{Name: "look for container images", Body: runtimeScript + containerImagesScript, Env: map[string]string{"WANTED": strings.Join(wanted, "\n")}})
	if err != nil {
		return err
	}
	missing := strings.Fields(out)
	for _, image := range images {
		if !slices.Contains(missing, image.Digest) {
			continue
		}
		file := path.Join(incoming, image.Digest+".tar")
		if err := copied(ctx, image, file); err != nil {
			return err
		}
		_, err = client.Run(ctx, ssh.Script{Name: "import container image " + image.Name, Body: runtimeScript + containerImageScript,
			Env: map[string]string{"FILE": file, "NAME": image.Name, "DIGEST": image.Digest}})
		if err != nil {
			return err
		}
		report(ctx, "container image "+image.Name+" brought")
	}
	return nil
}

// copyImage copies an archive to a node, for only a few nodes at a time: a hundred nodes at once would fill a server's network.
func (c *podImages) copyImage(ctx context.Context, client *ssh.Client, image ContainerImage, file string) error {
	if c.config.Image == nil {
		return fmt.Errorf("nobody has the container image %s", image.Name)
	}
	select {
	case c.copying <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.copying }()
	local, err := c.config.Image(ctx, image)
	if err != nil {
		return err
	}
	return client.Copy(ctx, local, file)
}
