package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// catalogHandlers answer the routes of packages and categories, in Murano's shapes.
type catalogHandlers struct {
	catalog *catalog.Service
	values  int // in JSON
}

func (h catalogHandlers) register(v1 *echo.Group) {
	packages := v1.Group("/catalog/packages")
	packages.GET("", h.listPackages)
	packages.POST("", h.uploadPackage)
	packages.GET("/:id", h.showPackage)
	packages.PATCH("/:id", h.updatePackage)
	packages.DELETE("/:id", h.deletePackage)
	packages.GET("/:id/ui", h.packageUI)
	packages.GET("/:id/logo", h.packageFile((*catalog.Package).Logo))
	packages.GET("/:id/supplier_logo", h.packageFile((*catalog.Package).SupplierLogo))
	packages.GET("/:id/download", h.downloadPackage)

	categories := v1.Group("/catalog/categories")
	categories.GET("", h.listCategories)
	categories.POST("", h.addCategory)
	categories.GET("/:id", h.showCategory)
	categories.DELETE("/:id", h.deleteCategory)
}

// packagePatchType is the media type of changes to a package.
const packagePatchType = "application/murano-packages-json-patch"

// catalogTime is how Murano writes times: UTC, whole seconds, no zone.
const catalogTime = "2006-01-02T15:04:05"

type packageJSON struct {
	ID               string         `json:"id"`
	FullName         string         `json:"fully_qualified_name"`
	Name             string         `json:"name"`
	Type             string         `json:"type"`
	Description      string         `json:"description"`
	Author           string         `json:"author"`
	Supplier         map[string]any `json:"supplier"`
	Tags             []string       `json:"tags"`
	Categories       []string       `json:"categories"`
	ClassDefinitions []string       `json:"class_definitions"`
	IsPublic         bool           `json:"is_public"`
	Enabled          bool           `json:"enabled"`
	OwnerID          string         `json:"owner_id"`
	Created          string         `json:"created"`
	Updated          string         `json:"updated"`
}

func newPackageJSON(r catalog.Record) packageJSON {
	return packageJSON{
		ID: r.ID, FullName: r.FullName, Name: r.Name, Type: r.Type, Description: r.Description, Author: r.Author,
		Supplier: r.Supplier, Tags: r.Tags, Categories: r.Categories, ClassDefinitions: r.Classes,
		IsPublic: r.Public, Enabled: r.Enabled, OwnerID: r.OwnerID,
		Created: r.Created.Format(catalogTime), Updated: r.Updated.Format(catalogTime),
	}
}

func (h catalogHandlers) listPackages(c echo.Context) error {
	records, marker, err := h.catalog.List(c.Request().Context(), catalogCaller(c), c.QueryParams())
	if err != nil {
		return err
	}
	answer := struct {
		Packages   []packageJSON `json:"packages"`
		NextMarker string        `json:"next_marker,omitempty"`
	}{Packages: make([]packageJSON, 0, len(records)), NextMarker: marker}
	for _, record := range records {
		answer.Packages = append(answer.Packages, newPackageJSON(record))
	}
	return c.JSON(http.StatusOK, answer)
}

func (h catalogHandlers) showPackage(c echo.Context) error {
	record, err := h.catalog.Show(c.Request().Context(), catalogCaller(c), c.Param("id"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, newPackageJSON(record))
}

func (h catalogHandlers) deletePackage(c echo.Context) error {
	if err := h.catalog.Delete(c.Request().Context(), catalogCaller(c), c.Param("id")); err != nil {
		return err
	}
	return empty(c)
}

func (h catalogHandlers) packageUI(c echo.Context) error {
	ui, err := h.catalog.UI(c.Request().Context(), catalogCaller(c), c.Param("id"))
	if err != nil {
		return err
	}
	if len(ui) == 0 {
		return blob(c, "text/plain", nil)
	}
	// Murano intends text/plain and sends this. A browser must not treat it as a page.
	c.Response().Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	return blob(c, "text/html; charset=UTF-8", ui)
}

func (h catalogHandlers) updatePackage(c echo.Context) error {
	request := c.Request()
	sent, _ := body(c)
	mediaType, _, _ := mime.ParseMediaType(request.Header.Get(echo.HeaderContentType))
	var changes []catalog.Change
	if mediaType == packagePatchType {
		var err error
		if changes, err = catalog.ParseChanges(sent); err != nil {
			return err
		}
	}
	// As in Murano, the package is looked for before a body of another type is refused.
	if _, err := h.catalog.Show(request.Context(), catalogCaller(c), c.Param("id")); err != nil {
		return err
	}
	if mediaType != packagePatchType {
		return fault.New(fault.Invalid, "Content-Type must be '%s'", packagePatchType)
	}
	record, err := h.catalog.Update(request.Context(), catalogCaller(c), c.Param("id"), changes)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, newPackageJSON(record))
}

