// Package golden sends the recorded requests of a real Murano, in their order, to another server, and compares the
// answers with the recorded ones.
package golden

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"
)

//go:embed murano-api.jsonl
var recording []byte

// Exchange is one recorded request and its answer.
type Exchange struct {
	Name            string            `json:"name"`
	Method          string            `json:"method"`
	Path            string            `json:"path"` // with the query
	RequestHeaders  map[string]string `json:"request_headers"`
	RequestBody     json.RawMessage   `json:"request_body"`
	Status          int               `json:"status"`
	ResponseHeaders map[string]string `json:"response_headers"`
	ResponseBody    any               `json:"response_body"` // null, JSON, a text, or {"binary": true, "base64": …}
}

// Recorded returns the exchanges whose names begin with one of the words (up to the first '-'), in the order of the recording.
func Recorded(words ...string) ([]Exchange, error) {
	var list []Exchange
	lines := bufio.NewScanner(bytes.NewReader(recording))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e Exchange
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("read the recording: %w", err)
		}
		for _, word := range words {
			if strings.HasPrefix(e.Name, word+"-") {
				list = append(list, e)
			}
		}
	}
	return list, lines.Err()
}

// Body rebuilds the body that was sent, and its content type.
func (e Exchange) Body() (content []byte, contentType string, err error) {
	contentType = e.RequestHeaders["Content-Type"]
	var form struct {
		Multipart []formPart `json:"multipart"`
	}
	var text string
	switch {
	case string(e.RequestBody) == "null" || len(e.RequestBody) == 0:
		return nil, contentType, nil
	case json.Unmarshal(e.RequestBody, &form) == nil && form.Multipart != nil:
		return formBody(form.Multipart, contentType)
	case json.Unmarshal(e.RequestBody, &text) == nil && e.Status >= 400:
		return []byte(text), contentType, nil // bodies that are no JSON are recorded as a string; Murano accepted it as a JSON string
	}
	return e.RequestBody, contentType, nil
}

type formPart struct {
	Name        string `json:"name"`
	Filename    string `json:"filename"`
	ContentType string `json:"content_type"`
	Text        string `json:"text"`
	Base64      string `json:"base64"`
}

// formBody writes the parts with the boundary that the content type names, or with any when it names none.
func formBody(parts []formPart, contentType string) ([]byte, string, error) {
	var body bytes.Buffer
	writer := multipart.NewWriter(&body)
	if _, boundary, ok := strings.Cut(contentType, "boundary="); ok {
		if err := writer.SetBoundary(boundary); err != nil {
			return nil, "", err
		}
	}
	for _, part := range parts {
		header := textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf("form-data; name=%q", part.Name)}}
		if part.Filename != "" {
			header.Set("Content-Disposition", fmt.Sprintf("form-data; name=%q; filename=%q", part.Name, part.Filename))
			header.Set("Content-Type", part.ContentType)
		}
		content := []byte(part.Text)
		if part.Base64 != "" {
			var err error
			if content, err = base64.StdEncoding.DecodeString(part.Base64); err != nil {
				return nil, "", err
			}
		}
		target, err := writer.CreatePart(header)
		if err == nil {
			_, err = target.Write(content)
		}
		if err != nil {
			return nil, "", err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, "", err
	}
	return body.Bytes(), contentType, nil
}
