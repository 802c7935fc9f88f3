package catalog

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// MaxUpload is the largest package that is accepted, in bytes (Murano's package_size_limit).
const MaxUpload = 5 << 20

// Service is the catalog as its callers see it: the packages that they may see, add and remove.
type Service struct {
	store    Store
	embedded map[string]*Package // by id
	owner    string              // the project that embedded packages are shown as owned by
	reserved Reserved            // by the embedded packages
	offered  []string            // names of the embedded packages that are offered; none for all
	page     int                 // packages of a page; 0: DefaultPage
	cache    *packageCache
	reading  singleflight.Group // packages that are not in the cache, by id
	now      func() time.Time
	newID    func() string
	charts   ChartSource    // nil: none are fetched
	children *door.Children // nil: charts are read in this process
}

// ChartSource fetches charts that packages only refer to. A forbidden source, or a missing chart, is a fault.
type ChartSource interface {
	Fetch(ctx context.Context, reference charts.Reference) (archive []byte, err error)
}

// ChartsFrom sets the source of charts that packages refer to, for uploads. The package is stored with its chart from then on.
func ChartsFrom(source ChartSource) Option { return func(s *Service) { s.charts = source } }

// ReadIn has charts read in child processes, which do ChildWork.
func ReadIn(children *door.Children) Option { return func(s *Service) { s.children = children } }

// Option changes how a Service works.
type Option func(*Service)

// OfferEmbedded offers only the named ones of the packages that came with Burano: there are no others then. Without a name it changes
// nothing.
func OfferEmbedded(names ...string) Option { return func(s *Service) { s.offered = names } }

// EmbeddedOwner is the project that the packages that came with Burano are shown as owned by. They belong to no project all the same:
// any project, also this one, may have packages of their names.
func EmbeddedOwner(projectID string) Option { return func(s *Service) { s.owner = projectID } }

// WithClock gives the service another clock than the system's.
func WithClock(now func() time.Time) Option { return func(s *Service) { s.now = now } }

// WithIDs gives the service another maker of ids, each of 32 hexadecimal digits.
func WithIDs(newID func() string) Option { return func(s *Service) { s.newID = newID } }

// New makes the catalog over a store and the packages that came with Burano, and notes these in the store.
func New(store Store, embedded []*Package, options ...Option) (*Service, error) {
	s := &Service{
		store:    store,
		embedded: map[string]*Package{},
		cache:    newPackageCache(),
		now:      time.Now,
		newID:    randomID,
	}
	for _, option := range options {
		option(s)
	}
	for _, name := range s.offered {
		if !slices.ContainsFunc(embedded, func(p *Package) bool { return p.FullName() == name }) {
			return nil, fmt.Errorf("no package '%s' comes with Burano; there are %s", name, strings.Join(fullNames(embedded), ", "))
		}
	}
	records := make([]Record, 0, len(embedded))
	var offered []*Package
	for _, p := range embedded {
		if len(s.offered) > 0 && !slices.Contains(s.offered, p.FullName()) {
			continue
		}
		id := EmbeddedID(p.FullName())
		if _, twice := s.embedded[id]; twice {
			return nil, fmt.Errorf("embedded package %s is there twice", p.FullName())
		}
		s.embedded[id] = p
		offered = append(offered, p)
		record := s.newRecord(p, Metadata{Categories: p.Categories()}, "")
		record.ID, record.Public, record.Embedded = id, true, true
		records = append(records, record)
	}
	s.reserved = ReservedBy(offered)
	// The start of the server is not part of any request, so there is no context to pass on; the bound is for a database that
	// does not answer.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := store.ReplaceEmbedded(ctx, records); err != nil {
		return nil, fmt.Errorf("note the embedded packages: %w", err)
	}
	return s, nil
}

func fullNames(packages []*Package) []string {
	names := make([]string, 0, len(packages))
	for _, p := range packages {
		names = append(names, p.FullName())
	}
	return names
}

// EmbeddedID is the id of the embedded package of that name: the same in every installation.
func EmbeddedID(fullName string) string {
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte("burano:package:"+fullName))
	return hex.EncodeToString(id[:])
}

// randomID returns 32 random hexadecimal digits, as Murano's ids are.
func randomID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}

