package native

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
)

// anyImage is com.example.docker.DockerApp.
type anyImage struct{}

func (a anyImage) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{methodGetContainer: a.container}
}

// container is the application's container: any image, with ports as "80,8443:443" (published, or
// published:container) and environment variables as "NAME=value,…".
func (anyImage) container(_ context.Context, call muranopl.Call) (any, error) {
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
	described := map[string]any{"name": kubeName(application.Text("name")), "image": application.Text("image"), "ports": ports, "env": env, "secretEnv": secrets}
	for _, property := range []string{"entryPoint", "commands", "volumes", "livenessProbe", "readinessProbe", "startupProbe", "resources", "initContainers"} {
		if value, ok := application.Get(property); ok {
			described[property] = value
		}
	}
	return described, nil
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
