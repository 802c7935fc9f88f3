package catalog

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sort"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// Package is one package, read whole and checked. It does not change; the byte slices that it gives out are not to be written.
type Package struct {
	manifest
	files    contents
	embedded bool
	held     int // bytes of memory, about

	// What is made of a Heat template or a Helm chart; "" for MuranoPL.
	madeClass, madeForm string

	rules map[string]hot.Rule // of a Heat template's parameters
	doubt error               // about a Heat template, which keeps it from being taken in

	chartIcon []byte      // of a Helm chart; nil where it has none
	origin    chartOrigin // of one that was fetched
	work      chartWork
}

var _ muranopl.Package = (*Package)(nil)

const (
	typeApplication = "Application"
	typeLibrary     = "Library"

	logoFile         = "logo.png"
	supplierLogoFile = "supplier_logo.png"
	uiFile           = "ui.yaml"

	// generatedFile and generatedOfChart are the names of class files that are not in the package.
	generatedFile    = "<made of template.yaml>"
	generatedOfChart = "<made of the chart>"

	// maxManifest is in bytes.
	maxManifest = 1 << 20

	// maxLogo is Murano's limit for an image, in bytes.
	maxLogo = 500 << 10
)

// FullName is the package's fully qualified name, such as "io.murano".
func (m *manifest) FullName() string { return m.fullName }

// Name is the name to show; the fully qualified name where the manifest gives none.
func (m *manifest) Name() string { return m.name }

// Type is "Application" or "Library".
func (m *manifest) Type() string { return m.kind }

// Description is the manifest's text; Murano's fixed sentence where there is none.
func (m *manifest) Description() string { return m.description }

// Author is the manifest's author, "" where there is none.
func (m *manifest) Author() string { return m.author }

// Tags are the manifest's tags in its order.
func (m *manifest) Tags() []string { return slices.Clone(m.tags) }

// Categories are those that the manifest names. Only packages that come with Burano get them; of others the upload names them.
func (m *manifest) Categories() []string { return slices.Clone(m.categories) }

// Supplier is the manifest's map about the supplier (Name, Logo, Summary, Description, CompanyUrl), never nil.
func (m *manifest) Supplier() map[string]any { return maps.Clone(m.supplier) }

// Version is the manifest's version, 0.0.0 where there is none.
func (m *manifest) Version() *semver.Version { return m.version }

// Format is the version of MuranoPL, "1.0" to "1.4".
func (m *manifest) Format() string { return m.language }

// CheckTemplate refuses a Heat template in which a parameter, resource, output or condition stands twice.
func (p *Package) CheckTemplate() error { return p.doubt }

// HOT tells whether the package holds a Heat template and no MuranoPL.
func (m *manifest) HOT() bool { return m.hot }

// Embedded tells whether the package came with Burano.
func (p *Package) Embedded() bool { return p.embedded }

// Requires maps the names of required packages to version specs as written.
func (m *manifest) Requires() map[string]string { return maps.Clone(m.requires) }

// Meta is the manifest's metadata of the package, as its YAML has it, nil where there is none.
func (m *manifest) Meta() any { return m.meta }

// ClassNames lists the classes of the manifest in its order; a package of a Heat template or a Helm chart has one class, of its own name.
func (m *manifest) ClassNames() []string { return slices.Clone(m.classes) }

// ClassFile returns the file that declares the class, its name inside the package and its text. It is a fault of kind NotFound
// when the manifest does not name the class, and of kind Invalid when the file is missing.
func (p *Package) ClassFile(class string) (string, []byte, error) {
	if p.manifest.hot && class == p.manifest.fullName {
		return generatedFile, []byte(p.madeClass), nil
	}
	if p.manifest.helm && class == p.manifest.fullName {
		return generatedOfChart, []byte(p.madeClass), nil
	}
	name, ok := p.manifest.classFiles[class]
	if !ok {
		return "", nil, fault.New(fault.NotFound, "Package '%s' has no class '%s'", p.FullName(), class)
	}
	file := path.Join("Classes", name)
	text, err := p.files.read(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = fault.New(fault.Invalid, "Package '%s' says that class '%s' is in '%s', but holds no such file", p.FullName(), class, file)
	}
	return file, text, err
}

// UI is the dynamic UI definition as YAML text, that of a Heat template or a Helm chart made from it; nil where the package has none.
func (p *Package) UI() ([]byte, error) {
	if p.manifest.hot || p.manifest.helm {
		return []byte(p.madeForm), nil
	}
	return p.optional(p.UIFile())
}

