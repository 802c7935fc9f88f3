package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ImagesFile lists the images that servers of a package's applications boot from. Only clients read it, as Murano's do.
const ImagesFile = "images.lst"

// Image is a package's description of an image that should be in Glance.
type Image struct {
	Name, DiskFormat, ContainerFormat string
	URL                               string // where it is; "" for images/<Name> of the package's repository
	Hash                              string // as written, may be ""
	// Info is the expected property murano_image_info of the image: JSON with title and type; "" for none.
	Info string
}

// Images reads images.lst, and returns its faults, with places; without the file there are none. Incompletely described images are left out.
func (p *Package) Images() ([]Image, []*Placed) {
	text, err := p.optional(ImagesFile)
	if err != nil {
		return nil, []*Placed{placed(ImagesFile, err, err).(*Placed)}
	}
	if text == nil {
		return nil, nil
	}
	var document yaml.Node
	if err := unmarshalYAML(text, &document); err != nil {
		return nil, []*Placed{placed(ImagesFile, fmt.Errorf("this is no YAML: %w", err), err).(*Placed)}
	}
	var r imagesReader
	if len(document.Content) == 0 {
		return nil, nil
	}
	root := resolve(document.Content[0])
	list := entry(root, "Images")
	switch {
	case root.Kind != yaml.MappingNode:
		r.wrong(root, "it should be a map with the key Images")
	case list == nil:
	case list.Kind != yaml.SequenceNode:
		r.wrong(list, "Images should be a list of maps with Name, DiskFormat and ContainerFormat")
	default:
		for _, item := range list.Content {
			r.image(resolve(item))
		}
	}
	return r.images, r.problems
}

type imagesReader struct {
	images   []Image
	problems []*Placed
}

func (r *imagesReader) wrong(node *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, &Placed{File: ImagesFile, Line: node.Line, Column: node.Column, Err: fmt.Errorf(format, args...)})
}

func (r *imagesReader) image(node *yaml.Node) {
	if node.Kind != yaml.MappingNode {
		r.wrong(node, "an image should be a map with Name, DiskFormat and ContainerFormat")
		return
	}
	var image Image
	texts := map[string]*string{"Name": &image.Name, "DiskFormat": &image.DiskFormat, "ContainerFormat": &image.ContainerFormat,
		"Url": &image.URL, "Hash": &image.Hash}
	known := []string{"Name", "DiskFormat", "ContainerFormat", "Url", "Hash", "Meta"}
	unknown := 0 // unknown keys do no harm, and the image is still valid
	before := len(r.problems)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolve(node.Content[i+1])
		switch target := texts[key.Value]; {
		case key.Value == "Meta":
			r.info(&image, value)
		case target == nil:
			r.wrong(key, "an image has no %s; known are %s", short(key.Value), strings.Join(known, ", "))
			unknown++
		case value.Kind != yaml.ScalarNode:
			r.wrong(value, "%s should be a text", key.Value)
		case !isNull(value):
			*target = value.Value
		}
	}
	for _, key := range known[:3] {
		if *texts[key] == "" {
			r.wrong(node, "an image needs a %s", key)
		}
	}
	if len(r.problems) == before+unknown {
		r.images = append(r.images, image)
	}
}

func (r *imagesReader) info(image *Image, meta *yaml.Node) {
	var value any
	if err := meta.Decode(&value); err != nil || meta.Kind != yaml.MappingNode {
		r.wrong(meta, "Meta should be a map with title and type")
		return
	}
	text, err := json.Marshal(jsonable(value))
	if err != nil {
		r.wrong(meta, "Meta cannot be written as JSON: %v", err)
		return
	}
	image.Info = string(text)
}
