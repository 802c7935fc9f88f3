package store_test

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// former seals as Burano did while a key file had one key, and opens as it does now.
type former struct {
	*secret.Sealer
	aead cipher.AEAD
}

func newFormer(t *testing.T, path string, sealer *secret.Sealer) former {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	key, err := base64.StdEncoding.DecodeString(string(text))
	require.NoError(t, err)
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	return former{sealer, aead}
}

func (f former) Seal(owner string, value []byte) string {
	nonce := make([]byte, f.aead.NonceSize())
	return "v1:" + base64.StdEncoding.EncodeToString(f.aead.Seal(nonce, nonce, value, []byte(owner)))
}

// fillEverySealedColumn writes a value into each column that is sealed, and returns a function that reads them all.
func fillEverySealedColumn(t *testing.T, db *gorm.DB, s *store.Store, sealer store.Sealer, name string) (read func(*testing.T, *store.Store, store.Sealer)) {
	objects := map[string]any{"?": map[string]any{"id": "e"}, "name": name, "services": []any{}}
	e := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: name, Model: store.Model{Objects: objects}}
	require.NoError(t, s.Environments().Create(t.Context(), &e))
	require.NoError(t, db.Exec("UPDATE environments SET trust = ? WHERE id = ?", sealer.Seal(store.TrustOwner(e.ID), []byte("trust")), e.ID).Error)
	delegation := store.Delegation{EnvironmentID: e.ID, Kind: store.Trust, Sealed: sealer.Seal(store.TrustOwner(e.ID), []byte("delegated"))}
	require.NoError(t, s.Delegations().Add(t.Context(), &delegation))
	orphaned := store.NewID()
	require.NoError(t, db.Exec("INSERT INTO doomed_trusts (id, environment_id, trust, created) VALUES (?, ?, ?, 0)", orphaned, e.ID,
		sealer.Seal(store.TrustOwner(e.ID), []byte("orphaned"))).Error)
	session, task := deploy(t, s, e)
	require.NoError(t, take(t, s).SetAttribute(t.Context(), "o", "c", "n", name))
	require.NoError(t, s.Secrets().Set(t.Context(), e.ID, "key", sealer.Seal(store.SecretOwner(e.ID, "key"), []byte("secret"))))
	template := store.Template{ID: store.NewID(), ProjectID: "p1", Name: name, Services: store.List{name}}
	require.NoError(t, s.Templates().Create(t.Context(), &template))
	signIn := store.SignIn{ID: store.NewID(), UserID: "u1", Tokens: "", Created: 1, Used: 1, Expires: 100}
	signIn.Tokens = sealer.Seal(store.SignInOwner(signIn.ID), []byte("tokens"))
	require.NoError(t, s.SignIns().AddSignIn(t.Context(), signIn, 0, 1000))
	snapshot := store.Snapshot{ProjectID: "p1", EnvironmentID: e.ID, ClusterID: "c", Kind: store.Requested, Secrets: "keys of " + name}
	require.NoError(t, s.Snapshots().BeginSnapshot(t.Context(), &snapshot))
	for i := range int64(3) {
		require.NoError(t, s.Snapshots().AddPiece(t.Context(), snapshot.ID, i, sealer.Seal(store.SnapshotOwner(snapshot.ID, i), []byte("piece"))))
	}
	require.NoError(t, s.Snapshots().KeepSnapshot(t.Context(), snapshot.ID, 7, 15))
	_, err := s.Keys().Proof(t.Context(), sealer.Seal(store.ProofOwner, []byte(store.ProofOwner)))
	require.NoError(t, err)

	return func(t *testing.T, s *store.Store, sealer store.Sealer) {
		opens := func(owner, sealed, want string) {
			t.Helper()
			value, err := sealer.Open(owner, sealed)
			require.NoError(t, err)
			require.Equal(t, want, string(value))
		}
		whole, err := s.Snapshots().Snapshot(t.Context(), snapshot.ID)
		require.NoError(t, err)
		require.Equal(t, "keys of "+name, whole.Secrets)
		for i := range int64(3) {
			piece, _, err := s.Snapshots().Piece(t.Context(), snapshot.ID, i)
			require.NoError(t, err)
			opens(store.SnapshotOwner(snapshot.ID, i), piece, "piece")
		}
		row, err := s.Environments().Get(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, objects, row.Model.Objects)
		opens(store.TrustOwner(e.ID), row.Trust, "trust")
		made, err := s.Delegations().Get(t.Context(), delegation.ID)
		require.NoError(t, err)
		opens(store.TrustOwner(e.ID), made.Sealed, "delegated")
		var former string
		require.NoError(t, db.Raw("SELECT trust FROM doomed_trusts WHERE id = ?", orphaned).Scan(&former).Error)
		opens(store.TrustOwner(e.ID), former, "orphaned")
		draft, err := s.Sessions().Get(t.Context(), session.ID)
		require.NoError(t, err)
		require.Equal(t, objects, draft.Model.Objects)
		done, err := s.Tasks().Get(t.Context(), task.ID)
		require.NoError(t, err)
		require.Equal(t, name, done.Objects["name"])
		require.Equal(t, "deploy", done.Action.Method)
		value, _, err := s.Attributes().Get(t.Context(), e.ID, "o", "c", "n")
		require.NoError(t, err)
		require.Equal(t, name, value)
		kept, _, err := s.Secrets().Get(t.Context(), e.ID, "key")
		require.NoError(t, err)
		opens(store.SecretOwner(e.ID, "key"), kept, "secret")
		sameTemplate, err := s.Templates().Get(t.Context(), template.ID)
		require.NoError(t, err)
		require.Equal(t, template.Services, sameTemplate.Services)
		sameSignIn, err := s.SignIns().SignIn(t.Context(), signIn.ID)
		require.NoError(t, err)
		opens(store.SignInOwner(signIn.ID), sameSignIn.Tokens, "tokens")
		proof, err := s.Keys().Proof(t.Context(), "")
		require.NoError(t, err)
		opens(store.ProofOwner, proof, store.ProofOwner)
	}
}

