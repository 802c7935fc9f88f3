package api

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

// maxPage is the maximum size of a page, for every limit.
const maxPage = 1000

// pageOf reads limit, marker and sort, as OpenStack's guidelines define them
// (https://specs.openstack.org/openstack/api-wg/guidelines/pagination_filter_sort.html): sort=started:desc,id. asked is false for a
// request without them, as Murano's clients send it.
func pageOf(c echo.Context) (page store.Page, asked bool, err error) {
	query := c.QueryParams()
	if !query.Has("limit") && !query.Has("marker") && !query.Has("sort") {
		return page, false, nil
	}
	if page.Limit, err = catalog.ParseLimit(query.Get("limit"), 0); err != nil {
		return page, true, err
	}
	page.Limit, page.Marker = min(page.Limit, maxPage), query.Get("marker")
	if sort := query.Get("sort"); sort != "" {
		for key := range strings.SplitSeq(sort, ",") {
			key, direction, _ := strings.Cut(key, ":")
			if direction != "" && direction != "asc" && direction != "desc" {
				return page, true, fault.New(fault.Invalid, "The parameter \"sort\" cannot be used: %s is sorted by asc or desc, not by %q", key, direction)
			}
			page.Sort = append(page.Sort, store.Sort{Key: key, Descending: direction == "desc"})
		}
	}
	return page, true, nil
}
