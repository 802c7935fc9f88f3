package murano_test

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/murano"
	"github.com/burano/burano/orchestrator/murano/muranotest"
	"github.com/burano/burano/orchestrator/store"
)

// here is the target of an import.
type here struct {
	catalog      *catalogstore.Store
	environments *store.Store
}

func open(t *testing.T, db *gorm.DB) here {
	packages, err := catalogstore.New(t.Context(), db)
	require.NoError(t, err)
	environments, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	return here{packages, environments}
}

func sqlite(t *testing.T) *gorm.DB {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	return db
}

// run imports, and returns the fates by the imported rows.
func (h here) run(ctx context.Context, t *testing.T, dsn string, change func(*murano.Import)) (map[string]string, error) {
	from, err := murano.Open(t.Context(), dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, from.Close()) }()
	fates := map[string]string{}
	taking := murano.Import{From: from, Catalog: h.catalog, Environments: h.environments.Environments(), Templates: h.environments.Templates(), Embedded: []string{"io.murano"}, NewID: store.NewID,
		Say: func(line murano.Line) {
			name := line.Kind + " " + line.Name
			if _, twice := fates[name]; twice {
				name += " 2"
			}
			fates[name] = strings.TrimSpace(string(line.Fate) + " " + line.Why)
		}}
	if change != nil {
		change(&taking)
	}
	return fates, taking.Run(ctx)
}

func preview(i *murano.Import) { i.Preview = true }

func TestARealMuranoIsTakenOver(t *testing.T) {
	dsn, run := muranotest.Database(t)
	t.Run("into SQLite", func(t *testing.T) { takenOver(t, dsn, run, open(t, sqlite(t))) })
	t.Run("into PostgreSQL", func(t *testing.T) {
		db, err := database.OpenPostgres(t.Context(), databasetest.Postgres(t), time.Minute)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		takenOver(t, dsn, run, open(t, db))
	})
}

func TestARealMuranoIsTakenOverFromPostgreSQL(t *testing.T) {
	dsn, _ := muranotest.Database(t)
	address := databasetest.Postgres(t)
	inPostgres(t, dsn, address)
	takenOver(t, address, nil, open(t, sqlite(t)))
}

// kindsInPostgres are the types of columns that SQLAlchemy gives Murano's models in PostgreSQL, by their types in MariaDB; others have the same name.
var kindsInPostgres = map[string]string{"datetime": "timestamp", "tinyint": "boolean", "int": "integer", "float": "double precision", "longtext": "text", "blob": "bytea", "longblob": "bytea"}

// inPostgres copies Murano's database from MariaDB into an empty one of PostgreSQL.
func inPostgres(t *testing.T, from, to string) {
	t.Helper()
	_, socket, _ := strings.Cut(from, "unix_socket=")
	source, err := sql.Open("mysql", "reader:p@ss@unix("+socket+")/murano?parseTime=true")
	require.NoError(t, err)
	defer func() { require.NoError(t, source.Close()) }()
	target, err := sql.Open("pgx", to)
	require.NoError(t, err)
	defer func() { require.NoError(t, target.Close()) }()
	columns, err := source.Query("SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'murano' ORDER BY table_name, ordinal_position")
	require.NoError(t, err)
	tables, kinds := map[string][]string{}, map[string][]string{}
	for columns.Next() {
		var table, column, kind string
		require.NoError(t, columns.Scan(&table, &column, &kind))
		tables[table] = append(tables[table], `"`+column+`"`)
		kinds[table] = append(kinds[table], cmp.Or(kindsInPostgres[kind], kind))
	}
	require.NoError(t, columns.Err())
	require.NotEmpty(t, tables)
	copied := 0
	for table, names := range tables {
		described, places := make([]string, len(names)), make([]string, len(names))
		for n, name := range names {
			described[n], places[n] = name+" "+kinds[table][n], fmt.Sprintf("$%d", n+1)
		}
		_, err := target.Exec(fmt.Sprintf("CREATE TABLE %q (%s)", table, strings.Join(described, ", ")))
		require.NoError(t, err)
		rows, err := source.Query("SELECT * FROM `" + table + "`")
		require.NoError(t, err)
		for rows.Next() {
			values, into := make([]any, len(names)), make([]any, len(names))
			for n := range values {
				into[n] = &values[n]
			}
			require.NoError(t, rows.Scan(into...))
			for n, value := range values {
				number, isNumber := value.(int64)
				switch text, isText := value.([]byte); {
				case isText && kinds[table][n] != "bytea":
					values[n] = string(text)
				case isNumber && kinds[table][n] == "boolean":
					values[n] = number != 0
				}
			}
			_, err := target.Exec(fmt.Sprintf("INSERT INTO %q VALUES (%s)", table, strings.Join(places, ", ")), values...)
			require.NoError(t, err, table)
			copied++
		}
		require.NoError(t, rows.Err())
	}
	require.NotZero(t, copied)
}

