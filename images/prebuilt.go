package images

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"go.yaml.in/yaml/v3"
)

// Prebuilt has the programs of Kubernetes, etcd, Calico, CoreDNS and the CNI plugins fetched from where their projects publish them, instead of
// compiled.
type Prebuilt struct {
	// Base is the address of a mirror that has each file below its host and path; "" is the projects' own servers.
	Base string
	// Sums is the file that records checksums at their first use; "" is prebuilt.sums in Options.Source.
	Sums string
	// Roots is a file with the certificates for the check of signatures; without it they are not checked, which is reported.
	Roots string
	// Client fetches; nil is http.DefaultClient.
	Client *http.Client
}

// releaseFiles are a project's published files of a module's programs: an entry of prebuilt.yaml.
type releaseFiles struct {
	Release   string         `yaml:"release"`
	Signature *signedBy      `yaml:"signature"`
	Files     []releasedFile `yaml:"files"`
}

type releasedFile struct {
	URL string `yaml:"url"`
	Sum string `yaml:"sum"`
	// Programs has for each program its path in the file, "" where the file is the program.
	Programs map[string]string `yaml:"programs"`
}

// prebuilt is a build's data about released files.
type prebuilt struct {
	options  Prebuilt
	releases map[string]releaseFiles
	sums     *recordedSums
}

func openPrebuilt(source string, options Prebuilt) (*prebuilt, error) {
	content, err := os.ReadFile(filepath.Join(source, "prebuilt.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read where programs are published: %w", err)
	}
	p := &prebuilt{options: options}
	if err := yaml.Unmarshal(content, &p.releases); err != nil {
		return nil, fmt.Errorf("read where programs are published: prebuilt.yaml: %w", err)
	}
	if options.Sums == "" {
		options.Sums = filepath.Join(source, "prebuilt.sums")
	}
	if p.options.Client == nil {
		p.options.Client = http.DefaultClient
	}
	p.sums, err = readSums(options.Sums)
	return p, err
}

// of returns the published files of a module at a version, with all placeholders filled in; false when the module is compiled.
func (p *prebuilt) of(module, version, architecture string) (releaseFiles, bool) {
	release, there := p.releases[module]
	if !there {
		return releaseFiles{}, false
	}
	values := []string{"{version}", version, "{bare}", strings.TrimPrefix(version, "v"), "{release}", release.Release, "{architecture}", architecture}
	filled := releaseFiles{Release: release.Release, Signature: release.Signature}
	for _, file := range release.Files {
		file.URL = strings.NewReplacer(values...).Replace(file.URL)
		fill := strings.NewReplacer(append(values, "{url}", file.URL)...).Replace
		file.Sum = fill(file.Sum)
		programs := map[string]string{}
		for name, inside := range file.Programs {
			programs[name] = fill(inside)
		}
		file.Programs = programs
		filled.Files = append(filled.Files, file)
	}
	return filled, true
}

// prebuiltModule fetches the programs of a module. Their checksums are the recorded ones, else the project's published ones, which are recorded when all
// files of the module match.
func (b *builder) prebuiltModule(ctx context.Context, m module, version string, release releaseFiles) (piece, error) {
	key := newKey()
	key.add("prebuilt", m.name, b.toolchain.architecture)
	sums := map[string]string{}
	for _, file := range release.Files {
		sum, err := b.prebuilt.sum(ctx, file)
		if err != nil {
			return piece{}, fmt.Errorf("module %s: %w", m.name, err)
		}
		sums[file.URL] = sum
		key.add(file.URL, sum)
		for _, name := range slices.Sorted(maps.Keys(file.Programs)) {
			key.add(name, file.Programs[name])
		}
	}
	doing := fmt.Sprintf("fetching %s %s", strings.Join(m.names(), ", "), cmp.Or(release.Release, version))
	made, err := b.cache.piece(b.progress, m.name, key.String(), doing, func(out string, output io.Writer) error {
		for _, file := range release.Files {
			if err := b.prebuilt.take(ctx, file, sums[file.URL], release.Signature, out, output); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return piece{}, err
	}
	if release.Signature != nil && b.prebuilt.options.Roots == "" {
		b.progress.say("%s: its signatures are not checked, only its checksums: no certificates to check them under are named (--prebuilt-roots)", m.name)
	}
	return made, b.prebuilt.sums.record(sums)
}

// sum is a file's recorded checksum, or the published one.
func (p *prebuilt) sum(ctx context.Context, file releasedFile) (string, error) {
	if sum, there := p.sums.known[file.URL]; there {
		return sum, nil
	}
	published, err := p.fetchSmall(ctx, file.Sum)
	if err != nil {
		return "", fmt.Errorf("fetch the checksum of %s: %w", path.Base(file.URL), err)
	}
	sum, err := publishedSum(published, path.Base(file.URL))
	if err != nil {
		return "", fmt.Errorf("%s: %w", file.Sum, err)
	}
	return sum, nil
}

var sha256Digits = regexp.MustCompile(`^[0-9a-f]{64}$`)

// publishedSum reads the checksum of a file: the whole content, or the line with the file's name.
func publishedSum(content []byte, name string) (string, error) {
	var alone []string
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !sha256Digits.MatchString(fields[0]) {
			continue
		}
		switch {
		case len(fields) == 1:
			alone = append(alone, fields[0])
		case path.Base(strings.TrimPrefix(fields[1], "*")) == name:
			return fields[0], nil
		}
	}
	if len(alone) == 1 {
		return alone[0], nil
	}
	return "", fmt.Errorf("it has no SHA-256 of %s", name)
}

// address is where a file is fetched from.
func (p *prebuilt) address(published string) (string, error) {
	if p.options.Base == "" {
		return published, nil
	}
	place, err := url.Parse(published)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(p.options.Base, "/") + "/" + place.Host + place.EscapedPath(), nil
}

func (p *prebuilt) get(ctx context.Context, published string) (*http.Response, error) {
	address, err := p.address(published)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := p.options.Client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w (a mirror can be named by --prebuilt-base; without --prebuilt the programs are compiled)", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers %s", address, response.Status), response.Body.Close())
	}
	return response, nil
}

