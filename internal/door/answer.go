package door

import (
	"encoding/json"
	"io"
)

// Rough costs in memory of what stands in JSON, in bytes. They are of Kubernetes' types, which are the largest that answers are decoded into: "{}" in a
// list of pods becomes more than a KiB.
const (
	costOfText   = 16
	costOfObject = 64
	costOfList   = 64
	costOfValue  = 16
	costOfInner  = 256 // an object of a list in lists of lists, such as a variable of a container of a pod
	costOfMember = 1 << 10

	// outerLists is how many lists deep an object is a large one.
	outerLists = 2
	// maxNesting is how deep JSON may be nested.
	maxNesting = 1_000
)

// JSON is Reader for a source of JSON that is also bounded by the memory that it takes when it is decoded, roughly: a few bytes of text become a large
// object. What is no JSON is bounded by its bytes alone.
func JSON(source io.Reader, limit, decoded int64, what string) io.Reader {
	return &jsonReader{source: Reader(source, limit, what), left: decoded, decoded: decoded, what: what}
}

// Cost returns the memory that the JSON read so far from a reader of JSON takes when it is decoded, roughly; 0 for another reader.
func Cost(reader io.Reader) int64 {
	if r, is := reader.(*jsonReader); is {
		return r.decoded - r.left
	}
	return 0
}

// DecodeJSON decodes the first value of a source, as JSON bounds it.
func DecodeJSON(source io.Reader, into any, limit, decoded int64, what string) error {
	return json.NewDecoder(JSON(source, limit, decoded, what)).Decode(into)
}

// JSONStream is JSON for a source without end, such as a stream of events: its bounds are those of each value.
func JSONStream(source io.Reader, limit, decoded int64, what string) io.Reader {
	return &jsonReader{source: source, left: decoded, decoded: decoded, each: limit, what: what}
}

type jsonReader struct {
	source        io.Reader
	left, decoded int64
	each, length  int64 // of a stream: the bytes that each value may have, and those of the present one
	what          string
	within        []bool // the lists (true) and objects that are open
	lists         int    // of them
	text, escaped bool
	err           error
}

func (r *jsonReader) Read(into []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.source.Read(into)
	if r.err = r.weigh(into[:n]); r.err != nil {
		return 0, r.err
	}
	return n, err
}

func (r *jsonReader) weigh(some []byte) error {
	for _, c := range some {
		r.left--
		r.length++
		switch {
		case r.escaped:
			r.escaped = false
		case r.text:
			r.escaped, r.text = c == '\\', c != '"'
		case c == '"':
			r.text = true
			r.left -= costOfText
		case c == ',':
			r.left -= costOfValue
		case c == '{':
			r.left -= r.costOfObject()
			r.within = append(r.within, false)
		case c == '[':
			r.left -= costOfList
			r.within = append(r.within, true)
			r.lists++
		case c == '}', c == ']':
			if last := len(r.within) - 1; last >= 0 {
				if r.within[last] {
					r.lists--
				}
				r.within = r.within[:last]
			}
			if r.each > 0 && len(r.within) == 0 {
				r.left, r.length = r.decoded, 0
			}
		}
		switch {
		case len(r.within) > maxNesting:
			return &Exceeded{What: r.what, Bound: "1000 levels of lists and objects"}
		case r.each > 0 && r.length > r.each:
			return &Exceeded{What: r.what, Bound: Bytes(r.each)}
		case r.left < 0:
			return &Exceeded{What: r.what, Bound: Bytes(r.decoded) + " when it is decoded"}
		}
	}
	return nil
}

func (r *jsonReader) costOfObject() int64 {
	switch {
	case len(r.within) == 0 || !r.within[len(r.within)-1]:
		return costOfObject
	case r.lists <= outerLists:
		return costOfMember
	}
	return costOfInner
}

// Lines returns a reader of a source without end, such as a stream of events, none of whose lines has more than limit bytes. A longer one is an
// *Exceeded error.
func Lines(source io.Reader, limit int64, what string) io.Reader {
	return &lines{source: source, limit: limit, what: what}
}

type lines struct {
	source        io.Reader
	limit, length int64
	what          string
}

func (l *lines) Read(into []byte) (int, error) {
	n, err := l.source.Read(into)
	for _, c := range into[:n] {
		l.length++
		if c == '\n' {
			l.length = 0
		}
		if l.length > l.limit {
			return 0, &Exceeded{What: "a line of " + l.what, Bound: Bytes(l.limit)}
		}
	}
	return n, err
}
