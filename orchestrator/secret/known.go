package secret

import (
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

// Mark stands where a secret was.
const Mark = "*** SANITIZED ***"

// MinLength is how long, in bytes, a value must be to be found in texts: a shorter one may well be a word that a text has for another
// reason.
const MinLength = 8

// Mask returns a copy of a model in which the texts that stand under names of secrets are masked.
func Mask(model map[string]any) map[string]any {
	masked, _ := sensitive.Texts("", model, func(string) string { return Mark }).(map[string]any)
	return masked
}

// Known are the secrets that a text must not tell. The zero Known knows none. It is safe for concurrent use.
type Known struct {
	mutex    sync.RWMutex
	values   map[string]bool
	forms    []string          // how all of them may be written
	replacer *strings.Replacer // of the forms but those that came since it was made
	since    []string          // which are the last of forms
}

// most is how many forms are looked for one by one, before a replacer is made that knows them, too.
const most = 100

// Note makes known what Mask would mask in a value that stands under a name. Values are as JSON decodes them; of others nothing is known.
func (k *Known) Note(name string, value any) {
	sensitive.Texts(name, value, func(text string) string { k.Add(text); return text })
}

// AddStored makes known what is secret in a value that Burano itself keeps sealed: a private key in PEM, bytes, or a JSON document of
// both in base64. The rest of such a document, such as public keys and names, is no secret.
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
		k.values = map[string]bool{}
	}
	k.values[value] = true
	made := forms(value)
	k.forms, k.since = append(k.forms, made...), append(k.since, made...)
}

// Hide returns the text with the mark in the place of each secret, as it is or as JSON, Go, Python, a URL or base64 writes it.
func (k *Known) Hide(text string) string {
	if len(text) < MinLength {
		return text
	}
	k.mutex.RLock()
	replacer, none := k.replacer, len(k.values) == 0
	outdated := replacer == nil || len(k.since) > most || slices.ContainsFunc(k.since, func(form string) bool { return strings.Contains(text, form) })
	k.mutex.RUnlock()
	if none {
		return text
	}
	if outdated {
		replacer = k.renew()
	}
	return replacer.Replace(text)
}

func (k *Known) renew() *strings.Replacer {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.replacer != nil && len(k.since) == 0 {
		return k.replacer
	}
	all := slices.Clone(k.forms)
	// Of two that begin at the same place the replacer takes the first.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(all))
	for _, form := range all {
		pairs = append(pairs, form, Mark)
	}
	k.replacer, k.since = strings.NewReplacer(pairs...), nil
	return k.replacer
}

// forms are how a value may be written in a text.
func forms(value string) []string {
	inside := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	escaped, _ := json.Marshal(value) // a string can be written
	var plain strings.Builder
	encoder := json.NewEncoder(&plain)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value)
	python := strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(value)
	list := []string{value, inside(string(escaped)), inside(strings.TrimSpace(plain.String())), inside(strconv.Quote(value)), python,
		url.QueryEscape(value), url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value))}
	slices.Sort(list)
	return slices.Compact(list)
}

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
