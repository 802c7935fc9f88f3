package workloads

import (
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
)

// values reads properties of something that an application describes: an object of a class, or a map of the same shape.
type values func(property string) any

func valuesOf(value any) (values, bool) {
	switch value := value.(type) {
	case *muranopl.Object:
		return func(property string) any { got, _ := value.Get(property); return got }, true
	case map[string]any:
		return func(property string) any { return value[property] }, true
	}
	return nil, false
}

func (v values) text(property string) string { text, _ := v(property).(string); return text }

// containerOf reads the result of getContainer.
func containerOf(application *muranopl.Object, value any) (container, error) {
	read, ok := valuesOf(value)
	if !ok {
		return container{}, fmt.Errorf("getContainer of %s returned no com.mirantis.docker.DockerContainer but %T", application, value)
	}
	one := container{application: application.ID(), name: read.text("name"), image: read.text("image"), env: map[string]string{}, volumes: map[string]volume{}}
	if one.name == "" || one.image == "" {
		return one, fmt.Errorf("getContainer of %s returned a container without a name or an image", application)
	}
	one.privileged, _ = read("privileged").(bool)
	one.commands = read.texts("commands")
	env, _ := read("env").(map[string]any)
	for name, value := range env {
		one.env[name] = fmt.Sprint(value)
	}
	ports, _ := read("ports").([]any)
	for _, described := range ports {
		opened, err := portOf(described)
		if err != nil {
			return one, fmt.Errorf("getContainer of %s: %w", application, err)
		}
		one.ports = append(one.ports, opened)
	}
	volumes, _ := read("volumes").(map[string]any)
	for path, described := range volumes {
		mounted, err := volumeOf(described)
		if err != nil {
			return one, fmt.Errorf("getContainer of %s: the volume at %s: %w", application, path, err)
		}
		one.volumes[path] = mounted
	}
	dependsOn, _ := read("dependsOn").([]any)
	for _, needs := range dependsOn {
		object, ok := needs.(*muranopl.Object)
		if !ok {
			return one, fmt.Errorf("getContainer of %s: dependsOn of container %s has %v, which is no application: write objects of the model", application, one.name, needs)
		}
		one.dependsOn = append(one.dependsOn, object)
	}
	options, err := read.containerOptions(application, one.env)
	if err != nil {
		return one, fmt.Errorf("getContainer of %s: container %s: %w", application, one.name, err)
	}
	one.options = options
	for _, file := range options.files {
		if _, both := one.volumes[file.path]; both {
			return one, fmt.Errorf("getContainer of %s: container %s has a volume and a file at %s: leave one of them out", application, one.name, file.path)
		}
	}
	return one, nil
}

// portOf reads an ApplicationPort. A port without a published number of its own is published under its number in the container.
func portOf(value any) (port, error) {
	read, ok := valuesOf(value)
	if !ok {
		return port{}, fmt.Errorf("a port is no com.mirantis.docker.ApplicationPort but %T", value)
	}
	number, _ := read("port").(int64)
	published, _ := read("publishedPort").(int64)
	if published == 0 {
		published = number
	}
	if !isPort(number) || !isPort(published) {
		return port{}, fmt.Errorf("%d:%d are no ports: a port is a number from 1 to 65535", published, number)
	}
	opened := port{number: int32(number), published: int32(published), protocol: read.text("protocol"), scope: read.text("scope")}
	if opened.protocol == "" {
		opened.protocol = "TCP"
	}
	if opened.scope == "" {
		opened.scope = "public"
	}
	return opened, nil
}

func isPort(number int64) bool { return 1 <= number && number <= 65535 }
