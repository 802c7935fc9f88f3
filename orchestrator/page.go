package orchestrator

import (
	"errors"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

// oneMore asks for one more row than the page has, which shows whether there is a next page.
func oneMore(page store.Page) store.Page {
	if page.Limit > 0 {
		page.Limit++
	}
	return page
}

// cut removes the row that oneMore added. next is the marker of the next page, "" after the last one.
func cut[T any](rows []T, page store.Page, id func(T) string) (list []T, next string) {
	if page.Limit == 0 || len(rows) <= page.Limit {
		return rows, ""
	}
	return rows[:page.Limit], id(rows[page.Limit-1])
}

// pageFault is the fault of a wrong request for a page.
func pageFault(err error, page store.Page) error {
	var sorting *store.SortError
	switch {
	case errors.As(err, &sorting):
		return fault.New(fault.Invalid, "The parameter \"sort\" cannot be used: %s", sorting.Error())
	case door.IsExceeded(err):
		return fault.New(fault.TooLarge, "%w: ask for a part of it, by limit and marker", err)
	case errors.Is(err, store.ErrMarker):
		return fault.New(fault.Invalid, "The marker %q is not in the list: it is the id of the last one of the page before", page.Marker)
	}
	return err
}
