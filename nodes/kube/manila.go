package kube

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
)

const (
	// ManilaDriver is the CSI driver of shares of Manila, and ManilaNode the label of nodes that can mount them.
	ManilaDriver = "manila.burano.io"
	ManilaNode   = "manila.burano.io/node"
)

//go:embed manifests/storage-manila.yaml
var manilaManifests []byte

type manilaStorage struct{}

func (manilaStorage) driver() string { return ManilaDriver }

func (manilaStorage) manifests() []byte { return manilaManifests }

func (manilaStorage) refuses(class StorageClass) error {
	if class.FileSystem != "" {
		return errors.New("a share of Manila has the file system of its server: leave fsType out")
	}
	if len(class.Zones) > 1 {
		return fmt.Errorf("zones are %s, and shares of a class are made in one: make a class for each", strings.Join(class.Zones, ", "))
	}
	return checkMountOptions(class.MountOptions)
}

// adapt is storage's. Pods with shares go to nodes that can mount them.
func (manilaStorage) adapt(class StorageClass, object map[string]any) {
	object["allowVolumeExpansion"] = true
	parameters := map[string]any{}
	for name, value := range map[string]string{"type": class.Type, "zone": strings.Join(class.Zones, ""), "shareNetwork": class.ShareNetwork} {
		if value != "" {
			parameters[name] = value
		}
	}
	if class.Reclaim == "Retain" {
		parameters["keep"] = "true" // also when the cluster is deleted
	}
	if len(parameters) > 0 {
		object["parameters"] = parameters
	}
	if len(class.MountOptions) > 0 {
		object["mountOptions"] = texts(class.MountOptions)
	}
	object["allowedTopologies"] = []any{map[string]any{"matchLabelExpressions": []any{map[string]any{"key": ManilaNode, "values": []any{"true"}}}}}
}
