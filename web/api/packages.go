package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/fault"
)

// packageHandlers answer facts about packages that Murano does not.
type packageHandlers struct {
	catalog *catalog.Service
	values  int // in JSON
}

func (h packageHandlers) register(v1 *echo.Group) {
	v1.GET("/packages", h.list)
	v1.GET("/packages/:package", h.show)
	v1.PUT("/packages/:package", h.replace)
}

// describedPackage is a package as Murano describes it, with further facts.
type describedPackage struct {
	packageJSON
	Version         string `json:"version"`
	Embedded        bool   `json:"embedded"`
	HasUI           *bool  `json:"has_ui"` // null: the package cannot be read
	HasLogo         *bool  `json:"has_logo"`
	HasSupplierLogo *bool  `json:"has_supplier_logo"`
}

func describedFields(record catalog.Record) describedPackage {
	fields := describedPackage{packageJSON: newPackageJSON(record), Version: record.Version, Embedded: record.Embedded}
	if facts := record.Facts; facts != nil {
		fields.HasUI, fields.HasLogo, fields.HasSupplierLogo = &facts.UI, &facts.Logo, &facts.SupplierLogo
	}
	return fields
}

// list takes the parameters of Murano's list.
func (h packageHandlers) list(c echo.Context) error {
	ctx := c.Request().Context()
	records, marker, err := h.catalog.List(ctx, catalogCaller(c), c.QueryParams())
	if err == nil {
		records, err = h.catalog.Described(ctx, records)
	}
	if err != nil {
		return err
	}
	answer := struct {
		Packages   []describedPackage `json:"packages"`
		NextMarker string             `json:"next_marker,omitempty"`
	}{Packages: make([]describedPackage, len(records)), NextMarker: marker}
	for i, record := range records {
		answer.Packages[i] = describedFields(record)
	}
	return c.JSON(http.StatusOK, answer)
}

func (h packageHandlers) show(c echo.Context) error {
	record, err := h.catalog.Describe(c.Request().Context(), catalogCaller(c), c.Param("package"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, describedFields(record))
}

// replace replaces a package by an upload. Murano's clients delete it before they upload the next one, and have none when that is refused.
func (h packageHandlers) replace(c echo.Context) error {
	caller := catalogCaller(c)
	if !caller.May("delete_package") {
		return fault.New(fault.Forbidden, "Access was denied to this resource.")
	}
	if err := h.catalog.MayReplace(c.Request().Context(), caller, c.Param("package")); err != nil {
		return err
	}
	form, meta, err := admitUpload(c, h.values)
	if err != nil {
		return err
	}
	record, err := h.catalog.Replace(c.Request().Context(), caller, c.Param("package"), meta, form.archive)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, newPackageJSON(record))
}
