package server

import (
	"io/fs"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
)

// additive are the statements that leave an older server of the same generation able to work.
var additive = regexp.MustCompile(`(?is)^(CREATE TABLE|CREATE INDEX|CREATE UNIQUE INDEX|DROP INDEX|INSERT INTO|ALTER TABLE \w+ ADD COLUMN \w+ \w+( NOT NULL DEFAULT .*)?$)`)

// before are the versions of the time when there were no generations yet.
var before = map[string]int{"orchestrator": 12, "catalog": 3}

func TestMigrationsWithinAGenerationOnlyAdd(t *testing.T) {
	comment := regexp.MustCompile(`--[^\n]*`)
	for _, schema := range Schemas() {
		names, err := fs.Glob(schema.Files, "*.sql")
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			number, err := strconv.Atoi(name[:4])
			require.NoError(t, err)
			if number <= before[schema.Owner] || number%1000 == 0 {
				continue
			}
			text, err := fs.ReadFile(schema.Files, name)
			require.NoError(t, err)
			up, _, _ := strings.Cut(string(text), "-- +goose Down")
			for statement := range strings.SplitSeq(comment.ReplaceAllString(up, ""), ";") {
				if statement = strings.TrimSpace(statement); statement != "" {
					require.Regexp(t, additive, statement, "%s of %s: servers of the former version would fail; begin a generation with it (internal/database)", name, schema.Owner)
				}
			}
		}
	}
}

func TestAServerEndsWhenALaterGenerationOfItsDatabaseBegins(t *testing.T) {
	options := &Options{State: t.TempDir(), Lease: MinLease}
	db, err := options.OpenDatabase(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	for _, schema := range Schemas() {
		require.NoError(t, schema.Migrate(t.Context(), db))
	}
	ended := make(chan error, 1)
	go func() { ended <- watchVersion(t.Context(), db, 10*time.Millisecond, slog.New(slog.DiscardHandler)) }()
	require.NoError(t, db.Exec("INSERT INTO orchestrator_migrations (version_id, is_applied) VALUES (1000, 1)").Error)
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "it was used by a newer one")
	case <-time.After(time.Minute):
		t.Fatal("the server goes on")
	}
}
