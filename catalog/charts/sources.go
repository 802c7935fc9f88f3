package charts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

// Reference names a chart that is not in the package.
type Reference struct {
	OCI string // such as oci://registry.example.org/charts/pages:1.2.3, or with @sha256:…; or else:

	Repository    string // the address of a chart repository
	Name, Version string
}

func (r Reference) String() string {
	if r.OCI != "" {
		return r.OCI
	}
	return fmt.Sprintf("%s %s of %s", r.Name, r.Version, r.Repository)
}

const schemeOCI = "oci://"

// Check reports the fault of a reference's syntax.
func (r Reference) Check() error {
	if r.OCI != "" {
		rest, is := strings.CutPrefix(r.OCI, schemeOCI)
		if !is {
			return fmt.Errorf("%q should begin with %s", r.OCI, schemeOCI)
		}
		if _, err := name.ParseReference(rest, name.StrictValidation); err != nil {
			return fmt.Errorf("%q should be like oci://registry.example.org/charts/pages:1.2.3: %w", r.OCI, err)
		}
		return nil
	}
	switch address, err := url.Parse(r.Repository); {
	case err != nil || address.Scheme != "https" && address.Scheme != "http" || address.Host == "" || address.User != nil || address.RawQuery != "":
		return fmt.Errorf("repository %q should be an address such as https://charts.example.org", r.Repository)
	case r.Name == "":
		return errors.New("it has no name of the chart in the repository")
	case r.Version == "":
		return errors.New("it has no version: say which one of the repository's is meant")
	}
	return nil
}

const (
	fetchTimeout = time.Minute
	maxIndex     = 30 << 20 // bytes of a repository's index.yaml
	// chartLayer is the media type of a chart in a registry (Helm's HIP 6).
	chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Sources are the registries and repositories that charts may be fetched from.
type Sources struct {
	admitted []*url.URL
	logins   Logins
	client   *http.Client
	way      http.RoundTripper
	children *door.Children
}

// NewSources admits charts at these addresses, oci://… or https://…, and below, and requests them with the logins of their hosts. The index of a
// repository is read in children, or in this process without them (nil). An error names an invalid address.
func NewSources(addresses []string, logins Logins, children *door.Children) (*Sources, error) {
	s := &Sources{logins: logins, children: children}
	s.way = way{s, remote.DefaultTransport}
	s.client = &http.Client{Timeout: fetchTimeout, Transport: s.way}
	for _, one := range addresses {
		address, err := url.Parse(one)
		if err != nil || address.Host == "" || !slices.Contains([]string{"oci", "https", "http"}, address.Scheme) || address.User != nil || address.RawQuery != "" {
			return nil, fmt.Errorf("%q is no source of charts: write oci://registry.example.org/charts or https://charts.example.org", one)
		}
		s.admitted = append(s.admitted, address)
	}
	return s, nil
}

// admits reports whether an address is an admitted one, or below one.
func (s *Sources) admits(address string) bool {
	wanted, err := url.Parse(address)
	if err != nil || wanted.User != nil || strings.Contains(wanted.Path+"/", "/../") {
		return false
	}
	return slices.ContainsFunc(s.admitted, func(one *url.URL) bool {
		rest, below := strings.CutPrefix(wanted.Path, strings.TrimRight(one.Path, "/"))
		below = below && (rest == "" || rest[0] == '/' || one.Scheme == "oci" && strings.ContainsAny(rest[:1], ":@")) // a tag or a digest
		return below && wanted.Scheme == one.Scheme && wanted.Host == one.Host
	})
}

// admitsRedirect reports whether a redirect may be followed: to a host with an admitted address, and not from https to http.
func (s *Sources) admitsRedirect(from, to *url.URL) bool {
	return (to.Scheme == "https" || from.Scheme == "http") && slices.ContainsFunc(s.admitted, func(one *url.URL) bool { return one.Host == to.Host })
}

// way is the transport to registries and repositories: it refuses redirects to hosts that are not admitted, and limits answers.
type way struct {
	sources *Sources
	under   http.RoundTripper
}

func (w way) RoundTrip(request *http.Request) (*http.Response, error) {
	// net/http follows a redirect where there is an answer.
	if former := request.Response; former != nil && !w.sources.admitsRedirect(former.Request.URL, request.URL) {
		return nil, fmt.Errorf("it redirects to %s://%s, which the operator of this Burano does not admit (setting chart-sources)", request.URL.Scheme, request.URL.Host)
	}
	answer, err := w.under.RoundTrip(request)
	if err == nil {
		answer.Body = door.Body(answer.Body, maxIndex, "the answer of "+request.URL.Host)
	}
	return answer, err
}

// Fetch fetches a chart, as an archive. A source that is not admitted, and a missing chart, are faults of kind Invalid.
func (s *Sources) Fetch(ctx context.Context, reference Reference) ([]byte, error) {
	if err := reference.Check(); err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	address := reference.OCI
	if address == "" {
		address = strings.TrimRight(reference.Repository, "/")
	}
	if !s.admits(address) {
		return nil, fault.New(fault.Invalid, "the operator of this Burano does not admit %s as a source of charts (setting chart-sources): put the chart itself into the package", address)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, fmt.Errorf("it took longer than %s", fetchTimeout))
	defer cancel()
	fetch := s.fromRepository
	if reference.OCI != "" {
		fetch = s.fromRegistry
	}
	archive, err := fetch(ctx, reference)
	if err == nil {
		err = fits(reference.String(), archive)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "fetch the chart %s: %w", reference, err)
	}
	return archive, nil
}

