package images

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	_ "embed" // the scripts of lean installations
)

// release is the Debian that nodes run, and applications whose recipe names none.
const release = "bookworm"

// debianReleases are the releases that recipes of applications may name.
var debianReleases = []string{"bookworm", "trixie"}

const (
	systemFile   = "system.tar"
	packagesFile = "packages"
)

// deferCompiling and compilePython are the hooks of a lean installation.
var (
	//go:embed python/defer
	deferCompiling string
	//go:embed python/compile
	compilePython string
)

// debian makes the root file system with the packages of all elements, as system.tar, and a list of their versions.
func (b *builder) debian(ctx context.Context) (piece, error) {
	return b.install(ctx, installation{name: "debian", release: release, variant: "minbase", packages: allPackages(b.elements)})
}

// machinePackages adds a machine's own packages to the root file system of the tar, so that both forms have the same packages.
func (b *builder) machinePackages(ctx context.Context, system piece) (piece, error) {
	return b.install(ctx, installation{name: "machine", release: release, variant: "custom", packages: allPackages(b.machine), over: system})
}

// installation is a root file system with packages of Debian.
type installation struct {
	name     string // of its piece
	release  string
	variant  string // mmdebstrap's
	packages []string
	over     piece // a root file system to begin with; the zero value for none
	// lean compiles the packages of Python together, and leaves their tests out.
	lean bool
}

// install makes a root file system with packages, from nothing or over that of another piece.
func (b *builder) install(ctx context.Context, wanted installation) (piece, error) {
	sources, err := findSources("/etc/apt", wanted.release)
	if err != nil {
		return piece{}, err
	}
	key := newKey()
	key.add(wanted.name, wanted.release, b.toolchain.architecture, sources)
	from := []string{"--variant=" + wanted.variant}
	if wanted.over.folder != "" {
		key.add(wanted.over.key)
		from = append(from, "--setup-hook="+`tar --extract --numeric-owner --xattrs --xattrs-include='*' --directory "$1" --file "`+
			filepath.Join(wanted.over.folder, systemFile)+`"`)
	}
	key.add(wanted.packages...)
	if wanted.lean {
		key.add("lean", deferCompiling, compilePython)
	}
	doing := fmt.Sprintf("installing Debian %s with %d packages and what they need", wanted.release, len(wanted.packages))
	if wanted.over.folder != "" {
		doing = fmt.Sprintf("adding %d Debian packages and what they need", len(wanted.packages))
	}
	return b.cache.piece(b.progress, wanted.name, key.String(), doing, func(out string, output io.Writer) error {
		if wanted.lean {
			lean, remove, err := leanHooks(out, wanted.variant)
			if err != nil {
				return err
			}
			defer remove()
			from = append(from, lean...)
		}
		// In a file beside it, since a mirror's address may contain a password and arguments are visible to all users.
		list := filepath.Join(out, "sources"+sourcesExtension(sources))
		if err := os.WriteFile(list, []byte(sources), 0o600); err != nil {
			return err
		}
		defer os.Remove(list)
		command := exec.CommandContext(ctx, "mmdebstrap", append(from, "--mode=root", "--format=tar",
			"--include="+strings.Join(wanted.packages, ","),
			`--aptopt=APT::Install-Recommends "false"`,
			`--aptopt=Acquire::Languages "none"`,
			// An interrupted part is made anew, so nothing need be synced to the disk.
			"--dpkgopt=force-unsafe-io",
			// A node needs no manuals; the licences stay.
			"--dpkgopt=path-exclude=/usr/share/man/*",
			"--dpkgopt=path-exclude=/usr/share/locale/*",
			"--dpkgopt=path-exclude=/usr/share/doc/*",
			"--dpkgopt=path-include=/usr/share/doc/*/copyright",
			// Programs with alternatives link their manuals there, and are not configured where they cannot.
			`--essential-hook=mkdir -p "$1"/usr/share/man/man1`,
			// The machine's mirror does not belong on a node, and may not be reached from there.
			`--customize-hook=rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/*`,
			`--customize-hook=chroot "$1" dpkg-query --show --showformat='${Package} ${Version}\n' >"`+filepath.Join(out, packagesFile)+`"`,
			wanted.release, filepath.Join(out, systemFile), list)...)
		// Its working copy needs room and device nodes, which temporary folders do not always have.
		command.Env = append(os.Environ(), "TMPDIR="+out, "SOURCE_DATE_EPOCH=0", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
			// An element makes the initramfs, when its settings are there.
			"INITRD=No")
		return runCommand(command, output)
	})
}

