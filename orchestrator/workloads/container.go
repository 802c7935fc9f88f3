package workloads

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/task"
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

// AnyImage is com.example.docker.DockerApp.
type AnyImage struct{}

func (a AnyImage) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{task.MethodGetContainer: a.container}
}

// container is the application's container: any image, with ports as "80,8443:443" (published, or
// published:container) and environment variables as "NAME=value,…".
func (AnyImage) container(_ context.Context, call muranopl.Call) (any, error) {
	application := call.Object
	scope := "public"
	if publish, ok := application.Get("publish"); ok && publish == false {
		scope = "internal"
	}
	var ports []any
	for part := range strings.SplitSeq(application.Text("ports"), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		outside, inside, two := strings.Cut(part, ":")
		if !two {
			inside = outside
		}
		published, err := strconv.ParseInt(strings.TrimSpace(outside), 10, 64)
		number, err2 := strconv.ParseInt(strings.TrimSpace(inside), 10, 64)
		if err != nil || err2 != nil || !isPort(published) || !isPort(number) {
			return nil, fmt.Errorf("ports of %s: %q is no port: write 80, or 80:8080 to publish port 8080 of the container as 80", application, part)
		}
		ports = append(ports, map[string]any{"port": number, "publishedPort": published, "scope": scope, "protocol": "TCP"})
	}
	env, err := settings(application, "env")
	if err != nil {
		return nil, err
	}
	secrets, err := settings(application, "secretEnv")
	if err != nil {
		return nil, err
	}
	sources, err := sourcesOf(application)
	if err != nil {
		return nil, err
	}
	described := map[string]any{"name": kubeName(application.Text("name")), "image": application.Text("image"), "ports": ports, "env": env, "secretEnv": secrets,
		"envValueFrom": sources}
	for _, property := range []string{"entryPoint", "commands", "volumes", "files", "bootstrap", "bootstrapAfter", "livenessProbe", "readinessProbe", "startupProbe", "resources", "securityContext", "lifecycle", "initContainers", "sidecars", "dependsOn"} {
		if value, ok := application.Get(property); ok {
			described[property] = value
		}
	}
	return described, nil
}

// sourcesOf reads envValueFrom, such as "PASSWORD=secret/db/password, MODE=configMap/settings/mode".
func sourcesOf(application *muranopl.Object) (map[string]any, error) {
	written, err := settings(application, "envValueFrom")
	if err != nil {
		return nil, err
	}
	for name, place := range written {
		parts := strings.Split(fmt.Sprint(place), "/")
		ref, known := map[string]string{"secret": "secretKeyRef", "configMap": "configMapKeyRef"}[parts[0]]
		if len(parts) != 3 || !known || parts[1] == "" || parts[2] == "" {
			return nil, fmt.Errorf("envValueFrom of %s: %s comes from %q: write secret/NAME/KEY or configMap/NAME/KEY, of what the namespace default has", application, name, place)
		}
		written[name] = map[string]any{ref: map[string]any{"name": parts[1], "key": parts[2]}}
	}
	return written, nil
}

// settings reads a property such as "NAME=value, OTHER=value".
func settings(application *muranopl.Object, property string) (map[string]any, error) {
	read := map[string]any{}
	for i, part := range strings.Split(application.Text(property), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%s of %s: the part %d between commas is no setting: write NAME=value", property, application, i+1)
		}
		read[name] = value
	}
	return read, nil
}