func (p *prebuilt) fetchSmall(ctx context.Context, published string) ([]byte, error) {
	response, err := p.get(ctx, published)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(io.LimitReader(response.Body, 1<<20))
}

// take fetches a file, checks it and puts its programs into a folder.
func (p *prebuilt) take(ctx context.Context, file releasedFile, sum string, signature *signedBy, out string, output io.Writer) error {
	fetched := filepath.Join(out, ".fetched")
	defer os.Remove(fetched)
	if err := p.fetch(ctx, file.URL, fetched, sum, output); err != nil {
		return err
	}
	if signature != nil && p.options.Roots != "" {
		if err := p.checkSignature(ctx, file.URL, sum, *signature); err != nil {
			return fmt.Errorf("the signature of %s: %w", file.URL, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Programs)) {
		if err := takeProgram(fetched, file.Programs[name], filepath.Join(out, name)); err != nil {
			return fmt.Errorf("take %s out of %s: %w", name, path.Base(file.URL), err)
		}
	}
	return nil
}

// fetch writes a file that has the wanted checksum, or none.
func (p *prebuilt) fetch(ctx context.Context, published, to, sum string, output io.Writer) error {
	response, err := p.get(ctx, published)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, hash, &fetching{output: output, name: path.Base(published), total: response.ContentLength}), response.Body)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("fetch %s: %w", published, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("%s has the SHA-256 %s, and %s is recorded in %s or published for it: it is not used. "+
			"Where the project has really replaced it, delete its line there", published, got, sum, p.sums.path)
	}
	return nil
}

// fetching reports the progress of a file, each MiB.
type fetching struct {
	output             io.Writer
	name               string
	done, total, shown int64
}

func (f *fetching) Write(data []byte) (int, error) {
	if f.done += int64(len(data)); f.done-f.shown >= mebibyte {
		f.shown = f.done
		fmt.Fprintf(f.output, "fetched %d of %d MB of %s\r", f.done/1e6, f.total/1e6, f.name)
	}
	return len(data), nil
}

// takeProgram copies a program out of a file. The parts of the path that "!" ends are archives, the last of several a container image.
func takeProgram(file, inside, to string) error {
	if inside == "" {
		return copyProgram(file, to)
	}
	outer, inner, nested := strings.Cut(inside, "!")
	if !nested {
		return fromArchive(file, inside, to)
	}
	image := to + ".image"
	defer os.Remove(image)
	if err := fromArchive(file, outer, image); err != nil {
		return err
	}
	read, err := tarball.ImageFromPath(image, nil)
	if err != nil {
		return fmt.Errorf("read the container image %s: %w", outer, err)
	}
	content := mutate.Extract(read)
	defer content.Close()
	return fromTar(content, inner, to)
}

func copyProgram(from, to string) error {
	if err := copyFile(from, to); err != nil {
		return err
	}
	return os.Chmod(to, 0o755)
}

// fromArchive reads a tar, compressed by gzip or not.
func fromArchive(archive, name, to string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewReader(file)
	if magic, err := buffered.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return fromTar(buffered, name, to)
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return err
	}
	defer unpacked.Close()
	return fromTar(unpacked, name, to)
}

func fromTar(content io.Reader, name, to string) error {
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("it has no file %s", name)
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || path.Clean("/"+header.Name) != path.Clean("/"+name) {
			continue
		}
		file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, reader)
		return errors.Join(err, file.Close())
	}
}

// recordedSums are the checksums of files that were used once, by address: the file that keeps them has them in the form of sha256sum.
type recordedSums struct {
	path  string
	known map[string]string
}

func readSums(path string) (*recordedSums, error) {
	sums := &recordedSums{path: path, known: map[string]string{}}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return sums, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the recorded checksums: %w", err)
	}
	number := 0
	for line := range strings.Lines(string(content)) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 || !sha256Digits.MatchString(fields[0]) {
			return nil, fmt.Errorf("read the recorded checksums: %s:%d is no line of a SHA-256 and an address", path, number)
		}
		sums.known[fields[1]] = fields[0]
	}
	return sums, nil
}

// record adds new checksums.
func (s *recordedSums) record(sums map[string]string) error {
	before := len(s.known)
	maps.Copy(s.known, sums)
	if len(s.known) == before {
		return nil
	}
	var lines strings.Builder
	lines.WriteString("# Recorded at their first use by burano image build --prebuilt; later builds demand them.\n")
	for _, address := range slices.Sorted(maps.Keys(s.known)) {
		fmt.Fprintf(&lines, "%s  %s\n", s.known[address], address)
	}
	if err := os.WriteFile(s.path, []byte(lines.String()), 0o644); err != nil {
		return fmt.Errorf("record the checksums: %w", err)
	}
	return nil
}
