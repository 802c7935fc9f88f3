// Package secret seals what must not be readable in the database, under a key that lies in a file beside it.
package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// keySize is AES-256's.
const keySize = 32

// prefix names the form of a sealed value, so that another one can follow: version 1 is nonce and AES-256-GCM ciphertext.
const prefix = "v1:"

// Sealer seals and opens small values. It is safe for concurrent use.
type Sealer struct {
	aead cipher.AEAD
	path string
}

// Open reads the key file at path, and makes it (mode 0600) when there is none. A key file that others than its owner may
// read is refused: whoever has both it and the database has every secret.
func Open(path string) (*Sealer, error) {
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createKey(path); err != nil {
			return nil, fmt.Errorf("make the key file %s: %w", path, err)
		}
		key, err = readKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key file %s: %w", path, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use the key file %s: %w", path, err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("use the key file %s: %w", path, err)
	}
	return &Sealer{aead: aead, path: path}, nil
}

// Seal returns value in a form that only Open with the same owner opens again. owner says what the value belongs to, for
// example "environment/4f2a…/secret/etcd-ca"; a sealed value copied to another owner does not open. The answer is printable.
func (s *Sealer) Seal(owner string, value []byte) string {
	nonce := make([]byte, s.aead.NonceSize())
	rand.Read(nonce) // never fails (crypto/rand)
	return prefix + base64.StdEncoding.EncodeToString(s.aead.Seal(nonce, nonce, value, []byte(owner)))
}

// Open returns what Seal was given for this owner.
func (s *Sealer) Open(owner, sealed string) ([]byte, error) {
	text, ok := strings.CutPrefix(sealed, prefix)
	if !ok {
		return nil, fmt.Errorf("open the secret of %s: it is not in a form that this Burano knows", owner)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return nil, fmt.Errorf("open the secret of %s: it is damaged", owner)
	}
	value, err := s.aead.Open(nil, raw[:s.aead.NonceSize()], raw[s.aead.NonceSize():], []byte(owner))
	if err != nil {
		return nil, fmt.Errorf("open the secret of %s: it was sealed with another key than that of %s, or for something else", owner, s.path)
	}
	return value, nil
}

func readKey(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read it (mode %04o): run chmod 600 %s, and think of who had access", info.Mode().Perm(), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keySize {
		return nil, fmt.Errorf("it does not hold a key of %d bytes in base64; restore it from a backup (without it the sealed secrets cannot be read)", keySize)
	}
	return key, nil
}

// createKey writes a new key beside path and links it there: path appears whole or not at all, and a key that another process
// made in the meantime is left as it is.
func createKey(path string) error {
	key := make([]byte, keySize)
	rand.Read(key)
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(base64.StdEncoding.EncodeToString(key) + "\n"); err != nil {
		file.Close()
		return err
	}
	if err := file.Sync(); err != nil {
		file.Close()
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
