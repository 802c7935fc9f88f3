package openstack

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/burano/burano/internal/door"
)

// Bounds of a list that is read to its last page, in addition to the bounds of each page. Tenants fill lists, and a service may name a next page
// without end.
const (
	mostPages         = 1_000
	mostInList        = 128 << 20 // bytes of all pages
	mostDecodedInList = 512 << 20 // bytes in memory of all pages, roughly
)

// listKey is the key in the context of the calls of one list.
type listKey struct{}

// list is how much of one list has been read.
type list struct{ pages, bytes, decoded int64 }

// allPages is Pager.AllPages within the bounds of a list.
func allPages(ctx context.Context, pager pagination.Pager) (pagination.Page, error) {
	return pager.AllPages(context.WithValue(ctx, listKey{}, &list{}))
}

// listAll reads all pages of a list.
func listAll[T any](ctx context.Context, pager pagination.Pager, extract func(pagination.Page) ([]T, error)) ([]T, error) {
	pages, err := allPages(ctx, pager)
	if err != nil {
		return nil, err
	}
	return extract(pages)
}

// add counts a page. A list beyond its bounds is a *door.Exceeded error.
func (l *list) add(what string, bytes, decoded int64) error {
	l.pages, l.bytes, l.decoded = l.pages+1, l.bytes+bytes, l.decoded+decoded
	bound := ""
	switch {
	case l.pages > mostPages:
		bound = fmt.Sprintf("%d pages", mostPages)
	case l.bytes > mostInList:
		bound = door.Bytes(mostInList)
	case l.decoded > mostDecodedInList:
		bound = door.Bytes(mostDecodedInList) + " when it is decoded"
	default:
		return nil
	}
	return &door.Exceeded{What: "the list of the service " + what, Bound: bound}
}
