package workloads

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/task"
)

// StandaloneHosts is com.mirantis.docker.DockerStandaloneHost: a server that runs each application's container in a pod of its own.
type StandaloneHosts struct {
	Runtime interface {
		Deploys() bool
		Secret(ctx context.Context, name string) ([]byte, bool, error)
		SetSecret(ctx context.Context, name string, value []byte) error
		Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
		Planned(object *muranopl.Object, steps map[string][]string)
	}
	Regions Regions
	Objects task.Objects
	Reports task.Reports
	Once    *task.Once
	Hosting *Hosting
	Servers interface {
		Connection(ctx context.Context, instance *muranopl.Object) (*ssh.Client, error)
	}
	Images Images
}

// annotationNetwork has containers made anew when their network is another one.
const annotationNetwork = "burano.io/network"

func (s StandaloneHosts) Methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{task.MethodDeploy: s.deploy, task.MethodHostContainer: s.hostContainer, task.MethodDropContainer: s.dropContainer, "withdraw": s.withdraw,
		"restartContainers": s.restartContainers, "getLogs": s.logs}
}

// deploy makes the server, and has it run the containers of all applications on it.
func (s StandaloneHosts) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, s.bringUp(ctx, call.Interpreter, call.Object, 0)
}

// hostContainer runs an application's container, and returns its endpoints.
func (s StandaloneHosts) hostContainer(ctx context.Context, call muranopl.Call) (any, error) {
	described, _ := call.Args["container"].(*muranopl.Object)
	name := described.Text("name")
	if err := s.include(ctx, call.Interpreter, call.Object, name); err != nil {
		return nil, err
	}
	mine := []any{}
	for _, endpoint := range call.Object.List(propertyEndpoints) {
		if read, ok := endpoint.(map[string]any); ok && read["applicationName"] == name {
			mine = append(mine, endpoint)
		}
	}
	return mine, nil
}

// include has the host run a container of that name.
func (s StandaloneHosts) include(ctx context.Context, interpreter *muranopl.Interpreter, host *muranopl.Object, name string) error {
	return s.Hosting.include(host, name, func(before int) error { return s.bringUp(ctx, interpreter, host, before) })
}

// dropContainer ends a container. The rules of its server change when the host is deployed.
func (s StandaloneHosts) dropContainer(ctx context.Context, call muranopl.Call) (any, error) {
	name, _ := call.Args[task.ArgumentContainer].(string)
	host := call.Object
	if err := s.leave(ctx, host, host.Object("instance"), name); err != nil {
		return nil, err
	}
	endpoints := slices.DeleteFunc(slices.Clone(host.List(propertyEndpoints)), func(endpoint any) bool {
		read, ok := endpoint.(map[string]any)
		return ok && read["applicationName"] == name
	})
	containers := slices.DeleteFunc(slices.Clone(host.List("containers")), func(one any) bool { return one == name })
	return nil, errors.Join(host.Set(propertyEndpoints, endpoints), host.Set("containers", containers))
}

// withdraw ends the containers of a host that leaves the model, unless its server goes as well.
func (s StandaloneHosts) withdraw(ctx context.Context, call muranopl.Call) (any, error) {
	instance := s.Objects.Find(call.Object.Object("instance").ID())
	if instance == nil {
		return nil, nil
	}
	var errs []error
	for _, name := range call.Object.Texts("containers") {
		errs = append(errs, s.leave(ctx, call.Object, instance, name))
	}
	return nil, errors.Join(errs...)
}

// chosen are the pods of a host's containers, or of the one of this name, as the kubelet knows them.
func (s StandaloneHosts) chosen(ctx context.Context, call muranopl.Call) (nodes.Standalone, []hosted, []corev1.Pod, error) {
	name, _ := call.Args["container"].(string)
	all, err := s.Hosting.all(ctx, call.Interpreter, call.Object)
	if err != nil {
		return nodes.Standalone{}, nil, nil, err
	}
	if name != "" {
		one, err := choose(call.Object, all, name)
		if err != nil {
			return nodes.Standalone{}, nil, nil, err
		}
		all = []hosted{one}
	}
	server, err := s.server(ctx, call.Object, call.Object.Object("instance"))
	if err != nil {
		return server, nil, nil, err
	}
	found, err := server.Pods(ctx)
	if err != nil {
		return server, nil, nil, err
	}
	var pods []corev1.Pod
	for _, one := range all {
		i := slices.IndexFunc(found, func(pod corev1.Pod) bool { return pod.Labels[labelContainer] == kubeName(one.container.name) })
		if i < 0 {
			return server, nil, nil, fault.New(fault.Conflict, "container %s does not run on %s: deploy the environment", one.container.name, call.Object)
		}
		pods = append(pods, found[i])
	}
	return server, all, pods, nil
}

