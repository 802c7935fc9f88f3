package secret

import (
	"crypto/rand"
	"fmt"
)

// NewKey makes a key for Under. It is itself to be kept sealed.
func NewKey() string {
	one, _ := generateKey() // of the size that a key has
	return one.text
}

// Own seals under one key of its own, which no change of the key file touches: for data that Burano does not seal again.
type Own struct{ key key }

// Under is an Own of this key.
func Under(text string) (Own, error) {
	one, err := newKey(text)
	if err != nil {
		return Own{}, fmt.Errorf("use a key: %w", err)
	}
	return Own{one}, nil
}

// Seal returns value in a form that only Open with the same owner opens again: nonce and AES-256-GCM ciphertext.
func (o Own) Seal(owner string, value []byte) []byte {
	nonce := make([]byte, o.key.aead.NonceSize())
	rand.Read(nonce) // never fails (crypto/rand)
	return o.key.aead.Seal(nonce, nonce, value, []byte(owner))
}

// Open returns the value that Seal got for this owner.
func (o Own) Open(owner string, sealed []byte) ([]byte, error) {
	size := o.key.aead.NonceSize()
	if len(sealed) < size {
		return nil, fmt.Errorf("open %s: %w", owner, errDamaged)
	}
	value, err := o.key.aead.Open(nil, sealed[:size], sealed[size:], []byte(owner))
	if err != nil {
		return nil, fmt.Errorf("open %s: it is damaged, or was sealed for something else", owner)
	}
	return value, nil
}
