package nova

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"net/http"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// Keypair is a public key that belongs to a user.
type Keypair struct {
	Name, UserID, ProjectID string
	PublicKey               string // a line of authorized_keys
	Fingerprint             string // MD5, as Nova has it
	CreatedAt               time.Time

	PrivateKey string `json:"-"` // PEM; only of a new key, never stored
}

func (k Keypair) key() string { return k.UserID + " " + k.Name }

func (k Keypair) body(ctx context.Context) map[string]any {
	body := map[string]any{"name": k.Name, "public_key": k.PublicKey, "fingerprint": k.Fingerprint}
	if since(ctx, 2) {
		body["type"] = "ssh"
	}
	return body
}

// publicKey finds the key of a name: the user's own, or else, when only the project is known, one of the project.
func (s *Service) publicKey(_ context.Context, userID, projectID, name string) (string, bool) {
	if k, ok := s.keypairs.Get(Keypair{Name: name, UserID: userID}.key()); ok {
		return k.PublicKey, true
	}
	if userID != "" {
		return "", false
	}
	all := s.keypairs.All()
	i := slices.IndexFunc(all, func(k Keypair) bool { return k.Name == name && k.ProjectID == projectID })
	if i < 0 {
		return "", false
	}
	return all[i].PublicKey, true
}

func (s *Service) listKeypairs(w http.ResponseWriter, r *http.Request) error {
	bodies := []any{}
	for _, k := range s.keypairs.All() {
		if k.UserID == identity.From(r.Context()).UserID {
			bodies = append(bodies, map[string]any{"keypair": k.body(r.Context())})
		}
	}
	answer.JSON(w, http.StatusOK, map[string]any{"keypairs": bodies})
	return nil
}

// CreateKeypair keeps a public key for the caller of the context; when it is "" a pair is made, and the private key returned this
// once.
func (s *Service) CreateKeypair(ctx context.Context, projectID, name, publicKey string) (Keypair, error) {
	if name == "" || len(name) > 255 {
		return Keypair{}, fault.New(fault.Invalid, "Invalid input for field/attribute name. Value: %s. A name has 1 to 255 characters.", name)
	}
	made := Keypair{Name: name, UserID: identity.From(ctx).UserID, ProjectID: projectID, PublicKey: publicKey, CreatedAt: s.now()}
	if _, taken := s.keypairs.Get(made.key()); taken {
		return Keypair{}, fault.New(fault.Conflict, "Key pair '%s' already exists.", name)
	}
	if publicKey == "" {
		var err error
		if made.PublicKey, made.PrivateKey, err = generateKey(); err != nil {
			return Keypair{}, err
		}
	}
	parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(made.PublicKey))
	if err != nil {
		return Keypair{}, fault.New(fault.Invalid, "Keypair data is invalid: failed to generate fingerprint: %w", err)
	}
	made.Fingerprint = ssh.FingerprintLegacyMD5(parsed)
	return made, s.keypairs.Put(made.key(), made)
}

// DeleteKeypair removes a key pair of the caller of the context.
func (s *Service) DeleteKeypair(ctx context.Context, name string) error {
	userID := identity.From(ctx).UserID
	found, err := s.keypairs.Delete(Keypair{Name: name, UserID: userID}.key())
	if err == nil && !found {
		return noKeypair(name, userID)
	}
	return err
}

func noKeypair(name, userID string) error {
	return fault.New(fault.NotFound, "Keypair %s not found for user %s", name, userID)
}

func (s *Service) createKeypair(w http.ResponseWriter, r *http.Request) error {
	var request struct {
		Keypair struct {
			Name      string `json:"name"`
			PublicKey string `json:"public_key"`
			Type      string `json:"type"`
		} `json:"keypair"`
	}
	if err := readJSON(r, &request); err != nil {
		return err
	}
	wanted := request.Keypair
	if wanted.Type != "" && wanted.Type != "ssh" {
		return fault.New(fault.Invalid, "Invalid input for field/attribute type. Value: %s. This cloud has key pairs of type ssh only.", wanted.Type)
	}
	made, err := s.CreateKeypair(r.Context(), identity.From(r.Context()).ProjectID, wanted.Name, wanted.PublicKey)
	if err != nil {
		return err
	}
	body := made.body(r.Context())
	body["user_id"] = made.UserID
	if made.PrivateKey != "" {
		body["private_key"] = made.PrivateKey
	}
	status := http.StatusOK
	if since(r.Context(), 2) {
		status = http.StatusCreated
	}
	answer.JSON(w, status, map[string]any{"keypair": body})
	return nil
}

// generateKey makes an RSA key as Nova does: a line of authorized_keys and a PEM block.
func generateKey() (public, private string, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", "", err
	}
	line, err := ssh.NewPublicKey(&key.PublicKey)
	if err != nil {
		return "", "", err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return "", "", err
	}
	return string(ssh.MarshalAuthorizedKey(line)), string(pem.EncodeToMemory(block)), nil
}

func (s *Service) showKeypair(w http.ResponseWriter, r *http.Request) error {
	name, userID := r.PathValue("name"), identity.From(r.Context()).UserID
	k, ok := s.keypairs.Get(Keypair{Name: name, UserID: userID}.key())
	if !ok {
		return noKeypair(name, userID)
	}
	body := k.body(r.Context())
	body["user_id"], body["id"], body["created_at"] = k.UserID, 1, k.CreatedAt.UTC().Format("2006-01-02T15:04:05.000000")
	body["deleted"], body["deleted_at"], body["updated_at"] = false, nil, nil
	answer.JSON(w, http.StatusOK, map[string]any{"keypair": body})
	return nil
}

func (s *Service) deleteKeypair(w http.ResponseWriter, r *http.Request) error {
	if err := s.DeleteKeypair(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	status := http.StatusAccepted
	if since(r.Context(), 2) {
		status = http.StatusNoContent
	}
	w.WriteHeader(status)
	return nil
}