// optional reads a file, nil where there is none.
func (p *Package) optional(name string) ([]byte, error) {
	content, err := p.files.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// UIFile is where the dynamic UI definition of a package with MuranoPL lies, or would.
func (m *manifest) UIFile() string { return path.Join("UI", m.ui) }

// ManifestPlace is where the manifest has a key, or, when inner is not "", an entry below it; the beginning where it has none.
func (m *manifest) ManifestPlace(key, inner string) (line, column int) {
	line, column = 1, 1
	if node := m.values[key]; node != nil {
		line, column = node.Line, node.Column
		for i := 0; inner != "" && node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == inner {
				line, column = node.Content[i].Line, node.Content[i].Column
			}
		}
	}
	return line, column
}

// Logo is the package's logo (PNG, JPEG or GIF), or that of its Helm chart; nil where it has none.
func (p *Package) Logo() ([]byte, error) {
	logo, err := p.optional(p.manifest.logo)
	if logo == nil && err == nil {
		logo = p.chartIcon
	}
	return logo, err
}

// SupplierLogo is the supplier's logo (PNG, JPEG or GIF), nil where the package has none.
func (p *Package) SupplierLogo() ([]byte, error) { return p.optional(p.manifest.supplierLogo) }

// File returns a file of the package by its path, such as "Resources/scripts/setup.sh". The class of a Heat template has its template
// as a resource of its own name. It fails with fs.ErrNotExist when there is no such file.
func (p *Package) File(name string) ([]byte, error) {
	if p.manifest.hot && name == "Resources/"+p.manifest.fullName {
		name = templateFile
	}
	return p.files.read(name)
}

// Has tells whether the package has a file of that path.
func (p *Package) Has(name string) bool {
	_, there := p.files.length(name)
	return there
}

// FileNames lists the paths of all files, sorted.
func (p *Package) FileNames() []string {
	names := p.files.names()
	sort.Strings(names)
	return names
}

// readPackage checks the files as a package.
func readPackage(ctx context.Context, files contents, work chartWork) (*Package, error) {
	length, there := files.length(manifestFile)
	if !there {
		return nil, fault.New(fault.Invalid, "Unable to find package manifest%s", hintOfTop(files))
	}
	if length > maxManifest {
		return nil, fault.New(fault.TooLarge, "%s has %d bytes, more than the %d allowed", manifestFile, length, maxManifest)
	}
	text, err := files.read(manifestFile)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, err
	}
	p := &Package{manifest: m, files: files, work: work}
	if m.hot {
		text, err := files.read(templateFile)
		if errors.Is(err, fs.ErrNotExist) {
			err = incorrect("a package of format '%s' needs a '%s' at its top", m.format, templateFile)
		}
		if err != nil {
			return nil, err
		}
		template, err := readTemplate(text)
		if err != nil {
			return nil, err
		}
		p.madeClass, p.madeForm = template.class(&p.manifest, files), template.form(&p.manifest)
		p.rules, p.doubt = template.rules(), template.doubt()
	}
	if m.helm {
		if err := p.takeChart(ctx, text); err != nil {
			return nil, err
		}
	}
	if err := p.checkImage(m.logo, m.logo != logoFile, "Logo"); err != nil {
		return nil, err
	}
	if err := p.checkImage(m.supplierLogo, m.supplierLogo != supplierLogoFile, "Supplier Logo"); err != nil {
		return nil, err
	}
	p.held = files.held() + ofManifest*len(text) + len(p.madeClass) + len(p.madeForm) + len(p.chartIcon)
	return p, nil
}

// ofManifest is about how many bytes of memory are taken for a byte of a manifest, which is kept as it was parsed.
const ofManifest = 16

// hintOfTop helps the one who zipped the folder and not what is in it.
func hintOfTop(files contents) string {
	for _, name := range files.names() {
		if dir, file := path.Split(name); file == manifestFile && path.Dir(path.Clean(dir)) == "." {
			return ": there is one in '" + dir + "'; zip the contents of that folder, not the folder"
		}
	}
	return ""
}

func (p *Package) checkImage(name string, asked bool, what string) error {
	length, there := p.files.length(name)
	switch {
	case !there && !asked:
		return nil
	case !there:
		return fault.New(fault.Invalid, "%s: the manifest names the file '%s', but the package holds no such file", what, name)
	case length > maxLogo:
		return fault.New(fault.Invalid, "%s: image '%s' has %d bytes, more than the %d allowed", what, name, length, maxLogo)
	}
	content, err := p.files.read(name)
	switch {
	case err != nil:
		return err
	case !isImage(content):
		return fault.New(fault.Invalid, "%s: '%s' is of an unsupported format, it should be a PNG, JPEG or GIF image", what, name)
	}
	return nil
}

func isImage(content []byte) bool {
	for _, magic := range []string{"\x89PNG\r\n\x1a\n", "\xff\xd8\xff", "GIF87a", "GIF89a"} {
		if bytes.HasPrefix(content, []byte(magic)) {
			return true
		}
	}
	return false
}
