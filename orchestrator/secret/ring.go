package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// keySize is AES-256's.
	keySize = 32
	// idSize is how many hexadecimal digits of a key's fingerprint are its id.
	idSize = 16
)

// key is one key of a ring.
type key struct {
	id   string
	text string // its line in the file
	aead cipher.AEAD
}

// ring has the keys of a key file: keys in base64, one on a line. The first key seals and all of them open. Empty lines and lines that begin with # are
// ignored. A file of one key, as Burano first made it, is a ring of one. A key's id follows from the key, so that copies of a key have one id, and a file
// cannot give a key another's.
type ring []key

func newKey(text string) (key, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != keySize {
		return key{}, fmt.Errorf("it does not hold a key of %d bytes in base64 on each line; restore it from a backup (without it the sealed secrets cannot be read)", keySize)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return key{}, err
	}
	fingerprint := hmac.New(sha256.New, raw)
	fingerprint.Write([]byte("id of a Burano key"))
	return key{id: hex.EncodeToString(fingerprint.Sum(nil))[:idSize], text: text, aead: aead}, nil
}

func generateKey() (key, error) {
	raw := make([]byte, keySize)
	rand.Read(raw) // never fails (crypto/rand)
	return newKey(base64.StdEncoding.EncodeToString(raw))
}

func (r ring) find(id string) (key, bool) {
	for _, one := range r {
		if one.id == id {
			return one, true
		}
	}
	return key{}, false
}

func (r ring) ids() []string {
	ids := make([]string, len(r))
	for i, one := range r {
		ids[i] = one.id
	}
	return ids
}

// readRing reads a key file. A file that others than its owner may read is refused: with it and the database, a reader has every secret.
func readRing(path string) (ring, fs.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, nil, fmt.Errorf("others may read it (mode %04o): run chmod 600 %s, and think of who had access", info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, nil, err
	}
	var keys ring
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		one, err := newKey(line)
		if err != nil {
			return nil, nil, err
		}
		if _, twice := keys.find(one.id); !twice {
			keys = append(keys, one)
		}
	}
	if len(keys) == 0 {
		_, err := newKey("")
		return nil, nil, err
	}
	return keys, info, nil
}

// writeTemporary writes the ring to a new file in the folder of path.
func (r ring) writeTemporary(path string) (name string, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	var text strings.Builder
	for _, one := range r {
		text.WriteString(one.text + "\n")
	}
	if _, err := file.WriteString(text.String()); err != nil {
		file.Close()
		return "", err
	}
	if err := file.Sync(); err != nil {
		file.Close()
		return "", err
	}
	return file.Name(), file.Close()
}

// createRing makes the key file with one new key: path appears whole or not at all, and a file that another process made in the meantime
// is left as it is.
func createRing(path string) error {
	one, err := generateKey()
	if err != nil {
		return err
	}
	name, err := ring{one}.writeTemporary(path)
	if err != nil {
		return err
	}
	defer os.Remove(name)
	if err := os.Link(name, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(path)
}

// changeRing replaces the key file's keys by change's result, whole or not at all. Two changes never mix.
func changeRing(path string, change func(ring) (ring, error)) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close() // and its lock ends
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock the folder of %s: %w", path, err)
	}
	keys, _, err := readRing(path)
	if err != nil {
		return err
	}
	if keys, err = change(keys); err != nil {
		return err
	}
	name, err := keys.writeTemporary(path)
	if err != nil {
		return err
	}
	if err := os.Rename(name, path); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return syncFolder(path)
}

func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// ErrNoKey is the error when a key file has no key of an id.
var ErrNoKey = errors.New("there is no key of this id in the key file")

// AddKey adds a new key to the key file and returns its id. An active key seals from now on, also in running servers. An inactive one only opens, so that
// it can be given to all servers of a database before the first of them seals with it.
func AddKey(path string, active bool) (id string, err error) {
	one, err := generateKey()
	if err == nil {
		err = changeRing(path, func(keys ring) (ring, error) {
			if active {
				return append(ring{one}, keys...), nil
			}
			return append(keys, one), nil
		})
	}
	if err != nil {
		return "", fmt.Errorf("add a key to %s: %w", path, err)
	}
	return one.id, nil
}

// ActivateKey makes a key of the key file the sealing one.
func ActivateKey(path, id string) error {
	err := changeRing(path, func(keys ring) (ring, error) {
		one, ok := keys.find(id)
		if !ok {
			return nil, ErrNoKey
		}
		return append(ring{one}, keys.without(id)...), nil
	})
	if err != nil {
		return fmt.Errorf("activate the key %s of %s: %w", id, path, err)
	}
	return nil
}

// RemoveKey takes a key out of the key file. The active one stays. That nothing is sealed under the key is the caller's to know.
func RemoveKey(path, id string) error {
	err := changeRing(path, func(keys ring) (ring, error) {
		switch _, ok := keys.find(id); {
		case !ok:
			return nil, ErrNoKey
		case keys[0].id == id:
			return nil, errors.New("it is the active key: activate another one, or add one, first")
		}
		return keys.without(id), nil
	})
	if err != nil {
		return fmt.Errorf("remove the key %s from %s: %w", id, path, err)
	}
	return nil
}

func (r ring) without(id string) ring {
	var rest ring
	for _, one := range r {
		if one.id != id {
			rest = append(rest, one)
		}
	}
	return rest
}
