package images

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"go.yaml.in/yaml/v3"
)

// recipe is container.yaml: the image's name and program, and the layers below its own. An image has the fields of its base that it does not set.
type recipe struct {
	Name       string            `yaml:"name"`
	EntryPoint []string          `yaml:"entryPoint"`
	Commands   []string          `yaml:"commands"`
	Env        map[string]string `yaml:"env"`
	User       string            `yaml:"user"`       // "" is root
	StopSignal string            `yaml:"stopSignal"` // "" is SIGTERM
	// Base is another recipe, whose layers are below this one's: a folder relative to this one ("../python"), or one of Bases.
	Base string `yaml:"base"`
	// Release is Debian's, by default that of the base, or bookworm.
	Release string `yaml:"release"`
}

// Bounds of a recipe: its author need not be the one who builds it.
const (
	recipeFile      = "container.yaml"
	maxRecipe       = 64 << 10 // container.yaml, in bytes
	maxPackages     = 2000     // names in "packages"
	maxPackagesFile = 256 << 10
	maxFiles        = 50_000  // in a folder
	maxFolder       = 1 << 30 // all files of a folder, in bytes
	maxWords        = 256     // arguments, and variables
	maxWord         = 32 << 10
	maxBases        = 4 // recipes below one another
)

// layerRecipe is a recipe with the element that makes its layer.
type layerRecipe struct {
	recipe
	element element
}

// Bases are the names of recipes that come with Burano's sources for layers below several images.
func Bases() []string { return folders("bases") }

