package images

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

const billFile = "bill.spdx.json"

// bill is a software bill of materials in SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/), with what it says of a package: name, version,
// where it comes from. The Debian packages carry their licences on the disk; which licence a package has is not asserted.
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

// newBill names what a disk is made of: its Debian packages, and the Go modules that the programs say they were linked from.
func newBill(manifest Manifest, programs []piece) (bill, error) {
	modules, err := linkedModules(programs)
	if err != nil {
		return bill{}, err
	}
	const image = "SPDXRef-image"
	b := bill{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: "burano-node",
		Namespace: "https://spdx.org/spdxdocs/burano-node-" + manifest.Key,
		// The same content gives the same document.
		Creation:          billCreation{Created: "1970-01-01T00:00:00Z", Creators: []string{"Tool: burano-image-build"}},
		DocumentDescribes: []string{image},
	}
	b.Packages = []billPackage{{
		ID: image, Name: "burano-node", Version: manifest.Key[:min(shortKey, len(manifest.Key))], Supplier: noAssertion, Location: noAssertion, Concluded: noAssertion,
		Declared: noAssertion, Copyright: noAssertion, Checksums: []billChecksum{{"SHA256", manifest.SHA256}},
	}}
	add := func(kind, name, version, supplier, locator string) {
		id := "SPDXRef-" + kind + "-" + notInIDs.ReplaceAllString(name+"-"+version, "-")
		b.Packages = append(b.Packages, billPackage{
			ID: id, Name: name, Version: version, Supplier: supplier, Location: noAssertion, Concluded: noAssertion, Declared: noAssertion,
			Copyright: noAssertion, References: []billReference{{"PACKAGE-MANAGER", "purl", locator}},
		})
		b.Relationships = append(b.Relationships, billRelation{image, "CONTAINS", id})
	}
	for _, name := range slices.Sorted(maps.Keys(manifest.Packages)) {
		version := manifest.Packages[name]
		add("deb", name, version, "Organization: Debian", fmt.Sprintf("pkg:deb/debian/%s@%s?distro=%s", url.PathEscape(name), url.QueryEscape(version), manifest.Debian))
	}
	for _, module := range modules {
		add("go", module.path, module.version, noAssertion, fmt.Sprintf("pkg:golang/%s@%s", module.path, url.QueryEscape(module.version)))
	}
	return b, nil
}

// notInIDs is what an SPDX identifier may not have.
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
			info, err := buildinfo.ReadFile(filepath.Join(piece.folder, entry.Name()))
			if err != nil {
				return nil, fmt.Errorf("read what %s is linked from: %w", entry.Name(), err)
			}
			modules = append(modules, linkedModule{"std", info.GoVersion})
			for _, dependency := range info.Deps {
				if dependency.Replace != nil {
					dependency = dependency.Replace
				}
				modules = append(modules, linkedModule{dependency.Path, dependency.Version})
			}
		}
	}
	slices.SortFunc(modules, func(a, b linkedModule) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(modules), nil
}
