package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/muranopl"
)

// importOptions are the flags of package import.
type importOptions struct {
	exists     string
	public     bool
	categories []string
	tags       []string
	repository string
}

func packageImportCommand(connection *connection) *cobra.Command {
	var options importOptions
	command := &cobra.Command{
		Use:   "import PATH|URL|NAME…",
		Short: "Upload packages: zips, folders which are packed first, URLs of zips, or names in a repository",
		Long: `Uploads packages, and before them the packages that they require and that the catalog does not have. Those are looked for among
the packages that are named, beside each file (<folder>/<full name>.zip or <folder>/<full name>/), and in the repository.

A repository (--repository or MURANO_REPO_URL) has its packages at apps/<full name>.zip, and images at images/<name>.

At last it says which images the packages need (images.lst), whether Glance has them, and what to do when it has not.`,
		Example: `  burano package import ./io.example.App
  burano package import --exists-action u app.zip
  burano package import --repository https://apps.example.org io.example.App`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			finder := newPackageFinder(options.repository)
			asked, err := finder.findAll(command.Context(), names)
			if err != nil {
				return err
			}
			return connection.importAll(command, finder, asked, options)
		},
	}
	options.addFlags(command)
	command.Flags().StringSliceVarP(&options.categories, "categories", "c", nil, "categories that the packages are put into")
	command.Flags().StringSliceVar(&options.tags, "tags", nil, "tags besides those of the manifests")
	return command
}

// addFlags adds the flags of whatever imports packages.
func (o *importOptions) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&o.exists, "exists-action", "a", "when the project has the package already: s skip, u update (delete and upload), a abort")
	_ = command.RegisterFlagCompletionFunc("exists-action", cobra.FixedCompletions([]string{"s", "u", "a"}, cobra.ShellCompDirectiveNoFileComp))
	command.Flags().BoolVar(&o.public, "public", false, "let every project use the packages")
	addRepositoryFlag(command, &o.repository)
}

func addRepositoryFlag(command *cobra.Command, repository *string) {
	command.Flags().StringVar(repository, "repository", os.Getenv("MURANO_REPO_URL"), "where packages are looked for by name (MURANO_REPO_URL)")
}

// importAll uploads packages and those that they require, and says what was done and which images they need.
func (c *connection) importAll(command *cobra.Command, finder packageFinder, asked []localPackage, options importOptions) error {
	if !slices.Contains([]string{"s", "u", "a"}, options.exists) {
		return fmt.Errorf("--exists-action is s (skip), u (update) or a (abort), not %q", options.exists)
	}
	client, err := c.connect(command.Context())
	if err != nil {
		return err
	}
	ordered, err := finder.withRequired(command.Context(), asked, client.hasPackage)
	if err != nil {
		return err
	}
	for _, one := range ordered {
		action := options.exists
		if !slices.ContainsFunc(asked, func(a localPackage) bool { return a.name() == one.name() }) {
			action = "s" // what is only required is not replaced
		}
		done, err := client.importPackage(command.Context(), one, action, options)
		if err != nil {
			return fmt.Errorf("import %s: %w", one.from, err)
		}
		fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", one.name(), done)
	}
	sayImages(command.Context(), command.OutOrStdout(), c, ordered, options.repository)
	return nil
}

// localPackage is a package that was read and can be uploaded.
type localPackage struct {
	from   string // path or URL
	folder string // where it lies, "" for a URL
	pkg    *catalog.Package
	zip    []byte
}

func (p localPackage) name() string { return p.pkg.FullName() }

// packageFinder reads packages from wherever they are.
type packageFinder struct {
	repository string
	http       *http.Client
}

func newPackageFinder(repository string) packageFinder {
	return packageFinder{repository: repository, http: &http.Client{Timeout: 5 * time.Minute}}
}

