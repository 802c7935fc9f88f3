// Package check finds the faults of a package before it is deployed: all that can be found without running it.
package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

// Rule names a kind of finding.
type Rule string

// The rules.
const (
	Manifest       Rule = "manifest"         // the package cannot be read
	ClassFile      Rule = "class"            // a class cannot be read: wrong contracts, usages, names …
	UnknownClass   Rule = "unknown-class"    // a class that is neither in the package nor in one it requires
	Metadata       Rule = "metadata"         // Meta that reflection cannot make objects of
	NoExpression   Rule = "expression"       // a value with $ that is no expression, and so only a text
	Unreachable    Rule = "unreachable"      // instructions that nothing comes to
	UnusedResource Rule = "unused-resource"  // a file of Resources that no other file names
	UnusedFile     Rule = "unused-classfile" // a file of Classes that the manifest does not name
	Requirement    Rule = "requirement"      // a package that is required and not at hand
	UI             Rule = "ui"               // a form that the dashboard cannot show
	MissingFile    Rule = "missing-file"     // a file that a Heat template names and the package has not
	Images         Rule = "images"           // a list of images that clients cannot read
	Chart          Rule = "chart"            // a Helm chart that is not in the package, so that it is not checked
	Plan           Rule = "plan"             // an execution plan that cannot run as it is written
	UnknownCall    Rule = "unknown-function" // a function or method that nothing at hand has
	Deprecated     Rule = "deprecated"       // a method that a coming release does not have
)

// Rules are all rules there are.
func Rules() []Rule {
	return []Rule{Manifest, Requirement, UI, MissingFile, Images, Chart, ClassFile, UnknownClass, UnknownCall, Deprecated, Metadata, NoExpression, Unreachable, Plan, UnusedResource, UnusedFile}
}

// Finding is one thing that is wrong.
type Finding struct {
	Rule         Rule
	File         string // inside the package
	Line, Column int    // from 1
	Message      string
	// Warning marks a fault with which the package works nevertheless.
	Warning bool
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s", f.File, f.Line, f.Column, f.Rule, f.Message)
}

// Unreadable is the finding that a package could not be read at all.
func Unreadable(err error) Finding {
	finding := Finding{Rule: Manifest, File: "manifest.yaml", Line: 1, Column: 1, Message: err.Error()}
	var placed *catalog.Placed
	if errors.As(err, &placed) {
		finding.File, finding.Line, finding.Column = placed.File, placed.Line, placed.Column
	}
	return finding
}

