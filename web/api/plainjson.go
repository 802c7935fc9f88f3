package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
)

// plainJSON writes JSON as Murano does, which ends it without a line feed: its clients compare bytes.
type plainJSON struct {
	echo.DefaultJSONSerializer
	buffers *sync.Pool // of *bytes.Buffer: lists are long
}

// maxBuffer is the largest buffer that is reused, in bytes.
const maxBuffer = 1 << 20

func newPlainJSON() plainJSON {
	return plainJSON{buffers: &sync.Pool{New: func() any { return &bytes.Buffer{} }}}
}

// Serialize implements echo.JSONSerializer.
func (p plainJSON) Serialize(c echo.Context, value any, indent string) error {
	buffer := p.buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= maxBuffer {
			buffer.Reset()
			p.buffers.Put(buffer)
		}
	}()
	if err := p.encode(c, buffer, value, indent); err != nil {
		return err
	}
	text := bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	c.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(len(text)))
	_, err := c.Response().Write(text)
	return err
}

// maxAnswer is how many bytes an answer has at most, before it is sent.
const maxAnswer = 64 << 20

// sizeOfAnswer is the rough size of an answer as JSON, or a fault when it is too large. A value that occurs in many places of an answer, as in an action's
// result, takes little memory until it is written.
func sizeOfAnswer(value any) (int64, error) {
	if shown, ok := value.(appender); ok {
		value = shown.parts()
	}
	size, err := door.Size(value, maxAnswer, "the answer")
	return size, tooLargeAnswer(err)
}

func tooLargeAnswer(err error) error {
	if !door.IsExceeded(err) {
		return err
	}
	return fault.New(fault.TooLarge, "%w: ask for a part of it, as by limit and marker, or for something in it", err)
}

// encode writes an answer into the buffer. The size of an answer is known, and accounted for, before it is written. Short models are written at once,
// since measuring one takes as long as writing it.
func (p plainJSON) encode(c echo.Context, buffer *bytes.Buffer, value any, indent string) error {
	if indent == "" {
		if written, err := appendAnswer(buffer.AvailableBuffer(), value, uncounted); written != nil {
			buffer.Write(written)
			return nil
		} else if err != nil && !errors.Is(err, errLong) {
			return err
		}
	}
	size, err := sizeOfAnswer(value)
	if err == nil {
		err = holds(c, size)
	}
	if err != nil {
		return err
	}
	if size > maxBuffer {
		buffer.Grow(int(size))
	}
	if indent == "" {
		if written, err := appendAnswer(buffer.AvailableBuffer(), value, math.MaxInt); written != nil || err != nil {
			buffer.Write(written)
			return err
		}
	}
	encoder := json.NewEncoder(buffer)
	encoder.SetIndent("", indent)
	return encoder.Encode(value)
}

// errLong ends the writing of a model with too many bytes.
var errLong = errors.New("the model is longer")

// appender is an answer with a model, most of whose time would go into reflection.
type appender interface {
	// appendJSON appends the result of json.Marshal, or returns errLong once the text has more than most bytes.
	appendJSON(text []byte, most int) ([]byte, error)
	// parts are the possibly large parts of the answer.
	parts() any
}

// appendAnswer appends an answer that is, or holds, a model; nil for any other.
func appendAnswer(text []byte, value any, most int) ([]byte, error) {
	switch v := value.(type) {
	case appender:
		return v.appendJSON(text, most)
	case map[string]any, []any, orchestrator.Applications:
		return appendJSON(text, v, most)
	}
	return nil, nil
}

// appendJSON appends the result of json.Marshal for a value of a model. It returns errLong instead of a text of more than most bytes.
func appendJSON(text []byte, value any, most int) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(text, "null"...), nil
	case bool:
		return strconv.AppendBool(text, v), nil
	case int64:
		return strconv.AppendInt(text, v, 10), nil
	case string:
		if len(text)+len(v) > most {
			return nil, errLong
		}
		return appendText(text, v)
	case []any:
		if v == nil {
			return append(text, "null"...), nil
		}
		return appendList(text, v, most)
	case map[string]any:
		if v == nil {
			return append(text, "null"...), nil
		}
		return appendMap(text, v, nil, most)
	case orchestrator.Applications:
		return appendApplications(text, v, most)
	}
	switch value.(type) {
	case int, float64, json.Number:
	default:
		if most < math.MaxInt {
			return nil, errLong // its length is unknown
		}
	}
	other, err := json.Marshal(value)
	return append(text, other...), err
}

func appendList(text []byte, list []any, most int) (_ []byte, err error) {
	if len(text)+len(list) > most {
		return nil, errLong
	}
	text = append(text, '[')
	for i, element := range list {
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = appendJSON(text, element, most); err != nil {
			return nil, err
		}
	}
	return append(text, ']'), nil
}

// appendApplications appends applications with their status: copies of their maps would take longer than the text.
func appendApplications(text []byte, applications orchestrator.Applications, most int) (_ []byte, err error) {
	text = append(text, '[')
	for i, element := range applications.List {
		if i > 0 {
			text = append(text, ',')
		}
		application := element.(map[string]any)
		header, _ := application["?"].(map[string]any)
		if text, err = appendMap(text, application, &entry{"?", func(text []byte) ([]byte, error) {
			return appendMap(text, header, &entry{"status", func(text []byte) ([]byte, error) { return appendText(text, applications.Status) }}, most)
		}}, most); err != nil {
			return nil, err
		}
	}
	return append(text, ']'), nil
}

// entry is one of a map.
type entry struct {
	key         string
	appendValue func(text []byte) ([]byte, error)
}

// appendMap appends a map. Unless instead is nil, it is added to the map's entries, or replaces the one of its name.
func appendMap(text []byte, entries map[string]any, instead *entry, most int) (_ []byte, err error) {
	if len(text)+len(entries) > most {
		return nil, errLong
	}
	var few [16]string // these need no memory of their own
	keys := few[:0]
	for key := range entries {
		if instead == nil || key != instead.key {
			keys = append(keys, key)
		}
	}
	if instead != nil {
		keys = append(keys, instead.key)
	}
	slices.Sort(keys)
	text = append(text, '{')
	for i, key := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		if len(text)+len(key) > most {
			return nil, errLong
		}
		if text, err = appendText(text, key); err != nil {
			return nil, err
		}
		if text = append(text, ':'); instead != nil && key == instead.key {
			text, err = instead.appendValue(text)
		} else {
			text, err = appendJSON(text, entries[key], most)
		}
		if err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// appendText appends a text in quotes. Most texts need no escapes.
func appendText(text []byte, value string) ([]byte, error) {
	for i := range len(value) {
		switch b := value[i]; {
		case b < ' ', b >= 0x7f, b == '"', b == '\\', b == '<', b == '>', b == '&':
			quoted, err := json.Marshal(value)
			return append(text, quoted...), err
		}
	}
	text = append(text, '"')
	text = append(text, value...)
	return append(text, '"'), nil
}