// restartContainers is the action that ends containers where they are; they are started again.
func (s StandaloneHosts) restartContainers(ctx context.Context, call muranopl.Call) (any, error) {
	server, _, pods, err := s.chosen(ctx, call)
	if err != nil {
		return nil, err
	}
	former := map[string]bool{}
	var ids []string
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if _, id, runs := strings.Cut(status.ContainerID, "://"); runs && status.State.Running != nil {
				former[status.ContainerID] = true
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, fault.New(fault.Conflict, "no container of %s runs, so that none is restarted: deploy the environment", call.Object)
	}
	return nil, s.Runtime.Step(ctx, call.Object, "restart containers", func(ctx context.Context) error {
		if err := server.EndContainers(ctx, ids); err != nil {
			return err
		}
		return wait.Every(time.Second).For(rolloutLimit).Until(ctx, func(ctx context.Context) error {
			found, err := server.Pods(ctx)
			if err != nil {
				return asked(err)
			}
			for _, pod := range slices.DeleteFunc(found, func(pod corev1.Pod) bool { return !isAmong(pods)(pod) }) {
				for _, status := range pod.Status.ContainerStatuses {
					if former[status.ContainerID] || !status.Ready {
						return wait.Again(fmt.Errorf("container %s is not ready again", status.Name))
					}
				}
			}
			return nil
		})
	})
}

// logs is the action that returns the last lines of containers: a list of {pod, container, text}.
func (s StandaloneHosts) logs(ctx context.Context, call muranopl.Call) (any, error) {
	lines, _ := call.Args["lines"].(int64)
	previous, _ := call.Args["previous"].(bool)
	server, all, pods, err := s.chosen(ctx, call)
	if err != nil {
		return nil, err
	}
	known := hiddenIn(all)
	result := []any{}
	for _, pod := range pods {
		name := pod.Labels[labelContainer]
		text, err := server.Log(ctx, pod.Name, name, int(lines), previous)
		var exit *ssh.ExitError
		if errors.As(err, &exit) {
			text = err.Error() // such as that the container has not begun
		} else if err != nil {
			return nil, err
		}
		text = strings.TrimSuffix(text, "\n")
		if most := mostLogBytes / len(pods); len(text) > most {
			text = strings.ToValidUTF8(text[len(text)-most:], "")
		}
		result = append(result, map[string]any{"pod": pod.Name, "container": name, "text": known.Hide(text)})
	}
	return result, nil
}

// hiddenIn are the secrets in containers' output.
func hiddenIn(all []hosted) *secret.Known {
	known := &secret.Known{}
	for one := range partsOf(containersIn(all)) {
		for _, value := range one.options.secrets {
			known.Add(value)
		}
		for _, file := range one.options.files {
			if file.secret {
				known.Add(file.text)
			}
		}
	}
	return known
}

// leave ends a container of a server. A server that does not answer does not prevent the removal of an application: its container ends at the host's next
// deployment.
func (s StandaloneHosts) leave(ctx context.Context, host, instance *muranopl.Object, name string) error {
	if instance.Text("openstackId") == "" {
		return nil
	}
	err := s.Runtime.Step(ctx, host, "end container "+name, func(ctx context.Context) error {
		server, err := s.server(ctx, host, instance)
		if err != nil {
			return err
		}
		var mine []corev1.Pod
		err = wait.Every(time.Second).For(rolloutLimit).Until(ctx, func(ctx context.Context) error {
			pods, err := server.Pods(ctx)
			mine = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Labels[labelContainer] != kubeName(name) })
			return asked(err)
		})
		if err != nil {
			return err
		}
		if err := server.End(ctx, kubeName(name)); err != nil {
			return err
		}
		err = wait.Every(time.Second).For(rolloutLimit).Until(ctx, func(ctx context.Context) error {
			running, err := server.Running(ctx)
			if err == nil && slices.ContainsFunc(mine, isAmong(running)) {
				err = errors.New("it has not ended")
			}
			return asked(err)
		})
		if err != nil {
			return fmt.Errorf("end container %s on %s: %w", name, instance.Text("name"), err)
		}
		return server.Clear(ctx)
	})
	var unreached *ssh.UnreachableError
	if errors.As(err, &unreached) && ctx.Err() == nil {
		s.Reports.Warn(ctx, host, fmt.Sprintf("Container %s could not be ended, since its server does not answer: it ends when the host is deployed next", name), err.Error())
		return nil
	}
	return err
}