// Digest is by which an archive is known again, as registries and repositories write it.
func Digest(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (s *Sources) fromRegistry(ctx context.Context, reference Reference) ([]byte, error) {
	parsed, err := name.ParseReference(strings.TrimPrefix(reference.OCI, schemeOCI), name.StrictValidation)
	if err != nil {
		return nil, err
	}
	as, err := s.logins.authenticator(parsed.Context().Registry)
	if err != nil {
		return nil, err
	}
	image, err := remote.Image(parsed, remote.WithContext(ctx), remote.WithAuth(as), remote.WithTransport(s.way))
	if err != nil {
		return nil, s.logins.asRefusal(parsed.Context().Registry, err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	for _, one := range manifest.Layers {
		if one.MediaType != chartLayer {
			continue
		}
		if one.Size > MaxArchive {
			return nil, fmt.Errorf("it has %d bytes, more than the %d for which Kubernetes has room", one.Size, MaxArchive)
		}
		// Addresses (urls) of the layer in the manifest are not used: every user who pushes a chart can write any address there.
		layer, err := remote.Layer(parsed.Context().Digest(one.Digest.String()), remote.WithContext(ctx), remote.WithAuth(as), remote.WithTransport(s.way))
		if err != nil {
			return nil, s.logins.asRefusal(parsed.Context().Registry, err)
		}
		content, err := layer.Compressed()
		if err != nil {
			return nil, s.logins.asRefusal(parsed.Context().Registry, err)
		}
		archive, err := door.ReadAll(content, MaxArchive, "the chart") // at the end the digest is compared
		return archive, errors.Join(err, content.Close())
	}
	return nil, errors.New("what is there is no Helm chart")
}

func (s *Sources) fromRepository(ctx context.Context, reference Reference) ([]byte, error) {
	base, err := url.Parse(strings.TrimRight(reference.Repository, "/") + "/")
	if err != nil {
		return nil, err
	}
	text, err := s.get(ctx, base.JoinPath("index.yaml").String(), maxIndex)
	if err != nil {
		return nil, err
	}
	job := door.Job{Kind: WorkIndex, Doing: "reading the repository's index.yaml"}
	entry, err := door.InChild(ctx, s.children, job, FindInIndex, Wanted{text, reference.Name, reference.Version})
	if err != nil {
		return nil, err
	}
	at, err := base.Parse(entry.URL)
	if err != nil {
		return nil, err
	}
	if !s.admits(at.String()) {
		return nil, fmt.Errorf("the repository has it at %s, which the operator does not admit (setting chart-sources)", at)
	}
	archive, err := s.get(ctx, at.String(), MaxArchive)
	if err != nil {
		return nil, err
	}
	if wanted := strings.TrimPrefix(entry.Digest, "sha256:"); wanted != "" && "sha256:"+wanted != Digest(archive) {
		return nil, fmt.Errorf("what is at %s is another chart than index.yaml says: its digest is %s and not sha256:%s", at, Digest(archive), wanted)
	}
	return archive, nil
}

// WorkIndex is the kind of work (door.Work) that FindInIndex is.
const WorkIndex = "find-chart"

// Wanted is a version of a chart in the index of a repository.
type Wanted struct {
	Index         []byte
	Name, Version string
}

// Listed is where an index has a chart.
type Listed struct{ URL, Digest string }

// indexBounds are the bounds of an index.yaml: large repositories have a million values.
var indexBounds = door.Bounds{Bytes: maxIndex, Values: 4_000_000}

// FindInIndex finds a version of a chart in an index.yaml.
func FindInIndex(of Wanted) (Listed, error) {
	var index struct {
		Entries map[string][]struct {
			Version string   `yaml:"version"`
			URLs    []string `yaml:"urls"`
			Digest  string   `yaml:"digest"`
		} `yaml:"entries"`
	}
	if err := door.YAML(of.Index, &index, indexBounds); err != nil {
		return Listed{}, fmt.Errorf("read index.yaml: %w", err)
	}
	var versions []string
	for _, one := range index.Entries[of.Name] {
		versions = append(versions, one.Version)
		if strings.TrimPrefix(one.Version, "v") == strings.TrimPrefix(of.Version, "v") && len(one.URLs) > 0 {
			return Listed{one.URLs[0], one.Digest}, nil
		}
	}
	if len(versions) == 0 {
		return Listed{}, errors.New("the repository has no chart of that name")
	}
	if len(versions) > mostVersions {
		versions = append(versions[:mostVersions], "…")
	}
	return Listed{}, fmt.Errorf("the repository has no such version; there is %s", short(strings.Join(versions, ", ")))
}

// mostVersions are named when one is not there.
const mostVersions = 10

// get downloads no more than most bytes.
func (s *Sources) get(ctx context.Context, address string, most int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if err := s.logins.signIn(request); err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if refused := s.logins.refusal(response.Request.URL.Host, response.StatusCode); refused != nil {
		return nil, refused
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", address, response.Status)
	}
	return door.ReadAll(response.Body, int64(most), path.Base(address))
}
