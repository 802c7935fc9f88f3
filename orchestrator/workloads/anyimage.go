package workloads

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/task"
)

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
