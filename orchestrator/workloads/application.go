package workloads

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/task"
)

// attributeContainer keeps the container that an application handed to its host last: its name, and a digest of all its fields.
const attributeContainer = "container"

const propertyEndpoints = "applicationEndpoints"

// Applications is com.mirantis.docker.DockerApplication.
type Applications struct {
	Runtime interface {
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
		SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
	}
	Objects task.Objects
	Pods    Pods
	Alone   StandaloneHosts
}

func (a Applications) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{task.MethodDeploy: a.deploy, task.MethodDestroy: a.destroy, "getConnectionTo": a.connection, "runInContainer": a.runInContainer}
}

// deploy deploys the application's host, which runs the container. Pods and standalone hosts find all their applications in the model; a container
// that was not ready then comes now.
func (a Applications) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	host := call.Object.Object("host")
	if host == nil || !host.Class().IsEmbedded(task.ClassContainerHost) {
		return nil, fmt.Errorf("%s has no host to run on", call.Object)
	}
	found, err := problemsOf(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, fmt.Errorf("%s cannot be deployed as it is described: %s", call.Object, strings.Join(found, "; "))
	}
	include := a.gathers(host)
	if include == nil { // what the container is may depend on its server
		if _, err := call.Interpreter.Invoke(ctx, host, task.MethodDeploy, nil); err != nil {
			return nil, err
		}
	}
	described, one, err := describe(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, err
	}
	kept, err := a.kept(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	changed := kept["digest"] != one.digest()
	if changed {
		if _, err := call.Interpreter.Invoke(ctx, call.Object, "onInstallationStart", nil); err != nil {
			return nil, err
		}
	}
	if include != nil {
		err = include(ctx, call.Interpreter, host, one.name)
	} else if changed {
		err = handOver(ctx, call, host, described)
	}
	if err != nil || !changed {
		return nil, err
	}
	if _, err := call.Interpreter.Invoke(ctx, call.Object, "onInstallationFinish", nil); err != nil {
		return nil, err
	}
	return nil, a.Runtime.SetAttribute(ctx, call.Object, attributeContainer, map[string]any{"name": one.name, "digest": one.digest()})
}

// problemsOf asks an application why it cannot be deployed.
func problemsOf(ctx context.Context, interpreter *muranopl.Interpreter, application *muranopl.Object) ([]string, error) {
	answer, err := interpreter.Invoke(ctx, application, "getProblems", nil)
	if err != nil {
		return nil, err
	}
	listed, _ := answer.([]any)
	var found []string
	for _, one := range listed {
		if text, is := one.(string); is {
			found = append(found, text)
		}
	}
	return found, nil
}

// gathers is how a host that finds its applications in the model is told of one of them; nil for other hosts.
func (a Applications) gathers(host *muranopl.Object) func(ctx context.Context, interpreter *muranopl.Interpreter, host *muranopl.Object, name string) error {
	switch {
	case host.Class().IsEmbedded(task.ClassPod):
		return a.Pods.include
	case host.Class().IsEmbedded(task.ClassStandaloneHost):
		return a.Alone.include
	}
	return nil
}

// handOver has a host run a container and notes the endpoints that it returns.
func handOver(ctx context.Context, call muranopl.Call, host *muranopl.Object, described any) error {
	endpoints, err := call.Interpreter.Invoke(ctx, host, task.MethodHostContainer, map[string]any{"container": described})
	if err != nil {
		return err
	}
	if err := call.Object.Set(propertyEndpoints, endpoints); err != nil {
		return fmt.Errorf("the endpoints that %s returned for %s: %w", host, call.Object, err)
	}
	return nil
}

// describe asks an application for its container, which its host is given as it is.
func describe(ctx context.Context, interpreter *muranopl.Interpreter, application *muranopl.Object) (any, container, error) {
	described, err := interpreter.Invoke(ctx, application, task.MethodGetContainer, nil)
	if err != nil {
		return nil, container{}, err
	}
	one, err := containerOf(application, described)
	return described, one, err
}

func (a Applications) kept(ctx context.Context, object *muranopl.Object) (map[string]any, error) {
	value, _, err := a.Runtime.Attribute(ctx, object, attributeContainer)
	kept, _ := value.(map[string]any)
	return kept, err
}