// isAmong is true if a pod is one of these.
func isAmong(pods []corev1.Pod) func(corev1.Pod) bool {
	return func(pod corev1.Pod) bool {
		return slices.ContainsFunc(pods, func(one corev1.Pod) bool { return one.UID == pod.UID })
	}
}

// asked has a question put again that the kubelet may answer soon.
func asked(err error) error {
	var unreached *ssh.UnreachableError
	if err == nil || errors.As(err, &unreached) {
		return err
	}
	return wait.Again(err)
}

// portConflict is the exception of ports that two containers ask for.
type portConflict struct {
	port  int32
	where string // such as "on the Docker host web"
}

func (p portConflict) Error() string {
	return fmt.Sprintf("Port %d is already used %s", p.port, p.where)
}

// ExceptionNames are the names of Murano's exception.
func (portConflict) ExceptionNames() []string {
	return []string{"com.mirantis.docker.PortConflictException"}
}

// Unwrap makes it a fault of kind Invalid.
func (p portConflict) Unwrap() error { return fault.New(fault.Invalid, "%s", p.Error()) }

// checkPorts makes sure that each container has a name and ports of its own.
func checkPorts(host *muranopl.Object, all []hosted) error {
	taken := map[string]bool{}
	for _, number := range kube.StandalonePorts {
		taken[fmt.Sprint(number, "TCP")] = true
	}
	names := map[string]string{}
	for _, one := range all {
		name := kubeName(one.container.name)
		if name == "" || names[name] != "" {
			return fault.New(fault.Invalid, "%s: its container is called %q, and must have a name with letters or digits that no other container of %s has (%s)",
				one.application, one.container.name, host, names[name])
		}
		names[name] = one.application.String()
		for _, port := range one.container.ports {
			key := fmt.Sprint(port.published, port.protocol)
			if taken[key] {
				return portConflict{port.published, "on the Docker host " + host.Text("name")}
			}
			taken[key] = true
		}
	}
	return nil
}

// containerNetwork is where the containers of a host have their addresses.
func containerNetwork(host *muranopl.Object) (netip.Prefix, error) {
	text := cmp.Or(host.Text("containerNetwork"), "172.31.0.0/16")
	network, err := netip.ParsePrefix(text)
	if err != nil || !network.Addr().Is4() || network.Bits() > 28 {
		return network, fault.New(fault.Invalid, "containerNetwork of %s is %q: give a range of IPv4 with 16 addresses at least that no network of the server has, such as 172.31.0.0/16", host, text)
	}
	return network.Masked(), nil
}

func gatewayOf(network netip.Prefix) netip.Addr {
	return kube.Standalone{Containers: network}.Gateway()
}

