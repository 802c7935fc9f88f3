package images

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// layerFile is compressed, since it goes to every node.
	layerFile     = "layer.tar.gz"
	inventoryFile = "inventory.json"
)

// layers makes the layer of each recipe over the ones before it.
func (b *builder) layers(ctx context.Context, recipes []layerRecipe, release string) ([]piece, error) {
	var layers []piece
	below := piece{}
	for place, one := range recipes {
		wanted := installation{name: "debian-" + one.element.name, release: release, variant: "essential", packages: one.element.packages, over: below, lean: true}
		system := below
		if place == 0 || len(wanted.packages) > 0 {
			if place > 0 {
				wanted.variant = "custom"
			}
			var err error
			if system, err = b.install(ctx, wanted); err != nil {
				return nil, err
			}
		}
		made, err := b.layer(ctx, one.element, system, below, place+1 < len(recipes))
		if err != nil {
			return nil, err
		}
		layers, below = append(layers, made), made
	}
	return layers, nil
}

// layer lays an element over a Debian system, and packs its differences from the root file system below. A layer that others come over has its whole
// root file system beside it, and an inventory of that.
func (b *builder) layer(ctx context.Context, e element, system, below piece, isBase bool) (piece, error) {
	key := newKey()
	key.add("layer", system.key, below.key, fmt.Sprint(isBase))
	if err := key.addTree(e.folder, nil); err != nil {
		return piece{}, err
	}
	return b.cache.piece(b.progress, "layer-"+e.name, key.String(), "packing the layer "+e.name, func(out string, output io.Writer) error {
		root := filepath.Join(out, "root")
		if err := os.Mkdir(root, 0o755); err != nil {
			return err
		}
		defer os.RemoveAll(root)
		unpack := exec.CommandContext(ctx, "tar", "--extract", "--numeric-owner", "--xattrs", "--xattrs-include=*", "--directory", root,
			"--file", filepath.Join(system.folder, systemFile))
		if err := runCommand(unpack, output); err != nil {
			return err
		}
		if err := e.apply(ctx, root, "", "", output); err != nil {
			return err
		}
		packed := filepath.Join(out, "layer.tar")
		if isBase {
			packed = filepath.Join(out, systemFile)
			if err := writeInventory(root, filepath.Join(out, inventoryFile)); err != nil {
				return err
			}
		}
		if isBase || below.folder == "" {
			if err := pack(ctx, root, packed, output); err != nil {
				return err
			}
		}
		if below.folder != "" {
			packed = filepath.Join(out, "layer.tar")
			if err := packDifferences(ctx, root, filepath.Join(below.folder, inventoryFile), packed, output); err != nil {
				return err
			}
		}
		if err := compress(ctx, packed, filepath.Join(out, layerFile), output); err != nil {
			return err
		}
		if filepath.Base(packed) != systemFile {
			return os.Remove(packed)
		}
		return nil
	})
}

// compress is fast rather than thorough: on a node most of the time of a layer is the disk's.
func compress(ctx context.Context, from, to string, output io.Writer) error {
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "gzip", "--no-name", "--stdout", "-1", from)
	command.Stdout, command.Stderr = target, output
	err = command.Run()
	if err != nil {
		err = fmt.Errorf("run gzip on %s: %w", from, err)
	}
	return errors.Join(err, target.Close())
}

// inventory describes each file and folder of a root file system, by its path.
type inventory map[string]string

func takeInventory(root string) (inventory, error) {
	found := inventory{}
	return found, eachFile(root, func(path string, one entry) error {
		found[path] = fmt.Sprintf("%s %s %s %s", one.mode, one.owner, one.sum, one.target)
		return nil
	})
}

func writeInventory(root, to string) error {
	found, err := takeInventory(root)
	if err != nil {
		return err
	}
	content, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}

// packDifferences writes the layer that makes a root file system of another one. It marks removed files as the image specification of OCI does:
// https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts
func packDifferences(ctx context.Context, root, belowFile, to string, output io.Writer) error {
	content, err := os.ReadFile(belowFile)
	if err != nil {
		return err
	}
	below := inventory{}
	if err := json.Unmarshal(content, &below); err != nil {
		return fmt.Errorf("read %s: %w", belowFile, err)
	}
	above, err := takeInventory(root)
	if err != nil {
		return err
	}
	changed, removed := below.differences(above)
	for _, path := range removed {
		mark := filepath.Join(filepath.Dir(path), ".wh."+filepath.Base(path))
		if err := os.WriteFile(filepath.Join(root, mark), nil, 0o644); err != nil {
			return err
		}
		changed = append(changed, mark)
	}
	slices.Sort(changed)
	list := to + ".list"
	defer os.Remove(list)
	var names strings.Builder
	for _, path := range changed {
		names.WriteString("." + path + "\x00")
	}
	if err := os.WriteFile(list, []byte(names.String()), 0o600); err != nil {
		return err
	}
	return packFiles(ctx, root, to, output, "--no-recursion", "--null", "--files-from", list)
}

// differences are the paths above that are other ones below or missing there, and the uppermost paths that are missing above.
func (below inventory) differences(above inventory) (changed, removed []string) {
	for path, description := range above {
		if path != "/" && below[path] != description {
			changed = append(changed, path)
		}
	}
	for path := range below {
		if _, there := above[path]; there || outsideImages(path) {
			continue
		}
		// What was below a folder that is gone, or that is a file now, goes with it.
		if parent, there := above[filepath.Dir(path)]; there && strings.HasPrefix(parent, "d") {
			removed = append(removed, path)
		}
	}
	return changed, removed
}

// outsideImages is true for files that no image has: see packFiles.
func outsideImages(path string) bool {
	return strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/run/") || strings.HasPrefix(path, "/tmp/")
}
