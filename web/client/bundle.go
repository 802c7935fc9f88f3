package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
)

// maxBundle bounds the size of a bundle, which is a list of names.
const maxBundle = 1 << 20

// Bundle finds the packages of a bundle: of a file, a URL, or a name in the repository.
func (f Finder) Bundle(ctx context.Context, name string) ([]LocalPackage, error) {
	address, folder := name, ""
	var content io.ReadCloser
	var err error
	switch _, missing := os.Stat(name); {
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		content, err = f.get(ctx, address)
	case missing == nil:
		folder = filepath.Dir(name)
		content, err = os.Open(name)
	case f.Repository == "":
		return nil, fmt.Errorf("%s is no file or URL; to look for it by name, say where with --repository or MURANO_REPO_URL", name)
	default:
		address = strings.TrimSuffix(f.Repository, "/") + "/bundles/" + url.PathEscape(strings.TrimSuffix(name, ".bundle")) + ".bundle"
		content, err = f.get(ctx, address)
	}
	if err != nil {
		return nil, err
	}
	defer content.Close()
	var listed struct {
		Packages []struct {
			Name    string `yaml:"Name"`
			Version string `yaml:"Version"`
		} `yaml:"Packages"`
	}
	if err := yaml.NewDecoder(io.LimitReader(content, maxBundle)).Decode(&listed); err != nil {
		return nil, noBundle(address, err)
	}
	if len(listed.Packages) == 0 {
		return nil, fmt.Errorf("%s is no bundle: it has no list \"Packages\"", address)
	}
	var all []LocalPackage
	for i, one := range listed.Packages {
		if one.Name == "" {
			return nil, fmt.Errorf("%s: Packages[%d] has no name", address, i)
		}
		found, err := f.ofBundle(ctx, one.Name, one.Version, folder)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", address, one.Name, err)
		}
		all = append(all, found)
	}
	return all, nil
}

// noBundle describes a fault of a bundle in the words of its format, and not of Go's types.
func noBundle(address string, err error) error {
	const form = `a bundle is JSON or YAML such as {"Packages": [{"Name": "io.example.App"}]}`
	var types *yaml.TypeError
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s is no bundle: it is empty; %s", address, form)
	case errors.As(err, &types):
		if line := bundleLine.FindString(types.Errors[0]); line != "" {
			return fmt.Errorf("%s is no bundle: %s has another kind of value than a bundle has there; %s", address, line, form)
		}
		return fmt.Errorf("%s is no bundle; %s", address, form)
	}
	return fmt.Errorf("%s is no bundle: %s; %s", address, strings.TrimPrefix(err.Error(), "yaml: "), form)
}

var bundleLine = regexp.MustCompile(`^line [0-9]+`)

// ofBundle finds a package that a bundle names, beside the bundle's file or in the repository, where one of a certain version has that in
// its name.
func (f Finder) ofBundle(ctx context.Context, name, version, folder string) (LocalPackage, error) {
	if folder != "" {
		for _, path := range []string{filepath.Join(folder, name), filepath.Join(folder, name+".zip")} {
			if _, err := os.Stat(path); err == nil {
				return readLocal(path)
			}
		}
	}
	if f.Repository == "" {
		return LocalPackage{}, fmt.Errorf("it is not beside the bundle: say with --repository or MURANO_REPO_URL where it is")
	}
	if version != "" {
		name += "." + version
	}
	return f.download(ctx, f.address(name))
}

// ImageAddress is the address of a package's image: in the package, or in the repository; "" without one.
func (f Finder) ImageAddress(image catalog.Image) string {
	if strings.HasPrefix(image.URL, "http://") || strings.HasPrefix(image.URL, "https://") {
		return image.URL
	}
	if f.Repository == "" {
		return ""
	}
	return strings.TrimSuffix(f.Repository, "/") + "/images/" + url.PathEscape(cmp.Or(image.URL, image.Name))
}

// SaveImage saves an image in a folder under the last part of where it is. The file appears whole or not at all.
func (f Finder) SaveImage(ctx context.Context, image catalog.Image, folder string) (path string, err error) {
	address := f.ImageAddress(image)
	if address == "" {
		return "", errors.New("nobody says where it is: name a repository with --repository")
	}
	name := filepath.Base(cmp.Or(image.URL, image.Name))
	if !filepath.IsLocal(name) || name == "." {
		return "", fmt.Errorf("%q is no name for a file", name)
	}
	f.HTTP = &http.Client{Transport: f.HTTP.Transport} // without a limit of time: images are large
	content, err := f.get(ctx, address)
	if err != nil {
		return "", err
	}
	defer content.Close()
	path = filepath.Join(folder, name)
	file, err := os.CreateTemp(folder, ".image-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return "", fmt.Errorf("download %s: %w", address, err)
	}
	return path, os.Rename(file.Name(), path)
}