// newRecord merges the package's description over the uploader's: the manifest wins, tags are united.
func (s *Service) newRecord(p *Package, meta Metadata, owner string) Record {
	now := s.now().UTC().Truncate(time.Second)
	tags := p.Tags()
	for _, tag := range meta.Tags {
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	return Record{
		ID: s.newID(), FullName: p.FullName(), Name: p.Name(), Type: p.Type(), Version: p.Version().String(),
		Description: p.Description(), Author: p.Author(), Supplier: p.Supplier(),
		Tags: tags, Categories: slices.Clone(meta.Categories), Classes: p.ClassNames(),
		OwnerID: owner, Public: meta.Public, Enabled: meta.Enabled == nil || *meta.Enabled,
		Created: now, Updated: now,
	}
}

// Upload takes a package zip into the caller's project.
func (s *Service) Upload(ctx context.Context, caller identity.Caller, meta Metadata, archive []byte) (Record, error) {
	record, archive, err := s.admit(ctx, caller, meta, archive)
	if err != nil {
		return Record{}, err
	}
	if err := s.store.AddPackage(ctx, record, archive); err != nil {
		return Record{}, err
	}
	return s.record(ctx, record.ID)
}

// MayReplace returns the error that Replace would have for its caller and package, whatever is uploaded.
func (s *Service) MayReplace(ctx context.Context, caller identity.Caller, id string) error {
	_, err := s.deletable(ctx, caller, id)
	return err
}

// Replace puts an upload in the place of a package of the same name that the caller may delete: all of it, or where anything is refused nothing. The
// package has another id then.
func (s *Service) Replace(ctx context.Context, caller identity.Caller, id string, meta Metadata, archive []byte) (Record, error) {
	former, err := s.deletable(ctx, caller, id)
	if err != nil {
		return Record{}, err
	}
	record, archive, err := s.admit(ctx, caller, meta, archive)
	if err != nil {
		return Record{}, err
	}
	if record.FullName != former.FullName {
		return Record{}, fault.New(fault.Invalid, "Package '%s' (%s) is replaced by a package of its name, and not by %s", id, former.FullName, record.FullName)
	}
	record.OwnerID = former.OwnerID
	if err := s.store.ReplacePackage(ctx, id, record, archive); err != nil {
		return Record{}, err
	}
	s.cache.drop(id)
	return s.record(ctx, record.ID)
}

// admit checks an upload and returns its record and the archive to store.
func (s *Service) admit(ctx context.Context, caller identity.Caller, meta Metadata, archive []byte) (Record, []byte, error) {
	if meta.Public && !caller.May("publicize_package") {
		return Record{}, nil, denied
	}
	switch {
	case len(archive) == 0:
		return Record{}, nil, fault.New(fault.Invalid, "Uploading file can't be empty")
	case len(archive) > MaxUpload:
		return Record{}, nil, TooLargeUpload()
	}
	p, err := checkZip(ctx, archive, chartWork{s.children, caller.ProjectID})
	if err != nil {
		return Record{}, nil, fault.New(fault.Invalid, "Couldn't load package from file: %w", err)
	}
	if reference := p.ChartReference(); reference != nil {
		if p, archive, err = s.withChart(ctx, p, *reference); err != nil {
			return Record{}, nil, fault.New(fault.Invalid, "Couldn't load package from file: %w", err)
		}
	}
	if err := p.CheckLengths(); err != nil {
		return Record{}, nil, err
	}
	if err := p.CheckTemplate(); err != nil {
		return Record{}, nil, fault.New(fault.Invalid, "Couldn't load package from file: %w", err)
	}
	if err := s.reserved.Check(p); err != nil {
		return Record{}, nil, err
	}
	return s.newRecord(p, meta, caller.ProjectID), archive, nil
}

// withChart is a package with the chart that it names, and its archive.
func (s *Service) withChart(ctx context.Context, p *Package, reference charts.Reference) (*Package, []byte, error) {
	if s.charts == nil {
		return nil, nil, fault.New(fault.Invalid, "the package names the chart %s, and this Burano fetches none: put the chart itself into the package", &reference)
	}
	chart, err := s.charts.Fetch(ctx, reference)
	if err != nil {
		return nil, nil, err
	}
	if p, err = p.fetched(ctx, chart); err != nil {
		return nil, nil, err
	}
	var archive bytes.Buffer
	if err := p.WriteZip(&archive); err != nil {
		return nil, nil, err
	}
	return p, archive.Bytes(), nil
}

// record reads a package's record as callers see it.
func (s *Service) record(ctx context.Context, id string) (Record, error) {
	record, err := s.store.Package(ctx, id)
	return s.seen(record), err
}

// seen returns the record as callers see it.
func (s *Service) seen(record Record) Record {
	if record.Embedded {
		record.OwnerID = s.owner
	}
	return record
}

// denied is Murano's answer to a caller without any right to the call.
var denied = fault.New(fault.Forbidden, "Access was denied to this resource.")

// TooLargeUpload is the fault for a file beyond MaxUpload, of kind Invalid as Murano answers.
func TooLargeUpload() error {
	return fault.New(fault.Invalid, "Uploading file is too large. The limit is %d Mb", MaxUpload>>20)
}

// Show returns a package that the caller may see.
func (s *Service) Show(ctx context.Context, caller identity.Caller, id string) (Record, error) {
	record, err := s.record(ctx, id)
	if err != nil {
		return Record{}, err
	}
	if !record.Public && record.OwnerID != caller.ProjectID && !caller.Admin {
		return Record{}, fault.New(fault.Forbidden, "Package '%s' is not public and not owned by tenant '%s' ", id, caller.ProjectID)
	}
	return record, nil
}

// Delete removes a package of the caller's project, or any uploaded one for an administrator.
func (s *Service) Delete(ctx context.Context, caller identity.Caller, id string) error {
	if _, err := s.deletable(ctx, caller, id); err != nil {
		return err
	}
	if err := s.store.DeletePackage(ctx, id); err != nil {
		return err
	}
	s.cache.drop(id)
	return nil
}

// deletable returns the record of a package that the caller may delete.
func (s *Service) deletable(ctx context.Context, caller identity.Caller, id string) (Record, error) {
	record, err := s.Show(ctx, caller, id)
	if err != nil {
		return Record{}, err
	}
	switch {
	case record.Embedded:
		return Record{}, fault.New(fault.Forbidden, "Package '%s' (%s) comes with Burano and cannot be deleted", id, record.FullName)
	case record.OwnerID != caller.ProjectID && !caller.Admin:
		return Record{}, fault.New(fault.Forbidden, "Package is not owned by the tenant '%s'", caller.ProjectID)
	case record.Public && !caller.May("manage_public_package"):
		return Record{}, denied
	}
	return record, nil
}

// Open returns the files of a package that the caller may see.
func (s *Service) Open(ctx context.Context, caller identity.Caller, id string) (*Package, error) {
	record, err := s.Show(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	return s.load(ctx, record)
}

// UI returns the dynamic UI definition, nil where the package has none.
func (s *Service) UI(ctx context.Context, caller identity.Caller, id string) ([]byte, error) {
	p, err := s.Open(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	return p.UI()
}

// Download returns the package's zip: the very bytes that were uploaded, or the zip of an embedded package.
func (s *Service) Download(ctx context.Context, caller identity.Caller, id string) ([]byte, error) {
	record, err := s.Show(ctx, caller, id)
	if err != nil {
		return nil, err
	}
	if !record.Embedded {
		return s.store.Archive(ctx, id)
	}
	p, err := s.load(ctx, record)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	if err := p.WriteZip(&archive); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

// readingTime is how long the reading of a stored package may take: a chart waits for its turn.
const readingTime = 2 * time.Minute

// load returns the files of the record's package.
func (s *Service) load(ctx context.Context, record Record) (*Package, error) {
	if record.Embedded {
		if p, ok := s.embedded[record.ID]; ok {
			return p, nil
		}
		return nil, fault.New(fault.NotFound, "Package id '%s' not found", record.ID)
	}
	if p, ok := s.cache.get(record.ID); ok {
		return p, nil
	}
	// Many may ask for one package at once, such as browsers for its logo: it is read for all of them, also when the first one goes away.
	p, err, _ := s.reading.Do(record.ID, func() (any, error) {
		ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), readingTime, fmt.Errorf("it takes longer than %s", readingTime))
		defer cancel()
		archive, err := s.store.Archive(ctx, record.ID)
		if err != nil {
			return nil, err
		}
		p, err := openZip(ctx, archive, chartWork{s.children, record.OwnerID})
		if err != nil {
			return nil, fmt.Errorf("read the stored package %s (%s): %w", record.ID, record.FullName, err)
		}
		s.cache.put(record.ID, p)
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	return p.(*Package), nil
}

// Categories lists categories.
func (s *Service) Categories(ctx context.Context, query CategoryQuery) ([]Category, error) {
	return s.store.Categories(ctx, query)
}

// Category returns a category and its packages that the caller may see.
func (s *Service) Category(ctx context.Context, caller identity.Caller, id string) (Category, []Record, error) {
	category, err := s.store.Category(ctx, id)
	if err != nil {
		return Category{}, nil, err
	}
	query := Query{Project: caller.ProjectID, Categories: []string{category.Name}, IncludeDisabled: true, OrderBy: []Order{OrderName}}
	if caller.Admin {
		query.Scope = ScopeAll
	}
	packages, err := s.store.Packages(ctx, query)
	return category, packages, err
}

// AddCategory makes a category; administrators only.
func (s *Service) AddCategory(ctx context.Context, caller identity.Caller, name string) (Category, error) {
	switch {
	case !caller.May("add_category"):
		return Category{}, denied
	case name == "":
		return Category{}, fault.New(fault.Invalid, "Please, specify a name of the category to create")
	case utf8.RuneCountInString(name) > maxName:
		return Category{}, fault.New(fault.Invalid, "Category name should be %d characters maximum", maxName)
	}
	now := s.now().UTC().Truncate(time.Second)
	category := Category{ID: s.newID(), Name: name, Created: now, Updated: now}
	return category, s.store.AddCategory(ctx, category)
}

// DeleteCategory removes an empty category; administrators only.
func (s *Service) DeleteCategory(ctx context.Context, caller identity.Caller, id string) error {
	if !caller.May("delete_category") {
		return denied
	}
	return s.store.DeleteCategory(ctx, id)
}
