package images

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

const billFile = "bill.spdx.json"

// bill is a software bill of materials in SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/), with the name, version and origin of each package. The Debian
// packages carry their licences on the disk; the licence of a package is not asserted.
type bill struct {
	Version           string         `json:"spdxVersion"`
	License           string         `json:"dataLicense"`
	ID                string         `json:"SPDXID"`
	Name              string         `json:"name"`
	Namespace         string         `json:"documentNamespace"`
	Creation          billCreation   `json:"creationInfo"`
	Packages          []billPackage  `json:"packages"`
	Relationships     []billRelation `json:"relationships"`
	DocumentDescribes []string       `json:"documentDescribes"`
}

type billCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type billPackage struct {
	ID            string          `json:"SPDXID"`
	Name          string          `json:"name"`
	Version       string          `json:"versionInfo"`
	Supplier      string          `json:"supplier"`
	Location      string          `json:"downloadLocation"`
	FilesAnalyzed bool            `json:"filesAnalyzed"`
	Concluded     string          `json:"licenseConcluded"`
	Declared      string          `json:"licenseDeclared"`
	Copyright     string          `json:"copyrightText"`
	Checksums     []billChecksum  `json:"checksums,omitempty"`
	References    []billReference `json:"externalRefs,omitempty"`
}

type billChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type billReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type billRelation struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const noAssertion = "NOASSERTION"

// newBill lists the parts of a disk: its Debian packages, and the Go modules recorded in its programs.
func newBill(manifest Manifest, programs []piece) (bill, error) {
	modules, err := linkedModules(programs)
	if err != nil {
		return bill{}, err
	}
	b := billOf("SPDXRef-image", "burano-node", manifest.Key, manifest.Key[:min(shortKey, len(manifest.Key))], manifest.SHA256)
	for _, name := range slices.Sorted(maps.Keys(manifest.Packages)) {
		version := manifest.Packages[name]
		b.add("deb", name, version, "Organization: Debian", fmt.Sprintf("pkg:deb/debian/%s@%s?distro=%s", url.PathEscape(name), url.QueryEscape(version), manifest.Debian))
	}
	b.addModules(modules)
	return b, nil
}

// BillOfProgram is the bill of materials of one program that Go has linked, as JSON.
func BillOfProgram(path, name, version string) ([]byte, error) {
	modules, err := modulesOf(path)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	b := billOf("SPDXRef-program", name, sum, version, sum)
	b.addModules(sorted(modules))
	return json.MarshalIndent(b, "", "  ")
}

// billOf is the bill of something whose parts are added. key is different for different content: the same content gives the same document.
func billOf(id, name, key, version, sum string) bill {
	return bill{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name, Namespace: "https://spdx.org/spdxdocs/" + name + "-" + key,
		Creation:          billCreation{Created: "1970-01-01T00:00:00Z", Creators: []string{"Tool: burano-image-build"}},
		DocumentDescribes: []string{id},
		Packages: []billPackage{{
			ID: id, Name: name, Version: version, Supplier: noAssertion, Location: noAssertion, Concluded: noAssertion,
			Declared: noAssertion, Copyright: noAssertion, Checksums: []billChecksum{{"SHA256", sum}},
		}},
	}
}

func (b *bill) add(kind, name, version, supplier, locator string) {
	id := "SPDXRef-" + kind + "-" + notInIDs.ReplaceAllString(name+"-"+version, "-")
	b.Packages = append(b.Packages, billPackage{
		ID: id, Name: name, Version: version, Supplier: supplier, Location: noAssertion, Concluded: noAssertion, Declared: noAssertion,
		Copyright: noAssertion, References: []billReference{{"PACKAGE-MANAGER", "purl", locator}},
	})
	b.Relationships = append(b.Relationships, billRelation{b.DocumentDescribes[0], "CONTAINS", id})
}

func (b *bill) addModules(modules []linkedModule) {
	for _, module := range modules {
		b.add("go", module.path, module.version, noAssertion, fmt.Sprintf("pkg:golang/%s@%s", module.path, url.QueryEscape(module.version)))
	}
}

// notInIDs matches characters that an SPDX identifier may not have.
var notInIDs = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

type linkedModule struct{ path, version string }

// linkedModules are the modules in all programs, sorted, each version once. Go writes them into every program that it links.
func linkedModules(programs []piece) ([]linkedModule, error) {
	var modules []linkedModule
	for _, piece := range programs {
		entries, err := os.ReadDir(piece.folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			linked, err := modulesOf(filepath.Join(piece.folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			modules = append(modules, linked...)
		}
	}
	return sorted(modules), nil
}

// modulesOf returns the modules recorded in a program.
func modulesOf(program string) ([]linkedModule, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read what %s is linked from: %w", filepath.Base(program), err)
	}
	modules := []linkedModule{{"std", info.GoVersion}}
	for _, dependency := range info.Deps {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		modules = append(modules, linkedModule{dependency.Path, dependency.Version})
	}
	return modules, nil
}

// sorted are modules by their names, each version once.
func sorted(modules []linkedModule) []linkedModule {
	slices.SortFunc(modules, func(a, b linkedModule) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(modules)
}
