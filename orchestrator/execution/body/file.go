package body

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// fileValue is a file of the server: written text is sent when it is closed.
type fileValue struct {
	path    string
	reads   bool
	add     bool
	closed  bool
	content strings.Builder
}

// open is open(path, mode), with the modes r, w and a.
func open(r *run, line int, args []any, named map[string]any) (any, error) {
	if err := arity(line, "open", args, 1, 2); err != nil {
		return nil, err
	}
	path, isText := args[0].(string)
	mode := "r"
	if given, is := named["mode"].(string); is {
		mode = given
	}
	if len(args) > 1 {
		mode = str(args[1])
	}
	f := &fileValue{path: path, reads: strings.HasPrefix(mode, "r"), add: strings.HasPrefix(mode, "a")}
	switch {
	case !isText || !strings.ContainsAny(mode[:min(1, len(mode))], "rwa") || strings.Contains(mode, "+"):
		return nil, &Error{line, "ValueError", "open() takes a path and one of the modes r, w and a"}
	case r.world.Write == nil || r.world.Read == nil:
		return nil, &Error{line, "IOError", "there are no files here"}
	}
	return f, nil
}

func (f *fileValue) method(name string) any {
	switch name {
	case "read", "readlines":
		return method(name, 0, 0, func(r *run, line int, _ []any) (any, error) {
			if !f.reads {
				return nil, &Error{line, "IOError", "the file is not open for reading"}
			}
			content, err := r.world.Read(r.ctx, f.path)
			if err != nil {
				return nil, &scriptError{line, err}
			}
			if name == "read" {
				return content, nil
			}
			return texts(strings.SplitAfter(content, "\n")), nil
		})
	case "write":
		return method(name, 1, 1, func(_ *run, line int, args []any) (any, error) { return nil, f.write(line, args[0]) })
	case "close", "flush":
		return method(name, 0, 0, func(r *run, _ int, _ []any) (any, error) {
			if name == "flush" {
				return nil, nil
			}
			return nil, f.close(r)
		})
	}
	return nil
}

func (f *fileValue) write(line int, value any) error {
	text, isText := value.(string)
	switch {
	case f.reads || f.closed:
		return &Error{line, "IOError", "the file is not open for writing"}
	case !isText:
		return &Error{line, "TypeError", "write() takes a text, not " + typeName(value)}
	case f.content.Len()+len(text) > maxText:
		return &Error{line, "MemoryError", "the file is too long"}
	}
	f.content.WriteString(text)
	return nil
}

func (f *fileValue) close(r *run) error {
	if f.reads || f.closed {
		return nil
	}
	f.closed = true
	if err := r.world.Write(r.ctx, f.path, f.content.String(), f.add); err != nil {
		return &scriptError{0, err}
	}
	return nil
}

// moduleUUID is the module of import uuid: uuid4() is the same each time that the same body runs again.
func moduleUUID() any {
	d := newDict()
	made := function(func(r *run, line int, args []any, _ map[string]any) (any, error) {
		r.uuids++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", r.world.Seed, r.uuids))
		sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
		return uuidValue(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])), nil
	})
	d.set("uuid4", made)
	d.set("uuid1", made)
	return d
}

// uuidValue is written as its text, and has it without hyphens as hex.
type uuidValue string
