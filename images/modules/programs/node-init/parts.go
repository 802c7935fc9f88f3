package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"strings"
)

// User data of several parts is a message (RFC 2045): https://docs.cloud-init.io/en/latest/explanation/format.html#mime-multi-part-archive.

// isMessage reports whether user data begins with headers.
func isMessage(content []byte) bool {
	name, _, found := strings.Cut(string(content[:min(len(content), 64)]), ":")
	return found && (strings.EqualFold(name, "content-type") || strings.EqualFold(name, "mime-version"))
}

// partsOf returns the parts of a message in their order, including the parts of nested ones. The header is the message's own, empty when the content
// begins with it.
func partsOf(header textproto.MIMEHeader, content []byte) ([][]byte, error) {
	if len(header) == 0 {
		reader := bufio.NewReader(bytes.NewReader(content))
		var err error
		if header, err = textproto.NewReader(reader).ReadMIMEHeader(); err != nil {
			return nil, fmt.Errorf("read the headers: %w", err)
		}
		if content, err = io.ReadAll(reader); err != nil {
			return nil, err
		}
	}
	kind, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		content, err := decoded(header, content)
		return [][]byte{content}, err
	}
	if parameters["boundary"] == "" {
		return nil, errors.New("the header Content-Type names no boundary")
	}
	var all [][]byte
	reader := multipart.NewReader(bytes.NewReader(content), parameters["boundary"])
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		header := part.Header
		if len(header) == 0 {
			header = textproto.MIMEHeader{"Content-Type": {"text/plain"}}
		}
		inner, err := partsOf(header, content)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
}

func decoded(header textproto.MIMEHeader, content []byte) ([]byte, error) {
	switch encoding := strings.ToLower(header.Get("Content-Transfer-Encoding")); encoding {
	case "", "7bit", "8bit", "binary":
		return content, nil
	case "base64":
		return io.ReadAll(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(content)))
	case "quoted-printable":
		return io.ReadAll(quotedprintable.NewReader(bytes.NewReader(content)))
	default:
		return nil, fmt.Errorf("encoding %q is not known", encoding)
	}
}