// bringUp applies the model to the host, once per task, and once more for applications that could not describe their container before their own deploy had
// begun: before is the number of former runs.
func (s StandaloneHosts) bringUp(ctx context.Context, interpreter *muranopl.Interpreter, host *muranopl.Object, before int) error {
	return s.Once.Do(fmt.Sprintf("host %s %d", host.ID(), before), func() error {
		instance := host.Object("instance")
		network, err := containerNetwork(host)
		if err != nil {
			return err
		}
		if _, err := desired.ReadContainers(host); err != nil {
			return fault.New(fault.Invalid, "%s: %w", host, err)
		}
		if err := s.checkImage(ctx, host, instance); err != nil {
			return err
		}
		all, err := s.Hosting.ready(ctx, interpreter, host)
		if err != nil {
			return err
		}
		if err := checkPorts(host, all); err != nil {
			return err
		}
		var pods []*corev1.Pod
		var volumes []nodes.StandaloneVolume
		var files []nodes.StandaloneFile
		for _, one := range all {
			pod, own, mounted, err := one.container.alone(host.ID(), network)
			if err != nil {
				return fault.New(fault.Invalid, "%s: %w", one.application, err)
			}
			pods, volumes, files = append(pods, pod), append(volumes, own...), append(files, mounted...)
		}
		images, err := s.findImages(ctx, host, imagesOf(containersIn(all)))
		if err != nil {
			return err
		}
		if _, err := interpreter.Invoke(ctx, host, "makeServer", map[string]any{"rules": rulesOf(all)}); err != nil {
			return err
		}
		err = s.Hosting.awaitDependencies(ctx, s.Runtime, host, all, []string{stepRunContainers, stepWaitContainers}, func(ctx context.Context, application *muranopl.Object) error {
			_, err := interpreter.Invoke(ctx, application, task.MethodDeploy, nil)
			return err
		})
		if err != nil {
			return err
		}
		err = s.Runtime.Step(ctx, host, stepRunContainers, func(ctx context.Context) error {
			server, err := s.server(ctx, host, instance)
			if err != nil {
				return err
			}
			if network.Contains(server.Address) {
				return fault.New(fault.Invalid, "containerNetwork of %s is %s, and its server has the address %s there: give a range that no network of the server has", host, network, server.Address)
			}
			err = server.SetUp(ctx)
			if errors.Is(err, nodes.ErrNoRuntime) || errors.Is(err, nodes.ErrNoDocker) {
				return fault.New(fault.Conflict, "server %s runs no containers: %w", instance.Text("name"), err)
			}
			if err != nil {
				return err
			}
			if err := server.HaveImages(ctx, images); err != nil {
				return err
			}
			return server.Run(ctx, pods, volumes, files)
		})
		if err != nil {
			return err
		}
		err = s.Runtime.Step(ctx, host, stepWaitContainers, func(ctx context.Context) error { return s.wait(ctx, host, all, pods) })
		if err != nil {
			return err
		}
		s.Hosting.ran(host, all)
		return s.noteEndpoints(ctx, host, network, all)
	})
}

// checkImage makes sure that a server which is to be made will run containers.
func (s StandaloneHosts) checkImage(ctx context.Context, host, instance *muranopl.Object) error {
	named := instance.Text("image")
	if named == "" || instance.Text("openstackId") != "" {
		return nil
	}
	project, err := s.Regions.Project(ctx, s.Regions.Of(instance))
	if err != nil {
		return err
	}
	image, err := project.Image(ctx, named)
	if err != nil {
		return err
	}
	if image.Kubernetes == "" {
		return fault.New(fault.Invalid, "image %s of the server of %s does not say that it runs containers: build a node image with this release and upload it, or, where this one is of it, "+
			"say so (openstack image set --property %s=VERSION %s)", named, host, openstack.KubernetesProperty, image.ID)
	}
	if containers, _ := desired.ReadContainers(host); containers.Runtime == kube.Docker && image.Docker == "" { // bringUp has refused mistakes
		return fault.New(fault.Invalid, "%s: %w", host, NoDocker(named, instance.Text("name"), image.ID))
	}
	return nil
}

// findImages finds the images of Glance that containers are to have.
func (s StandaloneHosts) findImages(ctx context.Context, host *muranopl.Object, names []string) (wanted []nodes.ContainerImage, err error) {
	known, err := nodes.StandaloneImages(ctx, known.Vault{Runtime: s.Runtime, Cluster: host.ID()})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		one, err := s.Images.Find(ctx, known, name, s.Runtime.Deploys())
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, one)
	}
	return wanted, nil
}

// rulesOf are the server's rules, in the form for makeServer.
func rulesOf(all []hosted) []any {
	rules := []any{}
	for _, one := range all {
		for _, port := range one.container.ports {
			if port.isPublic() {
				rules = append(rules, map[string]any{"port": int64(port.published), "protocol": strings.ToLower(port.protocol), "public": port.scope == "public"})
			}
		}
	}
	return rules
}

// server is an instance's server, which must be deployed.
func (s StandaloneHosts) server(ctx context.Context, host, instance *muranopl.Object) (nodes.Standalone, error) {
	client, err := s.Servers.Connection(ctx, instance)
	if err != nil {
		return nodes.Standalone{}, err
	}
	address, err := netip.ParseAddr(fixedOf(instance))
	if err != nil {
		return nodes.Standalone{}, fmt.Errorf("server %s has no address of its own", instance.Text("name"))
	}
	containers, err := desired.ReadContainers(host)
	if err != nil {
		return nodes.Standalone{}, err
	}
	network, err := containerNetwork(host)
	return nodes.Standalone{
		Client: client, Address: address, Containers: network, Runtime: containers.Runtime, Registries: containers.Registries, Vault: known.Vault{Runtime: s.Runtime, Cluster: host.ID()}, Image: s.Images.Load,
		Report: func(ctx context.Context, text string) {
			s.Reports.Inform(ctx, host, "%s: %s", instance.Text("name"), text)
		},
	}, err
}