func takenOver(t *testing.T, dsn string, _ func(string), h here) {
	said, err := h.run(t.Context(), t, dsn, preview)
	require.NoError(t, err)
	here, _, err := h.environments.Environments().List(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, here, "a preview writes nothing")
	packages, err := h.catalog.Packages(t.Context(), catalog.Query{Scope: catalog.ScopeAll, IncludeDisabled: true})
	require.NoError(t, err)
	require.Empty(t, packages)

	require.Equal(t, "skip it comes with Burano", said["package io.murano"])
	require.Equal(t, "import", said["package com.example.Web"])
	require.Equal(t, "import", said["package com.example.Web 2"], "of another project")
	require.Equal(t, "skip it is here", said["category Web"])
	require.Equal(t, "import", said["category Home-made"])
	require.Equal(t, "import with its stack in Heat", said["environment deployed"])
	require.Equal(t, "import with its 2 stacks in Heat", said["environment from a template of Heat"])
	require.Contains(t, said["environment stuck"], "conflict it is deploying or being deleted in Murano")

	did, err := h.run(t.Context(), t, dsn, nil)
	require.NoError(t, err)
	require.Equal(t, said, did, "what was said is done")

	packages, err = h.catalog.Packages(t.Context(), catalog.Query{Scope: catalog.ScopeAll, IncludeDisabled: true, OrderBy: []catalog.Order{catalog.OrderFullName}})
	require.NoError(t, err)
	require.Len(t, packages, 4)
	byName := map[string]catalog.Record{}
	for _, one := range packages {
		byName[one.FullName] = one
	}
	require.False(t, byName["com.example.Disabled"].Enabled)
	require.True(t, byName["com.example.Hot"].Public)
	require.Equal(t, []string{"com.example.Disabled"}, byName["com.example.Disabled"].Classes)
	require.Equal(t, []string{"Home-made"}, byName["com.example.Hot"].Categories)

	here, sessions, err := h.environments.Environments().List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, here, 5)
	for _, one := range here {
		if one.Name == "from a template of Heat" {
			kept, _, err := h.environments.Attributes().Get(t.Context(), one.ID, one.ID, "io.murano.Environment", engine.AttributeAdopted)
			require.NoError(t, err)
			require.Equal(t, []any{"ejktsmwsm7g464_" + one.ID}, kept.(map[string]any)["templates"], "the stack of its package")
		}
		if one.Name != "deployed" {
			continue
		}
		require.EqualValues(t, 4, len(sessions[one.ID]), "two of the deployment and of a draft, and two of actions")
		whole, err := h.environments.Environments().Get(t.Context(), one.ID)
		require.NoError(t, err)
		require.Len(t, whole.Model.Objects["services"], 2)
		require.NotNil(t, whole.Model.ObjectsCopy)
		require.Empty(t, whole.Trust, "the next deployment asks for one")
		stack, there, err := h.environments.Attributes().Get(t.Context(), one.ID, one.ID, "io.murano.Environment", engine.AttributeAdopted)
		require.NoError(t, err)
		require.True(t, there)
		require.Contains(t, fmt.Sprint(stack), "murano-")
	}

	again, err := h.run(t.Context(), t, dsn, nil)
	require.NoError(t, err)
	for what, fate := range again {
		require.True(t, strings.HasPrefix(fate, "skip") || what == "environment stuck", "%s: %s", what, fate)
	}
	ended, err := h.run(t.Context(), t, dsn, func(i *murano.Import) { i.EndUnfinished = true })
	require.NoError(t, err)
	require.Equal(t, "import", ended["environment stuck"])
	free, err := h.environments.Tasks().Load(t.Context())
	require.NoError(t, err)
	require.Zero(t, free.Waiting, "no engine takes up what Murano had not ended")
}

