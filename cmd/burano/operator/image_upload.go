package operator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	glance "github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/images"
	"github.com/burano/burano/orchestrator/openstack"
)

// imageMark is the value of the property by which Murano's forms find images for Kubernetes nodes.
const imageMark = `{"title": "Burano node", "type": "linux.kubernetes"}`

// digestProperty keeps the digest of an uploaded image, so that the same one is not uploaded again.
const digestProperty = "burano_sha256"

// form is the format of an image's data, by its first bytes.
type form int

const (
	formUnknown form = iota
	formTar          // a root file system, for the local cloud
	formQCOW2
	formDisk // not compressed, with a GUID partition table
)

// formLength is how many bytes tell a form.
const formLength = 520

func formOf(begin []byte) form {
	at := func(offset int, text string) bool {
		return len(begin) >= offset+len(text) && bytes.Equal(begin[offset:offset+len(text)], []byte(text))
	}
	switch {
	case at(0, "QFI\xfb"):
		return formQCOW2
	case at(257, "ustar"):
		return formTar
	case at(512, "EFI PART"):
		return formDisk
	}
	return formUnknown
}

// The least that a node needs, in Glance's units: disk for the system and a cluster's data, and memory for an API server.
const (
	leastDiskGB   = 5
	leastMemoryMB = 1024
)

// diskProperties are those of a disk that hypervisors and people look at
// (https://docs.openstack.org/glance/latest/admin/useful-image-properties.html). The firmware is the cloud's to choose: the disk boots with both.
func diskProperties() map[string]string {
	return map[string]string{
		"architecture": "x86_64", "os_type": "linux", "os_distro": "debian", "os_version": "12",
		"hw_disk_bus": "virtio", "hw_vif_model": "virtio", "hw_rng_model": "virtio",
	}
}

