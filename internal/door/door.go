// Package door bounds everything that a tenant, a package, a cluster's machine or a stranger sends: its bytes after unpacking, its depth, the
// size that it has when it is written out, and its patterns. No other package reads or parses such input without a bound; test/house checks this.
package door

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Exceeded is the error of input that is larger than its bound. Its text names the input and the bound.
type Exceeded struct {
	What  string // the input, for example "the answer of etcd"
	Verb  string // "" for "has"
	Bound string // the bound, for example "16 MiB"
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("%s %s more than %s", e.What, cmp.Or(e.Verb, "has"), e.Bound)
}

// IsExceeded reports whether an error is one of a bound.
func IsExceeded(err error) bool {
	var exceeded *Exceeded
	return errors.As(err, &exceeded)
}

// ReadAll reads a source to its end, at most limit bytes of it. A source with more bytes is an *Exceeded error that names it as what.
func ReadAll(source io.Reader, limit int64, what string) ([]byte, error) {
	return io.ReadAll(Reader(source, limit, what))
}

// Reader returns a reader of at most limit bytes of a source. Reading a further byte is an *Exceeded error, unlike that of io.LimitReader, which ends
// as if the source had ended.
func Reader(source io.Reader, limit int64, what string) io.Reader {
	return &reader{source: source, left: limit, limit: limit, what: what}
}

// Body is Reader for the body of an HTTP answer: closing it closes the body.
func Body(body io.ReadCloser, limit int64, what string) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{Reader(body, limit, what), body}
}

type reader struct {
	source      io.Reader
	left, limit int64
	what        string
}

func (r *reader) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	// One byte more than what is left tells a source of exactly limit bytes from a larger one.
	if int64(len(into)) > r.left+1 {
		into = into[:r.left+1]
	}
	n, err := r.source.Read(into)
	if int64(n) > r.left {
		n = int(r.left)
		err = &Exceeded{What: r.what, Bound: Bytes(r.limit)}
	}
	r.left -= int64(n)
	return n, err
}

// Writer returns a writer to a target that takes at most limit bytes. Writing a further byte is an *Exceeded error.
func Writer(target io.Writer, limit int64, what string) io.Writer {
	return &writer{target: target, left: limit, limit: limit, what: what}
}

type writer struct {
	target      io.Writer
	left, limit int64
	what        string
}

func (w *writer) Write(more []byte) (int, error) {
	fits := min(int64(len(more)), w.left)
	n, err := w.target.Write(more[:fits])
	if w.left -= int64(n); err == nil && fits < int64(len(more)) {
		err = &Exceeded{What: w.what, Bound: Bytes(w.limit)}
	}
	return n, err
}

// Buffer keeps the first bytes that are written to it. The zero Buffer keeps none. Writing beyond its limit is an *Exceeded error, which ends a copy
// or a session.
type Buffer struct {
	Limit int64
	What  string
	Grow  func(bytes int64) error // takes memory for so many bytes altogether; nil: nothing counts them
	kept  []byte
	err   error
}

func (b *Buffer) Write(more []byte) (int, error) {
	fits := min(int64(len(more)), b.Limit-int64(len(b.kept)))
	if b.Grow != nil {
		if b.err = b.Grow(int64(len(b.kept)) + fits); b.err != nil {
			return 0, b.err
		}
	}
	b.kept = append(b.kept, more[:fits]...)
	if fits < int64(len(more)) {
		b.err = &Exceeded{What: b.What, Bound: Bytes(b.Limit)}
		return int(fits), b.err
	}
	return len(more), nil
}

// Err returns the *Exceeded error of a buffer that was written beyond its limit, or that of Grow.
func (b *Buffer) Err() error { return b.err }

// Bytes returns the bytes that were kept. They are the buffer's own.
func (b *Buffer) Bytes() []byte { return b.kept }

// String returns the bytes that were kept, as text.
func (b *Buffer) String() string { return string(b.kept) }

// Cut returns the beginning of a text, of at most so many bytes and at the end of a character, with … after it where more followed: for logs.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// Bytes returns a number of bytes as a text with a unit, for errors.
func Bytes(n int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.size && n%unit.size == 0 {
			return fmt.Sprintf("%d %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