func folders(of string) []string {
	entries, err := applications.ReadDir(of)
	if err != nil {
		panic(err) // it is part of the program
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// readRecipes reads the recipe of a folder, or one of Applications, and those below it, the lowest first. remove clears temporary folders away.
func readRecipes(source string) (recipes []layerRecipe, remove func(), err error) {
	var parents []string
	clean := func() {
		for _, parent := range parents {
			_ = os.RemoveAll(parent)
		}
	}
	embedded := func(kind, called string) (string, error) {
		parent, err := os.MkdirTemp("", "burano-application-")
		if err != nil {
			return "", err
		}
		parents = append(parents, parent)
		return filepath.Join(parent, called), unfold(filepath.Join(parent, called), kind+"/"+called)
	}
	var folder string
	if info, statErr := os.Stat(source); statErr == nil && info.IsDir() {
		folder, err = filepath.Abs(source)
	} else if strings.Contains(source, "/") || !slices.Contains(Applications(), source) {
		err = fmt.Errorf("it is neither a folder nor one of %s", strings.Join(Applications(), ", "))
	} else {
		folder, err = embedded("applications", source)
	}
	for err == nil {
		var one layerRecipe
		if one, err = readLayer(folder); err != nil {
			break
		}
		recipes = slices.Insert(recipes, 0, one)
		switch {
		case one.Base == "":
			return recipes, clean, nil
		case len(recipes) > maxBases:
			err = fmt.Errorf("%s has more than %d bases below one another, or is a base of itself: shorten the chain", source, maxBases)
		case slices.Contains(Bases(), one.Base):
			folder, err = embedded("bases", one.Base)
		case filepath.IsAbs(one.Base) || !strings.Contains(one.Base, "/"):
			err = fmt.Errorf("the base %q in %s is neither one of %s nor a folder relative to its own: write base: ../%s", one.Base, filepath.Join(folder, recipeFile),
				strings.Join(Bases(), ", "), filepath.Base(one.Base))
		default:
			folder = filepath.Join(folder, one.Base)
		}
	}
	clean()
	return nil, nil, err
}

// readLayer reads one folder of a recipe, within the bounds.
func readLayer(folder string) (layerRecipe, error) {
	if err := checkFolder(folder); err != nil {
		return layerRecipe{}, err
	}
	read, err := readRecipe(folder)
	if err != nil {
		return layerRecipe{}, err
	}
	made, err := readElement(folder)
	if err != nil {
		return layerRecipe{}, err
	}
	if len(made.packages) > maxPackages {
		return layerRecipe{}, fmt.Errorf("%s names %d packages, more than %d", filepath.Join(folder, packagesFile), len(made.packages), maxPackages)
	}
	for _, one := range made.packages {
		if !packageName.MatchString(one) {
			return layerRecipe{}, fmt.Errorf("%q in %s is no name of a Debian package: write one name, or name=version, per line", shortened(one), filepath.Join(folder, packagesFile))
		}
	}
	return layerRecipe{read, made}, nil
}

// packageName is of Debian's policy, section 5.6.1, with the architecture and version that apt takes.
var packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,127}(:[a-z0-9-]{1,31})?(=[A-Za-z0-9.+:~-]{1,127})?$`)

// checkFolder refuses a folder whose files cannot be read to their ends, or are too many or too large.
func checkFolder(folder string) error {
	count, size := 0, int64(0)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Stat(path)
			if err != nil || to.IsDir() { // a link of the image's own, which leads nowhere here
				return nil
			}
			info = to
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder nor a link to one: remove it", path)
		}
		count, size = count+1, size+info.Size()
		if count > maxFiles || size > maxFolder {
			return fmt.Errorf("%s has more than %d files or %d MiB: install large parts as packages, or fetch them in \"install\"", folder, maxFiles, maxFolder>>20)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the recipe: %w", err)
	}
	return err
}

// readRecipe reads a folder's container.yaml.
func readRecipe(folder string) (r recipe, err error) {
	path := filepath.Join(folder, recipeFile)
	content, err := readBounded(path, maxRecipe)
	if err != nil {
		return r, fmt.Errorf("%w: it says how the image is called (name) and what runs in it (entryPoint)", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil && !errors.Is(err, io.EOF) { // a base may say nothing
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	words := slices.Concat(r.EntryPoint, r.Commands)
	for variable, value := range r.Env {
		if !variableName.MatchString(variable) {
			return r, fmt.Errorf("%q in env of %s is no name of a variable: letters, digits and underscores only, no digit first", shortened(variable), path)
		}
		words = append(words, variable+"="+value)
	}
	if len(words) > maxWords {
		return r, fmt.Errorf("%s has %d arguments and variables, more than %d", path, len(words), maxWords)
	}
	for _, word := range words {
		if len(word) > maxWord || strings.ContainsRune(word, 0) {
			return r, fmt.Errorf("the argument or variable %q in %s has more than %d bytes, or a zero byte", shortened(word), path, maxWord)
		}
	}
	if r.User != "" && !userName.MatchString(r.User) {
		return r, fmt.Errorf("the user %q in %s is neither a name nor a number, with or without a group: write 1000:1000", shortened(r.User), path)
	}
	if r.StopSignal != "" && !signalName.MatchString(r.StopSignal) {
		return r, fmt.Errorf("the stopSignal %q in %s is no signal: write its name, such as SIGQUIT", shortened(r.StopSignal), path)
	}
	if r.Release != "" && !slices.Contains(debianReleases, r.Release) {
		return r, fmt.Errorf("the release %q in %s is not known: there is %s", shortened(r.Release), path, strings.Join(debianReleases, ", "))
	}
	return r, nil
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,255}$`)
	userName     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$`)
	signalName   = regexp.MustCompile(`^(SIG[A-Z0-9+-]{2,12}|[0-9]{1,2})$`)
)

// shortened is a text for an error.
func shortened(text string) string {
	if len(text) > 80 {
		return strings.ToValidUTF8(text[:80], "") + "…"
	}
	return text
}

// readBounded reads a file that must not be larger than a bound.
func readBounded(path string, bound int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, bound+1))
	if err == nil && int64(len(content)) > bound {
		return nil, fmt.Errorf("%s has more than %d bytes", path, bound)
	}
	return content, err
}

// inherit is the recipe of the image: of each field the value of the uppermost recipe that sets it, with another name where one is given.
func inherit(recipes []layerRecipe, called string) (recipe, error) {
	made := recipe{Env: map[string]string{}}
	for _, one := range recipes {
		if len(one.EntryPoint) > 0 {
			made.EntryPoint, made.Commands = one.EntryPoint, nil
		}
		if one.Commands != nil {
			made.Commands = one.Commands
		}
		maps.Copy(made.Env, one.Env)
		made.User, made.StopSignal = cmp.Or(one.User, made.User), cmp.Or(one.StopSignal, made.StopSignal)
		if one.Release != "" && made.Release != "" && one.Release != made.Release {
			return made, fmt.Errorf("the release of %s is %s, and that of its base is %s: both must be the same", one.element.name, one.Release, made.Release)
		}
		made.Release = cmp.Or(made.Release, one.Release, release)
	}
	top := recipes[len(recipes)-1]
	made.Name = cmp.Or(called, top.Name)
	if _, err := name.NewTag(made.Name, name.StrictValidation); err != nil {
		return made, fmt.Errorf("the image is called %q: write a host, a name and a tag, such as glance.local/web:1 (%w)", made.Name, err)
	}
	if len(made.EntryPoint) == 0 {
		return made, fmt.Errorf("%s has no entryPoint: say which program runs in the image", filepath.Join(top.element.folder, recipeFile))
	}
	return made, nil
}

// unfold writes an embedded folder to a disk. Files that begin as scripts become executable: embedded files have no modes.
func unfold(to, from string) error {
	return fs.WalkDir(applications, from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		content, err := applications.ReadFile(path)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(content, []byte("#!")) {
			mode = 0o755
		}
		return os.WriteFile(target, content, mode)
	})
}
