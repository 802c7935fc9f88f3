package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/distribution/v3"
	_ "github.com/distribution/distribution/v3/manifest/ocischema"
	_ "github.com/distribution/distribution/v3/manifest/schema2"
	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/opencontainers/go-digest"
	spec "github.com/opencontainers/image-spec/specs-go/v1"
)

// fill has a registry have the images of a folder's archives, each under its whole name: that of registry.local/demo:1 is HOST/registry.local/demo:1.
func fill(ctx context.Context, images distribution.Namespace, folder string) error {
	archives, err := filepath.Glob(filepath.Join(folder, "*.tar"))
	if err != nil {
		return err
	}
	var failures []error
	for _, archive := range archives {
		if err := take(ctx, images, archive); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", filepath.Base(archive), err))
		}
	}
	return errors.Join(failures...)
}

// take has a registry have the images of an archive.
func take(ctx context.Context, images distribution.Namespace, archive string) error {
	open := func() (io.ReadCloser, error) { return os.Open(archive) }
	list, err := tarball.LoadManifest(open)
	if err != nil {
		return err
	}
	for _, one := range list {
		for _, tag := range one.RepoTags {
			tag, err := name.NewTag(tag)
			if err != nil {
				return err
			}
			image, err := tarball.Image(open, &tag)
			if err != nil {
				return err
			}
			if err := put(ctx, images, tag, image); err != nil {
				return err
			}
		}
	}
	return nil
}

// put has a registry have an image under its name. One that is there is not read.
func put(ctx context.Context, images distribution.Namespace, tag name.Tag, image v1.Image) error {
	named, err := reference.WithName(strings.ReplaceAll(tag.Repository.Name(), ":", "-"))
	if err != nil {
		return err
	}
	found, err := images.Repository(ctx, named)
	if err != nil {
		return err
	}
	manifests, err := found.Manifests(ctx)
	if err != nil {
		return err
	}
	tags, blobs := found.Tags(ctx), found.Blobs(ctx)
	configuration, err := image.ConfigName()
	if err != nil {
		return err
	}
	if present, err := tags.Get(ctx, tag.TagStr()); err == nil {
		if manifest, err := manifests.Get(ctx, present.Digest); err == nil {
			for _, part := range manifest.References() {
				if part.Digest.String() == configuration.String() {
					return nil
				}
			}
		}
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := putLayer(ctx, blobs, layer); err != nil {
			return err
		}
	}
	text, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	if _, err := blobs.Put(ctx, "application/octet-stream", text); err != nil {
		return err
	}
	kind, err := image.MediaType()
	if err != nil {
		return err
	}
	if text, err = image.RawManifest(); err != nil {
		return err
	}
	manifest, descriptor, err := distribution.UnmarshalManifest(string(kind), text)
	if err != nil {
		return err
	}
	if _, err := manifests.Put(ctx, manifest); err != nil {
		return err
	}
	return tags.Tag(ctx, tag.TagStr(), descriptor)
}

func putLayer(ctx context.Context, blobs distribution.BlobStore, layer v1.Layer) error {
	hash, err := layer.Digest()
	if err != nil {
		return err
	}
	wanted := digest.Digest(hash.String())
	if _, err := blobs.Stat(ctx, wanted); err == nil {
		return nil
	}
	content, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer content.Close()
	writer, err := blobs.Create(ctx)
	if err != nil {
		return err
	}
	defer writer.Close()
	size, err := writer.ReadFrom(content)
	if err == nil {
		_, err = writer.Commit(ctx, spec.Descriptor{Digest: wanted, Size: size})
	}
	if err != nil {
		_ = writer.Cancel(ctx)
	}
	return err
}