func imageUploadCommand(connection *cli.Connection) *cobra.Command {
	var name string
	var public bool
	command := &cobra.Command{
		Use:   "upload FILE",
		Short: "Upload a node image to Glance, unless the same image exists there",
		Long: `Upload uploads a disk (qcow2 or raw) or, for the local cloud, the tar to Glance. It sets the properties for forms and hypervisors,
and the least disk and memory of a server. It replaces a former image of the same name that Burano uploaded: a disk stays, hidden and under
another name, because servers were made from it; a tar is deleted.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			client, err := connection.Glance(command.Context())
			if err != nil {
				return err
			}
			done, err := uploadImage(command.Context(), client, name, args[0], public)
			if err != nil {
				return err
			}
			state := "is there already"
			if done.new {
				state = "is uploaded"
			}
			fmt.Fprintf(command.OutOrStdout(), "image %s (%s) %s\n", name, done.id, state)
			if done.kubernetes == "" {
				fmt.Fprintf(command.OutOrStdout(), "it does not say which Kubernetes it holds, because the manifest that was built with it does not lie beside %s: "+
					"clusters cannot be upgraded to it (burano image check says more)\n", args[0])
			}
			for _, id := range done.former {
				fmt.Fprintf(command.OutOrStdout(), "the former image %s is hidden now; delete it when no server is left that was made from it\n", id)
			}
			return nil
		},
	}
	command.Flags().StringVar(&name, "name", "burano-node", "name of the image in Glance")
	command.Flags().BoolVar(&public, "public", false, "let every project use the image (for administrators)")
	return command
}

type uploadedImage struct {
	id     string
	new    bool
	former []string // those that are hidden now
	// kubernetes is the version that the image names, such as v1.36.3; "" if it names none.
	kubernetes string
}

// uploadImage puts the file into Glance under the name, in place of another image of that name that was uploaded before.
func uploadImage(ctx context.Context, client *gophercloud.ServiceClient, name, path string, public bool) (uploadedImage, error) {
	kind, err := formOfFile(path)
	if err != nil {
		return uploadedImage{}, err
	}
	digest, err := digestOf(path)
	if err != nil {
		return uploadedImage{}, err
	}
	holds := contentsOf(path, digest)
	found, err := imagesNamed(ctx, client, name)
	if err != nil {
		return uploadedImage{}, err
	}
	var former []glance.Image
	for _, image := range found {
		switch {
		case image.Properties[digestProperty] == nil:
			return uploadedImage{}, fmt.Errorf("image %s (%s) was not uploaded by Burano: delete it, or choose another --name", name, image.ID)
		case image.Properties[digestProperty] == digest && image.Status == glance.ImageStatusActive:
			var change glance.UpdateOpts
			for _, property := range slices.Sorted(maps.Keys(holds)) {
				if image.Properties[property] == nil {
					change = append(change, glance.UpdateImageProperty{Op: glance.AddOp, Name: property, Value: holds[property]})
				}
			}
			if len(change) > 0 {
				if err := glance.Update(ctx, client, image.ID, change).Err; err != nil {
					return uploadedImage{}, fmt.Errorf("have image %s say what it holds: %w", image.ID, err)
				}
			}
			kubernetes, said := image.Properties[openstack.KubernetesProperty].(string)
			if !said {
				kubernetes = holds[openstack.KubernetesProperty]
			}
			return uploadedImage{id: image.ID, kubernetes: kubernetes}, nil
		default:
			former = append(former, image)
		}
	}
	options := glance.CreateOpts{
		Name: name, DiskFormat: "raw", ContainerFormat: "bare", Properties: map[string]string{cli.ImageProperty: imageMark, digestProperty: digest},
	}
	maps.Copy(options.Properties, holds)
	if kind != formTar {
		options.MinDisk, options.MinRAM = leastDiskGB, leastMemoryMB
		maps.Copy(options.Properties, diskProperties())
	}
	if kind == formQCOW2 {
		options.DiskFormat = "qcow2"
	}
	visibility := glance.ImageVisibilityPrivate
	if public {
		visibility = glance.ImageVisibilityPublic
	}
	options.Visibility = &visibility
	created, err := glance.Create(ctx, client, options).Extract()
	if err != nil {
		return uploadedImage{}, fmt.Errorf("create image %s: %w", name, err)
	}
	if err := uploadData(ctx, client, created.ID, path); err != nil {
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return uploadedImage{}, errors.Join(err, glance.Delete(cleanup, client, created.ID).ExtractErr())
	}
	done := uploadedImage{id: created.ID, new: true}
	for _, old := range former {
		hidden, err := retire(ctx, client, old, kind)
		if err != nil {
			return uploadedImage{}, err
		}
		if hidden {
			done.former = append(done.former, old.ID)
		}
	}
	return done, nil
}

func imagesNamed(ctx context.Context, client *gophercloud.ServiceClient, name string) ([]glance.Image, error) {
	pages, err := glance.List(client, glance.ListOpts{Name: name}).AllPages(ctx)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	found, err := glance.ExtractImages(pages)
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	return found, nil
}

// retire takes the name from a former image. One that servers may have been made from stays: clouds rebuild, migrate and check servers by it. A tar,
// which only the local cloud has, and one whose upload has never ended are deleted.
func retire(ctx context.Context, client *gophercloud.ServiceClient, image glance.Image, by form) (hidden bool, err error) {
	if by == formTar || image.Status != glance.ImageStatusActive {
		if err := glance.Delete(ctx, client, image.ID).ExtractErr(); err != nil {
			return false, fmt.Errorf("delete the former image %s: %w", image.ID, err)
		}
		return false, nil
	}
	changes := glance.UpdateOpts{
		glance.ReplaceImageName{NewName: fmt.Sprintf("%s of %s", image.Name, image.CreatedAt.UTC().Format("2006-01-02 15:04:05"))},
		glance.ReplaceImageHidden{NewHidden: true},
	}
	if err := glance.Update(ctx, client, image.ID, changes).Err; err != nil {
		return false, fmt.Errorf("hide the former image %s: %w", image.ID, err)
	}
	return true, nil
}

// contentsOf are the properties of an image that say what clusters look for in it, as the manifest beside the file says; none where there is
// no manifest, or it is of another file.
func contentsOf(path, digest string) map[string]string {
	said := map[string]string{}
	manifest, err := images.ManifestOf(path)
	if err != nil || manifest.SHA256 != digest {
		return said
	}
	for property, version := range map[string]string{
		openstack.KubernetesProperty: manifest.Modules["kubernetes"],
		openstack.KeepalivedProperty: manifest.Packages["keepalived"],
		openstack.StorageProperty:    manifest.Modules["storage"],
		openstack.CinderProperty:     manifest.Modules["cinder"],
		openstack.XFSProperty:        manifest.Packages["xfsprogs"],
		openstack.NFSProperty:        manifest.Packages["nfs-common"],
		openstack.RegistryProperty:   manifest.Modules["distribution"],
		openstack.CalicoProperty:     manifest.Modules["calico-files"],
		openstack.DockerProperty:     manifest.Packages["docker.io"],

		openstack.CalicoDefinitionsProperty: manifest.Modules["calico-definitions"],
	} {
		if version != "" {
			said[property] = version
		}
	}
	return said
}

// formOfFile refuses files that cannot be a node image.
func formOfFile(path string) (form, error) {
	file, err := os.Open(path)
	if err != nil {
		return formUnknown, err
	}
	defer file.Close()
	begin := make([]byte, formLength)
	length, err := io.ReadFull(file, begin)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return formUnknown, fmt.Errorf("read %s: %w", path, err)
	}
	kind := formOf(begin[:length])
	if kind == formUnknown {
		return formUnknown, fmt.Errorf("%s is no node image: it is neither a qcow2 nor a disk with partitions nor a tar; `burano image build` makes one", path)
	}
	return kind, nil
}

// digestOf returns the SHA-256 of a file in hexadecimal digits.
func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

func uploadData(ctx context.Context, client *gophercloud.ServiceClient, id, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	// Without the wrapper the HTTP client would close the file itself.
	if err := imagedata.Upload(ctx, client, id, io.NopCloser(file)).ExtractErr(); err != nil {
		return fmt.Errorf("upload %s: %w", path, err)
	}
	return nil
}
