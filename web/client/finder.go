package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/muranopl"
)

// LocalPackage is a package that was read and can be uploaded.
type LocalPackage struct {
	From    string // path or URL
	Folder  string // where it lies, "" for a URL
	Package *catalog.Package
	Zip     []byte
}

// Name is the full name.
func (p LocalPackage) Name() string { return p.Package.FullName() }

// Finder reads packages from wherever they are.
type Finder struct {
	// Repository has packages at apps/<full name>.zip, bundles at bundles/<name>.bundle and images at images/<name>; "" is none.
	Repository string
	HTTP       *http.Client
}

// NewFinder makes a finder; repository is a URL, or "".
func NewFinder(repository string) Finder {
	return Finder{Repository: repository, HTTP: &http.Client{Timeout: requestTime}}
}

// FindAll is Find for several.
func (f Finder) FindAll(ctx context.Context, names []string) ([]LocalPackage, error) {
	var all []LocalPackage
	for _, name := range names {
		found, err := f.Find(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// Find reads a package that a user named: by its path, its URL, or its name in the repository.
func (f Finder) Find(ctx context.Context, name string) (LocalPackage, error) {
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return f.download(ctx, name)
	}
	if _, err := os.Stat(name); err == nil {
		return readLocal(name)
	}
	if f.Repository == "" {
		return LocalPackage{}, fmt.Errorf("%s is no file, folder or URL; to look for it by name, say where with --repository or MURANO_REPO_URL", name)
	}
	return f.download(ctx, f.address(name))
}

func (f Finder) address(name string) string {
	return strings.TrimSuffix(f.Repository, "/") + "/apps/" + url.PathEscape(strings.TrimSuffix(name, ".zip")) + ".zip"
}

// readLocal reads a zip or a folder as the server will read it, so that faults are reported before anything is sent.
func readLocal(path string) (LocalPackage, error) {
	info, err := os.Stat(path)
	if err != nil {
		return LocalPackage{}, err
	}
	var zip []byte
	if info.IsDir() {
		var buffer bytes.Buffer
		if err := catalog.WriteZip(&buffer, os.DirFS(path)); err != nil {
			return LocalPackage{}, fmt.Errorf("pack %s: %w", path, err)
		}
		zip = buffer.Bytes()
	} else if zip, err = os.ReadFile(path); err != nil {
		return LocalPackage{}, err
	}
	return readPacked(path, filepath.Dir(filepath.Clean(path)), zip)
}

func readPacked(from, folder string, zip []byte) (LocalPackage, error) {
	if len(zip) > catalog.MaxUpload {
		return LocalPackage{}, fmt.Errorf("%s: it has %d bytes as a zip, more than the %d that a server takes", from, len(zip), catalog.MaxUpload)
	}
	pkg, err := catalog.ReadZip(bytes.NewReader(zip), int64(len(zip)))
	if err == nil {
		err = pkg.CheckLengths()
	}
	if err != nil {
		return LocalPackage{}, fmt.Errorf("%s: %w", from, withRule(err))
	}
	return LocalPackage{From: from, Folder: folder, Package: pkg, Zip: zip}, nil
}

func (f Finder) download(ctx context.Context, address string) (LocalPackage, error) {
	content, err := f.get(ctx, address)
	if err != nil {
		return LocalPackage{}, err
	}
	defer content.Close()
	zip, err := io.ReadAll(io.LimitReader(content, catalog.MaxUpload+1))
	if err != nil {
		return LocalPackage{}, fmt.Errorf("download %s: %w", address, err)
	}
	return readPacked(address, "", zip)
}

// get opens an address; the caller closes it.
func (f Finder) get(ctx context.Context, address string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := f.HTTP.Do(request)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("download %s: the server answers %s", address, response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// required finds a package that another one requires.
func (f Finder) required(ctx context.Context, name string, by LocalPackage) (LocalPackage, error) {
	if by.Folder != "" {
		for _, path := range []string{filepath.Join(by.Folder, name+".zip"), filepath.Join(by.Folder, name)} {
			if _, err := os.Stat(path); err == nil {
				return readLocal(path)
			}
		}
	}
	if f.Repository == "" {
		return LocalPackage{}, fmt.Errorf("%s requires %s, which is neither in the catalog nor beside it: import it too, or say with --repository where it is",
			by.Name(), name)
	}
	found, err := f.download(ctx, f.address(name))
	if err != nil {
		return found, fmt.Errorf("%s requires %s: %w", by.Name(), name, err)
	}
	return found, nil
}

// WithRequired adds required packages that the catalog does not have, and orders all so that each comes after the ones that it requires.
func (f Finder) WithRequired(ctx context.Context, asked []LocalPackage, has func(ctx context.Context, name string) (bool, error)) ([]LocalPackage, error) {
	known := map[string]LocalPackage{}
	for _, one := range asked {
		if other, twice := known[one.Name()]; twice {
			return nil, fmt.Errorf("%s and %s are both the package %s", other.From, one.From, one.Name())
		}
		known[one.Name()] = one
	}
	var ordered []LocalPackage
	var on []string // the path to the present package
	done := map[string]bool{}
	var add func(one LocalPackage) error
	add = func(one LocalPackage) error {
		if done[one.Name()] {
			return nil
		}
		if at := slices.Index(on, one.Name()); at >= 0 {
			return fmt.Errorf("these packages require each other: %s", strings.Join(append(on[at:], one.Name()), ", "))
		}
		on = append(on, one.Name())
		for _, name := range slices.Sorted(maps.Keys(one.Package.Requires())) {
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
				if required.Name() != name {
					return fmt.Errorf("%s should be the package %s, but is %s", required.From, name, required.Name())
				}
				known[name] = required
			}
			spec, err := muranopl.ParseSpec(one.Package.Requires()[name])
			if err != nil {
				return err
			}
			if !spec.Admits(required.Package.Version()) {
				return fmt.Errorf("%s requires %s of version %q, but %s is %s", one.Name(), name, one.Package.Requires()[name], required.From, required.Package.Version())
			}
			if err := add(required); err != nil {
				return err
			}
		}
		on = on[:len(on)-1]
		done[one.Name()] = true
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