// fixedOf is the first address of an instance in its networks; "" before it is deployed.
func fixedOf(instance *muranopl.Object) string {
	addresses := instance.Texts("ipAddresses")
	if len(addresses) == 0 {
		return ""
	}
	return addresses[0]
}

// alone is the pod of a container on a host that belongs to no cluster, with its volumes that outlive it and its files.
func (c container) alone(host string, network netip.Prefix) (*corev1.Pod, []nodes.StandaloneVolume, []nodes.StandaloneFile, error) {
	name := kubeName(c.name)
	for _, one := range append([]container{c}, c.options.before...) {
		for variable, source := range one.options.valueFrom {
			if source.SecretKeyRef != nil || source.ConfigMapKeyRef != nil {
				return nil, nil, nil, fmt.Errorf("the variable %s of container %s comes from a Secret or a ConfigMap of a cluster (envValueFrom), and a standalone host is in none: use secretEnv or env", variable, one.name)
			}
		}
	}
	if len(c.options.bootstraps) > 0 {
		return nil, nil, nil, fmt.Errorf("container %s has bootstraps (bootstrap, bootstrapAfter), which need the Kubernetes of a cluster, and a standalone host is in none: let the application run in a cluster, or use an init container", c.name)
	}
	c = c.withoutSecrets()
	files := c.onHost(name)
	before := slices.Clone(c.options.before)
	for i := range before {
		before[i] = before[i].withoutSecrets()
		files = append(files, before[i].onHost(name)...)
	}
	c.options.before = before
	var volumes []nodes.StandaloneVolume
	c.volumes = maps.Clone(c.volumes)
	for _, mount := range slices.Sorted(maps.Keys(c.volumes)) {
		wanted := c.volumes[mount].options
		if wanted.claim == nil {
			continue
		}
		if wanted.claim.class != "" {
			return nil, nil, nil, fmt.Errorf("the volume at %s names the storage class %s: a standalone host has none, its volumes are folders of its server. Leave storageClass out", mount, wanted.claim.class)
		}
		if wanted.claim.many {
			return nil, nil, nil, fmt.Errorf("the volume at %s has accessMode readWriteMany, and a standalone host is one server, whose folders no other uses: leave accessMode out", mount)
		}
		folder := path.Join("kept", name, path.Join("/", mount))
		switch shared := kubeName(wanted.claim.name); {
		case !wanted.claim.keep:
			folder = path.Join("with", name, cmp.Or(shared, path.Join("/", mount)))
		case shared != "":
			folder = path.Join("named", shared)
		}
		own := nodes.StandaloneVolume{Folder: folder, Size: *wanted.size}
		volumes = append(volumes, own)
		c.volumes[mount] = volume{hostPath: own.Path()}
	}
	template := podSpec{id: host, name: c.name, soft: true}.template([]container{c})
	for i, port := range c.ports {
		opened := &template.Spec.Containers[0].Ports[i]
		opened.HostPort = port.published
		if !port.isPublic() {
			opened.HostIP = gatewayOf(network).String()
		}
	}
	template.Labels[labelContainer] = name
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: known.Namespace, Labels: template.Labels, Annotations: map[string]string{annotationNetwork: network.String()}},
		Spec:       template.Spec,
	}
	pod.Spec.DNSPolicy = corev1.DNSDefault
	sum := sha256.Sum256([]byte(digestOf(pod)))
	pod.Annotations[annotationDigest] = hex.EncodeToString(sum[:16])
	return pod, volumes, files, nil
}

// withoutSecrets has its secret variables among the others: a server that belongs to no cluster has no Secrets.
func (c container) withoutSecrets() container {
	c.env = maps.Clone(c.env)
	if c.env == nil {
		c.env = map[string]string{}
	}
	maps.Copy(c.env, c.options.secrets)
	c.options.secrets = nil
	return c
}

