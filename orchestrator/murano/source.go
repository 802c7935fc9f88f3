// Package murano imports from OpenStack Murano's database: packages, categories, environments with their drafts and their history, and templates.
package murano

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
)

// Source is Murano's database at one moment: all of it is read in one transaction that cannot write.
type Source struct {
	db    *sql.DB
	tx    *sql.Tx
	quote string // around names of tables
}

// Open connects to Murano's database. dsn is a URL as murano.conf has it ([database] connection): mysql+pymysql://user:password@host/murano or
// postgresql://user:password@host/murano; a socket of MySQL is named by unix_socket.
func Open(ctx context.Context, dsn string) (*Source, error) {
	address, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("the address of Murano's database is no URL: write it as the setting connection of murano.conf has it, with special characters of the password escaped")
	}
	kind, _, _ := strings.Cut(address.Scheme, "+")
	s := &Source{}
	switch kind {
	case "mysql", "mariadb":
		s.quote = "`"
		s.db, err = sql.Open("mysql", mysqlConfig(address).FormatDSN())
	case "postgresql", "postgres":
		address.Scheme = "postgresql"
		s.quote = `"`
		s.db, err = sql.Open("pgx", address.String())
	default:
		return nil, fmt.Errorf("the address of Murano's database begins with %q: Murano works with mysql:// and postgresql://", address.Scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("open Murano's database: %w", err)
	}
	if s.tx, err = s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}); err != nil {
		return nil, errors.Join(fmt.Errorf("open Murano's database: %w", err), s.db.Close())
	}
	return s, nil
}

// mysqlConfig is the driver's configuration for a URL of SQLAlchemy. Murano's times are in UTC.
func mysqlConfig(address *url.URL) *mysql.Config {
	config := mysql.NewConfig()
	config.User = address.User.Username()
	config.Passwd, _ = address.User.Password()
	config.DBName = strings.TrimPrefix(address.Path, "/")
	config.ParseTime, config.Loc = true, time.UTC
	port := address.Port()
	if port == "" {
		port = "3306"
	}
	config.Net, config.Addr = "tcp", net.JoinHostPort(address.Hostname(), port)
	query := address.Query()
	if socket := query.Get("unix_socket"); socket != "" {
		config.Net, config.Addr = "unix", socket
	}
	if query.Has("ssl_ca") || query.Has("ssl") {
		config.TLSConfig = "true"
	}
	return config
}

// Close ends the reading.
func (s *Source) Close() error {
	err := s.tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) {
		err = nil
	}
	return errors.Join(err, s.db.Close())
}

// sourcePackage is a row of the table of packages, without its zip.
type sourcePackage struct {
	id, fullName, name, description, owner string
	enabled, public                        bool
	created, updated                       time.Time
	categories, tags                       []string
}

type sourceEnvironment struct {
	id, project, name, description string
	version                        int64
	model                          string
	created, updated               time.Time
}

type sourceSession struct {
	id, environment, user, state string
	version                      int64
	model                        string
	created, updated             time.Time
}

type sourceTask struct {
	id, environment, objects, action, result string
	created, updated, started                time.Time
	finished                                 sql.NullTime
}

type sourceReport struct {
	id, level, text  string
	entityID, entity sql.NullString
	details          sql.NullString
	created          time.Time
}

type sourceInstance struct {
	id, class        string
	kind, created    int64
	destroyed, units sql.NullInt64
	title            sql.NullString
}

// table is a table's name, quoted for the database.
func (s *Source) table(name string) string { return s.quote + name + s.quote }

// argument is the place of a statement's only argument.
func (s *Source) argument() string {
	if s.quote == `"` {
		return "$1"
	}
	return "?"
}

// each reads the rows of a query, one after another; take is called after each row was read into the places.
func (s *Source) each(ctx context.Context, take func(), query string, args []any, places ...any) (err error) {
	rows, err := s.tx.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read Murano's database: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return fmt.Errorf("read Murano's database: %w", err)
		}
		take()
	}
	return rows.Err()
}

// categories are the names of all categories, in alphabetical order.
func (s *Source) categories(ctx context.Context) (names []string, err error) {
	var name string
	err = s.each(ctx, func() { names = append(names, name) }, "SELECT name FROM category ORDER BY name", nil, &name)
	return names, err
}

