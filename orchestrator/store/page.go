package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// Page selects a part of a list, and its order. The zero Page is all of it in the list's own order.
type Page struct {
	Limit  int    // how many; 0 is all
	Marker string // the id of the last row of the page before; "" for the first page
	Sort   []Sort // the most important first; nil is the list's own order
}

// Sort is one key of a list's order.
type Sort struct {
	Key        string // such as "created"
	Descending bool
}

// ErrMarker is the error when the list has no row with the id of the marker.
var ErrMarker = errors.New("the marker is not in the list")

// SortError is the error when a list cannot be sorted by a key.
type SortError struct {
	Key   string
	Known []string
}

func (e *SortError) Error() string {
	return fmt.Sprintf("there is no sorting by %q: there is by %s", e.Key, strings.Join(e.Known, ", "))
}

// list is a list with pages.
type list struct {
	keys map[string]string // its sort keys, as SQL that is never NULL; "id" is the last of every order
	own  []Sort            // its own order
}

// page narrows the query to the page. rows gives the whole list's query anew.
func (l list) page(page Page, rows func() *gorm.DB) (*gorm.DB, error) {
	order := page.Sort
	if len(order) == 0 {
		order = l.own
	}
	if !slices.ContainsFunc(order, func(sort Sort) bool { return sort.Key == "id" }) {
		order = append(slices.Clone(order), Sort{Key: "id"})
	}
	columns := make([]string, len(order))
	orders := make([]string, len(order))
	for i, sort := range order {
		column, known := l.keys[sort.Key]
		if !known {
			return nil, &SortError{Key: sort.Key, Known: slices.Sorted(maps.Keys(l.keys))}
		}
		columns[i], orders[i] = column, column
		if sort.Descending {
			orders[i] += " DESC"
		}
	}
	query := rows()
	if page.Marker != "" {
		after, values, err := l.after(page.Marker, order, columns, rows)
		if err != nil {
			return nil, err
		}
		query = query.Where(after, values...)
	}
	if page.Limit > 0 {
		query = query.Limit(page.Limit)
	}
	return query.Order(strings.Join(orders, ", ")), nil
}

// after is the condition of rows after the marker: greater in the first column, or equal in that and greater in the second, and so
// on.
func (l list) after(marker string, order []Sort, columns []string, rows func() *gorm.DB) (condition string, values []any, err error) {
	place := make([]any, len(columns))
	places := make([]any, len(columns))
	for i := range places {
		places[i] = &place[i]
	}
	found := false
	if err := each(rows().Select(strings.Join(columns, ", ")).Where(l.keys["id"]+" = ?", marker), func() { found = true }, places...); err != nil {
		return "", nil, err
	}
	if !found {
		return "", nil, ErrMarker
	}
	var alternatives []string
	for i, sort := range order {
		terms := make([]string, 0, i+1)
		for j := range i {
			terms, values = append(terms, columns[j]+" = ?"), append(values, place[j])
		}
		sign := " > ?"
		if sort.Descending {
			sign = " < ?"
		}
		terms, values = append(terms, columns[i]+sign), append(values, place[i])
		alternatives = append(alternatives, strings.Join(terms, " AND "))
	}
	return "(" + strings.Join(alternatives, " OR ") + ")", values, nil
}