// beside are the endpoints that a container has for others of its host.
func (c container) beside(network netip.Prefix) []any {
	var endpoints []any
	for _, port := range c.ports {
		endpoints = append(endpoints, port.endpoint(c.name, "host", gatewayOf(network).String()))
		if port.scope != "host" {
			endpoints = append(endpoints, port.endpoint(c.name, "internal", gatewayOf(network).String()))
		}
	}
	return endpoints
}

func (p port) endpoint(application, scope, address string) map[string]any {
	return map[string]any{"scope": scope, "address": address, "port": int64(p.published), "containerPort": int64(p.number), "protocol": p.protocol, "portScope": p.scope,
		"applicationName": application}
}

// wait waits until these pods run, and the former ones have ended.
func (s StandaloneHosts) wait(ctx context.Context, host *muranopl.Object, all []hosted, pods []*corev1.Pod) error {
	server, err := s.server(ctx, host, host.Object("instance"))
	if err != nil {
		return err
	}
	var obstacles []obstacle
	var late delays
	first := true
	err = wait.Every(time.Second).For(rolloutLimit).Until(ctx, func(ctx context.Context) error {
		found, err := server.Pods(ctx)
		if err != nil {
			return asked(err)
		}
		running, err := server.Running(ctx)
		if err != nil {
			return asked(err)
		}
		missing := 0
		obstacles, missing = lacking(pods, found, running)
		switch {
		case missing == 0:
			return nil
		case first && putOff(found):
			err = server.Again(ctx)
		case late.over(obstacles, time.Now()):
			return errors.New("it was given up: what is wrong does not pass by itself")
		}
		first = false
		if err != nil {
			return err
		}
		return wait.Again(fmt.Errorf("%d of %d containers are not as they should be", missing, len(pods)))
	})
	if err == nil {
		return server.Clear(ctx)
	}
	if ctx.Err() != nil {
		return err
	}
	known := hiddenIn(all)
	reportLastLines(ctx, s.Reports, host, obstacles, func(ctx context.Context, one obstacle) (string, error) {
		text, err := server.Log(ctx, one.pod, one.container, lastLines, one.previous)
		return known.Hide(text), err
	})
	return &failedRollout{pod: host.Text("name"), obstacles: obstacles, err: err}
}

// lacking are the obstacles of pods, and the number of pods that do not run, or run and are not wanted.
func lacking(wanted []*corev1.Pod, found, running []corev1.Pod) (obstacles []obstacle, missing int) {
	var current []corev1.Pod
	for _, one := range wanted {
		i := slices.IndexFunc(found, func(pod corev1.Pod) bool {
			return pod.Annotations[annotationDigest] == one.Annotations[annotationDigest]
		})
		if i < 0 {
			missing++
			continue
		}
		current = append(current, found[i])
		if !kube.PodIsReady(&found[i]) {
			missing++
			obstacles = append(obstacles, obstaclesOf(&found[i], nil)...)
		}
	}
	former := slices.DeleteFunc(slices.Clone(running), isAmong(current))
	return obstacles, missing + len(former)
}

// putOff is true if the kubelet waits before it tries a container again.
func putOff(pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(status corev1.ContainerStatus) bool {
			return status.State.Waiting != nil && strings.HasSuffix(status.State.Waiting.Reason, "BackOff")
		})
	})
}

// noteEndpoints writes the addresses of the host and of each application to their objects, and reports the public ones.
func (s StandaloneHosts) noteEndpoints(ctx context.Context, host *muranopl.Object, network netip.Prefix, all []hosted) error {
	instance := host.Object("instance")
	fixed, floating := fixedOf(instance), instance.Text("floatingIpAddress")
	names, everything := []any{}, []any{}
	for _, one := range all {
		endpoints := one.container.beside(network)
		for _, port := range one.container.ports {
			if !port.isPublic() {
				continue
			}
			address := fixed
			endpoints = append(endpoints, port.endpoint(one.container.name, "cloud", fixed))
			if port.scope == "public" && floating != "" {
				address = floating
				endpoints = append(endpoints, port.endpoint(one.container.name, "public", floating))
			}
			s.Reports.Inform(ctx, one.application, "%s is available at %s", one.container.name, net.JoinHostPort(address, strconv.Itoa(int(port.published))))
		}
		if endpoints == nil {
			endpoints = []any{}
		}
		if err := one.application.Set(propertyEndpoints, endpoints); err != nil {
			return err
		}
		names, everything = append(names, one.container.name), append(everything, endpoints...)
	}
	return errors.Join(host.Set("containers", names), host.Set(propertyEndpoints, everything))
}