func TestStacksOfSeveralRegionsAreTakenOver(t *testing.T) {
	dsn, run := muranotest.Database(t)
	model := `{"Objects": {"?": {"type": "io.murano.Environment", "id": "e"}, "name": "draft", "region": "local", "regions": {
		"local": {"?": {"type": "io.murano.CloudRegion", "id": "r1"}, "name": "local", "defaultNetworks": {"environment": {"?": {"type": "io.murano.resources.NeutronNetwork", "id": "n1"}}}},
		"far": {"?": {"type": "io.murano.CloudRegion", "id": "r2"}, "name": "far", "defaultNetworks": {"environment": {"?": {"type": "io.murano.resources.NeutronNetwork", "id": "n2"}}}}%s},
		"services": [{"?": {"type": "com.example.Web", "id": "a"}, "instance": {"?": {"type": "io.murano.resources.LinuxInstance", "id": "i1"}, "name": "web", "flavor": "m1.small"}},
		{"?": {"type": "com.example.Web", "id": "b"}, "regionName": "far", "instance": {"?": {"type": "io.murano.resources.LinuxInstance", "id": "i2"}, "name": "web", "flavor": "m1.small"}}]},
		"Attributes": [["r1", "io.murano.CloudRegion", "generatedStackName", "local-x"], ["r2", "io.murano.CloudRegion", "generatedStackName", "far-y"]]}`
	write := func(model string) {
		t.Helper()
		run("UPDATE environment SET description = '" + strings.ReplaceAll(model, "\n", " ") + "' WHERE name = 'draft'")
	}
	for name, own := range map[string]string{"named by its id": `, "": "r1"`, "named by its name": ""} {
		t.Run(name, func(t *testing.T) {
			write(fmt.Sprintf(model, own))
			h := open(t, sqlite(t))
			did, err := h.run(t.Context(), t, dsn, nil)
			require.NoError(t, err)
			require.Equal(t, "import with its 2 stacks in Heat", did["environment draft"])
			all, _, err := h.environments.Environments().List(t.Context(), "")
			require.NoError(t, err)
			kept := map[string]any{}
			for _, one := range all {
				for _, attribute := range []string{engine.AttributeAdopted, engine.AttributeStack, engine.AttributeRegion, engine.AttributeStacks} {
					if one.Name == "draft" {
						kept[attribute], _, err = h.environments.Attributes().Get(t.Context(), one.ID, one.ID, "io.murano.Environment", attribute)
						require.NoError(t, err)
					}
				}
			}
			require.Equal(t, map[string]any{engine.AttributeStack: true, engine.AttributeRegion: "local", engine.AttributeStacks: map[string]any{"far": true},
				engine.AttributeAdopted: map[string]any{"stack": "murano-local-x", "servers": map[string]any{"i1": "web"}, "network": "n1", "region": "r1",
					"elsewhere": map[string]any{"far": map[string]any{"stack": "murano-far-y", "servers": map[string]any{"i2": "web"}, "network": "n2", "region": "r2"}}}}, kept)
		})
	}
	write(strings.Replace(fmt.Sprintf(model, ""), `"region": "local", `, "", 1))
	said, err := open(t, sqlite(t)).run(t.Context(), t, dsn, preview)
	require.NoError(t, err)
	require.Contains(t, said["environment draft"], "conflict Murano has made 2 stacks in different regions for it")
}

func TestAnImportThatIsCutOffIsRunAgain(t *testing.T) {
	dsn, _ := muranotest.Database(t)
	h := open(t, sqlite(t))
	for cut := 1; ; cut++ {
		ctx, cancel := context.WithCancel(t.Context())
		told := 0
		_, err := h.run(ctx, t, dsn, func(i *murano.Import) {
			say := i.Say
			i.Say = func(line murano.Line) {
				say(line)
				if line.Fate == murano.Imported {
					if told++; told == 2 {
						cancel()
					}
				}
			}
		})
		cancel()
		if err == nil {
			break
		}
		require.Less(t, cut, 20)
	}
	here, _, err := h.environments.Environments().List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, here, 5)
}

func TestWhatIsTakenHereIsAConflict(t *testing.T) {
	dsn, run := muranotest.Database(t)
	h := open(t, sqlite(t))
	_, err := h.run(t.Context(), t, dsn, nil)
	require.NoError(t, err)
	run("UPDATE environment SET id = REPLACE(id, SUBSTR(id, 1, 4), 'ffff') WHERE name = 'of others'")
	run("SET FOREIGN_KEY_CHECKS = 0; UPDATE package SET id = CONCAT('ffff', SUBSTR(id, 5)) WHERE fully_qualified_name = 'com.example.Hot'")
	for _, way := range []func(*murano.Import){preview, nil} {
		said, err := h.run(t.Context(), t, dsn, way)
		require.NoError(t, err)
		require.Contains(t, said["environment of others"], "conflict its project has another environment of that name")
		require.Contains(t, said["package com.example.Hot"], "conflict package com.example.Hot")
	}
}