// leanHooks are mmdebstrap's arguments for an installation that is lean. remove takes the scripts away that they name.
func leanHooks(folder, variant string) (arguments []string, remove func(), err error) {
	scripts, err := os.MkdirTemp(folder, "scripts-")
	if err != nil {
		return nil, nil, err
	}
	for name, text := range map[string]string{"defer": deferCompiling, "compile": compilePython} {
		err = errors.Join(err, os.WriteFile(filepath.Join(scripts, name), []byte(text), 0o755))
	}
	// The variant "custom" unpacks its packages before it installs them, and has no essential ones.
	before := "--essential-hook="
	if variant == "custom" {
		before = "--extract-hook="
	}
	return []string{before + filepath.Join(scripts, "defer"), "--customize-hook=" + filepath.Join(scripts, "compile"),
		"--dpkgopt=path-exclude=/usr/lib/python3/dist-packages/*/tests/*"}, func() { _ = os.RemoveAll(scripts) }, err
}

// findSources returns the machine's apt sources of Debian for the wanted release. The mirrors of one release have the others: where the machine's
// sources are all of another known release, they are those with the names of their suites replaced.
func findSources(folder, release string) (string, error) {
	sources, err := sourcesOf(folder, release)
	if err != nil || sources != "" {
		return sources, err
	}
	for _, other := range debianReleases {
		if sources, err = sourcesOf(folder, other); err != nil {
			return "", err
		}
		if sources != "" {
			return suites(other).ReplaceAllString(sources, "${1}"+release+"${2}"), nil
		}
	}
	return "", fmt.Errorf("no Debian source with the suite %s is in %s: the node image is made from the mirrors of the machine's own "+
		"apt sources; add a line \"deb MIRROR %s main\" to %s/sources.list.d/debian.list", release, folder, release, folder)
}

// suites matches the names of a release's suites, and nothing within an address.
func suites(release string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)(\s)` + release + `(-updates|-security|/updates)?\b`)
}

// sourcesOf returns the machine's apt sources of a release of Debian, in the form of the first file with such sources; "" for none. So the mirror is one
// that works here.
func sourcesOf(folder, release string) (string, error) {
	lists, err := filepath.Glob(filepath.Join(folder, "sources.list.d", "*"))
	if err != nil {
		return "", err
	}
	var lines, stanzas []string
	for _, path := range append([]string{filepath.Join(folder, "sources.list")}, lists...) {
		content, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return "", fmt.Errorf("read the machine's apt sources: %w", err)
		}
		switch filepath.Ext(path) {
		case ".list":
			lines = append(lines, oneLineSources(string(content), release)...)
		case ".sources":
			stanzas = append(stanzas, deb822Sources(string(content), release)...)
		}
	}
	switch {
	case len(stanzas) > 0:
		return strings.Join(stanzas, "\n"), nil
	case len(lines) > 0:
		return strings.Join(lines, "\n") + "\n", nil
	}
	return "", nil
}

// sourcesExtension selects the form of a text for mmdebstrap and apt.
func sourcesExtension(sources string) string {
	if strings.HasPrefix(sources, "deb ") {
		return ".list"
	}
	return ".sources"
}

// ofRelease is true for bookworm, bookworm-updates, bookworm-security and bookworm/updates.
func ofRelease(suite, release string) bool {
	rest, ok := strings.CutPrefix(suite, release)
	return ok && (rest == "" || rest == "-updates" || rest == "-security" || rest == "/updates")
}

// isDebian distinguishes Debian's archive from others with the same release names: by the last part of its path, which mirrors keep.
func isDebian(address string) bool {
	address = strings.TrimRight(address, "/")
	last := address[strings.LastIndex(address, "/")+1:]
	return last == "debian" || last == "debian-security"
}

// oneLineSources reads sources.list(5), the form with one source per line.
func oneLineSources(content, release string) []string {
	var kept []string
	lines := bufio.NewScanner(strings.NewReader(content))
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), "#")
		text = strings.TrimSpace(text)
		rest, ok := strings.CutPrefix(text, "deb ")
		if !ok {
			continue
		}
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			_, rest, _ = strings.Cut(rest, "]")
		}
		fields := strings.Fields(rest)
		if len(fields) >= 3 && isDebian(fields[0]) && ofRelease(fields[1], release) {
			kept = append(kept, text)
		}
	}
	return kept
}

// deb822Sources reads the form with a paragraph of fields per source.
func deb822Sources(content, release string) []string {
	var kept []string
	for _, paragraph := range strings.Split(content, "\n\n") {
		var lines []string
		fields := map[string]string{}
		last := ""
		for _, line := range strings.Split(paragraph, "\n") {
			if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
				continue
			}
			lines = append(lines, line)
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
				last = strings.ToLower(name)
				fields[last] = value
			} else {
				fields[last] += " " + line
			}
		}
		if usable(fields, release) {
			kept = append(kept, strings.Join(lines, "\n")+"\n")
		}
	}
	return kept
}

func usable(fields map[string]string, release string) bool {
	if strings.EqualFold(strings.TrimSpace(fields["enabled"]), "no") {
		return false
	}
	all := func(field string, test func(string) bool) bool {
		values := strings.Fields(fields[field])
		for _, value := range values {
			if !test(value) {
				return false
			}
		}
		return len(values) > 0
	}
	types := strings.Fields(fields["types"])
	return len(types) > 0 && types[0] == "deb" &&
		all("uris", isDebian) && all("suites", func(suite string) bool { return ofRelease(suite, release) })
}