// findAll is find for several.
func (f packageFinder) findAll(ctx context.Context, names []string) ([]localPackage, error) {
	var all []localPackage
	for _, name := range names {
		found, err := f.find(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// find reads a package that a user named: by its path, its URL, or its name in the repository.
func (f packageFinder) find(ctx context.Context, name string) (localPackage, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return f.download(ctx, name)
	}
	if _, err := os.Stat(name); err == nil {
		return readLocal(name)
	}
	if f.repository == "" {
		return localPackage{}, fmt.Errorf("%s is no file, folder or URL; to look for it by name, say where with --repository or MURANO_REPO_URL", name)
	}
	return f.download(ctx, f.address(name))
}

func (f packageFinder) address(name string) string {
	return strings.TrimSuffix(f.repository, "/") + "/apps/" + url.PathEscape(strings.TrimSuffix(name, ".zip")) + ".zip"
}

// readLocal reads a zip or a folder as the server will read it, so that what is wrong is said before anything is sent.
func readLocal(path string) (localPackage, error) {
	info, err := os.Stat(path)
	if err != nil {
		return localPackage{}, err
	}
	var zip []byte
	if info.IsDir() {
		var buffer bytes.Buffer
		if err := catalog.WriteZip(&buffer, os.DirFS(path)); err != nil {
			return localPackage{}, fmt.Errorf("pack %s: %w", path, err)
		}
		zip = buffer.Bytes()
	} else if zip, err = os.ReadFile(path); err != nil {
		return localPackage{}, err
	}
	return readPacked(path, filepath.Dir(filepath.Clean(path)), zip)
}

func readPacked(from, folder string, zip []byte) (localPackage, error) {
	if len(zip) > catalog.MaxUpload {
		return localPackage{}, fmt.Errorf("%s: it has %d bytes as a zip, more than the %d that a server takes", from, len(zip), catalog.MaxUpload)
	}
	pkg, err := catalog.ReadZip(bytes.NewReader(zip), int64(len(zip)))
	if err == nil {
		err = pkg.CheckLengths()
	}
	if err != nil {
		return localPackage{}, fmt.Errorf("%s: %w", from, err)
	}
	return localPackage{from: from, folder: folder, pkg: pkg, zip: zip}, nil
}

func (f packageFinder) download(ctx context.Context, address string) (localPackage, error) {
	content, err := f.get(ctx, address)
	if err != nil {
		return localPackage{}, err
	}
	defer content.Close()
	zip, err := io.ReadAll(io.LimitReader(content, catalog.MaxUpload+1))
	if err != nil {
		return localPackage{}, fmt.Errorf("download %s: %w", address, err)
	}
	return readPacked(address, "", zip)
}

// get opens what is at an address; the caller closes it.
func (f packageFinder) get(ctx context.Context, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("download %s: the server answers %s", address, response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// required finds a package that another one requires.
func (f packageFinder) required(ctx context.Context, name string, by localPackage) (localPackage, error) {
	if by.folder != "" {
		for _, path := range []string{filepath.Join(by.folder, name+".zip"), filepath.Join(by.folder, name)} {
			if _, err := os.Stat(path); err == nil {
				return readLocal(path)
			}
		}
	}
	if f.repository == "" {
		return localPackage{}, fmt.Errorf("%s requires %s, which is neither in the catalog nor beside it: import it too, or say with --repository where it is",
			by.name(), name)
	}
	found, err := f.download(ctx, f.address(name))
	if err != nil {
		return found, fmt.Errorf("%s requires %s: %w", by.name(), name, err)
	}
	return found, nil
}

// withRequired adds what the packages require and the catalog does not have, and orders all so that each comes after those that it
// requires.
func (f packageFinder) withRequired(ctx context.Context, asked []localPackage, has func(ctx context.Context, name string) (bool, error)) ([]localPackage, error) {
	known := map[string]localPackage{}
	for _, one := range asked {
		if other, twice := known[one.name()]; twice {
			return nil, fmt.Errorf("%s and %s are both the package %s", other.from, one.from, one.name())
		}
		known[one.name()] = one
	}
	var ordered []localPackage
	var on []string // the way to the package that is looked at
	done := map[string]bool{}
	var add func(one localPackage) error
	add = func(one localPackage) error {
		if done[one.name()] {
			return nil
		}
		if at := slices.Index(on, one.name()); at >= 0 {
			return fmt.Errorf("these packages require each other: %s", strings.Join(append(on[at:], one.name()), ", "))
		}
		on = append(on, one.name())
		for _, name := range slices.Sorted(maps.Keys(one.pkg.Requires())) {
			required, there := known[name]
			if !there {
				inCatalog, err := has(ctx, name)
				if err != nil {
					return err
				}
				if inCatalog {
					continue
				}
				if required, err = f.required(ctx, name, one); err != nil {
					return err
				}
				if required.name() != name {
					return fmt.Errorf("%s should be the package %s, but is %s", required.from, name, required.name())
				}
				known[name] = required
			}
			spec, err := muranopl.ParseSpec(one.pkg.Requires()[name])
			if err != nil {
				return err
			}
			if !spec.Admits(required.pkg.Version()) {
				return fmt.Errorf("%s requires %s of version %q, but %s is %s", one.name(), name, one.pkg.Requires()[name], required.from, required.pkg.Version())
			}
			if err := add(required); err != nil {
				return err
			}
		}
		on = on[:len(on)-1]
		done[one.name()] = true
		ordered = append(ordered, one)
		return nil
	}
	for _, one := range asked {
		if err := add(one); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}

// hasPackage tells whether the catalog has a package of this name that the project can use.
func (c *client) hasPackage(ctx context.Context, name string) (bool, error) {
	rows, err := c.packages(ctx, url.Values{"fqn": {name}, "catalog": {"true"}})
	return len(rows) > 0, err
}

// importPackage uploads a package and says in a word what was done.
func (c *client) importPackage(ctx context.Context, one localPackage, exists string, options importOptions) (string, error) {
	err := c.upload(ctx, one, options)
	if !isStatus(err, http.StatusConflict) {
		return "imported", err
	}
	switch exists {
	case "a":
		return "", fmt.Errorf("%w; --exists-action s leaves what is there, u replaces it", err)
	case "s":
		return "is there already, left as it is", nil
	}
	own, listed := c.packages(ctx, url.Values{"owned": {"true"}, "include_disabled": {"true"}, "fqn": {one.name()}})
	switch {
	case listed != nil:
		return "", listed
	case len(own) == 0:
		return "", fmt.Errorf("%w, by a package of another name or project, which is not replaced", err)
	}
	for _, row := range own {
		if err := c.call(ctx, http.MethodDelete, "/v1/catalog/packages/"+row.ID, nil, nil); err != nil {
			return "", err
		}
	}
	return "updated", c.upload(ctx, one, options)
}

func (c *client) upload(ctx context.Context, one localPackage, options importOptions) error {
	settings := map[string]any{"is_public": options.public}
	if len(options.categories) > 0 {
		settings["categories"] = options.categories
	}
	if len(options.tags) > 0 {
		settings["tags"] = options.tags
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, fileErr := form.CreateFormFile(one.name(), one.name()+".zip")
	if fileErr == nil {
		_, fileErr = file.Write(one.zip)
	}
	if err := errors.Join(form.WriteField("__metadata__", string(text)), fileErr, form.Close()); err != nil {
		return err
	}
	_, err = c.send(ctx, http.MethodPost, "/v1/catalog/packages", &body, "Content-Type", form.FormDataContentType())
	return err
}
