package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

var errKilled = errors.New("the server was killed")

// life is the life of a server: what works with its context changes nothing in the database any more after a number of instants. An instant is before and after each statement that changes
// something.
type life struct {
	mutex sync.Mutex
	left  int
	dead  bool
}

type lifeKey struct{}

func (l *life) instant() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.left == 0 {
		l.dead = true
		return errKilled
	}
	l.left--
	return nil
}

func (l *life) died() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.dead
}

// mortal has statements fail of servers that are dead.
func (s *server) mortal() {
	check := func(tx *gorm.DB) {
		if of, is := tx.Statement.Context.Value(lifeKey{}).(*life); is {
			if err := of.instant(); err != nil {
				_ = tx.AddError(err)
			}
		}
	}
	callbacks := s.db.Callback()
	for _, err := range []error{
		callbacks.Create().Before("gorm:create").Register("kill:before_create", check), callbacks.Create().After("gorm:create").Register("kill:after_create", check),
		callbacks.Update().Before("gorm:update").Register("kill:before_update", check), callbacks.Update().After("gorm:update").Register("kill:after_update", check),
		callbacks.Delete().Before("gorm:delete").Register("kill:before_delete", check), callbacks.Delete().After("gorm:delete").Register("kill:after_delete", check),
		callbacks.Raw().Before("gorm:raw").Register("kill:before_raw", check), callbacks.Raw().After("gorm:raw").Register("kill:after_raw", check),
	} {
		require.NoError(s.t, err)
	}
}

// lived is the context of a server that is killed after so many instants.
func (s *server) lived(instants int) (context.Context, *life) {
	of := &life{left: instants}
	return context.WithValue(s.t.Context(), lifeKey{}, of), of
}

// earlier has all that is known of environments and drills be older than anything waits.
func (s *server) earlier() {
	require.NoError(s.t, s.db.Exec("UPDATE environments SET created = created - 3600000000").Error)
	require.NoError(s.t, s.db.Exec("UPDATE backup_drills SET next_look = 0 WHERE ended = 0").Error)
}

func (s *server) environments() (names []string) {
	for _, one := range field(s.call("demo", "", "GET", "/v1/environments", nil, 200), "environments").([]any) {
		names = append(names, field(one, "name").(string))
	}
	return names
}

// withCluster has a backup have a cluster, so that its environment waits for files.
func (s *server) withCluster(backupID string) {
	rows := s.rows.Backups()
	kept, err := rows.Get(s.t.Context(), backupID)
	require.NoError(s.t, err)
	kept.Parts.Clusters = []store.BackupCluster{{ObjectID: "c", Class: "Cluster", Name: "kube"}}
	kept.Parts.Secrets = map[string][]byte{store.AttributeSecrets("c") + "password": []byte("secret")}
	require.NoError(s.t, rows.Keep(s.t.Context(), kept))
}

func TestARestorationWhoseServerIsKilledAtAnyInstantIsBegunOrLeavesNothing(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	s.withCluster(mine["backup"])
	before := s.environments()
	s.mortal()
	begun, instants := 0, 0
	for died := true; died; instants++ {
		ctx, of := s.lived(instants)
		_, err := s.config.Backups.Restore(ctx, callers["{token:demo}"], mine["backup"], orchestrator.Restoration{Name: "again"})
		died = of.died()
		require.Equal(t, died, err != nil, "%d: %v", instants, err)
		s.earlier()
		require.NoError(t, s.config.Backups.Tidy(t.Context()))
		now := field(s.call("demo", "", "GET", "/v1/environments", nil, 200), "environments").([]any)
		i := slices.IndexFunc(now, func(one any) bool { return field(one, "name") == "again" })
		if i < 0 {
			continue
		}
		id := field(now[i], "id").(string)
		s.awaitIdle(id)
		list := field(s.call("demo", "", "GET", "/v1/environments/"+id+"/deployments", nil, 200), "deployments").([]any)
		require.Equal(t, "success", field(list[0], "state"), instants)
		_, found, err := s.rows.Secrets().Get(t.Context(), id, store.AttributeSecrets("c")+"password")
		require.NoError(t, err)
		require.True(t, found)
		require.NoError(t, s.rows.Environments().Remove(t.Context(), id, ""))
		begun++
	}
	require.Equal(t, before, s.environments())
	require.Positive(t, begun)
	require.Greater(t, instants, 10)
	t.Logf("%d instants, after %d of which the environment was there", instants, begun)
}

func TestADrillWhoseServerIsKilledAtAnyInstantEnds(t *testing.T) {
	s := newServer(t)
	mine := s.populate("demo", "demos")
	s.withCluster(mine["backup"])
	before := s.environments()
	s.mortal()
	drills := func() []store.BackupDrill {
		list, err := s.rows.Backups().Drills(t.Context(), mine["environment"], 1000)
		require.NoError(t, err)
		return list
	}
	// ends has a server look after drills until they have ended, or it dies.
	ends := func(ctx context.Context, of *life) {
		t.Helper()
		err := wait.Every(10*time.Millisecond).For(time.Minute).Until(t.Context(), func(context.Context) error {
			s.earlier()
			err := s.config.Backups.AdvanceDrills(ctx)
			if of.died() {
				return nil
			}
			if i := slices.IndexFunc(drills(), func(one store.BackupDrill) bool { return one.Ended == 0 }); err == nil && i >= 0 {
				err = fmt.Errorf("it is %+v", drills()[i])
			}
			if now := s.environments(); err == nil && !slices.Equal(before, now) {
				err = fmt.Errorf("there are %v", now)
			}
			if err != nil {
				return wait.Again(err)
			}
			return nil
		})
		require.NoError(t, err)
	}
	instants := 0
	for died := true; died; instants++ { // of the server that begins it
		ctx, of := s.lived(instants)
		_, err := s.config.Backups.Drill(ctx, callers["{token:demo}"], mine["backup"])
		died = of.died()
		require.Equal(t, died, err != nil, "%d: %v", instants, err)
		ends(t.Context(), &life{left: 1})
	}
	require.Empty(t, drills()[0].Failure, "that of the server that was not killed")
	require.Greater(t, instants, 10)
	failed := 0
	for _, one := range drills() {
		require.Equal(t, one.Answered == 0, one.Failure != "", "%+v", one)
		if one.Failure != "" {
			failed++
			require.Contains(t, one.Failure, "the server died")
		}
	}
	require.Positive(t, failed, "an environment that was not deployed has not answered")
	t.Logf("%d instants of its beginning, after %d of which it failed", instants, failed)

	for instants = 0; ; instants++ { // of the server that looks after it
		_, err := s.config.Backups.Drill(t.Context(), callers["{token:demo}"], mine["backup"])
		require.NoError(t, err)
		ctx, of := s.lived(instants)
		if ends(ctx, of); !of.died() {
			break
		}
		ends(t.Context(), &life{left: 1})
		require.Empty(t, drills()[0].Failure)
	}
	t.Logf("%d instants of its end", instants)
	require.Greater(t, instants, 5)
}
