// Package durability kills, stops and cuts off Burano's servers while clients deploy, change and delete environments, and
// checks that nothing is lost. Every accepted deployment ends, acknowledged changes are there, no native step whose completion
// was recorded runs twice, and the status never claims a thing that does not exist.
//
// BURANO_KILLS is the number of blows (default 60 for one server, 24 for three), BURANO_SEED repeats a run's random choices.
package durability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/test/localcloud/keystone"
)

const (
	lease   = 3 * time.Second
	clients = 6
	// manyDeaths is more than the number of deaths that one task can suffer in a test.
	manyDeaths = 1000
	// patience is how long one awaited thing may take: many blows fall meanwhile.
	patience = 2 * time.Minute
)

// site is everything of one test: Keystone, the world, and the servers.
type site struct {
	t        *testing.T
	random   *rand.Rand // for blows; each client has its own
	seed     uint64
	world    world
	keystone string
	token    string
	servers  []*server
}

// server is one server process, which comes and goes at one address.
type server struct {
	settings settings
	process  *exec.Cmd
}

func newSite(t *testing.T, servers, maxDeaths int, postgres string) *site {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("BURANO_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "BURANO_SEED")
	}
	t.Logf("BURANO_SEED=%d", seed)
	s := &site{t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), world: world{t.TempDir()}}
	s.startKeystone()
	state := t.TempDir()
	for range servers {
		one := &server{settings: settings{Listen: freeAddress(t), State: state, Postgres: postgres, Lease: lease, MaxDeaths: maxDeaths, Keystone: s.keystone, World: s.world.folder}}
		s.servers = append(s.servers, one)
		s.launch(one)
		s.healthy(one) // the first one makes key and tables
	}
	t.Cleanup(func() {
		for _, one := range s.servers {
			require.NoError(t, one.process.Process.Signal(syscall.SIGTERM))
			require.NoError(t, one.process.Wait(), "a server ends cleanly when asked to")
		}
		if t.Failed() {
			for i := range s.servers {
				text, err := os.ReadFile(s.logPath(i))
				require.NoError(t, err)
				var told []string
				for one := range strings.Lines(string(text)) {
					if !strings.Contains(one, "msg=request") {
						told = append(told, one)
					}
				}
				t.Logf("the log of server %d, without requests:\n%s", i, strings.Join(told[max(0, len(told)-100):], ""))
			}
		}
	})
	s.upload()
	return s
}

func (s *site) startKeystone() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	base := "http://" + listener.Addr().String()
	service, err := keystone.New(keystone.Config{StateDir: s.t.TempDir(), Endpoint: base, TokenLifetime: 24 * time.Hour})
	require.NoError(s.t, err)
	mux := http.NewServeMux()
	mux.Handle("/identity/", http.StripPrefix("/identity", service.Handler()))
	running := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}}
	running.Start()
	s.t.Cleanup(running.Close)
	s.keystone = base + "/identity/v3"
	provider, err := openstack.AuthenticatedClient(s.t.Context(), credentials(s.keystone, "demo", "demo"))
	require.NoError(s.t, err)
	s.token = provider.Token()
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func (s *site) logPath(number int) string {
	return filepath.Join(s.world.folder, fmt.Sprintf("server-%d.log", number))
}

func (s *site) launch(one *server) {
	text, err := json.Marshal(one.settings)
	require.NoError(s.t, err)
	self, err := os.Executable()
	require.NoError(s.t, err)
	number := 0
	for i := range s.servers {
		if s.servers[i] == one {
			number = i
		}
	}
	log, err := os.OpenFile(s.logPath(number), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	defer log.Close()
	one.process = exec.Command(self)
	one.process.Env = append(os.Environ(), asServer+"="+string(text))
	one.process.Stdout, one.process.Stderr = log, log
	one.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(s.t, one.process.Start())
}

func (s *site) healthy(one *server) {
	require.Eventually(s.t, func() bool {
		response, err := http.Get("http://" + one.settings.Listen + "/readyz")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	}, time.Minute, 5*time.Millisecond)
}

// kill ends a server as a crash does, and starts it again.
func (s *site) kill(one *server) {
	require.NoError(s.t, one.process.Process.Kill())
	_ = one.process.Wait()
	s.launch(one)
	s.healthy(one)
}

func (s *site) upload() {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "app.zip")
	require.NoError(s.t, err)
	require.NoError(s.t, catalog.WriteZip(part, os.DirFS("packages/app")))
	require.NoError(s.t, form.Close())
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.servers[0].settings.Listen+"/v1/catalog/packages", &body)
	require.NoError(s.t, err)
	request.Header.Set("Content-Type", form.FormDataContentType())
	request.Header.Set("X-Auth-Token", s.token)
	response, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, response.StatusCode, string(answer))
}

