package author

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/cmd/burano/process"
)

// createOptions are the flags of package create.
type createOptions struct {
	template, classes, chart, resources, ui, logo, output string
	fullName, name, kind, author, description, version    string
	tags, environments                                    []string
	force                                                 bool
}

func packageCreateCommand() *cobra.Command {
	var options createOptions
	command := &cobra.Command{
		Use:   "create [FOLDER]",
		Short: "Create a package's zip from a folder, a Heat template (-t), classes (-c) or a Helm chart (--chart)",
		Example: `  burano package create ./io.example.App
  burano package create -t wordpress.yaml --name WordPress --full-name io.example.WordPress
  burano package create -c ./Classes -r ./Resources --full-name io.example.App
  burano package create --chart ./pages --full-name io.example.Pages
  burano package create --chart oci://registry.example.org/charts/pages:1.2.3 --full-name io.example.Pages`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			pkg, err := options.read(command.Context(), args, command.ErrOrStderr())
			if err == nil {
				err = errors.Join(pkg.CheckLengths(), pkg.CheckTemplate())
			}
			if err != nil {
				return err
			}
			var zip bytes.Buffer
			if err := pkg.WriteZip(&zip); err != nil {
				return err
			}
			file := options.output
			if file == "" {
				file = pkg.FullName() + ".zip"
			}
			if err := save(file, zip.Bytes(), options.force); err != nil {
				return err
			}
			if err := warnOfMissing(command.ErrOrStderr(), pkg); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: saved as %s\n", pkg.FullName(), file)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVarP(&options.template, "template", "t", "", "Heat template of the package; files that it names (get_file, nested templates) are packed with it")
	flags.StringArrayVar(&options.environments, "environment", nil, "environment file of Heat to pack with the template, with the files of its resource_registry; may be repeated")
	flags.StringVarP(&options.classes, "classes", "c", "", "folder of class files, each of which starts with the Name of its class")
	flags.StringVar(&options.chart, "chart", "", "Helm chart of the package: its folder, its archive (.tgz), or its address in a registry (oci://…), from which the server fetches it")
	flags.StringVarP(&options.resources, "resources", "r", "", "folder of resources")
	flags.StringVarP(&options.ui, "ui", "u", "", "file of the dynamic UI")
	flags.StringVarP(&options.logo, "logo", "l", "", "file of the logo: PNG, JPEG or GIF")
	flags.StringVarP(&options.fullName, "full-name", "f", "", "full name (default derived from the template's file name)")
	flags.StringVarP(&options.name, "name", "n", "", "display name (default the template's file name)")
	flags.StringVar(&options.kind, "type", "Application", "Application or Library")
	flags.StringVarP(&options.author, "author", "a", "", "author")
	flags.StringVarP(&options.description, "description", "d", "", "description (default the template's)")
	flags.StringVar(&options.version, "version", "", "version, such as 1.2.0")
	flags.StringSliceVar(&options.tags, "tags", nil, "tags")
	flags.StringVar(&options.output, "output", "", "file to write (default <full name>.zip)")
	flags.BoolVar(&options.force, "force", false, "overwrite an existing file")
	return command
}

// read reads the package from the folder, or makes its files. Files that one would not expect in it are named in warnings.
func (o createOptions) read(ctx context.Context, args []string, warnings io.Writer) (*catalog.Package, error) {
	switch {
	case len(args) == 1 && o.template+o.classes+o.chart+o.resources+o.ui != "":
		return nil, errors.New("name either a folder, or what the package is made of (-t, -c, --chart, -r, -u)")
	case len(args) == 1:
		if _, err := os.Stat(args[0]); err != nil {
			return nil, err
		}
		return process.PackageReader().Folder(ctx, os.DirFS(args[0]))
	case len(o.environments) > 0 && o.template == "":
		return nil, errors.New("--environment goes with a Heat template (-t)")
	case o.sources() != 1:
		return nil, errors.New("name a folder, or a Heat template with -t, or a folder of classes with -c, or a Helm chart with --chart")
	}
	files, manifest := map[string][]byte{}, map[string]any{"Type": o.kind}
	var err error
	switch {
	case o.template != "":
		err = o.hot(files, manifest)
	case o.chart != "":
		err = o.helm(files, manifest)
	default:
		err = o.muranoPL(files, manifest)
	}
	if err == nil && o.resources != "" {
		err = addFolder(files, "Resources", o.resources)
	}
	if err == nil && o.template != "" {
		err = catalog.GatherHotFiles(files, func(name string) ([]byte, error) {
			file := filepath.Join(filepath.Dir(o.template), filepath.FromSlash(name))
			content, err := os.ReadFile(file)
			if err == nil && strings.HasPrefix(name, "../") {
				fmt.Fprintf(warnings, "warning: %s is packed, which is outside of the template's folder\n", file)
			}
			return content, err
		})
	}
	if err == nil && o.logo != "" {
		err = addFile(files, "logo.png", o.logo)
	}
	if err != nil {
		return nil, err
	}
	for key, value := range map[string]string{"FullName": o.fullName, "Name": o.name, "Author": o.author, "Description": o.description, "Version": o.version} {
		if value != "" {
			manifest[key] = value
		}
	}
	if len(o.tags) > 0 {
		manifest["Tags"] = o.tags
	}
	if files["manifest.yaml"], err = yaml.Marshal(manifest); err != nil {
		return nil, err
	}
	return process.PackageReader().Files(ctx, files)
}

// sources is how many kinds of sources for a package are named.
func (o createOptions) sources() (count int) {
	for _, one := range []string{o.template, o.classes, o.chart} {
		if one != "" {
			count++
		}
	}
	return count
}

// helm puts a chart into the package, or its address.
func (o createOptions) helm(files map[string][]byte, manifest map[string]any) error {
	if o.fullName == "" {
		return errors.New("--full-name is needed for a package of a Helm chart")
	}
	manifest["Format"] = "Helm/1.0"
	if strings.Contains(o.chart, "://") {
		manifest["Chart"] = o.chart
		return nil
	}
	about, err := os.Stat(o.chart)
	if err != nil {
		return err
	}
	if about.IsDir() {
		return addFolder(files, "Resources/chart", o.chart)
	}
	manifest["Chart"] = filepath.Base(o.chart)
	return addFile(files, "Resources/"+filepath.Base(o.chart), o.chart)
}

var noPartOfAName = regexp.MustCompile(`[^\pL\pN]+`)

func (o createOptions) hot(files map[string][]byte, manifest map[string]any) error {
	if err := addFile(files, "template.yaml", o.template); err != nil {
		return err
	}
	var template struct {
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal(files["template.yaml"], &template); err != nil {
		return fmt.Errorf("%s: %w", o.template, err)
	}
	base := strings.TrimSuffix(filepath.Base(o.template), filepath.Ext(o.template))
	manifest["Format"], manifest["Name"] = "Heat.HOT/1.0", base
	manifest["FullName"] = "io.murano.apps.generated." + strings.Trim(noPartOfAName.ReplaceAllString(base, "_"), "_")
	if template.Description != "" {
		manifest["Description"] = template.Description
	}
	for _, environment := range o.environments {
		if err := addFile(files, "Resources/HotEnvironments/"+filepath.Base(environment), environment); err != nil {
			return err
		}
	}
	return nil
}

// warnOfMissing names the files that a Heat template names and the package has not.
func warnOfMissing(out io.Writer, pkg *catalog.Package) error {
	references, err := pkg.HotReferences()
	for _, one := range references {
		if one.Missing {
			fmt.Fprintf(out, "warning: %s:%d:%d names %q, which is not packed: there is no such file\n", one.In, one.Line, one.Column, one.Name)
		}
	}
	return err
}

func (o createOptions) muranoPL(files map[string][]byte, manifest map[string]any) error {
	if o.fullName == "" {
		return errors.New("--full-name is needed for a package of classes")
	}
	if err := addFolder(files, "Classes", o.classes); err != nil {
		return err
	}
	classes := map[string]string{}
	for name, file := range files {
		declared, err := declaredClasses(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, class := range declared {
			classes[class] = strings.TrimPrefix(name, "Classes/")
		}
	}
	if len(classes) == 0 {
		return fmt.Errorf("%s holds no class", o.classes)
	}
	manifest["Format"], manifest["Classes"] = "MuranoPL/1.4", classes
	if o.ui != "" {
		return addFile(files, "UI/ui.yaml", o.ui)
	}
	return nil
}

// declaredClasses are the full names of the classes of a class file.
func declaredClasses(text []byte) ([]string, error) {
	var names []string
	own := ""
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var document struct {
			Name       string            `yaml:"Name"`
			Namespaces map[string]string `yaml:"Namespaces"`
		}
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		if space, there := document.Namespaces["="]; there {
			own = space + "."
		}
		if document.Name != "" {
			if strings.Contains(document.Name, ".") {
				names = append(names, document.Name)
			} else {
				names = append(names, own+document.Name)
			}
		}
	}
}

func addFile(files map[string][]byte, name, from string) error {
	content, err := os.ReadFile(from)
	files[name] = content
	return err
}

func addFolder(files map[string][]byte, name, from string) error {
	return fs.WalkDir(os.DirFS(from), ".", func(inner string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return addFile(files, path.Join(name, inner), filepath.Join(from, filepath.FromSlash(inner)))
	})
}
