package operator

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/images"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/web/client"
)

// registryOption chooses the registry of a cluster.
type registryOption struct{ environment, cluster string }

func (o *registryOption) addFlags(command *cobra.Command, use string) {
	command.Flags().StringVar(&o.environment, "to", "", use)
	command.Flags().StringVar(&o.cluster, "cluster", "", "name or id of the cluster, where the environment has several")
}

// clusterRegistry is the registry of a cluster, reached through the cluster's Kubernetes API.
type clusterRegistry struct {
	host    string // as in names of images
	options []remote.Option
	end     func()
}

// openRegistry reaches the registry of a cluster with the caller's own rights there, which have to be those of burano:editors at least.
func openRegistry(ctx context.Context, api *client.Client, environment client.Environment, wanted string) (*clusterRegistry, error) {
	cluster, err := environment.ClusterID(wanted)
	if err != nil {
		return nil, err
	}
	text, err := api.Clusters().Kubeconfig(ctx, environment.ID, cluster, client.KubeconfigOptions{})
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's kubeconfig: %w", err)
	}
	kubernetes, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	login, err := kubernetes.CoreV1().Secrets(kube.RegistryNamespace).Get(ctx, kube.RegistryLogin, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the cluster of environment %s has no registry: set enableRegistry to true, and deploy", environment.Name)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not use the registry of environment %s: that takes a kubeconfig of the group %s: %w", environment.Name, kube.EditorsGroup, err)
	case err != nil:
		return nil, fmt.Errorf("ask the cluster for the login of its registry: %w", err)
	}
	pods, err := kubernetes.CoreV1().Pods(kube.RegistryNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + kube.RegistryObject})
	if err != nil {
		return nil, fmt.Errorf("ask the cluster for the pod of its registry: %w", err)
	}
	i := slices.IndexFunc(pods.Items, ready)
	if i < 0 {
		return nil, fmt.Errorf("the registry of environment %s does not run at the moment: burano cluster pods %[1]s -n %s shows its pod", environment.Name, kube.RegistryNamespace)
	}
	port, end, err := forward(config, kubernetes, pods.Items[i].Name)
	if err != nil {
		return nil, fmt.Errorf("reach the registry through the API of the cluster: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(login.Data["ca.crt"])
	host := string(login.Data["host"])
	var dialer net.Dialer
	way := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: host, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
		},
	}
	return &clusterRegistry{host: host, end: end, options: []remote.Option{remote.WithContext(ctx), remote.WithTransport(way),
		remote.WithAuth(&authn.Basic{Username: string(login.Data["username"]), Password: string(login.Data["password"])})}}, nil
}

func ready(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// forward listens on a port of this machine for the registry's pod, until end is called.
func forward(config *rest.Config, api kubernetes.Interface, pod string) (port uint16, end func(), err error) {
	way, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return 0, nil, err
	}
	url := api.CoreV1().RESTClient().Post().Resource("pods").Namespace(kube.RegistryNamespace).Name(pod).SubResource("portforward").URL()
	stop, begun, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: way}, http.MethodPost, url), []string{"127.0.0.1"},
		[]string{fmt.Sprintf("0:%d", kube.RegistryPort)}, stop, begun, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case err := <-ended:
		return 0, nil, cmp.Or(err, errors.New("the connection ended"))
	case <-begun:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stop)
		return 0, nil, err
	}
	return ports[0].Local, func() { close(stop); <-ended }, nil
}

// tag is the name of an image in the registry. The name of another registry is left out.
func (r *clusterRegistry) tag(called string) (name.Tag, error) {
	reference, err := name.NewTag(called)
	if err != nil {
		return name.Tag{}, fmt.Errorf("%q is no name of an image: write team/web:1", called)
	}
	return name.NewTag(r.host + "/" + strings.TrimPrefix(reference.RepositoryStr(), "library/") + ":" + reference.TagStr())
}

// take puts an image into the registry, and says how pods name it.
func (r *clusterRegistry) take(image v1.Image, called string, output io.Writer) error {
	tag, err := r.tag(called)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	if err := remote.Write(tag, image, r.options...); err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	fmt.Fprintf(output, "container image %s (%s) is pushed\n", tag, digest)
	return nil
}

// pushToCluster puts an archive into the registry of a cluster.
func pushToCluster(command *cobra.Command, connection *cli.Connection, to registryOption, file, called string) error {
	own, err := images.NameOf(file)
	if err != nil {
		return err
	}
	image, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
		registry, err := openRegistry(command.Context(), api, environment, to.cluster)
		if err != nil {
			return err
		}
		defer registry.end()
		return registry.take(image, cmp.Or(called, own), command.OutOrStdout())
	})(command, []string{to.environment})
}

