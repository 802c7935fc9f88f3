package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/gateway/nginx"
	"github.com/burano/burano/gateway/publish"
	"github.com/burano/burano/internal/door"
)

// IngressCommand is burano ingress.
func IngressCommand() *cobra.Command {
	command := &cobra.Command{Use: "ingress", Short: "Move from ingress-nginx to the gateways"}
	command.AddCommand(ingressCheckCommand())
	return command
}

// ingressReport is the treatment of an Ingress.
type ingressReport struct {
	Namespace string       `json:"namespace,omitempty" yaml:"namespace,omitempty"`
	Name      string       `json:"name" yaml:"name"`
	File      string       `json:"file,omitempty" yaml:"file,omitempty"`
	Lines     []nginx.Line `json:"lines" yaml:"lines"`
}

func ingressCheckCommand() *cobra.Command {
	var kubeconfig, namespace string
	var asJSON bool
	command := &cobra.Command{
		Use:   "check [PATH…]",
		Short: "Show the treatment of each part of Ingresses by the gateways",
		Long: `Check reads Ingresses from files, folders (*.yaml, *.yml, *.json) and the standard input (-), or from the cluster of --kubeconfig. It prints a line for the class,
hosts, paths and certificates of each Ingress, and for each annotation of ingress-nginx. "stays": the gateways do the same. "changes": with a difference, which the line
has. "refused": the gateways would not serve it. Check changes nothing. The exit code is 1 when something is refused.`,
		Example: `  burano ingress check manifests/
  helm template shop | burano ingress check -
  burano ingress check --kubeconfig cluster.yaml --namespace shop`,
		RunE: func(command *cobra.Command, paths []string) error {
			var found ingresses
			var err error
			switch {
			case kubeconfig == "" && len(paths) == 0:
				return errors.New("name files or folders, - for the standard input, or a cluster by --kubeconfig")
			case kubeconfig != "" && len(paths) > 0:
				return errors.New("name files or a cluster (--kubeconfig), and not both")
			case namespace != "" && kubeconfig == "":
				return errors.New("--namespace chooses Ingresses of a cluster: name it by --kubeconfig")
			case kubeconfig != "":
				err = found.ofCluster(command.Context(), kubeconfig, namespace)
			default:
				err = found.ofPaths(paths, command.InOrStdin())
			}
			if err != nil {
				return err
			}
			return found.report(command.OutOrStdout(), asJSON)
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file with the access to a cluster, whose Ingresses are read")
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the cluster (default: all)")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return command
}

// ingresses are the objects that were found.
type ingresses struct {
	list    []*networking.Ingress
	files   []string // of each of them; "": the cluster
	classes []networking.IngressClass
	foreign []ingressReport // of versions that are not read
}

// Limits of the input.
const (
	mostManifests = 16 << 20 // bytes of a file
	atOnce        = 500      // Ingresses of a cluster in a page
)

func (f *ingresses) ofCluster(ctx context.Context, kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	classes, err := cluster.NetworkingV1().IngressClasses().List(ctx, meta.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the cluster's IngressClasses: %w", err)
	}
	f.classes = classes.Items
	for next := ""; ; {
		page, err := cluster.NetworkingV1().Ingresses(namespace).List(ctx, meta.ListOptions{Limit: atOnce, Continue: next})
		if err != nil {
			return fmt.Errorf("list the cluster's Ingresses: %w", err)
		}
		for i := range page.Items {
			f.list, f.files = append(f.list, &page.Items[i]), append(f.files, "")
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

func (f *ingresses) ofPaths(paths []string, input io.Reader) error {
	for _, path := range paths {
		if path == "-" {
			if err := f.read(input, "standard input"); err != nil {
				return err
			}
			continue
		}
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || file != path && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
				return err
			}
			opened, err := os.Open(file)
			if err != nil {
				return err
			}
			defer opened.Close()
			return f.read(opened, file)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads the objects of a file of several documents.
func (f *ingresses) read(source io.Reader, name string) error {
	content, err := door.ReadAll(source, mostManifests, name)
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for number := 1; ; number++ {
		var object rawObject
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f.take(object, name)
		}
		if err != nil {
			return fmt.Errorf("%s: document %d: %w", name, number, err)
		}
	}
}

// rawObject is an object, or a list of objects, that is read when its kind is known.
type rawObject struct {
	meta.TypeMeta `json:",inline"`
	Items         []rawObject `json:"items"`
	text          []byte
}

// UnmarshalJSON keeps the text.
func (o *rawObject) UnmarshalJSON(text []byte) error {
	type plain rawObject
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	o.text = slices.Clone(text)
	return json.Unmarshal(text, (*plain)(o))
}

func (f *ingresses) take(object rawObject, file string) error {
	switch {
	case object.Kind == "List" || object.Kind == "IngressList" || object.Kind == "IngressClassList":
		for _, item := range object.Items {
			if item.Kind == "" { // of typed lists
				item.TypeMeta = meta.TypeMeta{Kind: strings.TrimSuffix(object.Kind, "List"), APIVersion: object.APIVersion}
			}
			if err := f.take(item, file); err != nil {
				return err
			}
		}
	case object.Kind == "IngressClass" && object.APIVersion == networking.SchemeGroupVersion.String():
		var class networking.IngressClass
		if err := json.Unmarshal(object.text, &class); err != nil {
			return err
		}
		f.classes = append(f.classes, class)
	case object.Kind == "Ingress":
		var ingress networking.Ingress
		if object.APIVersion != networking.SchemeGroupVersion.String() {
			var named struct {
				Metadata meta.ObjectMeta `json:"metadata"`
			}
			if err := json.Unmarshal(object.text, &named); err != nil {
				return err
			}
			f.foreign = append(f.foreign, ingressReport{Namespace: named.Metadata.Namespace, Name: named.Metadata.Name, File: file, Lines: []nginx.Line{{
				Part: "apiVersion", Value: object.APIVersion, Verdict: nginx.Refused, Text: "clusters have it no more", Instead: "apiVersion: " + networking.SchemeGroupVersion.String(),
			}}})
			return nil
		}
		if err := json.Unmarshal(object.text, &ingress); err != nil {
			return err
		}
		f.list, f.files = append(f.list, &ingress), append(f.files, file)
	}
	return nil
}

// report prints the treatment of all of them. It returns an error when something is refused.
func (f *ingresses) report(out io.Writer, asJSON bool) error {
	var classes nginx.Classes
	for _, class := range f.classes {
		if class.Spec.Controller == publish.Controller {
			classes.Names = append(classes.Names, class.Name)
			classes.Default = classes.Default || class.Annotations[networking.AnnotationIsDefaultIngressClass] == "true"
		}
	}
	if len(classes.Names) == 0 {
		classes.Names = []string{"burano"}
	}
	reports := slices.Clone(f.foreign)
	for i, ingress := range f.list {
		reports = append(reports, ingressReport{Namespace: ingress.Namespace, Name: ingress.Name, File: f.files[i], Lines: nginx.Examine(ingress, classes)})
	}
	count := make(map[nginx.Verdict]int)
	for _, one := range reports {
		for _, line := range one.Lines {
			count[line.Verdict]++
		}
	}
	if asJSON {
		if err := cli.WriteJSON(out, reports); err != nil {
			return err
		}
	} else {
		table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		for _, one := range reports {
			name := strings.TrimPrefix(one.Namespace+"/"+one.Name, "/")
			if one.File != "" {
				name += " (" + one.File + ")"
			}
			fmt.Fprintln(table, name)
			for _, line := range one.Lines {
				text := line.Text
				if line.Instead != "" {
					text = strings.TrimPrefix(text+"; instead: "+line.Instead, "; ")
				}
				fmt.Fprintf(table, "  %s\t%s: %.60q\t%s\n", line.Verdict, line.Part, line.Value, text)
			}
		}
		fmt.Fprintf(table, "%d Ingresses: %d parts stay, %d change, %d are refused.\n", len(reports), count[nginx.Stays], count[nginx.Changes], count[nginx.Refused])
		if err := table.Flush(); err != nil {
			return err
		}
	}
	if count[nginx.Refused] > 0 {
		return fmt.Errorf("%d parts of %s are refused", count[nginx.Refused], cmp.Or(map[int]string{1: "one Ingress"}[len(reports)], fmt.Sprintf("%d Ingresses", len(reports))))
	}
	return nil
}
