package kube

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/memory"
)

// A cluster's API server is its owner's machine, which may answer anything. These bound one answer, after decompression.
const (
	mostAnswer  = 64 << 20  // bytes; a pod has 5 to 20 KB
	mostDecoded = 256 << 20 // bytes in memory, roughly
	mostEvent   = 16 << 20  // bytes of one event of a watch
	mostLine    = 64 << 10  // bytes of a line of metrics
	mostRefusal = 64 << 10  // bytes of an answer that is no success, whose text becomes an error's, and of one that is neither JSON nor protobuf
)

// Bounded returns the config of a cluster's API server with bounds on each of its answers. Warnings in their headers are left out: they would fill the log.
func Bounded(config *rest.Config) *rest.Config {
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedTransport{next} })
	return config
}

type boundedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(request)
	if err != nil || answer.StatusCode == http.StatusSwitchingProtocols {
		return answer, err
	}
	what := "the API server's answer to " + request.Method + " " + request.URL.Path
	success := answer.StatusCode >= http.StatusOK && answer.StatusCode < http.StatusMultipleChoices
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	watch := request.URL.Query().Get("watch")
	body := answer.Body
	counts := &counted{source: body, answer: memory.Of(request.Context()).Answer()}
	switch {
	case success && strings.HasSuffix(request.URL.Path, "/log"): // which is read line by line
		return answer, nil
	case success && request.URL.Path == metricsPath: // of many MB, which are read line by line
		answer.Body = bodyOf(door.Lines(door.Reader(body, mostAnswer, what), mostLine, what), body)
	case !success:
		answer.Body = door.Body(body, mostRefusal, what)
	case kind == runtime.ContentTypeJSON && (watch == "true" || watch == "1"):
		answer.Body = bodyOf(door.JSONStream(body, mostEvent, mostDecoded, "an event of "+what), body)
	case kind == runtime.ContentTypeJSON:
		counts.source = door.JSON(body, mostAnswer, mostDecoded, what)
		answer.Body = bodyOf(counts, counts.closing(body))
	case kind == runtime.ContentTypeProtobuf:
		answer.Body = bodyOf(&weighed{source: counts, what: what}, counts.closing(body))
	default:
		answer.Body = door.Body(body, mostRefusal, what)
	}
	return answer, nil
}

// counted counts the memory of an answer, and of the objects that it becomes, for the work that asked.
type counted struct {
	source io.Reader
	read   int64
	answer *memory.Answer
}

func (c *counted) Read(into []byte) (int, error) {
	n, err := c.source.Read(into)
	c.read += int64(n)
	if short := c.answer.Grow(c.read + door.Cost(c.source)); short != nil {
		return 0, short
	}
	return n, err
}

// closing returns a closer of a body that ends the answer.
func (c *counted) closing(body io.Closer) io.Closer { return closer{c.answer, body} }

type closer struct {
	answer *memory.Answer
	body   io.Closer
}

func (c closer) Close() error {
	c.answer.End()
	return c.body.Close()
}

// CloseIdleConnections is what http.Client and utilnet.CloseIdleConnectionsFor call.
func (t boundedTransport) CloseIdleConnections() {
	if closer, can := t.next.(interface{ CloseIdleConnections() }); can {
		closer.CloseIdleConnections()
	}
}

// WrappedRoundTripper implements k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper.
func (t boundedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func bodyOf(reader io.Reader, closer io.Closer) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{reader, closer}
}

// weighed reads an answer in protobuf to its end before anything of it is decoded: two bytes of it may become an object of a KiB.
type weighed struct {
	source *counted
	what   string
	read   bool
	text   bytes.Reader
	err    error
}

func (w *weighed) Read(into []byte) (int, error) {
	if !w.read {
		w.read = true
		text, err := door.ReadAll(w.source, mostAnswer, w.what)
		if err == nil {
			if decoded := weight(text, mostDecoded); decoded > mostDecoded {
				err = &door.Exceeded{What: w.what, Bound: door.Bytes(mostDecoded) + " when it is decoded"}
			} else {
				err = w.source.answer.Grow(w.source.read + decoded)
			}
		}
		w.err = err
		w.text.Reset(text)
	}
	if w.err != nil {
		return 0, w.err
	}
	return w.text.Read(into)
}

// The weights of fields by their depth: an answer is an envelope (k8s.io/apimachinery/pkg/runtime.Unknown) with a message, whose fields are objects, whose
// parts are metadata, spec and status, whose fields may be containers. What may be a message is taken for one.
const (
	weightOfMember = 1 << 10
	weightOfInner  = 256
	innerFrom      = 4
	deepest        = 100
)

// weight is what a message takes in memory when it is decoded, roughly; it is not measured further than to a limit.
func weight(text []byte, limit int64) int64 {
	const envelope = "k8s\x00"
	text = bytes.TrimPrefix(text, []byte(envelope))
	left := limit - int64(len(text))
	weigh(text, 0, &left)
	return limit - left
}

// weigh takes the weight of a message's fields from what is left, up to the first that is none.
func weigh(text []byte, depth int, left *int64) {
	for len(text) > 0 && *left >= 0 {
		_, kind, n := protowire.ConsumeTag(text)
		if n < 0 {
			return
		}
		text = text[n:]
		if kind != protowire.BytesType {
			const scalar = 16
			*left -= scalar
			if n = protowire.ConsumeFieldValue(1, kind, text); n < 0 {
				return
			}
			text = text[n:]
			continue
		}
		part, n := protowire.ConsumeBytes(text)
		if n < 0 {
			return
		}
		text = text[n:]
		if depth < innerFrom {
			*left -= weightOfMember
		} else {
			*left -= weightOfInner
		}
		if depth < deepest {
			weigh(part, depth+1, left)
		}
	}
}
