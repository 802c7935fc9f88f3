package images

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// element is a part of the image: packages to have, files to lay over them, a script to run last. Each of the three may be
// missing.
type element struct {
	name     string
	folder   string
	packages []string
	// files and install are "" where there are none.
	files, install string
}

// readElements gives the elements in the order of their names, which is that of their application.
func readElements(folder string) ([]element, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the elements: %w", err)
	}
	var elements []element
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		element, err := readElement(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	if len(elements) == 0 {
		return nil, fmt.Errorf("there are no elements in %s", folder)
	}
	return elements, nil
}

func readElement(folder string) (e element, err error) {
	e = element{name: filepath.Base(folder), folder: folder, files: existing(folder, "files"), install: existing(folder, "install")}
	if e.packages, err = readPackages(filepath.Join(folder, "packages")); err != nil {
		return e, fmt.Errorf("read element %s: %w", e.name, err)
	}
	if e.packages == nil && e.files == "" && e.install == "" {
		return e, fmt.Errorf("element %s is empty: it has neither \"packages\" nor \"files\" nor \"install\"", e.name)
	}
	return e, nil
}

// optionalFolder has elements that only images have which are asked for them.
const optionalFolder = "optional"

// optional are the elements of these names that an image does not have by itself, and the modules that they need.
func optional(source string, names []string) (elements []element, more []module, err error) {
	if len(names) == 0 {
		return nil, nil, nil
	}
	there, err := readElements(filepath.Join(source, optionalFolder))
	if err != nil {
		return nil, nil, err
	}
	var known []string
	for _, one := range there {
		known = append(known, one.name)
		if slices.Contains(names, one.name) {
			elements = append(elements, one)
			more = append(more, optionalModules()[one.name]...)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, nil, fmt.Errorf("no image can be built with %s: there is %s", name, strings.Join(known, ", "))
		}
	}
	return elements, more, nil
}

func existing(folder, name string) string {
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// readPackages reads one name per line; # begins a comment.
func readPackages(path string) ([]string, error) {
	content, err := readBounded(path, maxPackagesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var packages []string
	for line := range strings.Lines(string(content)) {
		text, _, _ := strings.Cut(line, "#")
		packages = append(packages, strings.Fields(text)...)
	}
	return packages, nil
}

// allPackages returns the packages of all elements, sorted, each once.
func allPackages(elements []element) []string {
	var packages []string
	for _, element := range elements {
		packages = append(packages, element.packages...)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}
