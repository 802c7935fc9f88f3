package catalog

import (
	"context"
	"time"
)

// Record is the catalog's data about a package besides its files.
type Record struct {
	ID          string // 32 hexadecimal digits
	FullName    string
	Name        string
	Type        string // "Application" or "Library"
	Version     string
	Description string
	Author      string
	Supplier    map[string]any
	Tags        []string
	Categories  []string // names
	Classes     []string
	OwnerID     string // project; "" for a package that came with Burano
	Public      bool
	Enabled     bool
	Embedded    bool
	Created     time.Time // UTC, whole seconds
	Updated     time.Time
	Facts       *Facts // nil: not known yet
}

// Facts are the facts from a package's files that lists show.
type Facts struct {
	UI           bool
	Logo         bool
	SupplierLogo bool
}

// ClassRecord is a class of a package.
type ClassRecord struct {
	Name    string
	Parents []string // full names; empty where they are not known, or there are none
	Package Record
}

// Category groups packages.
type Category struct {
	ID           string
	Name         string
	PackageCount int
	Created      time.Time
	Updated      time.Time
}

// Scope is the set of packages that a query may see.
type Scope int

// The scopes of Murano's catalog.
const (
	ScopeUsable Scope = iota // the project's own, public and embedded ones
	ScopeOwned               // the project's own
	ScopeAll                 // every project's (administrators)
)

// Query asks for packages. Empty fields do not restrict; values of one list are alternatives.
type Query struct {
	Project         string
	Scope           Scope
	IncludeDisabled bool

	IDs        []string
	FullName   string
	Name       string
	ClassName  string
	Type       string
	Categories []string // names
	Tags       []string
	Search     []string // words, each looked for in all texts; the first text in which one is found gives the rank

	OrderBy    []Order // then by id; searches rank first
	Descending bool
	Marker     string // id of the last package of the page before
	Limit      int    // 0 for no limit
}

// Order is a key that packages are ordered by.
type Order string

// The keys that Murano knows.
const (
	OrderName     Order = "name"
	OrderFullName Order = "fqn"
	OrderCreated  Order = "created"
)

// CategoryQuery asks for categories.
type CategoryQuery struct {
	SortKeys   []string // of CategorySortKeys
	Descending bool
	Marker     string // id
	Limit      int    // 0 for no limit
}

// CategorySortKeys are the keys that categories are ordered by.
func CategorySortKeys() []string {
	return []string{"name", "created", "updated", "package_count", "id"}
}

// Store keeps packages and categories durably. Ids that are not there are faults of kind NotFound; names that are taken are
// faults of kind Conflict.
type Store interface {
	PackageStore
	CategoryStore
}

// PackageStore keeps packages.
type PackageStore interface {
	// ReplaceEmbedded makes the embedded records exactly these, in one transaction; a record that is there already keeps its
	// time of creation. Categories that are not there are left out.
	ReplaceEmbedded(ctx context.Context, records []Record) error
	// AddPackage stores a package with its zip, in one transaction, unless the owner has a package of that name or one of the classes already, or, when it
	// is to be public, a public package has. A missing category is a fault of kind Invalid.
	AddPackage(ctx context.Context, record Record, archive []byte) error
	// ReplacePackage is AddPackage in the place of another package, which is removed in the same transaction. A fault of kind NotFound when it is gone.
	ReplacePackage(ctx context.Context, formerID string, record Record, archive []byte) error
	Package(ctx context.Context, id string) (Record, error)
	// Archive returns the zip as it was uploaded.
	Archive(ctx context.Context, id string) ([]byte, error)
	DeletePackage(ctx context.Context, id string) error
	// UpdatePackage changes a package in one transaction: change gets the present record and sets the new one. It can change Name, Description, Tags,
	// Categories, Public, Enabled and Updated. When the package becomes public, the rules of AddPackage apply.
	UpdatePackage(ctx context.Context, id string, change func(*Record) error) (Record, error)
	Packages(ctx context.Context, query Query) ([]Record, error)
	// NoteFacts stores the facts from a package's files, and the parents of its classes by their names.
	NoteFacts(ctx context.Context, id string, facts Facts, parents map[string][]string) error
	// Parents returns the parents of the classes of packages, by the packages' ids and the classes' names.
	Parents(ctx context.Context, ids []string) (map[string]map[string][]string, error)
}

// CategoryStore keeps categories.
type CategoryStore interface {
	Categories(ctx context.Context, query CategoryQuery) ([]Category, error)
	Category(ctx context.Context, id string) (Category, error)
	AddCategory(ctx context.Context, category Category) error
	// DeleteCategory is a fault of kind Forbidden while packages are in the category.
	DeleteCategory(ctx context.Context, id string) error
}
