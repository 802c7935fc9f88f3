// Package secret seals data that must not be readable in the database, under keys in a file beside it.
package secret

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// The forms of sealed values: version 2 is the id of the key, a colon, and nonce and AES-256-GCM ciphertext in base64. Version 1 had no
// id: it was sealed under the only key that there was.
const (
	version1 = "v1:"
	version2 = "v2:"
)

// Sealer seals and opens small values. It is safe for concurrent use. A key file that changes is read again: its first key seals at once,
// and a key that is not known is looked for in it.
type Sealer struct {
	path string

	mutex sync.RWMutex
	keys  ring
	file  fs.FileInfo // that keys are from
}

// Open reads the key file at path, and makes it (mode 0600) when there is none. A key file that others than its owner may read is refused: with it and the
// database, a reader has every secret.
func Open(path string) (*Sealer, error) {
	s, err := OpenExisting(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createRing(path); err != nil {
			return nil, fmt.Errorf("make the key file %s: %w", path, err)
		}
		return OpenExisting(path)
	}
	return s, err
}

// OpenExisting is Open for callers that make no key file.
func OpenExisting(path string) (*Sealer, error) {
	s := &Sealer{path: path}
	var err error
	if s.keys, s.file, err = readRing(path); err != nil {
		return nil, fmt.Errorf("read the key file %s: %w", path, err)
	}
	return s, nil
}

// Seal returns value in a form that only Open with the same owner opens again. owner names the value's place, for example
// "environment/4f2a…/secret/etcd-ca"; a sealed value copied to another owner does not open. The result is printable.
func (s *Sealer) Seal(owner string, value []byte) string {
	active := s.current()[0]
	nonce := make([]byte, active.aead.NonceSize())
	rand.Read(nonce) // never fails (crypto/rand)
	return version2 + active.id + ":" + base64.StdEncoding.EncodeToString(active.aead.Seal(nonce, nonce, value, []byte(owner)))
}

// Open returns the value that Seal got for this owner.
func (s *Sealer) Open(owner, sealed string) ([]byte, error) {
	id, raw, err := parse(sealed)
	if err != nil {
		return nil, fmt.Errorf("open the secret of %s: %w", owner, err)
	}
	value, known, err := s.known().open(id, owner, raw)
	if err != nil { // another server may have a key that has come to the file since
		value, known, err = s.current().open(id, owner, raw)
	}
	switch {
	case err == nil:
		return value, nil
	case known:
		return nil, fmt.Errorf("open the secret of %s: it was sealed with another key than that of %s, or for something else", owner, s.path)
	}
	return nil, fmt.Errorf("open the secret of %s: it was sealed with the key %s, another key than those of %s: add the line of that key to the file, from a server's or a backup's", owner, id, s.path)
}

// Sum is a checksum of a value under the active key, in hexadecimal: who has it can compare values, and cannot try guesses.
func (s *Sealer) Sum(value []byte) string {
	sum := hmac.New(sha256.New, []byte(s.current()[0].text))
	sum.Write([]byte("sum of a value\x00"))
	sum.Write(value)
	return hex.EncodeToString(sum.Sum(nil))
}

// KeyOf returns the id of the key that a value was sealed under: "" where the value has none (version 1). ok is false for a value that is not sealed.
func KeyOf(sealed string) (id string, ok bool) {
	id, _, err := parse(sealed)
	return id, err == nil
}

// Current returns how values begin that are sealed under the active key; all others are sealed under a former key.
func (s *Sealer) Current() string { return version2 + s.current()[0].id + ":" }

// Keys returns the ids of the keys, the active one first.
func (s *Sealer) Keys() []string { return s.current().ids() }

var (
	errForm    = errors.New("it is not in a form that this Burano knows")
	errDamaged = errors.New("it is damaged")
)

// parse takes a sealed value apart; the id of a value of version 1 is "".
func parse(sealed string) (id string, raw []byte, err error) {
	text, first := strings.CutPrefix(sealed, version1)
	if !first {
		rest, second := strings.CutPrefix(sealed, version2)
		if !second {
			return "", nil, errForm
		}
		if id, text, second = strings.Cut(rest, ":"); !second || len(id) != idSize {
			return "", nil, errDamaged
		}
	}
	if raw, err = base64.StdEncoding.DecodeString(text); err != nil {
		return "", nil, errDamaged
	}
	return id, raw, nil
}

// open opens a value with its key, or with each in turn when the value names none. known is true if there was one to try.
func (r ring) open(id, owner string, raw []byte) (value []byte, known bool, err error) {
	err = ErrNoKey
	for _, one := range r {
		if id != "" && id != one.id {
			continue
		}
		size := one.aead.NonceSize()
		if len(raw) < size {
			return nil, true, errDamaged
		}
		if value, err = one.aead.Open(nil, raw[:size], raw[size:], []byte(owner)); err == nil {
			return value, true, nil
		}
		known = true
	}
	return nil, known, err
}

// known returns the keys as they were last read.
func (s *Sealer) known() ring {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.keys
}

// current returns the present keys of the file. While the file cannot be used, or has none of the known keys, which is not a change of the ring but
// another ring, the former keys count. A check of the file costs about a microsecond.
func (s *Sealer) current() ring {
	info, err := os.Stat(s.path)
	s.mutex.RLock()
	keys, file := s.keys, s.file
	s.mutex.RUnlock()
	if err != nil || os.SameFile(info, file) && info.ModTime().Equal(file.ModTime()) && info.Size() == file.Size() {
		return keys
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	renewed, info, err := readRing(s.path)
	if err != nil {
		return s.keys
	}
	for _, one := range renewed {
		if _, ok := s.keys.find(one.id); ok {
			s.keys, s.file = renewed, info
			break
		}
	}
	return s.keys
}
