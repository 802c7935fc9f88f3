// Package seal seals data for one gateway: boxes of NaCl (X25519, XSalsa20 and Poly1305), from any sender, for the holder of the private key. Members of
// etcd are on nodes of every role, and their files show all stored data; a certificate's private key is only there in a box.
package seal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"golang.org/x/crypto/nacl/box"
)

// Key opens boxes. It never leaves the file that it is in.
type Key struct{ public, private [32]byte }

// Load reads a key from its file, which it makes when there is none or when it holds no key: boxes are closed anew for the key that is there.
func Load(path string) (Key, error) {
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Key{}, fmt.Errorf("read the key that certificates are sealed to: %w", err)
	}
	if len(content) == 64 {
		return Key{public: [32]byte(content[:32]), private: [32]byte(content[32:])}, nil
	}
	public, private, err := box.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, err
	}
	if err := write(path, append(public[:], private[:]...)); err != nil {
		return Key{}, fmt.Errorf("keep the key that certificates are sealed to: %w", err)
	}
	return Key{public: *public, private: *private}, nil
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, content, 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// Public is the key for sealing.
func (k Key) Public() [32]byte { return k.public }

// Close puts content into a box.
func Close(public [32]byte, content []byte) ([]byte, error) {
	return box.SealAnonymous(nil, content, &public, rand.Reader)
}

// Open takes the content out of a box.
func (k Key) Open(sealed []byte) ([]byte, error) {
	content, ok := box.OpenAnonymous(nil, sealed, &k.public, &k.private)
	if !ok {
		return nil, errors.New("the box is for another key, or was changed")
	}
	return content, nil
}
