package secret

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/burano/burano/internal/sensitive"
)

// Mark replaces a secret.
const Mark = sensitive.Mark

// MinLength is how long, in bytes, a value must be to be found in texts: a shorter one may well be a word that a text has for another
// reason.
const MinLength = 8

// Mask returns a copy of a model in which texts under names of secrets are masked.
func Mask(model map[string]any) map[string]any {
	masked, _ := sensitive.Texts("", model, func(string) string { return Mark }).(map[string]any)
	return masked
}

// Masked replaces a value that its class calls a secret: it shows only whether there is one.
func Masked(value any) any {
	if value == nil || value == "" {
		return value
	}
	return Mark
}

// Known are the secrets to mask in a text. The zero Known has none. It is safe for concurrent use.
type Known struct {
	mutex  sync.RWMutex
	values map[string]bool
	forms  map[string][]string // how all of them may be written, by their first MinLength bytes; the longest of each first
}

// Note adds the texts that Mask would mask in a value under a name. Values have JSON's types; others add none.
func (k *Known) Note(name string, value any) {
	sensitive.Texts(name, value, func(text string) string { k.Add(text); return text })
}

// AddAll makes known all texts in a value, whatever their names.
func (k *Known) AddAll(value any) {
	switch v := value.(type) {
	case string:
		k.Add(v)
	case []any:
		for _, item := range v {
			k.AddAll(item)
		}
	case map[string]any:
		for _, item := range v {
			k.AddAll(item)
		}
	case int64, float64:
		k.Add(fmt.Sprint(v))
	}
}

// AddStored adds the secrets in a value that Burano itself keeps sealed: a private key in PEM, bytes, or a JSON document of both in base64. The rest of
// such a document, such as public keys and names, is no secret.
func (k *Known) AddStored(value []byte) {
	var document any
	if err := json.Unmarshal(value, &document); err != nil {
		k.Add(string(value))
		return
	}
	k.addBytes(document)
}

// minBytes is how long bytes in base64 are at least: 32 of them, a key.
const minBytes = 44

func (k *Known) addBytes(value any) {
	switch v := value.(type) {
	case string:
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil && len(v) >= minBytes && !strings.Contains(string(raw), "CERTIFICATE") {
			k.Add(v)
			k.Add(string(raw))
		}
	case []any:
		for _, item := range v {
			k.addBytes(item)
		}
	case map[string]any:
		for _, item := range v {
			k.addBytes(item)
		}
	}
}

// Add makes a value known, and each line of one that has several, such as a key in PEM.
func (k *Known) Add(value string) {
	value = strings.TrimSpace(value)
	if lines := strings.Split(value, "\n"); len(lines) > 1 {
		for _, line := range lines {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") {
				k.Add(line)
			}
		}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if len(value) < MinLength || k.values[value] {
		return
	}
	if k.values == nil {
		k.values, k.forms = map[string]bool{}, map[string][]string{}
	}
	k.values[value] = true
	for _, form := range forms(value) {
		start := form[:MinLength]
		at, there := slices.BinarySearchFunc(k.forms[start], form, longestFirst)
		if !there {
			k.forms[start] = slices.Insert(k.forms[start], at, form)
		}
	}
}

func longestFirst(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) }

// Hide returns the text with the mark in the place of each secret, as it is or as JSON, Go, Python, a URL or base64 writes it. Of two that
// begin at the same place the longer one is hidden.
func (k *Known) Hide(text string) string {
	k.mutex.RLock()
	defer k.mutex.RUnlock()
	if len(k.forms) == 0 {
		return text
	}
	var hidden strings.Builder
	told := 0 // how much of the text was written
	for at := 0; at+MinLength <= len(text); at++ {
		for _, form := range k.forms[text[at:at+MinLength]] {
			if strings.HasPrefix(text[at:], form) {
				hidden.WriteString(text[told:at])
				hidden.WriteString(Mark)
				told = at + len(form)
				at = told - 1
				break
			}
		}
	}
	if told == 0 {
		return text
	}
	hidden.WriteString(text[told:])
	return hidden.String()
}

// forms are how a value may be written in a text; none is shorter than the value.
func forms(value string) []string {
	list := []string{value, url.QueryEscape(value), url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value))}
	if strings.ContainsFunc(value, isEscaped) {
		inside := func(quoted string) string { return quoted[1 : len(quoted)-1] }
		escaped, _ := json.Marshal(value) // a string can be written
		var plain strings.Builder
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(value)
		list = append(list, inside(string(escaped)), inside(strings.TrimSpace(plain.String())), inside(strconv.Quote(value)), python.Replace(value))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// python writes a text as Python does between single quotes.
var python = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// isEscaped is true if JSON, Go or Python may write a character in another form.
func isEscaped(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`\"'<>&`, r) }

// HideIn returns a copy of a JSON value in which all texts, keys of maps too, are hidden.
func (k *Known) HideIn(value any) any {
	switch v := value.(type) {
	case string:
		return k.Hide(v)
	case []any:
		if v == nil {
			return v
		}
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = k.HideIn(item)
		}
		return list
	case map[string]any:
		if v == nil {
			return v
		}
		fields := make(map[string]any, len(v))
		for key, item := range v {
			fields[k.Hide(key)] = k.HideIn(item)
		}
		return fields
	}
	return value
}

// Logger returns a logger that writes no secret that is known when it writes.
func (k *Known) Logger(logger *slog.Logger) *slog.Logger {
	return slog.New(hiding{logger.Handler(), k})
}

// hiding is a handler of logs before another.
type hiding struct {
	slog.Handler
	known *Known
}

func (h hiding) Handle(ctx context.Context, record slog.Record) error {
	hidden := slog.NewRecord(record.Time, record.Level, h.known.Hide(record.Message), record.PC)
	record.Attrs(func(attr slog.Attr) bool {
		hidden.AddAttrs(h.attr(attr))
		return true
	})
	return h.Handler.Handle(ctx, hidden)
}

func (h hiding) attr(attr slog.Attr) slog.Attr {
	value := attr.Value.Resolve()
	switch value.Kind() {
	case slog.KindString:
		value = slog.StringValue(h.known.Hide(value.String()))
	case slog.KindGroup:
		var attrs []slog.Attr
		for _, inner := range value.Group() {
			attrs = append(attrs, h.attr(inner))
		}
		value = slog.GroupValue(attrs...)
	case slog.KindAny:
		text := fmt.Sprintf("%+v", value.Any())
		if hidden := h.known.Hide(text); hidden != text {
			value = slog.StringValue(hidden)
		}
	}
	return slog.Attr{Key: attr.Key, Value: value}
}

func (h hiding) WithAttrs(attrs []slog.Attr) slog.Handler {
	hidden := make([]slog.Attr, len(attrs))
	for i, attr := range attrs {
		hidden[i] = h.attr(attr)
	}
	return hiding{h.Handler.WithAttrs(hidden), h.known}
}

func (h hiding) WithGroup(name string) slog.Handler {
	return hiding{h.Handler.WithGroup(name), h.known}
}