func TestEverySealedColumnIsSealedAgain(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		path := filepath.Join(t.TempDir(), "key")
		sealer, err := secret.Open(path)
		require.NoError(t, err)
		old := sealer.Keys()[0]
		unsealed, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		environment(t, unsealed, "never sealed")
		before := newFormer(t, path, sealer)
		first, err := store.New(t.Context(), db, nil, store.Sealed(before))
		require.NoError(t, err)
		s, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		reads := []func(*testing.T, *store.Store, store.Sealer){
			fillEverySealedColumn(t, db, first, before, "of the first form"), fillEverySealedColumn(t, db, s, sealer, "of the first key"),
		}
		for i := range 40 { // more than are sealed again at once
			environment(t, s, fmt.Sprint("one of many ", i))
		}
		columns := map[string]bool{}
		under := func() map[string]int64 {
			counts := map[string]int64{}
			list, err := s.Keys().SealedValues(t.Context())
			require.NoError(t, err)
			for _, one := range list {
				counts[one.KeyID] += one.Number
				columns[one.Column] = true
			}
			return counts
		}
		counts := under()
		require.Positive(t, counts[""])
		require.Positive(t, counts[old])
		require.Len(t, columns, 16, "each column has a value: %v", columns)

		added, err := secret.AddKey(path, true)
		require.NoError(t, err)
		reads = append(reads, fillEverySealedColumn(t, db, s, sealer, "of the new key"))
		var told int64
		require.NoError(t, s.Keys().Reseal(t.Context(), sealer, func(_ string, values int64) { told += values }))
		require.Greater(t, told, counts[""]+counts[old], "with what was never sealed")
		left := under()
		require.Positive(t, left[added])
		require.Len(t, left, 1, "nothing is left under another key")
		told = 0
		require.NoError(t, s.Keys().Reseal(t.Context(), sealer, func(_ string, values int64) { told += values }))
		require.Zero(t, told)

		require.NoError(t, secret.RemoveKey(path, old))
		alone, err := secret.Open(path)
		require.NoError(t, err)
		s, err = store.New(t.Context(), db, nil, store.Sealed(alone))
		require.NoError(t, err)
		for _, read := range reads {
			read(t, s, alone)
		}
		require.Equal(t, []string{"environments.name"}, columnsWith(t, db, "never sealed"), "its model is sealed now")
	})
}