// Package checks a package, and with plans its templates of execution plans. The classes of others are looked for among the packages at hand.
// Findings are ordered by their place.
func Package(ctx context.Context, pkg *catalog.Package, others catalog.Shelf, plans Plans) []Finding {
	shelf := append(catalog.Shelf{pkg}, others...)
	c := &checker{ctx: ctx, pkg: pkg, classes: muranopl.NewClasses(shelf), names: namesOf(shelf)}
	c.deprecated = c.deprecatedOf(shelf)
	if len(pkg.Requires()) > 0 {
		c.requirements(others)
	}
	if !pkg.HOT() && !pkg.Helm() {
		c.all()
	}
	for _, err := range []error{pkg.CheckLengths(), pkg.CheckTemplate()} {
		if err != nil {
			c.findings = append(c.findings, Unreadable(err))
		}
	}
	c.filesOfTemplate()
	c.plans(plans)
	c.uiFile()
	c.images()
	c.chart()
	if !pkg.Helm() { // which parts of a chart are used, Helm knows
		c.resources()
	}
	slices.SortFunc(c.findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(c.findings)
}

type checker struct {
	ctx     context.Context
	pkg     *catalog.Package
	classes *muranopl.Classes
	names   map[string]bool // all known names of functions and methods
	// deprecated are the replacements of methods that are deprecated in every class at hand that has them, by the methods' names.
	deprecated map[string]string
	partial    bool // a package that is required is not at hand
	findings   []Finding
}

func (c *checker) find(rule Rule, file string, node *yaml.Node, format string, args ...any) {
	c.findings = append(c.findings, Finding{rule, file, node.Line, node.Column, fmt.Sprintf(format, args...), slices.Contains([]Rule{Unreachable, Plan, UnknownCall}, rule)})
}

// all checks the classes, each file once.
func (c *checker) all() {
	byFile := map[string][]string{}
	for _, name := range c.pkg.ClassNames() {
		file, _, err := c.pkg.ClassFile(name)
		if err != nil {
			line, column := c.pkg.ManifestPlace("Classes", name)
			c.findings = append(c.findings, Finding{Manifest, "manifest.yaml", line, column, err.Error(), false})
			continue
		}
		byFile[file] = append(byFile[file], name)
	}
	var one *muranopl.Class
	for file, names := range byFile {
		var readable *muranopl.Class
		for _, name := range names {
			class, err := c.classes.Class(c.ctx, name, "="+c.pkg.Version().String())
			if err != nil {
				c.unreadable(file, err)
				continue
			}
			readable, one = class, class
			for _, flaw := range class.Flaws {
				c.findings = append(c.findings, Finding{ClassFile, flaw.Position.File, flaw.Position.Line, flaw.Position.Column, flaw.Message, flaw.Warning})
			}
		}
		text, _ := c.pkg.File(file)
		c.file(file, text, readable)
	}
	if one != nil { // names in the manifest are resolved as its classes resolve them
		if err := one.CheckMeta(c.ctx, "Package", "", ""); err != nil {
			line, column := c.pkg.ManifestPlace("Meta", "")
			c.findings = append(c.findings, wrongMeta("manifest.yaml", line, column, err))
		}
	}
	for _, file := range c.pkg.FileNames() {
		if strings.HasPrefix(file, "Classes/") && (path.Ext(file) == ".yaml" || path.Ext(file) == ".yml") && byFile[file] == nil {
			c.findings = append(c.findings, Finding{UnusedFile, file, 1, 1, "the manifest names no class of this file", true})
		}
	}
}

// unreadable makes a finding of the error that a class could not be read with.
func (c *checker) unreadable(file string, err error) {
	var document *muranopl.DocumentError
	switch {
	case errors.As(err, &document):
		if c.pkg.Has(document.Position.File) {
			c.findings = append(c.findings, Finding{ClassFile, document.Position.File, document.Position.Line, document.Position.Column, document.Message, document.Misnamed})
			return
		}
	case fault.KindOf(err) == fault.NotFound:
		at := muranopl.Position{File: file, Line: 1, Column: 1}
		var reference *muranopl.ReferenceError
		if errors.As(err, &reference) {
			if c.pkg.Has(reference.Position.File) {
				at = reference.Position
			}
		}
		c.findings = append(c.findings, Finding{UnknownClass, at.File, at.Line, at.Column, err.Error(), false})
		return
	}
	var syntax *muranopl.SyntaxError
	if errors.As(err, &syntax) {
		err = syntax
	}
	line := 1
	if said := yamlLine.FindStringSubmatch(err.Error()); said != nil {
		line, _ = strconv.Atoi(said[1])
	}
	c.findings = append(c.findings, Finding{ClassFile, file, line, 1, err.Error(), false})
}

// yamlLine matches the line in an error of the YAML decoder.
var yamlLine = regexp.MustCompile(`\bline ([0-9]+):`)

// file looks through the documents of a class file. Names are resolved as class does; nil when none could be read.
func (c *checker) file(file string, text []byte, class *muranopl.Class) {
	decoder, err := door.NewYAML(text, door.Bounds{Values: 1_000_000})
	for err == nil {
		var node yaml.Node
		if decoder.Decode(&node) != nil || len(node.Content) == 0 {
			return // invalid YAML was reported when the class was read
		}
		w := &walker{checker: c, file: file, class: class}
		w.document(node.Content[0])
	}
}

// requirements finds packages that are required and not at hand in a version that fits: that may be so, and then classes of theirs cannot
// be checked.
func (c *checker) requirements(others catalog.Shelf) {
	for name, spec := range c.pkg.Requires() {
		if _, err := others.PackageByName(c.ctx, name, spec); err != nil {
			c.partial = true
			line, column := c.pkg.ManifestPlace("Require", name)
			c.findings = append(c.findings, Finding{Requirement, "manifest.yaml", line, column, err.Error(), true})
		}
	}
}

// resources finds files of Resources that no other file of the package names.
func (c *checker) resources() {
	files := c.pkg.FileNames()
	for _, file := range files {
		inner, is := strings.CutPrefix(file, "Resources/")
		if !is || c.pkg.HOT() && strings.HasPrefix(inner, "HotEnvironments/") { // which models name
			continue
		}
		used := slices.ContainsFunc(files, func(other string) bool {
			text, _ := c.pkg.File(other)
			return other != file && (bytes.Contains(text, []byte(inner)) || bytes.Contains(text, []byte(path.Base(inner))))
		})
		if !used {
			c.findings = append(c.findings, Finding{UnusedResource, file, 1, 1, "no other file of the package names this one", true})
		}
	}
}

// chart reports a chart that is not included. An included one was checked when the package was read.
func (c *checker) chart() {
	if reference := c.pkg.ChartReference(); reference != nil {
		line, column := c.pkg.ManifestPlace("Chart", "")
		c.findings = append(c.findings, Finding{Chart, "manifest.yaml", line, column, fmt.Sprintf("the chart %s is fetched and checked when the package is imported", reference), true})
	}
}

// filesOfTemplate finds files that a Heat template names and the package has not.
func (c *checker) filesOfTemplate() {
	references, err := c.pkg.HotReferences()
	if err != nil {
		return // which would have prevented reading the package
	}
	for _, reference := range references {
		if !reference.Missing {
			continue
		}
		message := fmt.Sprintf("the template names the file %q, which is not in the package: put it into Resources/HotFiles/%s", reference.Name, reference.Place)
		if reference.Place == "" {
			message = fmt.Sprintf("the template names %q, and templates can name files of the package only: put it into Resources/HotFiles and name it by its path there", reference.Name)
		}
		c.findings = append(c.findings, Finding{MissingFile, reference.In, reference.Line, reference.Column, message, false})
	}
}

// images checks the list of images. The package can be deployed without them once they are in Glance.
func (c *checker) images() {
	_, problems := c.pkg.Images()
	for _, problem := range problems {
		c.findings = append(c.findings, Finding{Images, problem.File, problem.Line, problem.Column, problem.Error(), true})
	}
}