func (h catalogHandlers) packageFile(read func(*catalog.Package) ([]byte, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		p, err := h.catalog.Open(c.Request().Context(), catalogCaller(c), c.Param("id"))
		if err != nil {
			return err
		}
		content, err := read(p)
		if err != nil {
			return err
		}
		return blob(c, echo.MIMEOctetStream, content)
	}
}

func (h catalogHandlers) downloadPackage(c echo.Context) error {
	archive, err := h.catalog.Download(c.Request().Context(), catalogCaller(c), c.Param("id"))
	if err != nil {
		return err
	}
	return blob(c, echo.MIMEOctetStream, archive)
}

// admitUpload reads an upload, with its uploader's description.
func admitUpload(c echo.Context, values int) (upload, catalog.Metadata, error) {
	form, err := readUpload(c)
	if err != nil {
		return upload{}, catalog.Metadata{}, err
	}
	if err := identify(c, form.archive); err != nil {
		return upload{}, catalog.Metadata{}, err
	}
	if _, err := checkJSON(form.metadata, values); err != nil {
		return upload{}, catalog.Metadata{}, err
	}
	meta, err := catalog.ParseMetadata(form.metadata)
	return form, meta, err
}

func (h catalogHandlers) uploadPackage(c echo.Context) error {
	form, meta, err := admitUpload(c, h.values)
	if err != nil {
		return err
	}
	record, err := h.catalog.Upload(c.Request().Context(), catalogCaller(c), meta, form.archive)
	if fault.KindOf(err) == fault.Conflict {
		return detailed(err)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, newPackageJSON(record))
}

// upload is the body of POST /v1/catalog/packages.
type upload struct {
	metadata []byte // JSON, nil where there was none
	archive  []byte
}

// maxMetadata bounds the JSON part, in bytes.
const maxMetadata = 1 << 20

// readUpload reads the body: a file part and at most one other, of any names.
func readUpload(c echo.Context) (upload, error) {
	request := c.Request()
	kind, parameters, err := mime.ParseMediaType(request.Header.Get(echo.HeaderContentType))
	if err != nil || kind != echo.MIMEMultipartForm {
		return upload{}, fault.New(fault.Invalid, "Content-Type must be 'multipart/form-data'")
	}
	body := http.MaxBytesReader(c.Response(), request.Body, catalog.MaxUpload+2*maxMetadata)
	parts := multipart.NewReader(body, parameters["boundary"])
	var form upload
	found := false
	for count := 1; ; count++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return upload{}, uploadError(err)
		}
		if count > 2 {
			return upload{}, &refusal{status: http.StatusBadRequest, explanation: explanations[http.StatusBadRequest]}
		}
		limit, isFile := int64(maxMetadata), part.FileName() != ""
		if isFile {
			limit = catalog.MaxUpload
		}
		content, err := door.ReadAll(part, limit, "the part")
		switch {
		case door.IsExceeded(err) && isFile:
			return upload{}, catalog.TooLargeUpload()
		case door.IsExceeded(err):
			return upload{}, fault.New(fault.Invalid, "The JSON part '%s' has more than %d bytes", part.FormName(), maxMetadata)
		case err != nil:
			return upload{}, uploadError(err)
		case isFile:
			form.archive, found = content, true
		default:
			form.metadata = content
		}
	}
	if !found {
		return upload{}, fault.New(fault.Invalid, "There is no file package with application description")
	}
	return form, nil
}

func uploadError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return catalog.TooLargeUpload()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return unreadable(err)
	}
	return fault.New(fault.Invalid, "The 'multipart/form-data' request body cannot be read: %w", err)
}