func TestSealedValuesAreFoundInEveryColumn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
		require.NoError(t, err)
		s, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		require.NoError(t, db.Exec("CREATE TABLE others (value TEXT NOT NULL, note VARCHAR(200))").Error)
		require.NoError(t, db.Exec("INSERT INTO others VALUES (?, 'v1: is what a user wrote'), ('v2:of something else', NULL)", sealer.Seal("a", nil)).Error)
		list, err := s.Keys().SealedValues(t.Context())
		require.NoError(t, err)
		require.Equal(t, []store.SealedValues{{Column: "others.value", KeyID: sealer.Keys()[0], Number: 1}}, list)
	})
}

func TestWhatIsWrittenWhileValuesAreSealedAgainStays(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		path := filepath.Join(t.TempDir(), "key")
		sealer, err := secret.Open(path)
		require.NoError(t, err)
		s, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		const writers, edits = 4, 30
		var sessions []store.Session
		for i := range writers {
			session, err := s.Sessions().Open(t.Context(), environment(t, s, fmt.Sprint(i)).ID, store.Holder{ID: "u1"})
			require.NoError(t, err)
			sessions = append(sessions, session)
		}
		_, err = secret.AddKey(path, true)
		require.NoError(t, err)
		var group errgroup.Group
		for _, session := range sessions {
			group.Go(func() error {
				for i := range edits {
					// Each edit adds to the former ones.
					err := s.Sessions().Edit(t.Context(), session.ID, func(m *store.Model) error {
						written, _ := m.Objects["written"].([]any)
						m.Objects["written"] = append(written, int64(i))
						return nil
					})
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		group.Go(func() error {
			for range 4 {
				if _, err := secret.AddKey(path, true); err != nil {
					return err
				}
				if err := s.Keys().Reseal(t.Context(), sealer, func(string, int64) {}); err != nil {
					return err
				}
			}
			return nil
		})
		require.NoError(t, group.Wait())
		require.NoError(t, s.Keys().Reseal(t.Context(), sealer, func(string, int64) {}))
		for _, session := range sessions {
			read, err := s.Sessions().Get(t.Context(), session.ID)
			require.NoError(t, err)
			require.Len(t, read.Model.Objects["written"], edits)
		}
	})
}

func TestAValueThatCannotBeOpenedIsNamedAndStopsNothing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		path := filepath.Join(t.TempDir(), "key")
		sealer, err := secret.Open(path)
		require.NoError(t, err)
		s, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		damaged, whole := environment(t, s, "damaged"), environment(t, s, "whole")
		require.NoError(t, db.Exec("UPDATE environments SET model = ? WHERE id = ?", "sealed:v1:AAAA", damaged.ID).Error)
		added, err := secret.AddKey(path, true)
		require.NoError(t, err)
		err = s.Keys().Reseal(t.Context(), sealer, func(string, int64) {})
		require.ErrorContains(t, err, "environments.model of "+damaged.ID)
		var text string
		require.NoError(t, db.Raw("SELECT model FROM environments WHERE id = ?", whole.ID).Scan(&text).Error)
		require.True(t, strings.HasPrefix(text, "sealed:v2:"+added))
		require.NoError(t, db.Raw("SELECT model FROM environments WHERE id = ?", damaged.ID).Scan(&text).Error)
		require.Equal(t, "sealed:v1:AAAA", text)
	})
}