func (s *Source) packages(ctx context.Context) (list []sourcePackage, err error) {
	var p sourcePackage
	var enabled, public sql.NullBool
	err = s.each(ctx, func() {
		p.enabled, p.public = enabled.Bool, public.Bool
		list = append(list, p)
	}, "SELECT id, fully_qualified_name, name, description, owner_id, enabled, is_public, created, updated FROM "+s.table("package")+" ORDER BY created, id", nil,
		&p.id, &p.fullName, &p.name, &p.description, &p.owner, &enabled, &public, &p.created, &p.updated)
	if err != nil {
		return nil, err
	}
	var id, name string
	add := func(to func(*sourcePackage)) {
		if i := slices.IndexFunc(list, func(p sourcePackage) bool { return p.id == id }); i >= 0 {
			to(&list[i])
		}
	}
	err = s.each(ctx, func() { add(func(p *sourcePackage) { p.categories = append(p.categories, name) }) },
		"SELECT l.package_id, c.name FROM package_to_category l JOIN category c ON c.id = l.category_id ORDER BY c.name", nil, &id, &name)
	if err != nil {
		return nil, err
	}
	return list, s.each(ctx, func() { add(func(p *sourcePackage) { p.tags = append(p.tags, name) }) },
		"SELECT l.package_id, t.name FROM package_to_tag l JOIN tag t ON t.id = l.tag_id ORDER BY t.name", nil, &id, &name)
}

func (s *Source) archive(ctx context.Context, id string) (archive []byte, err error) {
	var read []byte
	err = s.each(ctx, func() { archive = slices.Clone(read) }, "SELECT archive FROM "+s.table("package")+" WHERE id = "+s.argument(), []any{id}, &read)
	return archive, err
}

// like reads environments, or templates, which have the same columns.
func (s *Source) like(ctx context.Context, table string) (list []sourceEnvironment, err error) {
	var e sourceEnvironment
	var model, text sql.NullString
	err = s.each(ctx, func() {
		e.model, e.description = model.String, text.String
		list = append(list, e)
	}, "SELECT id, tenant_id, name, version, description, description_text, created, updated FROM "+s.table(table)+" ORDER BY created, id", nil,
		&e.id, &e.project, &e.name, &e.version, &model, &text, &e.created, &e.updated)
	return list, err
}

// publicTemplates are the ids of the templates that every project sees.
func (s *Source) publicTemplates(ctx context.Context) (map[string]bool, error) {
	public := map[string]bool{}
	var id string
	var is sql.NullBool
	err := s.each(ctx, func() { public[id] = is.Bool }, "SELECT id, is_public FROM "+s.table("environment-template"), nil, &id, &is)
	return public, err
}

func (s *Source) sessions(ctx context.Context, environment string) (list []sourceSession, err error) {
	var one sourceSession
	var model sql.NullString
	err = s.each(ctx, func() {
		one.model = model.String
		list = append(list, one)
	}, "SELECT id, environment_id, user_id, state, version, description, created, updated FROM "+s.table("session")+" WHERE environment_id = "+s.argument()+" ORDER BY created, id",
		[]any{environment}, &one.id, &one.environment, &one.user, &one.state, &one.version, &model, &one.created, &one.updated)
	return list, err
}

func (s *Source) tasks(ctx context.Context, environment string) (list []sourceTask, err error) {
	var one sourceTask
	var objects, action, result sql.NullString
	err = s.each(ctx, func() {
		one.objects, one.action, one.result = objects.String, action.String, result.String
		list = append(list, one)
	}, "SELECT id, environment_id, description, action, result, created, updated, started, finished FROM task WHERE environment_id = "+s.argument()+" ORDER BY created, id",
		[]any{environment}, &one.id, &one.environment, &objects, &action, &result, &one.created, &one.updated, &one.started, &one.finished)
	return list, err
}

func (s *Source) reports(ctx context.Context, task string) (list []sourceReport, err error) {
	var one sourceReport
	err = s.each(ctx, func() { list = append(list, one) },
		"SELECT id, entity_id, entity, text, level, details, created FROM status WHERE task_id = "+s.argument()+" ORDER BY created, id",
		[]any{task}, &one.id, &one.entityID, &one.entity, &one.text, &one.level, &one.details, &one.created)
	return list, err
}

func (s *Source) instances(ctx context.Context, environment string) (list []sourceInstance, err error) {
	var one sourceInstance
	err = s.each(ctx, func() { list = append(list, one) },
		"SELECT instance_id, instance_type, type_name, type_title, unit_count, created, destroyed FROM instance_stats WHERE environment_id = "+s.argument(),
		[]any{environment}, &one.id, &one.kind, &one.class, &one.title, &one.units, &one.created, &one.destroyed)
	return list, err
}