type categoryJSON struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	PackageCount int    `json:"package_count"`
	Created      string `json:"created"`
	Updated      string `json:"updated"`
}

func newCategoryJSON(category catalog.Category) categoryJSON {
	return categoryJSON{
		ID: category.ID, Name: category.Name, PackageCount: category.PackageCount,
		Created: category.Created.Format(catalogTime), Updated: category.Updated.Format(catalogTime),
	}
}

func (h catalogHandlers) listCategories(c echo.Context) error {
	query, err := categoryQuery(c.QueryParams())
	if err != nil {
		return err
	}
	categories, err := h.catalog.Categories(c.Request().Context(), query)
	if err != nil {
		return categoryError(err)
	}
	answer := struct {
		Categories []categoryJSON `json:"categories"`
		NextMarker string         `json:"next_marker,omitempty"`
	}{Categories: make([]categoryJSON, 0, len(categories))}
	for _, category := range categories {
		answer.Categories = append(answer.Categories, newCategoryJSON(category))
	}
	if len(categories) > 0 && len(categories) == query.Limit {
		answer.NextMarker = categories[len(categories)-1].ID
	}
	return c.JSON(http.StatusOK, answer)
}

func categoryQuery(parameters url.Values) (catalog.CategoryQuery, error) {
	known := []string{"sort_keys", "sort_dir", "limit", "marker"}
	for name := range parameters {
		if !slices.Contains(known, name) {
			return catalog.CategoryQuery{}, detailed(fault.New(fault.Invalid, "Bad value passed to filter. Got %s, expected:%s", name, strings.Join(known, ", ")))
		}
	}
	query := catalog.CategoryQuery{Marker: parameters.Get("marker")}
	keys := catalog.CategorySortKeys()
	for key := range strings.SplitSeq(parameters.Get("sort_keys"), ",") {
		key = strings.TrimSpace(key)
		if key == "" {
			continue
		}
		if !slices.Contains(keys, key) {
			return query, fault.New(fault.Invalid, "Invalid sort key: %s. Must be one of the following: %s", key, strings.Join(keys, ", "))
		}
		query.SortKeys = append(query.SortKeys, key)
	}
	var err error
	if query.Descending, err = catalog.ParseDirection(parameters.Get("sort_dir")); err != nil {
		return query, err
	}
	limit, err := catalog.ParseLimit(parameters.Get("limit"), 0)
	query.Limit = limit
	return query, err
}

func (h catalogHandlers) showCategory(c echo.Context) error {
	category, packages, err := h.catalog.Category(c.Request().Context(), catalogCaller(c), c.Param("id"))
	if err != nil {
		return categoryError(err)
	}
	type packageName struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		FullName string `json:"fully_qualified_name"`
	}
	answer := struct {
		categoryJSON
		Packages []packageName `json:"packages"`
	}{newCategoryJSON(category), make([]packageName, 0, len(packages))}
	for _, p := range packages {
		answer.Packages = append(answer.Packages, packageName{p.ID, p.Name, p.FullName})
	}
	return c.JSON(http.StatusOK, answer)
}

func (h catalogHandlers) addCategory(c echo.Context) error {
	caller := catalogCaller(c)
	var body struct {
		Name string `json:"name"`
	}
	// A caller without the right to add a category gets this answer for any body, as in Murano: AddCategory checks the caller first.
	if caller.May("add_category") {
		decoder := json.NewDecoder(io.LimitReader(c.Request().Body, maxMetadata))
		if err := decoder.Decode(&body); err != nil && !errors.Is(err, io.EOF) {
			return fault.New(fault.Invalid, "Malformed request body: it should be a JSON object with the text 'name': %w", err)
		}
	}
	category, err := h.catalog.AddCategory(c.Request().Context(), caller, body.Name)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, newCategoryJSON(category))
}

func (h catalogHandlers) deleteCategory(c echo.Context) error {
	if err := h.catalog.DeleteCategory(c.Request().Context(), catalogCaller(c), c.Param("id")); err != nil {
		return categoryError(err)
	}
	return empty(c)
}

// categoryError gives the error for a missing category Murano's shape.
func categoryError(err error) error {
	if fault.KindOf(err) == fault.NotFound {
		return detailed(err)
	}
	return err
}

func catalogCaller(c echo.Context) identity.Caller { return identity.From(c.Request().Context()) }
