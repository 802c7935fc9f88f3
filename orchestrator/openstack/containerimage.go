package openstack

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

const (
	// ContainerHost begins the names of container images that Glance has, in the place of a registry's host.
	ContainerHost = "glance.local"
	// ContainerFormat is the container format of such an image in Glance.
	ContainerFormat = "docker"
)

// IsContainerImage reports whether a container image's name refers to Glance.
func IsContainerImage(name string) bool { return strings.HasPrefix(name, ContainerHost+"/") }

// ContainerImage is a container image in Glance.
type ContainerImage struct {
	ID string
	// Digest identifies the content: SHA-512 in hexadecimal digits, or an older Glance's checksum.
	Digest string
}

var safeDigest = regexp.MustCompile(`^[0-9a-zA-Z-]{1,128}$`)

// ContainerImage finds a container image by its name: the project's own before one that others share, and of several the newest. found is false where
// there is none.
func (p *Project) ContainerImage(ctx context.Context, name string) (image ContainerImage, found bool, err error) {
	client, err := p.Glance.client()
	if err != nil {
		return image, false, err
	}
	list, err := listAll(ctx, images.List(client, images.ListOpts{Name: name, ContainerFormat: ContainerFormat, Status: images.ImageStatusActive}), images.ExtractImages)
	if err != nil {
		return image, false, fmt.Errorf("ask Glance for the container image %s: %w", name, err)
	}
	if len(list) == 0 {
		return image, false, nil
	}
	own, err := p.ID()
	if err != nil {
		return image, false, err
	}
	foreign := func(one images.Image) int {
		if one.Owner == own {
			return 0
		}
		return 1
	}
	best := slices.MinFunc(list, func(a, b images.Image) int {
		return cmp.Or(cmp.Compare(foreign(a), foreign(b)), b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	hash, _ := best.Properties["os_hash_value"].(string)
	image = ContainerImage{ID: best.ID, Digest: cmp.Or(hash, best.Checksum, best.ID)}
	if !safeDigest.MatchString(image.Digest) {
		return image, false, fmt.Errorf("the hash of image %s is %q, says Glance, which is none", best.ID, image.Digest)
	}
	return image, true, nil
}

// reachable is an answer whose reading, where it breaks off, is an outage.
type reachable struct{ io.Reader }

func (r reachable) Read(into []byte) (int, error) {
	n, err := r.Reader.Read(into)
	if err != nil && !errors.Is(err, io.EOF) && !door.IsExceeded(err) {
		err = &unreachable{err}
	}
	return n, err
}

// DownloadImage writes the data of an image, so many bytes at most, to a file, once admit has let their number pass. Where Glance knows their SHA-512, that is
// checked. Too many bytes are a fault of kind Invalid.
func (g Glance) DownloadImage(ctx context.Context, id string, file *os.File, most int64, admit func(ctx context.Context, size int64) error) error {
	client, err := g.client()
	if err != nil {
		return err
	}
	if err := identified("image", id); err != nil {
		return err
	}
	image, err := images.Get(ctx, client, id).Extract()
	if err != nil {
		return fmt.Errorf("ask Glance for image %s: %w", id, err)
	}
	if image.SizeBytes > most {
		return fault.New(fault.Invalid, "image %s has %d MB, and Burano brings container images of up to %d MB to nodes: use a registry for it", image.Name, image.SizeBytes/1e6, most/1e6)
	}
	if err := admit(ctx, image.SizeBytes); err != nil {
		return fmt.Errorf("download image %s: %w", id, err)
	}
	var hash hash.Hash
	err = Patiently(ctx, "image", func(ctx context.Context) error {
		data, err := imagedata.Download(streamed(ctx), client, id).Extract()
		if err != nil {
			return err
		}
		defer data.Close()
		// The next try overwrites the data of the former one.
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		hash = sha512.New()
		size, err := io.Copy(io.MultiWriter(file, hash), reachable{door.Reader(data, image.SizeBytes, "it")})
		if err == nil && size != image.SizeBytes {
			err = fmt.Errorf("%d of %d bytes came", size, image.SizeBytes)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("download image %s: %w", id, err)
	}
	algorithm, _ := image.Properties["os_hash_algo"].(string)
	if wanted := image.Properties["os_hash_value"]; algorithm == "sha512" && wanted != hex.EncodeToString(hash.Sum(nil)) {
		return fmt.Errorf("download image %s: what came has another SHA-512 than Glance says", id)
	}
	return nil
}