// digest differs for containers that a host would run differently. The digest of a container without options never changes: a new one would call its
// hooks again.
func (c container) digest() string {
	type volume struct{ hostPath string }
	former := struct {
		application, name, image string
		commands                 []string
		env                      map[string]string
		ports                    []port
		volumes                  map[string]volume
		privileged               bool
	}{c.application, c.name, c.image, c.commands, c.env, c.ports, map[string]volume{}, c.privileged}
	options := []any{}
	for _, path := range slices.Sorted(maps.Keys(c.volumes)) {
		mounted := c.volumes[path]
		former.volumes[path] = volume{mounted.hostPath}
		if mounted.options != (volumeOptions{}) {
			options = append(options, path, mounted.options.digest())
		}
	}
	if told := c.options.digest(); told != (containerOptions{}).digest() {
		options = append(options, told)
	}
	text := fmt.Appendf(nil, "%+v", former) // maps are written in the order of their keys
	if len(options) > 0 {
		text = fmt.Append(text, options...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// connection is how the container of one application reaches a port of another's, by the first of the ways that there are: within the same
// host, within the network that their hosts share, from outside.
func (a Applications) connection(ctx context.Context, call muranopl.Call) (any, error) {
	other, _ := call.Args["application"].(*muranopl.Object)
	wanted, _ := call.Args["port"].(int64)
	protocol, _ := call.Args["protocol"].(string)
	from, to := call.Object.Object("host"), other.Object("host")
	scopes := []string{"cloud", "public"}
	if from == to {
		scopes = append([]string{"host", "internal"}, scopes...)
	} else if near, err := share(ctx, call.Interpreter, from, to); err != nil {
		return nil, err
	} else if near {
		scopes = append([]string{"internal"}, scopes...)
	}
	endpoints := other.List(propertyEndpoints)
	if to.Class().IsEmbedded(task.ClassPod) {
		_, one, err := describe(ctx, call.Interpreter, other) // so it need not run yet
		if err != nil {
			return nil, err
		}
		pods, err := a.Pods.Clusters.PodNetwork(ctx, to.Object("kubernetesCluster"))
		if err != nil {
			return nil, err
		}
		endpoints = append(one.within(to, pods.Domain), endpoints...)
	}
	if to.Class().IsEmbedded(task.ClassStandaloneHost) {
		_, one, err := describe(ctx, call.Interpreter, other)
		if err != nil {
			return nil, err
		}
		network, err := containerNetwork(to)
		if err != nil {
			return nil, err
		}
		endpoints = append(one.beside(network), endpoints...)
	}
	for _, scope := range scopes {
		for _, item := range endpoints {
			endpoint, _ := item.(map[string]any)
			if endpoint["scope"] == scope && endpoint["containerPort"] == wanted && endpoint["protocol"] == protocol {
				return map[string]any{"host": endpoint["address"], "port": endpoint["port"]}, nil
			}
		}
	}
	return nil, nil
}

// share is true if containers of two hosts reach each other by endpoints of the scope "internal".
func share(ctx context.Context, interpreter *muranopl.Interpreter, one, other *muranopl.Object) (bool, error) {
	a, err := interpreter.Invoke(ctx, one, "getInternalScopeId", nil)
	if err != nil {
		return false, err
	}
	b, err := interpreter.Invoke(ctx, other, "getInternalScopeId", nil)
	return a != nil && a == b, err
}

// within are the endpoints that a container has for others in its pod and its cluster.
func (c container) within(pod *muranopl.Object, domain string) []any {
	var endpoints []any
	for _, port := range c.ports {
		endpoint := func(scope, address string, number int32) {
			endpoints = append(endpoints, map[string]any{"scope": scope, "address": address, "port": int64(number), "containerPort": int64(port.number),
				"protocol": port.protocol})
		}
		endpoint("host", "127.0.0.1", port.number)
		if port.scope != "host" {
			endpoint("internal", serviceAddress(placeOf(pod), domain, c.name), port.published)
		}
	}
	return endpoints
}

// destroy takes an application's container off its host, unless the host goes as well.
func (a Applications) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	host := call.Object.Object("host")
	if host == nil {
		return nil, nil
	}
	if host = a.Objects.Find(host.ID()); host == nil {
		return nil, nil
	}
	kept, err := a.kept(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	name, _ := kept["name"].(string)
	if name == "" { // of a deployment that did not get so far
		_, one, err := describe(ctx, call.Interpreter, call.Object)
		if err != nil {
			return nil, err
		}
		name = one.name
	}
	_, err = call.Interpreter.Invoke(ctx, host, task.MethodDropContainer, map[string]any{task.ArgumentContainer: name})
	return nil, err
}

// runInContainer runs a command in the application's container, in every pod of its host that runs. A host that leaves the model has none: objects that go with it
// may still call each other.
func (a Applications) runInContainer(ctx context.Context, call muranopl.Call) (any, error) {
	given, _ := call.Args["command"].([]any)
	var command []string
	for _, one := range given {
		word, _ := one.(string)
		command = append(command, word)
	}
	host := call.Object.Object("host")
	if host == nil || !host.Class().IsEmbedded(task.ClassPod) {
		return nil, fmt.Errorf("%s runs in no pod, and commands are run in pods only", call.Object)
	}
	if a.Objects.Find(host.ID()) == nil {
		return []any{}, nil
	}
	_, one, err := describe(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nil, err
	}
	call.Object = host
	_, _, found, err := a.Pods.running(ctx, call)
	if err != nil {
		return nil, err
	}
	live, err := a.Pods.Clusters.Live(host.Object("kubernetesCluster"))
	if err != nil {
		return nil, err
	}
	written := []any{}
	for _, pod := range found {
		for _, status := range pod.Status.ContainerStatuses {
			_, id, ok := strings.Cut(status.ContainerID, "://")
			if status.Name != kubeName(one.name) || status.State.Running == nil || !ok {
				continue
			}
			text, err := live.RunInContainer(ctx, pod.Spec.NodeName, id, command)
			if err != nil {
				return nil, fmt.Errorf("run %s in %s: %w", command[0], pod.Name, err)
			}
			written = append(written, text)
		}
	}
	return written, nil
}
