// Package envelope seals for the key of a recipient: single values of a document, so that the rest of the document stays readable, and whole files.
package envelope

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"filippo.io/age"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/sensitive"
)

// maxValue is how many bytes a value has as JSON.
const maxValue = 16 << 20

// sealedForm is how sealed values look: the prefix, and an age file (https://age-encryption.org/v1) of the value's JSON in base64.
var sealedForm = regexp.MustCompile(regexp.QuoteMeta(sensitive.SealedPrefix) + `([A-Za-z0-9+/]+={0,2})`)

// ErrOther is the error of a value or a file that was sealed for another key.
var ErrOther = errors.New("it was sealed for another key")

// ErrDamaged is the error of a file that was changed, or whose end is missing.
var ErrDamaged = errors.New("a byte of it was changed, or its end is missing")

// Is reports whether a text has a sealed value in it.
func Is(text string) bool { return sealedForm.MatchString(text) }

// Recipient is a public key, such as age1….
type Recipient struct{ recipient *age.X25519Recipient }

// ParseRecipient reads a public key.
func ParseRecipient(text string) (Recipient, error) {
	recipient, err := age.ParseX25519Recipient(text)
	if err != nil {
		return Recipient{}, fmt.Errorf("the recipient is no public key such as age1…: %w", err)
	}
	return Recipient{recipient}, nil
}

// Seal returns a JSON value as a text that only the recipient's key opens.
func (r Recipient) Seal(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	var sealed bytes.Buffer
	writer, err := age.Encrypt(&sealed, r.recipient)
	if err != nil {
		return "", err
	}
	if _, err := writer.Write(text); err != nil {
		return "", err
	}
	if err := writer.Close(); err != nil {
		return "", err
	}
	return sensitive.SealedPrefix + base64.StdEncoding.EncodeToString(sealed.Bytes()), nil
}

// Writer writes a file of age that only the recipient's key opens. The file is whole once the writer is closed.
func (r Recipient) Writer(to io.Writer) (io.WriteCloser, error) { return age.Encrypt(to, r.recipient) }

// Key is a private key.
type Key struct{ identity *age.X25519Identity }

// NewKey makes a key.
func NewKey() (Key, error) {
	identity, err := age.GenerateX25519Identity()
	return Key{identity}, err
}

// ParseKey reads the text of a key file: a line AGE-SECRET-KEY-1…, and comments.
func ParseKey(text string) (Key, error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		identity, err := age.ParseX25519Identity(line)
		if err != nil {
			return Key{}, fmt.Errorf("it is no key such as AGE-SECRET-KEY-1…: %w", err)
		}
		return Key{identity}, nil
	}
	return Key{}, errors.New("there is no key in it")
}

// String is the text of a key file.
func (k Key) String() string {
	return "# public key: " + k.Recipient() + "\n" + k.identity.String() + "\n"
}

// Recipient is the public key, which seals for this key.
func (k Key) Recipient() string { return k.identity.Recipient().String() }

// Reader opens a file that Recipient.Writer has written. Reading ends with ErrDamaged before the first byte that is not as it was written.
func (k Key) Reader(from io.Reader) (io.Reader, error) {
	opened, err := age.Decrypt(from, k.identity)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, ErrOther
	}
	if err != nil {
		return nil, fmt.Errorf("it is no file that was sealed for a key: %w", err)
	}
	return undamaged{opened}, nil
}

// undamaged names the reason why a sealed file cannot be read on.
type undamaged struct{ io.Reader }

func (u undamaged) Read(into []byte) (int, error) {
	n, err := u.Reader.Read(into)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	return n, err
}

// Open returns a copy of a JSON value in which each sealed value is opened: a text that is one as the value itself, others in their places in texts.
func (k Key) Open(value any) (any, error) {
	switch v := value.(type) {
	case string:
		return k.text(v)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = k.Open(item); err != nil {
				return nil, fmt.Errorf("[%d]%w", i, err)
			}
		}
		return list, nil
	case map[string]any:
		fields := make(map[string]any, len(v))
		for key, item := range v {
			var err error
			if fields[key], err = k.Open(item); err != nil {
				return nil, fmt.Errorf(".%s%w", key, err)
			}
		}
		return fields, nil
	}
	return value, nil
}

func (k Key) text(text string) (any, error) {
	found := sealedForm.FindAllStringSubmatchIndex(text, -1)
	if len(found) == 0 {
		return text, nil
	}
	if len(found) == 1 && found[0][0] == 0 && found[0][1] == len(text) {
		return k.one(text[found[0][2]:])
	}
	var opened strings.Builder
	last := 0
	for _, at := range found {
		value, err := k.one(text[at[2]:at[3]])
		if err != nil {
			return nil, err
		}
		inner, is := value.(string)
		if !is {
			return nil, errors.New(": a sealed value in a text is no text")
		}
		opened.WriteString(text[last:at[0]] + inner)
		last = at[1]
	}
	return opened.String() + text[last:], nil
}

func (k Key) one(encoded string) (any, error) {
	sealed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, errors.New(": the sealed value is damaged")
	}
	reader, err := age.Decrypt(bytes.NewReader(sealed), k.identity)
	var other *age.NoIdentityMatchError
	if errors.As(err, &other) {
		return nil, fmt.Errorf(": %w", ErrOther)
	}
	if err != nil {
		return nil, errors.New(": the sealed value is damaged")
	}
	text, err := door.ReadAll(reader, maxValue, "a sealed value")
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	decoder := json.NewDecoder(io.LimitReader(bytes.NewReader(text), maxValue))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, errors.New(": the sealed value is damaged")
	}
	return value, nil
}