// blows is the number of blows.
func blows(t *testing.T, usual int) int {
	text := os.Getenv("BURANO_KILLS")
	if text == "" {
		return usual
	}
	number, err := strconv.Atoi(text)
	require.NoError(t, err, "BURANO_KILLS")
	return number
}

// pause waits until something has happened in the world, and then for a random time: otherwise blows would only fall on servers
// that are just starting. The next blow falls at no particular instant.
func (s *site) pause(longest time.Duration) {
	size := func() int64 {
		about, err := os.Stat(filepath.Join(s.world.folder, "log"))
		if err != nil {
			return 0
		}
		return about.Size()
	}
	before := size()
	require.Eventually(s.t, func() bool { return size() > before || s.t.Failed() }, patience, time.Millisecond, "nothing happens any more")
	timer := time.NewTimer(time.Duration(s.random.Int64N(int64(longest))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.t.Context().Done():
	}
}

// under runs clients while blow is called again and again, and returns when the blows are over and every client has completed its
// turn.
func (s *site) under(number int, blow func(i int)) {
	stop := make(chan struct{})
	stopped := sync.OnceFunc(func() { close(stop) })
	var group sync.WaitGroup
	all := make([]*client, clients)
	for i := range all {
		all[i] = newClient(s, i)
		group.Go(func() {
			if err := all[i].run(stop); err != nil {
				s.t.Errorf("client %d: %v", i, err)
			}
		})
	}
	func() {
		defer group.Wait()
		defer stopped()
		for i := range number {
			blow(i)
			if s.t.Failed() {
				return
			}
		}
	}()
	var sum client
	for _, one := range all {
		sum.deployments += one.deployments
		sum.deletions += one.deletions
		sum.actions += one.actions
		sum.lost += one.lost
	}
	s.t.Logf("%d blows; %d deployments, %d actions and %d deletions ended; %d answers were lost", number, sum.deployments, sum.actions, sum.deletions, sum.lost)
	require.NotZero(s.t, sum.deployments)
	require.NotZero(s.t, sum.actions)
	require.NotZero(s.t, sum.deletions)
	s.checkLog()
}

// checkLog checks the order and number of events in the world's log.
func (s *site) checkLog() {
	lines, err := s.world.log()
	require.NoError(s.t, err)
	type key struct{ environment, object, name string }
	made, fences, reached := map[key]bool{}, map[string]uint64{}, map[string]int{}
	counts := map[string]int{}
	for i, one := range lines {
		counts[one.What]++
		if one.What == "refused" {
			continue
		}
		require.GreaterOrEqual(s.t, one.Fence, fences[one.Environment], "line %d: a former worker did something after a later one: %+v", i+1, one)
		fences[one.Environment] = one.Fence
		k := key{one.Environment, one.Object, one.Name}
		switch one.What {
		case "made":
			require.False(s.t, made[k], "line %d: a thing is made twice: %+v", i+1, one)
			made[k] = true
		case "found": // made by a server that was killed before it could log that, or remembered
			made[k] = true
		case "note": // the application's progress in its attribute, when that was read and when it was written
			var now int
			if _, err := fmt.Sscanf(one.Name, "reached %d", &now); err == nil {
				require.GreaterOrEqual(s.t, now, reached[one.Environment], "line %d: an attribute that was written is lost: %+v", i+1, one)
				reached[one.Environment] = now
			}
		case "removed":
			for other := range made {
				if other.environment == one.Environment && other.object == one.Object {
					delete(made, other)
				}
			}
		}
	}
	require.NotEmpty(s.t, reached)
	s.t.Logf("the world's log: %v", counts)
}

func TestOneServerThatIsKilledLosesNothing(t *testing.T) {
	s := newSite(t, 1, manyDeaths, "")
	s.under(blows(t, 60), func(int) {
		s.pause(400 * time.Millisecond)
		s.kill(s.servers[0])
	})
}

func TestThreeServersOnPostgreSQLThatAreKilledAndStoppedLoseNothing(t *testing.T) {
	database := databasetest.Start(t)
	s := newSite(t, 3, manyDeaths, database.URL)
	s.under(blows(t, 24), func(i int) {
		s.pause(400 * time.Millisecond)
		victim := s.servers[s.random.IntN(len(s.servers))]
		switch {
		case i%10 == 3: // longer than the lease: another server has its work when it goes on
			require.NoError(t, victim.process.Process.Signal(syscall.SIGSTOP))
			timer := time.NewTimer(lease + lease/2 + time.Duration(s.random.Int64N(int64(lease))))
			<-timer.C
			require.NoError(t, victim.process.Process.Signal(syscall.SIGCONT))
			s.healthy(victim)
		case i%10 == 7:
			database.Crash()
		default:
			s.kill(victim)
		}
	})
}