func imageCopyCommand(connection *cli.Connection) *cobra.Command {
	var to registryOption
	var called, platform string
	command := &cobra.Command{
		Use:   "copy IMAGE --to ENVIRONMENT",
		Short: "Copy a container image from another registry to a cluster's registry",
		Long: `Copy pulls a container image from the registry in its name, from this machine and with the logins of Docker's config.json, and pushes it
to the registry of the cluster (enableRegistry).`,
		Example: `  burano image copy nginx:1.29 --to demo
  burano image copy registry.example.org/team/web:1 --to demo --as web:1`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			source, err := name.ParseReference(args[0])
			if err != nil {
				return fmt.Errorf("%q is no name of an image: write registry.example.org/team/web:1", args[0])
			}
			if _, tagged := source.(name.Tag); !tagged && called == "" {
				return fmt.Errorf("%s has no tag: say with --as what it is to be called, such as --as web:1", args[0])
			}
			wanted, err := v1.ParsePlatform(platform)
			if err != nil {
				return fmt.Errorf("--platform is %q: write linux/amd64", platform)
			}
			return connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
				image, err := remote.Image(source, remote.WithContext(command.Context()), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithPlatform(*wanted))
				if err != nil {
					return fmt.Errorf("find %s: %w", source, err)
				}
				registry, err := openRegistry(command.Context(), api, environment, to.cluster)
				if err != nil {
					return err
				}
				defer registry.end()
				return registry.take(image, cmp.Or(called, args[0]), command.OutOrStdout())
			})(command, []string{to.environment})
		},
	}
	to.addFlags(command, "environment whose cluster gets the image")
	command.Flags().StringVar(&called, "as", "", "name of the image there, such as team/web:1 (default: as in its name)")
	command.Flags().StringVar(&platform, "platform", "linux/amd64", "platform to copy, of an image for several")
	cobra.CheckErr(command.MarkFlagRequired("to"))
	return command
}

// registryImage is an image of a cluster's registry.
type registryImage struct {
	Name   string `json:"name" yaml:"name"`     // as pods name it
	Digest string `json:"digest" yaml:"digest"` // of its manifest
}

func (r *clusterRegistry) list(ctx context.Context) ([]registryImage, error) {
	found := []registryImage{}
	registry, err := name.NewRegistry(r.host)
	if err != nil {
		return nil, err
	}
	repositories, err := remote.Catalog(ctx, registry, r.options...)
	if err != nil {
		return nil, fmt.Errorf("list the images of %s: %w", r.host, err)
	}
	for _, repository := range repositories {
		tags, err := remote.List(registry.Repo(repository), r.options...)
		if missing(err) {
			continue // its last image was deleted
		}
		if err != nil {
			return nil, fmt.Errorf("list the images of %s: %w", r.host, err)
		}
		for _, tag := range tags {
			one := registry.Repo(repository).Tag(tag)
			head, err := remote.Head(one, r.options...)
			if missing(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("look at %s: %w", one, err)
			}
			found = append(found, registryImage{Name: one.String(), Digest: head.Digest.String()})
		}
	}
	return found, nil
}

func imageListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var cluster string
	command := &cobra.Command{
		Use:   "list ENVIRONMENT",
		Short: "List the container images in the registry of a cluster",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
			registry, err := openRegistry(command.Context(), api, environment, cluster)
			if err != nil {
				return err
			}
			defer registry.end()
			found, err := registry.list(command.Context())
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), found, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "IMAGE\tDIGEST")
				for _, one := range found {
					fmt.Fprintf(table, "%s\t%s\n", one.Name, one.Digest)
				}
			})
		}),
	}
	command.Flags().StringVar(&cluster, "cluster", "", "name or id of the cluster, where the environment has several")
	print.AddFlag(command)
	return command
}

// remove deletes an image. One that has other names, too, loses this one alone.
func (r *clusterRegistry) remove(called string) error {
	tag, err := r.tag(strings.TrimPrefix(called, r.host+"/"))
	if err != nil {
		return err
	}
	head, err := remote.Head(tag, r.options...)
	if missing(err) {
		return fmt.Errorf("the registry has no image %s", tag)
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", tag, err)
	}
	var deleted name.Reference = tag.Context().Digest(head.Digest.String())
	tags, err := remote.List(tag.Context(), r.options...)
	if err != nil {
		return fmt.Errorf("list the names of %s: %w", tag.Context(), err)
	}
	for _, other := range tags {
		if other == tag.TagStr() {
			continue
		}
		same, err := remote.Head(tag.Context().Tag(other), r.options...)
		if err == nil && same.Digest == head.Digest {
			deleted = tag
		} else if err != nil && !missing(err) {
			return fmt.Errorf("look at %s: %w", tag.Context().Tag(other), err)
		}
	}
	if err := remote.Delete(deleted, r.options...); err != nil {
		return fmt.Errorf("delete %s: %w", tag, err)
	}
	return nil
}

func imageDeleteCommand(connection *cli.Connection) *cobra.Command {
	var cluster string
	command := &cobra.Command{
		Use:   "delete ENVIRONMENT IMAGE",
		Short: "Delete a container image from the registry of a cluster",
		Long: `Delete removes an image from the registry of a cluster. Pods that run it continue; where it has to be pulled again they do not start. The registry frees
layers that no other image uses at its daily collection, or at its start: burano cluster recreate-pod restarts it at once.`,
		Example: `  burano image delete demo team/web:1`,
		Args:    cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			registry, err := openRegistry(command.Context(), api, environment, cluster)
			if err != nil {
				return err
			}
			defer registry.end()
			if err := registry.remove(args[0]); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "container image %s is deleted\n", args[0])
			return nil
		}),
	}
	command.Flags().StringVar(&cluster, "cluster", "", "name or id of the cluster, where the environment has several")
	return command
}

// missing tells whether the registry says that there is no such thing.
func missing(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
